"""Plays lives by rules: the rule teacher with what a reader tells it; each task within its own budget of steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from embodied_mem.compiler.brief_state import BriefState
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.training.teachers.lesson import Lesson
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.engine import Env
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import ProcedureTeacher
from embodied_mem.worlds.alfworld.wording.text import parse_command, parse_observation, parse_room, type_of

from .lives import Day, Life
from .readers import (
    BankReader,
    Knowledge,
    LifelongReader,
    Nothing,
    Oracle,
    PoolReader,
    Reader,
    knowledge_of,
    read_instruction,
)


class LifeTeacher(ProcedureTeacher):
    """Teacher by rules for tasks of a life.

    Args:
        knowledge: what is known when the task begins; None for what the pool or the bank tells that it begins with.
        kinds: as of `RuleTeacher`.
    """

    def __init__(self, knowledge: Knowledge | None = None, kinds: Sequence[str] | None = None):
        super().__init__(self._search_order, kinds=kinds)
        self._at_start = knowledge

    def begin(self, goal: str, first_observation: str, experiences: Any) -> Lesson:
        room = parse_room(first_observation)
        self._knowledge = knowledge_of(experiences, goal, room) if self._at_start is None else self._at_start
        self._meaning, self._kind = self._knowledge.task, read_instruction(goal).kind
        return super().begin(goal, first_observation, ())

    def _search_order(self, kind: str, places: Sequence[str]) -> list[str]:
        return [place for place in statistics_order(kind, places) if place not in self._knowledge.avoid]

    def _set_task(self, goal: str) -> None:
        super()._set_task(f"find a {self._kind} and do the unknown.")

    def _remember(self, experiences: Any) -> dict[str, list[str]]:
        places = [place for place in self._knowledge.places if place not in self._knowledge.avoid]
        return {"change": [], "put": [], self.task.lamp_type: [], self.task.object_type: places}

    def _is_wanted(self, thing: str, place: str, state: BriefState) -> bool:
        return place not in self._knowledge.avoid and super()._is_wanted(thing, place, state)


MODULES = ("spatial", "temporal", "episodic", "semantic", "profile", "notes")


@dataclasses.dataclass(frozen=True)
class Condition:
    """A player's memory and the harm done to it.

    Attributes:
        name: of its row.
        kind: "oracle", "none", "bank", "lifelong", or "teacher" and a setting of `TaskPools`.
        modules: of the lifelong memory.
        hears: "" for what the user says; "poisoned" adds a document's false sentence each day, "contradicted" a guest
            who says the contrary of each sentence.
        other: whether the memory has lived in another home before.
        pool: records of `memory.pool` that are read, and nothing else; 0 reads the memory's other answers.
        is_stale: whether the lives are those in which half of the own places change.
    """

    name: str
    kind: str = "lifelong"
    modules: Sequence[str] = ()
    hears: str = ""
    other: bool = False
    is_stale: bool = False
    pool: int = 0


@dataclasses.dataclass
class Outcome:
    """One played task; `recalled` counts records that a request to forget had left and that name the thing."""

    is_won: bool
    steps: int
    num_recalled: int = 0


class Player:
    """One life of a player.

    Args:
        condition: see there.
    """

    def __init__(self, condition: Condition):
        self.condition = condition
        self.episodes: list[Episode] = []
        self.memory: LifelongMemory | None = None
        self.oracle = Oracle()
        readers: dict[str, Reader] = {"oracle": self.oracle, "none": Nothing(), "bank": BankReader(self.episodes)}
        if condition.kind == "lifelong":
            self.memory = LifelongMemory(Scope(user="ann", environment="home"), modules=condition.modules)
            pool = condition.pool
            readers["lifelong"] = PoolReader(self.memory, pool) if pool else LifelongReader(self.memory)
        self.reader = readers[condition.kind]

    def hear(self, day: Day) -> int:
        """Hear what comes before a task; count what forgetting left."""
        num_recalled = 0
        for saying in day.sayings:
            if saying.forget:
                num_recalled += self.forget(saying.forget)
            elif self.memory is not None:
                self.memory.tell(saying.text)
                if self.condition.hears == "contradicted" and saying.contrary:
                    self.memory.tell(saying.contrary, speaker="guest")
        if self.memory is not None and self.condition.hears == "poisoned":
            self.memory.tell(day.poison, trust="document")
        return num_recalled

    def forget(self, kind: str) -> int:
        """Forget a kind of thing in whatever is remembered."""
        self.episodes[:] = [one for one in self.episodes if kind not in one.goal.rstrip(".").split()]
        if self.memory is None:
            return 0
        self.memory.forget(object=kind)
        words = [record.text.lower().replace(":", " ").split() for record in self.memory.retrieve(kind).items]
        return sum(kind in text for text in words)

    def play(self, day: Day, name: str, home: str) -> Outcome:
        """Play one task and remember it."""
        num_recalled = self.hear(day)
        self.oracle.truth = day.truth
        env = Env(day.load())
        first = env.reset()
        goal, room = day.instruction, parse_room(first)
        if self.memory is not None:
            self.memory.begin_task(name, goal, first, place=home, is_home=True)
        teacher = LifeTeacher(self.reader.read(goal, room))
        lesson = teacher.begin(goal, first, ())
        steps, observation, is_lost = list[Step](), first, False
        while not env.won and not is_lost and len(steps) < day.budget:
            action = lesson.action
            steps.append(Step(observation, action))
            observation = env.step(action)
            is_lost = is_theft(day, action, observation)
            if self.memory is not None:
                self.memory.observe(action, observation)
            lesson = teacher.next(action, observation, lesson.state)
        is_won = env.won and not is_lost
        if self.memory is not None:
            self.memory.end_task(is_won)
        self.episodes.append(Episode(name, goal, tuple(steps), is_won, observation))
        return Outcome(is_won, len(steps), num_recalled)

    def live_before(self, life: Life) -> None:
        """Play half of a life in another home."""
        for number, day in enumerate(life.days[: len(life.days) // 2]):
            self.play(day, f"earlier task {number}", f"home {life.home}")


def is_theft(day: Day, action: str, answer: str) -> bool:
    """Decide whether something was taken that must not be taken."""
    command = parse_command(action)
    return (
        day.truth.forbidden == (type_of(command.object), command.receptacle)
        and command.verb == "take"
        and bool(parse_observation(answer).took)
    )


def play_life(life: Life, condition: Condition, before: Life | None = None) -> list[Outcome]:
    """Play a life, after half of another where that is asked."""
    player = Player(condition)
    if condition.other and before is not None:
        player.live_before(before)
    return [player.play(day, f"task {number}", f"home {life.home}") for number, day in enumerate(life.days)]
