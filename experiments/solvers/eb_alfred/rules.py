"""EB-ALFRED's rules for the planner-critic: views as sentences that memory reads, and beliefs about the present.

    sentences(observation)            # "The Fridge is open. In it, you see a Potato, a Cup_2.\nYou are carrying: ..."
    EbAlfredRules().beliefs(memory, working).things       # {"Cup_2": "Fridge"}

A home has no name in EB-ALFRED: it is known again by how many of each fixed place its list of actions numbers.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory, home_told
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers.household import read_observation
from embodied_mem.memory.readers.reading import class_of

from ..alfworld_adapter import SUCCESS
from .hidden import HIDDEN
from .instruction import Goal, understand
from .kinds import BASINS, DOORS, MOVABLE, RECEPTACLES
from .view import Item, read_view

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
        """A copy to imagine in."""
        return dataclasses.replace(super().copy(), view=set(self.view))

    def is_missing(self, name: str) -> bool:
        """Whether a thing of this name could not be found in this task."""
        return any(said == f"find a {name}" for said, _, _ in self.refused)

    def is_absent(self, kind: str) -> bool:
        """Whether no thing of a kind could be found in this task."""
        return all(map(self.is_missing, self.working.names[kind]))

    def known(self, kind: str) -> list[str]:
        """Names of a kind that can be found: all, or where things are hidden those that were seen."""
        names = self.working.names[kind]
        return [name for name in names if not self.working.hidden or name in self.working.seen]

    def is_strange(self, kind: str) -> bool:
        """Whether the home is known from earlier tasks and was never seen to hold this kind."""
        return self.working.at_home and BASINS.get(kind, kind).lower() not in self.home


def home_of(commands: Sequence[str]) -> str:
    """A name for the home whose fixed places are numbered as in this list of actions."""
    places = [c.removeprefix(_FIND) for c in commands if c.startswith(_FIND) and "_" in c]
    fixed = sorted(p for p in places if class_of(p) in RECEPTACLES - MOVABLE)
    return f"home-{zlib.crc32(', '.join(fixed).encode()):08x}" if fixed else ""


def sentences(observation: str) -> str:
    """A view in the sentences that memory's rules read."""
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
    """What an item says of what is in or on it; slices, which have no numbers, get one that tells where they lie."""
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
        """As `WorldRules.begin`; `commands` name the home and the instances of each kind."""
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
    """What spatial memory adds: where things are since the task began, their states, and what the home holds."""
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
