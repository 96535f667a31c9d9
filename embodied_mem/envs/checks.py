"""Argument checks that vector envs share: seeds, reset masks, task indices, tasks.

mask = checked_mask(options.pop("reset_mask", None), num_envs)
num_envs = checked_count("num_envs", num_envs, MAX_ENVS)

Every function returns the value to go on with, or raises InvalidInputError that names the argument.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embodied_mem.errors import InvalidInputError

MAX_ENVS = 65536
MAX_THREADS = 1024
MAX_STEPS = 2**31 - 1


def checked_count(name: str, value: Any, most: int) -> int:
    """Return a number of things, 1 to `most`, as an int."""
    number = _whole(name, value)
    if not 1 <= number <= most:
        raise InvalidInputError(f"{name}: expected 1 to {most}, got {number}")
    return number


def checked_index(name: str, value: Any, count: int) -> int:
    """Return an index below `count` as an int."""
    number = _whole(name, value)
    if not 0 <= number < count:
        raise InvalidInputError(f"{name}: expected 0 to {count - 1}, got {number}")
    return number


def checked_text(name: str, value: Any) -> str:
    """Return an option that is a word."""
    if not isinstance(value, str) or not _is_unicode(value):
        raise InvalidInputError(f"{name}: expected a str, got {value!r}")
    return value


def checked_finite(name: str, value: Any) -> float:
    """Return a number from a world or a server.

    NaN and infinity are refused.
    """
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name}: expected a number, got {value!r}") from error
    if not math.isfinite(number):
        raise InvalidInputError(f"{name}: expected a finite number, got {number}")
    return number


def checked_path(name: str, value: Any) -> Path:
    """Return an absolute path; whether something is there is not asked."""
    path = value.__fspath__() if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or not _is_unicode(path) or "\0" in path:
        raise InvalidInputError(f"{name}: expected a path, got {value!r}")
    return Path(path).absolute()


def checked_actions(actions: Any) -> list[str] | tuple[str, ...]:
    """Return the actions of a step for the native side.

    It looks at their number and types.
    """
    if isinstance(actions, np.ndarray):
        actions = actions.tolist()
    if not isinstance(actions, list | tuple):
        raise InvalidInputError(f"actions: expected a list of str, one per env, got one {type(actions).__name__}")
    return actions


def checked_seed(seed: int) -> int:
    """Return the seed, 0 or more, as an int."""
    seed = _whole("seed", seed)
    if seed < 0:
        raise InvalidInputError(f"seed: expected >= 0, got {seed}")
    return seed


def checked_seeds(seeds: Any, mask: np.ndarray) -> dict[int, int]:
    """Return {env: its seed} from a seed or None per env.

    Only entries under `mask` are looked at.
    """
    seeds = seeds.tolist() if isinstance(seeds, np.ndarray) else seeds
    if isinstance(seeds, str | bytes) or not isinstance(seeds, Sequence):
        raise InvalidInputError(f"seed: expected a whole number or one per env, got {seeds!r}")
    if len(seeds) != len(mask):
        raise InvalidInputError(f"seed: expected a whole number or one for each of {len(mask)} envs, got {len(seeds)}")
    return {i: checked_seed(seeds[i]) for i in np.flatnonzero(mask).tolist() if seeds[i] is not None}


def checked_mask(mask: Any, num_envs: int) -> np.ndarray:
    """Return `reset_mask` as bool[num_envs], all true for None."""
    if mask is None:
        return np.ones(num_envs, dtype=bool)
    chosen = _array("reset_mask", mask)
    if chosen.shape != (num_envs,) or chosen.dtype != bool:
        raise InvalidInputError(f"reset_mask: expected bool[{num_envs}], got {chosen.dtype}{list(chosen.shape)}")
    return chosen


def checked_indices(indices: Any, mask: np.ndarray, num_envs: int, num_tasks: int) -> np.ndarray:
    """Return `task_indices` as int[num_envs].

    Only entries under `mask` are looked at, and must be tasks.
    """
    chosen = _array("task_indices", indices)
    if chosen.shape != (num_envs,) or not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidInputError(f"task_indices: expected int[{num_envs}], got {chosen.dtype}{list(chosen.shape)}")
    for i in np.flatnonzero(mask):
        if not 0 <= chosen[i] < num_tasks:
            raise InvalidInputError(f"task_indices[{i}]: expected 0 to {num_tasks - 1}, got {chosen[i]}")
    return chosen


def listed_tasks(tasks: Any) -> list[Any]:
    """Return what was given where a name or path was not."""
    if not isinstance(tasks, Iterable):
        raise InvalidInputError(f"tasks: expected a name, a path or tasks, got {type(tasks).__name__}")
    return list(tasks)


def checked_tasks(tasks: Any, load: Callable[[Any], Sequence[Any]], task_type: type) -> list[Any]:
    """Return the tasks to draw from.

    They are those that `load` finds by a name or path, or the objects given.

    Of what is given by name, tasks with `satisfied_at_start` are left out: they belong in no score.
    """
    if isinstance(tasks, str | os.PathLike):
        left: list[Any] = [task for task in load(tasks) if not getattr(task, "satisfied_at_start", False)]
        if not left:
            raise InvalidInputError(f"tasks: {str(tasks)!r} has no task that is not satisfied at the start")
        return left
    listed = listed_tasks(tasks)
    for i, task in enumerate(listed):
        if not isinstance(task, task_type):
            raise InvalidInputError(f"tasks[{i}]: expected a Task, got {type(task).__name__}")
    return listed


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidInputError(f"{name}: expected a whole number, got {value!r}") from None


def _array(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:  # rows of different lengths, for example
        raise InvalidInputError(f"{name}: expected an array, got {type(values).__name__}: {error}") from error
