"""Argument checks that vector envs share: seeds, reset masks, task indices, tasks.

mask = checked_mask(options.pop("reset_mask", None), num_envs)
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embodied_mem.errors import InvalidInputError


def checked_seed(seed: int) -> int:
    """Return the seed as an int.

    Raises:
        InvalidInputError: it is negative.
    """
    seed = operator.index(seed)
    if seed < 0:
        raise InvalidInputError(f"seed: expected >= 0, got {seed}")
    return seed


def checked_mask(mask: Any, num_envs: int) -> np.ndarray:
    """Return `reset_mask` as bool[num_envs], all true for None.

    Raises:
        InvalidInputError: it has another shape or type.
    """
    if mask is None:
        return np.ones(num_envs, dtype=bool)
    mask = np.asarray(mask)
    if mask.shape != (num_envs,) or mask.dtype != bool:
        raise InvalidInputError(f"reset_mask: expected bool[{num_envs}], got {mask.dtype}{list(mask.shape)}")
    return mask


def checked_indices(indices: Any, mask: np.ndarray, num_envs: int, num_tasks: int) -> np.ndarray:
    """Return `task_indices` as int[num_envs]; only entries under `mask` are looked at.

    Raises:
        InvalidInputError: it has another shape or type, or names a task that is not there.
    """
    indices = np.asarray(indices)
    if indices.shape != (num_envs,) or not np.issubdtype(indices.dtype, np.integer):
        raise InvalidInputError(f"task_indices: expected int[{num_envs}], got {indices.dtype}{list(indices.shape)}")
    for i in np.flatnonzero(mask):
        if not 0 <= indices[i] < num_tasks:
            raise InvalidInputError(f"task_indices[{i}]: expected 0 to {num_tasks - 1}, got {indices[i]}")
    return indices


def checked_tasks(tasks: Any, load: Callable[[Any], Sequence[Any]], task_type: type) -> list[Any]:
    """Return the tasks to draw from: those that `load` finds by a name or path, or the objects given.

    Of what is given by name, tasks with `satisfied_at_start` are left out: they belong in no score.

    Raises:
        InvalidInputError: an object is of another type, or nothing by that name is left.
    """
    if isinstance(tasks, str | os.PathLike):
        loaded = load(tasks)
        left = [task for task in loaded if not task.satisfied_at_start]
        if loaded and not left:
            raise InvalidInputError(f"tasks: {str(tasks)!r} has no task that is not satisfied at the start")
        return left
    for i, task in enumerate(tasks):
        if not isinstance(task, task_type):
            raise InvalidInputError(f"tasks[{i}]: expected a Task, got {type(task).__name__}")
    return list(tasks)
