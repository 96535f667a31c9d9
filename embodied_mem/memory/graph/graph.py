"""The knowledge graph: what is where, what is known, since when, and from which episodes.

    graph = KnowledgeGraph(Scope(user="ann", environment="kitchen"), rules=HOUSEHOLD_RULES)
    change = graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3, source=17)])
    graph.update([Triple("agent", "holds", "apple 1", valid_at=5)]).ended      # the apple is no longer in the fridge
    with graph.snapshot() as now:
        near = now.khop([now.find("apple 1")], hops=2)
        [now.fact(i) for i in near.facts]
    what_if = graph.fork()                                                      # constant time, independent

    graph = KnowledgeGraph(index=VectorIndex(384), theta=0.9)                   # names that mean the same are one node
    graph.update(triples, vectors={"apple 1": vector})                          # float32[384]

Facts that stop being true are invalidated and kept: every reading takes `as_of`, a time on the caller's own clock.
Readers see one version, whole, and never wait for a writer; the native part works without the GIL.

A graph belongs to one scope, given when it is made. No method takes a scope: what is in another graph cannot be named.

Source: RoboMemory (section 3.2, Algorithm 1, Theorem 1). Deviations: conflicts are found by rules given as data; the
subgraph that `update` returns is taken after the merge.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInputError
from ..native import part
from .facts import (
    HOUSEHOLD_RULES,
    Applied,
    Change,
    ConflictRule,
    Ended,
    Fact,
    Forgotten,
    NewFact,
    NewNode,
    Node,
    Related,
    Scope,
    Subgraph,
    Triple,
    scope_from_text,
    scope_text,
)
from .graph_snapshot import Direction, Snapshot, checked_id, khop_options, word_list
from .observation_buffer import ObservationBuffer

if TYPE_CHECKING:
    from .audit import Audit
    from .vectors import VectorIndex

__all__ = [
    "HOUSEHOLD_RULES",
    "Applied",
    "Change",
    "ConflictRule",
    "Direction",
    "Ended",
    "Fact",
    "Forgotten",
    "KnowledgeGraph",
    "NewFact",
    "NewNode",
    "Node",
    "Related",
    "Scope",
    "Snapshot",
    "Subgraph",
    "Triple",
]

Vectors = Mapping[str, np.ndarray]
Rows = Iterable[tuple[int, int] | tuple[int, str | int, int]] | np.ndarray

_native = part("memory")
_NO_ROWS = np.zeros((0, 0), np.float32)


class KnowledgeGraph:
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
        if buffer_capacity < 1:
            raise InvalidInputError(f"buffer_capacity: expected at least 1, got {buffer_capacity}")
        self._scope = Scope() if scope is None else scope
        self._native = _native.KnowledgeGraph()
        self._buffer = ObservationBuffer(buffer_capacity)
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

    def _link_with(self, index: VectorIndex | None, theta: float) -> None:
        if not math.isfinite(theta):
            raise InvalidInputError(f"theta: expected a number, got {theta}")
        self._index, self._theta = index, float(theta)
        if index is None:
            return
        with self.snapshot() as now:
            for id in index.ids[::-1].tolist():
                if id >= now.num_nodes or not now.has_node(id):
                    raise InvalidInputError(f"index: expected ids of nodes, got {id}; an index belongs to one graph")

    def _set_rules(self, rules: Iterable[ConflictRule]) -> None:
        rules = tuple(rules)
        self._native.set_rules([(rule.name, [_member(*member) for member in rule.members]) for rule in rules])
        self._rules = rules

    def snapshot(self) -> Snapshot:
        """Return the newest version to read. Never waits for a writer."""
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
        return self._native.snapshot().to_bytes(scope_text(self._scope))

    @classmethod
    def from_bytes(
        cls, data: bytes, scope: Scope | None = None, *, index: VectorIndex | None = None, theta: float = 0.9
    ) -> KnowledgeGraph:
        """Return the graph that `to_bytes` wrote, to go on with the index that it had, which is not in the bytes.

        Raises:
            InvalidInputError: other bytes, damaged or cut, another version, a graph of another scope than `scope`, an
                index of another graph.
        """
        graph = cls()
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
        return Applied(*self._native.apply(_listed(nodes), _listed(invalidate), _listed(add)))

    def relate(
        self,
        relation: str = "",
        *,
        add: Rows = (),
        end: Rows = (),
        nodes: Iterable[str | NewNode] = (),
        node_type: str = "",
        at: int = 0,
        source: int | None = None,
        hops: int | None = None,
        direction: Direction = "both",
        max_nodes: int | None = None,
    ) -> Related:
        """Do one batch of facts between ids, without rules, and extract what lies around it, in one native call.

        What `apply` and `khop` do, for many facts with one relation, time and source: nodes first, then `end`, then
        `add`. It is what costs least.

            got = graph.relate("on", add=[(mug, shelf)], end=[(mug, table)], at=7, hops=2)
            got.facts, got.ended, got.around.nodes

        Args:
            relation: of all rows that are (subject, object).
            add, end: facts that are true from `at` on, and current ones that end then: pairs (subject, object), or rows
                (subject, relation, object) with a word or a number of `relation_ids`; tuples in a list, or an integer
                array [E, 2] or [E, 3]. Ids of new nodes count on from `num_nodes`.
            nodes: names of nodes that are made unless they exist, of type `node_type`; or as for `apply`.
            hops: how far to extract around `nodes` and both ends of all facts in `add`; None: not at all.
            direction, max_nodes: of the extraction, see `Snapshot.khop`.

        Raises:
            InvalidInputError: as `apply`; nothing has changed.
        """
        return self._native.relate(
            relation,
            add,
            end,
            nodes,
            node_type,
            at,
            source,
            None if hops is None else khop_options(hops, direction, max_nodes),
        )

    def relation_ids(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of relations, for `relate`; new words are added. A forgotten word loses its number."""
        return self._native.relation_ids(word_list(words))

    def khop(
        self,
        sources: Iterable[int] | np.ndarray,
        hops: int = 2,
        direction: Direction = "both",
        max_nodes: int | None = None,
    ) -> Subgraph:
        """As `Snapshot.khop` of the newest version, in one native call."""
        return self._native.khop(sources, khop_options(hops, direction, max_nodes))

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
        return Change(**self._update(triples, vectors, extract, khop_options(hops, direction, max_nodes)))

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
            got = self._update(triples, vectors, False, _NO_HOPS)
            self._buffer.add(got)
            return self.integrate() if got["ended"] or self._buffer.full else None

    @property
    def num_waiting(self) -> int:
        """Observations that were not integrated yet."""
        return self._buffer.count

    def integrate(self, *, hops: int = 2, direction: Direction = "both", max_nodes: int | None = None) -> Change:
        """Return what one `update` with all waiting observations would have returned, and let them wait no longer."""
        options = khop_options(hops, direction, max_nodes)
        with self._buffer.lock:
            got = self._buffer.take()
            with self.snapshot() as now:
                got["subgraph"] = now._native.khop(got["subjects"] + got["objects"], options)
            return Change(**got)

    def audit(self) -> Audit:
        """Return duplicates, contradictions, orphans and what has no source, see `embodied_mem.memory.audit`."""
        from .audit import audit

        return audit(self)

    def _vectors(self, triples: Sequence[Triple], vectors: Vectors) -> tuple[list[str], np.ndarray]:
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
        return list(names), rows

    def _update(
        self, triples: Iterable[Triple], vectors: Vectors | None, extract: bool, options: Any
    ) -> dict[str, Any]:
        if vectors is None:
            similar = (None, 0.0, [], _NO_ROWS)
        else:
            triples = list(triples)
            rows = self._vectors(triples, vectors)
            similar = (self._index._native, self._theta, *rows)
        got = self._native.update(_listed(triples), extract, options, *similar)
        got["ended"] = [Ended(fact, by, self._rules[rule].name) for fact, by, rule in got["ended"]]
        return got

    @property
    def num_retired(self) -> int:
        """Replaced records that are kept for open snapshots."""
        return self._native.num_retired


def _member(relation: str, end: str, objects: Sequence[str] = ()) -> tuple[str, str, list[str]]:
    return relation, end, list(objects)


def _listed(items: Iterable[Any]) -> Sequence[Any]:
    return items if isinstance(items, list | tuple) else list(items)


_NO_HOPS = khop_options(0, "both", None)
