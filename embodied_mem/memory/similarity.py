"""Texts found by similarity, changed and asked in turn: one small class between the memories and a vector index.

    texts = Similarity(LexicalEmbedder())
    texts.add(7, "mugs are found on countertops")
    texts.search("where is a mug", k=3)       # [(7, 0.4)]

Embedding a query costs more than comparing it with some hundred texts, so vectors of the last queries are kept, for all
memories that get the same `QueryEmbedder`. Vectors of a lexical embedder are mostly zeros: only the dimensions that the
query has are read, which is exact and, for a short query, some ten times less work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np

from .lexical import Embedder

_MAX_QUERIES = 64
_MANY, _GROUPS = 1024, 64


class QueryEmbedder:
    """An embedder that keeps the vectors of the last queries. Any thread may ask."""

    def __init__(self, embedder: Embedder):
        self.name = embedder.name
        self._embedder = embedder
        self._lock = threading.Lock()
        self._queries: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @classmethod
    def of(cls, embedder: Embedder) -> QueryEmbedder:
        """The embedder itself if it is one already."""
        return embedder if isinstance(embedder, QueryEmbedder) else cls(embedder)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """As the embedder does."""
        return self._embedder.embed(texts)

    def query(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The vector of a query, and the dimensions in which it is not zero."""
        found = self._queries.get(text)
        if found is None:
            vector = self._embedder.embed([text])[0]
            found = vector, np.flatnonzero(vector)
            with self._lock:
                if len(self._queries) >= _MAX_QUERIES:
                    self._queries.pop(next(iter(self._queries)))
                self._queries[text] = found
        return found

    def clear(self) -> None:
        """Drop the vectors of past queries, whose texts are their keys."""
        with self._lock:
            self._queries.clear()


class Similarity:
    """Cosine similarity of a query to texts under ids; ties go to the lower id."""

    def __init__(self, embedder: Embedder):
        self.embedder = QueryEmbedder.of(embedder)
        self._shared = False  # whether a fork has the same arrays
        self._rows: dict[int, int] = {}
        self._ids = np.zeros(0, np.int64)
        self._vectors = np.zeros((0, 0), np.float32)  # [dimension, text]

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, number: int, text: str) -> None:
        """Put a text under an id, in place of the one that had it."""
        self.add_many([(number, text)])

    def add_many(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put texts under ids; they are embedded in one call."""
        pairs = list(dict(texts).items())
        if not pairs:
            return
        vectors = self.embedder.embed([text for _, text in pairs])
        needed = len(self._rows) + len(pairs)
        if needed > len(self._ids):
            grown = np.zeros((vectors.shape[1], max(needed, 2 * len(self._ids), 16)), np.float32)
            ids = np.zeros(grown.shape[1], np.int64)
            if self._rows:
                grown[:, : len(self._rows)] = self._vectors[:, : len(self._rows)]
                ids[: len(self._rows)] = self._ids[: len(self._rows)]
            self._vectors, self._ids, self._shared = grown, ids, False
        self._unshare()
        for (number, _), vector in zip(pairs, vectors):
            column = self._rows.setdefault(number, len(self._rows))
            self._vectors[:, column], self._ids[column] = vector, number

    def remove(self, number: int) -> None:
        """Take a text away; the last one moves into its place, and nothing of it stays in memory."""
        self._unshare()
        column, last = self._rows.pop(number), len(self._rows)
        if column != last:
            moved = int(self._ids[last])
            self._vectors[:, column], self._ids[column] = self._vectors[:, last], moved
            self._rows[moved] = column
        self._vectors[:, last] = 0

    def fork(self) -> Similarity:
        """An independent copy; the vectors are copied by whoever writes first."""
        other = Similarity(self.embedder)
        other._rows, other._ids, other._vectors = dict(self._rows), self._ids, self._vectors
        self._shared = other._shared = True
        return other

    def _unshare(self) -> None:
        if self._shared:
            self._vectors, self._ids, self._shared = self._vectors.copy(), self._ids.copy(), False

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """The `k` best (id, cosine), best first."""
        count = len(self._rows)
        if not count or k < 1:
            return []
        vector, used = self.embedder.query(query)
        sparse = 2 * len(used) <= len(vector)
        values, rows = (vector[used], self._vectors[used, :count]) if sparse else (vector, self._vectors[:, :count])
        # Not `@`: BLAS uses threads for this, which wait for each other for milliseconds where cores are shared.
        scores = np.einsum("d,dn->n", values, rows)
        ids = self._ids[:count]
        if count >= _MANY and k <= _GROUPS:
            # At least `k` scores are as good as the k-th best of the bests of groups: what is worse need not be sorted.
            bests = scores[: count // _GROUPS * _GROUPS].reshape(-1, _GROUPS).max(axis=0)
            good = (scores >= np.sort(bests)[-k]).nonzero()[0]
            scores, ids, count = scores[good], ids[good], len(good)
        # Sorted, not partitioned: most scores of a lexical embedder are 0, and numpy partitions ties ten times slower.
        worst = np.sort(scores)[max(count - k, 0)]
        above = (scores > worst).nonzero()[0]
        order = above[np.lexsort((ids[above], -scores[above]))]
        tied = np.sort(ids[scores == worst])[: k - len(above)]
        found = list(zip(ids[order].tolist(), scores[order].tolist()))
        return found + [(number, float(worst)) for number in tied.tolist()]
