"""Relative costs of a run's stages, for the time left of all of them.

    with Stages(costs(config, tasks)) as stages: ...

In rows of the executor's training; elsewhere the first stages that were finished say how long such a row takes, and the
rest is as good as these ratios. Rows, games and grouped episodes are processor time of one core in
`train.py --config=grpo_cpu` with shortened stages, without the steps that compile: 1.16 s for 32 rows of the executor,
1.33 s for 32 of the compiler, 0.030 s a game, 18.9 s for 64 grouped episodes. One's own and scored episodes ran as one
batch there, with compiling in it; their ratios are those of an earlier run on two cores.
"""

from __future__ import annotations

from embodied_mem.training.config import Config, CorrectionConfig, SFTConfig
from embodied_mem.training.tasks import TrainingTasks

_GAME, _OWN_GAME, _GROUP_EPISODE, _SCORED_EPISODE = 1, 10, 20, 7


_COMPILER_ROW = 1.4


def costs(config: Config, tasks: TrainingTasks | None) -> dict[str, float]:
    """Cost by stage, in order, of those that the configuration has.

    Args:
        config: of the run.
        tasks: that it plays; None in a recorded world, never played in training, nor scored at the end.
    """
    grpo, scored = config.grpo, config.evaluation
    train, valid, test = (tasks.num_train, tasks.num_valid, tasks.num_test) if tasks else (0, 0, 0)
    before, after = (len(range(count)[: scored.num_tasks or None]) * len(scored.seeds) for count in (valid, test))
    found = {
        "samples": float(_GAME * train * config.data.passes),
        "executor": _trained(config.executor_sft),
        "correction of the executor": _corrected(config.executor_correction),
        "compiler": _trained(config.compiler_sft, _COMPILER_ROW),
        "correction of the compiler": _corrected(config.correction, _COMPILER_ROW),
        "GRPO": 0.0,
        "table": float(_SCORED_EPISODE * after * len(scored.deliveries)),
    }
    if grpo.steps:
        played = grpo.steps * grpo.num_tasks * grpo.group_size
        found["GRPO"] = float(_GROUP_EPISODE * played + _SCORED_EPISODE * before)
        found["table"] += _SCORED_EPISODE * before * bool(scored.tasks)
    always = {"samples", "executor", "compiler", "table"} if tasks else {"samples", "executor", "compiler"}
    return {name: cost for name, cost in found.items() if cost or name in always}


def _trained(sft: SFTConfig, row: float = 1.0) -> float:
    return row * sft.steps * sft.batch_size


def _corrected(correction: CorrectionConfig, row: float = 1.0) -> float:
    if not correction.num_games:
        return 0.0
    return correction.rounds * (_OWN_GAME * correction.num_games + _trained(correction.sft, row))
