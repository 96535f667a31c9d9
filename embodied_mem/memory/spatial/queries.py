"""What spatial memory can be asked: where things are and were, in which state, and what fits a query.

spatial.last_seen("mug 1").receptacle               # "desk 1"
spatial.of_class("mug"); spatial.seen_after(1)
spatial.retrieve("put a mug in fridge.")            # facts within two hops of what the query names, as items
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..arguments import checked_flag, checked_number, checked_text, checked_texts
from ..graph import MAX_HOPS, Direction, KnowledgeGraph, Snapshot
from ..readers.reading import AGENT, ROOM
from ..recollection import Item
from ..relations import Relations
from ..sighting import Sighting, sighting
from ..store import RecordedModule
from ..trust import Trust
from ..words import phrases
from .entities import Entities
from .fact_trust import FactTrust
from .index import SpatialIndex
from .records import HOLDS, SEPARATOR, STATE, Known, Seen, split

SHOWN = ("in", "on")
"""What a look at a receptacle shows: not what is under it."""

_MAX_VISITED = 64
_WHY = tuple(f"{hop} hops from what the query names or from the agent" for hop in range(MAX_HOPS + 1))
_NEAR = tuple(0.5**hop for hop in range(MAX_HOPS + 1))


def _in_room(text: str, room: str) -> str:
    return f"{text} (in {room})" if room else text


_new_item = functools.partial(tuple.__new__, Item)
"""Makes an item from its fields in order; half the time of `Item(...)`, and there is one for every fact found."""


class SpatialQueries(RecordedModule):
    """The part of `SpatialMemory` that answers; it changes nothing.

    Attributes:
        place: of the running episode.
        time: of the last event.
        relations: those that are declared.
    """

    place: str
    time: int
    relations: Relations
    _index: SpatialIndex
    _entities: Entities
    _trust: FactTrust
    _followed: tuple[str, ...]
    _began: int
    _asked: tuple[str, Sequence[tuple[str, str]]]
    _rooms: set[str]

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph, to read. Its nodes are called "place/name"."""
        return self._index.graph

    def _node(self, name: str) -> str:
        return self._entities.node(self.place, name)

    def _of_node(self, node: str, direction: Direction, relations: tuple[str, ...]) -> list[tuple[int, Known]]:
        """Current facts at a node that have these relations."""
        return [(fact, known) for fact, known in self._index.facts_at(node, direction) if known.relation in relations]

    def _hands(self) -> list[str]:
        """Nodes of the agent's hands that have a name of their own."""
        return self._index.names_in(AGENT)

    def states(self, name: str) -> set[str]:
        """What a thing of the present place is known to be: "open", "clean", "hot", ..."""
        return set(self._index.states(self._node(checked_text("name", name))))

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
        return [split(known.subject)[1] for _, known in self._of_node(node, "in", SHOWN)]

    def held(self) -> list[str]:
        """Names of what the agent is known to hold, in whatever hand."""
        found = [known for node in (AGENT, *self._hands()) for _, known in self._of_node(node, "out", (HOLDS,))]
        return [split(known.object)[1] for known in found]

    def position(self) -> str:
        """Where the agent is known to be; "" if it is not known."""
        node = self._index.position()
        return "" if node is None else split(node)[1]

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
        node = self._index.find(self._entities.node(self._place(place), checked_text("name", name)))
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
        found = [one for one in found if after is None or one.seen > after]
        return sorted(found, key=lambda one: -one.seen)

    def kinds(self, place: str | None = None) -> frozenset[str]:
        """Classes, in small letters, of what was ever seen in a place; None for the present one."""
        return frozenset(self._index.in_place(self._place(place)))

    def places(self) -> list[str]:
        """List the places in which things are known, and the present one."""
        return list(dict.fromkeys([*self._index.places(), *([self.place] if self.place else [])]))

    def _others(self, place: str) -> list[str]:
        """List the other rooms of the home that a place is in."""
        if not self._rooms or (place and place not in self._rooms):
            return []
        return [room for room in ("", *sorted(self._rooms)) if room != place]

    def _place(self, place: str | None) -> str:
        return self.place if place is None else checked_text("place", place)

    def seen_after(self, time: int) -> list[Sighting]:
        """What was seen later than a time, the latest first, wherever it was."""
        facts = self._index.seen_after(checked_number("time", time))
        with self.graph.snapshot() as now:
            return [self._sighting(fact, now) for fact in facts]

    def _sighting(self, fact: int, now: Snapshot) -> Sighting:
        found = now.fact(fact)
        return sighting(self._index.known(fact, now), found, self.relations, self._trust.of(fact))

    def last_places(
        self, kind: str | None = None, place: str | None = None, times: np.ndarray | None = None, k: int | None = None
    ) -> list[Sighting]:
        """Where things were seen last, the latest first: each thing once in a home.

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
        """Node names of the present place that a text names: "mug 2" itself, or all mugs for "mug" and "mugs"."""
        query = checked_text("query", query)
        with self.graph.snapshot() as now:
            return [self._index.name(node, now) for node in self._named(query, now)]

    def _named(self, query: str, now: Snapshot) -> dict[int, None]:
        """Ids of the nodes, in the order of `entities`."""
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
            if agent:
                starts.update(dict.fromkeys(self._index.of_place(AGENT)))
            words = now.relations
            relations = [relation for relation in self._followed if relation in words]
            items = []
            if starts and relations:
                near = now.khop(starts, hops, relations=relations, max_nodes=max_nodes, as_of=as_of)
                facts = near.facts.tolist()
                items = self._items(facts, self._index.all_known(facts, now), near.fact_hops)
            if named:
                items += self._about([*named], now, words, as_of)
            if others := self._others(self.place):
                items = self._with_others(items, named, others, now, as_of)
        items.sort(key=operator.attrgetter("score"), reverse=True)
        return items

    def _with_others(
        self, items: list[Item], named: Mapping[int, None], others: Sequence[str], now: Snapshot, as_of: int | None
    ) -> list[Item]:
        """Add the present places of the things that the query names in other rooms; else, where one was last."""
        found: list[Item] = []
        lasts: list[tuple[int, str]] = []
        for room in others:
            nodes = [node for node in self._index.named_in(room, self._asked[1], now) if node not in named]
            for node, facts in zip(nodes, now.facts_of_all(nodes, "both", as_of)):
                held = [(fact, known) for fact, known in zip(facts, self._index.all_known(facts, now))
                        if (known.relation in self.relations.placing and known.subject_id == node)
                        or (known.relation in self.relations.holding and known.object_id == node)]  # fmt: skip
                here = self._items([fact for fact, _ in held], [known for _, known in held], itertools.repeat(0))
                found += [item._replace(text=_in_room(item.text, room)) for item in here]
                if (last := self._index.last_place(node)) is not None and not held and as_of is None:
                    lasts.append((last, room))
        if not found and not named and lasts:
            last, room = max(lasts)
            item = self._past_item(last, self._index.known(last, now))
            found.append(item._replace(text=_in_room(item.text, room)))
        return items + found

    def _about(self, nodes: Sequence[int], now: Snapshot, words: Sequence[str], as_of: int | None) -> list[Item]:
        """What nodes are, in those of the graph's `words` that are not followed, and where they are not any more."""
        followed = frozenset(self._followed)
        others = not followed.issuperset(word for word in words if word != STATE)
        facts = now.facts_of_all(nodes, "both" if others else "out", as_of)
        lasts = [None if as_of is not None else self._index.last_place(node) for node in nodes]
        places = [last for last in lasts if last is not None]
        is_current = dict(zip(places, now.are_current(places)))
        past = [None if last is None or is_current[last] else last for last in lasts]
        wanted = [*itertools.chain.from_iterable(facts), *(last for last in past if last is not None)]
        known = dict(zip(wanted, self._index.all_known(wanted, now)))
        items = []
        for its, last in zip(facts, past):
            if own := [fact for fact in its if known[fact].relation not in followed]:
                items += self._items(own, [known[fact] for fact in own], itertools.repeat(0))
            if last is not None:
                items.append(self._past_item(last, known[last]))
        return items

    def _told(self, fact: int, known: Known) -> Known:
        """The fact of a number, with its text, data and id."""
        if known.data is None:
            subject, relation, object_ = known.subject, known.relation, known.object
            subject = subject[subject.rfind(SEPARATOR) + 1 :]
            object_ = object_[object_.rfind(SEPARATOR) + 1 :]
            known.text = self.relations.sentence(subject, relation, object_)
            if known.sure is not None and known.sure < 1:
                known.text += f" (confidence {known.sure:.2f})"
            known.data, known.id = (subject, relation, object_), f"spatial:{fact}"
        return known

    def confidence(self, fact: int) -> float | None:
        return self._index.confidence(fact)

    def texts_of(self, facts: Sequence[int]) -> list[str]:
        """Facts, past or current, each as one line."""
        with self.graph.snapshot() as now:
            return [self._told(*one).text for one in zip(facts, self._index.all_known(facts, now))]

    def trust_of(self, fact: int) -> Trust:
        """The level of the most trusted source of a fact, past or current."""
        return self._trust.of(fact)

    def seen(self, fact: int) -> Seen:
        """When a fact, past or current, was seen last."""
        with self.graph.snapshot() as now:
            return self._index.known(fact, now).seen

    def triple(self, fact: int) -> tuple[str, str, str]:
        """Node, relation and node of a fact, past or current; nodes are called "place/name"."""
        with self.graph.snapshot() as now:
            known = self._index.known(fact, now)
        return known.subject, known.relation, known.object

    def _items(self, facts: Iterable[int], all_known: Iterable[Known], hops: Iterable[int]) -> list[Item]:
        """Facts as items, each so many hops away."""
        time, levels = self.time, self._trust.levels
        sources: dict[int, tuple[int]] = {}  # one for all items of an episode
        items = []
        for fact, known, hop in zip(facts, all_known, hops):
            seen, episode, step = known.seen
            if known.data is None:
                self._told(fact, known)
            # Nearest first; at one distance what was seen last first; which room furniture is in says little.
            score = _NEAR[hop] * (0.9 + 0.1 / (1 + time - seen)) * (0.3 if known.relation == "in room" else 1.0)
            if known.sure is not None:
                score *= known.sure
            if hop:
                why = _WHY[hop]
            elif known.subject == AGENT:
                why = "about the agent"
            else:
                why = "about what the query names"
            trust = levels.get(fact, "sensor") if levels else "sensor"
            source = sources.get(episode) or sources.setdefault(episode, (episode,))
            fields = (known.text, "spatial", score, why, episode, step, source, known.data, known.id, trust)
            items.append(_new_item(fields))
        return items

    def _past_item(self, fact: int, known: Known) -> Item:
        seen, episode, step = known.seen
        subject, relation, object_ = split(known.subject)[1], known.relation, split(known.object)[1]
        if relation == HOLDS:
            text = f"{object_} was last held by {subject}"
        else:
            text = f"{subject} was last seen {relation} {object_}, not there now"
        why = f"last place of what the query names, seen at time {seen}"
        data, trust = (subject, f"was {relation}", object_), self._trust.of(fact)
        return Item(text, "spatial", 0.2, why, episode, step, (episode,), data, f"spatial:{fact}", trust)
