"""ScienceWorld's training variations: the small models from scratch, on recorded solutions; no correction, no GRPO.

Two hundred variations of 27 tasks, recorded once, each read three times with another memory. Guidance is a whole
command, so outputs and commands are longer than in ALFWorld; only the newest turn is shown with its answer, which names
the things of the room. Score the weights, with `--split dev` to choose:

    python experiments/evaluate.py --config=scienceworld --deliveries none static compiled --weights RUN/weights

Result on two test variations of each task: score 18.1 with compiled memory, 11.2 without, 10.8 with static; 5, 1.7 and
0 % won (`results/scienceworld.json`). Undertrained (the log).
"""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig, DataConfig, EvalConfig, MemoryConfig, WorldConfig

from ._small import small as small_config


def config() -> Config:
    small = small_config()
    none = CorrectionConfig()
    return dataclasses.replace(
        small,
        world=WorldConfig(name="scienceworld", train="train", valid="held_out", num_train=200, max_steps=100),
        memory=MemoryConfig(top_k=1, num_soft=4, full_turns=1),
        model=dataclasses.replace(small.model, max_compiler_tokens=96, max_action_tokens=40),
        data=DataConfig(passes=3, detour=0.12),
        executor_sft=dataclasses.replace(small.executor_sft, steps=1200),
        executor_correction=none,
        compiler_sft=dataclasses.replace(small.compiler_sft, steps=1200),
        correction=none,
        grpo=dataclasses.replace(small.grpo, steps=0),
        evaluation=EvalConfig(deliveries=("none", "static", "compiled"), seeds=(0,), temperature=0.5, batch_size=8),
    )
