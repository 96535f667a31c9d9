"""The memory bank of a run: the teacher's successes on the training games, without any experience of its own.

bank = teach_bank(config, path="runs/.../bank.jsonl.gz")
bank = bank_of(envs, num_tasks, make_teacher, seed=0)       # without a run
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

from embodied_mem.memory import MemoryBank
from embodied_mem.training.config import Config
from embodied_mem.training.progress import Progress
from embodied_mem.training.teacher import Teacher
from embodied_mem.training.teacher_data import play_teacher
from embodied_mem.training.worlds import Worlds, make_worlds


def teach_bank(config: Config, path: str | os.PathLike = "", worlds: Worlds | None = None) -> MemoryBank:
    """The bank stored at `path`, or else played anew and, with a path, stored there."""
    if path and pathlib.Path(path).exists():
        return MemoryBank.load(path)
    worlds = worlds or make_worlds(config)
    bank = bank_of(worlds.train, worlds.num_train, worlds.make_teacher, seed=config.seed)
    if path:
        bank.save(path)
    return bank


def bank_of(envs: Any, num_tasks: int, make_teacher: Callable[[], Teacher], *, seed: int) -> MemoryBank:
    """What a teacher wins of the first `num_tasks` tasks of `envs`."""
    bank = MemoryBank()
    with Progress("memory bank", num_tasks, unit="game") as progress:
        played = play_teacher(
            envs, range(num_tasks), MemoryBank(), make_teacher, top_k=1, detour=0.0, seed=seed, on_done=progress.update
        )
    bank.add_many(played.episodes)
    return bank
