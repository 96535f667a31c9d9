"""Homes with names of their own for what is done there: the same words mean another thing in another home.

    homes = Procedures(Generator(seed=0), per_home=6, num_training=24)
    homes.of(3)                                 # (Procedure("copper round", "pick_and_place_simple", "Shelf"), ...)
    games = homes.games(100, range(24, 30))     # "find a mug and do the copper round."

A game is an ordinary one, and what wins it is ALFWorld's own goal; only its instruction says less. In homes that no
training game is of, no name means what it means in a training home, and every second name is none of theirs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

from embodied_mem.worlds.alfworld.generator import Asked, GeneratedGame, Generator, SeededRandom
from embodied_mem.worlds.alfworld.statistics import Scene, household_statistics
from embodied_mem.worlds.alfworld.wording.text import CHANGERS, CHANGES, TASK_TYPES, Task, named_goal, task_of

_FIRST = ("copper", "harbour", "tuesday", "velvet", "maple", "lantern", "winter", "pepper", "marble", "falcon")
_SECOND = ("round", "thing", "drill", "turn", "habit", "number")
NAMES = tuple(f"{first} {second}" for first in _FIRST for second in _SECOND)
"""Names of procedures."""

HELD_OUT_NAMES = tuple(name for index, name in enumerate(NAMES) if index % 7 in (2, 5))
"""Names that no training home has, though each of their words stands in others."""

TRAINING_NAMES = tuple(name for name in NAMES if name not in HELD_OUT_NAMES)

LEAST_OBJECTS = 2
"""Types of objects that a procedure can be done with in its home."""


class Procedure(NamedTuple):
    """A home's name for something that is done with a thing.

    Attributes:
        name: of `NAMES`.
        task_type: one of `TASK_TYPES`.
        target: type of the receptacle or lamp, as in the data.
    """

    name: str
    task_type: str
    target: str

    @property
    def meaning(self) -> tuple[str, str]:
        """The action, without the name."""
        return self.task_type, self.target


@functools.lru_cache(maxsize=4096)
def plans_of(scene: Scene) -> dict[tuple[str, str], list[str]]:
    """Return (task type, target) -> possible object types in this scene.

    Unlike in households' own tasks, every pair that the world admits is one, so that the object does not tell.
    """
    statistics = household_statistics()
    contain, having = statistics["can_contain"], statistics["properties"]
    present = sorted({receptacle.type for receptacle in scene.receptacles})
    lamps = sorted({thing.type for thing in scene.furnishings if thing.holder and thing.type in having["toggleable"]})
    plans: dict[tuple[str, str], list[str]] = {}
    for task_type in TASK_TYPES:
        change, looking = CHANGES.get(task_type, ""), task_type == "look_at_obj_in_light"
        unserved = change and CHANGERS[change] not in map(str.lower, present)
        if unserved or task_type == "pick_two_obj_and_place":
            continue
        for target in lamps if looking else present:
            banned = set(Generator.banned_types(task_type, target))
            objects = [
                name for name, habit in scene.habits.items()
                if (looking or name in contain.get(target, ()))
                and (not change or name in having[f"{change}able"])
                and {scene.receptacles[i].type for i in habit.receptacles} - banned
            ]  # fmt: skip
            if len(objects) >= LEAST_OBJECTS:
                plans[task_type, target] = objects
    return plans


def task_of_game(task_id: str) -> Task:
    """Return a generated game's real task, hidden in its id."""
    task_type, name, _, target, _ = task_id.partition("/")[0].split("-")
    return task_of(task_type, name.lower(), target.lower())


class Procedures:
    """The procedures of every home of a generator.

    Args:
        generator: of the homes.
        per_home: so many procedures per home, or fewer where the room serves fewer.
        num_training: homes with smaller numbers are trained on; the others have names and meanings of their own.
    """

    def __init__(self, generator: Generator, per_home: int, num_training: int) -> None:
        self._generator, self._per_home, self._num_training = generator, per_home, num_training
        self._homes: dict[int, tuple[Procedure, ...]] = {}

    def of(self, number: int) -> tuple[Procedure, ...]:
        """Return the procedures of home `number`."""
        if number not in self._homes:
            self._homes[number] = self._drawn(number)
        return self._homes[number]

    def _drawn(self, number: int) -> tuple[Procedure, ...]:
        rng = SeededRandom("procedures", self._generator.seed, number)
        left: dict[str, list[str]] = {}
        for task_type, target in plans_of(self._generator.scene(number)):
            left.setdefault(task_type, []).append(target)
        chosen: list[Procedure] = []
        while left and len(chosen) < self._per_home:
            task_type = list(left)[rng.integer(len(left))]
            target = left[task_type].pop(rng.integer(len(left[task_type])))
            if not left[task_type]:
                del left[task_type]
            known = {procedure.name for procedure in chosen}
            names = [name for name in self._names(number, len(chosen), task_type, target) if name not in known]
            chosen.append(Procedure(names[rng.integer(len(names))], task_type, target))
        return tuple(chosen)

    def _names(self, number: int, position: int, task_type: str, target: str) -> Sequence[str]:
        """Return what a home may call its procedure at `position`."""
        if number < self._num_training:
            return TRAINING_NAMES
        if position % 2:
            return HELD_OUT_NAMES
        return [name for name in TRAINING_NAMES if Procedure(name, task_type, target) not in self._trained]

    @functools.cached_property
    def _trained(self) -> frozenset[Procedure]:
        """The procedures of all homes that are trained on."""
        return frozenset(procedure for number in range(self._num_training) for procedure in self.of(number))

    def games(self, num_games: int, homes: range, split: str = "train") -> list[GeneratedGame]:
        """Return provably solvable games, homes and their procedures in turn."""
        return [self._game(homes[trial % len(homes)], trial, trial // len(homes), split) for trial in range(num_games)]

    def _game(self, number: int, trial: int, turn: int, split: str) -> GeneratedGame:
        scene, known = self._generator.scene(number), self.of(number)
        name, task_type, target = known[turn % len(known)]
        rng = SeededRandom("procedure", self._generator.seed, number, split, trial)
        objects = plans_of(scene)[task_type, target]
        thing = objects[rng.integer(len(objects))]
        game = self._generator.game_about(rng, scene, Asked(task_type, thing, target), split=split, trial=trial)
        return dataclasses.replace(game.proved(), goal=named_goal(thing.lower(), name))
