"""`alfworld` with a compiler that judges: banks that do not help, numbered experiences, budgets of hints, rooms apart.

The settings of `habits` on ALFWorld's own games. Chosen on `dev`, every tenth room of the train split, so that
valid_seen is scored once.

The models are `mini`, whose keys smear over four tokens and copy better; the latent term weighs 0.3, since at 1 it
takes from what the text needs; and correction begins at the rate 5e-4, since own play got worse behind 1e-3. The
compiler trains for 7,200 steps, 1.4 times through its samples: where it saw half of them, in 2,400, one seed failed.

Result: `results/alfworld_judging_seed0.json` and those of seeds 1 and 2.
"""

import dataclasses

from embodied_mem.training.config import Config, SFTConfig

from . import alfworld, habits


def config() -> Config:
    like, judging = alfworld.config(), habits.config()

    def compiling(sft: SFTConfig, rate: float, steps: int) -> SFTConfig:
        return dataclasses.replace(sft, latent=0.3, learning_rate=rate, steps=steps)

    return dataclasses.replace(
        like,
        world=dataclasses.replace(like.world, valid="dev", num_valid=140),
        model=judging.model,
        memory=dataclasses.replace(judging.memory, top_k=like.memory.top_k),
        data=dataclasses.replace(like.data, banks=judging.data.banks),
        compiler_sft=compiling(like.compiler_sft, 2e-3, 7200),
        correction=dataclasses.replace(like.correction, sft=compiling(like.correction.sft, 5e-4, 400)),
    )
