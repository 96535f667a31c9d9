"""Two reports beside each other: paired differences with intervals, over the same tasks and seeds.

    report = compare(read_report("A.json"), read_report("B.json"))
    print(table(report))                          # B minus A

Rows are paired by name, subset and run. Where both reports have one agent, of different names, these are paired. What a
difference counts is tasks: seeds of one task, and tasks of one group, are averaged first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult, episodes_of
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import read_result
from embodied_mem.evaluation.tables import difference, markdown, percent

_Key = tuple[str, str, int]
METRICS = ("success", "progress", "steps")
_GIVEN = "or give --force, which compares the episodes that both have"


def read_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the report in a file, with its name for messages.

    Raises:
        InvalidInputError: the file is not there, is no report, or holds no rows of single episodes.
    """
    try:
        report = read_result(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"--compare: expected a JSON report, got {path}: {error}") from error
    if not isinstance(report, dict):
        raise InvalidInputError(f"--compare: expected a JSON report, got a {type(report).__name__} in {path}")
    try:
        episodes_of(report)
    except (InvalidInputError, KeyError, TypeError) as error:
        raise InvalidInputError(f"--compare: {path}: {error}") from error
    return report | {"file": str(path)}


def compare(first: Mapping[str, Any], second: Mapping[str, Any], force: bool = False) -> dict[str, Any]:
    """Return the differences of the second report to the first.

    Args:
        first, second: reports with episodes.
        force: compare the episodes that both have, whatever else differs.

    Raises:
        InvalidInputError: world, protocol or episodes differ; or nothing is in both.
    """
    if not force:
        _check_protocols(first, second)
    rows = []
    sides = [_by_row(episodes_of(report)) for report in (first, second)]
    names = [list(dict.fromkeys(agent for agent, *_ in side)) for side in sides]
    renamed = {names[0][0]: names[1][0]} if len(names[0]) == len(names[1]) == 1 else {}
    for (agent, subset, run), ours in sides[0].items():
        other = renamed.get(agent, agent)
        theirs = sides[1].get((other, subset, run))
        if theirs is None:
            if other in names[1] and not force:
                raise InvalidInputError(f"--compare: {agent}: expected subset {subset!r}, run {run} in both; {_GIVEN}")
            continue
        if set(ours) != set(theirs) and not force:
            task, seed = min(set(ours) ^ set(theirs))
            raise InvalidInputError(
                f"--compare: {agent}: expected the same tasks and seeds in both, got {len(ours)} and {len(theirs)}; "
                f"in one alone: {task}, seed {seed}; give both commands the same tasks, {_GIVEN}"
            )
        keys = [key for key in ours if key in theirs]
        if keys:
            name = agent if agent == other else f"{agent} -> {other}"
            rows.append(_row([ours[k] for k in keys], [theirs[k] for k in keys], name=name, subset=subset, run=run))
    if not rows:
        raise InvalidInputError(
            f"--compare: expected an agent or delivery in both on the same tasks, got {', '.join(names[0])} and "
            f"{', '.join(names[1])}"
        )
    return {"world": first["world"], "rows": rows}


def _check_protocols(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    facts = [{"world": report["world"], **report["protocol"]} for report in (first, second)]
    for name in dict.fromkeys([*facts[0], *facts[1]]):
        one, other = (fact.get(name) for fact in facts)
        if one != other and not (name == "bank" and None in (one, other)):  # None: no delivery reads one
            raise InvalidInputError(
                f"--compare: expected the same {name} in both, got {one!r} and {other!r}; make one of them anew, "
                f"{_GIVEN}"
            )


def _by_row(episodes: Sequence[EpisodeResult]) -> dict[_Key, dict[tuple[str, int], EpisodeResult]]:
    """(agent, subset, run) -> (task, seed) -> episode."""
    rows: dict[_Key, dict[tuple[str, int], EpisodeResult]] = {}
    for one in episodes:
        rows.setdefault((one.agent, one.subset, one.run), {})[one.task, one.seed] = one
    return rows


def _row(first: Sequence[EpisodeResult], second: Sequence[EpisodeResult], **names: Any) -> dict[str, Any]:
    """Return both sides' means and each metric's difference [mean, low, high]."""
    groups: dict[str, int] = {}
    group = np.array([groups.setdefault(one.group or one.task, len(groups)) for one in first])
    counts = np.bincount(group)

    def means(episodes: Sequence[EpisodeResult], field: str) -> np.ndarray:
        """Return the value of each group."""
        return np.bincount(group, [getattr(one, field) for one in episodes]) / counts

    row: dict[str, Any] = {**names, "episodes": len(first), "tasks": len(groups)}
    for metric, field in zip(METRICS, ("won", "progress", "steps")):
        ours, theirs = means(first, field), means(second, field)
        row[metric] = [float(ours.mean()), float(theirs.mean())]
        row[f"{metric}_difference"] = list(paired_difference(theirs, ours))
    return row


def table(report: Mapping[str, Any]) -> str:
    """Return the comparison as a Markdown table."""
    head = ["row", "tasks", "success A", "success B", "B - A", "progress B - A", "steps B - A"]
    rows = []
    for row in report["rows"]:
        names = [row["name"], row["subset"], f"run {row['run']}" if row["run"] > 1 else ""]
        cells = [", ".join(filter(None, names)), str(row["tasks"]), *map(percent, row["success"])]
        cells += [difference(row[f"{metric}_difference"]) for metric in ("success", "progress")]
        rows.append([*cells, difference(row["steps_difference"], 1, 2)])
    return markdown(head, rows)
