"""EB-Habitat's training side, in ALFWorld's wording: the small models from scratch, chosen on held-out layouts.

The episodes are few, so eight more are made in the layout of each (`solvers/eb_habitat/generator.py`); the teacher
plays every one four times, with other detours each time. Score the weights on the subsets:

    python experiments/evaluate.py --config=eb_habitat --agents --deliveries none static compiled --weights RUN/weights

Result: 66 % of held-out tasks with compiled memory, 26 % without, 20 % with static
(`results/eb_habitat_held_out.json`); two hours beside two other runs. Half the steps gave 13 and 6 % (the log).
"""

import dataclasses

from embodied_mem.training.config import Config, WorldConfig

from . import alfworld


def config() -> Config:
    like = alfworld.own_bank()
    return dataclasses.replace(
        like,
        world=WorldConfig(name="eb_habitat", train="train", valid="held_out", max_steps=30),
        model=dataclasses.replace(like.model, max_compiler_tokens=80),  # six subgoals are written down at once
        compiler_sft=dataclasses.replace(like.compiler_sft, steps=3000),
        evaluation=dataclasses.replace(like.evaluation, deliveries=("none", "static", "compiled"), batch_size=63),
    )
