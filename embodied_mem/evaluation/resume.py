"""Finished episodes of a comparison: a JSON line each, below a line that says what they belong to.

    finished = Finished(path, {"commit": "...", "max_steps": 50}, EpisodeResult)
    if ("compiled", "0", "game 12") not in finished.rows:
        finished.add("compiled", "0", "game 12", EpisodeResult(...))

A command that was stopped reads the file and goes on; with another commit or other settings it starts anew. The result
is written before the file goes, so that a kill at any moment loses at most the episodes that were being played.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from embodied_mem.atomic_file import write_text

Row = TypeVar("Row", bound=Iterable[Any])


class Finished(Generic[Row]):
    """Outcomes of episodes that are on the disk.

    Args:
        path: of the file; None keeps them in memory alone.
        belongs_to: what is at `path` is read if it belongs to the same, else begun anew.
        row: makes an outcome of its values, as `EpisodeResult` does; None for plain lists.

    Attributes:
        rows: (agent or delivery, subset or seed, task) -> outcome.
    """

    def __init__(self, path: pathlib.Path | None, belongs_to: Mapping[str, Any], row: Callable[..., Row] | None = None):
        self._path = path = path and path.absolute()
        self.rows: dict[tuple[str, str, str], Row] = {}
        if path is None:
            return
        head = json.dumps(belongs_to)
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and lines[0] == head:
            for line in lines[1:]:
                if line.endswith("]"):  # the last line of a run that was killed may be cut
                    agent, subset, task, *outcome = json.loads(line)
                    self.rows[agent, subset, task] = row(*outcome) if row else outcome
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [json.dumps([*key, *outcome]) for key, outcome in self.rows.items()]
        write_text(path, "\n".join([head, *kept]) + "\n")

    def add(self, agent: str, subset: str, task: str, outcome: Row) -> None:
        """Keep one outcome."""
        self.rows[agent, subset, task] = outcome
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([agent, subset, task, *outcome]) + "\n")


@contextlib.contextmanager
def kept_beside(
    result: pathlib.Path | None, name: str, belongs_to: Mapping[str, Any], row: Callable[..., Row] | None = None
) -> Iterator[Finished[Row]]:
    """Outcomes in a file beside `result` that goes when the block comes to its end; without a result, for the block."""
    path = pathlib.Path(f"{result}.{name}.jsonl").absolute() if result else None
    yield Finished(path, belongs_to, row)
    if path:
        path.unlink()
