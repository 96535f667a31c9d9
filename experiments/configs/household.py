"""One model for ALFWorld, EB-ALFRED and EB-Habitat: their training games together.

About 5,000 games, of which ALFWorld's are 71 %. As `alfworld.own_bank` otherwise, with two thirds of the compiler's
steps, one round of the executor's correction and none of the compiler's, where rounds were never seen to help. Scored
by `evaluate.py` (ALFWorld) and `evaluate.py --config=eb_alfred` or `eb_habitat` with `--agents --deliveries none
static compiled --weights RUN/weights`.

Result, with compiled memory and without: ALFWorld's valid_seen 81 and 68 % (95 and 73 by its own models), EB-ALFRED's
subsets 41, 23, 65 and 31, 19, 47 % (38, 22, 67 and 26, 15, 52), EB-Habitat's 48, 29, 11 and 23, 13, 7 % (69, 55, 24 and
36, 13, 9); `results/*_household.json`.
"""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig

from . import alfworld, eb_habitat


def config() -> Config:
    like, habitat = alfworld.own_bank(), eb_habitat.config()
    return dataclasses.replace(
        like,
        world=dataclasses.replace(like.world, name="all"),
        model=habitat.model,
        executor_correction=dataclasses.replace(like.executor_correction, rounds=1),
        compiler_sft=dataclasses.replace(like.compiler_sft, steps=1600),
        correction=CorrectionConfig(),
        evaluation=dataclasses.replace(like.evaluation, deliveries=habitat.evaluation.deliveries, seeds=(0,)),
    )
