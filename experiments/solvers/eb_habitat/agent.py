"""EB-Habitat's agent by rules: answers as sentences that memory reads, beliefs, planner and critic.

    agent = PlannerCriticAgent.for_world("eb_habitat")
    action = agent.begin(task_id, instruction, observation)

All apartments look alike in the texts, so what earlier tasks teach is where such things are found in general
(semantic memory): it orders the search. Where the apartment's name is told, the places come first where such things
were found before in this very apartment. A reading of the instruction picks a kind and a place for each
thing that is to be brought; that the task goes on when a reading was carried out tells that another one is meant, for
an agent that retries.

Needs of steps: ("there", thing, place), ("holding", kind), ("empty hand",), ("sought", kind), ("unsearched", place).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory, found_here, home_told
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import COMPLETE, Plan, PlanStep, foreseen, plan_untried
from embodied_mem.agents.planner_critic.rules import RuleCritic
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers.household import read_observation
from embodied_mem.memory.readers.reading import class_of

from ..alfworld_adapter import SUCCESS
from ..words import State
from .instruction import Goal, understand
from .places import DOORS, Layout

_PLACE = re.compile(r"(?:On the |The )(.+?)(?:, you see| is )")
_SEEN = re.compile(r"(On the [^,]+, you see|The [^.]+ is open\. In it, you see) (.*)\.\Z")
_HELD = re.compile(r"You are holding an? (.+)\.\Z")
_LISTED = "Its places are "
ALIASES = {"table 1": "black table", "table 2": "brown table", "chair 1": "chair"}
"""Names without numbers for memory, whose classes are names without their numbers; the first text tells two of them."""
_BEHIND = {door: place for place, (_, door) in DOORS.items()}
_KEPT_M = 3.0
"""Between places of whose relation memory keeps facts."""
COMMON_NAMES = {name: place for place, name in ALIASES.items()}


@dataclasses.dataclass(frozen=True)
class Errand:
    """One thing to be brought, with one kind and one place; no place stands for anywhere else than the source."""

    kind: str
    place: str
    source: str
    all: bool
    count: int = 1
    avoid: tuple[str, ...] = ()


@dataclasses.dataclass
class HabitatWorking(WorkingMemory):
    """Working memory of the running task.

    Attributes:
        meant: what the instruction asks for.
        home: the apartment's name, where one is told.
        looked: places that were gone to for a condition.
        reading: what is being carried out.
        picks: (reading, kind) -> times that such a thing was picked up for it.
        brought: kinds that were put down somewhere.
    """

    home: str = ""
    meant: Goal = dataclasses.field(default_factory=Goal)
    looked: set[str] = dataclasses.field(default_factory=set)
    reading: tuple[Errand, ...] = ()
    picks: Counter[tuple[tuple[Errand, ...], str]] = dataclasses.field(default_factory=Counter)
    brought: Counter[str] = dataclasses.field(default_factory=Counter)


@dataclasses.dataclass
class EbHabitatBeliefs(Beliefs):
    """The present state, as far as it is known; `held` is the kind in the hand.

    Attributes:
        working: of the task.
    """

    working: HabitatWorking

    def of_kind(self, kind: str) -> dict[str, str]:
        """Known things of a kind and where they are."""
        return {thing: place for thing, place in self.things.items() if class_of(thing) == kind}


def sentences(observation: str, places: Sequence[str]) -> str:
    """Rewrite an answer for memory's rules; numbers tell things' places."""
    if (listed := observation.partition(_LISTED)[2].partition(". You"))[1]:
        names = re.split(r", and the |, the |^the ", listed[0])
        told = [name.partition(" (")[0] for name in names if name]
        return "Looking quickly around you, you see " + ", ".join(f"a {ALIASES.get(n, n)}" for n in told) + "."
    lines, held = [], "You are not carrying anything."
    for line in observation.split("\n")[1:]:
        if found := _HELD.match(line):
            held = f"You are carrying: a {found[1]} 0."
        elif found := _PLACE.match(line):
            name = _BEHIND.get(found[1], ALIASES.get(found[1], found[1]))
            line = line.replace(found[1], name, 1)
            if (seen := _SEEN.match(line)) and seen[2] != "nothing":
                first = 100 * (places.index(name) + 1 if name in places else len(places) + 1)
                things = re.split(r", and |, ", seen[2])
                numbered = [f"{thing} {first + i}" for i, thing in enumerate(things)]
                line = f"{seen[1]} {', '.join(numbered)}."
            lines.append(line)
    return "\n".join([*lines, held])


def _kinds_of(meant: Goal) -> Iterator[str]:
    """Return the kinds of a goal's things, its condition's first."""
    if meant.condition is not None and meant.then is not None and meant.otherwise is not None:
        yield from meant.condition.things
        yield from _kinds_of(meant.then)
        yield from _kinds_of(meant.otherwise)
    yield from (kind for move in meant.moves for kind in move.kinds)


class EbHabitatRules:
    """EB-Habitat's texts; see `WorldRules`."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> HabitatWorking:
        """Begin as `WorldRules.begin`; recognise the apartment by name or layout."""
        text, layout = sentences(observation, ()), Layout.of(observation)
        facts = [
            (ALIASES.get(one, one), relation, ALIASES.get(other, other))
            for one, relation, other in layout.facts
            if layout.gaps_m[one, other] <= _KEPT_M
        ]
        home = home_told(observation)
        seen = f"apartment {zlib.crc32(repr(layout.facts).encode()):08x}" if layout.facts else "apartment"
        memory.begin_task(task_id, goal, text, place=home or seen, facts=facts, is_home=True)
        places = tuple(subject for subject, relation, _ in read_observation(text).facts if relation == "in room")
        meant = understand(goal, layout)
        kinds = tuple(dict.fromkeys(_kinds_of(meant)))
        return HabitatWorking(goal, observation, places, [], began=memory.time, kinds=kinds, meant=meant, home=home)

    def note(self, memory: LifelongMemory, working: HabitatWorking, step: PlanStep, observation: str) -> None:
        text = sentences(observation, working.receptacles)
        if working.failed(not observation.startswith(SUCCESS)):
            working.refuse(step.command)
        elif (name := step.command.removeprefix("navigate to the ")) != step.command:
            text += f"\nYou arrive at {ALIASES.get(name, name)}."
        else:
            working.refused.clear()
            if (kind := step.command.removeprefix("pick up the ")) != step.command:
                working.picks[working.reading, kind] += 1
            elif step.command.startswith("place at "):
                working.brought[working.before[0]] += 1
        working.keep(text)
        memory.observe(step.command, text, outcome=working.status)

    def beliefs(self, memory: LifelongMemory, working: HabitatWorking) -> EbHabitatBeliefs:
        now = EbHabitatBeliefs(working, refused=working.refused)
        for text in working.recent:
            now.note(read_observation(text))
        now.held = class_of(now.held)
        if memory.spatial is not None:
            now.recall(memory, working.kinds)
            now.searched = set(working.receptacles).difference(memory.spatial.unsearched())
        return now


_MANY = 10
"""Things that are picked up for one reading at most, where all of a kind are meant."""
_UNSEEN = 0.5
"""Finds added to those in each place, as in ALFWorld's `search_prior`."""


def _go(place: str) -> str:
    return f"navigate to the {COMMON_NAMES.get(place, place)}"


class EbHabitatPlanner:
    """Plans by rules; `retries` as of `PlannerCriticConfig`."""

    def __init__(self, *, retries: bool = True):
        self._retries = retries

    def plan(self, situation: Situation) -> Plan:
        now = situation.beliefs_of(EbHabitatBeliefs)
        order, remembered = _search_order(situation), _remembered(situation)
        while (meant := now.working.meant).condition is not None:
            if (holds := _truth(meant.condition, now)) is None:
                return _look(meant.condition, now, order)
            branch = meant.then if holds else meant.otherwise
            now.working.meant = branch if branch is not None else Goal()
        if meant.go and not meant.moves:
            place = _named(meant.go)
            again = now.at == place  # it is the wrong place, or one that goes by another name
            if again and not self._retries:
                return Plan((COMPLETE,))
            options = [p for p in now.working.receptacles if p != place] if again else [place]
            return Plan((PlanStep(_go(options[0]), (), "the goal is to be there"),))
        if (meant.close or meant.open) and not meant.moves:
            stand, door = DOORS[meant.close or meant.open]
            verb = "close" if meant.close else "open"
            last = PlanStep(f"{verb} the {door}", (), "the goal")
            if now.working.action == last.command and not self._retries:
                return Plan((COMPLETE,))
            return Plan((PlanStep(_go(stand), (), f"to {verb} it"), last))
        order = [place for place in order if place not in map(_named, meant.shunned)]

        def steps_of(reading: tuple[Errand, ...]) -> list[PlanStep] | None:
            now.working.reading = reading
            if _Imagined(reading, now, order, remembered).holds():
                return _last_steps(meant, now)
            if any(now.working.picks[reading, e.kind] >= (_MANY if e.all else e.count + 2) for e in reading):
                return None  # it goes round in a circle
            return foreseen(_Imagined(reading, now.copy(), order, remembered).next) or None

        if plan := plan_untried(_readings(now), now.working.tried, steps_of, retries=self._retries):
            return plan
        if not self._retries:
            return Plan((COMPLETE,))
        left = [p for p in order if p not in now.searched] or list(now.working.receptacles)
        return Plan((PlanStep(_go(next(p for p in left if p != now.at)), (), "nothing else is to be done"),))


def _named(place: str) -> str:
    return ALIASES.get(place, place)


def _truth(state: State, now: EbHabitatBeliefs) -> bool | None:
    """Return whether a state holds; None if that was not seen yet."""
    place = _named(state.places[0]) if state.places else ""
    if state.is_door:
        known = place in now.opened or place in now.closed or place in now.working.looked
        return (place in now.opened) == state.holds if known else None
    found = {p for thing, p in now.things.items() if not state.things or class_of(thing) in state.things}
    if found and (not place or place in found):
        return state.holds
    places = [place] if place else now.working.receptacles
    is_known = all(p in now.searched or p in now.working.looked for p in places)
    return not state.holds if is_known else None


def _look(state: State, now: EbHabitatBeliefs, order: Sequence[str]) -> Plan:
    """Goes where it can be seen whether a state holds."""
    places = [_named(state.places[0])] if state.places else [p for p in order if p not in now.searched]
    place = next(p for p in places if p not in now.working.looked)
    stand, door = DOORS.get(place, (place, ""))
    is_open = place in now.opened or state.is_door
    if door and not is_open and now.at == stand:
        now.working.looked.add(place)
        return Plan((PlanStep(f"open the {door}", (), "to see what is in it"),))
    if not door or is_open or now.at == stand:
        now.working.looked.add(place)
    return Plan((PlanStep(_go(stand), (), "to see what the goal depends on"),))


def _last_steps(meant: Goal, now: EbHabitatBeliefs) -> list[PlanStep]:
    """Return the closing steps: a door to shut, a place to reach."""
    if meant.close and meant.close not in now.closed:
        stand, door = DOORS[meant.close]
        walk = [] if now.at == stand else [PlanStep(_go(stand), (), "to close it")]
        return [*walk, PlanStep(f"close the {door}", (("open", meant.close),), "the goal wants it closed")]
    return (
        [PlanStep(_go(_named(meant.go)), (), "the goal is to be there")]
        if meant.go and now.at != _named(meant.go)
        else []
    )


def _readings(now: EbHabitatBeliefs) -> list[tuple[Errand, ...]]:
    """Readings of the goal, the likeliest first."""
    slots = []
    for move in now.working.meant.moves[:4]:
        options = [
            (
                i + j,
                Errand(kind, _named(place), _named(move.source), move.all, move.count, tuple(map(_named, move.avoid))),
            )
            for i, kind in enumerate(move.kinds)
            for j, place in enumerate(move.places or ("",))
        ]
        slots.append(options)
    found = [(sum(cost for cost, _ in c), tuple(errand for _, errand in c)) for c in itertools.product(*slots)]
    return [reading for _, reading in sorted(found, key=lambda pair: pair[0]) if reading]


def _search_order(situation: Situation) -> list[str]:
    """Order places to search by earlier finds, else as listed first."""
    now, semantic = situation.beliefs_of(EbHabitatBeliefs), situation.memory.semantic
    worth: defaultdict[str, float] = defaultdict(float)
    if semantic is not None:
        for kind in now.working.kinds:
            found = dict(semantic.places_of(kind))
            total = sum(found.values()) + _UNSEEN * len(now.working.receptacles)
            for place in now.working.receptacles:
                worth[place] += (found.get(place, 0) + _UNSEEN) / total
    return sorted(now.working.receptacles, key=lambda place: (place in DOORS, -worth[place]))


def _remembered(situation: Situation) -> dict[str, list[str]]:
    """Kind -> places where such things were found before in this apartment."""
    now = situation.beliefs_of(EbHabitatBeliefs)
    return {kind: found_here(situation.memory, kind) for kind in now.working.kinds} if now.working.home else {}


class _Imagined:
    """The state as it will be when the steps planned so far have worked."""

    def __init__(
        self,
        reading: tuple[Errand, ...],
        now: EbHabitatBeliefs,
        order: list[str],
        remembered: Mapping[str, Collection[str]],
    ):
        self.reading, self.now, self.order, self.remembered = reading, now, order, remembered
        self._brought: Counter[str] = Counter()
        self._finished = False

    def holds(self) -> bool:
        """Return whether all that the reading asks for is the case."""
        return not self.now.held and all(map(self._is_done, self.reading))

    def next(self) -> list[PlanStep]:
        """Return the next foreseeable steps; none once the reading holds."""
        if self._finished:
            return []
        now = self.now
        if now.held:
            errand = next((e for e in self.reading if e.kind == now.held and not self._is_done(e)), None)
            return self._put(errand.place or self._elsewhere(errand) if errand else self._near())
        for errand in self.reading:
            if not self._is_done(errand):
                known = self._wanted(errand)
                return self._take(*known) if known else self._search(errand)
        return []

    def _wanted(self, errand: Errand) -> tuple[str, str] | None:
        """Return (thing, place) to fetch, from a named source first."""
        kept = {e.place for e in self.reading if e.kind == errand.kind} | {*errand.avoid}
        found = {t: p for t, p in self.now.of_kind(errand.kind).items() if p not in kept}
        if errand.source and (here := {t: p for t, p in found.items() if p == errand.source}):
            found = here
        elif errand.source and (not errand.place or errand.source not in self.now.searched):
            return None
        return min(found.items(), key=lambda pair: pair[1] != self.now.at, default=None)

    def _is_done(self, errand: Errand) -> bool:
        now, places = self.now, self.now.of_kind(errand.kind).values()
        if now.held == errand.kind:
            return False
        if not errand.place and not errand.source:
            return now.working.brought[errand.kind] + self._brought[errand.kind] >= errand.count
        if not errand.place:
            return errand.source in now.searched and errand.source not in places
        if errand.all:
            open_air = [p for p in now.working.receptacles if p not in DOORS]
            return set(open_air) <= now.searched and all(place == errand.place for place in places)
        return [*places].count(errand.place) >= errand.count

    def _elsewhere(self, errand: Errand) -> str:
        """Choose where to leave what is only to be taken away."""
        barred = {errand.source, *errand.avoid}
        return next(place for place in ("sofa", "brown table", "black table", "TV stand") if place not in barred)

    def _near(self) -> str:
        return self.now.at if self.now.at in self.now.working.receptacles else "sofa"

    def _walk(self, place: str, why: str, *needs: tuple[str, ...]) -> list[PlanStep]:
        if self.now.at == place:
            return []
        self.now.at = place
        return [PlanStep(_go(place), needs, why)]

    def _put(self, place: str) -> list[PlanStep]:
        now, kind = self.now, self.now.held
        steps = self._walk(place, "to leave it there", ("holding", kind))
        now.held = ""
        self._brought[kind] += 1
        now.things[f"{kind} {len(now.things) + 10_000}"] = place
        where = COMMON_NAMES.get(place, place)
        return [*steps, PlanStep(f"place at the {where}", (("holding", kind),), "the goal wants it there")]

    def _take(self, thing: str, place: str) -> list[PlanStep]:
        now, kind = self.now, class_of(thing)
        steps = self._walk(place, f"{thing} was seen there", ("empty hand",), ("there", thing, place))
        now.held = kind
        del now.things[thing]
        return [*steps, PlanStep(f"pick up the {kind}", (("empty hand",), ("there", thing, place)), "it is wanted")]

    def _search(self, errand: Errand) -> list[PlanStep]:
        """Places to look through; planning ends with them."""
        self._finished = True
        now, steps = self.now, []
        known = self.remembered.get(errand.kind, ())
        order = sorted(self.order, key=lambda place: (place != errand.source, place not in known))
        for place in order:
            if place in now.searched:
                continue
            stand, door = DOORS.get(place, (place, ""))
            needs = (("sought", errand.kind), ("unsearched", place))
            steps += self._walk(stand, f"to look for a {errand.kind}", *needs)
            if door:
                steps.append(PlanStep(f"open the {door}", needs, f"to look for a {errand.kind}"))
        return steps


class EbHabitatCritic(RuleCritic[EbHabitatBeliefs]):
    """The critic of EB-Habitat."""

    beliefs = EbHabitatBeliefs

    def objection(self, need: tuple[str, ...], now: EbHabitatBeliefs) -> str:
        match need:
            case ("holding", kind):
                return "" if now.held == kind else f"no {kind} is in the hand"
            case ("sought", kind):
                return f"a {kind} was seen" if now.of_kind(kind) else ""
        return super().objection(need, now)


def agent_parts(config: PlannerCriticConfig) -> dict[str, Any]:
    """New parts of `PlannerCriticAgent` for this world, by rules."""
    return {"planner": EbHabitatPlanner(retries=config.retries), "critic": EbHabitatCritic(), "rules": EbHabitatRules()}
