"""EB-Habitat's training side, in ALFWorld's words: the small models from scratch, chosen on held-out layouts.

The episodes are few, so eight more are made in the layout of each (`envs/eb_habitat_generator.py`); the teacher plays
every one four times, with other detours each time. One round of correction each, for half an hour on two cores.
Score the weights on the subsets:

    python experiments/evaluate.py --config=eb_habitat --agents --deliveries none static compiled --weights RUN/weights

Not run yet: no result.
"""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig, WorldConfig
from experiments.configs import alfworld


def config() -> Config:
    like = alfworld.config()

    def once(correction: CorrectionConfig) -> CorrectionConfig:
        return dataclasses.replace(
            correction, num_games=400, rounds=1, sft=dataclasses.replace(correction.sft, steps=300)
        )

    return dataclasses.replace(
        like,
        world=WorldConfig(name="eb_habitat", train="train", valid="held_out", max_steps=30),
        model=dataclasses.replace(like.model, max_compiler_tokens=80),  # six subgoals are written down at once
        executor_sft=dataclasses.replace(like.executor_sft, steps=1000),
        executor_correction=once(like.executor_correction),
        compiler_sft=dataclasses.replace(like.compiler_sft, steps=1100),
        correction=once(like.correction),
        evaluation=dataclasses.replace(like.evaluation, deliveries=("none", "static", "compiled"), batch_size=63),
    )
