"""Intervals for success rates and for paired differences.

    low, high = wilson(0.8, 140)
    difference, low, high = paired_difference(won_a, won_b)        # both [tasks, seeds]

Several seeds on one task are not independent tasks: both functions count tasks, not episodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from embodied_mem.errors import InvalidInputError

Z95 = 1.959963984540054


def wilson(rate: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval (low, high) of a rate.

    The rate is measured on `count` independent tasks.

    Args:
        rate: in [0, 1]; with several seeds the mean over all episodes.
        count: number of tasks, >= 1.

    Source: Wilson 1927. (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n).
    """
    if count < 1 or not 0 <= rate <= 1:
        raise InvalidInputError(f"wilson: expected a rate in [0, 1] on at least one task, got {rate} on {count}")
    z2 = Z95 * Z95
    centre = rate + z2 / (2 * count)
    spread = Z95 * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count * count))
    # Rounding may leave an end a hair outside [0, 1].
    return max((centre - spread) / (1 + z2 / count), 0.0), min((centre + spread) / (1 + z2 / count), 1.0)


def success_row(won: ArrayLike) -> dict[str, Any]:
    """Success and its interval as JSON data, of [tasks] or [tasks, seeds]."""
    won = np.asarray(won, float)
    return {"success": float(won.mean()), "interval": list(wilson(float(won.mean()), len(won)))}


def paired_difference(
    first: ArrayLike, second: ArrayLike, *, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Return (mean of first - second, low, high).

    The interval is a 95 % bootstrap interval over tasks.

    Args:
        first: [tasks] or [tasks, seeds], an outcome per episode.
        second: the same tasks and seeds under the other method.
        resamples: of tasks, with replacement.
        seed: of the resampling.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape or first.shape[0] == 0:
        raise InvalidInputError(f"paired_difference: expected equal shapes, got {first.shape} and {second.shape}")
    per_task = (first - second).reshape(len(first), -1).mean(1)
    draws = np.random.default_rng(seed).integers(len(per_task), size=(resamples, len(per_task)))
    means = per_task[draws].mean(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(per_task.mean()), float(low), float(high)
