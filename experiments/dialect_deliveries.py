"""Deliveries of memory on EB-ALFRED, by models that were trained on ALFWorld: EB-ALFRED spoken in ALFWorld's words.

    rows = play_deliveries("experiments/weights/alfworld", ("none", "compiled"), training, tasks, on_task)

Executor and compiler have never seen EB-ALFRED. The memory bank holds what the rule teacher won on EB-ALFRED's own
training tasks, spoken alike, so that experiences come from the homes that are scored. What this cannot play is in
`embodied_mem.agents.alfred_dialect`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

BATCH = 25
"""Tasks in lockstep."""
TEACHER_ACTIONS = 100
"""Of a training task; the original's limit of 30 holds where scores are counted."""


def bank_of(training: Sequence[Any]):
    """The memory bank of the rule teacher's successes on training tasks."""
    from embodied_mem.agents.alfred_dialect import AlfredInAlfworldWords
    from embodied_mem.envs.alfworld_search import household_order
    from embodied_mem.memory import MemoryBank
    from embodied_mem.training.progress import Progress
    from embodied_mem.training.teacher import RuleTeacher
    from embodied_mem.training.teacher_data import play_teacher

    bank = MemoryBank()
    if training:
        envs = AlfredInAlfworldWords(training, num_envs=min(16, len(training)), max_steps=TEACHER_ACTIONS)
        with Progress("memory bank", len(training), unit="task") as progress:
            played = play_teacher(
                envs, range(len(training)), MemoryBank(), lambda: RuleTeacher(household_order),
                top_k=1, detour=0.0, seed=0, on_done=progress.update,
            )  # fmt: skip
        bank.add_many(played.episodes)
    return bank


def play_deliveries(
    weights: str,
    left: dict[str, Sequence[Any]],
    training: Sequence[Any],
    on_task: Callable[[str, str, list], None],
) -> None:
    """Plays tasks with each delivery.

    Args:
        weights: folder with config, tokenizer and weights.
        left: delivery -> tasks that it is to play.
        training: tasks that the memory bank is made of.
        on_task: gets delivery, name of the task, and [won, progress, steps, 0, 0].
    """
    from embodied_mem.models.host import keep_freed_memory

    keep_freed_memory()
    from embodied_mem.agents.alfred_dialect import AlfredInAlfworldWords
    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.agents.player import play
    from embodied_mem.training import stages
    from embodied_mem.training.progress import Progress
    from embodied_mem.training.weights import load_bundle

    bundle = load_bundle(pathlib.Path(weights))
    config, bank = bundle.config, bank_of(training)
    settings = {"temperature": 0.0, "batch_buckets": (BATCH,), "placement": stages.placement(config)}
    executor = stages.make_executor(config, bundle.executor, bundle.tokenizer, **settings)
    compiler = stages.make_compiler(config, bundle.model, bundle.tokenizer, **settings)
    for name, tasks in left.items():
        with Progress(name, len(tasks), unit="task") as progress:
            for first in range(0, len(tasks), BATCH):
                part = tasks[first : first + BATCH]
                envs = AlfredInAlfworldWords(part, num_envs=len(part))
                play(
                    envs, executor, make_delivery(name, compiler), bank,
                    tasks=range(len(part)), seeds=[0] * len(part),
                    top_k=config.memory.top_k, full_turns=config.memory.full_turns,
                )  # fmt: skip
                for task, (won, share, steps) in zip(part, envs.outcomes()):
                    on_task(name, task.name, [int(won), share, steps, 0, 0])
                progress.update(len(part))
