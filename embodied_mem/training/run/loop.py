"""The loop of a stage: steps, checkpoints, metrics and progress; it resumes where it was stopped.

state = run_loop("compiler", run_dir, config, state, step_of, num_steps=1000, checkpoint_every=200)
"""

from __future__ import annotations

import pathlib
import time
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from embodied_mem.parallel.checkpoints import Checkpoints
from embodied_mem.parallel.processes import is_first
from embodied_mem.progress import Progress
from embodied_mem.training.config import Config
from embodied_mem.training.run.metrics import MetricsWriter
from embodied_mem.training.run.throughput import throughput

State = TypeVar("State")
Metrics = dict[str, Any]
"""Numbers of a step by name, some of them still on their device."""


def no_batches(first: int) -> Iterator[Any]:
    """Of a loop whose steps read none."""
    return iter(())


def run_loop(
    name: str,
    run_dir: pathlib.Path,
    config: Config,
    state: State,
    step_of: Callable[[State, int, Any], tuple[State, Metrics]],
    *,
    num_steps: int,
    checkpoint_every: int,
    batches_from: Callable[[int], Iterator[Any]] = no_batches,
    work: Mapping[str, float] = types.MappingProxyType({}),
) -> State:
    """Runs `state, metrics = step_of(state, step, batch)` to `num_steps` with checkpoints, metrics and progress.

    Args:
        name: of the stage; its folder below `run_dir`.
        run_dir: of the run.
        config: its fingerprint guards the checkpoints.
        state: pytree to start from, and the shape of what is restored.
        step_of: the step.
        num_steps: total.
        checkpoint_every: steps between checkpoints; the last step always has one.
        batches_from: first step -> iterator of batches; without one, every batch is None.
        work: see `throughput`.
    """
    checkpoints = Checkpoints(run_dir / name / "checkpoints", config={"fingerprint": config.fingerprint(name)})
    first = 0
    if checkpoints.latest() is not None:
        restored = checkpoints.restore(like=state)
        state, first = restored.arrays, restored.step
    if first >= num_steps:
        return state
    iterator = batches_from(first)
    with (
        MetricsWriter(run_dir / name, next_step=first, write=is_first()) as writer,
        Progress(name, num_steps, start=first, silent=not is_first()) as progress,
    ):
        batch = next(iterator, None)
        for step in range(first, num_steps):
            started = time.perf_counter()
            state, metrics = step_of(state, step, batch)
            batch = next(iterator, None)  # made while the step is computed
            metrics = {key: float(value) for key, value in metrics.items()}
            metrics["step_s"] = time.perf_counter() - started
            metrics |= throughput(work, metrics, metrics["step_s"])
            writer.write(step, metrics)
            shown = {k: metrics[k] for k in ("loss", "won", "action_accuracy", "token_accuracy") if k in metrics}
            progress.update(1, **shown)
            if (step + 1) % checkpoint_every == 0 or step + 1 == num_steps:
                checkpoints.save(step + 1, state)
        checkpoints.wait()
    return state
