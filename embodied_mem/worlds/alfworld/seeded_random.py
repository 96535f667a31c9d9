"""Seeded draws of the generators."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Mapping, Sequence


class SeededRandom:
    """Draws that stay the same in every Python version: only `random.Random.random` is used."""

    def __init__(self, *key: object) -> None:
        self._next = random.Random("/".join(map(str, key))).random

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._next()

    def integer(self, count: int) -> int:
        """Return one of 0 .. count - 1."""
        return int(self._next() * count)

    def weighted(self, cumulative: Sequence[float]) -> int:
        """Return index i with probability proportional to its weight, given the running sums of the weights."""
        return min(bisect.bisect_right(cumulative, self._next() * cumulative[-1]), len(cumulative) - 1)

    def key_of(self, weights: Mapping[str, float]) -> str:
        """Return a key with probability proportional to its weight."""
        return list(weights)[self.weighted(list(itertools.accumulate(weights.values())))]
