"""A pilot of `life` for one core: fewer days, a tenth of the steps."""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig

from . import grpo_cpu, life


def config() -> Config:
    base, small = life.config(), grpo_cpu.config()
    correction = dataclasses.replace(
        small.correction, num_games=150, sft=dataclasses.replace(small.correction.sft, steps=120)
    )
    return dataclasses.replace(
        base,
        world=dataclasses.replace(base.world, num_train=2400, num_scenes=60),
        memory=dataclasses.replace(base.memory, with_ages=False, max_sigma=0.0),
        data=dataclasses.replace(base.data, passes=1),
        executor_sft=dataclasses.replace(small.executor_sft, steps=600),
        executor_correction=CorrectionConfig(),
        compiler_sft=dataclasses.replace(small.compiler_sft, checkpoint_every=100),
        correction=correction,
        grpo=dataclasses.replace(small.grpo, steps=2, group_size=4),
    )
