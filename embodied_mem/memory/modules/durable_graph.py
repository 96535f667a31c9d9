"""A knowledge graph in a store: the same calls as on `KnowledgeGraph`, each change an event that survives a crash.

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
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from .durable import Selector, read_state, write_state
from .facts import Applied, Change, ConflictRule, NewFact, NewNode, Related, Subgraph, Triple
from .graph import Direction, KnowledgeGraph, Rows, Snapshot, Vectors
from .store import MemoryStore
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
        operations = {
            "update": self._update,
            "observe": self._observe,
            "apply": self._apply,
            "relate": self._relate,
            "rules": self._set_rules,
        }
        operation = operations.get(event.get("op"))
        if operation is None:
            raise InvalidInputError(f"event: expected op {', '.join(operations)}, got {event.get('op')!r}")
        try:
            return operation(event)
        except InvalidInputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidInputError(f"event: expected all that {event['op']!r} needs, got {error!r}") from error

    def _update(self, event: dict[str, Any]) -> Change:
        return self.graph.update(
            [Triple(*triple) for triple in event["triples"]], vectors=_vectors(event), extract=False
        )

    def _observe(self, event: dict[str, Any]) -> Change | None:
        return self.graph.observe([Triple(*triple) for triple in event["triples"]], vectors=_vectors(event))

    def _apply(self, event: dict[str, Any]) -> Applied:
        return self.graph.apply(event["nodes"], event["invalidate"], event["add"])

    def _relate(self, event: dict[str, Any]) -> Related:
        return self.graph.relate(**{name: value for name, value in event.items() if name != "op"})

    def _set_rules(self, event: dict[str, Any]) -> None:
        members = [(name, [tuple(map(_frozen, member)) for member in rule]) for name, rule in event["rules"]]
        self.graph._set_rules(ConflictRule(name, tuple(rule)) for name, rule in members)

    def state(self) -> bytes:
        """The graph as `KnowledgeGraph.to_bytes` writes it; with an index both, as `write_state` does."""
        if self.graph.index is None:
            return self.graph.to_bytes()
        return write_state(_FORMAT, {}, self.graph.to_bytes(), _index_bytes(self.graph.index))

    def restore(self, state: bytes) -> None:
        """Become what `state` returned. Raises InvalidInputError for other bytes, or another kind of index."""
        capacity, theta, mine = self.graph._buffer.capacity, self.graph._theta, self.graph.index
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
        self.graph._buffer.capacity = capacity

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove the node of exactly that name, or the episode of that number, see `KnowledgeGraph.forget`."""
        if selector.kind == "episode":
            nodes, sources = [], [int(selector.value)]
        else:
            with self.graph.snapshot() as now:
                node = now.find(str(selector.value))
            nodes, sources = [] if node is None else [node], []
        gone = self.graph.forget(nodes, sources)
        return {"nodes": len(gone.nodes), "facts": len(gone.erased), "facts_that_lost_a_source": len(gone.unsourced)}


class DurableGraph:
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
        rules = None if rules is None else tuple(rules)
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

    def apply(
        self,
        nodes: Iterable[NewNode] = (),
        invalidate: Iterable[tuple[int | tuple[int, str, int], int]] = (),
        add: Iterable[NewFact] = (),
    ) -> Applied:
        """As `KnowledgeGraph.apply`."""
        event = {
            "op": "apply",
            "nodes": [(name, kind, dict(attributes), embedding) for name, kind, attributes, embedding in nodes],
            "invalidate": [(fact if isinstance(fact, tuple) else int(fact), int(at)) for fact, at in invalidate],
            "add": [(int(s), relation, int(o), *rest) for s, relation, o, *rest in add],
        }
        return self._store.record(self._name, event)

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
    ) -> Related:
        """As `KnowledgeGraph.relate`, without an extraction. Relations in rows are words."""
        event = {
            "op": "relate",
            "relation": relation,
            "add": _rows(add),
            "end": _rows(end),
            "nodes": [node if isinstance(node, str) else (*node[:2], dict(node[2]), node[3]) for node in nodes],
            "node_type": node_type,
            "at": int(at),
            "source": None if source is None else int(source),
        }
        return self._store.record(self._name, event)

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
        """As `KnowledgeGraph.update`; the subgraph is that of the graph afterwards."""
        change = self._store.record(self._name, _reports("update", triples, vectors))
        if not extract:
            return change
        return dataclasses.replace(change, subgraph=self._around(change, hops, direction, max_nodes))

    def _around(self, change: Change, hops: int, direction: Direction, max_nodes: int | None) -> Subgraph:
        with self.snapshot() as now:
            return now.khop(change.subjects + change.objects, hops, direction, max_nodes=max_nodes)

    def observe(self, triples: Iterable[Triple], vectors: Vectors | None = None) -> Change | None:
        """As `KnowledgeGraph.observe`. Which observations still wait for integration is not kept over a restart."""
        return self._store.record(self._name, _reports("observe", triples, vectors))

    def integrate(self, **options: Any) -> Change:
        """As `KnowledgeGraph.integrate`; it changes no fact, so it is no event."""
        return self.graph.integrate(**options)


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
        return VectorIndex.load(path)


def _row(triple: Triple) -> tuple:
    t = triple
    candidates = [int(c) for c in t.subject_candidates], [int(c) for c in t.object_candidates]
    return (t.subject, t.relation, t.object, t.valid_at, t.source, t.subject_type, t.object_type, *candidates)


def _rows(rows: Rows) -> list[list[int | str]]:
    """The rows as JSON holds them: a number of a relation would mean another word in a graph that is read back."""
    listed = [list(row) for row in (rows.tolist() if isinstance(rows, np.ndarray) else rows)]
    for i, row in enumerate(listed):
        if len(row) == 3 and not isinstance(row[1], str):
            raise InvalidInputError(f"rows[{i}]: expected the relation as a word, got {row[1]!r}")
    return [[value if isinstance(value, str) else int(value) for value in row] for row in listed]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
