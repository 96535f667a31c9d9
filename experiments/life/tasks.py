"""Lives as tasks to train on: each day is a task, and its memory is that of a life which somebody else has led so far.

    source = LifeTasks(config.world, config.seed)
    source.memories(config.memory.reading, held_out=False)      # `TaskPools` of the days that are trained on

A demonstrator who knows the truth of each day lives the homes; its memory is told and shown everything. An episode is
lost that takes what must not be taken, or that needs more steps than its day allows.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import multiprocessing
import os
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.task_pools import Start, TaskPools
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.memory.pool import KINDS, Reading
from embodied_mem.progress import Progress
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import TEACHER_STEPS
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.generator import Generator
from embodied_mem.worlds.alfworld.statistics import household_kinds
from embodied_mem.worlds.alfworld.tasks import AlfworldTasks
from embodied_mem.worlds.alfworld.wording.follower import Follower
from experiments.configs._life import MIX, MORE_TRAINING, NUM_TRAINING, PARTS, SEED, STALE

from .lives import Day, Life, homes_of, make_life, read_instruction
from .player import MODULES, Condition, LifeTeacher, Outcome, Player, is_theft
from .readers import Knowledge, Oracle


@functools.lru_cache(maxsize=256)
def _life(home: int, part: str, is_stale: bool) -> Life:
    generator = Generator(SEED, habit=1.0, own_habits=True)
    return make_life(generator, home, STALE if is_stale else MIX, part)


def lives_of(num_homes: int, part: str, is_stale: bool = False) -> list[Life]:
    """Return lives of the part `train`, `dev` or `report`.

    In stale ones half of the own places change.
    """
    generator = Generator(SEED, habit=1.0, own_habits=True)
    homes = homes_of(generator, num_homes, PARTS.get(part, 0))
    if part == "train":
        homes = [home for home in homes if home < NUM_TRAINING]
        homes += homes_of(generator, num_homes - len(homes), MORE_TRAINING)
    return [_life(home, part, is_stale) for home in homes]


class _Noting(Oracle):
    """Tells the truth of the day, and notes before what memory holds.

    Args:
        reading: of the pools.
        names: tasks that are noted.
    """

    def __init__(self, reading: Reading, names: Container[str]):
        self.starts: dict[str, Start] = {}
        self.memory = LifelongMemory()
        self._readings = reading, dataclasses.replace(reading, kinds=("experience",))
        self._names = names

    def read(self, goal: str, room: Sequence[str]) -> Knowledge:
        """Return the truth, as `Reader.read`."""
        if (name := self.memory.task_ids[-1]) in self._names:
            instruction = read_instruction(goal)
            about = instruction.name or instruction.kind
            pool, bank = (self.memory.pool_of(None, "", one, about) for one in self._readings)
            self.starts[name] = Start(pool, bank.experiences)
        return super().read(goal, room)


DEMONSTRATOR = Condition("demonstrator", modules=MODULES)


def starts_of(
    lives: tuple[Life, Life | None], reading: Reading, names: Container[str], condition: Condition
) -> dict[str, Start]:
    """Live a home by its truth; note the memory of some tasks.

    Another home comes before it where the condition asks.
    """
    life, other = lives
    player = Player(condition)
    assert player.memory is not None
    if condition.other and other is not None:
        player.live_before(other)
    player.reader = player.oracle = noting = _Noting(reading, names)
    noting.memory = player.memory
    for day in life.days:
        player.play(day, day.game.trial, f"home {life.home}")
    return noting.starts


class LifeTasks:
    """`TaskSource` of lives. `world.num_scenes` homes are trained on, `world.homes` others are held out to choose by.

    Args:
        world: see there.
        seed: of the order of the days.

    Attributes:
        object_weight, kinds: as of `TaskSource`.
    """

    object_weight = OBJECT_WEIGHT

    def __init__(self, world: WorldConfig, seed: int):
        self.kinds = household_kinds()
        self._world, self._seed = world, seed

    def sides(self) -> tuple[list[Day], list[Day]]:
        world = self._world
        return self.days(lives_of(world.num_scenes, "train")), self.days(lives_of(world.homes, "dev"))

    def days(self, lives: Sequence[Life]) -> list[Day]:
        """Return the days of lives in a drawn order."""
        days = [day for life in lives for day in life.days]
        return [days[i] for i in np.random.default_rng(self._seed).permutation(len(days))]

    def memories(self, reading: Reading, held_out: bool) -> TaskPools:
        world = self._world
        count = world.num_valid if held_out else world.num_train
        lives = lives_of(world.homes, "dev") if held_out else lives_of(world.num_scenes, "train")
        return pools_of(lives, self.sides()[held_out][: count or None], reading)

    def envs(self, tasks: Sequence[Day], num_envs: int, max_steps: int | None = None) -> LifeEnvs:
        return LifeEnvs(tasks, num_envs, self._seed, max_steps or self._world.max_steps)

    def teacher(self, kinds: Sequence[str] | None = None) -> LifeTeacher:
        return LifeTeacher(kinds=kinds or self.kinds)

    def demonstrator(self, task: Day) -> LifeTeacher:
        return self.teacher()

    def follower(self) -> Follower:
        return Follower("0.4")

    def commands(self) -> str:
        return AlfworldTasks(self._world, self._seed).commands()

    def task_key(self, task_id: str) -> str:
        return task_id


def pools_of(
    lives: Sequence[Life],
    days: Sequence[Day],
    reading: Reading,
    condition: Condition = DEMONSTRATOR,
    others: Sequence[Life | None] = (),
) -> TaskPools:
    """Live the lives and note some days.

    They are lived side by side where there are cores.

    Args:
        condition: of the memory.
        others: lives that the memory has led before, for a condition that asks for it.
    """
    names = {day.game.trial for day in days}
    live = functools.partial(starts_of, reading=reading, names=names, condition=condition)
    starts: dict[str, Start] = {}
    num_processes = min(len(lives), len(os.sched_getaffinity(0)) // 2)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress("lives", len(lives), unit="home"))
        each: Any = map
        if num_processes > 1:
            context = multiprocessing.get_context("spawn")
            each = stack.enter_context(concurrent.futures.ProcessPoolExecutor(num_processes, context)).map
        for some in each(live, list(itertools.zip_longest(lives, others[: len(lives)]))):
            starts |= some
            progress.update(1)
    return TaskPools(starts)


READING = Reading(k=12, kinds=KINDS, newest_first=True, with_ages=True, focused=True, by_age=True)
"""Reading of a pool by `--config=life`."""


def play_by_teacher(life: Life, setting: str) -> list[Outcome]:
    """Play a life by the compiler's teacher under a setting of `TaskPools`."""
    envs = LifeEnvs(life.days, len(life.days), 0, TEACHER_STEPS - 1)
    pools = pools_of([life], life.days, READING).under((setting,), 0)
    tasks = range(len(life.days))
    data = play_teacher(envs, tasks, pools, lambda task: LifeTeacher(), top_k=READING.k, detour=0.0, seed=0)
    names = {episode.task_id for episode in data.episodes}
    return [Outcome(day.game.trial in names, 0) for day in life.days]


@functools.lru_cache(maxsize=32_768)
def _game(day: Day) -> Game:
    return day.load()


class LifeEnvs:
    """A vector environment of days: ALFWorld's, in which what is forbidden and a day's own limit of steps end it.

    Args:
        days: the tasks.
        num_envs, seed: as of `envs.make`.
        max_steps: of an episode; from `TEACHER_STEPS` on the days' own limits do not count, so that who teaches can
            make detours.
    """

    def __init__(self, days: Sequence[Day], num_envs: int, seed: int, max_steps: int):
        self.num_envs, self.max_steps = num_envs, max_steps
        self._playing, self._left, self._is_lost = (
            [days[0]] * num_envs,
            np.zeros(num_envs, int),
            np.zeros(num_envs, bool),
        )
        self._days, self._envs = days, envs.make(
            "alfworld", tasks=[_game(day) for day in days], num_envs=num_envs, seed=seed, max_steps=max_steps
        )  # fmt: skip

    def task_id(self, task_index: int) -> str:
        """Return the id of a task."""
        return self._days[task_index].game.trial

    def reset(self, *, options: dict[str, Any]) -> tuple[Sequence[str], Mapping[str, Any]]:
        """Begin the tasks of all environments, or of those in `options["reset_mask"]`."""
        for row in np.flatnonzero(options.get("reset_mask", np.ones(self.num_envs, bool))):
            day = self._playing[row] = self._days[options["task_indices"][row]]
            self._left[row] = day.budget if self.max_steps < TEACHER_STEPS else self.max_steps
            self._is_lost[row] = False
        return self._envs.reset(options=options)

    def step(self, actions: Sequence[str]) -> tuple[Sequence[str], Any, np.ndarray, np.ndarray, Mapping[str, Any]]:
        """Step all environments."""
        observations, rewards, terminations, truncations, info = self._envs.step(actions)
        self._is_lost |= [is_theft(*one) for one in zip(self._playing, actions, observations)]
        self._left -= 1
        info = {**info, "won": np.asarray(info["won"]) & ~self._is_lost}
        return observations, rewards, terminations, truncations | self._is_lost | (self._left <= 0), info
