"""Scoring deliveries: the same executor, bank, tasks and seeds for each, one row of numbers per delivery.

scores = score_deliveries(envs, executor, compiler, bank, deliveries=("none", "compiled"), tasks=tasks, seeds=(0, 1, 2))
scores["compiled"].success, scores["compiled"].interval
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.executor import Executor
from embodied_mem.agents.player import Trajectory, play
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.memory import MemoryBank


@dataclasses.dataclass(frozen=True)
class Score:
    """One delivery's row.

    Attributes:
        delivery: its name.
        won: bool[tasks, seeds].
        progress: float[tasks, seeds].
        steps: int[tasks, seeds].
        executor_tokens: mean tokens that the executor read and wrote per step.
        compiler_tokens: mean tokens that the compiler read and wrote per step.
        executor_ms: mean wall time of the executor per step and episode, milliseconds; rows of a batch share its time.
        compiler_ms: likewise of the delivery.
        parse_rate: share of compiler outputs that were well formed; 1 without a compiler.
        guided: share of steps at which the executor got guidance.
    """

    delivery: str
    won: np.ndarray
    progress: np.ndarray
    steps: np.ndarray
    executor_tokens: float
    compiler_tokens: float
    executor_ms: float
    compiler_ms: float
    parse_rate: float
    guided: float

    @property
    def success(self) -> float:
        """Mean success."""
        return float(self.won.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the success, counted in tasks."""
        return wilson(self.success, len(self.won))

    def to_json(self, baseline: Score | None = None) -> dict:
        """The row as JSON data; with a baseline also the paired difference to it."""
        row = {
            "success": self.success,
            "interval": list(self.interval),
            "progress": float(self.progress.mean()),
            "steps": float(self.steps.mean()),
            "tokens_per_step": self.executor_tokens + self.compiler_tokens,
            "executor_tokens_per_step": self.executor_tokens,
            "compiler_tokens_per_step": self.compiler_tokens,
            "latency_ms_per_step": self.executor_ms + self.compiler_ms,
            "executor_ms_per_step": self.executor_ms,
            "compiler_ms_per_step": self.compiler_ms,
            "parse_rate": self.parse_rate,
            "guided": self.guided,
        }
        if baseline is not None and baseline is not self:
            difference, low, high = paired_difference(self.won, baseline.won)
            row["difference_to_" + baseline.delivery] = difference
            row["difference_interval"] = [low, high]
        return row


def score_deliveries(
    envs,
    executor: Executor,
    compiler: MemoryCompiler | None,
    bank: MemoryBank,
    *,
    deliveries: Sequence[str],
    tasks: Sequence[int],
    seeds: Sequence[int],
    top_k: int,
    full_turns: int,
    on_episodes: Callable[[str, int, int], None] | None = None,
) -> tuple[dict[str, Score], dict[str, list[Trajectory]]]:
    """(scores, trajectories) by delivery; every delivery plays every task once per seed.

    Args:
        on_episodes: called with (delivery, episodes played, episodes won) after each batch.
    """
    pairs = [(task, seed) for seed in seeds for task in tasks]
    scores, played = {}, {}
    for name in deliveries:
        delivery = make_delivery(name, compiler)
        trajectories: list[Trajectory] = []
        for first in range(0, len(pairs), envs.num_envs):
            part = pairs[first : first + envs.num_envs]
            trajectories += play(
                envs, executor, delivery, bank,
                tasks=[t for t, _ in part], seeds=[s for _, s in part], top_k=top_k, full_turns=full_turns,
            )  # fmt: skip
            if on_episodes:
                on_episodes(name, len(trajectories), sum(t.won for t in trajectories))
        scores[name] = score_of(name, trajectories, len(tasks), len(seeds))
        played[name] = trajectories
    return scores, played


def score_of(name: str, trajectories: Sequence[Trajectory], num_tasks: int, num_seeds: int) -> Score:
    """The row of one delivery; trajectories stand seed by seed, tasks in one order."""

    def table(values):
        return np.asarray(values).reshape(num_seeds, num_tasks).T

    num_steps = sum(len(t.delivered) for t in trajectories)
    delivered = [d for t in trajectories for d in t.delivered]
    records = [d.record for d in delivered if d.record is not None]
    return Score(
        name,
        table([t.won for t in trajectories]),
        table([t.progress for t in trajectories]),
        table([len(t.delivered) for t in trajectories]),
        sum(a + b for t in trajectories for a, b in t.executor_tokens) / num_steps,
        sum(d.tokens for d in delivered) / num_steps,
        1000 * sum(t.execute_s for t in trajectories) / num_steps,
        1000 * sum(t.compile_s for t in trajectories) / num_steps,
        float(np.mean([r.output.well_formed for r in records])) if records else 1.0,
        float(np.mean([bool(d.hint or d.memory) for d in delivered])),
    )
