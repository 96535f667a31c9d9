"""One model for ALFWorld, EB-ALFRED and EB-Habitat: their training games together; `alfworld` otherwise.

About 5,000 games, of which ALFWorld's are 71 %. Scored by `evaluate.py` (ALFWorld) and `evaluate.py --config=eb_alfred`
or `eb_habitat` with `--agents --deliveries none static compiled --weights RUN/weights`.

Not run yet: no result.
"""

import dataclasses

from embodied_mem.training.config import Config
from experiments.configs import alfworld, eb_habitat_train


def config() -> Config:
    like = alfworld.config()
    return dataclasses.replace(
        like,
        world=dataclasses.replace(like.world, name="all"),
        model=eb_habitat_train.config().model,
    )
