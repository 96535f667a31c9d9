"""What is compared on LoCoMo: each is told a dialogue turn by turn and names turns for a question, best first.

contender = Ours()
contender.tell(turn)
contender.ask("When did Ann move?", 10)          # ids of turns
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Protocol

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.embedders import default_embedder
from embodied_mem.memory.search import TextIndex, WordIndex
from embodied_mem.memory.words import content_words

from .baselines import LangMem, Mem0
from .dialogues import Turn

_DEPTH = 100
_FUSION = 60
"""Constant of reciprocal rank fusion: Cormack et al. (2009)."""


class Contender(Protocol):
    """A memory under test."""

    def tell(self, turn: Turn) -> None:
        """Take note of a turn."""

    def ask(self, question: str, k: int) -> list[str]:
        """Ids of the turns that fit best, at most `k`."""

    def num_bytes(self) -> int:
        """Bytes of all that is kept."""


class Ours:
    """`LifelongMemory` as a user has it: rules alone, all modules, `tell` and `retrieve`."""

    def __init__(self) -> None:
        self.memory = LifelongMemory()
        self._turns: dict[str, list[str]] = {}  # note -> turns; the same words said again are one note

    def tell(self, turn: Turn) -> None:
        """As `Contender.tell`."""
        receipt = self.memory.tell(turn.text, speaker=turn.speaker, when=turn.when)
        for written in (*receipt.stored, *receipt.merged):
            if written.module == "notes":
                self._turns.setdefault(written.id, []).append(turn.id)

    def ask(self, question: str, k: int) -> list[str]:
        """As `Contender.ask`; an item that follows from notes stands for them."""
        turns: dict[str, None] = {}
        for item in self.memory.retrieve(question, k=k).items:
            notes = [item.id] if item.module == "notes" else [f"notes:{note}" for note in item.data.get("notes", ())]
            turns |= dict.fromkeys(turn for note in notes for turn in self._turns.get(note, ()))
        return list(turns)[:k]

    def num_bytes(self) -> int:
        """As `Contender.num_bytes`."""
        return len(self.memory.state())

    def kept(self) -> int:
        """How many turns are kept, word by word."""
        return sum(len(entry.sources) for entry in self.memory.get_all("notes"))


class Bm25:
    """BM25 alone, over the same stems that the memory uses, of speaker and text."""

    def __init__(self) -> None:
        self._index = WordIndex()
        self._turns: list[Turn] = []

    def tell(self, turn: Turn) -> None:
        """As `Contender.tell`."""
        self._index.add(len(self._turns), content_words(turn.said))
        self._turns.append(turn)

    def ask(self, question: str, k: int) -> list[str]:
        """As `Contender.ask`."""
        scores = self._index.search(content_words(question))
        return [self._turns[n].id for n in sorted(scores, key=lambda n: (-scores[n], n))[:k]]

    def num_bytes(self) -> int:
        """As `Contender.num_bytes`."""
        return len(pickle.dumps((self._index, self._turns)))


class Embedder:
    """The default embedder alone: the cosine of question and turn."""

    def __init__(self) -> None:
        self._index = TextIndex(default_embedder())
        self._turns: list[Turn] = []

    def tell(self, turn: Turn) -> None:
        """As `Contender.tell`."""
        self._index.add(len(self._turns), turn.said)
        self._turns.append(turn)

    def ask(self, question: str, k: int) -> list[str]:
        """As `Contender.ask`."""
        return [self._turns[number].id for number, _ in self._index.search(question, k)]

    def num_bytes(self) -> int:
        """As `Contender.num_bytes`: the texts, and their vectors."""
        vectors = default_embedder().embed([turn.said for turn in self._turns])
        return len(pickle.dumps(self._turns)) + vectors.nbytes


class Fusion:
    """BM25 and the embedder, joined by reciprocal rank fusion: sum of 1 / (60 + rank)."""

    def __init__(self) -> None:
        self._parts = (Bm25(), Embedder())

    def tell(self, turn: Turn) -> None:
        """As `Contender.tell`."""
        for part in self._parts:
            part.tell(turn)

    def ask(self, question: str, k: int) -> list[str]:
        """As `Contender.ask`."""
        scores: dict[str, float] = {}
        for part in self._parts:
            for rank, turn in enumerate(part.ask(question, _DEPTH), 1):
                scores[turn] = scores.get(turn, 0.0) + 1 / (_FUSION + rank)
        return sorted(scores, key=lambda turn: -scores[turn])[:k]

    def num_bytes(self) -> int:
        """As `Contender.num_bytes`."""
        return sum(part.num_bytes() for part in self._parts)


CONTENDERS: dict[str, Callable[[], Contender]] = {
    "ours": Ours, "bm25": Bm25, "embedder": Embedder, "fusion": Fusion, "mem0": Mem0, "langmem": LangMem
}  # fmt: skip
