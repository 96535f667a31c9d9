"""Coordinates the processes of one run: who writes, who waits, and texts that all of them need.

    with first_alone("bank"):                 # the first process makes a file, the others then find it
        bank = teach_bank(config, path)
    if is_first(): write_report(...)
    parts = gather_json({"won": [True]})      # one entry per process, the same list everywhere

All processes run the same program on the same numbers and reach these calls in the same order. In a run of one
process they cost nothing. Files lie where all processes see them.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np


def is_first() -> bool:
    """Returns whether this process is the one that writes files and prints."""
    return jax.process_index() == 0


def wait_for_all(name: str) -> None:
    """Returns when every process has come here.

    `name` is the same in all of them.
    """
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(name)


@contextlib.contextmanager
def first_alone(name: str) -> Iterator[None]:
    """Run the enclosed block in the first process, then in the others."""
    if not is_first():
        wait_for_all(name)
    yield
    if is_first():
        wait_for_all(name)


def gather_json(value: Any) -> list[Any]:
    """Returns the JSON values of all processes in process order."""
    if jax.process_count() == 1:
        return [value]
    from jax.experimental import multihost_utils

    data = np.frombuffer(json.dumps(value).encode(), np.uint8)
    sizes = multihost_utils.process_allgather(np.int32(len(data)))
    width = 1 << int(sizes.max()).bit_length()  # few widths, each of which is compiled once
    rows = multihost_utils.process_allgather(np.pad(data, (0, width - len(data))))
    return [json.loads(bytes(row[:size])) for row, size in zip(rows, sizes)]


@contextlib.contextmanager
def terminations() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether any process got SIGTERM.

    All processes call it together. A second SIGTERM ends a process at once, and so does the first where this is
    called in another thread than the main one.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def remember(number: int, _: object) -> None:
        signals.append(number)
        signal.signal(number, before)

    before = signal.signal(signal.SIGTERM, remember)
    try:
        yield lambda: any(gather_json(bool(signals)))
    finally:
        signal.signal(signal.SIGTERM, before)


class SharedEnvs:
    """Vector environments of all processes as one, of which each process steps its own rows.

    Args:
        envs: this process's; as many rows in every process, over the same tasks.

    `reset` and `step` take and give all rows in every process, so that a program that plays with them does the same
    everywhere. `info` has `goal`, `task_id`, `won` and `progress`.
    """

    def __init__(self, envs: Any):
        self._envs = envs
        self.num_envs = envs.num_envs * jax.process_count()
        self.max_steps = envs.max_steps
        first = envs.num_envs * jax.process_index()
        self._own = slice(first, first + envs.num_envs)

    def reset(self, *, options: dict[str, Any]) -> tuple[list[str], dict[str, list[Any]]]:
        """Returns (observations, info) of all rows; `options` are arrays over rows."""
        observations, info = self._envs.reset(options={name: values[self._own] for name, values in options.items()})
        gathered = _gather({"observations": observations} | _told(info))
        return gathered.pop("observations"), gathered

    def step(
        self, actions: Sequence[str]
    ) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, dict[str, list[Any]]]:
        """Returns (observations, rewards, terminations, truncations, info) of all rows."""
        observations, rewards, terminations, truncations, info = self._envs.step(list(actions[self._own]))
        own = {
            "observations": observations, "rewards": rewards, "terminations": terminations, "truncations": truncations,
        }  # fmt: skip
        gathered = _gather(own | _told(info))
        signals = [np.asarray(gathered.pop(name)) for name in ("rewards", "terminations", "truncations")]
        return gathered.pop("observations"), signals[0], signals[1], signals[2], gathered


def _told(info: dict[str, Any]) -> dict[str, Any]:
    return {name: info[name] for name in ("goal", "task_id", "won", "progress")}


def _gather(own: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns the rows of all processes behind each other, by name."""
    parts = gather_json({name: np.asarray(rows).tolist() for name, rows in own.items()})
    return {name: [row for part in parts for row in part[name]] for name in own}
