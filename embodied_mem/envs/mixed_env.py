"""Several worlds as one vector environment: their tasks one after the other, any of them in any row.

    envs = MixedEnvs([rooms, apartments], counts=[3553, 737])
    observations, info = envs.reset(options={"task_indices": [0, 3553]})        # a task of each world

Every world has as many rows as the whole; a row that plays another world's task idles there, which costs little where
models take most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_TOLD = ("goal", "task_id", "won", "progress", "admissible_commands")


class MixedEnvs:
    """Vector environments with equally many rows as one.

    Args:
        parts: one per world.
        counts: number of tasks of each.
    """

    def __init__(self, parts: Sequence[Any], counts: Sequence[int]):
        self._parts, self._starts = list(parts), np.cumsum([0, *counts])
        self.num_envs, self.num_tasks = parts[0].num_envs, int(self._starts[-1])
        self.max_steps = max(part.max_steps for part in parts)
        self._world = np.zeros(self.num_envs, int)

    def reset(self, *, options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Start episodes in all rows, or in those of `options["reset_mask"]`."""
        indices, mask = np.asarray(options["task_indices"]), options.get("reset_mask", np.ones(self.num_envs, bool))
        self._world = np.where(mask, np.searchsorted(self._starts, indices, side="right") - 1, self._world)
        answers = []
        for number, part in enumerate(self._parts):
            own = np.where(self._world == number, indices - self._starts[number], 0)
            answers.append(part.reset(options={**options, "task_indices": own}))
        return self._picked([texts for texts, _ in answers]), self._told([info for _, info in answers])

    def step(self, commands: Sequence[str]) -> tuple[Any, ...]:
        """Return one command per row; as `gymnasium.vector.VectorEnv.step`."""
        answers = []
        for number, part in enumerate(self._parts):
            own = self._world == number
            answers.append(part.step([c if mine else "look" for c, mine in zip(commands, own)]))
        *columns, infos = zip(*answers)
        texts, *signals = map(self._picked, columns)
        return texts, *map(np.asarray, signals), self._told(infos)

    def _picked(self, parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Return each row's answer from its own world."""
        return [parts[world][row] for row, world in enumerate(self._world)]

    def _told(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {name: self._picked([info[name] for info in infos]) for name in _TOLD}
