"""Subgoals of ScienceWorld tasks as regular expressions, in AgentBoard's file format.

    subgoals = load_subgoals("scienceworld.jsonl")
    progress = SubgoalProgress(subgoals["boil", 12])
    progress.see("You move to the kitchen.")
    progress.share

One JSON object per line: `task`, `id`, `goal`, `subgoals` (list of expressions), `difficulty`, and `additional_info`
with `var` (the variation) and, where `task` names the benchmark rather than the task, `env_name`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from embodied_mem.errors import GameFileError


@dataclasses.dataclass(frozen=True)
class Subgoals:
    """One line's subgoals of one variation of a task."""

    game: str
    variation: int
    goal: str
    difficulty: str
    patterns: tuple[re.Pattern[str], ...]


def load_subgoals(path: str | os.PathLike[str]) -> Mapping[tuple[str, int], Subgoals]:
    """Return the subgoals of a file by (task, variation).

    Raises:
        GameFileError: a line is malformed, an expression is none, or two lines are of the same variation; the message
            names the file, the line and the reason.
    """
    found: dict[tuple[str, int], Subgoals] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GameFileError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = _subgoals(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError, re.error) as error:
            reason = f"the member {error} is missing" if isinstance(error, KeyError) else str(error)
            raise GameFileError(f"{path}: line {number}: {reason}") from error
        if (entry.game, entry.variation) in found:
            raise GameFileError(f"{path}: line {number}: {entry.game}/{entry.variation} stands on an earlier line too")
        found[entry.game, entry.variation] = entry
    return found


def _subgoals(entry: object) -> Subgoals:
    if not isinstance(entry, dict):
        raise TypeError(f"expected a JSON object, got {type(entry).__name__}")
    info = entry["additional_info"]
    game = info.get("env_name", entry["task"])
    variation, patterns = info["var"], entry["subgoals"]
    if not isinstance(game, str) or not isinstance(variation, int):
        raise TypeError(f"expected a task's name and a whole number 'var', got {game!r} and {variation!r}")
    if not isinstance(patterns, list) or not patterns or not all(isinstance(text, str) for text in patterns):
        raise TypeError(f"subgoals: expected a list of expressions, got {patterns!r}")
    compiled = tuple(re.compile(text) for text in patterns)
    return Subgoals(game, variation, str(entry["goal"]), str(entry.get("difficulty", "")), compiled)


class SubgoalProgress:
    """Share of the subgoals whose expression was found in some text of the episode so far."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]):
        self._missing = list(patterns)
        self._total = len(patterns)

    def see(self, text: str) -> None:
        """Read one text of the episode."""
        self._missing = [pattern for pattern in self._missing if not pattern.search(text)]

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return 1 - len(self._missing) / self._total
