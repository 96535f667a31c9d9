"""Homes with names of their own for what is done there: `find a mug and do the copper round.`; one core, two hours.

What a name means is drawn anew for each home, so it stands in that home's experiences only: 25 solved games of each of
the 24 homes that are scored. No name means there what it means in a training home, and every second one is none of
theirs. Things are where households keep them, so that finding them needs no memory. Otherwise as `habits`.

Result: `results/procedures.json`, with every control; one training seed.

The rule teacher wins 92.0 % with memory and 45.5 % without, before any training (`results/studies_teacher.json`).
"""

import dataclasses

from embodied_mem.training.config import Config

from . import habits


def config() -> Config:
    base = habits.config()
    world = dataclasses.replace(base.world, own_habits=False, procedures=6, max_steps=12)
    return dataclasses.replace(
        base,
        world=world,
        executor_sft=dataclasses.replace(base.executor_sft, steps=3000),
        executor_correction=dataclasses.replace(base.executor_correction, max_steps=world.max_steps),
        correction=dataclasses.replace(base.correction, max_steps=world.max_steps),
    )
