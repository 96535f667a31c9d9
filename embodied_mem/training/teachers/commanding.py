"""A teacher whose guidance is the next command itself, for executors that were never taught to read guidance.

    lesson = Commanding(source.teacher()).begin(goal, first_observation, experiences)
    lesson.output.guidance                                # "go to fridge 1", where it was "find apple in fridge 1"

A compiler that learns from it needs no rule that words its guidance in a world's commands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from embodied_mem.training.teachers.lesson import Lesson, Teacher

if TYPE_CHECKING:
    import numpy as np

    from embodied_mem.compiler.brief_state import BriefState
    from embodied_mem.memory import Experience


class Commanding:
    """`Teacher` that gives its command wherever another one gives guidance; all else is the other's.

    Args:
        teacher: the other one, new.
    """

    def __init__(self, teacher: Teacher):
        self._teacher = teacher

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        return _commanded(self._teacher.begin(goal, first_observation, experiences))

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        return _commanded(self._teacher.next(action, observation, state))

    def mislead(
        self, lesson: Lesson, action: str, observation: str, room: str, random: np.random.Generator
    ) -> tuple[Lesson, str]:
        return self._teacher.mislead(lesson, action, observation, room, random)

    def imagined_answer(self, observation: str, thing: str, random: np.random.Generator) -> str:
        return self._teacher.imagined_answer(observation, thing, random)


def _commanded(lesson: Lesson) -> Lesson:
    if not lesson.output.guidance:
        return lesson
    return dataclasses.replace(lesson, output=dataclasses.replace(lesson.output, guidance=lesson.action))
