"""Indexes a graph of things: when each fact was last seen, and the place and class of each node.

    index = SpatialIndex(KnowledgeGraph(rules=SPATIAL_RULES))
    index.note([("home/mug 1", "on", "home/desk 1")], Seen(time=3, episode=0, step=2))
    index.of_kind("home", "mug")              # node ids
    index.known(0, now).seen                  # of a fact: Seen(3, 0, 2)

Texts are in the graph alone; beside it are rows of numbers, by node and by fact, so that saving, restoring and forking
cost little. What is asked for often is kept in dictionaries that can be made anew at any time.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import InvalidInputError
from ..graph.graph import KnowledgeGraph
from ..graph.records import Change, Scope, Triple
from ..graph.snapshot import Snapshot
from ..readers.reading import class_of
from ..store.module import Selector
from .paged_rows import PAGE, PagedRows

PLACING = ("in", "on")
HOLDS = "holds"
STATE = "is"
"""Its objects are words like "open", which have neither place nor class."""

SEPARATOR = "/"
_PLACE, _KIND, _LAST, _LOOKED = range(4)  # columns of nodes: codes of words, fact that said last where it is, time
_TIME, _EPISODE, _STEP, _THING = range(4)  # columns of facts: last sighting, and the node whose place it tells
_NONE = -1
_EMPTY = (_NONE,) * 4
_MAX_KNOWN, _DROPPED = 16384, 128
"""Limit of the caches of facts and of names, and how many entries are dropped at a time."""

_new_triple = functools.partial(tuple.__new__, Triple)
"""Makes a triple from its fields in order, in half the time of `Triple(...)`."""


class Seen(NamedTuple):
    """When something was seen."""

    time: int
    episode: int
    step: int


@dataclasses.dataclass(slots=True)
class Known:
    """A fact with its names; `text` and `data` are filled when it is rendered."""

    subject: str
    relation: str
    object: str
    subject_id: int
    object_id: int
    seen: Seen
    text: str = ""
    data: tuple[str, str, str] | None = None


def split(node: str) -> tuple[str, str]:
    """(place, name) of a node."""
    place, _, name = node.rpartition(SEPARATOR)
    return place, name


def joined(place: str, name: str) -> str:
    """The node of a thing in a place."""
    return f"{place}{SEPARATOR}{name}" if place else name


class _Words:
    """Numbers for words; a word that is not used any more leaves its number empty."""

    def __init__(self, words: Iterable[str | None] = ()):
        self.words = list(words)
        self._codes = {word: code for code, word in enumerate(self.words) if word is not None}

    def find(self, word: str) -> int | None:
        return self._codes.get(word)

    def code(self, word: str) -> int:
        code = self._codes.get(word)
        if code is None:
            code = self._codes[word] = len(self.words)
            self.words.append(word)
        return code

    def only(self, used: np.ndarray) -> _Words:
        """The same without the words whose numbers are not among these."""
        kept = set(used.tolist())
        return _Words(word if code in kept else None for code, word in enumerate(self.words))


class SpatialIndex:
    """The graph and its rows. `graph` is to read; only `note`, `end` and `remove` change it."""

    def __init__(self, graph: KnowledgeGraph):
        self.graph = graph
        self._nodes, self._facts = PagedRows(4), PagedRows(4)
        self._places, self._kinds = _Words(), _Words()
        self._place_pages: list[int] = []  # by place: bit i is set if it has nodes in page i of the rows
        self._forget_caches()

    def _forget_caches(self) -> None:
        self._known: dict[int, Known] = {}
        self._names: dict[int, str] = {}
        self._here: tuple[str, dict[str, list[int]]] | None = None  # place, class -> nodes

    # Changing.

    def note(self, facts: Sequence[tuple[str, str, str]], seen: Seen) -> Change:
        """Write facts between nodes, and when they were seen, to the graph and the rows; what changed in the graph."""
        time, episode, _ = seen
        kinds: dict[str, str] = {}  # of the nodes that have one, each worked out once
        triples = []
        for subject, relation, object_ in facts:
            kind = kinds.get(subject)
            if kind is None:
                kind = kinds[subject] = _kind(subject)
            other = "" if relation == STATE else kinds.get(object_)
            if other is None:
                other = kinds[object_] = _kind(object_)
            triples.append(_new_triple((subject, relation, object_, time, episode, kind, other, (), ())))
        change = self.graph.update(triples, extract=False)
        first_new = len(self._facts)
        self._nodes.lengthen(max(*change.subjects, *change.objects) + 1, _EMPTY)
        self._facts.lengthen(max(change.facts) + 1, (*seen, _NONE))  # all new facts are of this batch
        numbers: dict[str, int] = {}
        last: dict[int, int] = {}
        for (subject, relation, object_), s, o, fact in zip(facts, change.subjects, change.objects, change.facts):
            thing = s if relation in PLACING else o if relation == HOLDS else _NONE
            if (known := self._known.get(fact)) is None:
                self._known[fact] = Known(subject, relation, object_, s, o, seen)
            else:
                known.seen = seen
            if fact < first_new:
                self._facts.put(fact, (*seen, thing))
            elif thing != _NONE:
                self._facts.set(fact, _THING, thing)
            numbers[subject] = s
            if relation != STATE:
                numbers[object_] = o
            if thing != _NONE:
                last[thing] = fact
        self._register((node, number, kinds[node]) for node, number in numbers.items())
        for thing, fact in last.items():
            self._nodes.set(thing, _LAST, fact)
        _shorten(self._known)
        _shorten(self._names)
        return change

    def _register(self, nodes: Iterable[tuple[str, int, str]]) -> None:
        """Give the (name, id, class) that are new their place and class."""
        last, code, here = None, _NONE, None
        for node, number, kind in nodes:
            if self._nodes.get(number, _PLACE) != _NONE:
                continue
            place, kind = node.rpartition(SEPARATOR)[0], kind.lower()
            if place != last:
                last, code = place, self._places.code(place)
                if code == len(self._place_pages):
                    self._place_pages.append(0)
                    self._here = place, {}  # the first thing of a place: nobody has to look for others
                here = self._here[1] if self._here is not None and self._here[0] == place else None
            self._place_pages[code] |= 1 << (number // PAGE)
            self._nodes.put(number, (code, self._kinds.code(kind)))  # the first columns
            self._names[number] = node
            if here is not None:
                its = here.setdefault(kind, [])
                if its and its[-1] > number:
                    self._here = here = None  # they stand in the order of their numbers
                else:
                    its.append(number)

    def end(self, facts: Iterable[int], time: int) -> None:
        """These facts are no longer true from `time` on."""
        ended = [(fact, time) for fact in dict.fromkeys(facts)]
        if ended:
            self.graph.apply(invalidate=ended)

    def looked(self, node: str, time: int) -> None:
        """All that is in or on a node was seen. Nothing is kept about what no fact was ever about."""
        number = self.find(node)
        if number is not None:
            self._nodes.set(number, _LOOKED, time)

    # Reading.

    def find(self, node: str) -> int | None:
        """Id of the node of this name."""
        with self.graph.snapshot() as now:
            return now.find(node)

    def known(self, fact: int, now: Snapshot) -> Known:
        """All about a fact of a version of the graph."""
        known = self._known.get(fact)
        return self._read(now, fact) if known is None else known

    def _read(self, now: Snapshot, fact: int) -> Known:
        found = now.fact(fact)
        ends = self.name(found.subject, now), found.relation, self.name(found.object, now)
        _shorten(self._known)
        _shorten(self._names)
        known = self._known[fact] = Known(*ends, found.subject, found.object, Seen(*self._facts[fact][:_THING]))
        return known

    def name(self, node: int, now: Snapshot) -> str:
        """The name of a node."""
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = now.name(node)
        return name

    def last_place(self, node: int) -> int | None:
        """The fact that said last where a thing is."""
        fact = self._nodes.get(node, _LAST)
        return None if fact == _NONE else fact

    def looked_at(self, node: int) -> int:
        """When all that is in or on a node was seen last; -1 for never."""
        return self._nodes.get(node, _LOOKED)

    def in_place(self, place: str) -> Mapping[str, Sequence[int]]:
        """The things of a place: class -> ids of nodes. The last place is cached."""
        if self._here is None or self._here[0] != place:
            kinds: dict[str, list[int]] = {}
            for number, kind in self._of_place(place):
                kinds.setdefault(self._kinds.words[kind] or "", []).append(number)
            self._here = place, kinds
        return self._here[1]

    def of_kind(self, place: str, kind: str) -> list[int]:
        """Ids of the things of a class in a place, the oldest first."""
        if self._here is not None and self._here[0] == place:
            return list(self._here[1].get(kind, ()))
        code = self._kinds.find(kind)
        return [number for number, its in self._of_place(place) if its == code]

    def _of_place(self, place: str) -> Iterator[tuple[int, int]]:
        """(node, code of its class) of each thing of a place."""
        code = self._places.find(place)
        pages = 0 if code is None else self._place_pages[code]
        while pages:
            lowest = pages & -pages
            pages ^= lowest
            first, page = self._nodes.page(lowest.bit_length() - 1)
            found = (page[_PLACE] == code).nonzero()[0]
            yield from zip((found + first).tolist(), page[_KIND][found].tolist())

    def seen_after(self, time: int) -> list[int]:
        """Facts about places of things that were seen later than a time: the latest first, then by number."""
        numbers, times = [], []
        for first, page in self._facts.pages():
            found = np.flatnonzero((page[_TIME] > time) & (page[_THING] != _NONE))
            numbers.append(found + first)
            times.append(page[_TIME][found])
        if not numbers:
            return []
        facts, when = np.concatenate(numbers), np.concatenate(times)
        latest: list[int] = facts[np.lexsort((facts, -when))].tolist()
        return latest

    # Keeping.

    def counts(self) -> tuple[int, int]:
        """(nodes, facts) that were not forgotten."""
        with self.graph.snapshot() as now:
            return now.num_nodes - now.num_forgotten_nodes, now.num_facts - now.num_erased_facts

    def remove(self, selector: Selector) -> None:
        """Take away what names an object, and what one episode alone supports."""
        nodes: list[int] = []
        if selector.object is not None:
            with self.graph.snapshot() as now:
                nodes = [number for number in now.node_ids() if selector.in_text(now.name(number))]
        gone = self.graph.forget(nodes, [] if selector.episode is None else [selector.episode])
        with self.graph.snapshot() as now:
            for fact in gone.unsourced:
                if self._facts.get(fact, _EPISODE) == selector.episode:
                    left = now.fact(fact)
                    self._facts.put(fact, (left.valid_at, left.sources[-1], _NONE, self._facts.get(fact, _THING)))
        for fact in gone.erased:
            self._facts.put(fact, _EMPTY)
        for node in gone.nodes:
            self._nodes.put(node, _EMPTY)
        things = self._facts.column(_THING)
        told = np.flatnonzero(things != _NONE)
        last = np.full(len(self._nodes), _NONE)
        np.maximum.at(last, things[told], told)  # a later fact about the place of a thing has a higher number
        self._nodes.set_column(_LAST, last)
        self._places = self._places.only(np.unique(self._nodes.column(_PLACE)))
        self._kinds = self._kinds.only(np.unique(self._nodes.column(_KIND)))
        self._index_places()
        self._forget_caches()

    def fork(self) -> SpatialIndex:
        """An independent copy; what it costs does not depend on the number of facts, except for a list of pages."""
        other = SpatialIndex(self.graph.fork())
        other._nodes, other._facts = self._nodes.fork(), self._facts.fork()
        other._places, other._kinds = _Words(self._places.words), _Words(self._kinds.words)
        other._place_pages = list(self._place_pages)
        return other

    def parts(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """All of it, for `write_state`."""
        words = {"places": self._places.words, "kinds": self._kinds.words}
        return words, (self.graph.to_bytes(), self._nodes.to_bytes(), self._facts.to_bytes())

    @classmethod
    def from_parts(cls, words: Mapping[str, Any], parts: Sequence[bytes], scope: Scope) -> SpatialIndex:
        """What `parts` gave. Raises InvalidInputError for anything that does not fit together."""
        if len(parts) != 3:
            raise InvalidInputError(f"state: expected graph, nodes and facts, got {len(parts)} parts; it is damaged")
        other = cls(KnowledgeGraph.from_bytes(parts[0], scope))
        other._nodes, other._facts = (PagedRows.from_bytes(part, 4) for part in parts[1:])
        other._places, other._kinds = _Words(words["places"]), _Words(words["kinds"])
        with other.graph.snapshot() as now:
            sizes = now.num_nodes, now.num_facts
        if sizes != (len(other._nodes), len(other._facts)):
            raise InvalidInputError(f"state: expected rows for {sizes} nodes and facts; it is damaged")
        limits = (
            (other._nodes, _PLACE, len(other._places.words)),
            (other._nodes, _KIND, len(other._kinds.words)),
            (other._nodes, _LAST, sizes[1]),
            (other._facts, _THING, sizes[0]),
        )
        for rows, column, limit in limits:
            values = rows.column(column)
            if len(values) and not (values.min() >= _NONE and values.max() < limit):
                raise InvalidInputError(f"state: expected numbers from -1 to {limit - 1} in the rows; it is damaged")
        other._index_places()
        return other

    def _index_places(self) -> None:
        """Make `_place_pages` anew."""
        self._place_pages = [0] * len(self._places.words)
        for number, (_, page) in enumerate(self._nodes.pages()):
            for code in np.unique(page[_PLACE]).tolist():
                if code != _NONE:
                    self._place_pages[code] |= 1 << number


def _kind(node: str) -> str:
    return class_of(node.rpartition(SEPARATOR)[2])


def _shorten(kept: dict[int, Any]) -> None:
    """Drop the oldest entries if there are too many, a few at a time: all at once would take a step 20 milliseconds."""
    while len(kept) > _MAX_KNOWN:
        for number in list(itertools.islice(kept, _DROPPED)):
            del kept[number]
