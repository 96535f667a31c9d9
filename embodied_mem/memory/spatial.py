"""Where things are and how they are: a knowledge graph kept from what the agent sees, step by step.

    spatial = SpatialMemory()
    spatial.begin(episode=0, time=0, place="kitchen 7")
    spatial.observe("You arrive at desk 1. On the desk 1, you see a mug 1.", episode=0, step=1, time=1)
    spatial.last_seen("mug 1").receptacle               # "desk 1"
    spatial.of_class("mug"); spatial.seen_after(1)
    spatial.retrieve("put a mug in fridge.")            # facts within two hops of what the query names, as items

Rules read the texts (`observations`); a text that no rule knows goes to the extractor, if there is one. A receptacle
that was looked at completely ends what was thought to be in it and is not. Entities of different places are different
nodes; the agent is one node.

All change goes through `apply(event)`; the same events give the same state.

Source: RoboMemory 3.2.1 and Algorithm 1. Deviation: facts that end are kept with their times.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import InvalidInputError
from .durable import AnySelector, Selector, read_state, write_state
from .facts import HOUSEHOLD_RULES, ConflictRule, NewNode, Scope, Triple
from .graph import KnowledgeGraph
from .graph_rows import FactRows
from .observations import AGENT, PLACED, ROOM, class_of, read_observation
from .recollection import Item

SPATIAL_RULES = (
    *HOUSEHOLD_RULES,
    ConflictRule("position", (("at", "subject"),)),
    ConflictRule("room", (("in room", "subject"),)),
    ConflictRule("temperature", (("is", "subject", ("hot", "cool")),)),
)
"""Household rules; the agent is at one place; a receptacle is in one room; hot excludes cool."""

PLACING = ("in", "on")
FOLLOWED = ("in", "on", "holds", "at", "next to", "in room")
"""Relations along which a query spreads: not along "is", since half the house is closed."""

Extractor = Callable[[str, str], Iterable[tuple[str, str, str]]]
"""(action, text) -> facts; for texts that no rule knows."""

_FORMAT = "embodied_mem.spatial_memory"
_WORD = re.compile(r"[\w']+")
_MAX_VISITED = 64
_SEPARATOR = "/"


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


@dataclasses.dataclass(slots=True)
class _Known:
    """What does not change about a fact of the graph, and its last sighting."""

    subject: str
    relation: str
    object: str
    since: int
    seen: tuple[int, int, int]  # time, episode, step
    text: str = ""  # made when it is first asked for
    data: tuple[str, str, str] | None = None


class SpatialMemory:
    """The graph of one scope and the rules that keep it."""

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        extractor: Extractor | None = None,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty memory.

        Args:
            scope: whose it is.
            extractor: asked about texts that no rule knows; None for rules alone.
            record: gets every event and must have `apply` called with it; None for `apply` itself.
        """
        self.scope = Scope() if scope is None else scope
        self._extractor = extractor
        self._record = self.apply if record is None else record
        self._clear()

    def _clear(self) -> None:
        self.graph = KnowledgeGraph(self.scope, rules=SPATIAL_RULES)
        self.place = ""
        self.time = 0
        self._began = 0
        self._ids: dict[str, int] = {}  # node name -> its id; ids count up, so the keys are the names by id
        self._names: list[str] = []
        self._facts: dict[int, _Known] = {}
        self._recent: dict[int, None] = {}  # facts about places of things, the one seen last at the end
        self._last_place: dict[str, int] = {}  # node name -> fact that said last where it is
        self._looked: dict[str, int] = {}  # node name of a receptacle -> time when all of it was seen
        self._kinds: dict[tuple[str, str], dict[str, None]] = {}  # (place, class) -> node names

    # Changing.

    def begin(self, *, episode: int, time: int, place: str = "") -> None:
        """Start an episode: the agent's hand and position are unknown again; what is known of the place stays."""
        self._record({"op": "begin", "episode": episode, "time": time, "place": place})

    def observe(self, text: str, *, episode: int, step: int, time: int, action: str = "") -> None:
        """Take note of what a text says; `action` is what it answers."""
        self._record(self.propose(text, episode=episode, step=step, time=time, action=action))

    def propose(self, text: str, *, episode: int, step: int, time: int, action: str = "") -> dict[str, Any]:
        """The event that `observe` records; nothing changes. The extractor is asked here, never on replay."""
        reading = read_observation(text)
        facts = reading.facts
        if not reading.understood and self._extractor is not None:
            facts = tuple(self._extractor(action, text))
        return {
            "op": "observe",
            "episode": episode,
            "step": step,
            "time": time,
            "facts": [list(fact) for fact in facts],
            "complete": [[name, list(contents)] for name, contents in reading.complete],
        }

    def apply(self, event: Mapping[str, Any]) -> None:
        """Do what an event says.

        Raises:
            InvalidInputError: an unknown event, or one that is older than the last.
        """
        op, time = event.get("op"), event.get("time")
        if op not in ("begin", "observe"):
            raise InvalidInputError(f"spatial event: expected op begin or observe, got {op!r}")
        if not isinstance(time, int) or time < self.time:
            raise InvalidInputError(f"spatial event: expected a time from {self.time} on, got {time!r}")
        self.time = time
        if op == "begin":
            self.place, self._began = event["place"], time
            self._end(self._agent_facts(), time)
            return
        seen = (time, event["episode"], event["step"])
        gone = [fact for name, contents in event["complete"] for fact in self._gone(name, set(contents))]
        self._end(gone, time)
        facts = [self._resolved(*fact) for fact in event["facts"]]
        for name, _ in event["complete"]:
            if name != AGENT:
                self._looked[self._node(name)] = time
        if facts:
            self._merge(facts, seen)

    def _node(self, name: str) -> str:
        return name if not self.place or name == AGENT else f"{self.place}{_SEPARATOR}{name}"

    def _resolved(self, subject: str, relation: str, object_: str) -> tuple[str, str, str]:
        """The fact with node names; something put down is in what has a door and on what has none."""
        if relation == "is":
            return self._node(subject), relation, object_
        subject, object_ = self._node(subject), self._node(object_)
        if relation == PLACED:
            relation = "in" if self._states(object_) & {"open", "closed"} else "on"
        return subject, relation, object_

    def _merge(self, facts: list[tuple[str, str, str]], seen: tuple[int, int, int]) -> None:
        time, episode, _ = seen
        triples = [
            Triple(
                subject, relation, object_, time, episode, _kind(subject), "" if relation == "is" else _kind(object_)
            )
            for subject, relation, object_ in facts
        ]
        change = self.graph.update(triples, extract=False)
        for (subject, relation, object_), s, o, fact in zip(facts, change.subjects, change.objects, change.facts):
            if (known := self._facts.get(fact)) is None:
                self._name(s, subject)
                self._name(o, object_)
                self._add_fact(fact, _Known(subject, relation, object_, time, seen))
            else:
                known.seen = seen
            self._note_place(fact, subject, relation, object_)

    def _name(self, number: int, node: str) -> None:
        if number == len(self._names):
            self._names.append(node)
            self._ids[node] = number

    def _add_fact(self, fact: int, known: _Known) -> None:
        self._facts[fact] = known
        for node in (known.subject,) if known.relation == "is" else (known.subject, known.object):
            place, name = _split(node)
            self._kinds.setdefault((place, class_of(name).lower()), {}).setdefault(node)

    def _note_place(self, fact: int, subject: str, relation: str, object_: str) -> None:
        if relation in PLACING:
            self._last_place[subject] = fact
        elif relation == "holds":
            self._last_place[object_] = fact
        else:
            return
        self._recent.pop(fact, None)
        self._recent[fact] = None

    def _end(self, facts: Iterable[int], time: int) -> None:
        facts = list(dict.fromkeys(facts))
        if facts:
            self.graph.apply(invalidate=[(fact, time) for fact in facts])

    def _of_node(self, node: str, direction: str, relations: tuple[str, ...]) -> list[int]:
        """Current facts at a node that have these relations."""
        if (number := self._ids.get(node)) is None:
            return []
        with self.graph.snapshot() as now:
            facts = now.facts_of(number, direction).tolist()
        return [fact for fact in facts if self._facts[fact].relation in relations]

    def _agent_facts(self) -> list[int]:
        return self._of_node(AGENT, "out", ("at", "holds"))

    def _gone(self, container: str, contents: set[str]) -> list[int]:
        """Current facts about things in a container that is now known to hold only `contents`."""
        kept = {self._node(name) for name in contents}
        if container == AGENT:
            held = self._of_node(AGENT, "out", ("holds",))
            return [fact for fact in held if self._facts[fact].object not in kept]
        inside = self._of_node(self._node(container), "in", PLACING)
        return [fact for fact in inside if self._facts[fact].subject not in kept]

    def _states(self, node: str) -> set[str]:
        return {self._facts[fact].object for fact in self._of_node(node, "out", ("is",))}

    # Reading.

    def states(self, name: str) -> set[str]:
        """What a thing of the present place is known to be: "open", "clean", "hot", ..."""
        return self._states(self._node(name))

    def states_seen(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """The states of several things of the present place, each with the time when it was seen last."""
        found = {}
        with self.graph.snapshot() as now:
            for name in names:
                if (number := self._ids.get(self._node(name))) is not None:
                    facts = [self._facts[fact] for fact in now.facts_of(number, "out").tolist()]
                    found[name] = {fact.object: fact.seen[0] for fact in facts if fact.relation == "is"}
        return found

    def inside(self, receptacle: str) -> list[str]:
        """Names of what is known to be in or on a receptacle of the present place now."""
        facts = self._of_node(self._node(receptacle), "in", PLACING)
        return [_split(self._facts[fact].subject)[1] for fact in facts]

    def held(self) -> list[str]:
        """Names of what the agent is known to hold."""
        return [_split(self._facts[fact].object)[1] for fact in self._of_node(AGENT, "out", ("holds",))]

    def position(self) -> str:
        """Where the agent is known to be; "" if it is not known."""
        facts = self._of_node(AGENT, "out", ("at",))
        return _split(self._facts[facts[0]].object)[1] if facts else ""

    def unsearched(self) -> list[str]:
        """Receptacles of the present place that were not looked at completely in this episode."""
        rooms = self._of_node(self._node(ROOM), "in", ("in room",))
        nodes = [self._facts[fact].subject for fact in rooms]
        return [_split(node)[1] for node in nodes if self._looked.get(node, -1) < self._began]

    def last_seen(self, name: str, place: str | None = None) -> Sighting | None:
        """Where a thing was seen last; None if never.

        Args:
            name: of the thing.
            place: None for the present one.
        """
        place = self.place if place is None else place
        if (fact := self._last_place.get(name if not place else f"{place}{_SEPARATOR}{name}")) is None:
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
        names = self._kinds.get((self.place if place is None else place, kind.lower()), ())
        with self.graph.snapshot() as now:
            found = [self._sighting(self._last_place[n], now) for n in names if n in self._last_place]
        found = [sighting for sighting in found if after is None or sighting.seen > after]
        return sorted(found, key=lambda sighting: -sighting.seen)

    def seen_after(self, time: int) -> list[Sighting]:
        """What was seen later than a time, the latest first, wherever it was; cost by the number found."""
        found = []
        with self.graph.snapshot() as now:
            for fact in reversed(self._recent):
                if self._facts[fact].seen[0] <= time:
                    break
                found.append((-self._facts[fact].seen[0], fact))
            return [self._sighting(fact, now) for _, fact in sorted(found)]

    def _sighting(self, fact: int, now: Any) -> Sighting:
        known = self._facts[fact]
        thing, other = known.subject, known.object
        relation = known.relation
        if relation == "holds":
            thing, other, relation = other, thing, "held by"
        place, name = _split(thing)
        seen, episode, step = known.seen
        current = now.fact(fact).invalid_at is None
        kind = class_of(name)
        return Sighting(name, kind, relation, _split(other)[1], place, known.since, seen, episode, step, current)

    def entities(self, query: str) -> list[str]:
        """Node names of the present place that a text names: "mug 2" itself, or all mugs for "mug" and "mugs"."""
        words = _WORD.findall(query.lower())
        found: dict[str, None] = {}
        for length in (3, 2, 1):
            for start in range(len(words) - length + 1):
                phrase = " ".join(words[start : start + length])
                kind, _, number = phrase.rpartition(" ")
                if kind and number.isdigit():
                    nodes = self._kinds.get((self.place, kind), ())
                    found.update((node, None) for node in nodes if _split(node)[1].lower() == phrase)
                    continue
                nodes = self._kinds.get((self.place, phrase)) or self._kinds.get((self.place, phrase.removesuffix("s")))
                found.update(dict.fromkeys(nodes or ()))
        return list(found)

    def retrieve(self, query: str, hops: int = 2, max_nodes: int = _MAX_VISITED) -> list[Item]:
        """Facts within `hops` of what the query names and of the agent, nearest first, and last sightings.

        Args:
            query: e.g. the goal.
            hops: how far to go from a named entity.
            max_nodes: nodes visited at most.
        """
        named = self.entities(query)
        starts = dict.fromkeys(self._ids[node] for node in (*named, AGENT) if node in self._ids)
        with self.graph.snapshot() as now:
            known = now.relations
            relations = [relation for relation in FOLLOWED if relation in known]
            if not starts or not relations:
                return []
            near = now.khop(starts, hops, relations=relations, max_nodes=max_nodes)
            distance = {self._names[number]: hop for number, hop in zip(near.nodes.tolist(), near.hops.tolist())}
            items = [self._item(fact, self._hop(fact, distance)) for fact in near.facts.tolist()]
            for node in named:
                states = now.facts_of(self._ids[node], "out").tolist()
                items += [self._item(fact, 0) for fact in states if self._facts[fact].relation == "is"]
                last = self._last_place.get(node)
                if last is not None and now.fact(last).invalid_at is not None:
                    items.append(self._past_item(last))
        items.sort(key=lambda item: -item.score)
        return items

    def _hop(self, fact: int, distance: Mapping[str, int]) -> int:
        known = self._facts[fact]
        return min(distance[known.subject], distance[known.object])

    def _item(self, fact: int, hop: int) -> Item:
        known = self._facts[fact]
        seen, episode, step = known.seen
        relation = known.relation
        if known.data is None:
            subject, object_ = _split(known.subject)[1], _split(known.object)[1]
            verb = relation if relation in ("is", "holds") else f"is {relation}"
            known.text = f"{subject} is in the room" if relation == "in room" else f"{subject} {verb} {object_}"
            known.data = (subject, relation, object_)
        # Nearest first; at one distance what was seen last first; which room furniture is in says little.
        score = 0.5**hop * (0.9 + 0.1 / (1 + self.time - seen)) * (0.3 if relation == "in room" else 1.0)
        if hop:
            why = f"{hop} hops from what the query names or from the agent"
        else:
            why = "about the agent" if known.subject == AGENT else "about what the query names"
        return Item(known.text, "spatial", score, why, episode, step, (episode,), known.data)

    def _past_item(self, fact: int) -> Item:
        known = self._facts[fact]
        seen, episode, step = known.seen
        subject, relation, object_ = _split(known.subject)[1], known.relation, _split(known.object)[1]
        if relation == "holds":
            text = f"{object_} was last held by {subject}"
        else:
            text = f"{subject} was last seen {relation} {object_}, not there now"
        why = f"last place of what the query names, seen at time {seen}"
        return Item(text, "spatial", 0.2, why, episode, step, (episode,), (subject, f"was {relation}", object_))

    # Keeping.

    def state(self) -> bytes:
        """All that is remembered, as bytes."""
        return write_state(_FORMAT, self._dump())

    def restore(self, data: bytes) -> None:
        """Become what `state` returned. Raises InvalidInputError for other bytes; nothing has changed then."""
        self._load(read_state(_FORMAT, data))

    def forget(self, selector: AnySelector) -> dict[str, int]:
        """Remove what names an object, what one episode alone supports, or, for the scope's user, all.

        What an episode ended stays ended. The graph is built anew, at a cost by its size.
        """
        chosen = Selector(selector)
        state = self._dump()
        kept, before = [], len(state["facts"])
        if chosen.user is not None and chosen.user == self.scope.user:
            nodes = len(self._names)
            self._clear()
            return {"facts": before, "nodes": nodes}
        for fact in state["facts"]:
            subject, _, object_, since, _, sources, seen = fact
            if any(map(chosen.in_text, (subject, object_))):
                continue
            if chosen.episode in sources:
                sources.remove(chosen.episode)
                if not sources:
                    continue
                if seen[1] == chosen.episode:
                    fact[6] = [since, sources[-1], -1]
            kept.append(fact)
        looked = [entry for entry in state["looked"] if not chosen.in_text(entry[0])]
        nodes = len(self._names)
        state["facts"], state["looked"] = kept, looked
        state["place"] = "" if chosen.in_text(self.place) else self.place
        self._load(state)
        return {"facts": before - len(kept), "nodes": nodes - len(self._names)}

    def _dump(self) -> dict[str, Any]:
        with self.graph.snapshot() as now:
            facts = []
            for number, known in self._facts.items():
                fact = now.fact(number)
                ends = [known.subject, known.relation, known.object, known.since, fact.invalid_at]
                facts.append([*ends, list(fact.sources), list(known.seen)])
        return {
            "scope": dataclasses.asdict(self.scope),
            "place": self.place,
            "time": self.time,
            "began": self._began,
            "facts": facts,
            "looked": [list(entry) for entry in self._looked.items()],
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        if state["scope"] != dataclasses.asdict(self.scope):
            raise InvalidInputError(f"state: expected the scope {self.scope}, got {state['scope']}")
        self._clear()
        self.place, self.time, self._began = state["place"], state["time"], state["began"]
        self._looked = {name: time for name, time in state["looked"]}
        rows = FactRows(self.graph)
        for fact in state["facts"]:
            subject, relation, object_, since, _, _, seen = fact
            for node in (subject, object_):
                if node not in self._ids:
                    self._name(len(self._names), node)
                    rows.nodes.append(NewNode(node, "" if relation == "is" and node == object_ else _kind(node)))
            number = rows.add(self._ids[subject], relation, self._ids[object_], *fact[3:6])
            self._add_fact(number, _Known(subject, relation, object_, since, tuple(seen)))
            self._note_place(number, subject, relation, object_)
        rows.flush()
        self._recent = dict.fromkeys(sorted(self._recent, key=lambda fact: self._facts[fact].seen[0]))


def _split(node: str) -> tuple[str, str]:
    """(place, name) of a node."""
    place, _, name = node.rpartition(_SEPARATOR)
    return place, name


def _kind(node: str) -> str:
    return class_of(_split(node)[1])
