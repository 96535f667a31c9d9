"""Texts found by similarity, changed and asked in turn: one small class between the memories and a vector index.

    texts = Similarity(LexicalEmbedder())
    texts.add(7, "mugs are found on countertops")
    texts.search("where is a mug", k=3)       # [(7, 0.4)]

Embedding a query costs more than comparing it with some hundred texts, so vectors of the last queries are kept. Vectors
of a lexical embedder are mostly zeros: only the dimensions that the query has are read, which is exact and, for a short
query, some ten times less work.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .lexical import Embedder

_MAX_QUERIES = 64


class Similarity:
    """Cosine similarity of a query to texts under ids; ties go to the lower id."""

    def __init__(self, embedder: Embedder):
        self.embedder = embedder
        self._rows: dict[int, int] = {}
        self._ids = np.zeros(0, np.int64)
        self._vectors = np.zeros((0, 0), np.float32)  # [dimension, text]
        self._queries: dict[str, np.ndarray] = {}

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
            self._vectors, self._ids = grown, ids
        for (number, _), vector in zip(pairs, vectors):
            column = self._rows.setdefault(number, len(self._rows))
            self._vectors[:, column], self._ids[column] = vector, number

    def remove(self, number: int) -> None:
        """Take a text away; the last one moves into its place, and nothing of it stays in memory."""
        column, last = self._rows.pop(number), len(self._rows)
        if column != last:
            moved = int(self._ids[last])
            self._vectors[:, column], self._ids[column] = self._vectors[:, last], moved
            self._rows[moved] = column
        self._vectors[:, last] = 0

    def clear_queries(self) -> None:
        """Drop the vectors of past queries, whose texts are their keys."""
        self._queries.clear()

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """The `k` best (id, cosine), best first."""
        count = len(self._rows)
        if not count or k < 1:
            return []
        vector = self._queries.get(query)
        if vector is None:
            vector = self.embedder.embed([query])[0]
            if len(self._queries) >= _MAX_QUERIES:
                self._queries.pop(next(iter(self._queries)))
            self._queries[query] = vector
        used = np.flatnonzero(vector)
        if 2 * len(used) > len(vector):
            scores = vector @ self._vectors[:, :count]
        else:
            scores = vector[used] @ self._vectors[used, :count]
        best = np.arange(count) if count <= k else np.argpartition(-scores, k - 1)[:k]
        if count > k:  # whatever ties with the worst of them may have a lower id
            best = np.flatnonzero(scores >= scores[best].min())
        order = np.lexsort((self._ids[best], -scores[best]))[:k]
        return [(int(self._ids[i]), float(scores[i])) for i in best[order]]
