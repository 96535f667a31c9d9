"""Scoring deliveries: the same executor, bank, tasks and seeds for each, one row of numbers per delivery.

scores = score_deliveries(envs, executor, compiler, bank, deliveries=("none", "compiled"), tasks=tasks, seeds=(0, 1, 2))
scores["compiled"].success, scores["compiled"].interval
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.executor import Executor
from embodied_mem.agents.player import Trajectory, play
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.memory import MemoryBank


class EpisodeNumbers(NamedTuple):
    """What a row is computed from, of one episode.

    Attributes:
        won: whether the goal was reached.
        progress: largest share of the goal's conditions that held.
        steps: played.
        executor_tokens: that the executor read and wrote.
        compiler_tokens: likewise.
        executor_s: wall time of the executor; rows of a batch share its time.
        compiler_s: likewise of the delivery.
        outputs: of the compiler.
        well_formed: of these.
        guided: steps at which the executor got guidance.
    """

    won: bool
    progress: float
    steps: int
    executor_tokens: int
    compiler_tokens: int
    executor_s: float
    compiler_s: float
    outputs: int
    well_formed: int
    guided: int


def numbers_of(trajectory: Trajectory) -> EpisodeNumbers:
    """The numbers of a played episode."""
    delivered = trajectory.delivered
    outputs = [d.record.output for d in delivered if d.record is not None]
    return EpisodeNumbers(
        bool(trajectory.won),
        float(trajectory.progress),
        len(delivered),
        sum(a + b for a, b in trajectory.executor_tokens),
        sum(d.tokens for d in delivered),
        trajectory.execute_s,
        trajectory.compile_s,
        len(outputs),
        sum(bool(output.well_formed) for output in outputs),
        sum(bool(d.hint or d.memory) for d in delivered),
    )


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
    finished: Mapping[tuple[str, str, str], Sequence] | None = None,
    on_episode: Callable[[str, str, str, EpisodeNumbers], None] | None = None,
) -> dict[str, Score]:
    """Rows by delivery; every delivery plays every task once per seed.

    Batches are cut in the same way whatever is finished, so that a row does not depend on where a run was stopped.

    Args:
        finished: (delivery, seed, task) -> `EpisodeNumbers` of an earlier run; a batch of such episodes is not played.
        on_episode: called with delivery, seed, task and the numbers of each episode, finished ones included.
    """
    pairs = [(task, seed) for seed in seeds for task in tasks]
    finished = finished or {}
    scores = {}
    for name in deliveries:
        delivery = make_delivery(name, compiler)
        rows: list[EpisodeNumbers] = []
        for first in range(0, len(pairs), envs.num_envs):
            part = pairs[first : first + envs.num_envs]
            keys = [(name, str(seed), str(task)) for task, seed in part]
            if all(key in finished for key in keys):
                batch = [EpisodeNumbers(*finished[key]) for key in keys]
            else:
                played = play(
                    envs, executor, delivery, bank,
                    tasks=[t for t, _ in part], seeds=[s for _, s in part], top_k=top_k, full_turns=full_turns,
                )  # fmt: skip
                batch = [numbers_of(trajectory) for trajectory in played]
            for key, numbers in zip(keys, batch):
                if on_episode:
                    on_episode(*key, numbers)
            rows += batch
        scores[name] = score_of(name, rows, len(tasks), len(seeds))
    return scores


def score_of(name: str, rows: Sequence[EpisodeNumbers], num_tasks: int, num_seeds: int) -> Score:
    """The row of one delivery; episodes stand seed by seed, tasks in one order."""
    column = EpisodeNumbers(*map(np.array, zip(*rows)))

    def table(values: np.ndarray) -> np.ndarray:
        return values.reshape(num_seeds, num_tasks).T

    num_steps, outputs = column.steps.sum(), column.outputs.sum()
    return Score(
        name,
        table(column.won),
        table(column.progress),
        table(column.steps),
        float(column.executor_tokens.sum() / num_steps),
        float(column.compiler_tokens.sum() / num_steps),
        float(1000 * column.executor_s.sum() / num_steps),
        float(1000 * column.compiler_s.sum() / num_steps),
        float(column.well_formed.sum() / outputs) if outputs else 1.0,
        float(column.guided.sum() / num_steps),
    )
