"""Spatial memory: a knowledge graph of places and states, updated at each step from observations.

    spatial = SpatialMemory()
    spatial.begin(episode=0, time=0, place="kitchen 7")
    spatial.observe("You arrive at desk 1. On the desk 1, you see a mug 1.", episode=0, step=1, time=1)
    spatial.last_seen("mug 1").receptacle               # "desk 1"
    spatial.of_class("mug"); spatial.seen_after(1)
    spatial.retrieve("put a mug in fridge.")            # facts within two hops of what the query names, as items

Rules read the texts (`readers`); a text that no rule knows goes to the extractor, if there is one. A receptacle
that was looked at completely ends what was thought to be in it and is not. Entities of different places are different
nodes; the agent is one node. All change goes through `apply(event)`; the same events give the same state.

`Evidence` weighs what a detector gives. A fact of a confidence c that contradicts a surer one is believed if c >= 0.5.
Below that it is not, until sightings of the same add up: of confidences c_i since the thing was last seen where it is
known to be, 1 - prod(1 - c_i) >= 0.5. So is a denial. A thing that is in or on itself is never believed: two things of
one name would be meant, and nothing tells which.

The source of each fact is kept. What another agent or a document says of the robot itself does not enter, nor
what a more trusted fact says already or contradicts: such texts stay notes. So no fact is ended or refreshed by a
source that is trusted less than its own.

Source: RoboMemory 3.2.1 and Algorithm 1. Deviation: facts that end are kept with their times.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..errors import InvalidInputError
from .arguments import (
    WHEN,
    Fields,
    check_given,
    checked_call,
    checked_event,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_real,
    checked_rows,
    checked_text,
    checked_texts,
    shown,
)
from .entities import THETA, Entities, Found, is_body, is_meant, name_of
from .graph import MAX_HOPS, Change, ConflictRule, Direction, Ended, KnowledgeGraph, Scope, Snapshot
from .readers import DEFAULT, Reader
from .readers.reading import AGENT, NOT, ROOM, class_of, unread_lines
from .readers.telling import ROOMS, ToldPlace, is_portable, read_telling
from .record import NOTHING, Record, RecordMemory, Source, new_record, whole_number
from .relations import HOUSEHOLD_RELATIONS, Relations
from .spatial_index import AT, HOLDS, SEPARATOR, STATE, Known, Seen, SpatialIndex, joined, split
from .stored_modules import Selector
from .trust import QUOTED, RANK, Trust, checked_trust
from .vectors import decoded_vector, unit_vector
from .words import normal, phrases, spelling

EVENT = "spatial event"
_FIELDS = {
    "begin": Fields(("episode", "time")),
    "observe": Fields(WHEN),
    "tell": Fields((*WHEN, "note"), ("speaker", "when")),
    "correct": Fields(WHEN),
}
_MAX_PLACE_BYTES, _MAX_NAME_BYTES = 2048, 2047
"""Bytes of UTF-8: a node's name is both with a slash between them, and the graph takes 4,096."""


def checked_place(place: Any) -> str:
    """Check the name of a place."""
    text = checked_text("place", place)
    if len(text.encode()) > _MAX_PLACE_BYTES:
        raise InvalidInputError(f"place: expected at most {_MAX_PLACE_BYTES} bytes, got {len(text.encode())}")
    return text


def _is_unusable(name: str) -> bool:
    return not name or (4 * len(name) > _MAX_NAME_BYTES and len(name.encode()) > _MAX_NAME_BYTES)


def _drop_unusable_names(event: dict[str, Any], length: int) -> None:
    """Drop names that no thing can have: empty or very long."""
    facts, complete = event["facts"], event["complete"]
    are_long = False
    if 4 * length > _MAX_NAME_BYTES:
        rows = (*facts, *([name, *held] for name, held in complete))
        are_long = 4 * max(map(len, itertools.chain.from_iterable(rows)), default=0) > _MAX_NAME_BYTES
    if are_long or not (all(map(all, facts)) and all(name and all(held) for name, held in complete)):
        event["facts"] = [fact for fact in facts if not any(map(_is_unusable, fact[:3]))]
        event["complete"] = [[name, held] for name, held in complete if not any(map(_is_unusable, [name, *held]))]


def _are_plain(facts: Sequence[Any]) -> bool:
    """Return whether facts are lists of three ASCII names, as nearly always.

    All are looked at together, for speed.
    """
    if not all([type(fact) is list and len(fact) == 3 for fact in facts]):
        return False
    names = [*itertools.chain.from_iterable(facts)]
    try:
        text = "".join(names)
    except TypeError:
        return False
    return len(text) <= _MAX_NAME_BYTES and text.isascii() and all(names)


def _check_names(names: Sequence[Any]) -> None:
    try:
        text = "".join(names)
    except TypeError:
        text = ""
    if 0 < len(text) <= _MAX_NAME_BYTES and text.isascii() and all(names):
        return  # as nearly always
    for name in names:
        if _is_unusable(checked_text(f"{EVENT}: name", name)):
            raise InvalidInputError(f"{EVENT}: expected names of 1 to {_MAX_NAME_BYTES} bytes, got {shown(name)}")


def _check_confidence(value: Any) -> None:
    if not 0 <= checked_real(f"{EVENT}: confidence", value) <= 1:
        raise InvalidInputError(f"{EVENT}: expected a confidence from 0 to 1, got {shown(value)}")


def _checked_table(event: Mapping[str, Any], name: str, *widths: int) -> Sequence[Sequence[Any]]:
    """Check that a field has rows of these widths."""
    rows = checked_rows(f"{EVENT}: {name}", event.get(name))
    for row in rows:
        if len(checked_rows(f"{EVENT}: {name}", row)) not in widths:
            raise InvalidInputError(
                f"{EVENT}: {name}: expected {' or '.join(map(str, widths))} fields, got {shown(row)}"
            )
    return rows


BELIEVED = 0.5
_MAX_DOUBTED = 1024

Doubt = tuple[str, str, str]
"""Place, thing, and what was said of it."""
Names = tuple[str, str, str]


class Evidence(dict[Doubt, tuple[float, int]]):
    """Doubted statements: chance that all sightings were wrong, and their last episode."""

    def sure(self, doubt: Doubt, confidence: float) -> float:
        """Return the confidence in a statement with that of its earlier sightings."""
        return 1 - self.get(doubt, (1.0, 0))[0] * (1 - confidence)

    def note(self, doubt: Doubt, confidence: float, episode: int) -> None:
        """Keep a statement that was not believed."""
        self[doubt] = 1 - self.sure(doubt, confidence), episode
        if len(self) > _MAX_DOUBTED:
            del self[next(iter(self))]


def rivals(now: Snapshot, fact: Names, rules: Sequence[ConflictRule]) -> Iterator[int]:
    """Yield the current facts that repeat a fact or exclude it."""
    subject, relation, object_ = fact
    ends = {"subject": now.find(subject), "object": now.find(object_)}
    if relation in now.relations and None not in ends.values():
        same = now.find_fact(ends["subject"], relation, ends["object"])  # type: ignore[arg-type]
        if same is not None:
            yield same
    for rule in rules:
        members = [(member[0], member[1], member[2] if len(member) > 2 else ()) for member in rule.members]
        for mine, end, objects in members:
            node = ends[end]
            if mine != relation or node is None or (objects and object_ not in objects):
                continue
            for other in now.facts_of(node, "both").tolist():
                known = now.fact(other)
                if any(
                    known.relation == name
                    and (known.subject if its == "subject" else known.object) == node
                    and (not only or now.name(known.object) in only)
                    for name, its, only in members
                ):
                    yield other


_RESTING = ("in", "on")
"""Relations of a thing that cannot carry the one it is in or on."""
_MAX_INSIDE = 32
"""Contents of the places in other rooms that a query names, at most."""
_MAX_NESTED = 8  # things in one another


def circular(
    index: SpatialIndex, facts: Sequence[tuple[str, str, str]], change: Change, placing: Collection[str]
) -> list[int]:
    """Return the oldest fact of each circle that new facts close.

    Args:
        facts: (node, relation, node), as they were written; `change` is what that changed.
        placing: relations that say where a thing is.
    """
    found: list[int] = []
    for (_, relation, _), subject, object_, fact in zip(facts, change.subjects, change.objects, change.facts):
        if relation not in placing or index.last_place(object_) is None or fact in found:
            continue
        with index.graph.snapshot() as now:
            chain = _chain(index, object_, subject, _RESTING if relation in _RESTING else (relation,), now)
            if chain and not set(chain) & set(found):
                found.append(min(chain, key=lambda one: (index.known(one, now).seen.time, one)))
    return found


def _chain(index: SpatialIndex, node: int, outer: int, relations: Sequence[str], now: Snapshot) -> list[int]:
    """Return the current facts that put a node in or on another."""
    chain: list[int] = []
    while len(chain) < _MAX_NESTED:
        fact = index.last_place(node)
        if fact is None or not now.are_current((fact,))[0]:
            return []
        known = index.known(fact, now)
        if known.subject_id != node or known.relation not in relations:
            return []
        chain.append(fact)
        if known.object_id == outer:
            return chain
        node = known.object_id
    return []


_MAX_LOOKED_AT = 16
"""Things of a class that are looked at."""
SHOWN = ("in", "on")
"""Relations that a look at a receptacle shows; "under" is none of them."""

_MAX_VISITED = 64
_WHY = tuple(f"{hop} hops from what the query names or from the agent" for hop in range(MAX_HOPS + 1))
_NEAR = tuple(0.5**hop for hop in range(MAX_HOPS + 1))
_ENDED = Record._fields.index("ended")
NO_NOTE = -1
LEFT = ", not there now"


class Telling(NamedTuple):
    """A told place: its speaker, note and time; `when` in the caller's words."""

    note: int
    speaker: str
    when: str
    time: int
    episode: int
    step: int


def _source_of(time: int) -> int:
    """Return the source that stands for a telling, below any episode."""
    return -2 - time


_IN_ITSELF = "nothing is in, on or under itself"

Extractor = Callable[[str, str], Iterable[tuple[str, str, str]]]
"""(action, text) -> facts; for texts that no rule knows."""


@dataclasses.dataclass(frozen=True)
class Sighting:
    """Where a thing was seen.

    Attributes:
        name, kind: the thing, and its class.
        relation, receptacle: "on", "desk 1"; or "held by", "agent".
        place: the room, as given to `begin`.
        since, seen: times when it came there, as far as known, and when it was seen there last.
        episode, step: of the last sighting.
        current: whether nothing later contradicts.
        confidence: of the detector that was the surest; None if it was told without one.
        trust: of the most trusted source of it.
        view: from where, when and with which images the robot saw the thing last; None if nothing is known of that.
        speaker: who told the place, if it was not seen there since.
    """

    name: str
    kind: str
    relation: str
    receptacle: str
    place: str
    since: int
    seen: int
    episode: int
    step: int
    current: bool
    confidence: float | None = None
    trust: Trust = "sensor"
    view: Record | None = None
    speaker: str = ""


class SpatialMemory(RecordMemory):
    """The graph of one scope and the rules that keep it.

    Attributes:
        place: of the running episode.
        time: of the last event.
        relations: those that are declared.
    """

    format_name = "embodied_mem.spatial_memory"
    module = "spatial"

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        extractor: Extractor | None = None,
        reader: Reader = DEFAULT,
        relations: Relations = HOUSEHOLD_RELATIONS,
        theta: float = THETA,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty memory.

        Args:
            scope, record: as for `RecordedModule`.
            extractor: asked about lines that the reader does not understand; None for none.
            reader: of the world's texts.
            relations: those that are declared; facts with others are kept as they are and exclude nothing.
            theta: how sure it must be that a mention is a thing of another name, see `entities`; from 1 on, each
                name is a thing.
        """
        super().__init__(scope, record)
        if not isinstance(relations, Relations):
            raise InvalidInputError(f"relations: expected Relations(...), got {shown(relations)}")
        self._source: tuple[Seen, tuple[Source, ...]] | None = None
        self.relations, self._theta = relations, checked_real("theta", theta)
        self._followed = tuple(name for name in relations.names if name != STATE)
        self._extractor = checked_call("extractor", extractor)
        self._reader = reader
        self._clear()

    def _clear(self) -> None:
        self._set_index(SpatialIndex(KnowledgeGraph(self.scope, rules=self.relations.rules()), self.relations))
        self._trust: dict[int, Trust] = {}  # of facts that the robot did not see itself
        self._tellings: dict[int, Telling] = {}  # by their number as sources of facts
        self._evidence = Evidence()
        self.place = ""
        self.time = 0
        self._began = 0
        self._episode: int | None = None  # the running one; None if it is not known
        self._changes: list[tuple[str, Sequence[int]]] = []  # by the last event: what was done, and with which facts
        self.conflicts: list[Ended] = []  # by the last event: what ended by another fact
        self.doubtful: list[Ended] = []  # of these: by a fact that no rule read
        self._asked: tuple[str, Sequence[tuple[str, str]]] = ("", ())  # the last query and its phrases
        self._rooms: set[str] = set()  # places that share their things with each other and with ""

    @property
    def changed(self) -> list[tuple[str, int]]:
        """Changes by the last event: the operation and the fact."""
        return [(do, fact) for do, facts in self._changes for fact in facts]

    def _set_index(self, index: SpatialIndex) -> None:
        self._index = index
        self._entities = Entities(index, self.relations, self._theta)

    # Changing.

    def begin(self, *, episode: int, time: int, place: str = "", is_home: bool = False) -> None:
        """Start an episode: position and hand are unknown, the place stays known.

        Args:
            episode, time: its number, and when it begins.
            place: where it is played.
            is_home: whether the place is a home of its own; else it is a room of one home with all other rooms.
        """
        event = {"op": "begin", "episode": episode, "time": time, "place": checked_place(place)}
        self._record(event | ({"room": True} if not checked_flag("is_home", is_home) and place else {}))

    def observe(self, text: str = "", **where: Any) -> None:
        """Note a text and given facts; arguments as for `propose`."""
        self._record(self.propose(text, **where))

    def propose(
        self,
        text: str = "",
        *,
        episode: int,
        step: int,
        time: int,
        action: str = "",
        given: Sequence[list[Any]] = (),
        trust: Trust = "sensor",
        vectors: Mapping[str, Any] | None = None,
        is_read: bool = False,
    ) -> dict[str, Any]:
        """Return the event that `observe` records; nothing changes.

        The extractor is asked here, never on replay.

        Args:
            text: what the reader reads, and the extractor where it does not understand.
            episode, step, time: when.
            action: what the text answers.
            given: [subject, relation, object, confidence] as a detector gives them; a confidence may be None.
            trust: of who says it. What another agent or a document writes is not read for facts: "you open the drawer"
                may be an order. Facts that they give enter as the module says.
            vectors: name of a thing -> float32[d], what it looks like.
            is_read: whether a model has read the text, so that the extractor is not asked.
        """
        text, action = checked_text("text", text), checked_text("action", action)
        if checked_trust("trust", trust) in QUOTED:
            text = ""
        reading = self._reader.read(text)
        facts: Iterable[Sequence[str]] = reading.facts
        if self._extractor is not None and not is_read and (unread := unread_lines(self._reader, text, reading)):
            extracted = self._extractor(action, "\n".join(unread))
            if not isinstance(extracted, Iterable):
                raise InvalidInputError(f"extractor's answer: expected a list of facts, got {shown(extracted)}")
            facts = [*facts, *extracted]
        event: dict[str, Any] = {
            "op": "observe",
            "episode": episode,
            "step": step,
            "time": time,
            "facts": [list(fact) if isinstance(fact, tuple) else fact for fact in facts],
            "complete": [[name, list(contents)] for name, contents in reading.complete],
        }
        if trust != "sensor":
            event["trust"] = trust
        if reading.departures:
            event["gone"] = [node for name in reading.departures for node in self._one_thing(name)]
        if facts is reading.facts:
            _drop_unusable_names(event, len(text))
        if given or facts is not reading.facts:
            event["read"] = len(reading.facts)
        if loops := [fact for fact in event["facts"] if fact[0] == fact[2] and fact[1] in self.relations.placing]:
            event["facts"] = [fact for fact in event["facts"] if fact not in loops]
            event["refused"] = [[*fact[:3], None, _IN_ITSELF] for fact in loops]
        believed = self._weighed(event, given, vectors) if given else ()
        event["facts"] += [list(fact[:3]) if fact[3] is None else list(fact) for fact in believed]
        if vectors:
            event["vectors"] = self._index.looks.encoded(vectors)
        return event

    def propose_telling(
        self,
        text: str,
        *,
        episode: int,
        step: int,
        time: int,
        speaker: str = "",
        when: str = "",
        trust: Trust = "user",
    ) -> dict[str, Any] | None:
        """Return the event with the places that somebody tells; None for none.

        Nothing changes, and the event names no note. A thing that was seen is meant by its name or, if there is one
        only, by its class. Its room is the one that is told, or the only one that has the receptacle.

        Args:
            text: what is said.
            episode, step, time: when.
            speaker, when: who said it, and the date in words.
            trust: of who says it; a quotation tells nothing.
        """
        if trust in QUOTED or _is_unusable(text):
            return None
        telling = read_telling(text, self._index.known_names())
        is_free = functools.partial(self._is_free, text=normal(text), speaker=speaker)
        facts = [list(self._on_map(place)) for place in telling.places if is_free(place.thing)]
        names = filter(is_free, telling.departures)
        left = list(dict.fromkeys(node for name in names for node in self._one_thing(name)))
        if not facts and not left:
            return None
        where = {"episode": episode, "step": step, "time": time}
        origin = {"note": NO_NOTE, "speaker": speaker, "when": when, "trust": trust}
        return {"op": "tell", **where, **origin, "facts": facts, "gone": left}

    def _is_free(self, thing: str, text: str, speaker: str) -> bool:
        """Decide whether "my keys" are not those of another teller."""
        numbers = map(self._index.find, self._one_thing(thing) if f"my {thing}" in text else ())
        facts = [None if number is None else self._index.last_place(number) for number in numbers]
        who = normal(speaker or self.scope.user or "user")
        return all(normal(self.teller(fact)[0] or who) == who for fact in facts if fact is not None)

    def propose_retelling(self, text: str, old: str, note: int, **more: Any) -> dict[str, Any] | None:
        """Return the event where a note tells another text; None for none.

        Args:
            text, old: what it says now, and before.
            note: its number.
            more: as for `propose_telling`.
        """
        before, event = self.propose_telling(old, **more), self.propose_telling(text, **more)
        if before is None:
            return None if event is None else event | {"note": note}
        event = event or before | {"facts": [], "gone": []}
        again = {spelling(fact[0]) for fact in event["facts"]}
        names = [name for name, *_ in before["facts"] if spelling(name) not in again]
        nodes = [node for name in names for node in self._one_thing(name) if self._is_told_by(node, note)]
        nodes = list(dict.fromkeys([*event["gone"], *nodes]))
        return event | {"note": note, "gone": nodes} if event["facts"] or nodes else None

    def _is_told_by(self, node: str, note: int) -> bool:
        """Return whether a note told last where a thing is."""
        number = self._index.find(node)
        fact = None if number is None else self._index.last_place(number)
        if fact is None:
            return False
        with self.graph.snapshot() as now:
            telling = self._tellings.get(self._index.known(fact, now).seen.episode)
        return telling is not None and telling.note == note

    def _on_map(self, telling: ToldPlace) -> tuple[str, str, str, float | None, str]:
        """Return thing, relation, receptacle, confidence and room, as the map calls them."""
        things = [split(node)[1] for node in self._one_thing(telling.thing)]
        room = next((one for name in (telling.place, *telling.within) if (one := self._room(name)) is not None), None)
        place, rooms = telling.place, dict[str, None]()
        for name in (place, *telling.within, place.partition(" of ")[2]) if room != place else ():
            nodes = self._present(self._nodes_called(name)) if name and not rooms else []
            rooms |= dict.fromkeys(split(node)[0] for node in nodes)
            names = dict.fromkeys(split(node)[1] for node in nodes)
            place = next(iter(names)) if name == place and len(names) == 1 else place
        if room is None:
            room = next(iter(rooms)) if len(rooms) == 1 else self.place if self.place in rooms else self._nowhere()
        return things[0] if things else telling.thing, telling.relation, place, telling.sure, room

    def known_place(self, name: str) -> str:
        """Return a room's first spelling; other names as they are."""
        return {spelling(room): room for room in sorted(self._rooms)}.get(spelling(name), name)

    def _room(self, name: str) -> str | None:
        """Return a room of the home, perhaps new; None for others."""
        if (room := self.known_place(name)) in self._rooms:
            return room
        is_new = self._nowhere() == "" and name.rpartition(" ")[2] in ROOMS and not self._nodes_called(name)
        return name if is_new else None

    def _nowhere(self) -> str:
        """Return the place of what is somewhere in this home."""
        return "" if not self.place or self.place in self._rooms else self.place

    def _nodes_called(self, name: str) -> list[str]:
        """Return this home's nodes of a name, or else of a class."""
        rooms, usual = dict.fromkeys((self.place, *self._others(self.place))), spelling(name)
        with self.graph.snapshot() as now:
            pairs = self._entities.found([joined(room, usual) for room in rooms], now)
            nodes = [node for node, is_there in pairs if is_there]
            if not nodes:
                nodes = [self._index.name(n, now) for room in rooms for n in self._index.like_kind(room, usual)]
        return list(dict.fromkeys(nodes))

    def _one_thing(self, name: str) -> list[str]:
        """Return the nodes of the one thing of a name."""
        pairs = [(node, self._index.place_of(node)) for node in self._nodes_called(name)]
        nodes = [node for node, where in pairs if where is not None] or [node for node, _ in pairs]
        return nodes if len({spelling(split(node)[1]) for node in nodes}) == 1 else []

    def _weighed(
        self, event: dict[str, Any], given: Sequence[list[Any]], vectors: Mapping[str, Any] | None
    ) -> list[list[Any]]:
        """Return the believed facts; put the others into the event with reasons."""
        believed, refused = [], []
        looks: Mapping[str, Any] | None = None
        for fact in given:
            if fact[0][-1] != fact[2][-1] and (fact[3] is None or fact[3] >= BELIEVED):
                believed.append(fact)  # as nearly always
                continue
            if looks is None:
                looks = self._index.looks.decoded(self._index.looks.encoded(vectors)) if vectors else {}
            sure, reason = self._doubted(fact, looks)
            believed += [[*fact[:3], sure]] if not reason else []
            refused += [[*fact, reason]] if reason else []
        if refused:
            event["refused"] = event.get("refused", []) + refused
        return believed

    def _doubted(self, fact: list[Any], looks: Mapping[str, Any]) -> tuple[float | None, str]:
        """Return a fact's confidence over all sightings and its refusal's reason.

        The reason is empty for a fact that is believed.
        """
        sure, denies = fact[3], fact[1].startswith(NOT)
        subject, relation, object_ = self.relations.read(fact[0], fact[1].removeprefix(NOT), fact[2])
        tells_place = not denies and relation in self.relations.placing + self.relations.holding
        if tells_place and self._node(subject) == self._node(object_):
            return sure, _IN_ITSELF
        if sure is None or sure >= BELIEVED or self._extractor is not None:
            return sure, ""
        with self.graph.snapshot() as now:
            if denies:
                rivals_of = self.denied(*fact[:3])
            else:
                (nodes,) = self._entities.of([fact[:3]], self.place, looks).facts
                rivals_of = [other for other in rivals(now, nodes, self.graph.rules) if self.triple(other) != nodes]
                rivals_of += self._elsewhere([nodes], looks)
            known = {other: 1.0 if (its := self.confidence(other)) is None else its for other in rivals_of}
        total = self._evidence.sure(_doubt(self.place, subject, relation, object_, denies), sure)
        surest = max(known, key=known.__getitem__, default=None)
        if surest is None or known[surest] <= sure or total >= BELIEVED:
            return total if surest is not None else sure, ""
        return sure, f"less sure than {self.texts_of([surest])[0]}"

    def outweighed(self, ended: Ended) -> bool:
        """Return whether an ended fact is surer than its unlikely successor."""
        new, old = self.confidence(ended.by), self.confidence(ended.fact)
        return new is not None and new < BELIEVED and (old is None or new < old)

    def check(self, event: Mapping[str, Any]) -> None:
        op = checked_event(EVENT, event, _FIELDS)
        if op == "begin":
            checked_place(event.get("place"))
            check_given(EVENT, event, room=checked_flag)
        elif op == "correct":
            for numbers in _checked_table(event, "invalidate", 2):
                for number in numbers:
                    checked_number(f"{EVENT}: invalidate", number)
            for subject, relation, object_, time, source in _checked_table(event, "add", 5):
                _check_names([relation])
                for number in (subject, object_, time, *(() if source is None else (source,))):
                    checked_number(f"{EVENT}: add", number)
        elif op == "tell":
            checked_trust(f"{EVENT}: trust", event.get("trust"))
            for *names, sure, room in _checked_table(event, "facts", 5):
                _check_names(names)
                checked_place(room)
                if sure is not None:
                    _check_confidence(sure)
            checked_texts(f"{EVENT}: gone", event.get("gone"))
        else:
            check_given(EVENT, event, trust=checked_trust, gone=checked_texts)
            if not _are_plain(checked_rows(f"{EVENT}: facts", event.get("facts"))):
                for fact in _checked_table(event, "facts", 3, 4):
                    _check_names(fact[:3])
                    for confidence in fact[3:]:
                        _check_confidence(confidence)
            for *fact, confidence, reason in _checked_table(event, "refused", 5) if "refused" in event else ():
                _check_names([*fact, reason])
                if confidence is not None:
                    _check_confidence(confidence)
            if "vectors" in event:
                for name, look in checked_mapping(f"{EVENT}: vectors", event["vectors"]).items():
                    _check_names([name])
                    unit_vector(name, decoded_vector(look))
            for container, contents in _checked_table(event, "complete", 2):
                _check_names([container, *checked_rows(f"{EVENT}: complete", contents)])

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply an event that has passed `check`.

        Raises InvalidInputError for one that is older than the last.
        """
        op, time = event["op"], event["time"]
        if time < self.time:
            raise InvalidInputError(f"{EVENT}: expected a time from {self.time} on, got {time}")
        self.time, self._episode = time, event["episode"]
        self._changes, self.conflicts, self.doubtful = [], [], []
        if op == "correct":
            applied = self._index.correct(event["invalidate"], event["add"])
            self._changes = [("end", [fact for fact, _ in event["invalidate"]]), ("add", applied.facts)]
            return
        if op == "begin":
            self.place, self._began = event["place"], time
            if event.get("room"):
                self._rooms.add(self.place)
            self._index.end(self._agent_facts(), time)
            return
        at = Seen(time, event["episode"], event["step"])
        self._leave(event.get("gone", ()))
        if op == "tell":
            self._tell(event, at)
        else:
            self._observe(event, at, self.place)

    def _leave(self, nodes: Iterable[str]) -> None:
        """End the places of things."""
        facts = []
        for node in nodes:
            number = self._index.find(node)
            fact = None if number is None else self._index.last_place(number)
            if fact is not None:
                facts.append(fact)
        with self.graph.snapshot() as now:
            facts = [fact for fact, is_current in zip(facts, now.are_current(facts)) if is_current]
        self._index.end(facts, self.time)
        self._changes.append(("end", facts))

    def _tell(self, event: Mapping[str, Any], at: Seen) -> None:
        """Apply a telling, itself the source of its facts."""
        if not event["facts"]:
            return
        source = _source_of(at.time)
        self._tellings[source] = Telling(event["note"], event["speaker"], event["when"], *at)
        for *fact, sure, room in event["facts"]:
            if room and room not in self._rooms and self._nowhere() == "":
                self._rooms.add(room)
            row = {"facts": [fact if sure is None else [*fact, sure]], "complete": (), "trust": event["trust"]}
            self._observe(row, at._replace(episode=source), room)

    def _observe(self, event: Mapping[str, Any], seen: Seen, place: str) -> None:
        index, time, trust = self._index, seen.time, event.get("trust", "sensor")
        quoted = trust in QUOTED
        looks = index.looks.decoded(event.get("vectors", {}))
        said = [fact for fact in event["facts"] if fact[1][: len(NOT)] != NOT]  # `startswith` is slower
        complete = () if quoted else event["complete"]
        found = self._entities.of(said, place, looks)
        gone = [fact for name, names in complete for fact in self._gone(name, names, found)]
        if len(said) != len(event["facts"]) and not quoted:
            gone += [n for fact in event["facts"] if fact[1].startswith(NOT) for n in self.denied(*fact[:3])]
        index.end(gone, time)
        changes = self._changes
        changes.append(("end", gone))
        facts = found.facts
        if quoted:
            admitted = self._admitted(facts, trust, found.looks)
            said, facts = [said[i] for i in admitted], [facts[i] for i in admitted]
        if facts:
            sure = {position: fact[3] for position, fact in enumerate(said) if len(fact) == 4}
            change = index.note(facts, seen, sure)
            changes += [("add", change.added), ("repeat", change.repeated)]
            changes.append(("end", [ended.fact for ended in change.ended]))
            added = [self.triple(fact) for fact in change.added] if self._rooms else []
            if moved := self._elsewhere(added, found.looks):
                index.end(moved, time)
                changes.append(("end", moved))
            if ended := circular(index, facts, change, self.relations.placing):
                index.end(ended, time)
                changes.append(("end", ended))
            if self._evidence:
                settled = {self.relations.read(*fact[:3])[0] for fact in said}
                for doubt in [one for one in self._evidence if one[0] == place and one[1] in settled]:
                    del self._evidence[doubt]
            if trust != "sensor" or self._trust:
                self._note_trust(change, trust)
            self.conflicts += [] if quoted else change.ended
            if self.conflicts and (by_rules := event.get("read")) is not None:
                sources = dict(zip(change.facts, (i for i, f in enumerate(event["facts"]) if not f[1].startswith(NOT))))
                self.doubtful = [ended for ended in change.ended if sources[ended.by] >= by_rules]
        if not quoted:
            for old, node in found.merged:
                changes.append(("end", index.merge(old, node, seen)))
            index.link(found.known_as, seen.episode)
            index.looks.put({n: look for node, look in found.looks.items() if (n := index.find(node)) is not None})
        for name, _ in complete:
            if name != AGENT:
                node = self._node(name)
                if left := [fact for fact, _ in self._came_in(node)]:  # what is still there was noted here
                    index.end(left, time)
                    changes.append(("end", left))
                index.looked(node, time)
        for subject, relation, object_, sure, _ in event.get("refused", ()):
            if sure is not None:
                doubt = self.relations.read(subject, relation.removeprefix(NOT), object_)
                self._evidence.note(_doubt(self.place, *doubt, relation.startswith(NOT)), sure, seen.episode)

    def _admitted(self, facts: Sequence[Names], trust: Trust, looks: Mapping[str, Any]) -> list[int]:
        """Return the positions of facts that a source may write."""
        with self.graph.snapshot() as now:
            return [
                position
                for position, fact in enumerate(facts)
                if not any(name.partition(SEPARATOR)[0] == AGENT for name in fact)  # itself and its hands
                and all(
                    RANK[self.trust_of(other)] <= RANK[trust]
                    for other in (*rivals(now, fact, self.graph.rules), *self._elsewhere([fact], looks))
                )
            ]

    def _note_trust(self, change: Change, trust: Trust) -> None:
        """Note the source of changed facts; the most trusted one counts."""
        levels = dict.fromkeys(change.added, trust)
        levels |= {fact: max(self.trust_of(fact), trust, key=RANK.__getitem__) for fact in change.repeated}
        self._trust |= levels
        for fact in [fact for fact, level in levels.items() if level == "sensor"]:
            del self._trust[fact]

    def _elsewhere(self, facts: Iterable[tuple[str, str, str]], looks: Mapping[str, Any]) -> list[int]:
        """List current facts that put these things in other rooms.

        Names say which things are meant. Things whose looks are known to differ are two.
        """
        found: list[int] = []
        for fact in facts if self._rooms else ():
            if (held := self._entities.holder(*fact)) is None or is_body(held[0]):
                continue
            name = split(held[0])[1]
            with self.graph.snapshot() as now:
                numbers = self._namesakes(held[0], now)
                last = {n: f for n in numbers if (f := self._index.last_place(n)) is not None}
                is_current = dict(zip(last, now.are_current([*last.values()])))
            for number, where in last.items():
                look = looks.get(held[0], looks.get(name))
                alike = None if look is None else self._index.looks.cosine(number, look)
                if is_current[number] and (alike is None or alike > self._theta):
                    found.append(where)
        return list(dict.fromkeys(found))

    def _namesakes(self, node: str, now: Snapshot) -> list[int]:
        """Return nodes of this name in the other rooms."""
        place, name = split(node)
        others = [joined(room, name) for room in self._others(place)]
        nodes = [other for other, is_there in self._entities.found(others, now) if is_there and other != node]
        return [number for number in now.find_all(nodes) if number is not None]

    # Containers that are carried to another room: their contents keep their facts, and reading follows the container.

    def _now_at(self, node: int, last_time: int, now: Snapshot, as_of: int | None = None) -> tuple[int, Known | None]:
        """Return a container's present node and place.

        It is another node if the container came to another room after a time, or if its room was not known.

        Args:
            node: as its contents have it.
            last_time: when they were seen in it.
            now, as_of: the graph, and the time that is asked for.
        """
        name = self._index.name(node, now)
        is_placed = self._index.last_place(node) is not None
        if not self._rooms or is_body(name) or not is_portable(split(name)[1], is_placed):
            return node, self._place_at([node], now, as_of)[0] if is_placed else None
        nodes = [node, *self._namesakes(name, now)]
        own, *places = self._place_at(nodes, now, as_of)
        looks = self._index.looks
        others = [
            (place, other) for place, other in zip(places, nodes[1:])
            if place is not None and not looks.has_other_look(node, other, self._theta)
        ]  # fmt: skip
        if own is not None or not others:
            return node, own
        place, other = max(others, key=lambda one: (one[0].since, one[1]))
        return (other, place) if place.since > last_time or not split(name)[0] else (node, None)

    def _place_at(self, nodes: Sequence[int], now: Snapshot, as_of: int | None) -> list[Known | None]:
        """Return the place fact of each node that holds at a time."""
        its_places: list[Known | None] = []
        for node, facts in zip(nodes, self._index.place_facts(nodes, now, as_of)):
            rows = (self._index.known(fact, now) for fact in facts)
            places = (row for row in rows if (row.subject_id, row.relation in self.relations.placing) == (node, True))
            its_places.append(next(places, None))
        return its_places

    def _present(self, nodes: Iterable[str]) -> list[str]:
        """Return nodes without those of containers that left their rooms."""
        with self.graph.snapshot() as now:
            numbers = {node: now.find(node) for node in nodes}
            return [node for node, at in numbers.items() if at is None or self._now_at(at, -1, now)[0] == at]

    def _carried_to(self, fact: Known, now: Snapshot, as_of: int | None = None) -> str | None:
        """Return the room of a container carried there; None for its own."""
        room, chain = None, [fact]
        while self._rooms and chain[-1].relation in self.relations.placing and len(chain) <= _MAX_NESTED:
            inner = chain[-1]
            time = inner.seen.time if as_of is None else inner.since
            node, outer = self._now_at(inner.object_id, time, now, as_of)
            room = room if node == inner.object_id else split(self._index.name(node, now))[0]
            if outer is None:
                break
            chain.append(outer)
        return room

    def _came_in(self, node: str, as_of: int | None = None) -> list[tuple[int, Known]]:
        """Return facts that put things into a container before it came here."""
        if not self._rooms or not is_portable(split(node)[1], is_placed=True):
            return []
        with self.graph.snapshot() as now:
            number = now.find(node)
            numbers = [] if number is None else self._namesakes(node, now)
            facts = [*itertools.chain.from_iterable(now.facts_of_all(numbers, "in", as_of))]
            rows = zip(facts, self._index.all_known(facts, now))
            times = ((fact, row, row.seen.time if as_of is None else row.since) for fact, row in rows)
            return [
                (fact, row)
                for fact, row, time in times
                if row.relation in SHOWN and self._now_at(row.object_id, time, now, as_of)[0] == number
            ]

    def _inside(self, nodes: Sequence[int], now: Snapshot, as_of: int | None) -> dict[int, Known]:
        """Return the newest facts that put things in or on nodes."""
        facts = sorted(itertools.chain.from_iterable(now.facts_of_all(nodes, "in", as_of)))[-_MAX_INSIDE:]
        known = zip(facts, self._index.all_known(facts, now))
        return {fact: row for fact, row in known if row.relation in SHOWN}

    def denied(self, subject: str, relation: str, object_: str) -> list[int]:
        """Return the current facts that a negative fact ends.

        Things of this name or class are meant, whatever else they are.
        """
        subject, relation, object_ = self.relations.read(subject, relation.removeprefix(NOT), object_)
        node, other = self._node(subject), object_ if relation == STATE else self._node(object_)
        here, mention = self._of_node(other, "in", (relation,)), name_of(subject)
        here += [row for row in self._came_in(other) if row[1].relation == relation]
        return [
            fact
            for fact, known in here
            if node in (known.subject, class_of(known.subject))
            or (relation != STATE and is_meant(mention, self._entities.names_of(known.subject)))
        ]

    def _agent_facts(self) -> list[int]:
        """Return current facts about the agent's position and its hands' contents."""
        hands = self._index.of_place(AGENT)[0]
        with self.graph.snapshot() as now:
            body = now.find(AGENT)
            nodes = hands if body is None else [body, *hands]
            facts = [*itertools.chain.from_iterable(now.facts_of_all(nodes, "out"))]
            found = zip(facts, self._index.all_known(facts, now))
        return [fact for fact, its in found if its.relation == HOLDS or (its.relation == AT and its.subject == AGENT)]

    def _gone(self, container: str, contents: Iterable[str], found: Found) -> list[int]:
        """Return current facts about a container that its new contents end."""
        kept = {node for name in contents for node in found.named(name) or (self._node(name),)}
        if container == AGENT:
            return [fact for fact, known in self._of_node(AGENT, "out", (HOLDS,)) if known.object not in kept]
        inside = self._of_node(self._node(container), "in", SHOWN)
        return [fact for fact, known in inside if known.subject not in kept]

    # Reading.

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph, to read. Its nodes are called "place/name"."""
        return self._index.graph

    def _node(self, name: str) -> str:
        return self._entities.node(self.place, name)

    def _of_node(self, node: str, direction: Direction, relations: tuple[str, ...]) -> list[tuple[int, Known]]:
        """Return the current facts at a node with these relations."""
        return [(fact, known) for fact, known in self._index.facts_at(node, direction) if known.relation in relations]

    def states(self, name: str) -> set[str]:
        """Return the states of a thing of the present place: "open", "hot"."""
        return set(self._index.states(self._node(checked_text("name", name))))

    def states_seen(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the states of things here, with the last sighting of each."""
        found = {}
        with self.graph.snapshot() as now:
            for name in checked_texts("names", names):
                if (number := now.find(self._node(name))) is not None:
                    facts = [self._index.known(fact, now) for fact in now.facts_of(number, "out").tolist()]
                    found[name] = {known.object: known.seen.time for known in facts if known.relation == STATE}
        return found

    def inside(self, receptacle: str) -> list[str]:
        """Return the names of all that is in or on a receptacle."""
        node = self._node(checked_text("receptacle", receptacle))
        inside = self._of_node(node, "in", SHOWN) + self._came_in(node)
        return [split(known.subject)[1] for _, known in inside]

    def held(self) -> list[str]:
        """Return the names of all that the agent holds, in any hand."""
        found = [
            known for node in (AGENT, *self._index.names_in(AGENT)) for _, known in self._of_node(node, "out", (HOLDS,))
        ]
        return [split(known.object)[1] for known in found]

    def position(self) -> str:
        """Return the agent's position; "" if it is not known."""
        node = self._index.position()
        return "" if node is None else split(node)[1]

    def unsearched(self) -> list[str]:
        """Return receptacles not yet looked at completely in this episode."""
        rooms = self._of_node(self._node(ROOM), "in", ("in room",))
        new = [known for _, known in rooms if self._index.looked_at(known.subject_id) < self._began]
        return [split(known.subject)[1] for known in new]

    def last_seen(self, name: str, place: str | None = None) -> Sighting | None:
        """Return the last sighting of a thing; None if there is none.

        Args:
            name: of the thing.
            place: None for the present one.
        """
        node = self._index.find(self._entities.node(self._place(place), checked_text("name", name)))
        fact = None if node is None else self._index.last_place(node)
        if fact is None:
            return None
        with self.graph.snapshot() as now:
            return self._sighting(fact, now)

    def of_class(self, kind: str, place: str | None = None, after: int | None = None) -> list[Sighting]:
        """Return the last sightings of a class, the latest first.

        Args:
            kind: e.g. "mug".
            place: None for the present one.
            after: only what was seen later than this time.
        """
        if after is not None:
            after = checked_number("after", after)
        nodes = self._index.of_kind(self._place(place), checked_text("kind", kind).lower())
        facts = [fact for fact in map(self._index.last_place, nodes) if fact is not None]
        with self.graph.snapshot() as now:
            found = [self._sighting(fact, now) for fact in facts]
        found = [one for one in found if after is None or one.seen > after]
        return sorted(found, key=lambda one: -one.seen)

    def kinds(self, place: str | None = None) -> frozenset[str]:
        """Return the classes, in small letters, of all things in a place.

        None: the present place.
        """
        return frozenset(self._index.in_place(self._place(place)))

    def things_among(self, words: Iterable[str]) -> set[str]:
        """Return the words that are classes of things, furniture aside."""
        with self.graph.snapshot() as now:
            return {
                kind for kind, numbers in self._index.of_kinds(words, _MAX_LOOKED_AT).items()
                if not any(self._is_furniture(number, now) for number in numbers)
            }  # fmt: skip

    def _is_furniture(self, number: int, now: Snapshot) -> bool:
        """Decide whether it stands in a room, or only holds things."""
        out, into = (
            {self._index.known(fact, now).relation for fact in now.facts_of(number, one).tolist()}
            for one in ("out", "in")
        )
        return "in room" in out or (out.isdisjoint(SHOWN) and not into.isdisjoint(SHOWN))

    def places(self) -> list[str]:
        """List the places with known things, and the present one."""
        return list(dict.fromkeys([*self._index.places(), *([self.place] if self.place else [])]))

    def _others(self, place: str) -> list[str]:
        """List the other rooms of the home that a place is in."""
        if not self._rooms or (place and place not in self._rooms):
            return []
        return [room for room in ("", *sorted(self._rooms)) if room != place]

    def _place(self, place: str | None) -> str:
        return self.place if place is None else checked_text("place", place)

    def seen_after(self, time: int) -> list[Sighting]:
        """Return what was seen later than a time, the latest first."""
        facts = self._index.seen_after(checked_number("time", time))
        with self.graph.snapshot() as now:
            return [self._sighting(fact, now) for fact in facts]

    def _sighting(self, fact: int, now: Snapshot) -> Sighting:
        known, found = self._index.known(fact, now), now.fact(fact)
        thing, other, relation = known.subject, known.object, known.relation
        if relation in self.relations.holding:
            thing, other, relation = other, thing, "held by"
        place, name = split(thing)
        where, receptacle = split(other)
        if relation != "held by" and where != AGENT:
            place = where or place  # a thing that is known from another room by its looks is where it is now
        if found.invalid_at is None and (room := self._carried_to(known, now)) is not None:
            place = room
        telling = self._tellings.get(known.seen.episode)
        return Sighting(
            name,
            class_of(name),
            relation,
            receptacle,
            place,
            found.valid_at,
            known.seen.time,
            known.seen.episode if telling is None else telling.episode,
            known.seen.step,
            current=found.invalid_at is None,
            confidence=known.sure,
            trust=self.trust_of(fact),
            speaker="" if telling is None else self._teller(telling),
        )

    def _teller(self, telling: Telling) -> str:
        return telling.speaker or self.scope.user or "user"

    def teller(self, fact: int) -> tuple[str, str]:
        """Return who told a place not seen since, and when."""
        with self.graph.snapshot() as now:
            telling = self._tellings.get(self._index.known(fact, now).seen.episode)
        return ("", "") if telling is None else (self._teller(telling), telling.when)

    def last_places(
        self, kind: str | None = None, place: str | None = None, times: np.ndarray | None = None, k: int | None = None
    ) -> list[Sighting]:
        """Return last sightings, the latest first: each thing once in a home.

        Args:
            kind: e.g. "mug"; None for all.
            place: None for the present one and the other rooms of its home.
            times: int64[n], ascending: only what was seen last at one of these; None for any time.
            k: at most so many.
        """
        kind = None if kind is None else checked_text("kind", kind).lower()
        rooms = [self._place(place), *self._others(self._place(place))]
        if len(rooms) == 1:
            facts = self._index.last_places(rooms[0], kind, times)
            with self.graph.snapshot() as now:
                return [self._sighting(fact, now) for fact in facts[:k]]
        facts = [fact for room in rooms for fact in self._index.last_places(room, kind, None)]
        wanted = None if times is None else set(times.tolist())
        with self.graph.snapshot() as now:
            found = [self._sighting(fact, now) for fact in facts]
        found.sort(key=lambda one: -one.seen)
        if place is None:
            latest = {one.name: one for one in reversed(found)}
            found = [one for one in found if one.current or one is latest[one.name]]
        else:
            found = [one for one in found if one.place == place]
        return [one for one in found if wanted is None or one.seen in wanted][:k]

    def entities(self, query: str) -> list[str]:
        """Return the nodes of this place that a text names.

        "mug 2" names one, "mug" and "mugs" name all of them.
        """
        query = checked_text("query", query)
        with self.graph.snapshot() as now:
            return [self._index.name(node, now) for node in self._named(query, now)]

    def _named(self, query: str, now: Snapshot) -> dict[int, None]:
        """Return node ids in the order of `entities`."""
        if self._asked[0] != query:
            self._asked = query, phrases(query)
        return self._index.named(self.place, self._asked[1], now)

    def retrieve(
        self,
        query: str,
        hops: int = 2,
        max_nodes: int = _MAX_VISITED,
        *,
        agent: bool = True,
        as_of: int | None = None,
    ) -> list[Record]:
        """Return facts near what a query names, nearest first.

        The agent and the last sightings of what is named are near, too.

        Args:
            query: e.g. the goal.
            hops: how far to go from a named entity.
            max_nodes: nodes visited at most.
            agent: whether to start from the agent, too.
            as_of: None for now; what was true at this time, as far as was known later, without last sightings.

        Raises:
            InvalidInputError: an argument of another type or out of range.
        """
        query = checked_text("query", query)
        with self.graph.snapshot() as now:
            named = self._named(query, now)
            starts = dict(named)
            body = now.find(AGENT) if checked_flag("agent", agent) else None
            if body is not None:
                starts.setdefault(body)
            if agent:
                starts.update(dict.fromkeys(self._index.of_place(AGENT)[0]))
            words = now.relations
            relations = [relation for relation in self._followed if relation in words]
            items = []
            if starts and relations:
                near = now.khop(starts, hops, relations=relations, max_nodes=max_nodes, as_of=as_of)
                facts = near.facts.tolist()
                items = self._items(facts, self._index.all_known(facts, now), near.fact_hops, now, as_of)
            others = self._others(self.place)
            if named:
                items += self._about([*named], now, words, as_of, has_rooms=bool(others))
            if others:
                items = self._with_others(items, named, others, now, as_of)
        items.sort(key=operator.attrgetter("score"), reverse=True)
        return items

    def _with_others(
        self, items: list[Record], named: Mapping[int, None], others: Sequence[str], now: Snapshot, as_of: int | None
    ) -> list[Record]:
        """Add where the named things are in other rooms, or were last."""
        nodes = self._named_in(others, named, now)
        placing, holding = self.relations.placing, self.relations.holding
        all_nodes = [*itertools.chain.from_iterable(nodes.values())]
        facts_of = dict(zip(all_nodes, self._index.place_facts(all_nodes, now, as_of)))
        all_facts = [*itertools.chain.from_iterable(facts_of.values())]
        row_of = dict(zip(all_facts, self._index.all_known(all_facts, now)))
        places: list[int] = []
        past: list[int] = []
        for numbers in nodes.values():
            is_placed = False
            for node in numbers:
                for fact in facts_of[node]:
                    row = row_of[fact]
                    thing = row.subject_id if row.relation in placing else row.object_id
                    if thing == node and (row.relation in placing or row.relation in holding):
                        is_placed = True
                        if node not in named:
                            places.append(fact)
            if not is_placed and as_of is None:
                lasts = [last for node in numbers if (last := self._index.last_place(node)) is not None]
                past += [max(lasts)] if lasts else []
        inside = dict(row for node in named for row in self._came_in(self._index.name(node, now), as_of))
        inside |= self._inside([node for node in all_nodes if node not in named], now, as_of)
        row_of |= inside
        places = [*dict.fromkeys((*places, *inside))]
        items += self._items(places, [row_of[fact] for fact in places], itertools.repeat(0), now, as_of)
        return items + [self._past_item(fact, self._index.known(fact, now), now) for fact in past]

    def _about(
        self, nodes: Sequence[int], now: Snapshot, words: Sequence[str], as_of: int | None, has_rooms: bool
    ) -> list[Record]:
        """Return states of nodes, and their last places if they left.

        States are facts with those of the graph's `words` that are not followed.
        """
        followed = frozenset(self._followed)
        others = not followed.issuperset(word for word in words if word != STATE)
        facts = now.facts_of_all(nodes, "both" if others else "out", as_of)
        lasts = [None if as_of is not None or has_rooms else self._index.last_place(node) for node in nodes]
        places = [last for last in lasts if last is not None]
        is_current = dict(zip(places, now.are_current(places)))
        past = [None if last is None or is_current[last] else last for last in lasts]
        wanted = [*itertools.chain.from_iterable(facts), *(last for last in past if last is not None)]
        known = dict(zip(wanted, self._index.all_known(wanted, now)))
        items = []
        for its, last in zip(facts, past):
            if own := [fact for fact in its if known[fact].relation not in followed]:
                items += self._items(own, [known[fact] for fact in own], itertools.repeat(0), now)
            if last is not None:
                items.append(self._past_item(last, known[last], now))
        return items

    def _head(self, fact: int, known: Known) -> tuple[Any, ...]:
        """Return the leading fields of a fact's record, up to images."""
        head = known.head
        if head is None:
            subject, relation, object_ = known.subject, known.relation, known.object
            place, _, subject = subject.rpartition(SEPARATOR)
            object_ = object_[object_.rfind(SEPARATOR) + 1 :]
            text = self.relations.sentence(subject, relation, object_)
            if known.sure is not None and known.sure < 1:
                text += f" (confidence {known.sure:.2f})"
            known.head = head = (
                f"spatial:{fact}", "spatial", "fact", text, "", place, known.since, known.since, None, NOTHING,
                (subject, relation, object_), (), (),
            )  # fmt: skip
        return head

    def is_room(self, place: str) -> bool:
        """Return whether a place is a room of a home with others."""
        return place in self._rooms

    def _named_in(self, rooms: Sequence[str], named: Iterable[int], now: Snapshot) -> dict[str, list[int]]:
        """Return nodes by name, from all rooms, for the last query."""
        nodes: dict[str, list[int]] = {}
        numbers = [*dict.fromkeys((*named, *self._index.named_in(rooms, self._asked[1], now)))]
        for node, name in zip(numbers, self._index.names_of(numbers, now)):
            nodes.setdefault(spelling(split(name)[1]), []).append(node)
        words = {phrase for phrase, _ in self._asked[1]}
        heads = {name.rpartition(" ")[2] for name in nodes if " " in name and name in words}
        return {name: its for name, its in nodes.items() if name in words or name.rpartition(" ")[2] not in heads}

    def last_sightings(self, query: str) -> list[Record]:
        """Return where the robot saw the things that a query names last."""
        records = []
        with self.graph.snapshot() as now:
            nodes = self._named_in(self._others(self.place), self._named(checked_text("query", query), now), now)
            for numbers in nodes.values():
                if (fact := self._index.last_sighting(numbers)) is not None:
                    item = self._past_item(fact, self._index.known(fact, now), now)
                    records.append(item._replace(text=item.text.removesuffix(LEFT)))
        return records

    def sighting_time(self, name: str) -> int:
        """Return when the robot saw a thing last; -1 for never."""
        with self.graph.snapshot() as now:
            numbers = [number for node in self._nodes_called(name) if (number := now.find(node)) is not None]
            fact = self._index.last_sighting(numbers)
            return -1 if fact is None else self._index.known(fact, now).seen.time

    def confidence(self, fact: int) -> float | None:
        """Return the confidence of a fact; None if it has none."""
        return self._index.confidence(fact)

    def texts_of(self, facts: Sequence[int]) -> list[str]:
        """Return facts, past or current, each as one line."""
        with self.graph.snapshot() as now:
            return [self._head(*one)[3] for one in zip(facts, self._index.all_known(facts, now))]

    def trust_of(self, fact: int) -> Trust:
        """Return the level of a fact's most trusted source."""
        return self._trust.get(fact, "sensor")

    def triple(self, fact: int) -> tuple[str, str, str]:
        """Return (node, relation, node) of a fact; nodes are called "place/name"."""
        with self.graph.snapshot() as now:
            known = self._index.known(fact, now)
        return known.subject, known.relation, known.object

    def numbers(self) -> list[int]:
        """List the facts that were not forgotten, past ones too."""
        with self.graph.snapshot() as now:
            return [fact for fact in range(now.num_facts) if now.has_fact(fact)]

    def number_like(self, text: str) -> int | None:
        number = whole_number(text)
        with self.graph.snapshot() as now:
            is_there = number is not None and number < now.num_facts and now.has_fact(number)
        return number if is_there else None

    def record(self, number: int) -> Record:
        with self.graph.snapshot() as now:
            return self._record_of(number, self._index.known(number, now), now)

    def record_at(self, number: int, time: int) -> Record | None:
        record = super().record_at(number, time)
        if record is None or record.ended is not None:
            return record
        with self.graph.snapshot() as now:
            row = self._index.known(number, now)
            room = self._carried_to(row, now, time)
            return record._replace(place=self._head(number, row)[5] if room is None else room)

    def done(self) -> list[tuple[str, Record]]:
        changed = self.changed
        with self.graph.snapshot() as now:
            found = []
            for (do, fact), known in zip(changed, self._index.all_known([fact for _, fact in changed], now)):
                fields = known.hit or self._hit(fact, known)
                if do == "end":
                    fields = (*fields[:_ENDED], self.time, *fields[_ENDED + 1 :])
                record = new_record((*fields, 0.0, "", None))
                found.append((do, record.quoted() if record.trust in QUOTED else record))
            return found

    def past(self, number: int) -> list[Record]:
        """List earlier places of a place fact's thing; none for other facts."""
        placing, holding = self.relations.placing, self.relations.holding
        subject, relation, object_ = self.triple(number)
        if relation not in placing + holding:
            return []
        thing, now = object_ if relation in holding else subject, self.record(number)
        found = []
        for other in self.numbers():
            one, verb, two = self.triple(other)
            if other != number and ((verb in placing and one == thing) or (verb in holding and two == thing)):
                found.append(self.record(other))
        return sorted((one for one in found if one.recorded <= now.recorded), key=lambda one: one.recorded)

    def _record_of(self, fact: int, known: Known, now: Snapshot) -> Record:
        row, seen = now.fact(fact), known.seen
        sources = (self._source_named(episode, seen) for episode in row.sources)
        data = {"nodes": (known.subject, known.relation, known.object)}
        record = new_record((*self._head(fact, known), data, tuple(sources), self.trust_of(fact), 0.0, "", None))
        if row.invalid_at is not None:
            return record._replace(ended=row.invalid_at)
        room = self._carried_to(known, now)
        return record if room is None else record._replace(place=room)

    def _items(
        self,
        facts: Iterable[int],
        all_known: Iterable[Known],
        hops: Iterable[int],
        now: Snapshot,
        as_of: int | None = None,
    ) -> list[Record]:
        """Return facts as records that were found, each so many hops away."""
        time, items = self.time, []
        for fact, known, hop in zip(facts, all_known, hops):
            # Nearest first; at one distance what was seen last first; which room furniture is in says little.
            score = _NEAR[hop] * (0.9 + 0.1 / (1 + time - known.seen[0]))
            if known.relation == "in room":
                score *= 0.3
            if known.sure is not None:
                score *= known.sure
            if hop:
                why = _WHY[hop]
            elif known.subject == AGENT:
                why = "about the agent"
            else:
                why = "about what the query names"
            fields = known.hit or self._hit(fact, known)
            item = new_record(fields + (score, why, None))  # noqa: RUF005
            room = self._carried_to(known, now, as_of)
            items.append(item if room is None else item._replace(place=room))
        return items

    def _hit(self, fact: int, known: Known) -> tuple[Any, ...]:
        """Return a found fact's record fields up to trust, by last sighting."""
        last, trust = known.seen, self._trust.get(fact, "sensor") if self._trust else "sensor"
        if self._source is None or self._source[0] != last:
            self._source = last, (self._source_named(last.episode, last),)  # one for all that was seen together
        known.hit = (*(known.head or self._head(fact, known)), NOTHING, self._source[1], trust)
        return known.hit

    def _source_named(self, number: int, last: Seen) -> Source:
        """Return an episode or a telling as a source."""
        if (telling := self._tellings.get(number)) is not None:
            return Source(telling.episode, telling.step, telling.time)
        return Source(number, last.step, last.time) if number == last.episode else Source(number, None)

    def _past_item(self, fact: int, known: Known, now: Snapshot) -> Record:
        subject, relation, object_ = split(known.subject)[1], known.relation, split(known.object)[1]
        if relation == HOLDS:
            text = f"{object_} was last held by {subject}"
        else:
            text = f"{subject} was last seen {relation} {object_}{LEFT}"
        why = f"last place of what the query names, seen at time {known.seen.time}"
        item = new_record((*(known.hit or self._hit(fact, known)), 0.2, why, None))
        return item._replace(text=text, fact=(subject, f"was {relation}", object_), ended=now.fact(fact).invalid_at)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        words, parts = self._index.parts()
        own = {"place": self.place, "time": self.time, "began": self._began, "episode": self._episode}
        own |= {"rooms": sorted(self._rooms), "trust": sorted(self._trust.items())}
        own["tellings"] = [list(telling) for telling in self._tellings.values()]
        return own | {"doubted": [[*key, *row] for key, row in self._evidence.items()]} | words, *parts

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        place, time, began = checked_text("place", state["place"]), state["time"], state["began"]
        index = SpatialIndex.from_parts(state, parts, self.scope, self.relations)
        with index.graph.snapshot() as now:
            most = now.num_facts - 1
        trust = {checked_number("fact", fact, 0, most): checked_trust("trust", its) for fact, its in state["trust"]}
        doubted = Evidence()
        for *words, wrong, episode in state["doubted"]:
            place_, thing, said = (checked_text("doubted", word) for word in words)
            doubted[place_, thing, said] = checked_real("doubted", wrong), checked_number("doubted", episode)
        rooms = {checked_text("rooms", room) for room in state["rooms"]}
        tellings: dict[int, Telling] = {}
        for row in state["tellings"]:
            note, speaker, when, *numbers = checked_rows("telling", row)
            at, *where = (checked_number("telling", number) for number in numbers)
            texts = checked_text("telling", speaker), checked_text("telling", when)
            tellings[_source_of(at)] = Telling(checked_number("telling", note), *texts, at, *where)
        self._trust, self._evidence, self._rooms, self._tellings = trust, doubted, rooms, tellings
        self._set_index(index)
        self.place, self.time, self._began, self._episode = place, time, began, state["episode"]

    def other_names(self, selector: Selector) -> tuple[list[str], list[str]]:
        """Return other names of a selector's things, and their bare classes.

        A class is bare if it is part of another name of the thing, or names other things, too.
        """
        nodes: dict[str, dict[str, None]] = {}
        for name, node, _ in self._index.other_names.rows():
            nodes.setdefault(node, {split(node)[1]: None})[split(name)[1]] = None
        exact, bare = dict[str, None](), dict[str, None]()
        for node, names in nodes.items():
            if any(map(selector.in_text, names)):
                for name in names:
                    one = Selector(object=name)
                    is_class = name == class_of(name) and " " not in name and self._names_more(one, node)
                    is_part = any(one.in_text(other) for other in names if other != name)
                    (bare if is_class or is_part else exact)[name] = None
        return list(exact), list(bare)

    def _names_more(self, selector: Selector, node: str) -> bool:
        """Return whether a selector names things beside a node."""
        with self.graph.snapshot() as now:
            others = now.names(now.node_ids())
        return any(selector.in_text(split(other)[1]) for other in others if other != node)

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what names an object, has one source alone, or all.

        Sources are episodes, speakers and notes. What these ended stays ended.
        """
        nodes, facts = self._index.counts()
        sources = [source for source, one in self._tellings.items() if self._is_of(one, selector)]
        if selector.everything:
            self._clear()
        elif sources or selector.kind in ("object", "episode"):
            self._index.remove(selector, sources)
            self._tellings = {source: one for source, one in self._tellings.items() if source not in sources}
            self._set_index(self._index)  # what was kept of names goes, too
            for doubt, (_, episode) in [*self._evidence.items()]:
                if episode == selector.episode or any(map(selector.in_text, doubt)):
                    del self._evidence[doubt]
            with self.graph.snapshot() as now:
                self._trust = {fact: trust for fact, trust in self._trust.items() if now.has_fact(fact)}
            self._asked = ("", ())
            running = selector.kind == "episode" and self._episode in (None, selector.episode)
            self.place = "" if running or selector.in_text(self.place) else self.place
            self._rooms &= {self.place, *self._index.places()}
        nodes_left, facts_left = self._index.counts()
        return {"facts": facts - facts_left, "nodes": nodes - nodes_left}

    def _is_of(self, telling: Telling, selector: Selector) -> bool:
        """Return whether a selector means what was told."""
        if telling.speaker and selector.user is not None:
            return selector.is_speaker(telling.speaker, self.scope)
        is_meant = telling.episode == selector.episode or selector.is_entry("notes", telling.note)
        return is_meant or (selector.user is not None and selector.is_user_of(self.scope))

    def fork(self) -> Self:
        """Return an independent copy; shared parts are copied when they change."""
        other = super().fork()
        other._set_index(self._index.fork())
        other._rooms, other._trust, other._evidence = set(self._rooms), dict(self._trust), Evidence(self._evidence)
        other._tellings = dict(self._tellings)
        return other


def _doubt(place: str, subject: str, relation: str, object_: str, denies: bool) -> Doubt:
    return place, subject, f"{NOT if denies else ''}{relation} {object_}"
