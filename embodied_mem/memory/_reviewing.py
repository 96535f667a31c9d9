"""Has a chat model look at contradictions that rules decided on facts of which nobody is sure.

memory = LifelongMemory(chat=chat)
memory.observe("look", facts=[("mug", "in", "sink", 0.3)])      # it was on the desk: the model is asked
memory.review.asked, memory.review.corrected, memory.review.late

Phase one of RoboMemory's update writes what came, links names and applies the rules, in microseconds. Phase two follows
where that ended a fact and the new one was read by a model, or is less sure than the old one: the model sees the facts
within two hops, and what it corrects is one more event. Without a model the rules decide,
and so they do by the two confidences where the model has no usable answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._parts import MemoryParts
from .chat_writer import ChatWriter
from .graph.conflict_review import ChatResolver, ConflictReview
from .graph.records import Applied, Change, Ended, NewFact
from .graph.snapshot import Snapshot
from .spatial.spatial import SpatialMemory

_TIMEOUT_S = 10.0
_MAX_NODES = 64  # around a conflict


class Reviewing(MemoryParts):
    """The part of a memory that reviews contradictions."""

    writer: ChatWriter | None
    review: ConflictReview | None
    episode: int
    step: int
    time: int

    def _make_review(self) -> ConflictReview | None:
        """A review of this memory's own graph; None without a model."""
        if self.writer is None or "spatial" not in self._modules:
            return None
        return ConflictReview(
            _RecordedGraph(self),
            ChatResolver(self.writer),
            timeout_s=_TIMEOUT_S,
            otherwise=lambda ended: "new" if self.spatial and self.spatial.outweighed(ended) else "old",
        )

    def _reviewed(self) -> bool:
        """Whether a contradiction of the last event was decided otherwise than by the rules."""
        if self.review is None or self.spatial is None:
            return False
        doubtful = [ended for ended in self.spatial.doubtful if _is_doubtful(ended, self.spatial)]
        return bool(doubtful) and self.review(_change(doubtful, self.spatial)) is not None

    def _correct(self, invalidate: Sequence[Any], add: Sequence[NewFact]) -> Applied:
        """Record corrections of the graph as an event."""
        spatial = self.spatial
        assert spatial is not None
        where = {"episode": self.episode, "step": self.step, "time": self.time}
        rows = {"invalidate": [list(row) for row in invalidate], "add": [list(fact) for fact in add]}
        self._record({"op": "edit", "time": self.time, "events": {"spatial": {"op": "correct", **where, **rows}}})
        return Applied([], [number for did, number in spatial.changed if did == "add"], [])


class _RecordedGraph:
    """The graph of a memory as a review writes it: each correction is an event of the memory."""

    def __init__(self, memory: Reviewing):
        self._memory = memory

    def snapshot(self) -> Snapshot:
        assert self._memory.spatial is not None
        return self._memory.spatial.graph.snapshot()

    def apply(self, *, invalidate: Iterable[tuple[int, int]], add: Iterable[NewFact]) -> Applied:
        return self._memory._correct(list(invalidate), list(add))


def _is_doubtful(conflict: Ended, spatial: SpatialMemory) -> bool:
    """Whether a model read the new fact, or it is less sure than the one that it ended."""
    new, old = spatial.confidence(conflict.by), spatial.confidence(conflict.fact)
    return new is None or new < (1.0 if old is None else old)


def _change(conflicts: list[Ended], spatial: SpatialMemory) -> Change:
    """The conflicts with what is within two hops of their facts."""
    with spatial.graph.snapshot() as now:
        facts = [now.fact(number) for ended in conflicts for number in (ended.fact, ended.by)]
        ends = list(dict.fromkeys(node for fact in facts for node in (fact.subject, fact.object)))
        around = now.khop(ends, 2, max_nodes=_MAX_NODES)
    return Change([], [], [], [], [], [], [], conflicts, around)
