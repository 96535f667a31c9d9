"""How MemGen's weaver and trigger are trained; apart from `training.memgen`, so that `--help` needs no JAX."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class MemGenSettings:
    """How both are trained; a trigger that is not trained says INVOKE everywhere.

    Attributes:
        steps: of the weaver.
        batch_size: samples per step.
        learning_rate: of the weaver, peak.
        trigger_steps: batches of episodes.
        trigger_learning_rate: of the trigger.
        num_tasks: training games per batch of episodes.
        group_size: episodes of each.
        max_steps: of such an episode.
        decisions: the most that an update reads.
        penalty: w.
        temperature: of the executor while the trigger is trained.
        seed: of everything that is drawn.
    """

    steps: int = 500
    batch_size: int = 32
    learning_rate: float = 2e-3
    trigger_steps: int = 12
    trigger_learning_rate: float = 5e-3
    num_tasks: int = 8
    group_size: int = 4
    max_steps: int = 25
    decisions: int = 128
    penalty: float = 0.1
    temperature: float = 0.5
    seed: int = 0
