"""Lives in homes in which every memory is needed: the compiler reads the pool of a lifelong memory.

Each training task is a day in the life of one of 64 homes, with a memory that somebody else has led so far: an episode
in two has the whole pool, one in four past episodes alone, one in four nothing, so one compiler reads all three. A day
allows a shortest plan and two steps more. Homes that are scored hear sentence forms that no training home hears.

    python experiments/train.py --config=life
    python experiments/evaluate.py --config=life --weights runs/life/weights --homes 3 \
        --deliveries none static compiled lifelong_static lifelong_compiled
"""

import dataclasses

from embodied_mem.memory.pool import KINDS
from embodied_mem.training.config import Config, CorrectionConfig, EvalConfig, MemoryConfig, WorldConfig

from . import grpo_cpu


def shorter(correction: CorrectionConfig, num_games: int, steps: int) -> CorrectionConfig:
    """Return a correction of so many games and steps."""
    return dataclasses.replace(correction, num_games=num_games, sft=dataclasses.replace(correction.sft, steps=steps))


def config() -> Config:
    base = grpo_cpu.config()
    deliveries = ("none", "static", "compiled", "lifelong_static", "lifelong_compiled", "lifelong_teacher")
    return dataclasses.replace(
        base,
        world=WorldConfig(
            name="life",
            train="train",
            valid="held_out",
            num_train=2400,
            num_valid=100,
            num_scenes=64,
            homes=3,
            max_steps=20,
        ),
        memory=MemoryConfig(top_k=12, marks=True, newest_first=True, kinds=KINDS, focused=True),
        data=dataclasses.replace(base.data, no_brief=0.0, banks=("pool", "pool", "committed", "empty")),
        executor_sft=dataclasses.replace(base.executor_sft, steps=700),
        executor_correction=shorter(base.executor_correction, 150, 80),
        correction=shorter(base.correction, 200, 150),
        grpo=dataclasses.replace(base.grpo, steps=4, group_size=4),
        evaluation=EvalConfig(deliveries=deliveries, seeds=(0,), temperature=0.5, batch_size=100),
    )
