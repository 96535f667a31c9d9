"""Pools of a lifelong memory at the start of each task, so that tasks can be played in any order.

    pools = TaskPools({"home_3_day_0017": Start(pool, experiences)})
    pools.under(("pool", "committed", "empty"), seed=0)       # a `Bank` of training: one of the three an episode

The memory has lived what came before the task, by whoever acted then.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embodied_mem.compiler.view import View
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experience
from embodied_mem.memory.pool import Pool
from embodied_mem.types import Episode

SETTINGS = ("pool", "committed", "empty")
"""An episode has the whole pool, past episodes alone as a bank holds them, or nothing."""


class Start(NamedTuple):
    """The memory of one task when it begins: the pool, and past episodes alone, each with its own limit."""

    pool: Pool
    experiences: Sequence[Experience]


@dataclasses.dataclass(frozen=True)
class TaskPools:
    """A `Bank` of tasks by their ids.

    Attributes:
        starts: task id -> its memory.
        settings: of `SETTINGS`; one is drawn for each task.
        seed: of these draws.
    """

    starts: Mapping[str, Start]
    settings: Sequence[str] = ("committed",)
    seed: int = 0

    def __len__(self) -> int:
        return len(self.starts)

    @staticmethod
    def task_key(task_id: str) -> str:
        return task_id

    def under(self, settings: Sequence[str], seed: int = 0, **order: bool) -> TaskPools:
        """Return the same memories under other settings.

        `order` is that of a bank's experiences: these have the one that they were read with.

        Raises:
            InvalidInputError: there is no such setting.
        """
        if unknown := set(settings) - set(SETTINGS):
            raise InvalidInputError(f"bank: expected some of {', '.join(SETTINGS)} here, got {min(unknown)!r}")
        return dataclasses.replace(self, settings=tuple(settings), seed=seed)

    def retrieve(self, goal: str, k: int, context: str, exclude_task_ids: tuple[str, ...]) -> Sequence[Experience]:
        """Return the past episodes of the task that is played."""
        (task_id,) = exclude_task_ids
        return self.starts[task_id].experiences[:k] if self._setting(task_id) == "committed" else ()

    def pool(self, task_id: str) -> Pool | None:
        """Return the pool of a task under the setting that has it."""
        return self.starts[task_id].pool if self._setting(task_id) == "pool" else None

    def memory_of(self, live: Callable[..., object]) -> Callable[[View], Pool]:
        """Return the pools for `LifelongDelivery`; the memories have lived already."""
        return lambda view: self.starts[view.task_id].pool

    def episodes(self) -> Sequence[Episode]:
        """Raise InvalidInputError: a memory method has no episodes to observe.

        Pools differ by task.
        """
        raise InvalidInputError("bank: expected past episodes, which a memory method observes; got pools of each task")

    def _setting(self, task_id: str) -> str:
        if len(self.settings) == 1:
            return self.settings[0]
        random = np.random.default_rng((self.seed, zlib.crc32(task_id.encode())))
        return self.settings[int(random.integers(len(self.settings)))]
