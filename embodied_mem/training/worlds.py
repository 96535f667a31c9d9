"""The games of a run as vector environments: one to teach, one for rollouts, one for validation.

worlds = make_worlds(config)
worlds.train, worlds.num_train, worlds.make_teacher()
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax

from embodied_mem import envs
from embodied_mem.agents import alfred_dialect, habitat_dialect
from embodied_mem.agents.dialect import InAlfworldWords
from embodied_mem.envs.alfworld import find_games
from embodied_mem.envs.alfworld_household import household_statistics
from embodied_mem.envs.alfworld_search import household_order
from embodied_mem.envs.alfworld_text import type_of
from embodied_mem.errors import InvalidInputError
from embodied_mem.parallel.processes import SharedEnvs
from embodied_mem.training.config import EVERY_WORLD, Config, WorldConfig
from embodied_mem.training.errand_teacher import ErrandTeacher
from embodied_mem.training.mixed_worlds import MixedEnvs
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
        InvalidInputError: ScienceWorld, which is trained on from recordings.
    """
    world = config.world
    names = ("alfworld", *DIALECTS) if world.name == EVERY_WORLD else (world.name,)
    if world.name not in ("alfworld", EVERY_WORLD, *DIALECTS):
        raise InvalidInputError(
            f"world.name: expected one that can be played in training, got {world.name!r}, which is trained on from "
            "recordings: python experiments/train.py --config=scienceworld_train"
        )
    games: dict[str, dict[str, list]] = {"train": {}, "valid": {}}
    for name in names:
        sides = DIALECTS[name].sides() if name in DIALECTS else (None, None)
        for (split, found), side in zip(games.items(), sides):
            count = getattr(world, f"num_{split}")
            if side is None:
                found[name] = games_of(getattr(world, split), count, split, world, config.seed)
            else:
                found[name] = side[: count or None]

    def make_shared(split: str, num_envs: int, max_steps: int):
        count = jax.process_count()
        own = make(split, math.ceil(num_envs / count), max_steps)
        return SharedEnvs(own) if count > 1 else own

    def make(split: str, num_envs: int, max_steps: int):
        parts = [make_one(name, tasks, num_envs, max_steps) for name, tasks in games[split].items()]
        return parts[0] if len(parts) == 1 else MixedEnvs(parts, [len(tasks) for tasks in games[split].values()])

    def make_one(name: str, tasks: list, num_envs: int, max_steps: int):
        if name in DIALECTS:
            return DIALECTS[name].envs(tasks, num_envs, max_steps)
        return envs.make(
            "alfworld", tasks=tasks, num_envs=num_envs, seed=config.seed, max_steps=max_steps, grammar=world.grammar
        )

    rollout = config.grpo.num_tasks * config.grpo.group_size
    return Worlds(
        make("train", 64, TEACHER_STEPS),
        make_shared("train", rollout, config.grpo.max_steps),
        make_shared("valid", config.evaluation.batch_size, world.max_steps),
        sum(map(len, games["train"].values())),
        sum(map(len, games["valid"].values())),
        _teachers(world),
    )


def _teachers(world: WorldConfig) -> Callable[[], RuleTeacher]:
    if world.name in DIALECTS:
        return DIALECTS[world.name].teacher
    if world.name != EVERY_WORLD:
        return lambda: RuleTeacher(household_order, world.grammar)
    kinds = [kind.lower() for kind in household_statistics()["object_types"]]
    kinds = sorted({*kinds, *(kind for dialect in DIALECTS.values() for kind in dialect.kinds or ())})
    return lambda: ErrandTeacher(_order_of_any, world.grammar, kinds)


def _order_of_any(thing: str, places: Sequence[str]) -> Sequence[str]:
    """The order of an apartment of EB-Habitat or of a household, whichever these places are of."""
    apartment = all(type_of(place) in habitat_dialect.PLACES for place in places)
    return (habitat_dialect.apartment_order if apartment else household_order)(thing, places)


def games_of(source: str, count: int, split: str, world: WorldConfig, seed: int) -> list:
    """Games of a split, a folder or the generator; `count` 0 takes all."""
    if source == "generated":
        from embodied_mem.envs.alfworld_generator import generate

        games = generate(count, seed=seed, num_scenes=world.num_scenes, split=split, habit=world.habit)
        return [game.load() for game in games]
    games = find_games(source)
    return games[:count] if count else games
