"""Declares relations: which names mean the same, which facts exclude each other, and along which a query spreads.

    relations = Relations((*HOUSEHOLD, Relation("plugged into", exclusive="subject", aliases=("connected to",))))
    relations.read("mug 1", "is_inside", "drawer 1")       # ("mug 1", "in", "drawer 1")
    relations.read("mug 1", "held by", "left hand")        # ("left hand", "holds", "mug 1")
    relations.read("cup", "painted by", "Ann")             # as it is: a relation that nobody declared is kept
    graph = KnowledgeGraph(rules=relations.rules())

The declarations become the `ConflictRule`s of the native graph. With the end e of a fact in {subject, object}:

    slots(s, r, o) = {("place", e): e = containment of r} + {(r, e): e = exclusive of r}

and a new fact f ends each older fact g with slots(f) and slots(g) in common. All relations with a containment share the
one slot "place": what is said to be under the table is no longer in the drawer, nor in a hand.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from ..errors import InvalidInputError
from .arguments import checked_flag, checked_text, checked_texts, shown
from .graph import ConflictRule

End = Literal["", "subject", "object"]
Exclusive = Literal["", "subject", "object", "both"]

PLACE = "place"
"""Name of the rule that a thing is in one place, by whatever relation."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GAPS = re.compile(r"[\s_\-]+")
_LEAD = re.compile(
    r"(?:(?:is|are|was|were|be|been|being|now|currently|right|directly|just|lies|sits|stands|rests|hangs"
    r"|sitting|lying|standing|resting|located|positioned|situated|placed|put|left|kept|stored|found)\s+)+"
)
_TAIL = re.compile(r" (?:of|to|the|a|an)\Z")
_MAX_KEPT = 4096  # spellings whose meaning is kept


@dataclasses.dataclass(frozen=True)
class Relation:
    """The meaning of one relation.

    Attributes:
        name: as facts have it.
        inverse: names of the same seen from the object: "held by" for "holds". Such facts are turned around.
        exclusive: the end of which at most one such fact holds at a time.
        containment: the end that has its place by the fact: in, on, under or with the other one. A thing has one place.
        transitive: what is so of the other one is so of this one: a spoon in a cup in a drawer is in the drawer.
        aliases: other names. Case, underscores and words such as "is" and "placed" before a name need none.
    """

    name: str
    inverse: tuple[str, ...] = ()
    exclusive: Exclusive = ""
    containment: End = ""
    transitive: bool = False
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not checked_text("relation: name", self.name).strip():
            raise InvalidInputError("relation: name: expected a word, got an empty text")
        for name, value in (("inverse", self.inverse), ("aliases", self.aliases)):
            checked_texts(f"relation {self.name!r}: {name}", value)
        for name, end, ends in (("exclusive", self.exclusive, Exclusive), ("containment", self.containment, End)):
            if end not in get_args(ends):
                known = ", ".join(map(repr, get_args(ends)))
                raise InvalidInputError(f"relation {self.name!r}: {name}: expected one of {known}, got {shown(end)}")
        checked_flag(f"relation {self.name!r}: transitive", self.transitive)
        if self.transitive and self.containment != "subject":
            raise InvalidInputError(f"relation {self.name!r}: transitive: expected containment 'subject'")

    def has_own_slot(self, end: Literal["subject", "object"]) -> bool:
        """Return whether one such fact at most holds at this end."""
        return self.exclusive in (end, "both")


class Relations:
    """A vocabulary of declared relations; others pass as they are."""

    def __init__(self, declared: Iterable[Relation], rules: Iterable[ConflictRule] | None = None):
        """Take declarations, and rules about states; None for those of a household.

        Raises:
            InvalidInputError: something else, or a name that means two relations.
        """
        self.declared = tuple(declared)
        self._state_rules = STATE_RULES if rules is None else tuple(rules)
        if not all(isinstance(relation, Relation) for relation in self.declared):
            raise InvalidInputError(f"relations: expected some Relation, got {shown(self.declared)}")
        self._meaning: dict[str, tuple[str, bool]] = {}  # spelling -> (name, whether subject and object change places)
        for relation in self.declared:
            for spelling in (relation.name, *relation.aliases):
                self._declare(spelling, relation.name, False)
            for spelling in relation.inverse:
                self._declare(spelling, relation.name, True)
        self._read = {relation.name: (relation.name, False) for relation in self.declared}
        self.placing = tuple(relation.name for relation in self.declared if relation.containment == "subject")
        self.holding = tuple(relation.name for relation in self.declared if relation.containment == "object")
        verbs = ("is", *self.holding)
        self._said = {name: name if name in verbs else f"is {name}" for name in self.names}
        self.transitive = frozenset(relation.name for relation in self.declared if relation.transitive)

    def _declare(self, spelling: str, name: str, turned: bool) -> None:
        known = self._meaning.setdefault(_plain(spelling), (name, turned))
        if known != (name, turned):
            raise InvalidInputError(f"relations: expected {spelling!r} once, got it for {known[0]!r} and {name!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the declared relations, as facts have them."""
        return tuple(relation.name for relation in self.declared)

    def rules(self) -> tuple[ConflictRule, ...]:
        """Return the rules for `KnowledgeGraph`: place, exclusive ends, states."""
        place = tuple((relation.name, relation.containment) for relation in self.declared if relation.containment)
        rules = [ConflictRule(PLACE, place)] if place else []
        for relation in self.declared:
            for end in ("subject", "object"):
                if relation.has_own_slot(end):
                    name = relation.name if relation.exclusive != "both" else f"{relation.name} ({end})"
                    rules.append(ConflictRule(name, ((relation.name, end),)))
        return (*rules, *self._state_rules)

    def read(self, subject: str, relation: str, object_: str) -> tuple[str, str, str]:
        """Return a fact with its declared relation, an inverse turned around."""
        known = self._read.get(relation)
        if known is None:
            known = self._look_up(relation)
        name, turned = known
        return (object_, name, subject) if turned else (subject, name, object_)

    def read_all(self, facts: Iterable[Sequence[Any]]) -> list[tuple[str, str, str]]:
        """Return `read` of the first three values of each fact."""
        known, found = self._read, []
        for fact in facts:
            name, turned = known.get(fact[1]) or self._look_up(fact[1])
            found.append((fact[2], name, fact[0]) if turned else (fact[0], name, fact[2]))
        return found

    def sentence(self, subject: str, relation: str, object_: str) -> str:
        """Return a fact in words: "is" before relations, except verbs."""
        if relation == "in room":
            return f"{subject} is in the room"
        return f"{subject} {self._said.get(relation, relation)} {object_}"

    def _look_up(self, relation: str) -> tuple[str, bool]:
        text = _plain(relation)
        bare = _LEAD.sub("", text, count=1) if _LEAD.match(text) else text
        spellings = (text, bare, _TAIL.sub("", bare))
        known = next((self._meaning[spelling] for spelling in spellings if spelling in self._meaning), None)
        if len(self._read) < _MAX_KEPT:
            self._read[relation] = known or (relation, False)
        return known or (relation, False)


def _plain(relation: str) -> str:
    """Return small letters, one space between words.

    "OnTopOf", "on_top_of" and "on top of" are one.
    """
    return _GAPS.sub(" ", _CAMEL.sub(" ", relation)).strip().lower()


STATE_RULES = (
    ConflictRule("door", (("is", "subject", ("open", "closed")),)),
    ConflictRule("switch", (("is", "subject", ("on", "off")),)),
    ConflictRule("temperature", (("is", "subject", ("hot", "cool")),)),
)
"""Open excludes closed, on excludes off, hot excludes cool."""

HOUSEHOLD = (
    Relation("is", aliases=("has state", "state", "status")),
    Relation(
        "in",
        ("contains", "has inside"),
        containment="subject",
        transitive=True,
        aliases=("inside", "within", "into", "contained in", "enclosed in", "enclosed by"),
    ),
    Relation(
        "on",
        ("supports", "has on top"),
        containment="subject",
        aliases=("on top", "ontop", "onto", "upon", "atop", "on surface", "supported by", "hanging on", "hanging from"),
    ),
    Relation("under", containment="subject", aliases=("underneath", "beneath", "below")),
    Relation(
        "holds",
        ("held by", "held in", "carried by", "grasped by", "gripped by", "in hand", "in possession"),
        exclusive="subject",
        containment="object",
        aliases=("hold", "holding", "carries", "carrying", "grasps", "grasping", "grips", "gripping"),
    ),
    Relation("at", exclusive="subject"),
    Relation("in room", exclusive="subject"),
    Relation("next to", aliases=("nextto", "next", "beside", "near", "nearby", "close to", "by", "adjacent to")),
    Relation("behind", ("in front",)),
    Relation("above", aliases=("over",)),
    Relation("part of", ("has part",)),
    Relation("attached to"),
)
"""A thing is in, on or under one other, or held by it; a hand holds one thing; an agent is at one place.

"Behind" and what follows it excludes nothing. What is above a thing need not rest on anything by it, so "above" is no
inverse of "under".
"""

HOUSEHOLD_RELATIONS = Relations(HOUSEHOLD)
HOUSEHOLD_RULES = HOUSEHOLD_RELATIONS.rules()
