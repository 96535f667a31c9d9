r"""EB-Habitat's rules for the planner-critic: answers as sentences that memory reads, and beliefs about the present.

sentences(f"{SUCCESS}.\nOn the table 1, you see a cup.", ("black table",))
# "On the black table, you see a cup 100.\nYou are not carrying anything."
EbHabitatRules().beliefs(memory, working).things       # {"cup 100": "black table"}
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory, home_told
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers.household import read_observation
from embodied_mem.memory.readers.reading import class_of

from ..alfworld_adapter import SUCCESS
from .instruction import Goal, understand
from .kinds import DOORS
from .layout import Layout

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
    """An answer in the sentences that memory's rules read; things get numbers that tell where they are."""
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
    """Kinds of things that matter for a goal, those of its condition first."""
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
        """As `WorldRules.begin`; an apartment is known by its name or how its places stand, if told."""
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
