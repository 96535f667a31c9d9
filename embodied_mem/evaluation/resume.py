"""What a comparison has finished: one JSON line per episode, below a line that says what they belong to.

    finished = Finished(path, belongs_to={"commit": "...", "max_steps": 50})
    if ("compiled", "0", "game 12") not in finished.rows:
        finished.add("compiled", "0", "game 12", [1, 1.0, 11])

A command that was stopped reads the file and goes on; with another commit or other settings it starts anew. The result
is written before the file goes, so that a kill at any moment loses at most the episodes that were being played.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence


def write_whole(path: str | os.PathLike, text: str) -> None:
    """Write a file that is there whole or as it was before."""
    partial = pathlib.Path(f"{path}.partial")
    partial.write_text(text)
    os.replace(partial, path)


class Finished:
    """Outcomes of episodes that are on the disk.

    Attributes:
        rows: (agent or delivery, subset or seed, task) -> outcome.
    """

    def __init__(self, path: pathlib.Path, belongs_to: dict):
        """Read what is at `path`, if that belongs to the same; else begin anew."""
        self._path = path
        self.rows: dict[tuple[str, str, str], list] = {}
        head = json.dumps(belongs_to)
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and lines[0] == head:
            for line in lines[1:]:
                if line.endswith("]"):  # the last line of a run that was killed may be cut
                    agent, subset, task, *outcome = json.loads(line)
                    self.rows[agent, subset, task] = outcome
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [json.dumps([*key, *outcome]) for key, outcome in self.rows.items()]
        write_whole(path, "\n".join([head, *kept]) + "\n")

    def add(self, agent: str, subset: str, task: str, outcome: Sequence) -> None:
        """Keep one outcome, numbers in the order that the caller knows."""
        self.rows[agent, subset, task] = list(outcome)
        with self._path.open("a") as file:
            file.write(json.dumps([agent, subset, task, *outcome]) + "\n")
