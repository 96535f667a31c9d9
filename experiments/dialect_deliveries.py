"""Deliveries of memory on EmbodiedBench's worlds, spoken in ALFWorld's words, by models in a folder of weights.

    play_deliveries("eb_habitat", "runs/.../weights", left, tasks, seeds=(0, 1, 2), temperature=0.5, on_task=keep)

The memory bank holds what the rule teacher wins on the world's own training side, so experiences are those that models
trained there had. Other models, ALFWorld's for instance, can play, too: they have never seen the world then.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

BATCH = 25
"""Tasks in lockstep, with all seeds of each."""


def bank_of(world: str, num_tasks: int = 0):
    """The memory bank of the rule teacher's successes on the first `num_tasks` training tasks of a world; 0: all."""
    from embodied_mem.training import bank
    from embodied_mem.training.worlds import DIALECTS, TEACHER_STEPS

    dialect = DIALECTS[world]
    training = [task for side in dialect.sides() for task in side][: num_tasks or None]
    envs = dialect.envs(training, num_envs=min(16, len(training)), max_steps=TEACHER_STEPS)
    return bank.bank_of(envs, len(training), dialect.teacher, seed=0)


def play_deliveries(
    world: str,
    weights: str,
    left: Mapping[tuple[str, str], Sequence[int]],
    subsets: Mapping[str, Sequence[Any]],
    *,
    training_tasks: int,
    seeds: Sequence[int],
    temperature: float,
    on_task: Callable[[str, str, Any, list], None],
) -> None:
    """Plays tasks with each delivery, once per seed.

    What is random in an episode depends on seed and number of the task in its subset, so it does not matter which tasks
    are left.

    Args:
        world: of `DIALECTS`.
        weights: folder with config, tokenizer and weights.
        left: (delivery, subset) -> numbers of the tasks that it is to play.
        subsets: name -> tasks.
        training_tasks: that the memory bank is made of; 0 takes all.
        seeds: of the episodes.
        temperature: of compiler and executor; 0 is greedy, where seeds make no difference.
        on_task: gets delivery, subset, task, and means over its seeds of what `evaluate_planner` keeps of a task.

    Raises:
        InvalidInputError: models of ScienceWorld, which do not speak these words.
    """
    from embodied_mem.models.host import keep_freed_memory

    keep_freed_memory()
    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.agents.player import play
    from embodied_mem.training import stages
    from embodied_mem.training.progress import Progress
    from embodied_mem.training.weights import load_bundle
    from embodied_mem.training.worlds import DIALECTS
    from experiments.scoring import cost_of, refuse_weights

    bundle = load_bundle(pathlib.Path(weights))
    if bundle.config.world.name == "scienceworld":
        refuse_weights(weights, "scienceworld", f"{world} or ALFWorld")
    config, bank, num_envs = bundle.config, bank_of(world, training_tasks), BATCH * len(seeds)
    settings = {"temperature": temperature, "batch_buckets": (num_envs,), "placement": stages.placement(config)}
    executor = stages.make_executor(config, bundle.executor, bundle.tokenizer, **settings)
    compiler = stages.make_compiler(config, bundle.model, bundle.tokenizer, **settings)
    worlds = {subset: DIALECTS[world].envs(tasks, num_envs=num_envs) for subset, tasks in subsets.items()}
    for (name, subset), numbers in left.items():
        with Progress(f"{name}: {subset}", len(numbers), unit="task") as progress:
            for first in range(0, len(numbers), BATCH):
                part = numbers[first : first + BATCH]
                pairs = [(number, seed) for number in part for seed in seeds]
                envs = worlds[subset]
                played = play(
                    envs, executor, make_delivery(name, compiler), bank,
                    tasks=[number for number, _ in pairs], seeds=[seed for _, seed in pairs],
                    top_k=config.memory.top_k, full_turns=config.memory.full_turns,
                )  # fmt: skip
                rows = [[*outcome, 0, 0, *cost_of(trajectory)] for outcome, trajectory in zip(envs.outcomes(), played)]
                outcomes = np.array(rows, float).reshape(len(part), len(seeds), -1).mean(1)
                for number, row in zip(part, outcomes.tolist()):
                    on_task(name, subset, subsets[subset][number], row)
                progress.update(len(part), won=float(outcomes[:, 0].mean()))
