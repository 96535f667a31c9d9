"""ALFWorld's task source: games of an installed split, a folder or the generator, and their teacher."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embodied_mem import envs
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.training.config import WorldConfig
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.env import split_files, trial_key
from embodied_mem.worlds.alfworld.generator import Generator, generate
from embodied_mem.worlds.alfworld.procedures import Procedures, task_of_game
from embodied_mem.worlds.alfworld.statistics import household_kinds
from embodied_mem.worlds.alfworld.wording.follower import Follower
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import ProcedureTeacher, RuleTeacher
from embodied_mem.worlds.alfworld.wording.text import put_command

EXPERIENCES = 25
"""Games that memory holds of each home that is held out, before each change where there are some."""

TRIALS_BETWEEN_CHANGES = 1_000_000
"""Trials after a change have numbers, and so names, of their own."""


def games_of(source: str, count: int, split: str, world: WorldConfig, seed: int) -> list[Game | Path]:
    """Return `count` games of a split, folder or generator; 0: all."""
    if source == "generated":
        return [*_generated(count, split, world, seed, homes=split == "valid" and world.homes > 0)]
    games: list[Game | Path] = [*split_files(source, world.valid)]
    return games[: count or None]


def spread(files: Sequence[Path]) -> list[Path]:
    """Return the game files of every kind of task in turn.

    Within a kind they are in order. So the first are of all kinds, where a split is sorted by kind.
    """
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kinds.setdefault(file.parents[1].name.partition("-")[0], []).append(file)
    return [file for turn in itertools.zip_longest(*kinds.values()) for file in turn if file is not None]


def _generated(count: int, split: str, world: WorldConfig, seed: int, homes: bool, changes: int = -1) -> list[Game]:
    """Return training or held-out homes' games after `changes`, -1 for all."""
    first, num_scenes = (world.num_scenes, world.homes) if homes else (0, world.num_scenes)
    if world.procedures:
        generator = Generator(seed, world.habit, world.own_habits)
        named = Procedures(generator, world.procedures, world.num_scenes)
        return [game.load() for game in named.games(count, range(first, first + num_scenes), split)]
    happened = world.changes[: len(world.changes) if changes < 0 else changes]
    games = generate(
        count, seed=seed, num_scenes=num_scenes, split=split, habit=world.habit, own_habits=world.own_habits,
        changes=happened, first_scene=first, first_trial=len(happened) * TRIALS_BETWEEN_CHANGES,
    )  # fmt: skip
    return [game.load() for game in games]


class AlfworldTasks:
    """`TaskSource` of ALFWorld.

    Args:
        world: names the splits and has the settings of the generator.
        seed: of generated games.

    Attributes:
        object_weight: as of `TaskSource`; for procedures their names decide, not the objects.
    """

    def __init__(self, world: WorldConfig, seed: int):
        self.kinds = household_kinds()
        self.object_weight = 0.0 if world.procedures else OBJECT_WEIGHT
        self._world, self._seed = world, seed

    def sides(self) -> tuple[list[Any], list[Any]]:
        world = self._world
        return (
            games_of(world.train, world.num_train, "train", world, self._seed),
            games_of(world.valid, world.num_valid, "valid", world, self._seed),
        )

    def experiences(self) -> list[Any]:
        return self._remembered(self._world.homes, held_out=True)

    def training_experiences(self) -> list[Any]:
        """Return experiences from before the changes, by a procedure-knowing player."""
        world = self._world
        if world.procedures:
            return self.sides()[0]
        return self._remembered(world.num_scenes, held_out=False) if world.changes else []

    def _remembered(self, num_homes: int, held_out: bool) -> list[Any]:
        """Games that memory holds, oldest first: as many from before each change."""
        eras = range(len(self._world.changes) or 1) if num_homes else ()
        count = EXPERIENCES * num_homes
        return [game for era in eras for game in _generated(count, "train", self._world, self._seed, held_out, era)]

    def follower(self) -> Follower:
        return Follower(self._world.grammar)

    def envs(self, tasks: Sequence[Any], num_envs: int, max_steps: int | None = None) -> Any:
        world = self._world
        return envs.make(
            "alfworld", tasks=tasks, num_envs=num_envs, seed=self._seed, max_steps=max_steps or world.max_steps,
            grammar=world.grammar,
        )  # fmt: skip

    def teacher(self, kinds: Sequence[str] | None = None) -> RuleTeacher:
        settings = statistics_order, self._world.grammar, kinds or self.kinds
        if self._world.procedures:
            return ProcedureTeacher(*settings)
        return RuleTeacher(*settings, here_only=bool(self._world.changes))

    def commands(self) -> str:
        return prompt("embodied_mem.worlds.alfworld.wording", "commands").format(
            put=put_command("O", "P", self._world.grammar)
        )

    def demonstrator(self, task: Any) -> RuleTeacher:
        """Return a demonstrator that knows the meaning of the home's procedures."""
        if not self._world.procedures:
            return self.teacher()
        meaning = task_of_game(task.name)
        return ProcedureTeacher(statistics_order, self._world.grammar, self.kinds, meaning=meaning)

    def task_key(self, task_id: str) -> str:
        return trial_key(task_id)
