"""Vector indexes: any vectors under ids of the caller's, and appearance vectors of nodes.

    index = VectorIndex(384)
    index.add(np.arange(1000), embeddings)                       # int64[N], float32[N, 384]
    ids, scores = index.search(embeddings[:3], k=10)             # int64[3, 10], float32[3, 10]
    index.search(query, k=10, allowed=[4, 8, 15])                # [384] in, [10] out
    index.save("memory/vectors.idx"), VectorIndex.load("memory/vectors.idx")

Results are ordered by score, high first, and equal scores by id. The exact kind answers the same for any number of
threads and any batch. The graph of the HNSW kind depends on the order of insertion and, with more than one
thread, on which thread was faster; so then do its results. Its recall falls a little with vectors that were removed and
not yet compacted, see `docs/vectors.md`, which also has the file format and what was measured.

Any number of threads may search at a time; adding, removing and compacting wait for them and are alone. The native part
works without the GIL.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from .. import _native
from ..errors import DataNotFoundError, InvalidInputError, StorageError
from .arguments import MOST, checked_number, checked_text, shown

AUTO_LIMIT: int = _native.vectors.AUTO_LIMIT
"""Vectors up to which kind "auto" is exact."""

Metric = Literal["cosine", "inner_product"]
Kind = Literal["auto", "exact", "hnsw"]


class VectorIndex:
    """An index of vectors with ids of the caller's.

    Args:
        dim: numbers in a vector.
        metric: "cosine": vectors and queries are scaled to length 1, scores lie in [-1, 1] up to rounding;
            "inner_product": as they are, of length at most 1e18.
        kind: "exact", "hnsw", or "auto": exact until it holds more than `AUTO_LIMIT` vectors, then HNSW for good.
        connectivity: links of a vector in the HNSW graph (twice as many on the lowest level).
        ef_construction: candidates considered for the links of a new vector.
    """

    def __init__(
        self,
        dim: int,
        metric: Metric = "cosine",
        kind: Kind = "auto",
        connectivity: int = 16,
        ef_construction: int = 200,
    ):
        for name, value in (("dim", dim), ("connectivity", connectivity), ("ef_construction", ef_construction)):
            checked_number(name, value, least=0)
        checked_text("metric", metric), checked_text("kind", kind)
        self._native = _native.vectors.VectorIndex(dim, metric, kind, connectivity, ef_construction)

    def add(self, ids: Any, vectors: Any, num_threads: int | None = None) -> None:
        """Add or replace vectors by id; an error changes nothing.

        Args:
            ids: int64[N], different, 0 or more.
            vectors: float32[N, dim]; not copied on the way in if C-contiguous.
            num_threads: None: all cores; 1: an HNSW graph that is the same every time.

        Raises:
            InvalidInputError: for a zero vector (by cosine), a NaN or an infinity, with its row; another shape or type.
        """
        rows = self._rows("vectors", vectors)
        self._native.add(_ids("ids", ids, len(rows)), rows, _threads(num_threads))

    def remove(self, ids: Any, num_threads: int | None = None) -> None:
        """Remove vectors. Raises InvalidInputError for an unknown id; nothing is removed then."""
        self._native.remove(_ids("ids", ids), _threads(num_threads))

    def search(
        self,
        queries: Any,
        k: int,
        ef_search: int | None = None,
        allowed: Any = None,
        num_threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids and scores of the best k for each query.

        Args:
            queries: float32[B, dim] or float32[dim].
            k: how many; all queries together get at most 2^27.
            ef_search: candidates that HNSW keeps while it searches, at least k: more is slower and finds more.
                None: 1.25 times the root of how many vectors there are, at least 64 and 2 k. The exact kind ignores it.
            allowed: ids that an answer may hold (unknown ones are ignored), or bool[len(index)] in the order of `ids`.
            num_threads: None: as many cores as the work is worth.

        Returns:
            int64[B, k] filled up with -1, float32[B, k] filled up with -inf; without B for a single query.

        Raises:
            InvalidInputError: an argument of another type, shape or range, a query without a direction.
        """
        checked_number("k", k, least=1)
        if ef_search is not None:
            checked_number("ef_search", ef_search, least=1)
        queries = _array("queries", queries)
        single = queries.ndim == 1
        rows = self._rows("queries", queries[None] if single else queries)
        only = None if allowed is None else self._allowed(allowed)
        found, scores = self._native.search(rows, k, ef_search or 0, only, _threads(num_threads))
        return (found[0], scores[0]) if single else (found, scores)

    @property
    def ids(self) -> np.ndarray:
        """int64[N], ascending."""
        return np.asarray(self._native.ids())

    def vector(self, id: int) -> np.ndarray:
        """Return float32[dim] of an id, of length 1 by cosine."""
        checked_number("id", id, least=0)
        return np.asarray(self._native.vector(id))

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, id: int) -> bool:
        whole = isinstance(id, int | np.integer) and not isinstance(id, bool)
        return whole and 0 <= id <= MOST and id in self._native

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self._native.dim)

    @property
    def metric(self) -> str:
        """The metric: "cosine" or "inner_product"."""
        return str(self._native.metric)

    @property
    def kind(self) -> str:
        """The present kind: "exact" or "hnsw"."""
        return str(self._native.kind)

    @property
    def num_removed(self) -> int:
        """Removed vectors still in an HNSW graph, to walk over; in no answer or file."""
        return int(self._native.num_removed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, whole or not at all.

        It is compacted first: what was removed is in no byte of the file.

        Raises:
            StorageError: the file cannot be written; the one that was there is as it was.
            InvalidInputError: `path` is no path.
        """
        self._native.save(_path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VectorIndex:
        """Load an index that answers as the saved one did.

        Raises:
            DataNotFoundError: there is no such file.
            StorageError: it cannot be read, is not whole, damaged, of another version, or no vector index.
            InvalidInputError: `path` is no path.
        """
        name = _path(path)
        expected = f"{os.fspath(path)!r}: expected a vector index written by VectorIndex.save"
        if not os.path.exists(name):
            raise DataNotFoundError(f"{expected}, there is no such file")
        if not os.path.isfile(name):
            raise StorageError(f"{expected}, got a folder or a device")
        index = cls.__new__(cls)
        index._native = _native.vectors.VectorIndex.load(name)
        return index

    def __repr__(self) -> str:
        return f"VectorIndex(dim={self.dim}, metric={self.metric!r}, kind={self.kind!r}, {len(self)} vectors)"

    def _rows(self, name: str, rows: Any) -> np.ndarray:
        rows = _array(name, rows)
        if rows.ndim != 2 or rows.shape[1] != self.dim or rows.dtype.kind not in "fiu":
            raise InvalidInputError(f"{name}: expected float32[N, {self.dim}], got {rows.dtype}{list(rows.shape)}")
        with np.errstate(over="ignore"):  # the infinity is refused
            return np.ascontiguousarray(rows, dtype=np.float32)

    def _allowed(self, allowed: Any) -> np.ndarray:
        listed = _array("allowed", allowed)
        if listed.dtype != np.bool_:
            return _ids("allowed", listed)
        ids = self.ids
        if listed.shape != ids.shape:
            raise InvalidInputError(
                f"allowed: expected bool[{len(ids)}], one for each of index.ids, got bool{list(listed.shape)}"
            )
        return np.asarray(ids[listed])


def _ids(name: str, ids: Any, count: int | None = None) -> np.ndarray:
    ids = _array(name, ids)
    if ids.shape == (0,):
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or (ids.dtype == np.uint64 and np.any(ids >= 1 << 63)):
        raise InvalidInputError(f"{name}: expected whole numbers int64[N], got {ids.dtype}{list(ids.shape)}")
    if count is not None and len(ids) != count:
        raise InvalidInputError(f"{name}: expected one for each of {count} vectors, got {len(ids)}")
    return np.ascontiguousarray(ids, dtype=np.int64)


def _array(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:  # rows of different lengths, for example
        raise InvalidInputError(f"{name}: expected an array, got {type(values).__name__}: {error}") from error


def _path(path: str | os.PathLike[str]) -> bytes:
    try:
        name = os.fsencode(path)
    except (TypeError, UnicodeError) as error:
        raise InvalidInputError(f"path: expected a str or a path, got {path!r}") from error
    if not name or b"\0" in name:
        raise InvalidInputError(f"path: expected the name of a file, got {path!r}")
    return name


def _threads(num_threads: int | None) -> int | None:
    if num_threads is not None:
        checked_number("num_threads", num_threads, least=1)
    return num_threads


class Looks:
    """Appearance vectors of nodes, of length 1, in an exact index. The first one sets the width.

        looks = Looks()
        looks.put({7: vector})
        looks.alike(vector, k=8)             # {7: 1.0}: node -> cosine

    A fork shares the index until one side changes it.
    """

    def __init__(self) -> None:
        self._index: VectorIndex | None = None
        self._shared = False

    def __len__(self) -> int:
        return 0 if self._index is None else len(self._index)

    def encoded(self, vectors: Mapping[str, Any]) -> dict[str, str]:
        """Return unit vectors by name, as texts. Raises InvalidInputError."""
        rows = {name: unit_vector(name, vector) for name, vector in vectors.items()}
        self._check_widths(rows)
        return {name: encoded_vector(row) for name, row in rows.items()}

    def decoded(self, texts: Mapping[str, str]) -> dict[str, np.ndarray]:
        """Return what `encoded` was given. Raises InvalidInputError for another width."""
        rows = {name: decoded_vector(text) for name, text in texts.items()}
        self._check_widths(rows)
        return rows

    def _check_widths(self, rows: Mapping[str, np.ndarray]) -> None:
        widths = {len(row) for row in rows.values()}
        if rows and self._index is not None:
            widths.add(self._index.dim)
        if len(widths) > 1:
            raise InvalidInputError(f"vectors: expected all of one width, got {sorted(widths)}")

    def put(self, vectors: Mapping[int, np.ndarray]) -> None:
        """Keep the vectors of these nodes, in the place of older ones."""
        if vectors:
            rows = np.stack(list(vectors.values()))
            self._own_index(rows.shape[1]).add(np.array(list(vectors), np.int64), rows)

    def remove(self, nodes: Iterable[int]) -> None:
        """Forget the vectors of these nodes."""
        if self._index is not None and (gone := [node for node in nodes if node in self._index]):
            self._own_index(self._index.dim).remove(np.array(gone, np.int64))

    def _own_index(self, dim: int) -> VectorIndex:
        """Return the index, copied if a fork has it too."""
        old = self._index
        if old is None or self._shared:
            self._index, self._shared = VectorIndex(dim, metric="inner_product"), False
            if old is not None and len(old):
                self._index.add(old.ids, np.stack([old.vector(node) for node in old.ids.tolist()]))
        assert self._index is not None
        return self._index

    def alike(self, vector: np.ndarray, k: int) -> dict[int, float]:
        """Return the k nodes that look most like this: node -> cosine."""
        if self._index is None or not len(self._index):
            return {}
        ids, scores = self._index.search(vector[None], min(k, len(self._index)))
        return {int(node): float(score) for node, score in zip(ids[0], scores[0])}

    def cosine(self, node: int, vector: np.ndarray) -> float | None:
        """Return a node's visual similarity; None without its vector."""
        if self._index is None or node not in self._index:
            return None
        return float(self._index.vector(node) @ vector)

    def has_other_look(self, node: int, other: int, theta: float) -> bool:
        """Return whether two nodes are known to look unlike."""
        alike = self.cosine(node, self._index.vector(other)) if self._index and other in self._index else None
        return alike is not None and alike <= theta

    def fork(self) -> Looks:
        """Return an independent copy, in constant time."""
        other = Looks()
        other._index, other._shared = self._index, self._index is not None
        self._shared = other._shared
        return other

    def state(self) -> list[tuple[int, str]]:
        """Return (node, vector as text) of all, for JSON."""
        index = self._index
        return [] if index is None else [(node, encoded_vector(index.vector(node))) for node in index.ids.tolist()]

    @classmethod
    def of(cls, state: Iterable[tuple[int, str]], num_nodes: int) -> Looks:
        """Return the vectors of a state. Raises InvalidInputError for unknown nodes."""
        looks = cls()
        nodes, texts = zip(*rows) if (rows := list(state)) else ((), ())
        if nodes and not 0 <= min(nodes) <= max(nodes) < num_nodes:
            raise InvalidInputError(f"state: expected vectors of nodes below {num_nodes}; it is damaged")
        looks.put(dict(zip(nodes, looks.decoded(dict(zip(nodes, texts))).values())))
        return looks


def unit_vector(name: str, vector: Any) -> np.ndarray:
    """Return a unit float32[d]. Raises InvalidInputError for zero or other input."""
    try:
        row = np.asarray(vector, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"vectors[{name!r}]: expected float32[d], got {shown(vector)}") from error
    length = float(np.linalg.norm(row)) if row.ndim == 1 else 0.0
    if not 0 < length < np.inf:
        raise InvalidInputError(f"vectors[{name!r}]: expected float32[d], finite and not zero, got {shown(vector)}")
    return row / np.float32(length)


def encoded_vector(row: np.ndarray) -> str:
    """Return float32[d], little-endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(row, "<f4").tobytes()).decode()


def decoded_vector(text: Any) -> np.ndarray:
    """Return the vector of an `encoded_vector`. Raises InvalidInputError for another text."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"expected float32 in base64, got {shown(text)}") from error
