"""The memory bank of a run: the teacher's successes on the training games, without any experience of its own.

bank = teach_bank(config, path="runs/.../bank.jsonl.gz")
"""

from __future__ import annotations

import os
import pathlib

from embodied_mem.memory import MemoryBank
from embodied_mem.training.config import Config
from embodied_mem.training.progress import Progress
from embodied_mem.training.teacher_data import play_teacher
from embodied_mem.training.worlds import Worlds, make_worlds


def teach_bank(config: Config, path: str | os.PathLike = "", worlds: Worlds | None = None) -> MemoryBank:
    """The bank stored at `path`, or else played anew and, with a path, stored there."""
    if path and pathlib.Path(path).exists():
        return MemoryBank.load(path)
    worlds = worlds or make_worlds(config)
    bank = MemoryBank()
    with Progress("memory bank", worlds.num_train, unit="game") as progress:
        played = play_teacher(
            worlds.train,
            range(worlds.num_train),
            MemoryBank(),
            worlds.make_teacher,
            top_k=1,
            detour=0.0,
            seed=config.seed,
            on_done=progress.update,
        )
    bank.add_many(played.episodes)
    if path:
        bank.save(path)
    return bank
