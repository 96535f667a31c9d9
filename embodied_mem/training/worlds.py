"""The games of a run as vector environments: one to teach, one for rollouts, one for validation.

worlds = make_worlds(config)
worlds.train, worlds.num_train, worlds.make_teacher()
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax

from embodied_mem import envs
from embodied_mem.agents import alfred_dialect, habitat_dialect
from embodied_mem.agents.dialect import InAlfworldWords
from embodied_mem.envs.alfworld import find_games
from embodied_mem.envs.alfworld_search import household_order
from embodied_mem.parallel.processes import SharedEnvs
from embodied_mem.training.config import Config, WorldConfig
from embodied_mem.training.errand_teacher import ErrandTeacher
from embodied_mem.training.teacher import RuleTeacher, SearchOrder

TEACHER_STEPS = 50
"""Of a training game; a dialect's limit of 30 holds where its tasks are scored."""


@dataclasses.dataclass(frozen=True)
class Dialect:
    """A world that is spoken in ALFWorld's words.

    Attributes:
        sides: gives its training tasks, (to train on, held out).
        envs: makes it of tasks, a number of rows and a limit of steps.
        search_order: as for `RuleTeacher`.
        kinds: likewise.
    """

    sides: Callable[[], tuple[list[Any], list[Any]]]
    envs: type[InAlfworldWords]
    search_order: SearchOrder
    kinds: tuple[str, ...] | None = None

    def teacher(self) -> ErrandTeacher:
        """A teacher of an episode."""
        return ErrandTeacher(self.search_order, kinds=self.kinds)


DIALECTS = {
    "eb_alfred": Dialect(alfred_dialect.training_sides, alfred_dialect.AlfredInAlfworldWords, household_order),
    "eb_habitat": Dialect(
        habitat_dialect.training_sides,
        habitat_dialect.HabitatInAlfworldWords,
        habitat_dialect.apartment_order,
        tuple(habitat_dialect.KINDS),
    ),
}


@dataclasses.dataclass(frozen=True)
class Worlds:
    """Vector environments over two sets of games. In a run of several processes each steps its part of `rollout` and
    `valid`; all of them play the teacher's games, which are few and cheap.

    Attributes:
        train: training games, for the teacher; 64 in lockstep.
        rollout: the same games, as many in lockstep as a GRPO batch has episodes.
        valid: validation games.
        num_train: number of training games.
        num_valid: number of validation games.
        make_teacher: makes a teacher of an episode.
    """

    train: Any
    rollout: Any
    valid: Any
    num_train: int
    num_valid: int
    make_teacher: Callable[[], RuleTeacher]


def make_worlds(config: Config) -> Worlds:
    """The environments that `config.world` names.

    Raises:
        DataNotFoundError: a split that is not installed.
    """
    world, dialect = config.world, DIALECTS.get(config.world.name)
    if dialect:
        sides = zip(("train", "valid"), dialect.sides())
        games = {split: side[: getattr(world, f"num_{split}") or None] for split, side in sides}
    else:
        games = {
            split: games_of(getattr(world, split), getattr(world, f"num_{split}"), split, world, config.seed)
            for split in ("train", "valid")
        }

    def make_shared(split: str, num_envs: int, max_steps: int):
        count = jax.process_count()
        own = make(split, math.ceil(num_envs / count), max_steps)
        return SharedEnvs(own) if count > 1 else own

    def make(split: str, num_envs: int, max_steps: int):
        if dialect:
            return dialect.envs(games[split], num_envs, max_steps)
        return envs.make(
            "alfworld", tasks=games[split], num_envs=num_envs, seed=config.seed, max_steps=max_steps,
            grammar=world.grammar,
        )  # fmt: skip

    rollout = config.grpo.num_tasks * config.grpo.group_size
    return Worlds(
        make("train", 64, TEACHER_STEPS),
        make_shared("train", rollout, config.grpo.max_steps),
        make_shared("valid", config.evaluation.batch_size, world.max_steps),
        len(games["train"]),
        len(games["valid"]),
        lambda: dialect.teacher() if dialect else RuleTeacher(household_order, world.grammar),
    )


def games_of(source: str, count: int, split: str, world: WorldConfig, seed: int) -> list:
    """Games of a split, a folder or the generator; `count` 0 takes all."""
    if source == "generated":
        from embodied_mem.envs.alfworld_generator import generate

        games = generate(count, seed=seed, num_scenes=world.num_scenes, split=split, habit=world.habit)
        return [game.load() for game in games]
    games = find_games(source)
    return games[:count] if count else games
