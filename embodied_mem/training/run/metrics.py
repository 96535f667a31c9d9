"""Metrics of a run: one JSON line per step, mirrored to TensorBoard, the same numbers once however often it restarts.

    with MetricsWriter(run_dir / "compiler_sft", next_step=restored_step + 1) as metrics:
        metrics.write(step, {"loss": loss, "grad_norm": norm})

Lines go to `metrics.jsonl` and are flushed one by one, so a kill loses none that was written; what a killed run
wrote after its last checkpoint is dropped on resume, because the resumed run writes it again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embodied_mem.atomic_file import write_text
from embodied_mem.errors import CheckpointError, DivergedError, InvalidInputError, MissingDependencyError


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
        """Writes one step; values are numbers, also 0-d arrays, or strings and None (JSON only).

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
    """Returns the lines of `directory/metrics.jsonl` in order; a torn last line is left out.

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
    """Rewrites the file without the lines of `next_step` and later; returns the last step kept."""
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
