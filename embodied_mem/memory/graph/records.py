"""Records of the knowledge graph: scopes, rules, nodes, facts, observations and reports of changes.

    Triple("apple 1", "in", "fridge 1", valid_at=3, source=17)

Plain data that does not change. What is made for every step is a tuple with names: it takes a quarter of the time of a
frozen dataclass. `graph.py` is what works with them.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from ...errors import InvalidInputError
from ..arguments import shown

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True)
class Scope:
    """Whose memory it is. Empty: not divided by this."""

    user: str = ""
    robot: str = ""
    environment: str = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, str):
                raise InvalidInputError(f"scope: {name}: expected text, got {shown(value)}")


def checked_scope(scope: Scope | None) -> Scope:
    """The scope; that of everybody for None."""
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInputError(f"scope: expected a Scope, e.g. Scope(user='ann'), or None, got {shown(scope)}")
    return Scope() if scope is None else scope


def scope_text(scope: Scope) -> str:
    """Return the scope as it stands in files: JSON with sorted keys, ASCII."""
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


@dataclasses.dataclass(frozen=True)
class Node:
    """A thing, place, person or value. `embedding` is a handle that the caller gave, e.g. into a vector index."""

    id: int
    name: str
    type: str = ""
    attributes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    embedding: int | None = None


class Fact(NamedTuple):
    """subject, relation, object, true at times `valid_at <= t < invalid_at`; `invalid_at` None: still."""

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


class NewNode(NamedTuple):
    """A node for `apply`. If the name exists, that node gets these attributes, and the type and embedding if given."""

    name: str
    type: str = ""
    attributes: Mapping[str, str] = types.MappingProxyType({})
    embedding: int | None = None


class NewFact(NamedTuple):
    """A fact for `apply`, between node ids; ids of nodes made in the same batch count on from `num_nodes`."""

    subject: int
    relation: str
    object: int
    valid_at: int = 0
    source: int | None = None


class Subgraph(Protocol):
    """What `khop` found, in the order of a breadth-first search: by hop, then by the node and the fact that led there.

    The native code makes and holds it; an array is made when it is asked for, over the numbers that are there.

    Attributes:
        nodes: uint32[N] node ids.
        hops: uint32[N] facts between a node and the nearest source.
        facts: uint32[E] ids of the facts followed between these nodes, each once, in the order of the search.
        fact_hops: of each fact, the hops of the node that it was followed from; both ways, its nearer one.
        num_facts: E.
        truncated: whether `max_nodes` left something out.
    """

    @property
    def nodes(self) -> np.ndarray: ...
    @property
    def hops(self) -> np.ndarray: ...
    @property
    def facts(self) -> np.ndarray: ...
    @property
    def fact_hops(self) -> list[int]: ...
    @property
    def num_facts(self) -> int: ...
    @property
    def truncated(self) -> bool: ...


@dataclasses.dataclass(frozen=True)
class Ended:
    """A fact that a new one is in conflict with: `fact` was invalidated when `by` began, for the rule named."""

    fact: int
    by: int
    rule: str


class Applied(NamedTuple):
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


@dataclasses.dataclass(frozen=True)
class Forgotten:
    """What `forget` removed.

    Attributes:
        nodes: ids of the nodes named, then of those that nothing was left of.
        erased: ids of facts that are gone.
        unsourced: ids of facts that lost a source and have others.
    """

    nodes: list[int]
    erased: list[int]
    unsourced: list[int]
