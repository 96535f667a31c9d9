"""Lives in homes in which every memory is needed: the compiler reads the pool of a lifelong memory.

Each training task is a day in the life of one of 96 homes, with a memory that somebody else has led so far: an episode
in two has the whole pool, one in four past episodes alone, one in four nothing, so one compiler reads all three. A day
allows a shortest plan and two steps more. Homes that are scored hear sentence forms that no training home hears.

    python experiments/train.py --config=life
    python experiments/evaluate.py --config=life --weights runs/life/weights \
        --deliveries none static compiled lifelong_static lifelong_compiled
    experiments/gpu.sh --parts life                       # both, where a GPU is

Samples with new guidance out of memory count five times. In an episode in two a kind of place has a made-up name.
Of the last 100 days of six homes that are reported, the rule teacher wins 97.0 % with the pool, 77.3 with past episodes
alone and 37.2 without memory (`results/life_teacher.json`). The trained compiler wins 89.2 %, no memory 23.2, the
teacher's guidance 94.4 (`results/life_trained.json`).
"""

import dataclasses

from embodied_mem.memory.pool import KINDS
from embodied_mem.training.config import Config, EvalConfig, MemoryConfig, WorldConfig

from . import habits


def config() -> Config:
    base = habits.config()
    deliveries = ("none", "static", "compiled", "lifelong_static", "lifelong_compiled", "lifelong_teacher")
    return dataclasses.replace(
        base,
        world=WorldConfig(
            name="life",
            train="train",
            valid="held_out",
            num_train=9600,
            num_valid=100,
            num_scenes=96,
            homes=3,
            max_steps=20,
        ),
        memory=MemoryConfig(
            top_k=12,
            marks=True,
            newest_first=True,
            kinds=KINDS,
            with_ages=True,
            focused=True,
            by_age=True,
            max_sigma=0.7,
        ),
        data=dataclasses.replace(
            base.data, no_brief=0.0, banks=("pool", "pool", "committed", "empty"), memory_weight=5, new_names=0.5
        ),
        executor_correction=dataclasses.replace(
            base.executor_correction,
            num_games=512,
            rounds=6,
            sft=dataclasses.replace(base.executor_correction.sft, steps=250),
        ),
        grpo=dataclasses.replace(base.grpo, steps=8, group_size=8, learning_rate=3e-4, min_learning_rate=3e-5),
        evaluation=EvalConfig(deliveries=deliveries, seeds=(0,), temperature=0.5, batch_size=100),
    )
