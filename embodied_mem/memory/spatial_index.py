"""Index of a graph of things: the last sighting of each fact, the place and class of each node.

    index = SpatialIndex(KnowledgeGraph(rules=HOUSEHOLD_RULES))
    index.note([("home/mug 1", "on", "home/desk 1")], Seen(time=3, episode=0, step=2))
    index.of_kind("home", "mug")              # node ids
    index.known(0, now).seen                  # of a fact: Seen(3, 0, 2)

Texts are in the graph alone; beside it are rows of numbers, by node and by fact, so that saving, restoring and forking
cost little. What is asked for often is kept in dictionaries that can be made anew at any time.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInputError
from .graph import Applied, Change, Direction, KnowledgeGraph, NewFact, Scope, Snapshot
from .paged_rows import PAGE, PagedRows, Words
from .readers.reading import AGENT, ROOM, class_of
from .readers.telling import NO_NAMES, Names
from .relations import HOUSEHOLD_RELATIONS, Relations
from .stored_modules import Selector
from .vectors import Looks
from .words import forms, spelling

HOLDS = "holds"
AT = "at"
STATE = "is"
"""Its objects are words like "open", which have neither place nor class."""

SEPARATOR = "/"


class Seen(NamedTuple):
    """When something was seen."""

    time: int
    episode: int
    step: int


@dataclasses.dataclass(slots=True)
class Known:
    """A fact with its names, the time from which on it is so, its last sighting and the first fields of its record.

    `head` is filled when it is rendered, `hit` with its source and trust when it is found; `sure` is None without a
    confidence.
    """

    subject: str
    relation: str
    object: str
    subject_id: int
    object_id: int
    since: int
    seen: Seen
    sure: float | None = None
    head: tuple[Any, ...] | None = None
    hit: tuple[Any, ...] | None = None


def split(node: str) -> tuple[str, str]:
    """Return (place, name) of a node."""
    place, _, name = node.rpartition(SEPARATOR)
    return place, name


def joined(place: str, name: str) -> str:
    """Return the node of a thing in a place."""
    return f"{place}{SEPARATOR}{name}" if place else name


class OtherNames(dict[str, tuple[str, int]]):
    """Names that no node has: name -> (node that it means, episode that taught it).

    names.link({"home/cup 2": "home/mug 1"}, episode=4)
    names.meant_by("home/cup 2"), names.of("home/mug 1")       # "home/mug 1", ["home/cup 2"]
    """

    def __init__(self, entries: Iterable[tuple[str, str, int]] = ()):
        super().__init__((name, (node, episode)) for name, node, episode in entries)
        self._names: dict[str, dict[str, None]] = {}  # node -> names that meant it, perhaps no longer
        self._index(self)

    def meant_by(self, name: str) -> str | None:
        """Return the node that such a name means."""
        return None if (known := self.get(name)) is None else known[0]

    def of(self, node: str) -> list[str]:
        """Return the names that mean a node."""
        return [name for name in self._names.get(node, ()) if self.meant_by(name) == node]

    def link(self, names: Mapping[str, str], episode: int) -> None:
        """Let names mean nodes from now on."""
        self.update((name, (node, episode)) for name, node in names.items())
        self._index(names)

    def rows(self) -> list[tuple[str, str, int]]:
        """Return (name, node, episode) of all."""
        return [(name, *rest) for name, rest in self.items()]

    def _index(self, names: Iterable[str]) -> None:
        for name in names:
            self._names.setdefault(self[name][0], {})[name] = None


_PLACE, _KIND, _LAST, _LOOKED = range(4)  # columns of nodes: codes of words, fact that said last where it is, time
_TIME, _EPISODE, _STEP, _THING = range(4)  # columns of facts: last sighting, and the node whose place it tells
_NONE = -1
_EMPTY = (_NONE,) * 4
_MICRO = 1_000_000
_MAX_KNOWN, _DROPPED = 16384, 128
"""Limit of the caches of facts and of names, and how many entries are dropped at a time."""

MOST_OF_KIND = 64
"""Things of a class that are looked for in the other rooms of a home."""
_MAX_PLACES = 8
"""Places of which the things are kept by class."""

_NONE_SURE: Mapping[int, float] = types.MappingProxyType({})


class SpatialIndex:
    """The graph and its rows. `graph` is to read."""

    def __init__(self, graph: KnowledgeGraph, relations: Relations = HOUSEHOLD_RELATIONS):
        self.graph, self._relations = graph, relations
        self._placing, self._holding = frozenset(relations.placing), frozenset(relations.holding)
        self._nodes, self._facts = PagedRows(4), PagedRows(4)
        self._sure = PagedRows(1)  # millionths of a confidence by fact, as far as any fact has one
        self._places, self._kinds = Words(), Words()
        self._place_pages: list[int] = []  # by place: bit i is set if it has nodes in page i of the rows
        self.other_names = OtherNames()
        self.looks = Looks()
        self._unusual: dict[str, tuple[str, ...]] | None = {}  # place/spelling -> nodes spelled otherwise
        self.has_described = False  # whether names of things may be more than a class and a number
        self._forget_caches()

    def _forget_caches(self) -> None:
        self._known: dict[int, Known] = {}
        self._names: dict[int, str] = {}
        self._classes: dict[str, tuple[str, int, bool]] = {}  # name -> its class, the code of it, if it says more
        self._here: dict[str, dict[str, list[int]]] = {}  # of the last few places: class -> nodes
        self._called: tuple[str, dict[str, str]] = "", {}  # place, name -> node that is known, as `Entities` found it
        self._called_by = (0, NO_NAMES)  # number of classes, and their names
        self._asked: tuple[Sequence[tuple[str, str]], dict[str, dict[int, None]]] | None = None  # phrases, by place

    # Changing.

    def note(self, facts: Sequence[tuple[str, str, str]], seen: Seen, sure: Mapping[int, float] = _NONE_SURE) -> Change:
        """Write facts between nodes and their time; return the graph's change.

        Args:
            facts: (node, relation, node).
            seen: when.
            sure: position of a fact -> its confidence.
        """
        time, episode, _ = seen
        num_facts = len(self._facts)
        placing, holding = self._placing, self._holding
        change = self.graph.note(facts, valid_at=time, source=episode, state=STATE)
        first_node, subjects, objects = len(self._nodes), change.subjects, change.objects
        self._nodes.lengthen(max(max(subjects), max(objects)) + 1, _EMPTY)
        self._facts.lengthen(max(change.facts) + 1, (*seen, _NONE))  # all new facts are of this batch
        all_known = self._known
        told: dict[int, int] = {}  # fact -> the thing whose place it tells
        things: dict[int, str] = {}  # nodes that have a place and a class
        for (subject, relation, object_), s, o, fact in zip(facts, subjects, objects, change.facts):
            things[s] = subject
            if relation != STATE:
                things[o] = object_
            thing = s if relation in placing else o if relation in holding else _NONE
            if thing != _NONE:
                told[fact] = thing
            if (known := all_known.get(fact)) is not None:
                known.seen, known.hit = seen, None
            elif fact >= num_facts:
                all_known[fact] = Known(subject, relation, object_, s, o, time, seen)
        self._facts.put_all(change.repeated, seen)
        if told:
            self._facts.set_many([*told], {_THING: [*told.values()]})
            self._nodes.set_many([*told.values()], {_LAST: [*told]})
        if sure or len(self._sure):
            self._note_sure(change.facts, sure, change.repeated)
        new = {i: node for i, node in things.items() if i >= first_node or self._nodes.get(i, _PLACE) == _NONE}
        if new:
            self._register(new)
        _shorten(all_known)
        _shorten(self._names)
        return change

    def _note_sure(self, facts: Sequence[int], sure: Mapping[int, float], repeated: Sequence[int] = ()) -> None:
        """Keep the confidence of facts just written.

        One that came without a confidence has none any more; one of those `repeated` is not less sure than before.
        """
        for position, fact in enumerate(facts):
            confidence = sure.get(position)
            if confidence is not None:
                self._sure.lengthen(fact + 1, (_NONE,))
            if fact < len(self._sure):
                was = self._sure.get(fact, 0)
                new = _NONE if confidence is None else round(confidence * _MICRO)
                if fact not in repeated or new == _NONE or (was != _NONE and new > was):
                    self._sure.set(fact, 0, new)
            if (known := self._known.get(fact)) is not None and known.sure != (now := self.confidence(fact)):
                known.sure, known.head, known.hit = now, None, None

    def correct(self, ended: Sequence[Sequence[int]], new: Sequence[Sequence[Any]]) -> Applied:
        """End facts at times, and add others that ended too early."""
        add = [NewFact(*fact) for fact in new]
        applied = self.graph.apply(invalidate=[(fact, time) for fact, time in ended], add=add)
        with self.graph.snapshot() as now:
            for number, (s, relation, o, time, _) in zip(applied.facts, add):
                past = [(f, now.fact(f)) for f in now.facts_of(s, "out", time - 1).tolist()]
                before = next((f for f, one in past if (one.relation, one.object) == (relation, o)), None)
                self._facts.lengthen(number + 1, _EMPTY)
                if before is not None:
                    self._facts.put(number, self._facts[before])
                    self._note_sure([number], {} if (sure := self.confidence(before)) is None else {0: sure})
                if (thing := self._facts.get(number, _THING)) != _NONE:
                    self._nodes.set(thing, _LAST, number)
        return applied

    def confidence(self, fact: int) -> float | None:
        """Return how sure a fact is; None where nobody said."""
        kept = self._sure.get(fact, 0) if fact < len(self._sure) else _NONE
        return None if kept == _NONE else kept / _MICRO

    def _register(self, nodes: Mapping[int, str]) -> None:
        """Keep place and class of new nodes, id -> node."""
        self._asked = None
        last, code, here, classes = None, _NONE, None, self._classes
        places: list[int] = []
        kinds: list[int] = []
        for number, node in nodes.items():
            place, _, name = node.rpartition(SEPARATOR)
            if (known := classes.get(name)) is None:
                kind = (spelled := class_of(name)).lower()
                described = kind != ROOM and (not name[-1:].isdigit() or " " in kind or kind != spelled)
                known = classes[name] = kind, self._kinds.code(kind), described
            if self._unusual is not None and (usual := spelling(name)) != name:
                _add_spelling(self._unusual, place, usual, node)
            kind, kind_code, described = known
            if described and place:
                self.has_described = True
            if place != last:
                last, code = place, self._places.code(place)
                if code == len(self._place_pages):
                    self._place_pages.append(0)
                    self._keep_here(place, {})  # the first thing of a place: nobody has to look for others
                here = self._here.get(place)
            self._place_pages[code] |= 1 << (number // PAGE)
            places.append(code)
            kinds.append(kind_code)
            if here is not None:
                others = here.setdefault(kind, [])
                if others and others[-1] > number:
                    here = self._here.pop(place) and None  # they stand in the order of their numbers
                else:
                    others.append(number)
        self._nodes.set_many([*nodes], {_PLACE: places, _KIND: kinds})
        self._names.update(nodes)
        _shorten(classes)

    def end(self, facts: Iterable[int], time: int) -> None:
        """End facts at a time."""
        ended = [(fact, time) for fact in dict.fromkeys(facts)]
        if ended:
            self.graph.apply(invalidate=ended)

    def spelled(self, node: str, now: Snapshot) -> str | None:
        """Return the node of the same name in another spelling, or None."""
        place, _, name = node.rpartition(SEPARATOR)
        if self._unusual is None:
            self._unusual = {}
            for known in now.names(now.node_ids()):
                its_place, _, its = known.rpartition(SEPARATOR)
                if (usual := spelling(its)) != its:
                    _add_spelling(self._unusual, its_place, usual, known)
        usual = joined(place, spelling(name)) if place else spelling(name)
        found = (one for one in (usual, *self._unusual.get(usual, ())) if one != node)
        return next((one for one in found if now.find(one) is not None), None)

    def link(self, names: Mapping[str, str], episode: int) -> None:
        """Let names of no node mean other nodes from now on."""
        if names:
            self.other_names.link(names, episode)
            self._asked, self._called = None, ("", {})

    def merge(self, old: str, node: str, seen: Seen) -> list[int]:
        """Merge a node with another one; return the facts that end."""
        with self.graph.snapshot() as now:
            number = now.find(old)
            facts = [] if number is None else now.facts_of(number, "both").tolist()
        self.end(facts, seen.time)
        self.link({name: node for name in (*self.other_names.of(old), old)}, seen.episode)
        return facts

    def looked(self, node: str, time: int) -> None:
        """Note a look at all that is in or on a node.

        Nothing is kept about what no fact was ever about.
        """
        number = self.find(node)
        if number is not None:
            self._nodes.set(number, _LOOKED, time)

    # Reading.

    def has_things_of(self, place: str) -> bool:
        """Return whether any node of a place is known.

        States, which have no place, belong to "".
        """
        return not place or self._places.find(place) is not None

    def places(self) -> list[str]:
        """Return the names of places with known things."""
        return [place for place in self._places.words if place]

    def find(self, node: str) -> int | None:
        """Return the id of the node of this name."""
        with self.graph.snapshot() as now:
            return now.find(node)

    def known(self, fact: int, now: Snapshot) -> Known:
        """Return all about a fact of a version of the graph."""
        known = self._known.get(fact)
        return self.all_known((fact,), now)[0] if known is None else known

    def all_known(self, facts: Sequence[int], now: Snapshot) -> list[Known]:
        """Return `known` of each of several facts."""
        kept = self._known
        if missing := [fact for fact in facts if fact not in kept]:
            self._read(missing, now)
        found = [kept[fact] for fact in facts]
        _shorten(kept)
        return found

    def _read(self, facts: Sequence[int], now: Snapshot) -> None:
        rows, names, sure = self._facts, self._names, len(self._sure)
        _shorten(names)
        for fact, (subject, relation, object_, s, o, since) in zip(facts, now.named_facts(facts)):
            time, episode, step, _ = rows[fact]
            subject, object_ = names.setdefault(s, subject), names.setdefault(o, object_)
            confidence = self.confidence(fact) if fact < sure else None
            self._known[fact] = Known(subject, relation, object_, s, o, since, Seen(time, episode, step), confidence)

    def names_of(self, nodes: Sequence[int], now: Snapshot) -> list[str]:
        """Return `name` of each of several nodes."""
        names = self._names
        if missing := [node for node in nodes if node not in names]:
            names.update(zip(missing, now.names(missing)))
        its_names = [names[node] for node in nodes]
        _shorten(names)
        return its_names

    def name(self, node: int, now: Snapshot) -> str:
        """Return the name of a node."""
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = now.name(node)
        return name

    def names_in(self, place: str) -> list[str]:
        """Return the names of the nodes of a place, oldest first."""
        with self.graph.snapshot() as now:
            return [self.name(node, now) for node in self.of_place(place)[0]]

    def facts_at(self, node: str, direction: Direction = "out") -> list[tuple[int, Known]]:
        """Return the current facts at the node of this name."""
        with self.graph.snapshot() as now:
            if (number := now.find(node)) is None:
                return []
            (facts,) = now.facts_of_all((number,), direction)
            return list(zip(facts, self.all_known(facts, now)))

    def position(self) -> str | None:
        """Return the agent's node of position; None if it is not known."""
        return next((known.object for _, known in self.facts_at(AGENT) if known.relation == AT), None)

    def nodes_called(self, place: str) -> dict[str, str]:
        """Return the cache of names found to be nodes, of one place."""
        if self._called[0] != place or len(self._called[1]) > _MAX_KNOWN:
            self._called = place, {}
        return self._called[1]

    def last_place(self, node: int) -> int | None:
        """Return the last fact about a thing's place."""
        fact = self._nodes.get(node, _LAST)
        return None if fact == _NONE else fact

    def place_facts(self, nodes: Sequence[int], now: Snapshot, as_of: int | None) -> list[list[int]]:
        """Return facts by node that may tell its place."""
        all_facts = now.facts_of_all(nodes, "both", as_of)
        counts = [*map(len, all_facts)]
        facts = np.fromiter(itertools.chain.from_iterable(all_facts), np.int64, sum(counts))
        things, at = self._facts.column(_THING)[facts], np.repeat(np.arange(len(nodes)), counts)
        may_tell = ((things == np.array(nodes, np.int64)[at]) | (things == _NONE)).nonzero()[0]
        place_facts: list[list[int]] = [[] for _ in nodes]
        for position, fact in zip(at[may_tell].tolist(), facts[may_tell].tolist()):
            place_facts[position].append(fact)
        return place_facts

    def states(self, node: str) -> list[str]:
        """Return the states of a thing: "open", "clean", "hot", ..."""
        return [known.object for _, known in self.facts_at(node) if known.relation == STATE]

    def place_of(self, node: str) -> tuple[str, str, str] | None:
        """Return the current fact of a thing's place; None while held."""
        with self.graph.snapshot() as now:
            number = now.find(node)
            fact = None if number is None else self.last_place(number)
            if fact is None or not now.are_current((fact,))[0]:
                return None
            known = self.known(fact, now)
        return (known.subject, known.relation, known.object) if known.subject_id == number else None

    def looked_at(self, node: int) -> int:
        """Return the last complete look's time at a node, or -1."""
        return self._nodes.get(node, _LOOKED)

    def in_place(self, place: str) -> Mapping[str, Sequence[int]]:
        """Return the things of a place: class -> ids of nodes.

        The last few places are cached.
        """
        if (here := self._here.get(place)) is None:
            by_code: dict[int, list[int]] = {}
            for number, kind in zip(*self.of_place(place)):
                by_code.setdefault(kind, []).append(number)
            words = self._kinds.words
            here = {words[kind] or "": numbers for kind, numbers in by_code.items()}
            self._keep_here(place, here)
        return here

    def _keep_here(self, place: str, things: dict[str, list[int]]) -> None:
        if len(self._here) == _MAX_PLACES:
            del self._here[next(iter(self._here))]
        self._here[place] = things

    def of_kind(self, place: str, kind: str) -> list[int]:
        """Return ids of a class's things in a place, oldest first."""
        if (here := self._here.get(place)) is not None:
            return list(here.get(kind, ()))
        code = self._kinds.find(kind)
        return [number for number, its in zip(*self.of_place(place)) if its == code]

    def like_kind(self, place: str, kind: str) -> list[int]:
        """Return ids of things of the plural or singular of a class.

        "red mug" is one for "mug".
        """
        kinds, here = forms(kind), self.in_place(place)
        return sorted(itertools.chain(*(here[one] for one in here if kinds & {one, one.rpartition(" ")[2]})))

    def known_names(self) -> Names:
        """Return the classes of all things."""
        words = self._kinds.words
        if self._called_by[0] != len(words):
            self._called_by = len(words), Names(spelling(word) for word in words if word)
        return self._called_by[1]

    def of_place(self, place: str) -> tuple[list[int], list[int]]:
        """Return ids of a place's things, oldest first, and their classes' codes."""
        if (code := self._places.find(place)) is None:
            return [], []
        numbers, kinds, pages = list[int](), list[int](), self._place_pages[code]
        while pages:
            found = self._nodes.where((pages & -pages).bit_length() - 1, _PLACE, code, _KIND)
            numbers, kinds, pages = numbers + found[0], kinds + found[1], pages & (pages - 1)
        return numbers, kinds

    def named(self, place: str, phrases: Sequence[tuple[str, str]], now: Snapshot) -> dict[int, None]:
        """Return ids of the things here that phrases name.

        A phrase is (phrase, class that it may name). The last are cached.
        """
        places = self._places_asked(phrases)
        if place not in places:
            places[place] = self._named_of(self.in_place(place), place, phrases, now)
        return places[place]

    def named_in(self, rooms: Sequence[str], phrases: Sequence[tuple[str, str]], now: Snapshot) -> list[int]:
        """Return `named` of many rooms, of the latest things of each class."""
        places = self._places_asked(phrases)
        if new := [room for room in rooms if room not in places]:
            words = {word for phrase, kind in phrases for word in (phrase, kind, phrase.removesuffix("s"))}
            kinds = [(code, (kind or "").replace("_", " ")) for code, kind in enumerate(self._kinds.words)]
            like = [code for code, kind in kinds if kind in words or kind.rpartition(" ")[2] in words]
            ends = {end for code in like for end in (kinds[code][1], kinds[code][1].rpartition(" ")[2])}
            if not self.other_names:
                phrases = [one for one in phrases if not ends.isdisjoint((*one, one[0].removesuffix("s")))]
            things = {self._places.words[code] or "": here for code, here in self._things_of_kinds(like).items()}
            places |= {room: {} for room in new}
            for room in new if self.other_names else things.keys() & new:
                places[room] = self._named_of(things.get(room, {}), room, phrases, now)
        return [node for room in rooms for node in places[room]]

    def _places_asked(self, phrases: Sequence[tuple[str, str]]) -> dict[str, dict[int, None]]:
        """Return the cache of what phrases name, by place."""
        if self._asked is None or self._asked[0] is not phrases:
            self._asked = phrases, {}
        return self._asked[1]

    def of_kinds(self, kinds: Iterable[str], most: int) -> dict[str, list[int]]:
        """Return ids of things by class, at `most` so many each."""
        nodes: dict[str, list[int]] = {}
        for kind in kinds:
            if (code := self._kinds.find(kind)) is None:
                continue
            some = list[int]()
            for page, _ in enumerate(self._nodes.pages()):
                some += self._nodes.where(page, _KIND, code, _PLACE)[0]
                if len(some) >= most:
                    break
            if some:
                nodes[kind] = some[:most]
        return nodes

    def _things_of_kinds(self, codes: Sequence[int]) -> dict[int, dict[str, list[int]]]:
        """Return the things of these classes by place and class, oldest first.

        Of more than `MOST_OF_KIND` of a class those that were seen last.
        """
        is_asked, words = np.zeros(len(self._kinds.words) + 1, np.bool_), self._kinds.words
        is_asked[codes] = True  # of no class: the last one
        pages = [
            (first + (at := is_asked[page[_KIND]].nonzero()[0]), page[:, at]) for first, page in self._nodes.pages()
        ]
        if not pages:  # nothing was seen yet
            return {}
        nodes, rows = np.concatenate([one for one, _ in pages]), np.concatenate([page for _, page in pages], axis=1)
        if len(nodes) > MOST_OF_KIND:
            times = np.append(self._facts.column(_TIME), _NONE)[rows[_LAST]]  # of no place: the last one
            order = np.lexsort((times, rows[_KIND]))
            counts = np.unique(rows[_KIND], return_counts=True)[1]
            places_left = np.repeat(np.cumsum(counts), counts) - np.arange(len(nodes))
            latest = np.sort(order[places_left <= MOST_OF_KIND])
            nodes, rows = nodes[latest], rows[:, latest]
        things: dict[int, dict[str, list[int]]] = {}
        for number, place, kind in zip(nodes.tolist(), rows[_PLACE].tolist(), rows[_KIND].tolist()):
            things.setdefault(place, {}).setdefault(words[kind] or "", []).append(number)
        return things

    def _named_of(
        self, things: Mapping[str, Sequence[int]], place: str, phrases: Sequence[tuple[str, str]], now: Snapshot
    ) -> dict[int, None]:
        """Return `named` of a place's things by class, without a cache."""
        if any("_" in kind for kind in things):
            things = {kind.replace("_", " "): nodes for kind, nodes in things.items()} | dict(things)
        long, others = [kind for kind in things if " " in kind], self.other_names or None
        found: dict[int, None] = {}
        heads: set[str] = set()  # of longer names: "key" in "car key" is no house key
        last_words = [kind.rpartition(" ")[2] for kind in long]
        for phrase, kind in phrases:
            if " " in phrase and kind == phrase and phrase in things:
                heads.add(phrase.rpartition(" ")[2])
            if kind in things and kind != phrase:
                names = {node: split(self.name(node, now))[1] for node in things[kind]}
                found.update((node, None) for node, name in names.items() if name.lower().replace("_", " ") == phrase)
            elif kind == phrase:
                one = phrase.removesuffix("s")
                nodes = things.get(phrase) or things.get(one)
                if (
                    nodes is None
                    and " " not in phrase
                    and phrase not in heads
                    and (phrase in last_words or one in last_words)
                ):  # "kettle" for "red kettle"
                    nodes = [
                        node for kind, word in zip(long, last_words) if word in (phrase, one) for node in things[kind]
                    ]
                if nodes:
                    found.update(dict.fromkeys(nodes))
                if others is not None and (other := others.meant_by(joined(place, phrase))) is not None:
                    found.update(() if (node := now.find(other)) is None else {node: None})
        return found

    def last_places(self, place: str, kind: str | None, times: np.ndarray | None) -> list[int]:
        """Return the last facts about things' places, the latest first.

        Args:
            place: its name.
            kind: a class; None for all.
            times: int64[n], ascending: only what was seen last at one of these; None for any time.
        """
        if kind is None:
            facts = self._nodes.column(_LAST)[self._nodes.column(_PLACE) == self._places.find(place)]
        else:
            nodes = self.of_kind(place, kind) or self.like_kind(place, kind)
            facts = np.array([self._nodes.get(node, _LAST) for node in nodes], np.int64)
        facts = facts[facts != _NONE]
        seen = self._facts.column(_TIME)[facts]
        if times is not None and len(facts):
            fits = np.isin(seen, times)
            facts, seen = facts[fits], seen[fits]
        latest: list[int] = facts[np.lexsort((facts, -seen))].tolist()
        return latest

    def last_sighting(self, nodes: Sequence[int]) -> int | None:
        """Return the last seen, not told, place of these nodes."""
        facts = (np.isin(self._facts.column(_THING), nodes) & (self._facts.column(_EPISODE) >= 0)).nonzero()[0]
        return int(facts[np.argmax(self._facts.column(_TIME)[facts])]) if len(facts) else None

    def seen_after(self, time: int) -> list[int]:
        """Return facts about places seen later than a time, latest first."""
        times = self._facts.column(_TIME)
        facts = ((times > time) & (self._facts.column(_THING) != _NONE)).nonzero()[0]
        latest: list[int] = facts[np.lexsort((facts, -times[facts]))].tolist()
        return latest

    # Keeping.

    def counts(self) -> tuple[int, int]:
        """Return (nodes, facts) that were not forgotten."""
        with self.graph.snapshot() as now:
            return now.num_nodes - now.num_forgotten_nodes, now.num_facts - now.num_erased_facts

    def remove(self, selector: Selector, sources: Sequence[int] = ()) -> None:
        """Remove all that names an object, or has these sources alone."""
        nodes: list[int] = []
        if selector.object is not None:
            with self.graph.snapshot() as now:
                nodes = [number for number in now.node_ids() if selector.in_text(now.name(number))]
        sources = [*sources, *(() if selector.episode is None else (selector.episode,))]
        gone = self.graph.forget(nodes, sources)
        with self.graph.snapshot() as now:
            for fact in gone.unsourced:
                if self._facts.get(fact, _EPISODE) in sources:
                    left = now.fact(fact)
                    self._facts.put(fact, (left.valid_at, left.sources[-1], _NONE, self._facts.get(fact, _THING)))
        for fact in gone.erased:
            self._facts.put(fact, _EMPTY)
            if fact < len(self._sure):
                self._sure.set(fact, 0, _NONE)
        for node in gone.nodes:
            self._nodes.put(node, _EMPTY)
        self.looks.remove(gone.nodes)
        with self.graph.snapshot() as now:
            self.other_names = OtherNames(
                row
                for row in self.other_names.rows()
                if row[2] not in sources and not selector.in_text(row[0]) and now.find(row[1]) is not None
            )
        things = self._facts.column(_THING)
        told = np.flatnonzero(things != _NONE)
        last = np.full(len(self._nodes), _NONE)
        np.maximum.at(last, things[told], told)  # a later fact about the place of a thing has a higher number
        self._nodes.set_column(_LAST, last)
        self._places = self._places.only(np.unique(self._nodes.column(_PLACE)))
        self._kinds = self._kinds.only(np.unique(self._nodes.column(_KIND)))
        self._index_places()
        self._forget_caches()
        self._unusual = None

    def fork(self) -> SpatialIndex:
        """Return an independent copy; its cost does not grow with the facts."""
        other = SpatialIndex(self.graph.fork(), self._relations)
        other._nodes, other._facts, other._sure = self._nodes.fork(), self._facts.fork(), self._sure.fork()
        other._places, other._kinds = Words(self._places.words), Words(self._kinds.words)
        other._place_pages = list(self._place_pages)
        other.other_names = OtherNames(self.other_names.rows())
        other.looks, other.has_described = self.looks.fork(), self.has_described
        other._unusual = None if self._unusual is None else dict(self._unusual)
        return other

    def parts(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """Return all of it, for `write_state`."""
        words = {
            "places": self._places.words, "kinds": self._kinds.words,
            "known_as": self.other_names.rows(), "looks": self.looks.state(),
        }  # fmt: skip
        return words, (self.graph.to_bytes(), *(rows.to_bytes() for rows in (self._nodes, self._facts, self._sure)))

    @classmethod
    def from_parts(
        cls, words: Mapping[str, Any], parts: Sequence[bytes], scope: Scope, relations: Relations
    ) -> SpatialIndex:
        """Return the index of `parts`, with the rules of these relations.

        Raises:
            InvalidInputError: anything that does not fit together.
        """
        graph, nodes, facts, sure = parts
        other = cls(KnowledgeGraph.from_bytes(graph, scope), relations)
        other.graph._set_rules(relations.rules())
        other._nodes, other._facts = PagedRows.from_bytes(nodes, 4), PagedRows.from_bytes(facts, 4)
        other._sure = PagedRows.from_bytes(sure, 1)
        other._places, other._kinds = Words(words["places"]), Words(words["kinds"])
        with other.graph.snapshot() as now:
            sizes = now.num_nodes, now.num_facts
        if sizes != (len(other._nodes), len(other._facts)) or len(other._sure) > sizes[1]:
            raise InvalidInputError(f"state: expected rows for {sizes} nodes and facts; it is damaged")
        other._nodes.check(_PLACE, _NONE, len(other._places.words) - 1)
        other._nodes.check(_KIND, _NONE, len(other._kinds.words) - 1)
        other._nodes.check(_LAST, _NONE, sizes[1] - 1)
        other._facts.check(_THING, _NONE, sizes[0] - 1)
        other.other_names = OtherNames(
            (str(name), str(node), int(episode)) for name, node, episode in words["known_as"]
        )
        other.looks = Looks.of(words["looks"], sizes[0])
        other.has_described, other._unusual = other._describes(), None
        other._index_places()
        return other

    def _describes(self) -> bool:
        """Return whether a thing's name is more than class and number.

        Of room and agent only if they are in a thing.
        """
        kinds, put = self._nodes.column(_KIND), self._nodes.column(_LAST) != _NONE
        named = [self._kinds.find(word) for word in (AGENT, ROOM)]
        nodes = ((kinds != _NONE) & (put | ~np.isin(kinds, [code for code in named if code is not None]))).nonzero()[0]
        if any(" " in (self._kinds.words[code] or "") for code in np.unique(kinds[nodes]).tolist()):
            return True
        with self.graph.snapshot() as now:
            names = [node.rpartition(SEPARATOR)[2] for node in now.names(nodes)]
        return not all(name[-1:].isdigit() and name == name.lower() for name in names)

    def _index_places(self) -> None:
        """Make `_place_pages` anew."""
        self._place_pages = [0] * len(self._places.words)
        for number, (_, page) in enumerate(self._nodes.pages()):
            for code in np.unique(page[_PLACE]).tolist():
                if code != _NONE:
                    self._place_pages[code] |= 1 << number


def _add_spelling(unusual: dict[str, tuple[str, ...]], place: str, usual: str, node: str) -> None:
    usual = joined(place, usual) if place else usual
    unusual[usual] = (*unusual.get(usual, ()), node)


def _shorten(kept: dict[Any, Any]) -> None:
    """Drop the oldest entries of a long cache.

    A few at a time: all at once would take a step 20 milliseconds.
    """
    while len(kept) > _MAX_KNOWN:
        for number in list(itertools.islice(kept, _DROPPED)):
            del kept[number]
