"""EB-ALFRED's texts as memories and beliefs: views in sentences that memory's rules read, and what is so now.

    sentences(observation)            # "The Fridge is open. In it, you see a Potato, a Cup_2.\nYou are carrying: ..."
    EbAlfredRules().beliefs(memory, working).things       # {"Cup_2": "Fridge"}

A home has no name in EB-ALFRED: it is known again by how many of each fixed place its list of actions numbers.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Sequence
from typing import ClassVar, Self

from embodied_mem.agents.beliefs import Present, WorkingMemory
from embodied_mem.agents.eb_alfred_words import Goal, understand
from embodied_mem.agents.plans import PlanStep
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.observations import class_of, read_observation

SUCCESS = "Last action executed successfully"
DOORS = ("Fridge", "Microwave", "Cabinet", "Drawer", "Safe")
BASINS = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin"}
_HIDDEN = re.compile(r"(\w+) is not visible because it is in (\w+)\.")
RECEPTACLES = {
    "ArmChair", "BathtubBasin", "Bed", "Bowl", "Box", "Cabinet", "Cart", "CoffeeMachine", "CoffeeTable",
    "CounterTop", "Cup", "Desk", "DiningTable", "Drawer", "Dresser", "Fridge", "GarbageCan", "HandTowelHolder",
    "LaundryHamper", "Microwave", "Mug", "Ottoman", "Pan", "Plate", "Pot", "Safe", "Shelf", "SideTable",
    "SinkBasin", "Sofa", "StoveBurner", "TVStand", "Toaster", "Toilet", "ToiletPaperHanger", "TowelHolder",
}  # fmt: skip
_RECENT = 3
"""Answers that are remembered without spatial memory: RoboMemory's temporal memory holds three steps."""


@dataclasses.dataclass
class AlfredWorking(WorkingMemory):
    """What is at hand in the running task.

    Attributes:
        meant: what the instruction asks for.
        names: kind -> names under which its instances can be found.
        tried: readings that were carried out.
        recent: the last answers, as memory reads them.
        full: places that took nothing.
        cut: kind -> name of the thing that was sliced.
        at_home: whether there were tasks in this home before.
    """

    meant: Goal | None = None
    names: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    tried: set = dataclasses.field(default_factory=set)
    recent: list[str] = dataclasses.field(default_factory=list)
    full: set[str] = dataclasses.field(default_factory=set)
    cut: dict[str, str] = dataclasses.field(default_factory=dict)
    at_home: bool = False


@dataclasses.dataclass
class Scene(Present):
    """The present state, as far as it is known; `at` is what was found last.

    Attributes:
        working: of the task.
        view: names in view.
        home: kinds that were seen in this home so far, in small letters.
    """

    STATES: ClassVar[frozenset[str]] = Present.STATES | {"on"}

    working: AlfredWorking
    view: set[str] = dataclasses.field(default_factory=set)
    home: frozenset[str] = frozenset()

    def copy(self) -> Self:
        """A copy to imagine in."""
        return dataclasses.replace(super().copy(), view=set(self.view))

    def refused(self, command: str) -> bool:
        """Whether a command had no effect at this place with this in the hand."""
        return bool(self.working.refused[command, self.at, self.held])

    def is_missing(self, name: str) -> bool:
        """Whether a thing of this name could not be found in this task."""
        return any(said == f"find a {name}" for said, _, _ in self.working.refused)

    def is_absent(self, kind: str) -> bool:
        """Whether no thing of a kind could be found in this task."""
        return all(map(self.is_missing, self.working.names[kind]))

    def is_strange(self, kind: str) -> bool:
        """Whether the home is known from earlier tasks and was never seen to hold this kind."""
        return self.working.at_home and BASINS.get(kind, kind).lower() not in self.home


def home_of(commands: Sequence[str]) -> str:
    """A name for the home whose fixed places are numbered as in this list of actions."""
    movable = {"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"}
    places = [c[7:] for c in commands if c.startswith("find a ") and "_" in c]
    fixed = sorted(p for p in places if class_of(p) in RECEPTACLES and class_of(p) not in movable)
    return f"home-{zlib.crc32(', '.join(fixed).encode()):08x}" if fixed else ""


def sentences(observation: str) -> str:
    """A view in the sentences that memory's rules read."""
    lines = []
    seen = re.search(r"In view: (.*)\.\nIn hand: (.*)\.", observation)
    if seen is None:
        return ""
    fixed = []
    for item in seen[1].split("; "):
        head, _, contents = item.partition(" with ")
        name, _, state = head.partition(" (")
        if name == "nothing":
            continue
        inside = _listed(name, re.split(r", | with ", contents)) if contents else "nothing"
        fixed.append(f"a {name}")
        if "closed" in state:
            lines.append(f"The {name} is closed.")
        elif "open" in state:
            lines.append(f"The {name} is open. In it, you see {inside}.")
        elif class_of(name) in RECEPTACLES:
            lines.append(f"On the {name}, you see {inside}.")
    if fixed:
        lines.append(f"Looking quickly around you, you see {', '.join(fixed)}.")
    held = _bare(seen[2].partition(" with ")[0])
    # Of what lies in a thing that lies somewhere, the first is named behind it; where its list ends is not told.
    inner = re.findall(r"(?=\b(Bowl|Box|Cup|Mug|Pan|Plate|Pot)(_\d+)?(?: \(\w+\))? with (\w+))", observation)
    nested = [f"This is a normal {kind}{number}. In it, you see a {thing}." for kind, number, thing in inner]
    lines.append("You are not carrying anything." if held == "nothing" else f"You are carrying: a {held}.")
    lines += nested
    if hidden := _HIDDEN.search(observation):
        lines.append(f"This is a normal {hidden[2]}. In it, you see a {hidden[1]}.")
    return "\n".join(lines)


def _listed(place: str, contents: Sequence[str]) -> str:
    """Contents as a list; slices, which have no numbers, get one that tells where they lie."""
    first = 10 * (zlib.crc32(place.encode()) % 10_000)
    names = []
    for number, thing in enumerate(map(_bare, contents)):
        names.append(f"a {thing}_{first + number}" if thing.endswith("Sliced") else f"a {thing}")
    return ", ".join(names)


def _bare(name: str) -> str:
    return name.partition(" (")[0]


class EbAlfredRules:
    """EB-ALFRED's texts; see `WorldRules`."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> AlfredWorking:
        """As `WorldRules.begin`; `commands` name the home and the instances of each kind."""
        text = sentences(observation)
        home = home_of(commands)
        known = memory.spatial is not None and bool(memory.spatial.kinds(home))
        memory.begin_task(task_id, goal, text, place=home)
        names: dict[str, list[str]] = {}
        for command in commands:
            if command.startswith("find a "):
                names.setdefault(class_of(command[7:]), []).append(command[7:])
        meant = understand(goal)
        # The bare name comes first in the list, the others in the order of their texts.
        ordered = {kind: tuple(sorted(found, key=lambda n: (len(n), n))) for kind, found in names.items()}
        working = AlfredWorking(
            goal, observation, (), [], began=memory.time, kinds=meant.kinds if meant else (), meant=meant, names=ordered
        )
        working.recent = [text]
        working.at_home = known
        return working

    def note(self, memory: LifelongMemory, working: AlfredWorking, step: PlanStep, observation: str) -> None:
        """As `WorldRules.note`."""
        held, at = working.before
        text = sentences(observation)
        if not observation.startswith(SUCCESS):
            working.refused[step.command, at, held] += 1
            if step.command.startswith("put down") and held:
                working.full.add(at)
        else:
            if step.command.startswith("find a "):
                text += f"\nYou arrive at {step.command[7:]}."
            else:
                for key in [key for key in working.refused if not key[0].startswith("find ")]:
                    del working.refused[key]
            if step.command.startswith("slice the ") and class_of(at) == step.command[10:]:
                working.cut[step.command[10:]] = at
            if step.effect:
                text += f"\n{step.effect}"
        working.recent = [*working.recent[-_RECENT + 1 :], text]
        memory.observe(step.command, text)

    def beliefs(self, memory: LifelongMemory, working: AlfredWorking) -> Scene:
        """As `WorldRules.beliefs`."""
        scene = Scene(working)
        now = read_observation(working.recent[-1])
        scene.view = {name for fact in now.facts for name in (fact[0], fact[2]) if fact[1] in ("in", "on", "in room")}
        for text in working.recent:
            scene.note(read_observation(text))
        if memory.spatial is not None:
            _from_graph(scene, memory, working)
        return scene


def _from_graph(scene: Scene, memory: LifelongMemory, working: AlfredWorking) -> None:
    """What spatial memory adds: where things are since the task began, their states, and what the home holds."""
    spatial = memory.spatial
    scene.at = spatial.position()
    kinds = [*working.kinds, *(kind + "Sliced" for kind in (working.meant.objects if working.meant else ()))]
    for kind in kinds:
        for sighting in spatial.of_class(kind):
            if sighting.episode == memory.episode and sighting.current and sighting.relation in ("in", "on"):
                scene.things[sighting.name] = sighting.receptacle
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
