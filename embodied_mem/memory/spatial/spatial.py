"""Spatial memory: a knowledge graph of places and states, updated at each step from observations.

    spatial = SpatialMemory()
    spatial.begin(episode=0, time=0, place="kitchen 7")
    spatial.observe("You arrive at desk 1. On the desk 1, you see a mug 1.", episode=0, step=1, time=1)
    spatial.last_seen("mug 1").receptacle               # "desk 1"
    spatial.of_class("mug"); spatial.seen_after(1)
    spatial.retrieve("put a mug in fridge.")            # facts within two hops of what the query names, as items

Rules read the texts (`readers`); a text that no rule knows goes to the extractor, if there is one. A receptacle
that was looked at completely ends what was thought to be in it and is not. What a detector gives is weighed
(`evidence`). Entities of different places are different nodes; the agent is one node.

All change goes through `apply(event)`; the same events give the same state. `index` keeps the graph, `queries` has what
can be asked.

Source: RoboMemory 3.2.1 and Algorithm 1. Deviation: facts that end are kept with their times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ...errors import InvalidInputError
from ..arguments import checked_call, checked_flag, checked_real, checked_text, shown
from ..graph import Ended, KnowledgeGraph, Scope
from ..readers import DEFAULT, Reader
from ..readers.reading import AGENT, NOT, class_of, unread_lines
from ..relations import HOUSEHOLD_RELATIONS, Relations
from ..store import Selector
from ..trust import QUOTED, RANK, Trust, checked_trust
from .circles import circular
from .entities import Entities, Found, is_body
from .events import EVENT, check_event, checked_place, drop_what_is_no_name
from .evidence import BELIEVED, Doubt, Evidence
from .fact_trust import FactTrust, rivals
from .identity import THETA, is_meant, name_of
from .index import SpatialIndex
from .queries import SHOWN, SpatialQueries
from .records import AT, HOLDS, STATE, Seen, joined, split

_IN_ITSELF = "nothing is in, on or under itself"

Extractor = Callable[[str, str], Iterable[tuple[str, str, str]]]
"""(action, text) -> facts; for texts that no rule knows."""


class SpatialMemory(SpatialQueries):
    """The graph of one scope and the rules that keep it."""

    format_name = "embodied_mem.spatial_memory"

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
            theta: how sure it must be that a mention is a thing of another name, see `identity`; from 1 on, each
                name is a thing.
        """
        super().__init__(scope, record)
        if not isinstance(relations, Relations):
            raise InvalidInputError(f"relations: expected Relations(...), got {shown(relations)}")
        self.relations, self._theta = relations, checked_real("theta", theta)
        self._followed = tuple(name for name in relations.names if name != STATE)
        self._extractor = checked_call("extractor", extractor)
        self._reader = reader
        self._clear()

    def _clear(self) -> None:
        self._set_index(SpatialIndex(KnowledgeGraph(self.scope, rules=self.relations.rules()), self.relations))
        self._trust = FactTrust()
        self._evidence = Evidence()
        self.place = ""
        self.time = 0
        self._began = 0
        self._episode: int | None = None  # the running one; None if it is not known
        self._changes: list[tuple[str, Sequence[int]]] = []  # by the last event: what was done, and with which facts
        self.doubtful: list[Ended] = []  # by the last event: what ended by a fact that no rule read
        self._asked: tuple[str, Sequence[tuple[str, str]]] = ("", ())  # the last query and its phrases
        self._rooms: set[str] = set()  # places that share their things with each other and with ""

    @property
    def changed(self) -> list[tuple[str, int]]:
        """By the last event: what was done, and the fact."""
        return [(do, fact) for do, facts in self._changes for fact in facts]

    def _set_index(self, index: SpatialIndex) -> None:
        self._index = index
        self._entities = Entities(index, self.relations, self._theta)

    # Changing.

    def begin(self, *, episode: int, time: int, place: str = "", is_home: bool = False) -> None:
        """Start an episode: the agent's hand and position are unknown again; what is known of the place stays.

        Args:
            episode, time: its number, and when it begins.
            place: where it is played.
            is_home: whether the place is a home of its own; else it is a room of one home with all other rooms.
        """
        event = {"op": "begin", "episode": episode, "time": time, "place": checked_place(place)}
        self._record(event | ({"room": True} if not checked_flag("is_home", is_home) and place else {}))

    def observe(self, text: str = "", **where: Any) -> None:
        """Take note of a text and of given facts; arguments as for `propose`."""
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
    ) -> dict[str, Any]:
        """The event that `observe` records; nothing changes. The extractor is asked here, never on replay.

        Args:
            text: what the reader reads, and the extractor where it does not understand.
            episode, step, time: when.
            action: what the text answers.
            given: [subject, relation, object, confidence] as a detector gives them; a confidence may be None.
            trust: of who says it. What another agent or a document writes is not read for facts: "you open the drawer"
                may be an order. Facts that they give enter as `fact_trust` says.
            vectors: name of a thing -> float32[d], what it looks like.
        """
        text, action = checked_text("text", text), checked_text("action", action)
        if checked_trust("trust", trust) in QUOTED:
            text = ""
        reading = self._reader.read(text)
        facts: Iterable[Sequence[str]] = reading.facts
        if self._extractor is not None and (unread := unread_lines(self._reader, text, reading)):
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
        if facts is reading.facts:
            drop_what_is_no_name(event, len(text))
        if given or facts is not reading.facts:
            event["read"] = len(reading.facts)
        if loops := [fact for fact in event["facts"] if fact[0] == fact[2] and fact[1] in self.relations.placing]:
            event["facts"] = [fact for fact in event["facts"] if fact not in loops]
            event["refused"] = [[*fact[:3], None, _IN_ITSELF] for fact in loops]
        believed = self._weighed(event, given, vectors) if given else ()
        event["facts"] += [list(fact[:3]) if fact[3] is None else list(fact) for fact in believed]
        if vectors:
            event["vectors"] = self._index.looks.written(vectors)
        return event

    def _weighed(
        self, event: dict[str, Any], given: Sequence[list[Any]], vectors: Mapping[str, Any] | None
    ) -> list[list[Any]]:
        """The given facts that are believed; the others are put into the event, each with the reason."""
        believed, refused = [], []
        looks: Mapping[str, Any] | None = None
        for fact in given:
            if fact[0][-1] != fact[2][-1] and (fact[3] is None or fact[3] >= BELIEVED):
                believed.append(fact)  # as nearly always
                continue
            if looks is None:
                looks = self._index.looks.read(self._index.looks.written(vectors)) if vectors else {}
            sure, reason = self._doubted(fact, looks)
            believed += [[*fact[:3], sure]] if not reason else []
            refused += [[*fact, reason]] if reason else []
        if refused:
            event["refused"] = event.get("refused", []) + refused
        return believed

    def _doubted(self, fact: list[Any], looks: Mapping[str, Any]) -> tuple[float | None, str]:
        """How sure a fact is with what was said of it before, and why it is not believed; empty if it is."""
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
        """Whether the fact that ended is surer than the one by which it did, and that one is not likely."""
        new, old = self.confidence(ended.by), self.confidence(ended.fact)
        return new is not None and new < BELIEVED and (old is None or new < old)

    def check(self, event: Mapping[str, Any]) -> None:
        check_event(event)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`. Raises InvalidInputError for one that is older than the last."""
        op, time = event["op"], event["time"]
        if time < self.time:
            raise InvalidInputError(f"{EVENT}: expected a time from {self.time} on, got {time}")
        self.time, self._episode = time, event["episode"]
        self._changes, self.doubtful = [], []
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
        self._observe(event, Seen(time, event["episode"], event["step"]))

    def _observe(self, event: Mapping[str, Any], seen: Seen) -> None:
        index, time, trust = self._index, seen.time, event.get("trust", "sensor")
        quoted = trust in QUOTED
        looks = index.looks.read(event.get("vectors", {}))
        said = [fact for fact in event["facts"] if fact[1][: len(NOT)] != NOT]  # `startswith` is slower
        complete = () if quoted else event["complete"]
        found = self._entities.of(said, self.place, looks)
        gone = [fact for name, names in complete for fact in self._gone(name, names, found)]
        if len(said) != len(event["facts"]) and not quoted:
            gone += [n for fact in event["facts"] if fact[1].startswith(NOT) for n in self.denied(*fact[:3])]
        index.end(gone, time)
        changes = self._changes
        changes.append(("end", gone))
        facts = found.facts
        if quoted:
            admitted = self._trust.admitted(self.graph, facts, trust)
            admitted = [
                i for i in admitted
                if all(RANK[self._trust.of(other)] <= RANK[trust] for other in self._elsewhere([facts[i]], found.looks))
            ]  # fmt: skip
            said, facts = [said[i] for i in admitted], [facts[i] for i in admitted]
        if facts:
            sure = {position: fact[3] for position, fact in enumerate(said) if len(fact) == 4}
            change = index.note(facts, seen, sure)
            changes += [("add", change.added), ("repeat", change.repeated)]
            changes.append(("end", [ended.fact for ended in change.ended]))
            if change.added and (moved := self._elsewhere(self._facts_of(change.added), found.looks)):
                index.end(moved, time)
                changes.append(("end", moved))
            if ended := circular(index, facts, change, self.relations.placing):
                index.end(ended, time)
                changes.append(("end", ended))
            if self._evidence:
                self._evidence.settle(self.place, [self.relations.read(*fact[:3])[0] for fact in said])
            if trust != "sensor" or self._trust:
                self._trust.wrote(change, trust)
            if change.ended and (by_rules := event.get("read")) is not None and not quoted:
                sources = dict(zip(change.facts, (i for i, f in enumerate(event["facts"]) if not f[1].startswith(NOT))))
                self.doubtful = [ended for ended in change.ended if sources[ended.by] >= by_rules]
        if not quoted:
            for old, node in found.merged:
                changes.append(("end", index.merge(old, node, seen)))
            index.link(found.known_as, seen.episode)
            index.looks.put({n: look for node, look in found.looks.items() if (n := index.find(node)) is not None})
        for name, _ in complete:
            if name != AGENT:
                index.looked(self._node(name), time)
        for subject, relation, object_, sure, _ in event.get("refused", ()):
            if sure is not None:
                doubt = self.relations.read(subject, relation.removeprefix(NOT), object_)
                self._evidence.add(_doubt(self.place, *doubt, relation.startswith(NOT)), sure, seen.episode)

    def _facts_of(self, facts: Sequence[int]) -> list[tuple[str, str, str]]:
        return [self.triple(fact) for fact in facts] if len(self._rooms) else []

    def _elsewhere(self, facts: Iterable[tuple[str, str, str]], looks: Mapping[str, Any]) -> list[int]:
        """List current facts by which the things of these facts, by their names, are in other rooms of the home.

        Things whose looks are known to differ are two.
        """
        found: list[int] = []
        for fact in facts if self._rooms else ():
            if (held := self._entities.holder(*fact)) is None or is_body(held[0]):
                continue
            place, name = split(held[0])
            others = [joined(room, name) for room in self._others(place)]
            with self.graph.snapshot() as now:
                nodes = [node for node, known in self._entities.all_found(others, now) if known and node != held[0]]
                numbers = [number for number in now.find_all(nodes) if number is not None]
                last = {n: f for n in numbers if (f := self._index.last_place(n)) is not None}
                is_current = dict(zip(last, now.are_current([*last.values()])))
            for number, where in last.items():
                look = looks.get(held[0], looks.get(name))
                alike = None if look is None else self._index.looks.cosine(number, look)
                if is_current[number] and (alike is None or alike > self._theta):
                    found.append(where)
        return list(dict.fromkeys(found))

    def denied(self, subject: str, relation: str, object_: str) -> list[int]:
        """Current facts that such a negative fact ends: of the things of this name or class, whatever else they are."""
        subject, relation, object_ = self.relations.read(subject, relation.removeprefix(NOT), object_)
        node, other = self._node(subject), object_ if relation == STATE else self._node(object_)
        here, mention = self._of_node(other, "in", (relation,)), name_of(subject)
        return [
            fact
            for fact, known in here
            if node in (known.subject, class_of(known.subject))
            or (relation != STATE and is_meant(mention, self._entities.names_of(known.subject)))
        ]

    def _agent_facts(self) -> list[int]:
        """Current facts about where the agent is and what it and its hands hold."""
        hands = self._index.of_place(AGENT)
        with self.graph.snapshot() as now:
            body = now.find(AGENT)
            nodes = hands if body is None else [body, *hands]
            facts = [*itertools.chain.from_iterable(now.facts_of_all(nodes, "out"))]
            found = zip(facts, self._index.all_known(facts, now))
        return [fact for fact, its in found if its.relation == HOLDS or (its.relation == AT and its.subject == AGENT)]

    def _gone(self, container: str, contents: Iterable[str], found: Found) -> list[int]:
        """Current facts about things in a container that is now known to hold only these; names as they were found."""
        kept = {node for name in contents for node in found.named(name) or (self._node(name),)}
        if container == AGENT:
            return [fact for fact, known in self._of_node(AGENT, "out", (HOLDS,)) if known.object not in kept]
        inside = self._of_node(self._node(container), "in", SHOWN)
        return [fact for fact, known in inside if known.subject not in kept]

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        words, parts = self._index.parts()
        own = {"place": self.place, "time": self.time, "began": self._began, "episode": self._episode}
        if self._rooms:
            own["rooms"] = sorted(self._rooms)
        if self._trust:
            own["trust"] = self._trust.rows()
        if self._evidence:
            own["doubted"] = self._evidence.rows()
        return own | words, *parts

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        place, time, began = checked_text("place", state["place"]), state["time"], state["began"]
        index = SpatialIndex.from_parts(state, parts, self.scope, self.relations)
        with index.graph.snapshot() as now:
            trust = FactTrust.of_rows(state.get("trust", ()), now.num_facts)
        self._trust, self._evidence = trust, Evidence.of_rows(state.get("doubted", ()))
        self._rooms = {checked_text("rooms", room) for room in state.get("rooms", ())}
        self._set_index(index)
        self.place, self.time, self._began = place, time, began
        self._episode = state.get("episode")  # older versions did not keep it

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what names an object, what one episode alone supports, or all.

        What an episode ended stays ended.
        """
        nodes, facts = self._index.counts()
        if selector.everything:
            self._clear()
        elif selector.kind in ("object", "episode"):
            self._index.remove(selector)
            self._set_index(self._index)  # what was kept of names goes, too
            self._evidence.remove(selector)
            if self._trust:
                with self.graph.snapshot() as now:
                    self._trust.keep(now)
            self._asked = ("", ())
            running = selector.kind == "episode" and self._episode in (None, selector.episode)
            self.place = "" if running or selector.in_text(self.place) else self.place
            self._rooms &= {self.place, *self._index.places()}
        nodes_left, facts_left = self._index.counts()
        return {"facts": facts - facts_left, "nodes": nodes - nodes_left}

    def fork(self) -> Self:
        """An independent copy, at a cost that hardly depends on its size; what both share is copied when it changes."""
        other = super().fork()
        other._set_index(self._index.fork())
        other._rooms = set(self._rooms)
        other._trust, other._evidence = self._trust.fork(), self._evidence.fork()
        return other


def _doubt(place: str, subject: str, relation: str, object_: str, denies: bool) -> Doubt:
    return place, subject, f"{NOT if denies else ''}{relation} {object_}"
