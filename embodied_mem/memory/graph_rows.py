"""Puts saved facts, with their ends and sources, back into an empty graph under the same ids, in few batches.

rows = FactRows(graph)
rows.nodes.append(NewNode("mug 1"))
rows.add(0, "on", 1, valid_at=3, invalid_at=None, sources=[17])
rows.flush()
"""

from __future__ import annotations

from collections.abc import Sequence

from .facts import NewFact, NewNode
from .graph import KnowledgeGraph


class FactRows:
    """A writer to a graph that was empty when it was made.

    Attributes:
        nodes: those that the next batch makes.
    """

    def __init__(self, graph: KnowledgeGraph):
        self.nodes: list[NewNode] = []
        self._graph = graph
        self._count = 0
        self._rows: dict[tuple[int, str, int], tuple[int, int, int | None, Sequence[int]]] = {}

    def add(
        self, subject: int, relation: str, object_: int, valid_at: int, invalid_at: int | None, sources: Sequence[int]
    ) -> int:
        """The id that the fact gets; facts come in the order of their ids."""
        key = (subject, relation, object_)
        if key in self._rows:  # it ended and is stated again: the first must have its end before the second begins
            self.flush()
        self._rows[key] = (self._count, valid_at, invalid_at, sources)
        self._count += 1
        return self._count - 1

    def flush(self) -> None:
        """Write what was added."""
        self._graph.apply(self.nodes, (), [self._fact(key, row, 0) for key, row in self._rows.items()])
        for turn in range(1, max((len(row[3]) for row in self._rows.values()), default=0)):
            repeated = [self._fact(key, row, turn) for key, row in self._rows.items() if turn < len(row[3])]
            self._graph.apply(add=repeated)
        self._graph.apply(invalidate=[(row[0], row[2]) for row in self._rows.values() if row[2] is not None])
        self._rows, self.nodes = {}, []

    @staticmethod
    def _fact(key: tuple[int, str, int], row: tuple, turn: int) -> NewFact:
        return NewFact(*key, row[1], row[3][turn] if row[3] else None)
