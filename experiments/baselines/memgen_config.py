"""Settings of MemGen's training; without jax, so that a command that lists them begins at once."""

from __future__ import annotations

import dataclasses

from embodied_mem.training.config import ConfigPart, bounded


@dataclasses.dataclass(frozen=True)
class MemGenConfig(ConfigPart, part="memgen"):
    """Training of MemGen's weaver and trigger; a trigger that is not trained says INVOKE everywhere.

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

    steps: int = bounded(500, ">= 0")
    batch_size: int = bounded(32, ">= 1")
    learning_rate: float = bounded(2e-3, "> 0")
    trigger_steps: int = bounded(12, ">= 0")
    trigger_learning_rate: float = bounded(5e-3, "> 0")
    num_tasks: int = bounded(8, ">= 1")
    group_size: int = bounded(4, ">= 2; a group of one has no baseline")
    max_steps: int = bounded(25, ">= 1")
    decisions: int = bounded(128, ">= 1")
    penalty: float = bounded(0.1, ">= 0")
    temperature: float = bounded(0.5, ">= 0")
    seed: int = bounded(0, "0 to 2^32 - 1")
