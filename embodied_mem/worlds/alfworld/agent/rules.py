"""ALFWorld's rules for the planner-critic: how its texts become memories and beliefs.

    beliefs = beliefs_of(memory, working, kinds=("mug", "desklamp"))
    beliefs.things               # {"mug 1": "desk 1"}: what was seen in this task and not contradicted since
    beliefs.is_here("desk 1")

With spatial memory beliefs come from its graph; without, from the few steps that temporal memory holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers.household import is_refusal, read_observation
from embodied_mem.memory.readers.reading import STATE_AFTER
from embodied_mem.memory.temporal import Entry
from embodied_mem.worlds.alfworld.wording.text import parse_command, parse_goal, parse_room, type_of


@dataclasses.dataclass
class AlfworldBeliefs(Beliefs):
    """The present state of a room of ALFWorld; `things` are those of the kinds that matter.

    Attributes:
        receptacles: of the room.
        doors: receptacles known to have a door, from any task.
        beside, unseen: as `WorkingMemory`.
    """

    receptacles: tuple[str, ...]
    doors: set[str] = dataclasses.field(default_factory=set)
    beside: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    unseen: str = ""

    def is_here(self, place: str) -> bool:
        """Decide whether a place is reached.

        Places side by side reach each other.
        """
        return place == self.at or (self.at, place) in self.beside or (place, self.at) in self.beside

    def may_be_closed(self, receptacle: str) -> bool:
        """Decide whether a receptacle is closed, or unseen with a possible door."""
        if receptacle in self.closed or receptacle in self.opened or receptacle in self.searched:
            return receptacle in self.closed
        return receptacle in self.doors or type_of(receptacle) in map(type_of, self.doors)

    def cost(self, receptacle: str) -> int:
        """Count the commands of looking into a receptacle and coming back."""
        return 2 * (not self.is_here(receptacle)) + self.may_be_closed(receptacle)


class AlfworldRules:
    """ALFWorld's texts, which the memories read as they are."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> WorkingMemory:
        memory.begin_task(task_id, goal, observation)
        receptacles = tuple(parse_room(observation))
        return WorkingMemory(goal, observation, receptacles, [], began=memory.time, kinds=kinds_of(goal))

    def note(self, memory: LifelongMemory, working: WorkingMemory, step: PlanStep, observation: str) -> None:
        command, status = parse_command(step.command), working.status
        reading = read_observation(observation)
        failed = working.failed(is_refusal(observation))
        if failed and command.verb == "go" and working.unseen == step.command:
            observation, status, failed = f"You arrive at {command.receptacle}.", None, False  # it is there already
        if not failed and status is not None and not (reading.facts or reading.complete):
            working.unseen = working.unseen or step.command
        else:
            working.unseen = ""
        if failed:
            working.refuse(step.command)
            if command.verb == "go" and (at := working.before[1]):
                working.beside.add((at, command.receptacle))  # one cannot go where one is
        elif command.verb not in ("look", "examine", "inventory", "go"):
            # The world has changed: what had no effect may have one now, but places do not move.
            for key in [key for key in working.refused if not key[0].startswith(("go ", "move ", "put "))]:
                del working.refused[key]
        memory.observe(step.command, observation, outcome=status)

    def beliefs(self, memory: LifelongMemory, working: WorkingMemory) -> AlfworldBeliefs:
        return beliefs_of(memory, working, working.kinds)


def kinds_of(goal: str) -> tuple[str, ...]:
    """Return the kinds of things of a goal; none if not understood."""
    try:
        task = parse_goal(goal)
    except InvalidInputError:
        return ()
    return tuple(filter(None, (task.object_type, task.lamp_type)))


def beliefs_of(memory: LifelongMemory, working: WorkingMemory, kinds: Iterable[str]) -> AlfworldBeliefs:
    """Return memory's present state of receptacles and things of these kinds."""
    beliefs = AlfworldBeliefs(working.receptacles, beside=working.beside, refused=working.refused)
    beliefs.unseen = working.unseen
    _from_graph(beliefs, memory, working.began, kinds)
    if memory.spatial is None and memory.temporal is not None:
        _from_steps(beliefs, memory.temporal.entries, kinds)
    return beliefs


def _from_graph(beliefs: AlfworldBeliefs, memory: LifelongMemory, began: int, kinds: Iterable[str]) -> None:
    if (spatial := memory.spatial) is None:
        return
    beliefs.held = next(iter(spatial.held()), "")
    beliefs.searched = set(beliefs.receptacles).difference(spatial.unsearched())
    names = [sighting.name for sighting in beliefs.recall(memory, kinds)]
    seen = spatial.states_seen([*beliefs.receptacles, *names])
    for receptacle in beliefs.receptacles:
        for state, time in seen.get(receptacle, {}).items():
            if state in ("open", "closed"):
                beliefs.doors.add(receptacle)
                if time >= began:
                    (beliefs.closed if state == "closed" else beliefs.opened).add(receptacle)
    for name in names:
        states = seen.get(name, {}).items()
        beliefs.marks[name] = {state for state, time in states if time >= began and state in beliefs.STATES}


def _from_steps(beliefs: AlfworldBeliefs, entries: Iterable[Entry], kinds: Iterable[str]) -> None:
    kinds = set(kinds)
    for entry in entries:
        _, arrow, answer = entry.text.partition(" -> ")
        if arrow and entry.first_step == entry.last_step:
            beliefs.note(read_observation(answer.removesuffix("...")), kinds)
            beliefs.doors |= beliefs.closed | beliefs.opened
            continue
        done = entry.done
        beliefs.searched.update(done.get("went to", ()))
        beliefs.at = next(reversed(done.get("went to", ())), beliefs.at)
        placed = [parse_command(f"{verb} {rest}") for verb in ("move", "put") for rest in done.get(verb, ())]
        taken = [parse_command(f"take {rest}").object for rest in done.get("take", ())]
        for put in placed:
            if type_of(put.object) in kinds:
                beliefs.things[put.object] = put.receptacle
        gone = {put.object for put in placed}
        beliefs.held = next((name for name in reversed(taken) if name not in gone), "")
        for verb, mark in STATE_AFTER.items():
            for rest in done.get(verb, ()):
                beliefs.marks.setdefault(parse_command(f"{verb} {rest}").object, set()).add(mark)
