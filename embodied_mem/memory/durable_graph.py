"""A knowledge graph in a store: the calls of `KnowledgeGraph`, each change an event that survives a crash.

    module = GraphModule()
    with MemoryStore("memory/ann", {"graph": module}, scope=Scope(user="ann")) as store:
        graph = DurableGraph(store, module, rules=HOUSEHOLD_RULES)
        graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3, source=17)])
        with graph.snapshot() as now: ...

`GraphModule` is what the store replays. Rules are an event as well, since what an update does depends on them. With
`GraphModule(index=VectorIndex(384))` names are linked by vectors, too: the vectors given are in the events, the index
in the snapshots.
"""

from __future__ import annotations

import base64
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInputError, StorageError
from .arguments import native_call, shown
from .events import GraphEvent, check
from .graph import (
    Applied,
    Change,
    ConflictRule,
    GraphWriter,
    KnowledgeGraph,
    NewFact,
    NewNode,
    Snapshot,
    Triple,
    Vectors,
)
from .store import MemoryStore, Selector, read_state, restoring, write_state
from .vectors import VectorIndex

_FORMAT = "embodied_mem.graph_with_vectors"


class GraphModule:
    """A graph as a state machine for `MemoryStore`. Read `graph`; change it through the store only."""

    def __init__(self, *, buffer_capacity: int = 64, index: VectorIndex | None = None, theta: float = 0.9):
        """Make an empty graph.

        Args:
            buffer_capacity, theta: as for `KnowledgeGraph`.
            index: an empty one, which the graph has from now on; a folder is opened with an index of the same dimension
                and metric as it was made with.
        """
        self.graph = KnowledgeGraph(buffer_capacity=buffer_capacity, index=index, theta=theta)

    def apply(self, event: dict[str, Any]) -> Any:
        """Do one of the operations that the functions below write. Raises InvalidInputError for any other event."""
        self.check(event)
        try:
            return getattr(self, f"_{event['op']}")(event)
        except InvalidInputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidInputError(f"event: expected all that {event['op']!r} needs, got {error!r}") from error

    def check(self, event: dict[str, Any]) -> None:
        """Raise InvalidInputError for an event that lacks something or has it of another type."""
        check(GraphEvent, "event", event)

    def _update(self, event: dict[str, Any]) -> Change:
        return self.graph.update(
            [Triple(*triple) for triple in event["triples"]], vectors=_vectors(event), extract=False
        )

    def _observe(self, event: dict[str, Any]) -> Change | None:
        return self.graph.observe([Triple(*triple) for triple in event["triples"]], vectors=_vectors(event))

    def _apply(self, event: dict[str, Any]) -> Applied:
        return self.graph.apply(event["nodes"], event["invalidate"], event["add"])

    def _rules(self, event: dict[str, Any]) -> None:
        members = [(name, [tuple(map(_frozen, member)) for member in rule]) for name, rule in event["rules"]]
        self.graph._set_rules(ConflictRule(name, tuple(rule)) for name, rule in members)

    def state(self) -> bytes:
        """The graph as `KnowledgeGraph.to_bytes` writes it; with an index both, as `write_state` does."""
        if self.graph.index is None:
            return self.graph.to_bytes()
        return write_state(_FORMAT, {}, self.graph.to_bytes(), _index_bytes(self.graph.index))

    @restoring
    def restore(self, state: bytes) -> None:
        """Become what `state` returned. Raises InvalidInputError for other bytes, or another kind of index."""
        capacity, theta, mine = self.graph._capacity, self.graph._theta, self.graph.index
        if (mine is not None) != state.startswith(b"{"):
            expected = "no vector index" if mine is None else f"a vector index of dimension {mine.dim}"
            raise InvalidInputError(f"state: expected a graph with {expected}; pass GraphModule the index it had")
        index = None
        if mine is not None:
            _, (state, data) = read_state(_FORMAT, state)
            index = _index_of(data)
            if (index.dim, index.metric) != (mine.dim, mine.metric):
                raise InvalidInputError(f"state: expected an index like {mine!r}, got {index!r}")
        self.graph = KnowledgeGraph.from_bytes(state, index=index, theta=theta)
        self.graph._capacity = capacity

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove the nodes of that name, in any Unicode form and case, the episode of that number, or all nodes.

        See `KnowledgeGraph.forget`.
        """
        sources = [] if selector.episode is None else [selector.episode]
        with self.graph.snapshot() as now:
            nodes = [n for n in now.node_ids() if selector.everything or selector.is_name(now.name(n))]
        gone = self.graph.forget(nodes, sources)
        return {"nodes": len(gone.nodes), "facts": len(gone.erased), "facts_that_lost_a_source": len(gone.unsourced)}


class DurableGraph(GraphWriter):
    """The calls of a `KnowledgeGraph`, recorded in a store."""

    def __init__(
        self,
        store: MemoryStore,
        module: GraphModule,
        *,
        name: str = "graph",
        rules: Iterable[ConflictRule] | None = None,
    ):
        """Take the module that `store` has under `name`; `rules` other than its own are recorded (None: keep them)."""
        self._store, self._module, self._name = store, module, name
        if not isinstance(store, MemoryStore) or not isinstance(module, GraphModule):
            raise InvalidInputError(f"expected a MemoryStore and its GraphModule, got {shown(store)}, {shown(module)}")
        rules = None if rules is None else _checked_rules(rules)
        if rules is not None and rules != module.graph.rules:
            store.record(name, {"op": "rules", "rules": [(rule.name, rule.members) for rule in rules]})

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph to read, audit and fork. What is changed in it directly is not recorded."""
        return self._module.graph

    @property
    def rules(self) -> tuple[ConflictRule, ...]:
        return self.graph.rules

    def snapshot(self) -> Snapshot:
        return self.graph.snapshot()

    def fork(self) -> KnowledgeGraph:
        """Return an independent graph, which is not recorded."""
        return self.graph.fork()

    def _apply(self, nodes: Sequence[NewNode], invalidate: Sequence[Any], add: Sequence[NewFact]) -> Applied:
        event = {
            "op": "apply",
            "nodes": [(name, kind, dict(attributes), embedding) for name, kind, attributes, embedding in nodes],
            "invalidate": [(fact if isinstance(fact, tuple) else int(fact), int(at)) for fact, at in invalidate],
            "add": [(int(s), relation, int(o), *rest) for s, relation, o, *rest in add],
        }
        applied: Applied = self._store.record(self._name, event)
        return applied

    def _update(self, triples: Sequence[Triple], vectors: Vectors | None, options: Any) -> Change:
        change: Change = self._store.record(self._name, _reports("update", triples, vectors))
        if options is None:
            return change
        return dataclasses.replace(change, subgraph=self.graph._around(change.subjects + change.objects, options))

    @native_call
    def observe(self, triples: Iterable[Triple], vectors: Vectors | None = None) -> Change | None:
        """As `KnowledgeGraph.observe`. Which observations still wait for integration is not kept over a restart."""
        change: Change | None = self._store.record(self._name, _reports("observe", triples, vectors))
        return change

    @native_call
    def integrate(self, **options: Any) -> Change:
        """As `KnowledgeGraph.integrate`; it changes no fact, so it is no event."""
        return self.graph.integrate(**options)


def _checked_rules(rules: Any) -> tuple[ConflictRule, ...]:
    listed = tuple(rules) if isinstance(rules, Iterable) else (rules,)
    if not all(isinstance(rule, ConflictRule) for rule in listed):
        raise InvalidInputError(f"rules: expected some ConflictRule, got {shown(rules)}")
    return listed


def _reports(operation: str, triples: Iterable[Triple], vectors: Vectors | None) -> dict[str, Any]:
    """The event of an update; vectors of the names in it as float32, little-endian, in base64."""
    rows = [_row(triple) for triple in triples]
    event: dict[str, Any] = {"op": operation, "triples": rows}
    if vectors is not None:
        names = dict.fromkeys(name for row in rows for name in (row[0], row[2]) if name in vectors)
        event["vectors"] = {
            name: base64.b64encode(np.asarray(vectors[name], "<f4").tobytes()).decode() for name in names
        }
    return event


def _vectors(event: dict[str, Any]) -> dict[str, np.ndarray] | None:
    vectors = event.get("vectors")
    if vectors is None:
        return None
    return {name: np.frombuffer(base64.b64decode(text, validate=True), "<f4") for name, text in vectors.items()}


def _index_bytes(index: VectorIndex) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "index"
        index.save(path)
        return path.read_bytes()


def _index_of(data: bytes) -> VectorIndex:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "index"
        path.write_bytes(data)
        try:
            return VectorIndex.load(path)
        except StorageError as error:
            raise StorageError(str(error).replace(str(path), "state: the graph's vector index")) from error


def _row(triple: Triple) -> tuple[Any, ...]:
    t = triple
    candidates = [int(c) for c in t.subject_candidates], [int(c) for c in t.object_candidates]
    return (t.subject, t.relation, t.object, t.valid_at, t.source, t.subject_type, t.object_type, *candidates)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
