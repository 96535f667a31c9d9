"""The study of memory in small, and the twin of `grpo_tpu` for two cores: all stages within 20 minutes.

The homes of `habits`, a quarter of the games: each kind of thing has one usual place in a home, so only memory tells,
and ten steps are too few for a search. 100 games in 12 homes that no training game is of are scored. A third of the
training episodes have an empty bank, so that the executor without memory learns from a teacher without memory.

Result (1,057 s on two cores, one seed): none 1.5 %, static 10.5, compiled 51.5, 48.0 before GRPO
(`results/grpo_cpu.json`).
"""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig, EvalConfig, WorldConfig

from ._small import small as small_config


def config() -> Config:
    small = small_config()

    def shorter(correction: CorrectionConfig, num_games: int, steps: int) -> CorrectionConfig:
        sft = dataclasses.replace(correction.sft, steps=steps)
        return dataclasses.replace(correction, num_games=num_games, max_steps=10, sft=sft)

    return dataclasses.replace(
        small,
        world=WorldConfig(
            num_train=1200, num_valid=200, num_scenes=48, habit=1.0, own_habits=True, homes=12, max_steps=10
        ),
        model=dataclasses.replace(small.model, compiler="mini", executor="mini"),
        data=dataclasses.replace(small.data, passes=2, banks=("committed", "committed", "empty")),
        executor_sft=dataclasses.replace(small.executor_sft, steps=900),
        executor_correction=shorter(small.executor_correction, 200, 100),
        compiler_sft=dataclasses.replace(small.compiler_sft, steps=900),
        correction=shorter(small.correction, 256, 200),
        grpo=dataclasses.replace(
            small.grpo, steps=12, group_size=8, max_steps=10, learning_rate=3e-4, min_learning_rate=3e-5
        ),
        evaluation=EvalConfig(seeds=(0,), temperature=0.5, batch_size=100),
    )
