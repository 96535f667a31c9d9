"""Recall of every kind of index against exact search while whole topics are added, removed and replaced.

RECALL_CHANGES=100000 pytest tests/memory/vectors/test_recall_through_changes.py        # minutes; 3,000 by default
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from embodied_mem.memory import VectorIndex

CHANGES = int(os.environ.get("RECALL_CHANGES", "3000"))
SHAPES = {  # numbers, topics, vectors of each, spread around the topic's centre
    "tight": (48, 20, 300, 0.1),
    "tighter": (48, 12, 400, 0.03),
    "wide": (64, 5, 250, 1.0),
    "many": (32, 150, 10, 0.35),
    "unclustered": (48, 1000, 1, 0.0),
}


class Doors:
    """An index that changes and an exact one with the same vectors."""

    def __init__(self, kind: str, dim: int):
        self.index, self.exact = VectorIndex(dim, kind=kind), VectorIndex(dim, kind="exact")

    def add(self, ids: np.ndarray, rows: np.ndarray) -> None:
        self.index.add(ids, rows, num_threads=1)
        self.exact.add(ids, rows)

    def remove(self, ids: np.ndarray) -> None:
        self.index.remove(ids, num_threads=1)
        self.exact.remove(ids)

    def recall(self, rng: np.random.Generator) -> float:
        some = rng.choice(self.exact.ids, 200)
        queries = np.stack([self.exact.vector(int(number)) for number in some])
        found, truth = self.index.search(queries, 10)[0], self.exact.search(queries, 10)[0]
        return float(np.mean([len(set(a) & set(b)) / len(set(b)) for a, b in zip(found.tolist(), truth.tolist())]))


def least_recall(kind: str, shape: str, num_changes: int, seed: int = 0) -> float:
    """The least recall at 10 after any of at least so many changes, in five kinds of steps."""
    dim, num_topics, size, spread = SHAPES[shape]
    rng, doors, topics = np.random.default_rng(seed), Doors(kind, dim), {}
    made = changes = 0
    recalls = []

    def rows(count: int) -> np.ndarray:
        return rng.normal(size=dim) + spread * rng.normal(size=(count, dim))

    def add_topic(step: int) -> None:
        nonlocal made, changes
        ids, vectors = np.arange(made, made + size), rows(size)
        for begin in range(0, size, step):
            doors.add(ids[begin : begin + step], vectors[begin : begin + step])
        topics[made], made, changes = ids, made + size, changes + size

    def remove_topics(count: int) -> None:
        nonlocal changes
        for name in rng.permutation(list(topics))[:count].tolist():
            gone = topics.pop(name)
            doors.remove(gone)
            changes += len(gone)

    while changes < num_changes:
        for _ in range(num_topics):
            add_topic(size)
        recalls.append(doors.recall(rng))
        remove_topics(len(topics) * 7 // 10)
        recalls.append(doors.recall(rng))
        for _ in range(num_topics // 3):  # new topics come one vector at a time
            add_topic(1)
        recalls.append(doors.recall(rng))
        for ids in list(topics.values())[::2]:  # all of a topic becomes another
            doors.add(ids, rows(len(ids)))
            changes += len(ids)
        recalls.append(doors.recall(rng))
        remove_topics(len(topics) - 1)
        recalls.append(doors.recall(rng))
        remove_topics(1)
        assert len(doors.index) == 0
    return min(recalls)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_recall_holds_while_topics_come_and_go(kind, shape):
    assert least_recall(kind, shape, CHANGES) >= (0.99 if kind == "hnsw" else 1.0)
