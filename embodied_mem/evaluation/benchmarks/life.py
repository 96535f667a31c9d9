"""Learning over a life: the bank starts empty and is filled with what the agent itself lives through.

    lives = Lives(envs, orders, top_k=4, shown=Shown(), view=functools.partial(BankView, numbered=True))
    banks = lives.empty()
    won = lives.play(executor, delivery, banks, first=0, last=100, seed=0)         # bool[100, lives]
    banks = [forgotten(bank, 0.5, seed=life) for life, bank in enumerate(banks)]

Lives go side by side, each with a bank of its own. A success is remembered as everywhere. Of a loss it is remembered
where things of the goal's kind were taken from, and nothing if none was found: the models have never read that a thing
was somewhere not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.agents.rollout import Bank, Envs, play
from embodied_mem.evaluation.intervals import wilson
from embodied_mem.memory import MemoryBank
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.memory.readers import DEFAULT, Reader
from embodied_mem.types import Episode

if TYPE_CHECKING:
    from embodied_mem.agents.deliveries import Delivery
    from embodied_mem.compiler.prompts import Shown


def learned_from(episode: Episode, reader: Reader = DEFAULT) -> str:
    """What a lost episode tells of the world: where things of the goal's kind were; empty if none was found."""
    kind, places = reader.goal_object(episode.goal), dict[str, str]()
    for _, what, name, place in reader.events(episode):
        if what == "take" and kind and name.rstrip("0123456789 ") == kind:
            places.setdefault(name, place)
    found = [f"{name} was in {place}" for name, place in places.items()]
    return "; ".join([*found, f"{len(episode.steps)} steps"]) if found else ""


def remember(bank: MemoryBank, episode: Episode) -> None:
    """Adds what an episode taught, if it taught something."""
    if episode.won:
        bank.add(episode)
    elif told := learned_from(episode, bank.reader):
        bank.add(episode, told)


def forgotten(bank: MemoryBank, share: float, seed: int) -> MemoryBank:
    """A bank without that share of the records of `bank`, drawn by the seed."""
    records = bank.records
    kept = np.sort(np.random.default_rng(seed).permutation(len(records))[round(share * len(records)) :])
    left = MemoryBank(bank.embedder, object_weight=bank.object_weight, task_key=bank.task_key, lost=True)
    left.add_many([records[i][0] for i in kept], [records[i][1] for i in kept])
    return left


def windows(won: np.ndarray, size: int) -> list[dict[str, Any]]:
    """Success of bool[tasks, lives] in windows of so many tasks, with its interval over tasks of all lives."""
    rows = []
    for first in range(0, len(won), size):
        part = won[first : first + size]
        success = float(part.mean())
        interval = list(wilson(success, part.size))
        rows.append({"tasks": [first + 1, first + len(part)], "success": success, "interval": interval})
    return rows


@dataclasses.dataclass(frozen=True)
class Lives:
    """Lives side by side, of the same number of tasks.

    Attributes:
        envs: with a row per life.
        orders: task indices int[tasks, lives], the tasks of each life in order.
        top_k, shown: as the models were trained with.
        view: what is retrieved from, made of a bank.
        object_weight: of the banks.
    """

    envs: Envs
    orders: np.ndarray
    top_k: int
    shown: Shown
    view: Callable[[MemoryBank], Bank]
    object_weight: float = OBJECT_WEIGHT

    def empty(self) -> list[MemoryBank]:
        """A bank for each life, with nothing in it."""
        return [MemoryBank(object_weight=self.object_weight, lost=True) for _ in range(self.orders.shape[1])]

    def play(
        self,
        executor: Any,
        delivery: Delivery,
        banks: Sequence[MemoryBank],
        *,
        first: int,
        last: int,
        seed: int,
        on_task: Callable[[np.ndarray], None] | None = None,
    ) -> np.ndarray:
        """Success bool[last - first, lives] of the tasks from `first` to before `last`; `banks` grow by them.

        `on_task` is called with the successes of all lives in each task.
        """
        views = [self.view(bank) for bank in banks]
        won = []
        for tasks in self.orders[first:last]:
            played = play(
                self.envs, executor, delivery, views, tasks=tasks.tolist(), seeds=[seed] * len(banks),
                top_k=self.top_k, shown=self.shown,
            )  # fmt: skip
            for bank, trajectory in zip(banks, played, strict=True):
                remember(bank, trajectory.episode)
            won.append([trajectory.won for trajectory in played])
            if on_task:
                on_task(np.array(won[-1]))
        return np.array(won, bool).reshape(last - first, len(banks))
