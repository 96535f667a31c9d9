"""The memory bank of a run: the teacher's successes on the training games, without any experience of its own.

bank = teach_bank(config, path="runs/.../bank.jsonl.gz")
bank = bank_of(envs, num_tasks, make_teacher, seed=0)       # without a run
"""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import MemoryBank
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.progress import Progress
from embodied_mem.training.config import Config
from embodied_mem.training.tasks import TEACHER_STEPS, TrainingTasks, make_tasks, shown, sources_of, task_key_of
from embodied_mem.training.teachers.episodes import Each, play_teacher
from embodied_mem.training.teachers.lesson import TaskSource, Teacher


def teach_bank(config: Config, path: str | os.PathLike[str] = "", tasks: TrainingTasks | None = None) -> MemoryBank:
    """The bank stored at `path`, or else played anew and, with a path, stored there.

    Raises:
        InvalidInputError: `path` is a folder, or a file that holds no bank.
    """
    if path and pathlib.Path(path).is_dir():
        raise InvalidInputError(f"{path}: expected a file with a memory bank, got a folder")
    if path and pathlib.Path(path).exists():
        key = tasks.task_key if tasks else task_key_of(sources_of(config.world, config.seed))
        return MemoryBank.load(path, task_key=key)
    sources = sources_of(config.world, config.seed)
    bank = _remembered(sources, "training_experiences", config)
    if not len(bank):
        tasks = tasks or make_tasks(config)
        bank = bank_of(
            tasks.train, tasks.num_train, tasks.make_teacher, seed=config.seed, task_key=tasks.task_key, each=tasks.each
        )
    if path:
        bank.save(path)
    return bank


def scoring_bank(config: Config, path: str | os.PathLike[str] = "", tasks: TrainingTasks | None = None) -> MemoryBank:
    """The bank that held-out tasks are scored with: of their own homes where the world has some, else `teach_bank`.

    A file at `path` is read instead; raises as `teach_bank`.
    """
    given = path and pathlib.Path(path).exists()
    bank = MemoryBank() if given else _remembered(sources_of(config.world, config.seed), "experiences", config)
    return bank if len(bank) else teach_bank(config, path, tasks)


def _remembered(sources: Sequence[TaskSource], what: str, config: Config) -> MemoryBank:
    """What the demonstrators of these worlds win of the tasks that a method of each, `what`, names; of a source without
    it nothing."""
    bank = MemoryBank(task_key=task_key_of(sources), object_weight=getattr(sources[0], "object_weight", OBJECT_WEIGHT))
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
) -> MemoryBank:
    """What a teacher wins of the first `num_tasks` tasks of `envs`; `task_key` as for `MemoryBank`, `each` as for
    `play_teacher`."""
    bank = MemoryBank(task_key=task_key)
    with Progress("memory bank", num_tasks, unit="game") as progress:
        played = play_teacher(
            envs, range(num_tasks), MemoryBank(), make_teacher, top_k=1, detour=0.0, seed=seed, on_done=progress.update,
            each=each,
        )  # fmt: skip
    bank.add_many(played.episodes)
    return bank
