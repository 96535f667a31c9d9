"""ALFWorld's task source: games of an installed split, a folder or the generator, and their teacher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embodied_mem import envs
from embodied_mem.training.config import WorldConfig
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.env import find_games, trial_key
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.follower import Follower
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher
from embodied_mem.worlds.alfworld.wording.teacher_noise import household_kinds

EXPERIENCES = 25
"""Games that memory holds of each home that is held out."""


def is_dev(file: Path) -> bool:
    """Whether a game of the train split is in one of the rooms that are held out to choose by: every tenth number."""
    return file.parts[-3].rpartition("-")[2].endswith("7")


def games_of(source: str, count: int, split: str, world: WorldConfig, seed: int) -> list[Game | Path]:
    """Games of a split, a folder or the generator; `count` 0 takes all.

    `dev` is the part of the train split in rooms held out to choose by; where it validates, `train` is the rest.
    """
    if source == "generated":
        return [*_generated(count, split, world, seed, homes=split == "valid" and world.homes > 0)]
    files = find_games("train" if source == "dev" else source)
    if source == "dev" or (source == "train" and world.valid == "dev"):
        files = [file for file in files if is_dev(file) is (source == "dev")]
    games: list[Game | Path] = [*files]
    return games[: count or None]


def _generated(count: int, split: str, world: WorldConfig, seed: int, homes: bool) -> list[Game]:
    first, num_scenes = (world.num_scenes, world.homes) if homes else (0, world.num_scenes)
    games = generate(
        count, seed=seed, num_scenes=num_scenes, split=split, habit=world.habit, own_habits=world.own_habits,
        first_scene=first,
    )  # fmt: skip
    return [game.load() for game in games]


class AlfworldTasks:
    """`TaskSource` of ALFWorld.

    Args:
        world: names the splits and has the settings of the generator.
        seed: of generated games.
    """

    def __init__(self, world: WorldConfig, seed: int):
        self.kinds = household_kinds()
        self._world, self._seed = world, seed

    def sides(self) -> tuple[list[Any], list[Any]]:
        """As `TaskSource.sides`."""
        world = self._world
        return (
            games_of(world.train, world.num_train, "train", world, self._seed),
            games_of(world.valid, world.num_valid, "valid", world, self._seed),
        )

    def experiences(self) -> list[Any]:
        """As `TaskSource.experiences`."""
        homes = self._world.homes
        return _generated(EXPERIENCES * homes, "train", self._world, self._seed, homes=True) if homes else []

    def follower(self) -> Follower:
        """As `TaskSource.follower`."""
        return Follower(self._world.grammar)

    def envs(self, tasks: Sequence[Any], num_envs: int, max_steps: int | None = None) -> Any:
        """As `TaskSource.envs`."""
        world = self._world
        return envs.make(
            "alfworld", tasks=tasks, num_envs=num_envs, seed=self._seed, max_steps=max_steps or world.max_steps,
            grammar=world.grammar,
        )  # fmt: skip

    def teacher(self, kinds: Sequence[str] | None = None) -> RuleTeacher:
        """As `TaskSource.teacher`."""
        return RuleTeacher(statistics_order, self._world.grammar, kinds or self.kinds)

    def task_key(self, task_id: str) -> str:
        """As `TaskSource.task_key`."""
        return trial_key(task_id)
