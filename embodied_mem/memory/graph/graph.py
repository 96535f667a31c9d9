"""The knowledge graph: facts with validity times and the episodes they come from.

    graph = KnowledgeGraph(Scope(user="ann", environment="kitchen"), rules=HOUSEHOLD_RULES)
    change = graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3, source=17)])
    graph.update([Triple("agent", "holds", "apple 1", valid_at=5)]).ended      # the apple is no longer in the fridge
    with graph.snapshot() as now:
        near = now.khop([now.find("apple 1")], hops=2)
        [now.fact(i) for i in near.facts]
    what_if = graph.fork()                                                      # constant time, independent

    graph = KnowledgeGraph(index=VectorIndex(384), theta=0.9)                   # names that mean the same are one node
    graph.update(triples, vectors={"apple 1": vector})                          # float32[384]

Writes are `update` (by names, with rules and an extraction), `apply` (a raw batch) and `forget`. Facts that stop being
true are invalidated and kept: every reading takes `as_of`, a time on the caller's own clock.
Readers see one version, whole, and never wait for a writer; the native part works without the GIL.

A graph belongs to one scope, given when it is made. No method takes a scope: what is in another graph cannot be named.

One update with new facts T, at time t, in the slots of `relations`:

    link    v(m) = argmax_v s(m, v) if s > theta, else new           index and theta here; name and place in `identity`
    end     for each (f in T, g in G):  invalid_at(g) = valid_at(f)  if slots(f) and slots(g) meet and g began earlier
    merge   G' = G + (T - G);  a fact of both has one more source

Source: RoboMemory (section 3.2, Algorithm 1, Theorem 1). Deviations: conflicts are found by rules given as data; the
subgraph that `update` returns is taken after the merge.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvalidInputError
from ...forks import forking_lock
from ...native import part
from ..arguments import checked_number, checked_real, native_call, shown
from .records import (
    Applied,
    Change,
    ConflictRule,
    Ended,
    Forgotten,
    NewFact,
    NewNode,
    Scope,
    Subgraph,
    Triple,
    checked_scope,
    scope_from_text,
    scope_text,
)
from .snapshot import Direction, Snapshot, checked_id, khop_options

if TYPE_CHECKING:
    from ..vectors import VectorIndex

Vectors = Mapping[str, np.ndarray]

_native = part("memory")
_NOT_SIMILAR: tuple[Any, float, list[str], np.ndarray] = (None, 0.0, [], np.zeros((0, 0), np.float32))
_REPORTED = ("subjects", "objects", "facts", "new_nodes", "similar_nodes", "added", "repeated", "ended")


class GraphWriter(abc.ABC):
    """What a graph is told, whether each change is recorded first (`DurableGraph`) or not."""

    @abc.abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the newest version to read. Never waits for a writer."""

    @native_call
    def apply(
        self,
        nodes: Iterable[NewNode] = (),
        invalidate: Iterable[tuple[int | tuple[int, str, int], int]] = (),
        add: Iterable[NewFact] = (),
    ) -> Applied:
        """Do one batch as given, without rules: nodes, then (fact, invalid_at), then facts.

        Args:
            nodes: made, or changed if the name is known.
            invalidate: the fact is an id, or (subject, relation, object) of a current one.
            add: plain tuples with the fields of `NewFact` do too, and are what costs least; so for `nodes`.

        Raises:
            InvalidInputError: an unknown id, a fact that has ended, an end before the beginning; nothing has changed.
        """
        return self._apply(_listed(nodes), _listed(invalidate), _listed(add))

    @native_call
    def update(
        self,
        triples: Iterable[Triple],
        *,
        vectors: Vectors | None = None,
        hops: int = 2,
        direction: Direction = "both",
        max_nodes: int | None = None,
        extract: bool = True,
    ) -> Change:
        """Link, merge and resolve conflicts by the rules in one native call (Algorithm 1); return what changed.

        Args:
            triples: what was observed, in its order.
            vectors: name to float32[dim], with an index only. A name that no node has is linked to its candidates, else
                to the most similar node above theta, made by an earlier triple or there before, else to a new node. The
                nodes named get these vectors in the index, where they have none.
            hops, direction, max_nodes: of the subgraph, see `Snapshot.khop`.
            extract: whether to return a subgraph.

        Raises:
            InvalidInputError: a name that is empty or too long, an unknown candidate, a vector that the index refuses;
                neither the graph nor the index has changed.
        """
        options = khop_options(hops, direction, max_nodes)
        return self._update(_listed(triples), vectors, options if extract else None)

    @abc.abstractmethod
    def _apply(self, nodes: Sequence[NewNode], invalidate: Sequence[Any], add: Sequence[NewFact]) -> Applied: ...

    @abc.abstractmethod
    def _update(self, triples: Sequence[Triple], vectors: Vectors | None, options: Any) -> Change:
        """`update`, with an extraction by these native options unless they are None."""


class KnowledgeGraph(GraphWriter):
    """The facts of one scope. Batches are all or nothing; any number of threads may read, writers take turns."""

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        rules: Iterable[ConflictRule] = (),
        buffer_capacity: int = 64,
        index: VectorIndex | None = None,
        theta: float = 0.9,
    ):
        """Make an empty graph.

        Args:
            scope: whose it is.
            rules: what `update` resolves conflicts by.
            buffer_capacity: observations that `observe` lets wait before it integrates them.
            index: vectors of the nodes by node id; of this graph alone. `update` searches it and adds to it. Whoever
                searches it and takes a snapshot afterwards finds every node.
            theta: names whose vectors score above it mean the same node, unless their types differ.

        Raises:
            InvalidInputError: a rule without members, or given twice; a capacity below 1; ids in the index that are
                no nodes.
        """
        buffer_capacity = checked_number("buffer_capacity", buffer_capacity, least=1)
        self._scope = checked_scope(scope)
        self._native = _native.KnowledgeGraph()
        self._buffer = _ObservationBuffer(buffer_capacity)
        self._set_rules(rules)
        self._link_with(index, theta)

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def rules(self) -> tuple[ConflictRule, ...]:
        return self._rules

    @property
    def index(self) -> VectorIndex | None:
        return self._index

    @native_call
    def _link_with(self, index: VectorIndex | None, theta: float) -> None:
        self._index, self._theta = index, checked_real("theta", theta)
        if index is None:
            return
        with self.snapshot() as now:
            for id in index.ids[::-1].tolist():
                if id >= now.num_nodes or not now.has_node(id):
                    raise InvalidInputError(f"index: expected ids of nodes, got {id}; an index belongs to one graph")

    @native_call
    def _set_rules(self, rules: Iterable[ConflictRule]) -> None:
        rules = tuple(rules)
        self._native.set_rules([(rule.name, [_member(*member) for member in rule.members]) for rule in rules])
        self._rules = rules

    def snapshot(self) -> Snapshot:
        return Snapshot(self._native.snapshot())

    def fork(self) -> KnowledgeGraph:
        """Return an independent copy of the same scope in constant time; each side pays for what it changes.

        The copy has no vector index, since this graph goes on with its own.
        """
        other = object.__new__(KnowledgeGraph)
        with self._buffer.lock:
            other._scope, other._rules, other._native = self._scope, self._rules, self._native.fork()
            other._buffer = self._buffer.copy()
            other._link_with(None, self._theta)
        return other

    def to_bytes(self) -> bytes:
        """Return all of it, past facts, ids, rules and scope included; the same graph always gives the same bytes.

        What `observe` has not integrated is in it as facts; the report of it is not. Format: docs/formats.md.
        """
        data: bytes = self._native.snapshot().to_bytes(scope_text(self._scope))
        return data

    @classmethod
    def from_bytes(
        cls, data: bytes, scope: Scope | None = None, *, index: VectorIndex | None = None, theta: float = 0.9
    ) -> KnowledgeGraph:
        """Return the graph that `to_bytes` wrote, to go on with the index that it had, which is not in the bytes.

        Raises:
            InvalidInputError: other bytes, damaged or cut, another version, a graph of another scope than `scope`, an
                index of another graph.
        """
        graph = cls(checked_scope(scope))
        if not isinstance(data, bytes):
            raise InvalidInputError(f"graph: expected bytes, got {shown(data)}")
        graph._native, label = _native.KnowledgeGraph.from_bytes(data)
        graph._scope = scope_from_text(label)
        if scope is not None and scope != graph._scope:
            raise InvalidInputError(f"graph: expected one of {scope}, got one of {graph._scope}")
        graph._rules = tuple(
            ConflictRule(name, tuple((r, end, tuple(objects)) if objects else (r, end) for r, end, objects in members))
            for name, members in graph._native.snapshot().rules()
        )
        graph._link_with(index, theta)
        return graph

    @native_call
    def forget(self, nodes: Iterable[int] = (), sources: Iterable[int] = ()) -> Forgotten:
        """Remove nodes with their facts, and episodes with what only they support; nothing of it is in `to_bytes`.

        Their vectors leave the index, too.

        A fact that has other sources loses this one; one that has none is erased, past or current, and not
        invalidated. A node that so loses its last fact and has no attributes goes too. Ids are never used again.
        Nothing becomes true again: facts that a forgotten one ended stay ended. Snapshots and forks taken before keep
        their version until they are closed.

        Raises:
            InvalidInputError: an unknown node; nothing has changed.
        """
        with self._buffer.lock:
            gone = Forgotten(
                *self._native.forget([checked_id(node, "nodes") for node in nodes], [int(s) for s in sources])
            )
            if self._index is not None:
                self._index.remove([node for node in gone.nodes if node in self._index])
            self._buffer.clear()
        return gone

    @native_call
    def khop(
        self,
        sources: Iterable[int] | np.ndarray,
        hops: int = 2,
        direction: Direction = "both",
        max_nodes: int | None = None,
    ) -> Subgraph:
        """As `Snapshot.khop` of the newest version, in one native call."""
        return self._around(sources, khop_options(hops, direction, max_nodes))

    def _around(self, sources: Iterable[int] | np.ndarray, options: Any) -> Subgraph:
        found: Subgraph = self._native.khop(sources, options)
        return found

    @native_call
    def observe(self, triples: Iterable[Triple], vectors: Vectors | None = None) -> Change | None:
        """Note what was seen, visible to every snapshot taken afterwards; the local integration waits.

        Rapid response and local integration are RoboMemory's two phases (section 3.2). Here the first links, merges
        and applies the rules, which the native part does in microseconds, so that no reader sees a contradiction; what
        waits is the K-hop subgraph around what was touched, which is what takes time and what a resolver looks at.

        So most calls cost what `update(extract=False)` does, and those that integrate cost one `khop` more, around all
        that waited: the median is below that of `update`, the mean is both together, and where every observation is in
        conflict with the one before there is nothing to win.

        Returns:
            What `integrate` returns, when the buffer was full or a rule found a conflict; else None.

        Raises:
            InvalidInputError: as `update`; nothing has changed.
        """
        with self._buffer.lock:
            got = self._reported(_listed(triples), vectors)
            self._buffer.add(got)
            return self.integrate() if got["ended"] or self._buffer.count >= self._buffer.capacity else None

    @property
    def num_waiting(self) -> int:
        """Observations that were not integrated yet."""
        return self._buffer.count

    @native_call
    def integrate(self, *, hops: int = 2, direction: Direction = "both", max_nodes: int | None = None) -> Change:
        """Return what one `update` with all waiting observations would have returned, and let them wait no longer."""
        options = khop_options(hops, direction, max_nodes)
        with self._buffer.lock:
            got = self._buffer.take()
            got["subgraph"] = self._around(got["subjects"] + got["objects"], options)
            return Change(**got)

    def _similar(self, triples: Sequence[Triple], vectors: Vectors) -> tuple[Any, float, list[str], np.ndarray]:
        """What the native update links names by: index, theta, names with vectors, float32[N, dim]."""
        if self._index is None:
            raise InvalidInputError("vectors: expected a graph with an index, see KnowledgeGraph(index=...)")
        names = dict.fromkeys(name for t in triples for name in (t.subject, t.object) if name in vectors)
        rows = np.zeros((len(names), self._index.dim), np.float32)
        for row, name in zip(rows, names):
            vector = np.asarray(vectors[name])
            if vector.shape != row.shape or vector.dtype.kind not in "fiu":
                expected = f"expected float32[{self._index.dim}]"
                raise InvalidInputError(f"vectors[{name!r}]: {expected}, got {vector.dtype}{list(vector.shape)}")
            row[:] = vector
        return self._index._native, self._theta, list(names), rows

    def _apply(self, nodes: Sequence[NewNode], invalidate: Sequence[Any], add: Sequence[NewFact]) -> Applied:
        return Applied(*self._native.apply(nodes, invalidate, add))

    def _update(self, triples: Sequence[Triple], vectors: Vectors | None, options: Any) -> Change:
        return Change(**self._reported(triples, vectors, options))

    @native_call
    def note(self, facts: Sequence[tuple[str, str, str]], *, valid_at: int, source: int, state: str) -> Change:
        """As `update` without an extraction, of facts of one time and source.

        Each node gets as type what its name says after the last slash and before its number: "home/mug 1" is a "mug".

        Args:
            facts: (name, relation, name).
            valid_at, source: as of a `Triple`.
            state: the relation whose objects are no things, and get no type.
        """
        return Change(**self._named(self._native.note(facts, valid_at, source, state)))

    def _reported(self, triples: Sequence[Triple], vectors: Vectors | None, options: Any = None) -> dict[str, Any]:
        """The fields of a `Change`."""
        similar = _NOT_SIMILAR if vectors is None else self._similar(triples, vectors)
        return self._named(self._native.update(triples, options is not None, options or _NO_HOPS, *similar))

    def _named(self, got: dict[str, Any]) -> dict[str, Any]:
        """A native report with the names of the rules."""
        got["ended"] = [Ended(fact, by, self._rules[rule].name) for fact, by, rule in got["ended"]]
        return got

    @property
    def num_retired(self) -> int:
        """Replaced records that are kept for open snapshots."""
        return int(self._native.num_retired)


class _ObservationBuffer:
    """What `observe` did and `integrate` has not reported; `lock` keeps both whole when several threads write.

    Adding keeps the native report as it is, since it is on the way of every observation; putting together is for
    `take`.

    Attributes:
        count: triples that wait.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.lock = forking_lock()
        self.clear()

    def clear(self) -> None:
        self._reports: list[dict[str, Any]] = []
        self.count = 0

    def copy(self) -> _ObservationBuffer:
        other = _ObservationBuffer(self.capacity)
        other._reports, other.count = list(self._reports), self.count
        return other

    def add(self, report: dict[str, Any]) -> None:
        self._reports.append(report)
        self.count += len(report["facts"])

    def take(self) -> dict[str, Any]:
        got = {name: [value for report in self._reports for value in report[name]] for name in _REPORTED}
        got["similar_nodes"] = list(dict.fromkeys(got["similar_nodes"]))
        self.clear()
        return got


def _member(relation: str, end: str, objects: Sequence[str] = ()) -> tuple[str, str, list[str]]:
    return relation, end, list(objects)


def _listed(items: Iterable[Any]) -> Sequence[Any]:
    return items if isinstance(items, list | tuple) else list(items)


_NO_HOPS = khop_options(0, "both", None)
