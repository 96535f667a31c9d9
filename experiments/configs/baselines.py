"""ALFWorld's own games, for memory methods of other papers: their texts are among the executor's formats.

As `alfworld`, but that half of the executor's rows with experiences have what a method recalled in their place. So a
method's row tells what its memory is worth, and not that its wording is new. Free settings of the methods are those of
`baseline_trials`, chosen on dev.

Result: `results/baselines_alfworld_read.json`; some 70 minutes of one core.

    python experiments/train.py --config=baselines
"""

import dataclasses

from embodied_mem.training.config import Config

from . import alfworld

METHODS = ("mem0_1", "mem0_2", "a_mem", "g_memory", "langmem")


def config() -> Config:
    like = alfworld.config()
    return dataclasses.replace(
        like,
        data=dataclasses.replace(like.data, methods=METHODS),
        evaluation=dataclasses.replace(like.evaluation, deliveries=("none", "static", *METHODS, "compiled")),
    )
