"""Planning in EB-Habitat by rules, for `PlannerCriticAgent`: search, fetch, carry, shut doors.

    agent = PlannerCriticAgent(planner=EbHabitatPlanner(), critic=EbHabitatCritic(), world=EbHabitatRules())
    action = agent.begin(task_id, instruction, observation)

All apartments look alike in the texts, so what earlier tasks teach is where such things are found in general
(semantic memory): it orders the search. A reading of the instruction picks a kind and a place for each thing that is
to be brought; that the task goes on when a reading was carried out tells that another one is meant.

Needs of steps: ("there", thing, place), ("holding", kind), ("empty hand",), ("sought", kind), ("unsearched", place).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Sequence

from embodied_mem.agents.beliefs import Present, WorkingMemory
from embodied_mem.agents.eb_habitat_words import Goal, understand
from embodied_mem.agents.plans import Plan, PlanStep, Situation, foreseen, plan_untried
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.observations import class_of, read_observation

SUCCESS = "Last action executed successfully"
_PLACE = re.compile(r"(?:On the |The )(.+?)(?:, you see| is )")
_SEEN = re.compile(r"(On the .+?, you see|The .+? is open\. In it, you see) (.*)\.\Z")
_HELD = re.compile(r"You are holding an? (.+)\.\Z")
_LISTED = re.compile(r"Its places are (.*?)\. You")
DOORS = {
    "refrigerator": ("refrigerator push point", "refrigerator"),
    "left drawer of the kitchen counter": ("cabinet 7", "cabinet 7"),
    "right drawer of the kitchen counter": ("cabinet 5", "cabinet 5"),
}
"""Place behind a door -> (where to go, what to open)."""
_ALIASES = {"table 1": "black table", "table 2": "brown table", "chair 1": "chair"}
"""Names without numbers for memory, whose classes are names without their numbers; the first text tells two of them."""
_COMMON_NAMES = {name: place for place, name in _ALIASES.items()}
_RECENT = 3
_UNSEEN = 0.5
"""Finds added to those in each place, as in `hints`."""


@dataclasses.dataclass(frozen=True)
class Errand:
    """One thing to be brought, with one kind and one place; no place stands for anywhere else than the source."""

    kind: str
    place: str
    source: str
    all: bool


@dataclasses.dataclass
class HabitatWorking(WorkingMemory):
    """What is at hand in the running task.

    Attributes:
        meant: what the instruction asks for.
        tried: readings that were carried out.
        recent: the last answers, as memory reads them.
    """

    meant: Goal = dataclasses.field(default_factory=Goal)
    tried: set[tuple[Errand, ...]] = dataclasses.field(default_factory=set)
    recent: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Apartment(Present):
    """The present state, as far as it is known; `held` is the kind in the hand.

    Attributes:
        working: of the task.
    """

    working: HabitatWorking

    def of_kind(self, kind: str) -> dict[str, str]:
        """Known things of a kind and where they are."""
        return {thing: place for thing, place in self.things.items() if class_of(thing) == kind}


def sentences(observation: str, places: Sequence[str]) -> str:
    """An answer in the sentences that memory's rules read; things get numbers that tell where they are."""
    if listed := _LISTED.search(observation):
        names = re.split(r", and the |, the |^the ", listed[1])
        told = [re.sub(r" \(.*\)", "", name) for name in names if name]
        return "Looking quickly around you, you see " + ", ".join(f"a {_ALIASES.get(n, n)}" for n in told) + "."
    lines, held = [], "You are not carrying anything."
    for line in observation.split("\n")[1:]:
        if found := _HELD.match(line):
            held = f"You are carrying: a {found[1]} 0."
        elif found := _PLACE.match(line):
            name = _ALIASES.get(found[1], found[1])
            line = line.replace(found[1], name, 1)
            if (seen := _SEEN.match(line)) and seen[2] != "nothing":
                first = 100 * (places.index(name) + 1 if name in places else len(places) + 1)
                things = re.split(r", and |, ", seen[2])
                numbered = [f"{thing} {first + i}" for i, thing in enumerate(things)]
                line = f"{seen[1]} {', '.join(numbered)}."
            lines.append(line)
    return "\n".join([*lines, held])


class EbHabitatRules:
    """EB-Habitat's texts; see `WorldRules`."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> HabitatWorking:
        """As `WorldRules.begin`; apartments have no names."""
        text = sentences(observation, ())
        memory.begin_task(task_id, goal, text, place="apartment")
        places = tuple(subject for subject, relation, _ in read_observation(text).facts if relation == "in room")
        meant = understand(goal)
        kinds = tuple(dict.fromkeys(kind for move in meant.moves for kind in move.kinds))
        return HabitatWorking(goal, observation, places, [], began=memory.time, kinds=kinds, meant=meant)

    def note(self, memory: LifelongMemory, working: HabitatWorking, step: PlanStep, observation: str) -> None:
        """As `WorldRules.note`."""
        text = sentences(observation, working.receptacles)
        if not observation.startswith(SUCCESS):
            held, at = working.before
            working.refused[step.command, at, held] += 1
        elif step.command.startswith("navigate to the "):
            name = step.command.removeprefix("navigate to the ")
            text += f"\nYou arrive at {_ALIASES.get(name, name)}."
        else:
            working.refused.clear()
        working.recent = [*working.recent[-_RECENT + 1 :], text]
        memory.observe(step.command, text)

    def beliefs(self, memory: LifelongMemory, working: HabitatWorking) -> Apartment:
        """As `WorldRules.beliefs`."""
        now = Apartment(working)
        for text in working.recent:
            now.note(read_observation(text))
        now.held = class_of(now.held)
        if (spatial := memory.spatial) is not None:
            now.at = spatial.position()
            now.searched = set(working.receptacles).difference(spatial.unsearched())
            for kind in working.kinds:
                for sighting in spatial.of_class(kind):
                    if sighting.current and sighting.episode == memory.episode and sighting.relation in ("in", "on"):
                        now.things[sighting.name] = sighting.receptacle
        return now


def _go(place: str) -> str:
    return f"navigate to the {_COMMON_NAMES.get(place, place)}"


class EbHabitatPlanner:
    """Plans by rules."""

    def plan(self, situation: Situation) -> Plan:
        """As `Planner.plan`."""
        now: Apartment = situation.beliefs
        meant = now.working.meant
        if meant.go:
            place = _ALIASES.get(meant.go, meant.go)
            again = now.at == place  # it is the wrong place, or one that goes by another name
            options = [p for p in now.working.receptacles if p != place] if again else [place]
            return Plan((PlanStep(_go(options[0]), (), "the goal is to be there"),))
        if meant.close or meant.open:
            stand, door = DOORS[meant.close or meant.open]
            verb = "close" if meant.close else "open"
            return Plan((PlanStep(_go(stand), (), f"to {verb} it"), PlanStep(f"{verb} the {door}", (), "the goal")))
        order = _search_order(situation)
        if plan := plan_untried(
            _readings(now), now.working.tried, lambda reading: foreseen(_Imagined(reading, now.copy(), order).next)
        ):
            return plan
        left = [p for p in order if p not in now.searched] or list(now.working.receptacles)
        return Plan((PlanStep(_go(next(p for p in left if p != now.at)), (), "nothing else is to be done"),))


def _readings(now: Apartment) -> list[tuple[Errand, ...]]:
    """Readings of the goal, the likeliest first."""
    slots = []
    for move in now.working.meant.moves[:4]:
        options = [
            (i + j, Errand(kind, _ALIASES.get(place, place), _ALIASES.get(move.source, move.source), move.all))
            for i, kind in enumerate(move.kinds)
            for j, place in enumerate(move.places or ("",))
        ]
        slots.append(options)
    found = [(sum(cost for cost, _ in c), tuple(errand for _, errand in c)) for c in itertools.product(*slots)]
    return [reading for _, reading in sorted(found, key=lambda pair: pair[0]) if reading]


def _search_order(situation: Situation) -> list[str]:
    """Places to look through: by what such things were found in before, else as the first text lists them."""
    now, semantic = situation.beliefs, situation.memory.semantic
    worth: Counter = Counter()
    if semantic is not None:
        for kind in now.working.kinds:
            found = dict(semantic.places_of(kind))
            total = sum(found.values()) + _UNSEEN * len(now.working.receptacles)
            for place in now.working.receptacles:
                worth[place] += (found.get(place, 0) + _UNSEEN) / total
    return sorted(now.working.receptacles, key=lambda place: (place in DOORS, -worth[place]))


class _Imagined:
    """The state as it will be when the steps planned so far have worked."""

    def __init__(self, reading: tuple[Errand, ...], now: Apartment, order: list[str]):
        self.reading, self.now, self.order = reading, now, order
        self._finished = False

    def next(self) -> list[PlanStep]:
        """The next few steps; none when the reading holds, or nothing can be foreseen any more."""
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
        """(thing, place) to be fetched; from the source, if one is named and was not searched in vain."""
        found = {t: p for t, p in self.now.of_kind(errand.kind).items() if p != errand.place}
        if errand.source and (here := {t: p for t, p in found.items() if p == errand.source}):
            found = here
        elif errand.source and (not errand.place or errand.source not in self.now.searched):
            return None
        return min(found.items(), key=lambda pair: pair[1] != self.now.at, default=None)

    def _is_done(self, errand: Errand) -> bool:
        now, places = self.now, self.now.of_kind(errand.kind).values()
        if now.held == errand.kind:
            return False
        if not errand.place:
            return errand.source in now.searched and errand.source not in places
        if errand.all:
            open_air = [p for p in now.working.receptacles if p not in DOORS]
            return set(open_air) <= now.searched and all(place == errand.place for place in places)
        return errand.place in places

    def _elsewhere(self, errand: Errand) -> str:
        """Where to leave what is only to be taken away."""
        return "sofa" if errand.source != "sofa" else "brown table"

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
        now.things[f"{kind} {len(now.things) + 10_000}"] = place
        where = _COMMON_NAMES.get(place, place)
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
        order = sorted(self.order, key=lambda place: place != errand.source)
        for place in order:
            if place in now.searched:
                continue
            stand, door = DOORS.get(place, (place, ""))
            needs = (("sought", errand.kind), ("unsearched", place))
            steps += self._walk(stand, f"to look for a {errand.kind}", *needs)
            if door:
                steps.append(PlanStep(f"open the {door}", needs, f"to look for a {errand.kind}"))
        return steps


class EbHabitatCritic:
    """Compares what a step needs with what is known now. What is not known is no objection."""

    needs_retrieval = False

    def review(self, step: PlanStep, situation: Situation) -> str:
        """As `Critic.review`."""
        now: Apartment = situation.beliefs
        if now.working.refused[step.command, now.at, now.held]:
            return f"'{step.command}' had no effect here before"
        return next(filter(None, (self._objection(need, now) for need in step.needs)), "")

    def _objection(self, need: tuple[str, ...], now: Apartment) -> str:
        match need:
            case ("there", thing, place):
                known = now.things.get(thing) == place or place not in now.searched
                return "" if known else f"{thing} is not at {place}"
            case ("holding", kind):
                return "" if now.held == kind else f"no {kind} is in the hand"
            case ("empty hand",):
                return f"{now.held} is in the hand" if now.held else ""
            case ("sought", kind):
                return f"a {kind} was seen" if now.of_kind(kind) else ""
            case ("unsearched", place):
                return f"{place} was searched" if place in now.searched else ""
        raise InvalidInputError(f"needs: expected a need that the critic knows, got {need!r}")
