"""The loop of a stage: steps, checkpoints, metrics, speed and progress; it resumes where it was stopped.

    run = Run(config, tokenizer, run_dir)
    state = run_loop("compiler", run, state, step_of, num_steps=1000, checkpoint_every=200, work=work)

Step t depends on the state after t - 1, the configuration and t alone: data order, formats, keys and tasks are
functions of seed and step. A process may be killed anywhere. Started again it takes the last checkpoint and repeats
what came after, to the same numbers. SIGTERM ends it with status 143 and a checkpoint behind the step that it is in.

Metrics are one JSON line per step in `metrics.jsonl`, mirrored to TensorBoard. Each line is flushed, and what a killed
run wrote after its last checkpoint is dropped on resume, because the resumed run writes it again.

MFU counts what the model needs and nothing that is computed again (remat), padding left out, against the bfloat16 peak
of all devices. It is absent on hardware whose peak is not in `PEAK_FLOPS`, CPUs above all. Source of the count: Kaplan
et al. 2020, section 2.1, with attention over half of the positions on average.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax

from embodied_mem.atomic_file import write_text
from embodied_mem.errors import CheckpointError, DivergedError, InvalidInputError, MissingDependencyError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.config import DecoderConfig, num_parameters
from embodied_mem.parallel.checkpoints import Checkpoints
from embodied_mem.parallel.object_store import is_copy, push
from embodied_mem.parallel.placement import Placement
from embodied_mem.parallel.processes import is_first, terminations
from embodied_mem.progress import Progress
from embodied_mem.training.config import Config
from embodied_mem.training.models import (
    placement,
)

MEAN_LENGTH = 512
"""Tokens of a row on average, for the small attention term of MFU."""


def step_key(config: Config, stage: int, step: int) -> jax.Array:
    """Return the PRNG key of one step of one stage."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), stage), step)


@dataclasses.dataclass(frozen=True)
class Run:
    """State that the stages of a run share.

    Attributes:
        config: of the run.
        tokenizer: of the compiler.
        folder: that each stage has its own in.
        own_tokenizer: of an executor of another family; None for the compiler's.
    """

    config: Config
    tokenizer: Tokenizer
    folder: pathlib.Path
    own_tokenizer: Tokenizer | None = None

    @property
    def executor_tokenizer(self) -> Tokenizer:
        """The tokenizer that the executor reads with."""
        return self.own_tokenizer or self.tokenizer

    @property
    def place(self) -> Placement:
        """Where the arrays go."""
        return placement(self.config)


State = TypeVar("State")


Metrics = dict[str, Any]
"""Numbers of a step by name, some of them still on their device."""


def no_batches(first: int) -> Iterator[Any]:
    """Yield none: the loop's steps read none."""
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
    """Run `step_of` to `num_steps` with checkpoints, metrics and progress.

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

    Raises:
        SystemExit: SIGTERM came; the checkpoint of the step is written.
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
        terminations() as is_stopped,
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
            stops = is_stopped()
            if stops or (step + 1) % checkpoint_every == 0 or step + 1 == num_steps:
                checkpoints.save(step + 1, state)
                if is_copy(run_dir):
                    checkpoints.wait()
                    push(run_dir)
            if stops:
                checkpoints.wait()
                if is_first():
                    print(f"\nstopped after step {step + 1} of {name}; the same command goes on", file=sys.stderr)
                sys.exit(128 + signal.SIGTERM)
        checkpoints.wait()
    return state


class MetricsWriter:
    """Appends metrics to `directory/metrics.jsonl` and, with `tensorboard`, to an event file beside it.

    Args:
        directory: made if absent; one phase of a run, because its steps count from one origin.
        next_step: first step that will be written now; lines of this step and later ones are dropped.
        tensorboard: also write event files.
        write: False checks the numbers and writes nothing, for the other processes of a run.
    """

    def __init__(self, directory: str | Path, next_step: int = 0, tensorboard: bool = True, write: bool = True) -> None:
        self._directory = Path(directory).absolute()
        self._path = self._directory / "metrics.jsonl"
        self._last = self._file = self._events = None
        if write:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._last = _drop_from(self._path, next_step)
            self._file = open(self._path, "a", encoding="utf-8")  # noqa: SIM115  closed by close()
            self._events = _open_events(self._directory, next_step) if tensorboard else None

    def write(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Write a step's numbers (0-d arrays too), strings and None (JSON only).

        Raises:
            DivergedError: a value whose name ends in `loss` or `grad_norm` is not finite; the line is written first.
            InvalidInputError: `step` does not come after the last line.
        """
        if self._last is not None and step <= self._last:
            raise InvalidInputError(f"{self._path}: step {step} after step {self._last}; each step is written once")
        values = {name: _plain(name, value) for name, value in metrics.items()}
        record = {"step": step, **{name: _finite(value) for name, value in values.items()}}
        if self._file is not None:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        self._last = step
        numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
        if self._events is not None:
            for name, value in numbers.items():
                self._events.add_scalar(name, value, step)
        for name, value in numbers.items():
            if name.endswith(("loss", "grad_norm")) and not math.isfinite(value):
                raise DivergedError(f"{self._directory}: {name} is {value} at step {step}; the run stops here")

    def close(self) -> None:
        """Flushes and closes both files."""
        if self._file is not None:
            self._file.close()
        if self._events is not None:
            self._events.close()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def read_metrics(directory: str | Path) -> list[dict[str, Any]]:
    """Read `directory/metrics.jsonl` without a torn last line.

    Raises:
        CheckpointError: a line is damaged.
    """
    path = Path(directory) / "metrics.jsonl"
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):  # what follows the last newline is torn
        try:
            record = json.loads(line)
            if not isinstance(record["step"], int):
                raise TypeError(f"step {record['step']!r:.40}")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CheckpointError(
                f"{path}:{number}: expected a JSON object with a step: {error!r:.200}; delete the line to go on"
            ) from error
        records.append(record)
    return records


def _drop_from(path: Path, next_step: int) -> int | None:
    """Cut lines from `next_step` on; return the last remaining step."""
    if not path.exists():
        return None
    kept = [record for record in read_metrics(path.parent) if record["step"] < next_step]
    write_text(path, "".join(json.dumps(record) + "\n" for record in kept))
    return kept[-1]["step"] if kept else None


def _open_events(directory: Path, next_step: int) -> Any:
    try:
        import tensorboardX
    except ImportError as error:
        raise MissingDependencyError("tensorboardX is missing: pip install 'embodied_mem[train]'") from error
    return tensorboardX.SummaryWriter(str(directory), purge_step=next_step or None)


def _plain(name: str, value: Any) -> int | float | str | None:
    if value is None or isinstance(value, (int, float, str)):
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        number: int | float = value.item()
        return number
    raise InvalidInputError(f"metric {name!r}: expected a number, got {type(value).__name__} {value!r:.80}")


def _finite(value: Any) -> Any:
    """Returns the value, or None for a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


PEAK_FLOPS = {
    "TPU v4": 275e12, "TPU v5 lite": 197e12, "TPU v5e": 197e12, "TPU v5p": 459e12, "TPU v5": 459e12,
    "TPU v6 lite": 918e12, "TPU v6e": 918e12, "A100": 312e12, "H20": 148e12, "H100": 989e12, "H200": 989e12,
}  # fmt: skip
"""bfloat16 operations per second of one device, dense, by a part of jax's `device_kind`; vendors' sheets."""


def flops_per_token(config: DecoderConfig, length: int, *, trained: bool) -> float:
    """Return a training pass's operations per token at `length`.

    A forward pass multiplies each weight once, 2 N, and attends to length / 2 positions, 2 H E length per layer
    (scores and context). The backward pass costs that once for the inputs' gradients, and 2 N again for those of the
    weights if they are `trained`. The embedding table is a lookup and does not count; the head does.
    """
    weights, attention = _forward_flops(config, length)
    return (3 if trained else 2) * weights + 3 * attention


def forward_flops_per_token(config: DecoderConfig, length: int) -> float:
    """Returns the operations of a forward pass alone, counted as in `flops_per_token`."""
    return sum(_forward_flops(config, length))


def _forward_flops(config: DecoderConfig, length: int) -> tuple[float, float]:
    weights = 2.0 * (num_parameters(config, embedding=False) + config.vocab_size * config.width)
    return weights, 2.0 * config.num_layers * config.num_heads * config.head_dim * length


def throughput(work: Mapping[str, float], metrics: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Returns what a step's metrics say about speed.

    Args:
        work: metric that counts tokens -> operations per token of these.
        metrics: of the step.
        seconds: that it took.
    """
    counted = {name: metrics[name] for name in work if name in metrics}
    speed = {"peak_memory_bytes": float(peak_memory())}
    if counted:
        speed["tokens_per_s"] = sum(counted.values()) / seconds
    peak = peak_flops(jax.devices()[0].device_kind)
    if counted and peak is not None:
        done = sum(tokens * work[name] for name, tokens in counted.items())
        speed["mfu"] = done / (seconds * peak * jax.device_count())
    return speed


def peak_flops(device_kind: str) -> float | None:
    """Return a device's peak by its longest matching name, or None."""
    fitting = [name for name in PEAK_FLOPS if name in device_kind]
    return PEAK_FLOPS[max(fitting, key=len)] if fitting else None


def peak_memory() -> int:
    """Return the peak bytes of a device; on a CPU, the process's."""
    stats = [device.memory_stats() for device in jax.local_devices()]
    if all(stats):
        return max(int(one.get("peak_bytes_in_use", 0)) for one in stats)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, but bytes on macOS
    return used if sys.platform == "darwin" else 1024 * used
