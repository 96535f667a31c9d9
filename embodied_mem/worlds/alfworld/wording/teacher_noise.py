"""Noise for teacher episodes: errors and answers that the teacher's own play hardly shows.

noise = TeacherNoise()
lesson, action = noise.mislead(lesson, lesson.action, observation, "cabinet 4; fridge 1", random)
noise.imagined_answer("On the desk 1, you see a pen 2.", "mug", random)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from embodied_mem.compiler.brief_state import Create, Delete, apply_all
from embodied_mem.training.teachers.lesson import Lesson
from embodied_mem.worlds.alfworld.statistics import household_statistics
from embodied_mem.worlds.alfworld.wording.text import parse_observation, type_of


def household_kinds() -> tuple[str, ...]:
    """Kinds of things that ALFWorld's households have."""
    return tuple(kind.lower() for kind in household_statistics()["object_types"])


class TeacherNoise:
    """`training.teachers.lesson.Noise` of teachers of ALFWorld's sentences.

    Args:
        kinds: of things in imagined answers; None for those of households.
    """

    def __init__(self, kinds: Sequence[str] | None = None):
        self.kinds = tuple(kinds or household_kinds())

    def mislead(
        self, lesson: Lesson, action: str, observation: str, room: str, random: np.random.Generator
    ) -> tuple[Lesson, str]:
        """`lesson` with a false belief in its Brief State while something is searched, and the command given then.

        Either some place of the room is believed to hold the object while none is known, or the newest observation is
        misread: the object is believed to be in the place that it describes, or to have another number than it has,
        and an attempt is made to take it.
        """
        verb, _, thing = lesson.state.current.partition(" ")
        kinds = [item.rpartition(" ") for item in room.split("; ") if item]
        if verb != "find" or not kinds:
            return lesson, action
        believed = next(((name, place) for name, place in lesson.state.locations if type_of(name) == thing), None)
        here = parse_observation(observation)
        number = 1 + int(random.integers(3))
        if here.contents is None and believed is None:
            kind, _, count = kinds[int(random.integers(len(kinds)))]
            false = Create("seen", f"{thing} {number}", f"{kind} {1 + int(random.integers(int(count)))}")
            return dataclasses.replace(lesson, state=apply_all([false], lesson.state)[0]), action
        place = believed[1] if believed else here.receptacle
        name = f"{thing} {number}"
        if place != here.receptacle or name in (here.contents or ()):
            return lesson, action
        gone = [Delete("seen", believed[0])] if believed else []
        state = apply_all([*gone, Create("seen", name, place)], lesson.state)[0]
        return dataclasses.replace(lesson, state=state), f"take {name} from {place}"

    def imagined_answer(self, observation: str, thing: str, random: np.random.Generator) -> str:
        """`observation` with other contents, of this teacher's kinds, or empty if it shows none.

        `thing` is there half of the time and its number is uniform, while everything else is drawn from all types of
        objects. In the world's own answers it is mostly there where experiences found it, and mostly number 1, so a
        model learns to write that without a look at the answer.
        """
        if parse_observation(observation).contents is None:
            return ""
        others = [kind for kind in self.kinds if kind != thing]
        drawn = [others[i] for i in random.choice(len(others), int(random.integers(8)))]
        if random.random() < 0.5:
            drawn += [thing] * (1 + int(random.random() < 0.15))
        names = []
        for kind in sorted(set(drawn)):
            numbers = 1 + random.choice(3 + drawn.count(kind), drawn.count(kind), replace=False)
            names += [f"a {kind} {number}" for number in sorted(numbers, reverse=True)]
        contents = ", ".join([*names[:-1], f"and {names[-1]}"]) if len(names) > 1 else "".join(names) or "nothing"
        before, mark, seen = observation.partition(" you see ")
        _, stop, behind = seen.rpartition(".")
        return f"{before}{mark}{contents}{stop}{behind}" if stop else observation
