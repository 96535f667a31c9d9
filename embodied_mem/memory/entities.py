"""Entities: the nodes of the graph that the names in facts mean, and the names of the relations between them.

    found = Entities(index, relations, theta).of([("red mug", "is on top of", "desk 1")], "home", {})
    found.facts          # [("home/mug", "on", "home/desk 1")]: the mug that is known to be on the desk

Things of different places are different nodes, called "place/name". The agent is one node, and goes from place to place
with its hands. A name with a number at its end names one thing. A name without one describes it: the thing in the place
that is stated comes first, then the thing of this name, then a new one; two names in one list are two things.

    mug, red = name_of("mug"), name_of("the red mug")
    same_name(mug, red)                                     # 1.0: a red mug is a mug
    same_name(name_of("blue mug"), red)                     # 0.0: each has a word that the other one has not
    score(same_name(mug, red), place=1.0, look=None)        # 1.0: seen in the same place
    score(same_name(mug, red), place=0.0, look=None)        # 0.0: a name alone is not enough
    score(0.0, place=1.0, look=0.97)                        # 0.97: a cup that looks like the mug that stood there

With n, p, a in [0, 1] for a mention m and a thing v:

    n(m, v) = 1 if m has the kind of a name of v, and no name of v contradicts m: numbers, tags and owners are the
              same, and the words that describe one are among those that describe the other; where words differ,
              Dice's coefficient of their pairs of letters, if they begin alike: a slip of spelling
    p(m, v) = 1 if v is known to be now where m is said to be, else 0
    a(m, v) = cosine of the two appearance vectors; 0 where there are not two
    s(m, v) = median(n, p, a)          two of three have to agree; 0 if a is known and not above theta

m is linked to argmax_v s(m, v) if that is above theta, else it is a new thing. Since at least p or a must be high, only
what is in the place that is stated and what the index of appearances finds need be looked at: the local subgraph of
RoboMemory's Algorithm 1, at a cost that does not grow with the graph.

Source: RoboMemory, Algorithm 1, step 1. Deviation: similarity there is of embeddings alone; here the place counts too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .graph import Snapshot
from .readers.reading import AGENT, PLACED, class_of
from .relations import Relations
from .spatial_index import HOLDS, SEPARATOR, STATE, SpatialIndex, joined, split
from .words import spelling, stem

THETA = 0.75
"""Least similarity of two things that are one."""

_PART = re.compile(r"[^\W\d_]+['\u2019]s(?!\w)|[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ARTICLES = frozenset(("a", "an", "the", "some", "this", "that", "another"))
_OWNERS = frozenset(("my", "your", "our", "their", "his", "her", "its"))
_POSSESSIVE = ("'s", "\u2019s")
_BETWEEN = frozenset(("of", "from", "with", "for", "made"))
"""Before what describes a thing in a name: "cup of tea"."""


class Name(NamedTuple):
    """A name without its article, as stems.

    Attributes:
        kind: the noun.
        described: the words beside it, each once, in order.
        number: at its end, or a single letter; or an empty text.
        owner: who has it, if the name says so.
    """

    kind: str
    described: tuple[str, ...]
    number: str
    owner: str


def name_of(text: str) -> Name:
    """Split a name into kind, descriptions, number and owner.

    "Ann's Red_Mug-2" is "mug", described by "ann's" and "red", "2", of "ann's".
    """
    parts = _PART.findall(_CAMEL.sub(" ", text).lower())
    number = ""
    if len(parts) > 1 and (parts[-1].isdigit() or (len(parts[-1]) == 1 and parts[-1].isascii())):
        number = parts.pop().lstrip("0") or "0"
    while len(parts) > 1 and parts[0] in _ARTICLES:
        parts = parts[1:]
    owner = next((part for part in parts if part in _OWNERS or part.endswith(_POSSESSIVE)), "")
    words = [stem(part) for part in parts if part not in _OWNERS]
    if not words:
        return Name("", (), number, owner)
    head = next((i for i, part in enumerate(words[1:-1], 1) if part in _BETWEEN), len(words))
    described = dict.fromkeys(word for i, word in enumerate(words) if i != head - 1 and word not in _BETWEEN)
    return Name(words[head - 1], tuple(described), number, owner)


def same_name(one: Name, two: Name) -> float:
    """Score two names from 0 to 1 as names of one thing."""
    if not one.kind or not two.kind:
        return 0.0
    if one.kind == two.kind:
        return agreement(one, two)
    left, right = _differences((one.kind, *one.described), (two.kind, *two.described))
    return min(agreement(one, two), _spelled_alike(left, right))


def agreement(one: Name, two: Name) -> float:
    """Score two names' agreement besides their kinds, 0 to 1."""
    if any(a and b and a != b for a, b in ((one.number, two.number), (one.owner, two.owner))):
        return 0.0
    codes, others = ({word for word in (name.kind, *name.described) if _is_code(word)} for name in (one, two))
    if codes and others and codes != others:
        return 0.0  # tags such as "w0n1" and "w1n1" are made to tell things apart
    left, right = _differences(one.described, two.described)
    return _spelled_alike(left, right) if left and right else 1.0


def fits(mention: Name, names: Sequence[Name]) -> float:
    """Score a mention against all names of a thing.

    It is like one of them, and in contradiction to none.
    """
    return min(max(same_name(mention, name) for name in names), min(agreement(mention, name) for name in names))


def is_meant(mention: Name, names: Sequence[Name]) -> bool:
    """Return whether a class mention means a thing with these names.

    "mug" and "red mug" mean a big red mug.
    """
    described = {word for name in names for word in name.described}
    return fits(mention, names) == 1 and set(mention.described) <= described


def _is_code(word: str) -> bool:
    return not (word.isalpha() or word.endswith(_POSSESSIVE))


def _differences(one: Sequence[str], two: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each that the other lacks."""
    return [word for word in one if word not in two], [word for word in two if word not in one]


def _spelled_alike(one: Sequence[str], two: Sequence[str]) -> float:
    """Return Dice's coefficient of letter pairs, of words that begin alike."""
    if not one or not two or one[0][0] != two[0][0]:
        return 0.0
    first, second = ({text[i : i + 2] for i in range(len(text) - 1)} for text in (" ".join(one), " ".join(two)))
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def score(name: float, place: float, look: float | None, theta: float = THETA) -> float:
    """Return the median of the three scores.

    `look` is None if it is not known.
    """
    if look is None:
        return min(name, place)
    return sorted((name, place, look))[1] if look > theta else 0.0


_HAND = re.compile(
    r"(?:(?:the|my|agent|agent's|robot|robot's)[\s_]+)?(?:(left|right)[\s_]+)?(hand|gripper|arm|end[\s_]effector)"
    r"(?:[\s_]*(left|right|\d+))?\Z",
    re.IGNORECASE,
)
_BODY = frozenset(("and", "per", "arm", "tor", "eft", "ght"))  # how the words for a hand end, and "left" and "right"
_IN_BODY = ("hand", "pper", "arm", "effector", AGENT)  # one of these is in every name of the agent or of its hand
_ENDS = "0123456789 _"
_FEW = 8  # facts up to which their names are looked up one by one
_MAX_NESTED = 8  # things in one another
_MAX_COMPARED = 64  # things in one place that a mention is compared with
_MAX_NAMES = 4096  # names whose parts are kept
_MAX_ALIKE = 8  # things that look like a mention
_FIRST = ("0", "1")  # numbers that a thing may get that was called by its class before

Fact = tuple[str, str, str]


def node_of(place: str, name: str) -> str:
    """Return the node of the agent or of a placed thing.

    The name alone decides.
    """
    if name == AGENT:
        return name
    found = _HAND.match(name) if name.rstrip(_ENDS)[-3:].lower() in _BODY else None
    if found is None:
        return f"{place}{SEPARATOR}{name}" if place else name
    before, hand, after = found.groups()
    return joined(AGENT, " ".join(word.lower() for word in (before or after, hand) if word))


def _nodes_of(place: str, names: Sequence[str]) -> dict[str, str]:
    """Name -> `node_of`, of each of several names."""
    text = " ".join(names).lower()
    if any([part in text for part in _IN_BODY]):
        return {name: node_of(place, name) for name in names}
    before = f"{place}{SEPARATOR}" if place else ""
    return {name: before + name for name in names}


def _key(node: str) -> str:
    """Return a node in the usual spelling of its name."""
    place, _, name = node.rpartition(SEPARATOR)
    return f"{place}{SEPARATOR}{spelling(name)}"


def is_body(node: str) -> bool:
    """Return whether a node is the agent or its hand."""
    return node.startswith(AGENT) and (node == AGENT or split(node)[0] == AGENT)


def is_described(node: str) -> bool:
    """Return whether a name exceeds one small word and a number."""
    name = split(node)[1]
    return not name[-1:].isdigit() or " " in class_of(name) or name != name.lower()


@dataclasses.dataclass
class Found:
    """Facts between nodes, and what was found out about the nodes.

    Attributes:
        facts: as they were given, with nodes and declared relations.
        nodes: name -> the nodes that it names in this list.
        known_as: node that a name stands for, where it is another one: node of the name -> node.
        merged: nodes that turned out to be another one, and that one.
        looks: node -> its vector.
        plain: name -> node, where a name alone says the node; `nodes` is empty then.
    """

    facts: list[Fact] = dataclasses.field(default_factory=list)
    nodes: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    known_as: dict[str, str] = dataclasses.field(default_factory=dict)
    merged: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    looks: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    plain: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def named(self, name: str) -> Sequence[str]:
        """Return the nodes that a name names in this list."""
        return self.nodes.get(name) or ((self.plain[name],) if name in self.plain else ())


class Entities:
    """Links names to nodes of an index; changes nothing."""

    def __init__(self, index: SpatialIndex, relations: Relations, theta: float):
        self.index, self._relations, self._theta = index, relations, theta
        self.has_links = theta < 1  # whether names are linked at all to things of other names
        self._names: dict[str, Name] = {}
        self._placing, self._holding = frozenset((*relations.placing, PLACED)), frozenset(relations.holding)
        self._tells_place = self._placing | relations.transitive

    def node(self, place: str, name: str) -> str:
        """Return a name's node in any spelling; make it if missing."""
        with self.index.graph.snapshot() as now:
            return self.found([node_of(place, name)], now)[0][0]

    def found(self, nodes: Sequence[str], now: Snapshot) -> list[tuple[str, bool]]:
        """Return each node's known form, and whether there is one."""
        index, there = self.index, now.find_all(nodes)
        names = index.other_names
        if not names and None not in there:
            return [(node, True) for node in nodes]
        found = []
        for node, number in zip(nodes, there):
            if names and (known := names.meant_by(node)) is not None:
                found.append((known, True))
            elif number is not None:
                found.append((node, True))
            else:
                other = index.spelled(node, now)
                found.append((node, False) if other is None else (other, True))
        return found

    def of(self, facts: Iterable[Sequence[Any]], place: str, vectors: Mapping[str, np.ndarray]) -> Found:
        """Return facts with the nodes of their names.

        Something put down is in what has a door and on what has none. What is in or on the agent or its hand is held.
        What says less than is known is what is known: a spoon in a cup that is in the kitchen is in the kitchen.
        """
        rows = self._relations.read_all(facts)
        if not rows:
            return Found()
        with self.index.graph.snapshot() as now:
            if vectors:
                vectors = _of_names(vectors, rows)
            linking = _Linking(self, place, vectors, now)
            if len(rows) > _FEW:
                linking.plain.look_up(rows)
            if vectors or self.index.has_described or not self._are_numbered(rows):
                linking.link(rows)
            else:
                linking.found.plain = linking.plain
            return self._linked(rows, linking)

    def _are_numbered(self, rows: Sequence[Fact]) -> bool:
        """Return whether all things with a place end in a number.

        Such names alone say the nodes.
        """
        placing, holding = self._placing, self._holding
        for subject, relation, object_ in rows:
            if (relation in placing and not subject[-1:].isdigit()) or (
                relation in holding and not object_[-1:].isdigit()
            ):
                return False
        return True

    def _linked(self, rows: Sequence[Fact], linking: _Linking) -> Found:
        plain = None if linking.found.nodes else linking.plain
        facts, tells_place = linking.found.facts, self._tells_place
        for subject, relation, object_ in rows:
            one = linking.node(subject, relation, object_, "subject") if plain is None else plain[subject]
            if relation == STATE:
                facts.append((one, relation, object_))
                continue
            other = linking.node(object_, relation, subject, "object") if plain is None else plain[object_]
            if relation not in tells_place:
                facts.append((one, relation, other))
                continue
            if relation == PLACED:
                relation = "in" if {"open", "closed"} & set(self.index.states(other)) else "on"
            if relation in self._relations.placing and is_body(other):
                one, relation, other = other, HOLDS, one
            elif relation in self._relations.transitive and (known := self._place_within(one, other)) is not None:
                one, relation, other = known
            facts.append((one, relation, other))
        return linking.found

    def _place_within(self, thing: str, container: str) -> Fact | None:
        """Return a thing's known place if that lies in the container."""
        place = outer = self.index.place_of(thing)
        for _ in range(_MAX_NESTED):
            if outer is None or outer[1] not in self._relations.transitive:
                return None
            if outer[2] == container:
                return None if outer is place else place
            outer = self.index.place_of(outer[2])
        return None

    def holder(self, subject: str, relation: str, object_: str) -> tuple[str, str] | None:
        """Return (thing, place) of a fact about a place, else None."""
        if relation in self._placing:
            return subject, object_
        return (object_, subject) if relation in self._holding else None

    def best(self, name: str, here: Mapping[int, str], look: np.ndarray | None, used: Collection[str]) -> str | None:
        """Return the known thing that a mention most likely means, or None.

        Args:
            name: as mentioned.
            here: `contents` of the places where it may be.
            look: its appearance.
            used: nodes that are other mentions.
        """
        alike = {} if look is None else self.index.looks.alike(look, _MAX_ALIKE)
        best, most = None, self._theta
        mention = self._name(name)
        with self.index.graph.snapshot() as now:
            things = {**here, **{node: self.index.name(node, now) for node in alike if node not in here}}
        for number, node in things.items():
            if node in used or (look is None and mention.number and not is_described(node)):
                continue
            looks = alike.get(number) if look is None or number in alike else self.index.looks.cosine(number, look)
            named = fits(mention, self.names_of(node))
            if (sure := score(named, float(number in here), looks, self._theta)) > most:
                best, most = node, sure
        return best

    def names_of(self, node: str) -> list[Name]:
        """Return all names of a thing."""
        return [self._name(split(one)[1]) for one in (node, *self.index.other_names.of(node))]

    def _name(self, text: str) -> Name:
        """Return `name_of` a text; the last ones are cached."""
        found = self._names.get(text)
        if found is None:
            if len(self._names) >= _MAX_NAMES:
                self._names = {}
            found = self._names[text] = name_of(text)
        return found

    def contents(self, near: Iterable[str], now: Snapshot) -> dict[int, str]:
        """Return id -> name of what these nodes now hold, latest first."""
        found: dict[int, str] = {}
        nodes = [number for number in now.find_all([*near]) if number is not None]
        for number, facts in zip(nodes, now.facts_of_all(nodes, "both")):
            for known in self.index.all_known(facts[: -_MAX_COMPARED - 1 : -1], now):
                if known.object_id == number and known.relation in self._relations.placing:
                    found.setdefault(known.subject_id, known.subject)
                elif known.subject_id == number and known.relation in self._relations.holding:
                    found.setdefault(known.object_id, known.object)
        return found


def _of_names(vectors: Mapping[str, np.ndarray], rows: Sequence[Fact]) -> dict[str, np.ndarray]:
    """Name as the facts spell it -> vector."""
    looks = {spelling(name): look for name, look in vectors.items()}
    names = dict.fromkeys(name for one, _, other in rows for name in (one, other))
    return {name: looks[usual] for name in names if (usual := spelling(name)) in looks}


class _Plain(dict[str, str]):
    """Name -> node, by the name alone, filled when a name is asked for.

    Attributes:
        known: the nodes that were there before.
    """

    def __init__(self, entities: Entities, place: str, now: Snapshot):
        super().__init__()
        self._entities, self._place, self._now = entities, place, now
        self.known: set[str] = set()
        self._new: dict[str, str] = {}  # spelling -> node of a thing that is new in this list

    def look_up(self, rows: Sequence[Fact]) -> None:
        """Look all names of facts up at once, in their order."""
        index, place = self._entities.index, self._place
        kept = index.nodes_called(place)
        names: dict[str, None] = {}
        for subject, relation, object_ in rows:
            names[subject] = None
            if relation != STATE:
                names[object_] = None
        here = {name: kept[name] for name in names if name in kept} if kept else {}
        nodes = _nodes_of(place, [name for name in names if name not in here])
        # In a place where nothing was seen yet all is new, but for the agent and names with a place of their own.
        is_new = nodes and not index.other_names and not index.has_things_of(place)
        if is_new and not any([SEPARATOR in name for name in nodes]):
            asked = [name for name, node in nodes.items() if is_body(node)]
        else:
            asked = list(nodes)
        for name, found in zip(asked, self._entities.found([nodes[name] for name in asked], self._now)):
            nodes[name], is_known = found
            if is_known:
                here[name] = nodes[name]
        for name, node in nodes.items():
            self[name] = node if name in here else self._new.setdefault(_key(node), node)
        self.update(here)
        kept.update(here)
        self.known.update(here.values())

    def __missing__(self, name: str) -> str:
        kept = self._entities.index.nodes_called(self._place)
        node, is_known = kept.get(name), True
        if node is None:
            ((node, is_known),) = self._entities.found([node_of(self._place, name)], self._now)
            if is_known:
                kept[name] = node
            else:
                node = self._new.setdefault(_key(node), node)
        self[name] = node
        if is_known:
            self.known.add(node)
        return node


class _Linking:
    """The names of one list of facts."""

    def __init__(
        self,
        entities: Entities,
        place: str,
        vectors: Mapping[str, np.ndarray],
        now: Snapshot,
    ):
        self._entities, self._vectors, self._now = entities, vectors, now
        self.plain = _Plain(entities, place, now)
        self._mentions: dict[tuple[str, str], str] = {}  # (name, where it is said to be) -> node
        self._used: set[str] = set()
        self._own: dict[str, str] = {}  # name of a thing whose place is told -> node, by the name alone
        self._things: dict[tuple[str, ...], dict[int, str]] = {}  # nodes -> what is in or on them
        self._places: dict[str, str | None] = {}  # node -> what it is known to be in or on
        self.found = Found()

    def link(self, rows: Sequence[Fact]) -> None:
        """Decide the identity of things with a stated place.

        Without this a name alone says the node.
        """
        entities, vectors = self._entities, self._vectors
        places = [(held, row[1]) for row in rows if (held := entities.holder(*row)) is not None]
        relation_of = dict(places)
        self._own = {name: self.plain[name] for name, _ in relation_of}
        repeated = entities.has_links and len(self._own) < len(relation_of)
        waiting, arrived = [], []
        for name, where in relation_of:
            own = self._own[name]
            plain = name[-1:].isdigit() and not (entities.index.has_described or name in vectors)
            if not entities.has_links or plain or (own in self.plain.known and name[-1:].isdigit()):
                if entities.has_links and not plain and relation_of[name, where] != PLACED:
                    arrived.append((name, where))
                self._take(name, where, own)
            elif not (repeated and own not in self._used and self._is_at(own, where)):
                waiting.append((name, where))
            else:
                self._take(name, where, own)
        for name, where in waiting:
            self._link(name, where, relation_of[name, where] == PLACED)
        for name, where in arrived:
            if not self._is_at(self._own[name], where):
                self._link_described(name, where)

    def node(self, name: str, relation: str, other: str, end: str) -> str:
        """Return the node of one end of a fact."""
        row = (name, relation, other) if end == "subject" else (other, relation, name)
        held = None if relation == STATE else self._entities.holder(*row)
        if held is not None and held[0] == name and (node := self._mentions.get(held)) is not None:
            return node
        nodes = self.found.nodes.get(name)
        return nodes[0] if nodes else self.plain[name]

    def _take(self, name: str, where: str, node: str) -> None:
        self._mentions[name, where] = node
        self._used.add(node)
        self.found.nodes.setdefault(name, []).append(node)
        if name in self._vectors:
            self.found.looks[node] = self._vectors[name]

    def _link(self, name: str, where: str, moves: bool) -> None:
        own, look = self._own[name], self._vectors.get(name)
        if is_body(own) or (own not in self._used and self._is_at(own, where)):
            self._take(name, where, own)
            return
        others = {node for other, node in self._own.items() if other != name} | self._used | {self.plain[where]}
        best = self._entities.best(name, self._in_or_on(*self._near(where, moves)), look, others)
        numbered = name[-1:].isdigit()
        if best is not None and best != own and numbered and not split(best)[1][-1:].isdigit():
            self._merge(best, own)
            self._take(name, where, own)
        elif best is not None:
            if best != own and own not in self.plain.known:
                self.found.known_as[own] = best
            self._take(name, where, best)
        elif own in self._used and not numbered and not self._is_one(name, where, own):
            self._take(name, where, self._another(own))
        else:
            self._take(name, where, own)

    def _link_described(self, name: str, where: str) -> None:
        """Merge a numbered thing with what stands there by another name."""
        best = self._entities.best(name, self._in_or_on(self.plain[where]), self._vectors.get(name), self._used)
        if best is not None and not split(best)[1][-1:].isdigit():
            self._merge(best, self._own[name])

    def _merge(self, described: str, numbered: str) -> None:
        """Merge a described and a numbered thing unless they may differ."""
        one, two = name_of(split(described)[1]), name_of(split(numbered)[1])
        if (one.kind, one.described) != (two.kind, two.described) or two.number in _FIRST:
            self.found.merged.append((described, numbered))

    def _is_at(self, node: str, where: str) -> bool:
        if node not in self._places:
            known = self._entities.index.place_of(node)
            self._places[node] = None if known is None else known[2]
        return self._places[node] == self.plain[where]

    def _in_or_on(self, *near: str) -> dict[int, str]:
        found = self._things.get(near)
        if found is None:
            found = self._things[near] = self._entities.contents(near, self._now)
        return found

    def _near(self, where: str, moves: bool) -> list[str]:
        """Return where a thing was that is now said to be somewhere.

        What is put down was held, what is held was at hand.
        """
        if moves:
            return [AGENT, *self._entities.index.names_in(AGENT)]
        node = self.plain[where]
        position = self._entities.index.position() if is_body(node) else None
        return [node] if position is None else [node, position]

    def _is_one(self, name: str, where: str, own: str) -> bool:
        """Return whether a name's places in this list can be one thing's.

        One of them is in the other, or another spelling of the name is in the same place.
        """
        place, index = self.plain[where], self._entities.index
        for (other, there), node in self._mentions.items():
            outer = self.plain[there]
            if other != name:
                if node == own and outer == place:
                    return True
                continue
            inner = {known[2] for end in (place, outer) if (known := index.place_of(end)) is not None}
            if {place, outer} & inner:
                return True
        return False

    def _another(self, node: str) -> str:
        """Return a name for a second thing of the same name."""
        number = 2
        while self._entities.index.find(f"{node} {number}") is not None or f"{node} {number}" in self._used:
            number += 1
        return f"{node} {number}"
