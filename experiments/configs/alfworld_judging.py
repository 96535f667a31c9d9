"""`alfworld` with a compiler that judges: banks that do not help, numbered experiences, budgets of hints, rooms apart.

The settings of `habits` on ALFWorld's own games. Chosen on `dev`, every tenth room of the train split, so that
valid_seen is scored once. It takes the place of `alfworld` when three seeds of it have been trained.

Result (one seed, `micro` models, 73 minutes on one core beside other work): `results/alfworld_judging.json`.
"""

import dataclasses

from embodied_mem.training.config import Config

from . import alfworld, habits


def config() -> Config:
    like, judging = alfworld.config(), habits.config()
    return dataclasses.replace(
        like,
        world=dataclasses.replace(like.world, valid="dev", num_valid=140),
        memory=dataclasses.replace(judging.memory, top_k=like.memory.top_k),
        data=dataclasses.replace(like.data, banks=judging.data.banks),
    )
