"""EB-ALFRED's training side, in ALFWorld's wording: the small models from scratch, chosen on held-out trials.

Trials are few, with three or four instructions each, so the teacher plays every one eight times, with other detours
each time.
Score the weights on the subsets:

    python experiments/evaluate.py --config=eb_alfred --agents --deliveries none static compiled --weights RUN/weights

Result (commit 9c90ffc, three seeds of play at temperature 0.5): compiled 38, 22 and 67 % of base, common_sense and
long_horizon, none 26, 15 and 52 %, static 29, 17 and 52 % (`results/eb_alfred_deliveries.json`).
"""

import dataclasses

from embodied_mem.training.config import Config, WorldConfig

from . import alfworld


def config() -> Config:
    like = alfworld.own_bank()
    return dataclasses.replace(
        like,
        world=WorldConfig(name="eb_alfred", train="train", valid="held_out", max_steps=30),
        data=dataclasses.replace(like.data, passes=8),
        executor_sft=dataclasses.replace(like.executor_sft, steps=1500),
        compiler_sft=dataclasses.replace(like.compiler_sft, steps=1500),
        evaluation=dataclasses.replace(like.evaluation, batch_size=32),
    )
