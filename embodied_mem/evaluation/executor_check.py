"""Whether a frozen executor can act at all: asked before hours of training go into guidance for it.

    if is_frozen(config, "executor"):
        check_executor(config, executor, tasks.rollout, tasks.num_train, bank)

A published model that does not know the world's commands wins nothing with any guidance, and GRPO gets no signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embodied_mem.agents.rollout import Envs
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.score import Score, score_deliveries
from embodied_mem.memory import MemoryBank

if TYPE_CHECKING:
    from embodied_mem.compiler.executor import Acts
    from embodied_mem.training.config import Config

GAMES = 8
"""Training tasks that are played."""
MIN_ACCEPTED = 0.5
"""Share of commands that have an effect, below which an executor without a win is refused."""


def check_executor(config: Config, executor: Acts, envs: Envs, num_tasks: int, bank: MemoryBank) -> Score:
    """Return the row `none` of the first training tasks, `GAMES` at most.

    Args:
        config: of the run.
        executor: that acts.
        envs: of the training tasks.
        num_tasks: that these have.
        bank: of the run, of which `none` reads nothing.

    Raises:
        InvalidInputError: it wins none of them and fewer than `MIN_ACCEPTED` of its commands have an effect.
    """
    row = score_deliveries(
        envs, executor, None, bank, deliveries=("none",), tasks=range(min(GAMES, num_tasks)), seeds=(0,),
        top_k=config.memory.top_k, shown=config.memory.shown,
    )["none"]  # fmt: skip
    accepted = 1 - row.per_step("refused")
    steps = row.table("steps").mean()
    if not row.won.any() and accepted < MIN_ACCEPTED:
        raise InvalidInputError(
            f"model.executor: expected one that knows the commands of {config.world.name}, got {config.model.executor} "
            f"from {config.model.weights}: without memory it won 0 of {row.won.size} training games in "
            f"{steps:.0f} steps each, and {100 * accepted:.0f} % of its commands had an effect. Train it on "
            "the teacher's commands first (--executor-sft.steps 1000) or take another model; --unchecked goes on"
        )
    return row
