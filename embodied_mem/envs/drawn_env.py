"""A small picture beside each text, drawn from the text: for models that see, where no simulator is at hand.

    envs = DrawnEnvs(embodied_mem.envs.make("alfworld", tasks=..., num_envs=2))
    observations, info = envs.reset(options={"task_indices": [0, 1]})
    info["images"][0]                                   # uint8[112, 112, 3]

It is a diagram and no view of a room, and says nothing that the text does not: a square for each place that the first
observation names, the one that the agent reached last with a white frame; below, a square for each thing that the
newest observation names. A square's colour stands for the name of the kind, the same in every room.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

SIDE = 112
"""Pixels of a picture's height and width."""

_CELLS, _CELL = 8, SIDE // 8
_NAMED = re.compile(r"\b([a-z]+) (\d+)\b")
_REACHED = re.compile(r"\b(?:arrive at|open(?: the)?) ([a-z]+ \d+)")


class DrawnEnvs:
    """A vector environment whose `info["images"]` holds what is drawn of each row's texts; otherwise as it is.

    Args:
        envs: played with `task_indices`, as in training.
    """

    def __init__(self, envs: Any):
        self._envs, self.num_envs, self.max_steps = envs, envs.num_envs, envs.max_steps
        self._places: list[list[str]] = [[]] * envs.num_envs
        self._at = [""] * envs.num_envs

    def reset(self, *, options: dict[str, Any]) -> tuple[Sequence[str], dict[str, Any]]:
        observations, info = self._envs.reset(options=options)
        mask = options.get("reset_mask", [True] * self.num_envs)
        self._places = [names_in(text) if new else old for new, text, old in zip(mask, observations, self._places)]
        self._at = ["" if new else old for new, old in zip(mask, self._at)]
        return observations, {**info, "images": self._drawn(observations)}

    def step(self, actions: Sequence[str]) -> tuple[Any, ...]:
        observations, *signals, info = self._envs.step(actions)
        for row, text in enumerate(observations):
            if found := _REACHED.search(text):
                self._at[row] = found[1]
        return observations, *signals, {**info, "images": self._drawn(observations)}

    def _drawn(self, observations: Sequence[str]) -> list[np.ndarray]:
        rows = zip(observations, self._places, self._at)
        return [drawn(places, at, [name for name in names_in(text) if name not in places]) for text, places, at in rows]


def names_in(text: str) -> list[str]:
    """Return the names of things and places in a text.

    A text names them by kind and number; they are in its order, each once.
    """
    return list(dict.fromkeys(f"{kind} {number}" for kind, number in _NAMED.findall(text.lower())))


def drawn(places: Sequence[str], at: str, things: Sequence[str]) -> np.ndarray:
    """Draw a room as uint8[SIDE, SIDE, 3].

    Its places are in the upper half, the things that are seen in the lower one; what finds no room is left out.
    """
    picture = np.full((SIDE, SIDE, 3), 32, np.uint8)
    half = _CELLS * _CELLS // 2
    for first, names in ((0, places), (half, things)):
        for cell, name in enumerate(names[:half], first):
            top, left = (_CELL * part for part in divmod(cell, _CELLS))
            square = picture[top + 1 : top + _CELL - 1, left + 1 : left + _CELL - 1]
            square[:] = 255 if name == at else colour(name)
            square[2:-2, 2:-2] = colour(name)
    return picture


def colour(name: str) -> np.ndarray:
    """uint8[3], that of a kind: between 64 and 223."""
    digits = zlib.crc32(name.rpartition(" ")[0].encode())
    return np.array([64 + (digits >> shift) % 160 for shift in (0, 8, 16)], np.uint8)
