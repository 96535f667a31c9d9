"""Retrieval of traces for an instruction: similarity, query expansion, a reranker, and both kinds of evidence.

    memory = TraceMemory(traces, embedder)
    memory.retrieve("Could you set up my late-night study materials?", scene_id, k=3, strategy="hybrid")

An instruction is cut into clauses that can be asked for alone ("... Then, could you ..."): each may need a memory of
its own. For each clause a memory gets a probability, softmax over the house's memories of a weighted sum of `FEATURES`;
memories are ranked by the sum of their probabilities over the clauses. So a clause that is sure of its memory takes
one place, and one that is not takes several. With a chat model (`ChatRetrieval`), it reranks and expands queries, as in
the paper; else rules do.

Source: MEMENTO C.1 (similarity within the scene), E.3 (strategies). The
weights are fitted on 1,193 questions made from generated sentences for 620 of PARTNR's training episodes, in 37 houses
that are none of the benchmark's at hand (`experiments/package_data/fit_retrieval.py`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.embedders import CachedEmbedder, Embedder, LexicalEmbedder
from embodied_mem.worlds.memento.traces.trace import Trace, drawn

from ..words import lexicon_of
from .chat_retrieval import ChatRetrieval

FEATURES = (
    "cosine of clause and memory",
    "cosine of clause and the nearest sentence",
    "cosine of clause and what is said of the user",
    "share of the clause's words that the memory has",
    "share of the clause's words that what is said of the user has",
    "share of the words said of the user that the clause has",
    "same kind of knowledge",
)
"""Words count by their inverse document frequency among the memories of the house."""

WEIGHTS: dict[bool, tuple[float, ...]] = {
    True: (3.53, 6.24, 2.37, 5.79, -2.11, 2.29, 0.90),
    False: (2.41, 4.36, 0.46, 6.48, -0.81, 2.14, 0.85),
}
"""Weights for an embedder that is a model (True) or the lexical one (False), in the order of `FEATURES`."""

STRATEGIES = ("similarity", "query_expansion", "reranker", "hybrid")

POOL = 10
"""Candidates that the reranker sees, as in the paper."""

_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_CLAUSE = re.compile(r"(?:\A|\s)(?:then|after that|additionally|also|finally|next)\s*,\s*", re.IGNORECASE)
_GOES_ON = re.compile(
    r"\A(?:please\s+|and\s+|then,?\s+|(?:could|can) you\s+)*(?:place|put|move|keep|arrange|placing|leave)\s+"
    r"(?:them|it|both|these|those|everything)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"\A(?:(?:please|kindly|then|also|and|first|now|additionally|after that|hey|hi)\b,?\s*"
    r"|(?:could|can|would|will) (?:you|we)\s+|help me(?: to)?\s+|i(?:'d| would) like you to\s+)+",
    re.IGNORECASE,
)
_OF_THE_USER = re.compile(
    r"\b(?:I|I'm|I've|I'd|my|mine|me|our|we|user'?s?|favou?rite|gift(?:ed)?|souvenir|heirloom)\b", re.IGNORECASE
)
_HABIT = re.compile(
    r"\b(?:like|prefer|usual(?:ly)?|always|often|typically|normally|enjoy|love|want|every|routine|habit|tend)\b",
    re.IGNORECASE,
)
_DIRECTED = re.compile(r"\b(?:from|to|on|onto|in|into|next to|beside)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")
_STOP = frozenset(lexicon_of(__package__)["light words of retrieval"].split())
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")


def stem(word: str) -> str:
    """Return the word without its ending.

    It is crude: the same for all forms of most words.
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def words_of(text: str) -> Counter[str]:
    """Stems of the words that mean something, with counts."""
    return Counter(stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text; none for a blank one."""
    return [sentence for part in _SENTENCE.split(text) if (sentence := part.strip())]


def clauses_of(instruction: str) -> list[str]:
    """Return an instruction's requests, one text per clause that stands alone.

    There is at least one. A sentence that goes on about the things of the one before ("Put them on the shelf") stays
    with it; one without a word that means something ("Place them next to each other") is left out.
    """
    clauses: list[str] = []
    for sentence in sentences_of(instruction):
        for part in _CLAUSE.split(sentence):
            part = part.strip(" ,")
            if not words_of(part):
                continue
            if clauses and _GOES_ON.search(part):
                clauses[-1] += f" {part}"
            else:
                clauses.append(part)
    return clauses or [instruction]


def said_of_the_user(instruction: str) -> str:
    """Return the sentences that tell of the user, else the last one."""
    told = [s for s in sentences_of(instruction) if _OF_THE_USER.search(_POLITE.sub("", s))]
    return " ".join(told) or (sentences_of(instruction) or [instruction])[-1]


def tells_a_habit(instruction: str) -> bool:
    """Return whether an acquisition instruction tells of a pattern, not an object."""
    return bool(_HABIT.search(said_of_the_user(instruction)) and re.search(r"\bI\b", said_of_the_user(instruction)))


def asks_for_a_habit(clause: str) -> bool:
    """Return whether a clause asks for a pattern.

    It does if it says "as I like", or names neither places nor several things.
    """
    if re.search(r"\bas (?:I|usual)|\busual(?:ly)?\b|\broutine\b|\bI (?:like|prefer)\b", clause, re.IGNORECASE):
        return True
    return len(clause.split()) <= 12 and len(_DIRECTED.findall(clause)) <= 1


def expansions_of(clause: str) -> list[str]:
    """Rewrite a clause by rule as a memory may say it.

    The rules drop politeness and make statements.
    """
    bare = _POLITE.sub("", clause.strip()).rstrip("?.! ")
    rest = re.sub(
        r"\A(?:set up|set|arrange|organi[sz]e|prepare|decorate|tidy up|make|get|create|move|place|put|bring)\s+",
        "",
        bare,
    )
    rest = re.sub(
        r"(?<!\s)\s+(?:as I (?:usually )?(?:like|do|prefer)(?: it)?|for me|the way I like(?: it)?)\Z", "", rest
    )
    said = re.sub(r"\b(?:my|the)\s+", "", rest, count=1)
    return [clause, bare, f"I like to keep {said}.", f"I usually have these for my {said}.", f"This is my {said}."]


class _House:
    """The memories of one house, ready to be compared."""

    def __init__(self, traces: Sequence[Trace], embedder: Embedder):
        self.traces = list(traces)
        texts = [trace.instruction for trace in traces]
        told = [said_of_the_user(text) for text in texts]
        sentences = [sentences_of(text) or [text] for text in texts]
        flat = [sentence for group in sentences for sentence in group]
        vectors = embedder.embed([*texts, *told, *flat])
        count = len(texts)
        self.whole, self.told, self.sentences = vectors[:count], vectors[count : 2 * count], vectors[2 * count :]
        self.starts = np.cumsum([0, *(len(group) for group in sentences)])[:-1]
        self.words = [words_of(text) for text in texts]
        self.told_words = [words_of(text) for text in told]
        self.habit = np.array([tells_a_habit(text) for text in texts])
        counts = Counter(word for words in self.words for word in words)
        self._idf = {word: math.log(1 + count / n) for word, n in counts.items()}
        self._rare = math.log(1 + 2 * count)

    def idf(self, word: str) -> float:
        """Inverse document frequency; a word that no memory has weighs most."""
        return self._idf.get(word, self._rare)

    def share(self, of: Mapping[str, int], among: Mapping[str, int]) -> float:
        """Return the idf-weighted share of words `of` in `among`; 0 for none."""
        total = sum(map(self.idf, of))
        return sum(self.idf(word) for word in of if word in among) / total if total else 0.0

    def features(self, clause: str, vector: np.ndarray) -> np.ndarray:
        """float64[memories, len(FEATURES)] of one clause."""
        words = words_of(clause)
        habit = asks_for_a_habit(clause)
        return np.stack(
            [
                self.whole @ vector,
                np.maximum.reduceat(self.sentences @ vector, self.starts),
                self.told @ vector,
                np.array([self.share(words, other) for other in self.words]),
                np.array([self.share(words, other) for other in self.told_words]),
                np.array([self.share(other, words) for other in self.told_words]),
                (self.habit == habit).astype(float),
            ],
            axis=1,
        )


def _ranked(scores: np.ndarray, instruction: str, traces: Sequence[Trace]) -> np.ndarray:
    """Numbers of the traces, the highest score first; among equals any (`drawn`)."""
    return np.lexsort((np.array([drawn(instruction, trace.instruction) for trace in traces]), -scores))


class TraceMemory:
    """Episodic memory: traces by id, found by instruction within a house."""

    def __init__(
        self,
        traces: Iterable[Trace],
        embedder: Embedder | None = None,
        weights: Sequence[float] | None = None,
        model: ChatRetrieval | None = None,
    ):
        """Keep traces with different episode ids, and make them searchable.

        Without an embedder it is the lexical one; without weights of `FEATURES` they are its kind's of `WEIGHTS`.
        A model reranks and expands queries.
        """
        self._model = model
        embedder = LexicalEmbedder() if embedder is None else embedder
        self._embedder = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
        self.weights = np.array(WEIGHTS[self._embedder.is_model] if weights is None else weights, float)
        if self.weights.shape != (len(FEATURES),):
            raise InvalidInputError(f"weights: expected {len(FEATURES)}, got shape {self.weights.shape}")
        self._traces: dict[str, Trace] = {}
        by_scene: dict[str, list[Trace]] = {}
        for trace in traces:
            if trace.episode_id in self._traces:
                raise InvalidInputError(f"traces: expected different episode ids, got {trace.episode_id!r} twice")
            self._traces[trace.episode_id] = trace
            by_scene.setdefault(trace.scene_id, []).append(trace)
        self._houses = {scene: _House(group, self._embedder) for scene, group in by_scene.items()}

    def __len__(self) -> int:
        return len(self._traces)

    def __getitem__(self, episode_id: str) -> Trace:
        if episode_id not in self._traces:
            raise InvalidInputError(f"memory: expected the id of one of {len(self)} episodes, got {episode_id!r}")
        return self._traces[episode_id]

    def retrieve(self, instruction: str, scene_id: str, k: int, strategy: str = "hybrid") -> list[Trace]:
        """Return a house's `k` traces that an instruction likeliest needs, best first.

        Raises:
            InvalidInputError: the strategy is unknown, or k is less than 1.
        """
        if k < 1:
            raise InvalidInputError(f"k: expected >= 1, got {k}")
        house = self._houses.get(scene_id)
        if house is None:
            return []
        order = _ranked(self.scores(instruction, scene_id, strategy), instruction, house.traces)
        return [house.traces[i] for i in order[:k]]

    def scores(self, instruction: str, scene_id: str, strategy: str = "hybrid") -> np.ndarray:
        """Score memories of the house by how likely they are needed.

        The result is float64[memories of the house], in the order of the traces given; higher is likelier.
        """
        house = self._houses[scene_id]
        if strategy == "similarity":
            return np.asarray(house.whole @ self._embedder.embed([instruction])[0])
        if strategy == "query_expansion":
            texts = list(self._model.sentences(instruction)) if self._model else []
            texts = texts or [text for clause in clauses_of(instruction) for text in expansions_of(clause)]
            vectors = self._embedder.embed([instruction, *texts])
            return np.asarray(house.whole @ vectors[0] + (house.whole @ vectors[1:].T).mean(1))
        if strategy == "hybrid":
            return np.asarray(self.probabilities(instruction, scene_id).sum(0))
        if strategy == "reranker":
            first = house.whole @ self._embedder.embed([instruction])[0]
            pool = _ranked(first, instruction, house.traces)[:POOL]
            scores = np.full(len(first), -np.inf)
            if self._model:  # among equals the more similar one
                texts = [house.traces[number].instruction for number in pool]
                scores[pool] = np.array(self._model.scores(instruction, texts)) + first[pool] / 100
            else:
                scores[pool] = self.probabilities(instruction, scene_id).sum(0)[pool]
            return scores
        raise InvalidInputError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {strategy!r}")

    def probabilities(self, instruction: str, scene_id: str) -> np.ndarray:
        """Estimate the memories that each clause needs.

        The result is float64[clauses, memories of the house]; rows sum to 1.
        """
        house = self._houses[scene_id]
        clauses = clauses_of(instruction)
        vectors = self._embedder.embed(clauses)
        logits = np.stack([house.features(c, v) @ self.weights for c, v in zip(clauses, vectors)])
        odds = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(odds / odds.sum(1, keepdims=True))

    def features(self, clause: str, scene_id: str) -> np.ndarray:
        """float64[memories of the house, len(FEATURES)] of one clause, for fitting the weights."""
        return self._houses[scene_id].features(clause, self._embedder.embed([clause])[0])
