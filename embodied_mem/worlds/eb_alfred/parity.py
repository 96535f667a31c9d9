"""How EB-ALFRED is held against EmbodiedBench's simulator: what is played, and what both say."""

from __future__ import annotations

import numpy as np

from embodied_mem.envs.data_files import read_object
from embodied_mem.worlds.eb_alfred.engine import Env
from embodied_mem.worlds.eb_alfred.env import MAX_STEPS, annotation_file, data_root
from embodied_mem.worlds.eb_alfred.expert import expert_actions

MISTAKES = 0.5
"""Share of finds before which an action is played that is refused; elsewhere one changes where a thing is put."""


class EbAlfredParity:
    """The plan of ALFRED's expert with refused actions between."""

    options: dict[str, object] = {"max_steps": MAX_STEPS, "shows_view": False}  # noqa: RUF012

    def actions(self, env: Env, rng: np.random.Generator) -> list[str]:
        """Return actions that reach the goal of a copy of an env, or end its episode."""
        path = min(annotation_file(data_root(), env.task.trial, 0).parent.glob("ann_*.json"))
        played: list[str] = []
        for action in expert_actions(env.task, read_object(path)):
            refused = sorted(set(env.admissible_commands) - set(env.valid_commands))
            mistaken = action.startswith("find ") and rng.random() < MISTAKES
            given = [refused[rng.integers(len(refused))], action] if mistaken else [action]
            for each in given:
                env.step(each)
                played.append(each)
            if env.ended or len(played) >= MAX_STEPS:
                break
        return played[:MAX_STEPS]

    def feedback(self, observation: str) -> str:
        """Return all of it: there is no view."""
        return observation


PARITY = EbAlfredParity()
