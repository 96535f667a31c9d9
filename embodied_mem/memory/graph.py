"""The knowledge graph: facts with validity times and the episodes they come from.

    graph = KnowledgeGraph(Scope(user="ann", environment="kitchen"), rules=HOUSEHOLD_RULES)
    change = graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3, source=17)])
    graph.update([Triple("agent", "holds", "apple 1", valid_at=5)]).ended      # the apple is no longer in the fridge
    with graph.snapshot() as now:
        near = now.khop([now.find("apple 1")], hops=2)
        [now.fact(i) for i in near.facts]
    what_if = graph.fork()                                                      # constant time, independent

    rows = list(rows_of(graph.to_bytes()))                                      # for JSON; docs/formats.md
    KnowledgeGraph.from_bytes(bytes_of(rows))                                   # byte for byte

Writes are `update` (by names, with rules and an extraction), `apply` (a raw batch) and `forget`. Facts that stop being
true are invalidated and kept: every reading takes `as_of`, a time on the caller's own clock.
Readers see one version, whole, and never wait for a writer; the native part works without the GIL.

A graph belongs to one scope, given when it is made. No method takes a scope: what is in another graph cannot be named.

One update with new facts T, at time t, in the slots of `relations`:

    link    v(m) = argmax_v s(m, v) if s > theta, else new           in `entities`; here a node of this name, else new
    end     for each (f in T, g in G):  invalid_at(g) = valid_at(f)  if slots(f) and slots(g) meet and g began earlier
    merge   G' = G + (T - G);  a fact of both has one more source

Source: RoboMemory (section 3.2, Algorithm 1, Theorem 1). Deviations: conflicts are found by rules given as data; the
subgraph that `update` returns is taken after the merge.

Records of single steps are named tuples: they take a quarter of the time of a frozen dataclass.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import struct
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from ..errors import InvalidInputError
from ..native import part
from .arguments import checked_number, native_call, shown


@dataclasses.dataclass(frozen=True)
class Scope:
    """The owner of a memory. Empty: not divided by this."""

    user: str = ""
    robot: str = ""
    environment: str = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, str):
                raise InvalidInputError(f"scope: {name}: expected text, got {shown(value)}")


def checked_scope(scope: Scope | None) -> Scope:
    """Check a scope; None is that of everybody."""
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInputError(f"scope: expected a Scope, e.g. Scope(user='ann'), or None, got {shown(scope)}")
    return Scope() if scope is None else scope


def scope_text(scope: Scope) -> str:
    """Return the scope as in files: JSON with sorted keys, ASCII."""
    return json.dumps(dataclasses.asdict(scope), sort_keys=True, separators=(",", ":"))


def scope_from_text(text: str) -> Scope:
    """Return the scope that `scope_text` wrote. Raises InvalidInputError for another text."""
    try:
        scope = Scope(**json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInputError(f"scope: expected what scope_text writes, got {text!r}") from error
    if scope_text(scope) != text:
        raise InvalidInputError(f"scope: expected what scope_text writes, got {text!r}")
    return scope


@dataclasses.dataclass(frozen=True)
class ConflictRule:
    """A slot of every node for at most one fact at a time.

    Attributes:
        name: how reports call it.
        members: the facts that fill it, as (relation, the end whose slot it is) or (relation, end, names of objects):
            with names, only facts about these objects.
    """

    name: str
    members: tuple[
        tuple[str, Literal["subject", "object"]] | tuple[str, Literal["subject", "object"], tuple[str, ...]], ...
    ]


@dataclasses.dataclass(frozen=True)
class Node:
    """A thing, place, person or value, perhaps with the caller's embedding handle."""

    id: int
    name: str
    type: str = ""
    attributes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    embedding: int | None = None


class Fact(NamedTuple):
    """A triple, true at times `valid_at <= t < invalid_at`; `invalid_at` None: still."""

    id: int
    subject: int
    relation: str
    object: int
    valid_at: int
    invalid_at: int | None
    sources: tuple[int, ...]


class Triple(NamedTuple):
    """One observation for `update`.

    Attributes:
        subject, object: names; a node of exactly this name is linked first.
        relation: word.
        valid_at: since when, on the caller's clock.
        source: id of the episode that says so.
        subject_type, object_type: '' if unknown.
    """

    subject: str
    relation: str
    object: str
    valid_at: int = 0
    source: int | None = None
    subject_type: str = ""
    object_type: str = ""


class NewNode(NamedTuple):
    """A node for `apply`; a known name gets its attributes.

    The type and embedding are set if given.
    """

    name: str
    type: str = ""
    attributes: Mapping[str, str] = types.MappingProxyType({})
    embedding: int | None = None


class NewFact(NamedTuple):
    """A fact for `apply`, between node ids.

    Ids of nodes made in the same batch count on from `num_nodes`.
    """

    subject: int
    relation: str
    object: int
    valid_at: int = 0
    source: int | None = None


class Subgraph(Protocol):
    """The result of `khop` in the order of a breadth-first search.

    The native code makes and holds it; an array is made when it is asked for, over the numbers that are there.

    Attributes:
        nodes: uint32[N] node ids.
        hops: uint32[N] facts between a node and the nearest source.
        facts: uint32[E] ids of the facts followed between these nodes, each once, in the order of the search.
        fact_hops: of each fact, the hops of the node that it was followed from; both ways, its nearer one.
        num_facts: E.
        truncated: whether `max_nodes` left something out.
    """

    nodes: np.ndarray
    hops: np.ndarray
    facts: np.ndarray
    fact_hops: list[int]
    num_facts: int
    truncated: bool


def _of_native(name: str) -> Any:
    return property(operator.attrgetter(f"_native.{name}"))


@dataclasses.dataclass(frozen=True)
class Ended:
    """A fact that ended, `by` another one, for a rule."""

    fact: int
    by: int
    rule: str


class Applied(NamedTuple):
    """Ids of a batch; `repeated[i]`: fact i got a source, not a copy."""

    nodes: list[int]
    facts: list[int]
    repeated: list[bool]


class Change:
    """The result of `update`, whose lists are made when they are asked for.

    Attributes:
        subjects, objects, facts: ids for each triple.
        new_nodes: those made.
        added, repeated: ids of facts made, and of facts that got a source.
        ended: facts no longer true by a rule, with the reason.
        subgraph: what lies within K hops of the entities now; None if not asked for.
    """

    __slots__ = ("_native", "_rules")

    def __init__(self, native: Any, rules: tuple[ConflictRule, ...]):
        self._native, self._rules = native, rules

    subjects: list[int] = _of_native("subjects")
    objects: list[int] = _of_native("objects")
    facts: list[int] = _of_native("facts")
    new_nodes: list[int] = _of_native("new_nodes")
    added: list[int] = _of_native("added")
    repeated: list[int] = _of_native("repeated")
    subgraph: Subgraph | None = _of_native("subgraph")

    @property
    def ended(self) -> list[Ended]:
        return [Ended(fact, by, self._rules[rule].name) for fact, by, rule in self._native.ended]


@dataclasses.dataclass(frozen=True)
class Forgotten:
    """The result of `forget`.

    Attributes:
        nodes: ids of the nodes named, then of those that nothing was left of.
        erased: ids of facts that are gone.
        unsourced: ids of facts that lost a source and have others.
    """

    nodes: list[int]
    erased: list[int]
    unsourced: list[int]


Direction = Literal["out", "in", "both"]

_native = part("memory")
MAX_HOPS: int = _native.MAX_HOPS
_NO_EMBEDDING = _native.NO_EMBEDDING
_STILL_VALID = _native.STILL_VALID


class Snapshot:
    """One version of a graph, kept until it is closed; use it in `with`."""

    def __init__(self, native: Any):
        self._native = native

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the version; reading raises InvalidInputError from now on."""
        self._native.close()

    @property
    def version(self) -> int:
        """Number of the last batch in it."""
        return self._native.version

    @property
    def num_nodes(self) -> int:
        return self._native.num_nodes

    @property
    def num_facts(self) -> int:
        """Facts that are or were true; ids are below it."""
        return self._native.num_facts

    @property
    def num_current_facts(self) -> int:
        return self._native.num_current_facts

    @property
    def num_forgotten_nodes(self) -> int:
        """Ids below `num_nodes` that nothing is behind any more."""
        return self._native.num_forgotten_nodes

    @property
    def num_erased_facts(self) -> int:
        """Ids below `num_facts` that nothing is behind any more."""
        return self._native.num_erased_facts

    @native_call
    def has_node(self, node: int) -> bool:
        """Return whether the node was not forgotten."""
        return self._native.has_node(node)

    def node_ids(self) -> list[int]:
        """Return the ids of the nodes that were not forgotten."""
        return [node for node in range(self.num_nodes) if self._native.has_node(node)]

    @native_call
    def has_fact(self, fact: int) -> bool:
        """Return whether the fact was not erased."""
        return self._native.has_fact(fact)

    @property
    def relations(self) -> list[str]:
        return [word for word in self._native.relations if word]

    @native_call
    def find(self, name: str) -> int | None:
        """Return the id of the node of exactly this name, or None."""
        return self._native.find_node(name)

    @native_call
    def find_all(self, names: Sequence[str]) -> list[int | None]:
        """Return `find` of each of several names."""
        return self._native.find_nodes(names)

    @native_call
    def find_fact(self, subject: int, relation: str, object: int) -> int | None:
        """Return the id of the current fact that says so, or None."""
        return self._native.find_fact(subject, self._native.find_relation(relation), object)

    @native_call
    def node(self, node: int) -> Node:
        """Return all about a node. Raises InvalidInputError for an unknown id."""
        name, type_, attributes, embedding = self._native.node(node)
        return Node(node, name, type_, dict(attributes), None if embedding == _NO_EMBEDDING else embedding)

    @native_call
    def name(self, node: int) -> str:
        """Return the name of a node. Raises InvalidInputError for an unknown id."""
        return self._native.node(node)[0]

    @native_call
    def names(self, nodes: Sequence[int]) -> list[str]:
        """Return `name` of each of several nodes; empty for a forgotten one."""
        return self._native.names(nodes)

    @native_call
    def named_facts(self, facts: Sequence[int]) -> list[tuple[str, str, str, int, int, int]]:
        """Return (name, relation, name, subject, object, valid_at) of several facts."""
        return self._native.named_facts(facts)

    @native_call
    def are_current(self, facts: Sequence[int]) -> list[bool]:
        """Return whether each of several facts was not invalidated."""
        return self._native.are_current(facts)

    @native_call
    def fact(self, fact: int) -> Fact:
        """Return a fact, past or current. Raises InvalidInputError for an unknown id."""
        subject, relation, object_, valid_at, invalid_at, sources = self._native.fact(fact)
        end = None if invalid_at == _STILL_VALID else invalid_at
        return Fact(int(fact), subject, relation, object_, valid_at, end, sources)

    @native_call
    def facts_of(self, node: int, direction: Direction = "both", as_of: int | None = None) -> np.ndarray:
        """Return uint32[E] ids of the facts at a node.

        Out before in, each by id; current ones, or those at `as_of`.
        """
        return np.asarray(self._native.facts_of(node, direction, as_of))

    @native_call
    def facts_of_all(
        self, nodes: Sequence[int], direction: Direction = "both", as_of: int | None = None
    ) -> list[list[int]]:
        """Return `facts_of` of each of several nodes, as lists."""
        return self._native.facts_of_all(nodes, direction, as_of)

    @native_call
    def facts(self, as_of: int | None = None) -> np.ndarray:
        """Return uint32[E] ids of all facts true now or at `as_of`."""
        return np.asarray(self._native.all_facts(as_of))

    @native_call
    def khop(
        self,
        sources: Iterable[int],
        hops: int = 2,
        direction: Direction = "both",
        relations: Iterable[str] | None = None,
        max_nodes: int | None = None,
        as_of: int | None = None,
    ) -> Subgraph:
        """Return all within `hops` facts of the sources.

        The cost depends on what is visited alone.

        Args:
            sources: node ids.
            hops: 0 to 64.
            direction: follow facts from subject to object ("out"), back ("in"), or both ways.
            relations: follow only these; None: all.
            max_nodes: stop when so many nodes are found; None: no limit.
            as_of: time of the state to look at; None: facts that were not invalidated.

        Raises:
            InvalidInputError: an unknown node, relation or direction, or a number out of range.
        """
        if isinstance(relations, str):
            raise InvalidInputError(f"relations: expected a list of words, got the one str {relations!r}")
        numbers = None if relations is None else tuple(map(self._native.find_relation, relations))
        if numbers == ():
            raise InvalidInputError("relations: expected at least one, or None for all, got an empty list")
        return self._native.khop(sources, khop_options(hops, direction, max_nodes, numbers, as_of))


@functools.lru_cache(256)
def khop_options(
    hops: int, direction: str, max_nodes: int | None, relations: tuple[int, ...] | None = None, as_of: int | None = None
) -> Any:
    """Return the native options of an extraction; the last ones are cached."""
    if checked_number("hops", hops) < 0:
        raise InvalidInputError(f"hops: expected 0 to {MAX_HOPS}, got {hops}")
    if max_nodes is not None and checked_number("max_nodes", max_nodes) < 1:
        raise InvalidInputError(f"max_nodes: expected at least 1, got {max_nodes}")
    return _native.KHopOptions(hops, direction, None if relations is None else list(relations), max_nodes, as_of)


class KnowledgeGraph:
    """The facts of one scope, for many readers and one writer at a time.

    Batches are all or nothing.
    """

    def __init__(self, scope: Scope | None = None, *, rules: Iterable[ConflictRule] = ()):
        """Make an empty graph.

        Args:
            scope: whose it is.
            rules: what `update` resolves conflicts by.

        Raises:
            InvalidInputError: a rule without members, or given twice.
        """
        self._scope = checked_scope(scope)
        self._native = _native.KnowledgeGraph()
        self._set_rules(rules)

    @native_call
    def apply(
        self,
        nodes: Iterable[NewNode] = (),
        invalidate: Iterable[tuple[int | tuple[int, str, int], int]] = (),
        add: Iterable[NewFact] = (),
    ) -> Applied:
        """Do one batch without rules: nodes, then (fact, invalid_at), then facts.

        Args:
            nodes: made, or changed if the name is known.
            invalidate: the fact is an id, or (subject, relation, object) of a current one.
            add: plain tuples with the fields of `NewFact` do too, and are what costs least; so for `nodes`.

        Raises:
            InvalidInputError: an unknown id, a fact that has ended, an end before the beginning; nothing has changed.
        """
        return Applied(*self._native.apply(_listed(nodes), _listed(invalidate), _listed(add)))

    @native_call
    def update(
        self,
        triples: Iterable[Triple],
        *,
        invalidate: Iterable[tuple[tuple[str, str, str], int]] = (),
        hops: int = 2,
        direction: Direction = "both",
        max_nodes: int | None = None,
        extract: bool = True,
    ) -> Change:
        """Link, merge and resolve conflicts (Algorithm 1); return what changed.

        Args:
            triples: what was observed, in its order.
            invalidate: ((name, relation, name), invalid_at) of current facts that end first.
            hops, direction, max_nodes: of the subgraph, see `Snapshot.khop`.
            extract: whether to return a subgraph.

        Raises:
            InvalidInputError: a name that is empty or too long, no current fact to end; nothing has changed.
        """
        options = khop_options(hops, direction, max_nodes)
        return Change(self._native.update(_listed(triples), _listed(invalidate), extract, options), self._rules)

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def rules(self) -> tuple[ConflictRule, ...]:
        return self._rules

    @native_call
    def _set_rules(self, rules: Iterable[ConflictRule]) -> None:
        rules = tuple(rules)
        self._native.set_rules(
            [(rule.name, [(*one, ()) if len(one) == 2 else one for one in rule.members]) for rule in rules]
        )
        self._rules = rules

    def snapshot(self) -> Snapshot:
        return Snapshot(self._native.snapshot())

    def fork(self) -> KnowledgeGraph:
        """Return an independent copy in constant time."""
        other = object.__new__(KnowledgeGraph)
        other._scope, other._rules, other._native = self._scope, self._rules, self._native.fork()
        return other

    def to_bytes(self) -> bytes:
        """Serialize the graph deterministically. Format: docs/formats.md."""
        return self._native.snapshot().to_bytes(scope_text(self._scope))

    @classmethod
    def from_bytes(cls, data: bytes, scope: Scope | None = None) -> KnowledgeGraph:
        """Return the graph of `to_bytes`.

        Raises:
            InvalidInputError: other bytes, damaged or cut, another version, a graph of another scope than `scope`.
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
        return graph

    @native_call
    def forget(self, nodes: Iterable[int] = (), sources: Iterable[int] = ()) -> Forgotten:
        """Remove nodes, and episodes with what only they support.

        A fact that has other sources loses this one; one that has none is erased, past or current, and not
        invalidated. A node that so loses its last fact and has no attributes goes too. Ids are never used again.
        Nothing becomes true again: facts that a forgotten one ended stay ended. Snapshots and forks taken before keep
        their version until they are closed.

        Raises:
            InvalidInputError: an unknown node; nothing has changed.
        """
        return Forgotten(*self._native.forget(list(nodes), list(sources)))

    @native_call
    def khop(
        self,
        sources: Iterable[int] | np.ndarray,
        hops: int = 2,
        direction: Direction = "both",
        max_nodes: int | None = None,
    ) -> Subgraph:
        """Return `Snapshot.khop` of the newest version, in one native call."""
        return self._native.khop(sources, khop_options(hops, direction, max_nodes))

    @native_call
    def note(self, facts: Sequence[tuple[str, str, str]], *, valid_at: int, source: int, state: str) -> Change:
        """Update without an extraction, with facts of one time and source.

        Each node gets as type what its name says after the last slash and before its number: "home/mug 1" is a "mug".

        Args:
            facts: (name, relation, name).
            valid_at, source: as of a `Triple`.
            state: the relation whose objects are no things, and get no type.
        """
        return Change(self._native.note(facts, valid_at, source, state), self._rules)

    @property
    def num_retired(self) -> int:
        """Replaced records that are kept for open snapshots."""
        return self._native.num_retired


def _listed(items: Iterable[Any]) -> Sequence[Any]:
    return items if isinstance(items, list | tuple) else list(items)


_MAGIC, _VERSION = b"EMEMKGR\n", 1
_NO_TYPE = 2**32 - 1
_ENDS = ("subject", "object")
_KINDS = ("scope", "relations", "types", "rules", "nodes", "facts")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, len(_MAGIC)

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return int(value)

    def text(self) -> str:
        length = self.number("I")
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "surrogatepass")


def rows_of(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield (kind, row) of a graph's bytes; None for something forgotten."""
    read = _Reader(data)
    if data[: len(_MAGIC)] != _MAGIC or (version := read.number("I")) != _VERSION:
        raise InvalidInputError(f"graph: expected version {_VERSION} of a knowledge graph, got {data[:12]!r}")
    del version
    yield "scope", read.text()
    for kind in ("relations", "types"):
        for _ in range(read.number("I")):
            yield kind, read.text()
    for _ in range(read.number("I")):
        name, members = read.text(), []
        for _ in range(read.number("I")):
            relation, end = read.text(), _ENDS[read.number("B")]
            members.append([relation, end, [read.text() for _ in range(read.number("I"))]])
        yield "rules", {"name": name, "members": members}
    num_nodes, num_facts = read.number("Q"), read.number("Q")
    for _ in range(num_nodes):
        yield "nodes", _node(read) if read.number("B") else None
    for _ in range(num_facts):
        yield "facts", _fact(read) if read.number("B") else None


def _node(read: _Reader) -> dict[str, Any]:
    type_, embedding, name = read.number("I"), read.number("q"), read.text()
    attributes = [[read.text(), read.text()] for _ in range(read.number("I"))]
    return {
        "name": name, "type": None if type_ == _NO_TYPE else type_,
        "embedding": None if embedding == _NO_EMBEDDING else embedding, "attributes": attributes,
    }  # fmt: skip


def _fact(read: _Reader) -> dict[str, Any]:
    subject, relation, object_ = (read.number("I") for _ in range(3))
    began, ended = read.number("q"), read.number("q")
    return {
        "subject": subject, "relation": relation, "object": object_, "valid_at": began,
        "invalid_at": None if ended == _STILL_VALID else ended,
        "sources": [read.number("q") for _ in range(read.number("I"))],
    }  # fmt: skip


def bytes_of(rows: Iterable[tuple[str, Any]]) -> bytes:
    """Return the bytes of a graph's rows.

    Raises KeyError, TypeError, ValueError or struct.error for rows that are none.
    """
    kinds: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for kind, row in rows:
        kinds[kind].append(row)
    (scope,) = kinds["scope"]
    parts = [_MAGIC, struct.pack("<I", _VERSION), _text(scope)]
    for kind in ("relations", "types"):
        parts += [struct.pack("<I", len(kinds[kind])), *map(_text, kinds[kind])]
    parts.append(struct.pack("<I", len(kinds["rules"])))
    for rule in kinds["rules"]:
        parts += [_text(rule["name"]), struct.pack("<I", len(rule["members"]))]
        for relation, end, objects in rule["members"]:
            parts += [_text(relation), struct.pack("<BI", _ENDS.index(end), len(objects)), *map(_text, objects)]
    parts.append(struct.pack("<QQ", len(kinds["nodes"]), len(kinds["facts"])))
    for node in kinds["nodes"]:
        parts.append(b"\0" if node is None else b"\1" + _node_bytes(node))
    for fact in kinds["facts"]:
        parts.append(b"\0" if fact is None else b"\1" + _fact_bytes(fact))
    whole = b"".join(parts)
    return whole + struct.pack("<I", part("memory").crc32c(whole))


def _node_bytes(node: dict[str, Any]) -> bytes:
    type_ = _NO_TYPE if node["type"] is None else node["type"]
    embedding = _NO_EMBEDDING if node["embedding"] is None else node["embedding"]
    texts = [_text(text) for pair in node["attributes"] for text in pair]
    count = struct.pack("<I", len(node["attributes"]))
    return b"".join([struct.pack("<Iq", type_, embedding), _text(node["name"]), count, *texts])


def _fact_bytes(fact: dict[str, Any]) -> bytes:
    ended = _STILL_VALID if fact["invalid_at"] is None else fact["invalid_at"]
    ends = fact["subject"], fact["relation"], fact["object"]
    sources = fact["sources"]
    return struct.pack(f"<IIIqqI{len(sources)}q", *ends, fact["valid_at"], ended, len(sources), *sources)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack("<I", len(data)) + data
