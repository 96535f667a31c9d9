"""Spatial memory: a knowledge graph of places and states, updated at each step from observations.

    spatial = SpatialMemory()
    spatial.begin(episode=0, time=0, place="kitchen 7")
    spatial.observe("You arrive at desk 1. On the desk 1, you see a mug 1.", episode=0, step=1, time=1)
    spatial.last_seen("mug 1").receptacle               # "desk 1"
    spatial.of_class("mug"); spatial.seen_after(1)
    spatial.retrieve("put a mug in fridge.")            # facts within two hops of what the query names, as items

Rules read the texts (`observations`); a text that no rule knows goes to the extractor, if there is one. A receptacle
that was looked at completely ends what was thought to be in it and is not. Entities of different places are different
nodes; the agent is one node.

All change goes through `apply(event)`; the same events give the same state. `spatial_index` keeps the graph.

Source: RoboMemory 3.2.1 and Algorithm 1. Deviation: facts that end are kept with their times.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ...errors import InvalidInputError
from ..arguments import checked_call, checked_flag, checked_number, checked_text, checked_texts, shown
from ..graph.graph import KnowledgeGraph
from ..graph.records import HOUSEHOLD_RULES, ConflictRule, Scope
from ..graph.snapshot import MAX_HOPS, Direction, Snapshot
from ..readers import DEFAULT, Reader
from ..readers.reading import AGENT, PLACED, ROOM, class_of
from ..recollection import Item
from ..store.module import RecordedModule, Selector
from .spatial_events import EVENT, check_event, checked_place, drop_what_is_no_name
from .spatial_index import HOLDS, PLACING, SEPARATOR, STATE, Known, Seen, SpatialIndex, joined, split

SPATIAL_RULES = (
    *HOUSEHOLD_RULES,
    ConflictRule("position", (("at", "subject"),)),
    ConflictRule("room", (("in room", "subject"),)),
    ConflictRule("temperature", (("is", "subject", ("hot", "cool")),)),
)
"""Household rules; the agent is at one place; a receptacle is in one room; hot excludes cool."""

FOLLOWED = ("in", "on", "holds", "at", "next to", "in room")
"""Relations along which a query spreads: not along "is", since half the house is closed."""

Extractor = Callable[[str, str], Iterable[tuple[str, str, str]]]
"""(action, text) -> facts; for texts that no rule knows."""

_WORD = re.compile(r"[\w']+")
_MAX_VISITED = 64
_WHY = tuple(f"{hop} hops from what the query names or from the agent" for hop in range(MAX_HOPS + 1))
_NEAR = tuple(0.5**hop for hop in range(MAX_HOPS + 1))
_new_item = functools.partial(tuple.__new__, Item)
"""Makes an item from its fields in order; half the time of `Item(...)`, and there is one for every fact found."""


@dataclasses.dataclass(frozen=True)
class Sighting:
    """Where a thing was seen.

    Attributes:
        name, kind: the thing, and its class.
        relation, receptacle: "on", "desk 1"; or "held by", "agent".
        place: of the episode, as given to `begin`.
        since, seen: times when it came there, as far as known, and when it was seen there last.
        episode, step: of the last sighting.
        current: whether nothing seen later contradicts.
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


def _phrases(query: str) -> list[tuple[str, str]]:
    """(phrase, class it may name) for every one to three words of a query, the longest first."""
    words = _WORD.findall(query.lower())
    pairs = [f"{one} {two}" for one, two in itertools.pairwise(words)]
    phrases = [(f"{pair} {word}", pair if word.isdigit() else "") for pair, word in zip(pairs, words[2:])]
    phrases += [(pair, word if number.isdigit() else "") for pair, word, number in zip(pairs, words, words[1:])]
    phrases += [(word, "") for word in words]
    return [(phrase, kind or phrase) for phrase, kind in phrases]


class SpatialMemory(RecordedModule):
    """The graph of one scope and the rules that keep it."""

    format_name = "embodied_mem.spatial_memory"

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        extractor: Extractor | None = None,
        reader: Reader = DEFAULT,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty memory.

        Args:
            scope, record: as for `RecordedModule`.
            extractor: asked about lines that the reader does not understand; None for none.
            reader: of the world's texts.
        """
        super().__init__(scope, record)
        self._extractor = checked_call("extractor", extractor)
        self._reader = reader
        self._clear()

    def _clear(self) -> None:
        self._index = SpatialIndex(KnowledgeGraph(self.scope, rules=SPATIAL_RULES))
        self.place = ""
        self.time = 0
        self._began = 0
        self._episode: int | None = None  # the running one; None if it is not known
        self.changed: list[tuple[str, int]] = []  # by the last event: what was done, and the fact
        self._asked: tuple[str, Sequence[tuple[str, str]]] = ("", ())  # the last query and its phrases

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph, to read. Its nodes are called "place/name"."""
        return self._index.graph

    # Changing.

    def begin(self, *, episode: int, time: int, place: str = "") -> None:
        """Start an episode: the agent's hand and position are unknown again; what is known of the place stays."""
        self._record({"op": "begin", "episode": episode, "time": time, "place": checked_place(place)})

    def observe(self, text: str, *, episode: int, step: int, time: int, action: str = "") -> None:
        """Take note of what a text says; `action` is what it answers."""
        self._record(self.propose(text, episode=episode, step=step, time=time, action=action))

    def propose(self, text: str, *, episode: int, step: int, time: int, action: str = "") -> dict[str, Any]:
        """The event that `observe` records; nothing changes. The extractor is asked here, never on replay."""
        text, action = checked_text("text", text), checked_text("action", action)
        reading = self._reader.read(text)
        facts: Iterable[Sequence[str]] = reading.facts
        if self._extractor is not None and (unread := self._unread(text, reading.understood)):
            extracted = self._extractor(action, unread)
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
        if facts is reading.facts:
            drop_what_is_no_name(event, len(text))
        return event

    def _unread(self, text: str, understood: bool) -> str:
        """The lines that the reader does not understand; the whole text if it understands none."""
        if not understood or "\n" not in text:
            return "" if understood else text
        return "\n".join(line for line in text.splitlines() if line.strip() and not self._reader.read(line).understood)

    def check(self, event: Mapping[str, Any]) -> None:
        check_event(event)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`. Raises InvalidInputError for one that is older than the last."""
        op, time = event["op"], event["time"]
        if time < self.time:
            raise InvalidInputError(f"{EVENT}: expected a time from {self.time} on, got {time}")
        self.time, self._episode = time, event["episode"]
        self.changed = []
        if op == "begin":
            self.place, self._began = event["place"], time
            self._index.end(self._agent_facts(), time)
            return
        gone = [fact for name, names in event["complete"] for fact in self._gone(name, set(names))]
        self._index.end(gone, time)
        self.changed = [("end", fact) for fact in gone]
        if facts := self._resolved(event["facts"]):
            change = self._index.note(facts, Seen(time, event["episode"], event["step"]))
            self.changed += [("add", fact) for fact in change.added]
            self.changed += [("repeat", fact) for fact in change.repeated]
            self.changed += [("end", ended.fact) for ended in change.ended]
        for name, _ in event["complete"]:
            if name != AGENT:
                self._index.looked(self._node(name), time)

    def _node(self, name: str) -> str:
        return name if name == AGENT else joined(self.place, name)

    def _resolved(self, facts: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """The facts with node names; something put down is in what has a door and on what has none."""
        here = joined(self.place, "")
        found = []
        for subject, relation, object_ in facts:
            one = AGENT if subject == AGENT else here + subject
            if relation == STATE:
                found.append((one, relation, object_))
                continue
            other = AGENT if object_ == AGENT else here + object_
            if relation == PLACED:
                relation = "in" if self._states(other) & {"open", "closed"} else "on"
            found.append((one, relation, other))
        return found

    def _of_node(self, node: str, direction: Direction, relations: tuple[str, ...]) -> list[tuple[int, Known]]:
        """Current facts at a node that have these relations."""
        with self.graph.snapshot() as now:
            number = now.find(node)
            facts = [] if number is None else now.facts_of(number, direction).tolist()
            found = [(fact, self._index.known(fact, now)) for fact in facts]
        return [(fact, known) for fact, known in found if known.relation in relations]

    def _agent_facts(self) -> list[int]:
        return [fact for fact, _ in self._of_node(AGENT, "out", ("at", HOLDS))]

    def _gone(self, container: str, contents: set[str]) -> list[int]:
        """Current facts about things in a container that is now known to hold only `contents`."""
        kept = {self._node(name) for name in contents}
        if container == AGENT:
            return [fact for fact, known in self._of_node(AGENT, "out", (HOLDS,)) if known.object not in kept]
        inside = self._of_node(self._node(container), "in", PLACING)
        return [fact for fact, known in inside if known.subject not in kept]

    def _states(self, node: str) -> set[str]:
        return {known.object for _, known in self._of_node(node, "out", (STATE,))}

    # Reading.

    def states(self, name: str) -> set[str]:
        """What a thing of the present place is known to be: "open", "clean", "hot", ..."""
        return self._states(self._node(checked_text("name", name)))

    def states_seen(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """The states of several things of the present place, each with the time when it was seen last."""
        found = {}
        with self.graph.snapshot() as now:
            for name in checked_texts("names", names):
                if (number := now.find(self._node(name))) is not None:
                    facts = [self._index.known(fact, now) for fact in now.facts_of(number, "out").tolist()]
                    found[name] = {known.object: known.seen.time for known in facts if known.relation == STATE}
        return found

    def inside(self, receptacle: str) -> list[str]:
        """Names of what is known to be in or on a receptacle of the present place now."""
        node = self._node(checked_text("receptacle", receptacle))
        return [split(known.subject)[1] for _, known in self._of_node(node, "in", PLACING)]

    def held(self) -> list[str]:
        """Names of what the agent is known to hold."""
        return [split(known.object)[1] for _, known in self._of_node(AGENT, "out", (HOLDS,))]

    def position(self) -> str:
        """Where the agent is known to be; "" if it is not known."""
        facts = self._of_node(AGENT, "out", ("at",))
        return split(facts[0][1].object)[1] if facts else ""

    def unsearched(self) -> list[str]:
        """Receptacles of the present place that were not looked at completely in this episode."""
        rooms = self._of_node(self._node(ROOM), "in", ("in room",))
        new = [known for _, known in rooms if self._index.looked_at(known.subject_id) < self._began]
        return [split(known.subject)[1] for known in new]

    def last_seen(self, name: str, place: str | None = None) -> Sighting | None:
        """Where a thing was seen last; None if never.

        Args:
            name: of the thing.
            place: None for the present one.
        """
        node = self._index.find(joined(self._place(place), checked_text("name", name)))
        fact = None if node is None else self._index.last_place(node)
        if fact is None:
            return None
        with self.graph.snapshot() as now:
            return self._sighting(fact, now)

    def of_class(self, kind: str, place: str | None = None, after: int | None = None) -> list[Sighting]:
        """Where the things of a class were seen last, the latest first.

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
        found = [sighting for sighting in found if after is None or sighting.seen > after]
        return sorted(found, key=lambda sighting: -sighting.seen)

    def kinds(self, place: str | None = None) -> frozenset[str]:
        """Classes, in small letters, of what was ever seen in a place; None for the present one."""
        return frozenset(self._index.in_place(self._place(place)))

    def _place(self, place: str | None) -> str:
        return self.place if place is None else checked_text("place", place)

    def seen_after(self, time: int) -> list[Sighting]:
        """What was seen later than a time, the latest first, wherever it was."""
        facts = self._index.seen_after(checked_number("time", time))
        with self.graph.snapshot() as now:
            return [self._sighting(fact, now) for fact in facts]

    def _sighting(self, fact: int, now: Snapshot) -> Sighting:
        known = self._index.known(fact, now)
        thing, other = known.subject, known.object
        relation = known.relation
        if relation == HOLDS:
            thing, other, relation = other, thing, "held by"
        place, name = split(thing)
        found = now.fact(fact)
        current = found.invalid_at is None
        return Sighting(
            name, class_of(name), relation, split(other)[1], place, found.valid_at, *known.seen, current=current
        )

    def entities(self, query: str) -> list[str]:
        """Node names of the present place that a text names: "mug 2" itself, or all mugs for "mug" and "mugs"."""
        query = checked_text("query", query)
        with self.graph.snapshot() as now:
            return [self._index.name(node, now) for node in self._named(query, now)]

    def _named(self, query: str, now: Snapshot) -> dict[int, None]:
        """Ids of the nodes, in the order of `entities`."""
        things = self._index.in_place(self.place)
        if self._asked[0] != query:
            self._asked = query, _phrases(query)
        found: dict[int, None] = {}
        for phrase, kind in self._asked[1]:
            if kind in things and kind != phrase:
                names = {node: split(self._index.name(node, now))[1] for node in things[kind]}
                found.update((node, None) for node, name in names.items() if name.lower() == phrase)
            elif kind == phrase and (nodes := things.get(phrase) or things.get(phrase.removesuffix("s"))):
                found.update(dict.fromkeys(nodes))
        return found

    def retrieve(
        self,
        query: str,
        hops: int = 2,
        max_nodes: int = _MAX_VISITED,
        *,
        agent: bool = True,
        as_of: int | None = None,
    ) -> list[Item]:
        """Facts within `hops` of what the query names and of the agent, nearest first, and last sightings.

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
            words = now.relations
            relations = [relation for relation in FOLLOWED if relation in words]
            if not starts or not relations:
                return []
            near = now.khop(starts, hops, relations=relations, max_nodes=max_nodes, as_of=as_of)
            distance = dict(zip(near.nodes.tolist(), near.hops.tolist()))
            items = []
            for fact in near.facts.tolist():
                known = self._index.known(fact, now)
                one, other = distance[known.subject_id], distance[known.object_id]
                items.append(self._item(known, one if one < other else other))
            for node in named:
                for fact in now.facts_of(node, "out", as_of).tolist():
                    known = self._index.known(fact, now)
                    if known.relation == STATE:
                        items.append(self._item(known, 0))
                last = self._index.last_place(node)
                if as_of is None and last is not None and now.fact(last).invalid_at is not None:
                    items.append(self._past_item(self._index.known(last, now)))
        items.sort(key=operator.attrgetter("score"), reverse=True)
        return items

    @staticmethod
    def _told(known: Known) -> Known:
        """The fact, with its text and data."""
        if known.data is None:
            relation = known.relation
            subject, object_ = known.subject.rpartition(SEPARATOR)[2], known.object.rpartition(SEPARATOR)[2]
            verb = relation if relation in (STATE, HOLDS) else f"is {relation}"
            known.text = f"{subject} is in the room" if relation == "in room" else f"{subject} {verb} {object_}"
            known.data = (subject, relation, object_)
        return known

    def texts_of(self, facts: Sequence[int]) -> list[str]:
        """Facts, past or current, each as one line."""
        if not facts:
            return []
        with self.graph.snapshot() as now:
            return [self._told(self._index.known(fact, now)).text for fact in facts]

    def triple(self, fact: int) -> tuple[str, str, str]:
        """Node, relation and node of a fact, past or current; nodes are called "place/name"."""
        with self.graph.snapshot() as now:
            known = self._index.known(fact, now)
        return known.subject, known.relation, known.object

    def _item(self, known: Known, hop: int) -> Item:
        seen, episode, step = known.seen
        relation = known.relation
        self._told(known)
        # Nearest first; at one distance what was seen last first; which room furniture is in says little.
        score = _NEAR[hop] * (0.9 + 0.1 / (1 + self.time - seen)) * (0.3 if relation == "in room" else 1.0)
        if hop:
            why = _WHY[hop]
        elif known.subject == AGENT:
            why = "about the agent"
        else:
            why = "about what the query names"
        return _new_item((known.text, "spatial", score, why, episode, step, (episode,), known.data))

    @staticmethod
    def _past_item(known: Known) -> Item:
        seen, episode, step = known.seen
        subject, relation, object_ = split(known.subject)[1], known.relation, split(known.object)[1]
        if relation == HOLDS:
            text = f"{object_} was last held by {subject}"
        else:
            text = f"{subject} was last seen {relation} {object_}, not there now"
        why = f"last place of what the query names, seen at time {seen}"
        return Item(text, "spatial", 0.2, why, episode, step, (episode,), (subject, f"was {relation}", object_))

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        words, parts = self._index.parts()
        own = {"place": self.place, "time": self.time, "began": self._began, "episode": self._episode}
        return own | words, *parts

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        place, time, began = checked_text("place", state["place"]), state["time"], state["began"]
        self._index = SpatialIndex.from_parts(state, parts, self.scope)
        self.place, self.time, self._began = place, time, began
        self._episode = state.get("episode")  # older versions did not keep it

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what names an object, what one episode alone supports, or, for the scope's user, all.

        What an episode ended stays ended.
        """
        nodes, facts = self._index.counts()
        if selector.is_all_of(self.scope):
            self._clear()
        elif selector.kind != "user":
            self._index.remove(selector)
            self._asked = ("", ())
            running = selector.kind == "episode" and self._episode in (None, selector.episode)
            self.place = "" if running or selector.in_text(self.place) else self.place
        nodes_left, facts_left = self._index.counts()
        return {"facts": facts - facts_left, "nodes": nodes - nodes_left}

    def fork(self) -> Self:
        """An independent copy, at a cost that hardly depends on its size; what both share is copied when it changes."""
        other = super().fork()
        other._index = self._index.fork()
        return other
