"""Homes with habits of their own: what only memory tells, in homes that no training game is of; one core, two hours.

Each kind of thing has one usual place in a home, drawn evenly from all that can hold it, so household statistics do not
help, and ten steps are too few for a search. Memory holds 25 solved games of each of the 24 homes that are scored. The
models meet banks that are empty, irrelevant, noisy and stale in training. Guidance names its source, and reaches the
executor in 0, 4, 8 or 16 tokens beside soft tokens whose sigma is at most 0.7 of the embeddings' spread. The executor
reads where nobody has looked yet, as the compiler does: without that, `none` goes where it has been.

Result: `results/habits.json`, with every control; one training seed, two hours on one core beside other work.
"""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig, EvalConfig, MemoryConfig, WorldConfig

from ._small import small as small_config

BANKS = ("committed", "committed", "committed", "noisy:0.5", "stale", "irrelevant", "empty")


def config() -> Config:
    small = small_config()

    def rounds(correction: CorrectionConfig, count: int) -> CorrectionConfig:
        return dataclasses.replace(correction, rounds=count, max_steps=10)

    return dataclasses.replace(
        small,
        world=WorldConfig(
            num_train=4800, num_valid=200, num_scenes=192, habit=1.0, own_habits=True, homes=24, max_steps=10
        ),
        model=dataclasses.replace(small.model, compiler="mini", executor="mini"),
        memory=MemoryConfig(top_k=4, marks=True, numbered=True, hint_budgets=(0, 4, 8, 16), max_sigma=0.7),
        data=dataclasses.replace(small.data, passes=2, banks=BANKS),
        executor_sft=dataclasses.replace(small.executor_sft, steps=6000),
        executor_correction=rounds(small.executor_correction, 2),
        compiler_sft=dataclasses.replace(small.compiler_sft, steps=4800, latent=0.3),
        correction=dataclasses.replace(
            rounds(small.correction, 1),
            sft=dataclasses.replace(small.correction.sft, latent=0.3, learning_rate=5e-4),
        ),
        grpo=dataclasses.replace(small.grpo, steps=0),
        evaluation=EvalConfig(seeds=(0,), temperature=0.5, batch_size=100),
    )
