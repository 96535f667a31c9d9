"""What the agent takes to be the case now, read off its memories alone.

    beliefs = beliefs_of(memory, working, kinds=("mug", "desklamp"))
    beliefs.things               # {"mug 1": "desk 1"}: what was seen in this task and not contradicted since
    beliefs.is_here("desk 1")

With spatial memory they come from its graph; without, from the few steps that temporal memory holds. Worlds are put
back between tasks, so that what was seen in an earlier task is a hint (`hints`) and never a belief.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, Self

from embodied_mem.agents.plans import PlanStep
from embodied_mem.envs.alfworld_text import parse_command, parse_goal, parse_room, type_of
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.observations import AGENT, PLACED, STATE_AFTER, Reading, is_refusal, read_observation
from embodied_mem.memory.temporal import Entry


@dataclasses.dataclass
class WorkingMemory:
    """What is at hand in the running task, whatever else is switched off.

    Attributes:
        goal, room: the instruction and the room as first seen.
        receptacles: that the room's text lists, in its order.
        summaries: one line per step done.
        action, observation: of the last step.
        refused: (command, where, what was held) -> times that it had no effect.
        beside: pairs of receptacles known to be reached from one place: one could not go from the first to the second.
        began: the memories' clock at the start.
        kinds: of things that matter for the goal.
        before: what was held, and where the agent was, before the last step.
    """

    goal: str
    room: str
    receptacles: tuple[str, ...]
    summaries: list[str]
    action: str = ""
    observation: str = ""
    refused: Counter = dataclasses.field(default_factory=Counter)
    beside: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    began: int = 0
    kinds: tuple[str, ...] = ()
    before: tuple[str, str] = ("", "")


@dataclasses.dataclass(kw_only=True)
class Present:
    """The present state, as far as it is known, in any world whose texts `read_observation` reads.

    Attributes:
        at, held: where the agent is and what it holds; "" for nowhere special and nothing.
        things: known things -> the receptacle they are in or on.
        searched: receptacles whose whole content was seen in this task.
        closed, opened: receptacles last seen closed and open.
        marks: thing -> those of `STATES` that it is in.
    """

    STATES: ClassVar[frozenset[str]] = frozenset(STATE_AFTER.values())

    at: str = ""
    held: str = ""
    things: dict[str, str] = dataclasses.field(default_factory=dict)
    searched: set[str] = dataclasses.field(default_factory=set)
    closed: set[str] = dataclasses.field(default_factory=set)
    opened: set[str] = dataclasses.field(default_factory=set)
    marks: dict[str, set[str]] = dataclasses.field(default_factory=dict)

    def copy(self) -> Self:
        """A copy to imagine in."""
        return dataclasses.replace(
            self, things=dict(self.things), searched=set(self.searched), closed=set(self.closed),
            opened=set(self.opened), marks={thing: set(marks) for thing, marks in self.marks.items()},
        )  # fmt: skip

    def note(self, reading: Reading, kinds: Collection[str] | None = None) -> None:
        """One answer of the world, put into the beliefs; with `kinds`, only things of these in their places."""
        for container, contents in reading.complete:
            if container == AGENT:
                self.held = ""
                continue
            self.searched.add(container)
            for thing in [t for t, place in self.things.items() if place == container and t not in contents]:
                del self.things[thing]
        for subject, relation, object_ in reading.facts:
            if relation == "at":
                self.at = object_
            elif relation == "holds":
                self.held = object_
                self.things.pop(object_, None)
            elif relation in ("in", "on", PLACED):
                if kinds is None or type_of(subject) in kinds:
                    self.things[subject] = object_
            elif relation == "is" and object_ in ("open", "closed"):
                (self.closed if object_ == "closed" else self.opened).add(subject)
                (self.opened if object_ == "closed" else self.closed).discard(subject)
                if object_ == "closed":
                    self.searched.discard(subject)
            elif relation == "is" and object_ in self.STATES:
                self.marks.setdefault(subject, set()).add(object_)
                self.marks[subject].discard({"hot": "cool", "cool": "hot"}.get(object_, ""))


@dataclasses.dataclass
class Beliefs(Present):
    """The present state of a room of ALFWorld; `things` are those of the kinds that matter.

    Attributes:
        receptacles: of the room.
        doors: receptacles known to have a door, from any task.
        beside, refused: as `WorkingMemory`.
    """

    receptacles: tuple[str, ...]
    doors: set[str] = dataclasses.field(default_factory=set)
    beside: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    refused: Counter = dataclasses.field(default_factory=Counter)

    def is_here(self, receptacle: str) -> bool:
        """Whether the agent can reach into a receptacle from where it stands."""
        return receptacle == self.at or (self.at, receptacle) in self.beside or (receptacle, self.at) in self.beside

    def may_be_closed(self, receptacle: str) -> bool:
        """Whether a receptacle is closed, or was not seen in this task and has a door, or others of its kind have."""
        if receptacle in self.closed or receptacle in self.opened or receptacle in self.searched:
            return receptacle in self.closed
        return receptacle in self.doors or type_of(receptacle) in self._kinds_with_doors()

    def _kinds_with_doors(self) -> set[str]:
        return {type_of(door) for door in self.doors}

    def cost(self, receptacle: str) -> int:
        """Commands it takes to look into a receptacle, going there counted twice: one has to come back, too."""
        return 2 * (not self.is_here(receptacle)) + self.may_be_closed(receptacle)

    def times_refused(self, command: str) -> int:
        """How often a command had no effect here and with this in the hand."""
        return self.refused[command, self.at, self.held]

    def describe(self) -> str:
        """The beliefs in words, for a chat model."""
        lines = [f"You are at {self.at}." if self.at else "You are in the middle of the room."]
        lines.append(f"You hold {self.held}." if self.held else "You hold nothing.")
        lines += [f"{thing} is at {place}." for thing, place in self.things.items()]
        lines += [f"{thing} is {', '.join(sorted(marks))}." for thing, marks in sorted(self.marks.items()) if marks]
        if self.searched:
            lines.append(f"Searched: {', '.join(r for r in self.receptacles if r in self.searched)}.")
        if self.closed:
            lines.append(f"Closed: {', '.join(sorted(self.closed))}.")
        return "\n".join(lines)


class AlfworldRules:
    """ALFWorld's texts, which the memories read as they are."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> WorkingMemory:
        """As `WorldRules.begin`."""
        memory.begin_task(task_id, goal, observation)
        receptacles = tuple(parse_room(observation))
        return WorkingMemory(goal, observation, receptacles, [], began=memory.time, kinds=kinds_of(goal))

    def note(self, memory: LifelongMemory, working: WorkingMemory, step: PlanStep, observation: str) -> None:
        """As `WorldRules.note`."""
        command = parse_command(step.command)
        if is_refusal(observation):
            held, at = working.before
            working.refused[step.command, at, held] += 1
            if command.verb == "go" and at:
                working.beside.add((at, command.receptacle))  # one cannot go where one is
        elif command.verb not in ("look", "examine", "inventory", "go"):
            # The world has changed: what had no effect may have one now, but places do not move.
            for key in [key for key in working.refused if not key[0].startswith(("go ", "move ", "put "))]:
                del working.refused[key]
        memory.observe(step.command, observation)

    def beliefs(self, memory: LifelongMemory, working: WorkingMemory) -> Beliefs:
        """As `WorldRules.beliefs`."""
        return beliefs_of(memory, working, working.kinds)


def kinds_of(goal: str) -> tuple[str, ...]:
    """Kinds of things that matter for a goal; none if the goal is not understood."""
    try:
        task = parse_goal(goal)
    except InvalidInputError:
        return ()
    return tuple(filter(None, (task.object_type, task.lamp_type)))


def beliefs_of(memory: LifelongMemory, working: WorkingMemory, kinds: Iterable[str]) -> Beliefs:
    """What memory says is the case now about receptacles and things of these kinds."""
    beliefs = Beliefs(working.receptacles, beside=working.beside, refused=working.refused)
    if memory.spatial is not None:
        _from_graph(beliefs, memory, working, kinds)
    elif memory.temporal is not None:
        _from_steps(beliefs, memory.temporal.entries, kinds)
    return beliefs


def _from_graph(beliefs: Beliefs, memory: LifelongMemory, working: WorkingMemory, kinds: Iterable[str]) -> None:
    spatial = memory.spatial
    beliefs.at = spatial.position()
    beliefs.held = next(iter(spatial.held()), "")
    beliefs.searched = set(beliefs.receptacles).difference(spatial.unsearched())
    sightings = [
        sighting
        for kind in kinds
        for sighting in spatial.of_class(kind)
        if sighting.current and sighting.episode == memory.episode
    ]
    seen = spatial.states_seen([*beliefs.receptacles, *(sighting.name for sighting in sightings)])
    for receptacle in beliefs.receptacles:
        for state, time in seen.get(receptacle, {}).items():
            if state in ("open", "closed"):
                beliefs.doors.add(receptacle)
                if time >= working.began:
                    (beliefs.closed if state == "closed" else beliefs.opened).add(receptacle)
    for sighting in sightings:
        states = seen.get(sighting.name, {}).items()
        beliefs.marks[sighting.name] = {s for s, time in states if time >= working.began and s in beliefs.STATES}
        if sighting.relation in ("in", "on"):
            beliefs.things[sighting.name] = sighting.receptacle


def _from_steps(beliefs: Beliefs, entries: Iterable[Entry], kinds: Iterable[str]) -> None:
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
