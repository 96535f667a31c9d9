"""Beliefs about the present state of the world, derived from the agent's memories alone.

    beliefs = Beliefs()
    beliefs.note(reader.read("On the desk 1, you see a mug 1."))
    beliefs.things               # {"mug 1": "desk 1"}: what was seen in this task and not contradicted since

Worlds are reset between tasks, so what was seen in an earlier task is evidence for a search and never a belief.
What a world adds to them, and how they are derived from the memories, is in its `rules`.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from embodied_mem.language.images import Picture
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.observation import Status
from embodied_mem.memory.readers.reading import AGENT, PLACED, STATE_AFTER, Reading, class_of
from embodied_mem.memory.spatial import Sighting

RECENT = 3
"""Answers that are remembered without spatial memory: RoboMemory's temporal memory holds three steps."""

_HOME = re.compile(r"\AHome: (.+)\.$", re.MULTILINE)

Refused = Counter[tuple[str, str, str]]
"""(command, where, what was held) -> times that it had no effect."""


class Refusal(NamedTuple):
    """A command without effect: how often in this task, and the answer of the last time."""

    times: int
    answer: str


def in_home(name: str, observation: str) -> str:
    """Return a task's first text for an agent that knows the home."""
    return f"Home: {name}.\n{observation}"


def home_told(observation: str) -> str:
    """Return the home that `in_home` names; empty where none is told."""
    found = _HOME.match(observation)
    return found[1] if found else ""


def found_here(memory: LifelongMemory, kind: str) -> list[str]:
    """List a kind's receptacles at earlier tasks' beginnings, latest task first.

    Where a task left a thing says less: a home is set up again for the next one. Nothing without both memories.
    """
    if memory.spatial is None or memory.semantic is None:
        return []
    here = {s.episode for s in memory.spatial.of_class(kind)} - {memory.episode}
    return memory.semantic.found_in(kind, here)


@dataclasses.dataclass
class WorkingMemory:
    """Working memory of the running task, present in every ablation.

    Attributes:
        goal, room: the instruction and the room as first seen.
        receptacles: that the room's text lists, in its order.
        summaries: one line per step done.
        action, observation: of the last step.
        refused: what had no effect, as far as that still counts.
        refusals: commands that had no effect in this task and did not work since.
        beside: pairs of receptacles known to be reached from one place: one could not go from the first to the second.
        began: the memories' clock at the start.
        kinds: of things that matter for the goal.
        before: what was held, and where the agent was, before the last step.
        tried: readings of the goal that were carried out.
        recent: the last answers, as memory reads them, where the rules `keep` them.
        status: of the last step, where whoever carried it out knows.
        images: that came with the last answer.
        unseen: the last command, if it may have worked and its answer told nothing, where the rules say so.
    """

    goal: str
    room: str
    receptacles: tuple[str, ...]
    summaries: list[str]
    action: str = ""
    observation: str = ""
    refused: Refused = dataclasses.field(default_factory=Counter)
    refusals: dict[str, Refusal] = dataclasses.field(default_factory=dict)
    beside: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    began: int = 0
    kinds: tuple[str, ...] = ()
    before: tuple[str, str] = ("", "")
    tried: set[Any] = dataclasses.field(default_factory=set)
    recent: list[str] = dataclasses.field(default_factory=list)
    status: Status | None = None
    images: Sequence[Picture] = ()
    unseen: str = ""

    def failed(self, is_refusal: bool) -> bool:
        """Return whether the last step failed, by its status or text."""
        return is_refusal if self.status in (None, "unknown") else self.status == "failure"

    def refuse(self, command: str) -> None:
        """Note the last step's failure with its place and held thing."""
        held, at = self.before
        self.refused[command, at, held] += 1
        times = self.refusals[command].times if command in self.refusals else 0
        self.refusals[command] = Refusal(times + 1, self.observation)

    def keep(self, text: str) -> None:
        """Add to the last answers and drop all but `RECENT`."""
        self.recent = [*self.recent[-RECENT + 1 :], text]


@dataclasses.dataclass(kw_only=True)
class Beliefs:
    """The present state, as far as it is known, in any world whose texts a reader reads.

    Attributes:
        at, held: where the agent is and what it holds; "" for nowhere special and nothing.
        things: known things -> the receptacle they are in or on.
        searched: receptacles whose whole content was seen in this task.
        closed, opened: receptacles last seen closed and open.
        marks: thing -> those of `STATES` that it is in.
        refused: as `WorkingMemory`.
    """

    STATES: ClassVar[frozenset[str]] = frozenset(STATE_AFTER.values())

    at: str = ""
    held: str = ""
    things: dict[str, str] = dataclasses.field(default_factory=dict)
    searched: set[str] = dataclasses.field(default_factory=set)
    closed: set[str] = dataclasses.field(default_factory=set)
    opened: set[str] = dataclasses.field(default_factory=set)
    marks: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    refused: Refused = dataclasses.field(default_factory=Counter)

    def is_here(self, place: str) -> bool:
        """Tell whether the agent can reach into a place from here."""
        return self.at == place

    def times_refused(self, command: str) -> int:
        """Count a command's failures here with this in the hand."""
        return self.refused[command, self.at, self.held]

    def recall(self, memory: LifelongMemory, kinds: Iterable[str]) -> list[Sighting]:
        """Read the agent's and these kinds' places from spatial memory.

        Returns what there is of them; none without spatial memory.
        """
        if (spatial := memory.spatial) is None:
            return []
        self.at = spatial.position()
        found = [s for kind in kinds for s in spatial.of_class(kind) if s.current and s.episode == memory.episode]
        self.things.update({s.name: s.receptacle for s in found if s.relation in ("in", "on")})
        return found

    def copy(self) -> Self:
        """Make a copy to imagine in."""
        return dataclasses.replace(
            self, things=dict(self.things), searched=set(self.searched), closed=set(self.closed),
            opened=set(self.opened), marks={thing: set(marks) for thing, marks in self.marks.items()},
        )  # fmt: skip

    def describe(self) -> str:
        """Write the known beliefs in words, for models."""
        lines = [f"You are at {self.at}."] if self.at else []
        lines += [f"You hold {self.held}."] if self.held else []
        lines += [f"{thing} is at {place}." for thing, place in self.things.items()]
        lines += [f"{thing} is {', '.join(sorted(marks))}." for thing, marks in sorted(self.marks.items()) if marks]
        for what, places in (("Searched", self.searched), ("Closed", self.closed)):
            lines += [f"{what}: {', '.join(sorted(places))}."] if places else []
        return "\n".join(lines)

    def note(self, reading: Reading, kinds: Collection[str] | None = None) -> None:
        """Update beliefs by an answer; `kinds` limits things in places."""
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
                if kinds is None or class_of(subject) in kinds:
                    self.things[subject] = object_
            elif relation == "is" and object_ in ("open", "closed"):
                (self.closed if object_ == "closed" else self.opened).add(subject)
                (self.opened if object_ == "closed" else self.closed).discard(subject)
                if object_ == "closed":
                    self.searched.discard(subject)
            elif relation == "is" and object_ in self.STATES:
                self.marks.setdefault(subject, set()).add(object_)
                self.marks[subject].discard({"hot": "cool", "cool": "hot"}.get(object_, ""))
