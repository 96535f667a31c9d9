"""The tasks of a run as vector environments: one to teach, one for rollouts, one for validation.

tasks = make_tasks(config)
tasks.train, tasks.num_train, tasks.make_teacher(0)
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax

from embodied_mem import registry
from embodied_mem.envs.drawn_env import DrawnEnvs
from embodied_mem.envs.mixed_env import MixedEnvs
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.parallel.processes import SharedEnvs
from embodied_mem.progress import Progress
from embodied_mem.training.config import EVERY_WORLD, Config, WorldConfig
from embodied_mem.training.teachers.episodes import Act, Each, play_teacher
from embodied_mem.training.teachers.lesson import Commanding, TaskSource, Teacher

TEACHER_STEPS = 50
"""Most steps of a training task; a world's own limit holds where its tasks are scored."""


@dataclasses.dataclass(frozen=True)
class TrainingTasks:
    """Vector environments over two sets of tasks. In a run of several processes each steps its part of `rollout` and
    `valid`; all of them play the teacher's tasks, which are few and cheap.

    Attributes:
        train: training tasks, for the teacher; 64 in lockstep.
        rollout: the same tasks, `grpo.num_rows` in lockstep.
        valid: validation tasks.
        num_train: number of training tasks.
        num_valid: number of validation tasks.
        make_teacher: gives a fresh teacher for an episode of a training task, by its index; it is of the task's world.
        commands: the commands of a training task's world in words, by its index; for a teacher that is a chat model.
        task_key: of the memory bank.
        each: see `play_teacher`.
        act: who acts on the teacher's guidance, and whose won episodes alone are learned from; None for the teacher.
        test: tasks of the closing table, those of `evaluation.tasks`; validation tasks where it names none.
        num_test: their number.
        follower: what carries out guidance by rule, where all tasks are of one world that has it.
    """

    train: Any
    rollout: Any
    valid: Any
    num_train: int
    num_valid: int
    make_teacher: Callable[[int], Teacher]
    commands: Callable[[int], str]
    task_key: Callable[[str], str] = str
    each: Each = map
    act: Act | None = None
    test: Any = None
    num_test: int = 0
    follower: Any = None


def make_tasks(config: Config, num_taught: int = 64) -> TrainingTasks:
    """Make the tasks of one or all worlds; `num_taught` are in lockstep.

    Raises:
        DataNotFoundError: a split that is not installed.
        InvalidInputError: a world that has no tasks to play in training.
    """
    world, rl = config.world, config.grpo
    sources = sources_of(world, config.seed)
    train, valid = [], []
    for source in sources:
        to_train, held_out = source.sides()
        train.append(to_train[: world.num_train or None])
        valid.append(held_out[: world.num_valid or None])

    def make(sides: Sequence[Sequence[Any]], num_envs: int, max_steps: int) -> Any:
        parts = [source.envs(tasks, num_envs, max_steps) for source, tasks in zip(sources, sides)]
        whole = parts[0] if len(parts) == 1 else MixedEnvs(parts, [len(tasks) for tasks in sides])
        return shown(whole, world)

    def make_shared(sides: Sequence[Sequence[Any]], num_envs: int, max_steps: int) -> Any:
        count = jax.process_count()
        own = make(sides, math.ceil(num_envs / count), max_steps)
        return shown(SharedEnvs(own), world) if count > 1 else own

    validation = make_shared(valid, config.evaluation.batch_size, world.max_steps)
    test, test_tasks = validation, valid
    if config.evaluation.tasks:
        test_world = dataclasses.replace(world, valid=config.evaluation.tasks, num_valid=0)
        test_tasks = [source.sides()[1] for source in sources_of(test_world, config.seed)]
        test = make_shared(test_tasks, config.evaluation.batch_size, world.max_steps)
    kinds = None if len(sources) == 1 else sorted({kind for source in sources for kind in source.kinds})
    of_task = [source for source, tasks in zip(sources, train) for _ in tasks]

    def make_teacher(task: int) -> Teacher:
        teacher = of_task[task].teacher(kinds)
        return Commanding(teacher) if config.data.commands else teacher

    follower = follower_of(sources)
    if config.data.commands and follower is None:
        raise InvalidInputError("data.commands: expected one world whose guidance can be carried out by rule")
    return TrainingTasks(
        make(train, num_taught, TEACHER_STEPS),
        make_shared(train, rl.num_rows, rl.max_steps),
        validation,
        sum(map(len, train)),
        sum(map(len, valid)),
        make_teacher,
        lambda task: of_task[task].commands(),
        task_key_of(sources),
        test=test,
        num_test=sum(map(len, test_tasks)),
        follower=follower,
    )


def shown(envs: Any, world: WorldConfig) -> Any:
    """Draw the environments' texts as pictures where the world wants them."""
    return DrawnEnvs(envs) if world.drawn else envs


def follower_of(sources: Sequence[TaskSource]) -> Any:
    """Return the world's follower by rule; None for several worlds."""
    return sources[0].follower() if len(sources) == 1 and hasattr(sources[0], "follower") else None


def task_key_of(sources: Sequence[TaskSource]) -> Callable[[str], str]:
    """Return a function that applies each world's task key in turn."""
    return lambda task_id: functools.reduce(lambda key, source: source.task_key(key), sources, task_id)


def sources_of(world: WorldConfig, seed: int) -> list[TaskSource]:
    """Return a world's sources of tasks, or with `EVERY_WORLD` all worlds'."""
    mixed = [name for name in registry.names("tasks") if name in registry.BUILT_IN]
    names = mixed if world.name == EVERY_WORLD else [world.name]
    return [registry.load(name, "tasks")(world, seed) for name in names]


def _pools(sources: Sequence[TaskSource], config: Config, held_out: bool) -> Any:
    """Return a single source's memories; None for a bank of episodes."""
    source = sources[0] if len(sources) == 1 else None
    return source.memories(config.memory.reading, held_out) if source and hasattr(source, "memories") else None


def teach_bank(config: Config, path: str | os.PathLike[str] = "", tasks: TrainingTasks | None = None) -> Any:
    """Return the bank at `path`, or play and store it.

    Raises:
        InvalidInputError: `path` is a folder, or a file that holds no bank.
    """
    if path and pathlib.Path(path).is_dir():
        raise InvalidInputError(f"{path}: expected a file with a memory bank, got a folder")
    if path and pathlib.Path(path).exists():
        key = tasks.task_key if tasks else task_key_of(sources_of(config.world, config.seed))
        return Experiences.load(path, task_key=key)
    sources = sources_of(config.world, config.seed)
    if (pools := _pools(sources, config, held_out=False)) is not None:
        return pools
    bank = _remembered(sources, "training_experiences", config)
    if not len(bank):
        tasks = tasks or make_tasks(config)
        bank = bank_of(
            tasks.train, tasks.num_train, tasks.make_teacher, seed=config.seed, task_key=tasks.task_key,
            each=tasks.each, act=tasks.act, board_name="bank",
        )  # fmt: skip
    if path:
        bank.save(path)
    return bank


def scoring_bank(config: Config, path: str | os.PathLike[str] = "", tasks: TrainingTasks | None = None) -> Any:
    """Return the bank for held-out tasks.

    It is of their own homes where the world has some, else `teach_bank`. A file at `path` is read
    instead; raises as `teach_bank`.
    """
    if (pools := _pools(sources_of(config.world, config.seed), config, held_out=True)) is not None:
        return pools
    given = path and pathlib.Path(path).exists()
    bank = Experiences() if given else _remembered(sources_of(config.world, config.seed), "experiences", config)
    return bank if len(bank) else teach_bank(config, path, tasks)


def _remembered(sources: Sequence[TaskSource], what: str, config: Config) -> Experiences:
    """Make a bank of demonstrators' successes in the worlds' tasks `what`."""
    bank = Experiences(task_key=task_key_of(sources), object_weight=getattr(sources[0], "object_weight", OBJECT_WEIGHT))
    for source in sources:
        own = list(getattr(source, what, tuple)())
        if own:
            make = functools.partial(_demonstrator_of, source, own)
            envs = shown(source.envs(own, 64, TEACHER_STEPS), config.world)
            played = bank_of(envs, len(own), make, seed=config.seed)
            bank.add_many([episode for episode, _ in played.records])
    return bank


def _demonstrator_of(source: TaskSource, tasks: Sequence[Any], index: int) -> Teacher:
    return source.demonstrator(tasks[index]) if hasattr(source, "demonstrator") else source.teacher()


def bank_of(
    envs: Any,
    num_tasks: int,
    make_teacher: Callable[[int], Teacher],
    *,
    seed: int,
    task_key: Callable[[str], str] = str,
    each: Each = map,
    act: Act | None = None,
    board_name: str = "",
) -> Experiences:
    """Make a bank of the teacher's successes in the first `num_tasks`.

    `task_key` is that of `Experiences`, `each` and `board_name` that of `play_teacher`, `act` that of `TrainingTasks`.
    """
    bank = Experiences(task_key=task_key)
    with Progress("memory bank", num_tasks, unit="game") as progress:
        played = play_teacher(
            envs, range(num_tasks), Experiences(), make_teacher, top_k=1, detour=0.0, seed=seed,
            on_done=progress.update, each=each, act=act, won_only=True, board_name=board_name,
        )  # fmt: skip
    bank.add_many(played.episodes)
    return bank
