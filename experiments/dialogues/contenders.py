"""Contenders on dialogues: each is told one turn by turn and names turns for a question, best first.

contender = Ours()
contender.tell(turn)
contender.ask("When did Ann move?", 10)          # ids of turns

Memories of other packages raise MissingDependencyError where these are not installed, `minilm` DataNotFoundError
without its weights. Both memories get the embedder that `embedder` has, so that the memories are compared, and keep all
in this process: no server, no network, no model. mem0's search by words needs a model that it would download; without
it, it ranks by vectors. LangGraph's store embeds what it keeps as JSON, which is its default.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import importlib.util
import json
import logging
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from embodied_mem.errors import MissingDependencyError
from embodied_mem.memory import LifelongMemory, Record
from embodied_mem.memory.embedders import Embedder, default_embedder
from embodied_mem.memory.search import TextIndex, WordIndex
from embodied_mem.memory.words import content_words

from .dialogues import Turn

_DEPTH = 100
_FUSION = 60
"""Constant of reciprocal rank fusion: Cormack et al. (2009)."""


class Contender(abc.ABC):
    """A memory under test."""

    @abc.abstractmethod
    def tell(self, turn: Turn) -> None:
        """Take note of a turn."""

    @abc.abstractmethod
    def ask(self, question: str, k: int) -> list[str]:
        """Return the ids of the turns that fit best, at most `k`."""

    @abc.abstractmethod
    def num_bytes(self) -> int:
        """Count the bytes of all that is stored.

        Of a text also its vector of float32 counts.
        """


class Ours(Contender):
    """`LifelongMemory` as a user has it: rules, all modules, `tell` and `retrieve`; with an encoder if one is given."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.memory = LifelongMemory(embedder=embedder)
        self._turns: dict[str, list[str]] = {}  # note -> turns; the same words said again are one note

    def tell(self, turn: Turn) -> None:
        receipt = self.memory.tell(turn.text, speaker=turn.speaker, when=turn.when)
        for written in (*receipt.stored, *receipt.merged):
            if written.module == "notes":
                self._turns.setdefault(written.id, []).append(turn.id)

    def ask(self, question: str, k: int) -> list[str]:
        turns: dict[str, None] = {}
        for item in self.memory.retrieve(question, k=k).items:
            turns |= dict.fromkeys(self.turns_of(item))
        return list(turns)[:k]

    def turns_of(self, item: Record) -> list[str]:
        """List the turns that a record comes from."""
        notes = [item.id] if item.module == "notes" else [f"notes:{note}" for note in item.data.get("notes", ())]
        return [turn for note in notes for turn in self._turns.get(note, ())]

    def num_bytes(self) -> int:
        return len(self.memory.state())

    def kept(self) -> int:
        """Return how many turns are kept, word by word."""
        return sum(len(entry.sources) for entry in self.memory.get_all("notes"))


class Bm25(Contender):
    """BM25 alone, over the same stems that the memory uses, of speaker and text."""

    def __init__(self) -> None:
        self._index = WordIndex()
        self._turns: list[Turn] = []

    def tell(self, turn: Turn) -> None:
        self._index.add(len(self._turns), content_words(turn.said))
        self._turns.append(turn)

    def ask(self, question: str, k: int) -> list[str]:
        scores = self._index.search(content_words(question))
        return [self._turns[n].id for n in sorted(scores, key=lambda n: (-scores[n], n))[:k]]

    def num_bytes(self) -> int:
        return len(pickle.dumps((self._index, self._turns)))


class Cosine(Contender):
    """An embedder alone, the default one if none is given: the cosine of question and turn."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or default_embedder()
        self._index = TextIndex(self._embedder)
        self._turns: list[Turn] = []

    def tell(self, turn: Turn) -> None:
        self._index.add(len(self._turns), turn.said)
        self._turns.append(turn)

    def ask(self, question: str, k: int) -> list[str]:
        return [self._turns[number].id for number, _ in self._index.search(question, k)]

    def num_bytes(self) -> int:
        return len(pickle.dumps(self._turns)) + 4 * self._embedder.embed([""]).shape[1] * len(self._turns)


@functools.cache
def minilm() -> Embedder:
    """Load MiniLM from its package."""
    from embodied_mem.models.sentence_encoders import SentenceEncoder

    return SentenceEncoder.load()


class Fusion(Contender):
    """BM25 and the embedder, joined by reciprocal rank fusion: sum of 1 / (60 + rank)."""

    def __init__(self) -> None:
        self._parts = (Bm25(), Cosine())

    def tell(self, turn: Turn) -> None:
        for part in self._parts:
            part.tell(turn)

    def ask(self, question: str, k: int) -> list[str]:
        scores: dict[str, float] = {}
        for part in self._parts:
            for rank, turn in enumerate(part.ask(question, _DEPTH), 1):
                scores[turn] = scores.get(turn, 0.0) + 1 / (_FUSION + rank)
        return sorted(scores, key=lambda turn: -scores[turn])[:k]

    def num_bytes(self) -> int:
        return sum(part.num_bytes() for part in self._parts)


_USER = "user"


def open_mem0(folder: str, provider: str, store: Mapping[str, Any], embedder: Embedder) -> Any:
    """Open mem0 without a chat model: `add(infer=False)` and `search` work.

    Args:
        folder: for its own settings, which would be in the user's home.
        provider: of `store`, the settings of vectors.
        embedder: of the texts.
    """
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder}
    with _needed("mem0ai"):
        from mem0 import Memory
        from mem0.embeddings.base import EmbeddingBase
        from mem0.memory import notices
        from mem0.utils import spacy_models
    notices._fetch_remote_config = lambda: None
    spacy_models._ensure_model_available = _refuse
    logging.getLogger("mem0").setLevel(logging.ERROR)

    class Ours(EmbeddingBase):  # type: ignore[misc]
        def embed(self, text: str, memory_action: str | None = None) -> list[float]:
            vector: list[float] = embedder.embed([text])[0].tolist()
            return vector

    placeholder = {"provider": "openai", "config": {"api_key": "none"}}  # made and never called
    vectors = {**store, "embedding_model_dims": int(embedder.embed([""]).shape[1])}
    memory: Any = Memory.from_config(
        {
            "vector_store": {"provider": provider, "config": vectors},
            "embedder": placeholder,
            "llm": placeholder,
            "history_db_path": ":memory:",
        }
    )
    memory.embedding_model = Ours()
    return memory


class Mem0(Contender):
    """mem0's `add` with `infer=False`, and `search`, over Qdrant in this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="locomo-mem0-")
        with _needed("mem0ai"):
            from qdrant_client import QdrantClient
        embedder = default_embedder()
        store = {"client": QdrantClient(":memory:"), "collection_name": "locomo"}
        self._memory = open_mem0(self._folder.name, "qdrant", store, embedder)
        self._dimension = int(embedder.embed([""]).shape[1])
        self._turns: dict[str, Turn] = {}

    def tell(self, turn: Turn) -> None:
        (added,) = self._memory.add(turn.said, user_id=_USER, infer=False, metadata={"when": turn.when})["results"]
        self._turns[added["id"]] = turn

    def ask(self, question: str, k: int) -> list[str]:
        found = self._memory.search(question, filters={"user_id": _USER}, top_k=k, threshold=0.0)["results"]
        return [self._turns[item["id"]].id for item in found]

    def num_bytes(self) -> int:
        kept = self._memory.get_all(filters={"user_id": _USER}, top_k=len(self._turns))["results"]
        return len(pickle.dumps(kept)) + 4 * self._dimension * len(kept)


class LangMem(Contender):
    """The tools that langmem gives an agent, over LangGraph's store in this process."""

    def __init__(self) -> None:
        with _needed("langmem"):
            from langgraph.store.memory import InMemoryStore
            from langmem import create_manage_memory_tool, create_search_memory_tool
        embedder = default_embedder()
        self._dimension = int(embedder.embed([""]).shape[1])
        index = {"dims": self._dimension, "embed": lambda texts: embedder.embed(texts).tolist()}
        self._store = InMemoryStore(index=index)
        self._write: Any = create_manage_memory_tool((_USER,), store=self._store)
        self._search: Any = create_search_memory_tool((_USER,), store=self._store)
        self._turns: dict[str, Turn] = {}

    def tell(self, turn: Turn) -> None:
        said = self._write.invoke({"content": turn.said, "action": "create"})
        self._turns[said.rpartition(" ")[2]] = turn  # "created memory ID"

    def ask(self, question: str, k: int) -> list[str]:
        return [
            self._turns[item["key"]].id for item in json.loads(self._search.invoke({"query": question, "limit": k}))
        ]

    def num_bytes(self) -> int:
        kept = self._store.search((_USER,), limit=len(self._turns))
        return len(pickle.dumps([item.dict() for item in kept])) + 4 * self._dimension * len(kept)


def _refuse() -> None:
    """Stand in for a download.

    spaCy's model is used where it is installed.
    """
    if importlib.util.find_spec("en_core_web_sm") is None:
        raise RuntimeError("en_core_web_sm is not installed, and nothing is downloaded")


@contextlib.contextmanager
def _needed(package: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f'this needs the package {package}: pip install -e ".[baselines]" ({error})'
        ) from error


CONTENDERS: dict[str, Callable[[], Contender]] = {
    "ours": Ours, "ours_minilm": lambda: Ours(minilm()), "bm25": Bm25, "embedder": Cosine, "fusion": Fusion,
    "minilm": lambda: Cosine(minilm()), "mem0": Mem0, "langmem": LangMem,
}  # fmt: skip
