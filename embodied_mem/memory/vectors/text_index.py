"""Finds texts by similarity while they change: one small class between the memories and their embedder.

    texts = TextIndex(LexicalEmbedder())
    texts.add(7, "mugs are found on countertops")
    texts.search("where is a mug", k=3)       # [(7, 0.4)]

Embedding a query costs more than comparing it with some hundred texts, so vectors of the last queries are kept, for all
memories that get the same `QueryEmbedder`. Vectors of a lexical embedder are mostly zeros: only the dimensions that the
query has are read, which is exact and, for a short query, some ten times less work. One thread compares: BLAS uses
several for this, which wait for each other for milliseconds where cores are shared.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import _native
from ...errors import InvalidInputError
from ...forks import forking_lock
from ..arguments import shown
from .kept_vectors import KeptVectors
from .lexical import Embedder, LexicalEmbedder
from .static import default_embedder

BUILT_IN = ("lexical-", "wordllama-")
"""How the names of the embedders of this package begin."""
_MAX_QUERIES = 64
_LANES = 16
"""Columns that lie together in memory, dimension by dimension: a search reads them from the first to the last byte."""
_FEW = 32  # fewer new texts are embedded one by one: a compiled model is compiled anew for each size of batch


class QueryEmbedder:
    """An embedder that keeps the vectors of the last queries. Any thread may ask.

    Args:
        embedder: any.
        chosen: whether somebody chose it; False for the default.
    """

    def __init__(self, embedder: Embedder, chosen: bool = True):
        self.name, self._chosen = embedder.name, chosen
        self._embedder = embedder
        self._lock = forking_lock()
        self._queries: dict[str, np.ndarray] = {}
        self._kept: KeptVectors | None = None

    @contextlib.contextmanager
    def keeping(self, folder: Any, *, read_only: bool) -> Iterator[None]:
        """Inside, texts are embedded in parts and their vectors kept in a file of a folder, and taken from there.

        The embedders of this package need none: they are faster than the disk.
        """
        if self.name.startswith(BUILT_IN):
            yield
            return
        with KeptVectors(folder, self.name, read_only) as self._kept:
            try:
                yield
            finally:
                self._kept = None

    @classmethod
    def of(cls, embedder: Embedder | None) -> QueryEmbedder:
        """The embedder itself if it is one already; the default one for None. Raises InvalidInputError for another."""
        if embedder is None:
            return cls(default_embedder(), chosen=False)
        if not isinstance(getattr(embedder, "name", None), str) or not callable(getattr(embedder, "embed", None)):
            raise InvalidInputError(f"embedder: expected one with a name and embed(texts), got {shown(embedder)}")
        return embedder if isinstance(embedder, QueryEmbedder) else cls(embedder)

    def check(self, state: Mapping[str, Any]) -> None:
        """Raise InvalidInputError for a state that was written with a model, if no embedder was chosen now.

        A state holds texts and no vectors, so any embedder can read it. Another than the one it was written with embeds
        its texts in memory; the file is as it was until the next snapshot.
        """
        if not self._chosen and state["embedder"] != self.name and not str(state["embedder"]).startswith(BUILT_IN):
            raise InvalidInputError(
                f"state: expected an embedder of this package, got {state['embedder']!r}; pass that embedder, or any "
                "other, which embeds the texts anew"
            )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """As the embedder does."""
        return self._embedder.embed(texts) if self._kept is None else self._kept.embed(self._embedder.embed, texts)

    def query(self, text: str) -> np.ndarray:
        """The vector of a query."""
        found = self._queries.get(text)
        if found is None:
            found = np.asarray(self._embedder.embed([text])[0], np.float32)
            if not np.count_nonzero(found):
                return found  # of an embedder that failed, perhaps: it is asked again
            with self._lock:
                if len(self._queries) >= _MAX_QUERIES:
                    self._queries.pop(next(iter(self._queries)))
                self._queries[text] = found
        return found

    def clear(self) -> None:
        """Drop the vectors of past queries, whose texts are their keys."""
        with self._lock:
            self._queries.clear()


class TextIndex:
    """Cosine similarity of a query to texts under ids; ties go to the lower id. Equal texts are compared once."""

    def __init__(self, embedder: Embedder):
        self.embedder = QueryEmbedder.of(embedder)
        self._shared = False  # whether a fork has the same array
        self._texts: dict[int, str] = {}
        self._columns: dict[str, int] = {}
        self._in_columns: list[str] = []
        self._ids: list[list[int]] = []  # by column: who has the text, ascending
        self._blocks = np.zeros((0, 0, _LANES), np.float32)  # [column // _LANES, dimension, column % _LANES]

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, number: int, text: str) -> None:
        """Put a text under an id, in place of the one that had it."""
        self.add_many([(number, text)])

    def add_many(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put texts under ids; those that are new are embedded in one call."""
        pairs = dict(texts)
        if new := [text for text in dict.fromkeys(pairs.values()) if text not in self._columns]:
            self._append(new)
        changed = [number for number, text in pairs.items() if self._texts.get(number) != text]
        for number in changed:  # before the old ones are removed: what one loses another may get
            bisect.insort(self._ids[self._columns[pairs[number]]], number)
        for number in changed:
            if number in self._texts:
                self.remove(number)
            self._texts[number] = pairs[number]

    def _append(self, texts: Sequence[str]) -> None:
        """Make columns for texts that have none."""
        vectors = self.embedder.embed(texts)
        first, needed = len(self._ids), len(self._ids) + len(texts)
        num_blocks, dimension, _ = self._blocks.shape
        if not vectors.shape[1] and dimension:
            vectors = np.zeros((len(texts), dimension), np.float32)
        if needed > num_blocks * _LANES or vectors.shape[1] != dimension:
            grown = np.zeros((max(-(-needed // _LANES), 2 * num_blocks), vectors.shape[1], _LANES), np.float32)
            if dimension:  # else the embedder had not answered yet
                grown[:num_blocks] = self._blocks
            self._blocks, self._shared = grown, False
        self._unshare()
        for column, vector in enumerate(vectors, first):
            self._column(column)[:] = vector
        self._columns.update(zip(texts, range(first, needed)))
        self._in_columns += texts
        self._ids.extend([] for _ in texts)

    def remove(self, number: int) -> None:
        """Remove a text; unless another id has it, nothing of it stays in memory."""
        text = self._texts.pop(number)
        column, last = self._columns[text], len(self._ids) - 1
        self._ids[column].remove(number)
        if self._ids[column]:
            return
        self._unshare()
        del self._columns[text]
        moved, ids = self._in_columns.pop(), self._ids.pop()
        if column != last:  # the last one moves into its place
            self._columns[moved], self._in_columns[column], self._ids[column] = column, moved, ids
            self._column(column)[:] = self._column(last)
        self._column(last)[:] = 0

    def _column(self, number: int) -> np.ndarray:
        return self._blocks[number // _LANES, :, number % _LANES]

    def fork(self) -> TextIndex:
        """An independent copy; vectors are shared until one side writes."""
        other = TextIndex(self.embedder)
        other._texts, other._columns, other._blocks = dict(self._texts), dict(self._columns), self._blocks
        other._in_columns = list(self._in_columns)
        other._ids = [list(ids) for ids in self._ids]
        self._shared = other._shared = True
        return other

    def _unshare(self) -> None:
        if self._shared:
            self._blocks, self._shared = self._blocks.copy(), False

    def search(self, query: str, k: int, above: float = -math.inf) -> list[tuple[int, float]]:
        """The `k` best (id, cosine), best first, of those with a cosine above a limit."""
        count = len(self._ids)
        if not count or k < 1:
            return []
        vector = self.embedder.query(query)
        if len(vector) != self._blocks.shape[1]:  # the embedder has not answered for one side
            return []
        columns, scores, worst, ties = _native.vectors.nearest_columns(self._blocks, count, vector, k, above)
        found: list[tuple[float, int]] = []  # (minus the score, id)
        for column, score in zip(columns, scores):
            if len(found) >= k and -score > found[-1][0]:
                break
            found += [(-score, number) for number in self._ids[column][:k]]
        found = sorted(found)[:k]
        if ties and (missing := k - len(found)):
            tied = [self._ids[column][:missing] for column in ties]
            found += [(-worst, number) for number in sorted(itertools.chain(*tied))[:missing]]
        return [(number, -score) for score, number in found]


class CachedEmbedder:
    """An embedder that embeds each text once and keeps all vectors; not for texts that users may want forgotten.

    Attributes:
        name: the embedder's.
        is_model: whether it is a trained model rather than the lexical embedder.
    """

    def __init__(self, embedder: Embedder):
        self.name = embedder.name
        self.is_model = not isinstance(embedder, LexicalEmbedder)
        self._embedder = embedder
        self._kept: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, d], one row per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new or not texts:
            groups = [[text] for text in new] if self.is_model and 1 < len(new) < _FEW else [new]
            vectors = np.concatenate([self._embedder.embed(group) for group in groups])
            self._kept.update(zip(new, vectors))
        return np.stack([self._kept[text] for text in texts]) if texts else vectors
