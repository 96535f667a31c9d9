"""EB-ALFRED's agent by rules: views as sentences that memory reads, beliefs about the present, planner and critic.

    agent = PlannerCriticAgent.for_world("eb_alfred")
    action = agent.begin(task_id, instruction, observation, commands)

`find` walks to a thing wherever it is, unless things are hidden (`view`): then places are looked through, first those
where such things were found before in this home. What is hard is the instruction: each slot of the goal holds several
kinds (`instruction`), and a reading picks one for each. The planner tries readings in the order of their likelihood;
between readings that are as likely, it takes the one whose kinds were seen in this home before. That the task goes
on when a reading was carried out tells that another one is meant, for an agent that retries. A home has no name: it
is known again by how many of each fixed place its list of actions numbers.

Needs of steps: ("sought", kind), ("unsearched", place), ("visible", thing), ("holding", kind), ("empty hand",),
("at", place), ("open", place), ("shut", place).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory, found_here, home_told
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import COMPLETE, Plan, PlanStep, foreseen, plan_untried
from embodied_mem.agents.planner_critic.rules import RuleCritic
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers.household import read_observation
from embodied_mem.memory.readers.reading import STATE_AFTER, class_of

from ..alfworld_adapter import SUCCESS
from ..words import State
from .instruction import BASINS, DOORS, MOVABLE, RECEPTACLES, SLICEABLE, TOOLS, Goal, actions_of_change, understand
from .view import HIDDEN, Item, read_view

_HIDDEN = re.compile(r"\b(\w+) is not visible because it is in (\w+)\.")
_FIND = "find a "


@dataclasses.dataclass
class AlfredWorking(WorkingMemory):
    """Working memory of the running task.

    Attributes:
        meant: what the instruction asks for.
        names: kind -> names under which its instances can be found.
        full: places that took nothing.
        cut: kind -> name of the thing that was sliced.
        at_home: whether there were tasks in this home before.
        hidden: whether things can be found only once they were seen (`hidden`).
        seen: names in or behind the views of this task.
        looked: places whose content was seen in this task.
        reading: what is being carried out.
        picks: (reading, kind) -> times that such a thing was picked up for it.
    """

    meant: Goal | None = None
    names: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    full: set[str] = dataclasses.field(default_factory=set)
    cut: dict[str, str] = dataclasses.field(default_factory=dict)
    at_home: bool = False
    hidden: bool = False
    seen: set[str] = dataclasses.field(default_factory=set)
    looked: set[str] = dataclasses.field(default_factory=set)
    reading: Any = None
    picks: Counter[tuple[Any, str]] = dataclasses.field(default_factory=Counter)

    def look(self, observation: str) -> None:
        """Notes what an answer shows."""
        view = read_view(observation)
        for item in view.items if view else ():
            self.seen.update((item.name, *item.things))
            if "closed" not in item.states:
                self.looked.add(item.name)


@dataclasses.dataclass
class EbAlfredBeliefs(Beliefs):
    """The present state, as far as it is known; `at` is what was found last.

    Attributes:
        working: of the task.
        view: names in view.
        home: kinds that were seen in this home so far, in small letters.
    """

    STATES: ClassVar[frozenset[str]] = Beliefs.STATES | {"on"}

    working: AlfredWorking
    view: set[str] = dataclasses.field(default_factory=set)
    home: frozenset[str] = frozenset()

    def copy(self) -> Self:
        """Return a copy to imagine in."""
        return dataclasses.replace(super().copy(), view=set(self.view))

    def is_missing(self, name: str) -> bool:
        """Return whether a search for this name failed in this task."""
        return any(said == f"find a {name}" for said, _, _ in self.refused)

    def is_absent(self, kind: str) -> bool:
        """Decide whether every thing of a kind is missing in this task."""
        return all(map(self.is_missing, self.working.names[kind]))

    def known(self, kind: str) -> list[str]:
        """Return a kind's findable names: all, or the seen ones."""
        names = self.working.names[kind]
        return [name for name in names if not self.working.hidden or name in self.working.seen]

    def is_strange(self, kind: str) -> bool:
        """Return whether a known home was never seen to hold this kind."""
        return self.working.at_home and BASINS.get(kind, kind).lower() not in self.home


def home_of(commands: Sequence[str]) -> str:
    """Return a home's name by the fixed places in its actions."""
    places = [c.removeprefix(_FIND) for c in commands if c.startswith(_FIND) and "_" in c]
    fixed = sorted(p for p in places if class_of(p) in RECEPTACLES - MOVABLE)
    return f"home-{zlib.crc32(', '.join(fixed).encode()):08x}" if fixed else ""


def sentences(observation: str) -> str:
    """Return a view in the sentences that memory's rules read."""
    view = read_view(observation)
    if view is None:
        return ""
    lines = [line for item in view.items if (line := _sentence(item))]
    if view.items:
        lines.append(f"Looking quickly around you, you see {', '.join(f'a {item.name}' for item in view.items)}.")
    lines.append("You are not carrying anything." if view.hand == "nothing" else f"You are carrying: a {view.hand}.")
    # Of what lies in a thing that lies somewhere, the first is named behind it; where its list ends is not told.
    inner = re.findall(r"(?=\b(Bowl|Box|Cup|Mug|Pan|Plate|Pot)(_\d+)?(?: \(\w+\))? with (\w+))", observation)
    lines += [f"This is a normal {kind}{number}. In it, you see a {thing}." for kind, number, thing in inner]
    if hidden := _HIDDEN.search(observation):
        lines.append(f"This is a normal {hidden[2]}. In it, you see a {hidden[1]}.")
    return "\n".join(lines)


def _sentence(item: Item) -> str:
    """List an item's contents; slices get numbers that tell their places."""
    first = 10 * (zlib.crc32(item.name.encode()) % 10_000)
    slices = {number: f"_{first + number}" for number, thing in enumerate(item.things) if thing.endswith("Sliced")}
    inside = ", ".join(f"a {thing}{slices.get(number, '')}" for number, thing in enumerate(item.things)) or "nothing"
    if "closed" in item.states:
        return f"The {item.name} is closed."
    if "open" in item.states:
        return f"The {item.name} is open. In it, you see {inside}."
    return f"On the {item.name}, you see {inside}." if class_of(item.name) in RECEPTACLES else ""


class EbAlfredRules:
    """EB-ALFRED's texts; see `WorldRules`."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> AlfredWorking:
        """Begin as `WorldRules.begin`; `commands` name the home and each kind's instances."""
        text = sentences(observation)
        home = home_told(observation) or home_of(commands)
        known = memory.spatial is not None and bool(memory.spatial.kinds(home))
        memory.begin_task(task_id, goal, text, place=home, is_home=True)
        names: dict[str, list[str]] = {}
        for name in (c.removeprefix(_FIND) for c in commands if c.startswith(_FIND)):
            names.setdefault(class_of(name), []).append(name)
        meant = understand(goal)
        # The bare name comes first in the list, the others in the order of their texts.
        ordered = {kind: tuple(sorted(found, key=lambda n: (len(n), n))) for kind, found in names.items()}
        working = AlfredWorking(
            goal, observation, (), [], began=memory.time, kinds=meant.kinds if meant else (), meant=meant,
            names=ordered, recent=[text], at_home=known, hidden=HIDDEN in observation,
        )  # fmt: skip
        working.look(observation)
        return working

    def note(self, memory: LifelongMemory, working: AlfredWorking, step: PlanStep, observation: str) -> None:
        held, at = working.before
        text = sentences(observation)
        working.look(observation)
        if working.failed(not observation.startswith(SUCCESS)):
            working.refuse(step.command)
            if step.command.startswith("put down") and held:
                working.full.add(at)
        else:
            if step.command.startswith(_FIND):
                text += f"\nYou arrive at {step.command.removeprefix(_FIND)}."
            else:
                for key in [key for key in working.refused if not key[0].startswith("find ")]:
                    del working.refused[key]
            if (kind := step.command.removeprefix("pick up the ")) != step.command:
                working.picks[working.reading, kind] += 1
            sliced = step.command.removeprefix("slice the ")
            if sliced != step.command and class_of(at) == sliced:
                working.cut[sliced] = at
            if step.effect:
                text += f"\n{step.effect}"
        working.keep(text)
        memory.observe(step.command, text, outcome=working.status)

    def beliefs(self, memory: LifelongMemory, working: AlfredWorking) -> EbAlfredBeliefs:
        scene = EbAlfredBeliefs(working, refused=working.refused, searched=set(working.looked))
        now = read_observation(working.recent[-1])
        scene.view = {name for fact in now.facts for name in (fact[0], fact[2]) if fact[1] in ("in", "on", "in room")}
        for text in working.recent:
            scene.note(read_observation(text))
        _from_graph(scene, memory, working)
        return scene


def _from_graph(scene: EbAlfredBeliefs, memory: LifelongMemory, working: AlfredWorking) -> None:
    """Add spatial memory's places of this task, states and the home's things."""
    if (spatial := memory.spatial) is None:
        return
    kinds = [*working.kinds, *(kind + "Sliced" for kind in (working.meant.objects if working.meant else ()))]
    scene.recall(memory, kinds)
    known = {*scene.things, *kinds, *(name for kind in DOORS for name in working.names.get(kind, ()))}
    for name, states in spatial.states_seen(known).items():
        for state, time in states.items():
            if time < working.began:
                continue
            if state in ("open", "closed"):
                (scene.closed if state == "closed" else scene.opened).add(name)
            else:
                scene.marks.setdefault(name, set()).add(state)
    scene.home = spatial.kinds()


_STRANGE, _OTHER, _UNSAID = 0.1, 1, 6
"""Cost of a reading per kind that the home was never seen to hold, per place down the list of a slot, and for what the
instruction does not say: that a slice is meant, or two. A view shows few things of a home, so that a kind was never
seen says little: it breaks ties and never outweighs the instruction's words."""


_ASIDE = ("CounterTop", "DiningTable", "SideTable", "Desk", "CoffeeTable", "GarbageCan")
"""Places without a door for what is in the way."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """A goal with one kind for each slot; "" where it has none."""

    object: str
    place: str
    carrier: str
    lamp: str
    change: str
    sliced: bool
    count: int

    @property
    def thing(self) -> str:
        """The kind that is carried: a slice is a kind of its own."""
        return self.object + "Sliced" if self.sliced else self.object


def readings_of(scene: EbAlfredBeliefs) -> list[Reading]:
    """Return readings of the goal, likeliest first, without kinds missing here."""
    meant, found = scene.working.meant, []
    if meant is None:
        return []
    slots = [list(enumerate(kinds or ("",))) for kinds in (meant.objects, meant.places, meant.carriers, meant.lamps)]
    for choice in itertools.product(*slots):
        kinds = [kind for _, kind in choice]
        if any(kind and (kind not in scene.working.names or scene.is_absent(kind)) for kind in kinds):
            continue
        if len(set(filter(None, kinds))) < sum(map(bool, kinds)):
            continue
        cost = sum(_OTHER * rank + _STRANGE * scene.is_strange(kind) for rank, kind in choice if kind)
        object_, place, carrier, lamp = kinds
        plain = Reading(object_, place, carrier, lamp, meant.change, meant.sliced, meant.count)
        found.append((cost, plain))
        if plain.object in SLICEABLE and not plain.sliced:
            found.append((cost + _UNSAID, dataclasses.replace(plain, sliced=True)))
        if meant.count == 1 and not (plain.carrier or plain.lamp or plain.change):
            found.append((cost + _UNSAID, dataclasses.replace(plain, count=2)))
    return [reading for _, reading in sorted(found, key=lambda pair: pair[0])]


class EbAlfredPlanner:
    """Plans by rules; `retries` as of `PlannerCriticConfig`."""

    def __init__(self, *, retries: bool = True):
        self._retries = retries

    def plan(self, situation: Situation) -> Plan:
        scene = situation.beliefs_of(EbAlfredBeliefs)
        order = functools.partial(_search_order, situation, scene)
        while (meant := scene.working.meant) is not None and meant.condition is not None:
            if (holds := _truth(meant.condition, scene)) is None:
                return _look(meant.condition, scene)
            scene.working.meant = meant.then if holds else meant.otherwise

        def steps_of(reading: Reading) -> list[PlanStep] | None:
            scene.working.reading = reading
            if _Imagined(reading, scene, order).holds():
                return []
            if any(scene.working.picks[reading, k] >= 2 * reading.count + 3 for k in (reading.object, reading.carrier)):
                return None  # it goes round in a circle
            steps = foreseen(_Imagined(reading, scene.copy(), order).next)
            return None if not steps or scene.times_refused(steps[0].command) else steps

        idle = PlanStep(_idle(scene), (), "nothing is understood") if self._retries else COMPLETE
        readings, tried = readings_of(scene), scene.working.tried
        return plan_untried(readings, tried, steps_of, retries=self._retries) or Plan((idle,))


def _places_of(state: State, scene: EbAlfredBeliefs) -> list[str]:
    """Return names of a condition's places, the likeliest kind at home."""
    found = [[n for n in scene.working.names.get(k, ()) if not scene.is_missing(n)] for k in state.places]
    return next(filter(None, found), [])


def _truth(state: State, scene: EbAlfredBeliefs) -> bool | None:
    """Return whether a state holds; None if not seen yet."""
    names = _places_of(state, scene)
    if state.is_door:
        seen = [name for name in names if name in scene.opened | scene.closed]
        return any(name in scene.opened for name in seen) == state.holds if seen or not names else None
    if not names and not state.places:
        if any(class_of(name) in state.things for name in (*scene.things, *scene.view)):
            return state.holds
        absent = [kind not in scene.working.names or scene.is_absent(kind) for kind in state.things]
        return not state.holds if all(absent) else None
    places = {BASINS.get(name, name) for name in names}
    kinds_there = {class_of(t).removesuffix("Sliced") for t, place in scene.things.items() if place in places}
    if (kinds_there & set(state.things)) if state.things else kinds_there:
        return state.holds
    return not state.holds if places <= scene.searched else None


def _look(state: State, scene: EbAlfredBeliefs) -> Plan:
    """Go where a state can be seen; open closed places with content."""
    why = "to see what the goal depends on"
    if not state.places:
        names = [n for kind in state.things for n in scene.working.names.get(kind, ()) if not scene.is_missing(n)]
        return Plan((PlanStep(f"find a {names[0]}", (), why),))
    name = next((n for n in _places_of(state, scene) if BASINS.get(n, n) not in scene.searched), "")
    if scene.at == name and name in scene.closed and not scene.times_refused(f"open the {name}"):
        return Plan((PlanStep(f"open the {name}", (), why),))
    return Plan((PlanStep(f"find a {name}", (), why),))


def _idle(scene: EbAlfredBeliefs) -> str:
    """Return a harmless action: to go to one fixed place or another."""
    return "find a CounterTop" if scene.at != "CounterTop" else "find a GarbageCan"


def _search_order(situation: Situation, scene: EbAlfredBeliefs, kind: str) -> list[str]:
    """Return names of places to search for a kind, in order.

    First those where one was found before in this home, then kinds of places where such things were found anywhere.
    """
    memory = situation.memory
    kinds = [k for k in scene.working.names if BASINS.get(k, k) in RECEPTACLES - MOVABLE]
    found = dict(memory.semantic.places_of(kind)) if memory.semantic is not None else {}
    here = found_here(memory, kind)

    def key(name: str) -> tuple[bool, int, bool]:
        basin = BASINS.get(class_of(name), "")
        there = name in here or any(class_of(place) == basin for place in here)
        return not there, -found.get(basin or class_of(name), 0), class_of(name) in DOORS

    return sorted((name for k in kinds for name in scene.working.names[k] if not scene.is_missing(name)), key=key)


class _Imagined:
    """The state as it will be when the steps planned so far have worked."""

    def __init__(self, reading: Reading, scene: EbAlfredBeliefs, order: Callable[[str], list[str]]):
        self.reading, self.scene, self.order = reading, scene, order
        self._mark = STATE_AFTER.get(reading.change, "")
        self._place = BASINS.get(reading.place, reading.place)
        self._finished = False

    def holds(self) -> bool:
        """Return whether all that the reading asks for is the case."""
        if class_of(self.scene.held) == self.reading.thing:
            return bool(self.reading.lamp) and "on" in self.scene.marks.get(self.reading.lamp, ())
        return self._is_done()

    def next(self) -> list[PlanStep]:
        """Return the next foreseeable steps; none once the reading holds."""
        if self._finished:
            return []
        held, kind = self.scene.held, class_of(self.scene.held)
        if kind == self.reading.thing:
            return self._bring(held)
        if kind and kind == self.reading.carrier and self._carried(held):
            return self._deliver(held)
        if self._is_done():
            return []
        if held and self.reading.sliced and kind == self.reading.object:
            return self._put_away(held)
        if held:
            self.scene.held = self.scene.at = ""
            return [PlanStep("drop the object in hand", (("holding", kind),), f"{held} is not wanted")]
        return self._fetch_next()

    def _put_away(self, held: str) -> list[PlanStep]:
        """Puts a whole thing where it is not taken for its slices."""
        scene, slices = self.scene, self._slices()
        taken = {self._place, *(class_of(place) for t, place in scene.things.items() if t in slices)}
        aside = [kind for kind in _ASIDE if kind in scene.working.names and kind not in taken]
        free = [n for kind in aside for n in scene.working.names[kind] if not scene.is_missing(n)]
        return self._put(held, free[0] if free else scene.working.names["CounterTop"][0], "a slice is wanted")

    def _bring(self, held: str) -> list[PlanStep]:
        """Return the goal's next steps with its thing in the hand."""
        if self.reading.lamp:
            return self._light()
        if self.reading.carrier:
            return self._into_carrier(held)
        is_changed = not self._mark or self._mark in self.scene.marks.get(self._whole(held), ())
        return self._deliver(held) if is_changed else self._change(held)

    def _fetch_next(self) -> list[PlanStep]:
        """Take a loaded carrier, make slices, or take a thing."""
        reading, scene = self.reading, self.scene
        if reading.carrier and (full := next(filter(self._carried, scene.known(reading.carrier)), "")):
            return self._fetch(reading.carrier, full)
        if reading.sliced and not self._slices():
            return self._slice() if scene.known(reading.object) else self._search(reading.object)
        name = self._instance()
        return self._fetch(reading.thing, name) if name else self._search(reading.object)

    # What is known.

    def _carried(self, carrier: str) -> bool:
        return any(class_of(t) == self.reading.thing and p == carrier for t, p in self.scene.things.items())

    def _delivered(self) -> dict[str, str]:
        """Things that are where the goal wants them."""
        scene, wanted = self.scene, self.reading.carrier or self.reading.thing
        here = {t: p for t, p in scene.things.items() if class_of(t) == wanted and class_of(p) == self._place}
        if self.reading.carrier:
            return {t: p for t, p in here.items() if self._carried(t)}
        return {t: p for t, p in here.items() if not self._mark or self._mark in scene.marks.get(self._whole(t), ())}

    def _is_done(self) -> bool:
        return not self.reading.lamp and len(self._delivered()) >= self.reading.count

    def _whole(self, thing: str) -> str:
        """Return the name for a thing's marks, shared by slices."""
        return self.reading.thing if self.reading.sliced else thing

    def _slices(self) -> list[str]:
        return [t for t in self.scene.things if class_of(t) == self.reading.thing]

    def _instance(self) -> str:
        """Choose a kind's most reachable thing; "" if none is left."""
        scene, reading = self.scene, self.reading
        delivered = self._delivered()
        if reading.sliced:
            left = [t for t in self._slices() if t not in delivered]
            return min(left, key=lambda t: t not in scene.view, default="")
        left = [n for n in scene.known(reading.object) if n not in delivered and not scene.is_missing(n)]

        return min(left, key=self._hidden, default="")

    def _hidden(self, name: str) -> tuple[bool, bool, bool]:
        """Rank a thing's reach: in view, seen openly, not behind a door."""
        scene, place = self.scene, self.scene.things.get(name, "")
        return name not in scene.view, not place or place in scene.closed, place in scene.closed

    def _first(self, kind: str) -> str:
        """Return a kind's thing that is not missing, preferably in view."""
        scene = self.scene
        names = [n for n in scene.known(kind) if not scene.is_missing(n)]
        return min(names, key=self._hidden, default=kind)

    # Pieces of plans. Each returns its steps and changes what is imagined.

    def _find(self, name: str, why: str, *needs: tuple[str, ...]) -> list[PlanStep]:
        if self.scene.at == name:
            return []
        self.scene.at = name
        self.scene.view = {name}
        return [PlanStep(f"find a {name}", needs, why)]

    def _search(self, kind: str) -> list[PlanStep]:
        """Places to look through where things are hidden; planning ends with them."""
        self._finished = True
        scene, steps, why = self.scene, list[PlanStep](), f"to look for a {kind}"
        for name in self.order(kind) if scene.working.hidden else ():
            place = BASINS.get(name, name)
            if place not in scene.searched:
                needs = (("sought", kind), ("unsearched", place))
                steps += self._find(name, why, *needs)
                steps += [dataclasses.replace(s, needs=(*s.needs, *needs)) for s in self._open(name, why)]
        return steps

    def _uncover(self, name: str) -> list[PlanStep]:
        """Open what hides a found thing; a refusal tells its place."""
        scene = self.scene
        known = scene.things.get(name, "")
        doors = sorted(scene.view & scene.closed)
        door = known if known in scene.closed else ""
        if known and not door and name not in scene.view and known in scene.working.names.get(class_of(known), ()):
            return self._find(known, f"{name} is there")
        if not door and name not in scene.view and doors:
            kind = class_of(name)
            if len(doors) > 1 and not scene.times_refused(f"pick up the {kind}"):
                return [PlanStep(f"pick up the {kind}", (), f"{name} is behind one of {', '.join(doors)}")]
            door = doors[0]
        if not door:
            return []
        scene.closed.discard(door)
        scene.opened.add(door)
        scene.view.add(name)
        return [PlanStep(f"open the {door}", (("shut", door),), f"{name} is in it")]

    def _reach(self, kind: str, name: str) -> list[PlanStep]:
        """Stands before a thing that can be seen."""
        scene = self.scene
        target = self._whence(name)
        if scene.at == target and name not in scene.view:
            return self._uncover(name)
        steps = self._find(target, f"a {kind} is wanted") + self._uncover(name)
        scene.view.add(name)
        return steps

    def _whence(self, name: str) -> str:
        """Return the `find` target for a thing, for a slice its place."""
        scene = self.scene
        if class_of(name) != self.reading.thing or not self.reading.sliced:
            return name
        treated = self._mark in scene.marks.get(self.reading.thing, ())
        place = scene.things.get(name, "") if treated or self._delivered() else ""
        place = next((place_name for place_name, basin in BASINS.items() if basin == class_of(place)), place)
        if place in scene.working.names.get(class_of(place), ()):
            return place
        return scene.working.cut.get(self.reading.object, self.reading.object)

    def _fetch(self, kind: str, name: str) -> list[PlanStep]:
        scene = self.scene
        steps = self._reach(kind, name)
        scene.things.pop(name, None)
        scene.held = name
        command = f"pick up the {kind.removesuffix('Sliced')}"
        return [*steps, PlanStep(command, (("visible", name), ("empty hand",)), f"a {kind} is wanted")]

    def _slice(self) -> list[PlanStep]:
        scene, reading = self.scene, self.reading
        name = self._first(reading.object)
        steps = self._reach(reading.object, name)
        place = scene.things.get(name, scene.at)
        scene.things[reading.thing] = place
        step = PlanStep(f"slice the {reading.object}", (("visible", name),), "a slice is wanted")
        scene.view.add(reading.thing)
        scene.at = self._whence(reading.thing)
        return [*steps, step]

    def _open(self, place: str, why: str) -> list[PlanStep]:
        scene = self.scene
        if class_of(place) not in DOORS or place in scene.opened:
            return []
        scene.closed.discard(place)
        scene.opened.add(place)
        return [PlanStep(f"open the {place}", (("shut", place),), why)]

    def _put(self, held: str, place: str, why: str) -> list[PlanStep]:
        """Go to a place by a new `find`; put the thing down."""
        scene, kind = self.scene, class_of(held)
        scene.at = ""
        steps = self._find(place, why, ("holding", kind)) + self._open(place, why)
        scene.held = ""
        scene.things[held] = BASINS.get(place, place)
        scene.view.add(held)
        needs = (("holding", kind), ("at", place), ("open", place))
        return [*steps, PlanStep("put down the object in hand", needs, why)]

    def _deliver(self, held: str) -> list[PlanStep]:
        names = self.scene.working.names[self.reading.place]
        used = [place for place in self._delivered().values() if place in names]
        open_ones = [n for n in names if n not in self.scene.working.full]
        place = (used or open_ones or list(names))[0]
        return self._put(held, place, "the goal wants it there")

    def _into_carrier(self, held: str) -> list[PlanStep]:
        scene, kind = self.scene, self.reading.carrier
        if not scene.known(kind):
            return self._search(kind)
        name = self._first(kind)
        why = "the goal wants it in there"
        if name in scene.view or scene.at != name:
            scene.at = ""  # to put something into it, it has to be found after picking up
        steps = self._reach(kind, name)
        scene.held = ""
        scene.things[held] = name
        put = PlanStep("put down the object in hand", (("holding", class_of(held)), ("visible", name)), why)
        return [*steps, put]

    def _change(self, held: str) -> list[PlanStep]:
        scene, kind, change = self.scene, class_of(held), self.reading.change
        tool, why = TOOLS[change], f"the goal wants it {self._mark}"
        actions = actions_of_change(change, tool)
        does_it = next((action for action in actions if action.startswith("turn on")), actions[0])
        effect = f"You {change} the {self._whole(held)} using the {BASINS.get(tool, tool)}."
        steps = self._put(held, tool, why)
        steps += [PlanStep(action, (), why, effect if action == does_it else "") for action in actions]
        scene.marks.setdefault(self._whole(held), set()).add(self._mark)
        take = PlanStep(f"pick up the {kind.removesuffix('Sliced')}", (("visible", held), ("empty hand",)), why)
        scene.held, scene.at, scene.view = held, "", {held}
        scene.things.pop(held, None)
        find = [] if self.reading.sliced else [PlanStep(f"find a {held}", (), why)]
        return [*steps, *find, take]

    def _light(self) -> list[PlanStep]:
        self._finished = True
        lamp, kind = self.reading.lamp, class_of(self.scene.held)
        if "on" in self.scene.marks.get(lamp, ()):
            return []
        steps = self._find(lamp, "the goal wants its light", ("holding", kind))
        light = PlanStep(f"turn on the {lamp}", (("holding", kind),), "the goal wants it", f"You turn on the {lamp}.")
        return [*steps, light]


class EbAlfredCritic(RuleCritic[EbAlfredBeliefs]):
    """The critic of EB-ALFRED."""

    beliefs = EbAlfredBeliefs

    def objection(self, need: tuple[str, ...], now: EbAlfredBeliefs) -> str:
        match need:
            case ("visible", name):
                alike = class_of(name) if class_of(name).endswith("Sliced") else ""
                seen = name in now.view or alike in map(class_of, now.view)
                return "" if seen else f"{name} is not in view"
            case ("sought", kind):
                return f"a {kind} was seen" if now.working.hidden and now.known(kind) else ""
            case ("holding", kind):
                return "" if class_of(now.held) == kind else f"no {kind} is in the hand"
        return super().objection(need, now)


def agent_parts(config: PlannerCriticConfig) -> dict[str, Any]:
    """New parts of `PlannerCriticAgent` for this world, by rules."""
    return {"planner": EbAlfredPlanner(retries=config.retries), "critic": EbAlfredCritic(), "rules": EbAlfredRules()}
