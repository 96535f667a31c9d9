"""Homes with habits of their own: what only memory tells, in homes that no training game is of; two cores, an hour.

Each kind of thing has one usual place in a home, drawn evenly from all that can hold it, so household statistics do not
help, and ten steps are too few for a search. Memory holds 25 solved games of each of the 24 homes that are scored. The
models meet banks that are empty, irrelevant, noisy and stale in training. Guidance names its source, and reaches the
executor in 0, 4, 8 or 16 tokens beside soft tokens whose sigma is at most 0.7 of the embeddings' spread.

Result (commit 2800545, 89 minutes beside other work, one seed): `results/habits.json`, with every control.
"""

import dataclasses

from embodied_mem.training.config import Config, EvalConfig, MemoryConfig, WorldConfig

from . import grpo_cpu

BANKS = ("committed", "committed", "committed", "noisy:0.5", "stale", "irrelevant", "empty")


def config() -> Config:
    small = grpo_cpu.config()
    return dataclasses.replace(
        small,
        world=WorldConfig(
            num_train=2400, num_valid=200, num_scenes=96, habit=1.0, own_habits=True, homes=24, max_steps=10
        ),
        memory=MemoryConfig(top_k=4, numbered=True, hint_budgets=(0, 4, 8, 16), max_sigma=0.7),
        data=dataclasses.replace(small.data, passes=2, banks=BANKS),
        executor_sft=dataclasses.replace(small.executor_sft, steps=1500),
        compiler_sft=dataclasses.replace(small.compiler_sft, steps=1500),
        grpo=dataclasses.replace(small.grpo, steps=0),
        evaluation=EvalConfig(seeds=(0,), temperature=0.5, batch_size=100),
    )
