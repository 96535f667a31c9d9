"""Lessons (a teacher's label of one step), and the protocols of teachers and task sources.

source: TaskSource = registry.load("eb_alfred", "tasks")(config.world, config.seed)
train, held_out = source.sides()
lesson = source.teacher().begin(goal, first_observation, experiences)
lesson.output, lesson.action            # CompilerOutput, "go to fridge 1"
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from embodied_mem.compiler.brief_state import BriefState
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.memory import Experience
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.memory.pool import Reading


@dataclasses.dataclass(frozen=True)
class Lesson:
    """One step of teaching.

    Attributes:
        output: what the compiler should write, given the Brief State before it.
        state: the Brief State after its edits.
        action: what the executor should do.
        reference: what soft tokens should convey: the remembered places of the subgoals that are left, soonest first;
            a look ahead that the guidance, which names one place, does not hold. Empty without guidance.
    """

    output: CompilerOutput
    state: BriefState
    action: str
    reference: str


class Noise(Protocol):
    """Slips and answers that the play itself hardly shows, in the words of a world."""

    def mislead(
        self, lesson: Lesson, action: str, observation: str, room: str, random: np.random.Generator
    ) -> tuple[Lesson, str]:
        """Return `lesson` with a false belief and the command then given.

        The belief is in its Brief State; both are as they are where nothing can be mistaken.

        Args:
            lesson: of this step.
            action: to be given.
            observation: the newest.
            room: as in `View`.
            random: of this episode.
        """
        ...

    def imagined_answer(self, observation: str, thing: str, random: np.random.Generator) -> str:
        """Return `observation` with other contents.

        The `thing` that is looked for is among them at times. Empty if the observation shows none.
        """
        ...

    def renamable(self, room: str) -> list[str]:
        """Return a room's kinds of places that change nothing."""
        ...


class Teacher(Noise, Protocol):
    """Labels the steps of one episode; a new object, or `begin`, per episode.

    Its experiences are a `Pool` where a lifelong memory is read.
    """

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        """Return the lesson of the first step."""
        ...

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        """Return the lesson after any `action` got the answer `observation`.

        `state` is the Brief State as it stands, the last lesson's or a compiler's own.
        """
        ...


class Commanding:
    """`Teacher` whose guidance is the next command itself, for executors that were never taught to read guidance.

    A compiler that learns from it needs no rule that words its guidance in a world's commands.

    Args:
        teacher: what it says else; new.
    """

    def __init__(self, teacher: Teacher):
        self._teacher = teacher
        self.mislead, self.imagined_answer, self.renamable = teacher.mislead, teacher.imagined_answer, teacher.renamable

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        return self._commanded(self._teacher.begin(goal, first_observation, experiences))

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        return self._commanded(self._teacher.next(action, observation, state))

    @staticmethod
    def _commanded(lesson: Lesson) -> Lesson:
        if not lesson.output.guidance:
            return lesson
        return dataclasses.replace(lesson, output=dataclasses.replace(lesson.output, guidance=lesson.action))


class TaskSource(Protocol):
    """A world's tasks to be trained on and who teaches them. A card names as `tasks` what makes it of a `WorldConfig`
    and a seed.

    Attributes:
        kinds: of things in these tasks, as the texts name them.
        object_weight: of `Experiences` for their experiences.
    """

    kinds: Sequence[str]
    object_weight: float = OBJECT_WEIGHT

    def sides(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return (training tasks, tasks held out to choose by)."""
        ...

    def experiences(self) -> Sequence[Any]:
        """Return the tasks in memory at scoring; empty: the training tasks."""
        return ()

    def training_experiences(self) -> Sequence[Any]:
        """Return the tasks with solutions that memory holds in training.

        Empty: the training tasks.
        """
        return ()

    def demonstrator(self, task: Any) -> Teacher:
        """Return a demonstrator; it may know more than the instruction says."""
        return self.teacher()

    def follower(self) -> Any:
        """Return a follower that carries out guidance literally, or None."""
        return None

    def memories(self, reading: Reading, held_out: bool) -> Any:
        """Return `TaskPools` of training or held-out tasks; None for banks of episodes."""
        return None

    def player(self) -> Any:
        """Return a player without memory (`experiments/baselines/player.py`); None if there is none."""
        return None

    def envs(self, tasks: Sequence[Any], num_envs: int, max_steps: int | None = None) -> Any:
        """Make a vector environment of these tasks with so many rows.

        An episode has at most `max_steps`; None is the world's own limit.
        """
        ...

    def teacher(self, kinds: Sequence[str] | None = None) -> Teacher:
        """Make an episode's teacher; imagined answers have `kinds`, default the world's."""
        ...

    def commands(self) -> str:
        """Return the commands of this world, as chat models are told them."""
        ...

    def task_key(self, task_id: str) -> str:
        """Return a task's key; its player must not see experiences of it."""
        ...
