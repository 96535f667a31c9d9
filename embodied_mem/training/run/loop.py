"""The loop of a stage: steps with checkpoints beside them, metrics and progress; it goes on where it was stopped.

state = run_loop("compiler", run_dir, config, num_steps, 200, state, step_of, batches_from)
"""

from __future__ import annotations

import pathlib
import time
import types
from collections.abc import Callable, Mapping

from embodied_mem.parallel.checkpoints import Checkpoints
from embodied_mem.parallel.processes import is_first
from embodied_mem.training.config import Config
from embodied_mem.training.metrics import MetricsWriter
from embodied_mem.training.progress import Progress
from embodied_mem.training.throughput import throughput


def run_loop(
    name: str,
    run_dir: pathlib.Path,
    config: Config,
    num_steps: int,
    checkpoint_every: int,
    state,
    step_of: Callable,
    batches_from: Callable = lambda step: iter(()),
    work: Mapping[str, float] = types.MappingProxyType({}),
):
    """Runs `state, metrics = step_of(state, step, batch)` to `num_steps` with checkpoints, metrics and progress.

    Args:
        name: of the stage; its folder below `run_dir`.
        run_dir: of the run.
        config: its fingerprint guards the checkpoints.
        num_steps: total.
        checkpoint_every: steps between checkpoints; the last step always has one.
        state: pytree to start from, and the shape of what is restored.
        step_of: the step.
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
