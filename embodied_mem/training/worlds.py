"""The games of a run as vector environments: one to teach, one for rollouts, one for validation.

worlds = make_worlds(config)
worlds.train, worlds.num_train, worlds.search_order
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax

from embodied_mem import envs
from embodied_mem.agents.alfred_dialect import AlfredInAlfworldWords, training_sides
from embodied_mem.envs.alfworld import find_games
from embodied_mem.envs.alfworld_search import household_order
from embodied_mem.parallel.processes import SharedEnvs
from embodied_mem.training.config import Config, WorldConfig

TEACHER_STEPS = 50
"""Of a training game; EB-ALFRED's limit of 30 holds where its tasks are scored."""


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
        search_order: the order in which an executor without guidance should look, for the teacher.
    """

    train: Any
    rollout: Any
    valid: Any
    num_train: int
    num_valid: int
    search_order: Any


def make_worlds(config: Config) -> Worlds:
    """The environments that `config.world` names.

    Raises:
        DataNotFoundError: a split that is not installed.
    """
    world = config.world
    games = {}
    if world.name == "eb_alfred":
        sides = training_sides()
        games = {
            split: side[: getattr(world, f"num_{split}") or None] for split, side in zip(("train", "valid"), sides)
        }
    else:
        for split in ("train", "valid"):
            source, count = getattr(world, split), getattr(world, f"num_{split}")
            games[split] = games_of(source, count, split, world, config.seed)

    def make_shared(split: str, num_envs: int, max_steps: int):
        count = jax.process_count()
        own = make(split, math.ceil(num_envs / count), max_steps)
        return SharedEnvs(own) if count > 1 else own

    def make(split: str, num_envs: int, max_steps: int):
        if world.name == "eb_alfred":
            return AlfredInAlfworldWords(games[split], num_envs, max_steps)
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
        household_order,
    )


def games_of(source: str, count: int, split: str, world: WorldConfig, seed: int) -> list:
    """Games of a split, a folder or the generator; `count` 0 takes all."""
    if source == "generated":
        from embodied_mem.envs.alfworld_generator import generate

        games = generate(count, seed=seed, num_scenes=world.num_scenes, split=split, habit=world.habit)
        return [game.load() for game in games]
    games = find_games(source)
    return games[:count] if count else games
