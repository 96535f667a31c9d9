"""The knowledge graph: what is where, what is known, since when, and from which episodes.

    graph = KnowledgeGraph(Scope(user="ann", environment="kitchen"), rules=HOUSEHOLD_RULES)
    change = graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3, source=17)])
    graph.update([Triple("agent", "holds", "apple 1", valid_at=5)]).ended      # the apple is no longer in the fridge
    with graph.snapshot() as now:
        near = now.khop([now.find("apple 1")], hops=2)
        [now.fact(i) for i in near.facts]
    what_if = graph.fork()                                                      # constant time, independent

Facts that stop being true are invalidated and kept: every reading takes `as_of`, a time on the caller's own clock.
Readers see one version, whole, and never wait for a writer; the native part works without the GIL.

A graph belongs to one scope, given when it is made. No method takes a scope: what is in another graph cannot be named.

Source: RoboMemory (section 3.2, Algorithm 1, Theorem 1). Deviations: conflicts are found by rules given as data; the
subgraph that `update` returns is taken after the merge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import numpy as np

from .. import _native
from ..errors import InvalidInputError

Direction = Literal["out", "in", "both"]

_NO_EMBEDDING = _native.memory.NO_EMBEDDING
_STILL_VALID = _native.memory.STILL_VALID


@dataclasses.dataclass(frozen=True)
class Scope:
    """Whose memory it is. Empty: not divided by this."""

    user: str = ""
    robot: str = ""
    environment: str = ""


@dataclasses.dataclass(frozen=True)
class ConflictRule:
    """One slot that every node has and that at most one fact may fill at a time.

    Attributes:
        name: how reports call it.
        members: the facts that fill it, as (relation, the end whose slot it is) or (relation, end, names of objects):
            with names, only facts about these objects.
    """

    name: str
    members: tuple[
        tuple[str, Literal["subject", "object"]] | tuple[str, Literal["subject", "object"], tuple[str, ...]], ...
    ]


HOUSEHOLD_RULES = (
    ConflictRule("place", (("in", "subject"), ("on", "subject"), ("holds", "object"))),
    ConflictRule("hand", (("holds", "subject"),)),
    ConflictRule("door", (("is", "subject", ("open", "closed")),)),
    ConflictRule("switch", (("is", "subject", ("on", "off")),)),
)
"""An object has one place; a hand holds one thing; open excludes closed; on excludes off."""


@dataclasses.dataclass(frozen=True)
class Node:
    """A thing, place, person or value. `embedding` is a handle that the caller gave, e.g. into a vector index."""

    id: int
    name: str
    type: str = ""
    attributes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    embedding: int | None = None


@dataclasses.dataclass(frozen=True)
class Fact:
    """subject, relation, object, true at times `valid_at <= t < invalid_at`; `invalid_at` None: still."""

    id: int
    subject: int
    relation: str
    object: int
    valid_at: int
    invalid_at: int | None
    sources: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Triple:
    """One observation for `update`.

    Attributes:
        subject, object: names; a node of exactly this name is linked first.
        relation: word.
        valid_at: since when, on the caller's clock.
        source: id of the episode that says so.
        subject_type, object_type: '' if unknown. A similar node of another type is not linked.
        subject_candidates, object_candidates: ids of nodes above the caller's similarity threshold, best first, for
            names that no node has.
    """

    subject: str
    relation: str
    object: str
    valid_at: int = 0
    source: int | None = None
    subject_type: str = ""
    object_type: str = ""
    subject_candidates: Sequence[int] = ()
    object_candidates: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class NewNode:
    """A node for `apply`. If the name exists, that node gets these attributes, and the type and embedding if given."""

    name: str
    type: str = ""
    attributes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    embedding: int | None = None


@dataclasses.dataclass(frozen=True)
class NewFact:
    """A fact for `apply`, between node ids; ids of nodes made in the same batch count on from `num_nodes`."""

    subject: int
    relation: str
    object: int
    valid_at: int = 0
    source: int | None = None


@dataclasses.dataclass(frozen=True)
class Subgraph:
    """What `khop` found, in the order of a breadth-first search: by hop, then by the node and the fact that led there.

    Attributes:
        nodes: uint32[N] node ids.
        hops: uint32[N] facts between a node and the nearest source.
        facts: uint32[E] ids of the facts followed between these nodes, each once.
        truncated: whether `max_nodes` left something out.
    """

    nodes: np.ndarray
    hops: np.ndarray
    facts: np.ndarray
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Ended:
    """A fact that a new one is in conflict with: `fact` was invalidated when `by` began, for the rule named."""

    fact: int
    by: int
    rule: str


@dataclasses.dataclass(frozen=True)
class Applied:
    """Ids of the nodes and facts of a batch; `repeated[i]`: fact i was current and has got a source, not a copy."""

    nodes: list[int]
    facts: list[int]
    repeated: list[bool]


@dataclasses.dataclass(frozen=True)
class Change:
    """What `update` did.

    Attributes:
        subjects, objects, facts: ids for each triple.
        new_nodes, similar_nodes: made; linked by a candidate and not by name.
        added, repeated: ids of facts made, and of facts that got a source.
        ended: facts no longer true, with the reason.
        subgraph: what lies within K hops of the entities now; None if not asked for.
    """

    subjects: list[int]
    objects: list[int]
    facts: list[int]
    new_nodes: list[int]
    similar_nodes: list[int]
    added: list[int]
    repeated: list[int]
    ended: list[Ended]
    subgraph: Subgraph | None


class Snapshot:
    """One version of a graph. Use it in a `with` block: what later batches replace is kept until it is closed."""

    def __init__(self, native: Any):
        self._native = native

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
    def relations(self) -> list[str]:
        return self._native.relations

    def find(self, name: str) -> int | None:
        """Return the id of the node of exactly this name, or None."""
        return self._native.find_node(name)

    def find_fact(self, subject: int, relation: str, object: int) -> int | None:
        """Return the id of the current fact that says so, or None."""
        return self._native.find_fact(subject, self._native.find_relation(relation), object)

    def node(self, node: int) -> Node:
        """Return all about a node. Raises InvalidInputError for an unknown id."""
        name, type_, attributes, embedding = self._native.node(_id(node, "node"))
        return Node(node, name, type_, dict(attributes), None if embedding == _NO_EMBEDDING else embedding)

    def fact(self, fact: int) -> Fact:
        """Return all about a fact, past or current. Raises InvalidInputError for an unknown id."""
        subject, relation, object_, valid_at, invalid_at, sources = self._native.fact(_id(fact, "fact"))
        end = None if invalid_at == _STILL_VALID else invalid_at
        return Fact(int(fact), subject, relation, object_, valid_at, end, sources)

    def facts_of(self, node: int, direction: Direction = "both", as_of: int | None = None) -> np.ndarray:
        """Return uint32[E] ids of the facts at a node: out before in, each by id; current ones, or those at `as_of`."""
        return self._native.facts_of(_id(node, "node"), direction, as_of)

    def facts(self, as_of: int | None = None) -> np.ndarray:
        """Return uint32[E] ids of all facts that are true now or were true at `as_of`. Reads the whole graph."""
        return self._native.all_facts(as_of)

    def khop(
        self,
        sources: Iterable[int],
        hops: int = 2,
        direction: Direction = "both",
        relations: Iterable[str] | None = None,
        max_nodes: int | None = None,
        as_of: int | None = None,
    ) -> Subgraph:
        """Return what lies within `hops` facts of the sources, at a cost that depends on what is visited alone.

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
        numbers = None if relations is None else [self._native.find_relation(word) for word in _words(relations)]
        if numbers == []:
            raise InvalidInputError("relations: expected at least one, or None for all, got an empty list")
        ids = [_id(node, "sources") for node in sources]
        return Subgraph(*self._native.khop(ids, _options(hops, direction, numbers, max_nodes, as_of)))


class KnowledgeGraph:
    """The facts of one scope. Batches are all or nothing; any number of threads may read, writers take turns."""

    def __init__(self, scope: Scope | None = None, *, rules: Iterable[ConflictRule] = ()):
        """Make an empty graph. Raises InvalidInputError for a rule without members, or given twice."""
        self._scope = Scope() if scope is None else scope
        self._native = _native.memory.KnowledgeGraph()
        self._set_rules(rules)

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def rules(self) -> tuple[ConflictRule, ...]:
        return self._rules

    def _set_rules(self, rules: Iterable[ConflictRule]) -> None:
        self._rules = tuple(rules)
        self._native.set_rules([(rule.name, [_member(*member) for member in rule.members]) for rule in self._rules])

    def snapshot(self) -> Snapshot:
        """Return the newest version to read. Never waits for a writer."""
        return Snapshot(self._native.snapshot())

    def fork(self) -> KnowledgeGraph:
        """Return an independent copy of the same scope in constant time; each side pays for what it changes."""
        other = object.__new__(KnowledgeGraph)
        other._scope, other._rules, other._native = self._scope, self._rules, self._native.fork()
        return other

    def apply(
        self,
        nodes: Iterable[NewNode] = (),
        invalidate: Iterable[tuple[int, int]] = (),
        add: Iterable[NewFact] = (),
    ) -> Applied:
        """Do one batch as given, without rules: nodes, then (fact id, invalid_at), then facts.

        Raises:
            InvalidInputError: an unknown id, a fact that has ended, an end before the beginning; nothing has changed.
        """
        facts = list(add)
        numbers = self._native.intern([fact.relation for fact in facts])
        return Applied(
            *self._native.apply(
                [(n.name, n.type, list(n.attributes.items()), _embedding(n.embedding)) for n in nodes],
                [(_id(fact, "invalidate"), at) for fact, at in invalidate],
                [
                    (_id(f.subject, "subject"), number, _id(f.object, "object"), f.valid_at, f.source)
                    for f, number in zip(facts, numbers)
                ],
            )
        )

    def update(
        self,
        triples: Iterable[Triple],
        *,
        hops: int = 2,
        direction: Direction = "both",
        max_nodes: int | None = None,
        extract: bool = True,
    ) -> Change:
        """Link, merge and resolve conflicts by the rules in one native call (Algorithm 1); return what changed.

        Raises:
            InvalidInputError: a name that is empty or too long, an unknown candidate; nothing has changed.
        """
        got = self._native.update(
            [
                (
                    (t.subject, t.subject_type, [_id(c, "subject_candidates") for c in t.subject_candidates]),
                    t.relation,
                    (t.object, t.object_type, [_id(c, "object_candidates") for c in t.object_candidates]),
                    t.valid_at,
                    t.source,
                )
                for t in triples
            ],
            extract,
            _options(hops, direction, None, max_nodes, None),
        )
        got["ended"] = [Ended(fact, by, self._rules[rule].name) for fact, by, rule in got["ended"]]
        got["subgraph"] = None if got["subgraph"] is None else Subgraph(*got["subgraph"])
        return Change(**got)

    @property
    def num_retired(self) -> int:
        """Replaced records that are kept for open snapshots."""
        return self._native.num_retired


def _member(relation: str, end: str, objects: Sequence[str] = ()) -> tuple[str, str, list[str]]:
    return relation, end, list(objects)


def _id(value: int, where: str) -> int:
    number = int(value)
    if not 0 <= number < 2**32:
        raise InvalidInputError(f"{where}: expected an id from 0 to {2**32 - 1}, got {value}")
    return number


def _embedding(handle: int | None) -> int:
    if handle is not None and handle < 0:
        raise InvalidInputError(f"embedding: expected a handle >= 0 or None, got {handle}")
    return _NO_EMBEDDING if handle is None else handle


def _words(words: Iterable[str]) -> list[str]:
    if isinstance(words, str):
        raise InvalidInputError(f"relations: expected a list of words, got the one str {words!r}")
    return list(words)


def _options(hops: int, direction: str, relations: list[int] | None, max_nodes: int | None, as_of: int | None) -> Any:
    if hops < 0:
        raise InvalidInputError(f"hops: expected 0 to {_native.memory.MAX_HOPS}, got {hops}")
    if max_nodes is not None and max_nodes < 1:
        raise InvalidInputError(f"max_nodes: expected at least 1, got {max_nodes}")
    return _native.memory.KHopOptions(hops, direction, relations, max_nodes, as_of)
