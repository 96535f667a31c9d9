"""Keeps what things look like: one appearance vector for each node, of any embedder of images, found by similarity.

    looks = Looks()
    looks.put({7: vector})
    looks.alike(vector, k=8)             # {7: 1.0}: node -> cosine
    looks.cosine(7, vector)

The first vector sets the width.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import InvalidInputError
from ..arguments import shown
from .vector_index import VectorIndex


class Looks:
    """Vectors of length 1 in an exact index, copied by the side of a fork that changes them first."""

    def __init__(self) -> None:
        self._index: VectorIndex | None = None
        self._shared = False

    def __len__(self) -> int:
        return 0 if self._index is None else len(self._index)

    def check(self, vectors: Iterable[np.ndarray]) -> None:
        """Raise InvalidInputError unless these are of one width, that of the others."""
        widths = {len(vector) for vector in vectors} | ({self._index.dim} if self._index is not None else set())
        if len(widths) > 1:
            raise InvalidInputError(f"vectors: expected all of one width, got {sorted(widths)}")

    def written(self, vectors: Mapping[str, Any]) -> dict[str, str]:
        """The vectors of names, of length 1, as texts. Raises InvalidInputError for what cannot be kept."""
        rows = {name: unit(name, vector) for name, vector in vectors.items()}
        self.check(rows.values())
        return {name: written(row) for name, row in rows.items()}

    def read(self, texts: Mapping[str, str]) -> dict[str, np.ndarray]:
        """What `written` wrote. Raises InvalidInputError for vectors of another width."""
        if not texts:
            return {}
        rows = {name: read(text) for name, text in texts.items()}
        self.check(rows.values())
        return rows

    def put(self, vectors: Mapping[int, np.ndarray]) -> None:
        """Keep the vectors of these nodes, in the place of older ones."""
        if not vectors:
            return
        rows = np.stack(list(vectors.values()))
        if self._index is None or self._shared:
            self._index, self._shared = _made(rows.shape[1], self._index), False
        self._index.add(np.array(list(vectors), np.int64), rows)

    def remove(self, nodes: Iterable[int]) -> None:
        """Forget the vectors of these nodes, if they have one."""
        if self._index is None or not (gone := [node for node in nodes if node in self._index]):
            return
        if self._shared:
            self._index, self._shared = _made(self._index.dim, self._index), False
        self._index.remove(np.array(gone, np.int64))

    def alike(self, vector: np.ndarray, k: int) -> dict[int, float]:
        """The k nodes that look most like this: node -> cosine."""
        if self._index is None or not len(self._index):
            return {}
        ids, scores = self._index.search(vector[None], min(k, len(self._index)))
        return {int(node): float(score) for node, score in zip(ids[0], scores[0])}

    def cosine(self, node: int, vector: np.ndarray) -> float | None:
        """How much a node looks like this; None if it is not known what it looks like."""
        if self._index is None or node not in self._index:
            return None
        return float(self._index.vector(node) @ vector)

    def fork(self) -> Looks:
        """An independent copy, in constant time."""
        other = Looks()
        other._index, other._shared = self._index, self._index is not None
        self._shared = other._shared
        return other

    def state(self) -> dict[str, Any]:
        """All of it, for JSON."""
        assert self._index is not None
        ids = self._index.ids
        rows = np.stack([self._index.vector(int(node)) for node in ids]) if len(ids) else np.zeros((0, 0), np.float32)
        return {"nodes": ids.tolist(), "rows": written(rows)}

    @classmethod
    def of(cls, state: Any, num_nodes: int) -> Looks:
        """What `state` gave; none for None. Raises InvalidInputError for vectors of other nodes than there are."""
        looks = cls()
        if state is not None:
            nodes, rows = state["nodes"], read(state["rows"])
            if not nodes or len(rows) % len(nodes) or not 0 <= min(nodes) <= max(nodes) < num_nodes:
                raise InvalidInputError(f"state: expected a vector for each node below {num_nodes}; it is damaged")
            looks.put(dict(zip(nodes, rows.reshape(len(nodes), -1))))
        return looks


def unit(name: str, vector: Any) -> np.ndarray:
    """float32[d] of length 1. Raises InvalidInputError for what is no vector, or has no length."""
    try:
        row = np.asarray(vector, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"vectors[{name!r}]: expected float32[d], got {shown(vector)}") from error
    length = float(np.linalg.norm(row)) if row.ndim == 1 else 0.0
    if not 0 < length < np.inf:
        raise InvalidInputError(f"vectors[{name!r}]: expected float32[d], finite and not zero, got {shown(vector)}")
    return row / np.float32(length)


def written(rows: np.ndarray) -> str:
    """float32, little-endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(rows, "<f4").tobytes()).decode()


def read(text: Any) -> np.ndarray:
    """float32[n] that `written` wrote. Raises InvalidInputError for another text."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"expected float32 in base64, got {shown(text)}") from error


def _made(dim: int, old: VectorIndex | None) -> VectorIndex:
    index = VectorIndex(dim, metric="inner_product")
    if old is not None and len(old):
        index.add(old.ids, np.stack([old.vector(int(node)) for node in old.ids]))
    return index
