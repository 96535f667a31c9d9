"""Finished episodes of a comparison: a JSON line each, below a line that says what they belong to.

    finished = Finished(path, {"commit": "...", "max_steps": 50}, EpisodeResult)
    if ("compiled", "0", "game 12") not in finished.rows:
        finished.add("compiled", "0", "game 12", EpisodeResult(...))

A command that was stopped reads the file and goes on; with another commit or other settings it starts anew. The result
is written before the file goes, so that a kill at any moment loses at most the episodes that were being played.

Processes that make the same comparison share a `Board`: each plays batches that no other plays, and all end with
all rows (`parallel.on_ray`).
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from embodied_mem.atomic_file import write_text

Row = TypeVar("Row", bound=Iterable[Any])
Key = tuple[str, str, str]
WAIT_S = 0.2
"""Pause of a process that waits for others' batches."""


class Board(Protocol):
    """A board of rows that processes with the same comparison share; `head` names the comparison."""

    def claim(self, head: str, batches: Sequence[Sequence[Key]]) -> int | None:
        """Return the index of a batch to play.

        -1 while others play the rest, None when all are played.
        """

    def put(self, head: str, rows: Sequence[tuple[Key, list[Any]]]) -> None:
        """Keep outcomes."""

    def rows(self, head: str, since: int) -> Sequence[tuple[Key, list[Any]]]:
        """Return all outcomes but the first `since`, in the order of arrival."""


board: Board | None = None
"""Board of this process; None where it plays alone."""


class Finished(Generic[Row]):
    """Outcomes of episodes that are on the disk.

    Args:
        path: of the file; None keeps them in memory alone.
        belongs_to: what is at `path` is read if it belongs to the same, else begun anew.
        row: makes an outcome of its values, as `EpisodeResult` does; None for plain lists.
        write: False for the other processes of a run, which read what the first one has.

    Attributes:
        rows: (agent or delivery, subset or seed, task) -> outcome.
    """

    def __init__(
        self,
        path: pathlib.Path | None,
        belongs_to: Mapping[str, Any],
        row: Callable[..., Row] | None = None,
        write: bool = True,
    ):
        path = path and path.absolute()
        self._path = path if write else None
        self._make, self._head, self._num_read = row, json.dumps(belongs_to), 0
        self._board = board if belongs_to else None
        self.rows: dict[Key, Row] = {}
        if path is None:
            return
        head = self._head
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and lines[0] == head:
            for line in lines[1:]:
                if line.endswith("]"):  # the last line of a run that was killed may be cut
                    agent, subset, task, *outcome = json.loads(line)
                    self.rows[agent, subset, task] = row(*outcome) if row else outcome
        if not write:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [json.dumps([*key, *outcome]) for key, outcome in self.rows.items()]
        write_text(path, "\n".join([head, *kept]) + "\n")

    def unfinished(
        self, batches: Sequence[Sequence[Key]], show: Callable[[], None] = lambda: None
    ) -> Iterator[Sequence[Key]]:
        """Yield the batches to play, one after another.

        After the last one all rows are here.

        `show` is called when rows may have come.
        """
        if self._board is None:
            for batch in batches:
                if not all(key in self.rows for key in batch):
                    yield batch
                show()
            return
        self._board.put(self._head, [(key, [*outcome]) for key, outcome in self.rows.items()])
        while True:
            claimed = self._board.claim(self._head, batches)
            for key, outcome in (new := self._board.rows(self._head, self._num_read)):
                if key not in self.rows:
                    self._keep(key, self._make(*outcome) if self._make else outcome)  # type: ignore[arg-type]
            self._num_read += len(new)
            show()
            if claimed is None:
                return
            if claimed < 0:
                time.sleep(WAIT_S)
            else:
                yield batches[claimed]

    def add(self, agent: str, subset: str, task: str, outcome: Row) -> None:
        """Keep one outcome."""
        self._keep((agent, subset, task), outcome)
        if self._board is not None:
            self._board.put(self._head, [((agent, subset, task), [*outcome])])

    def _keep(self, key: Key, outcome: Row) -> None:
        self.rows[key] = outcome
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([*key, *outcome]) + "\n")


@contextlib.contextmanager
def kept_beside(
    result: pathlib.Path | None, name: str, belongs_to: Mapping[str, Any], row: Callable[..., Row] | None = None
) -> Iterator[Finished[Row]]:
    """Open the outcomes stored in a file beside `result`.

    The file goes when the block comes to its end; without a result the outcomes last for the block.
    """
    path = pathlib.Path(f"{result}.{name}.jsonl").absolute() if result else None
    yield Finished(path, belongs_to, row)
    if path:
        path.unlink()
