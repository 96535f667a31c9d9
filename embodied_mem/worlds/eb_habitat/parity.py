"""How EB-Habitat is held against EmbodiedBench's simulator: what is played, and what both say."""

from __future__ import annotations

import numpy as np

from embodied_mem.worlds.eb_habitat.engine import ACTIONS
from embodied_mem.worlds.eb_habitat.env import MAX_STEPS, Env
from embodied_mem.worlds.eb_habitat.expert import solve

MISTAKES = 0.25
"""Share of actions that are drawn from all."""


class EbHabitatParity:
    """The expert's way with random actions between, after each of which it plans anew."""

    options: dict[str, object] = {"max_steps": MAX_STEPS}  # noqa: RUF012

    def actions(self, env: Env, rng: np.random.Generator) -> list[str]:
        """Return actions that reach the goal of a copy of an env, or end its episode."""
        played: list[str] = []
        while not (env.ended or env.won) and len(played) < MAX_STEPS:
            drawn = rng.random() < MISTAKES
            played.append(ACTIONS[rng.integers(len(ACTIONS))] if drawn else solve(env)[0])
            env.step(played[-1])
        return played

    def feedback(self, observation: str) -> str:
        """Return the first line: what is in view and in the hand stands for the image."""
        return observation.partition("\n")[0]


PARITY = EbHabitatParity()
