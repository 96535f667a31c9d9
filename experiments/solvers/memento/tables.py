"""MEMENTO's tables in Markdown, each beside the paper's figures; and the reference trajectories that some need.

    print(stage_table(report["stages"]))
    page(report)                      # all of them

Figures of the paper: tables 1, 2, 9, 10, 11, 12, 13, 15, percent. Its models played 201, 201, 36 and 41 episodes in
12 houses with a 3-D simulator; ours are the episodes at hand in a native world, so this is beside, not against. Only
`published_table` compares the same episodes, and those too in two different worlds.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from embodied_mem.errors import GameFileError
from embodied_mem.evaluation.tables import between, difference, markdown
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep

PAPER_STAGES = {
    "acquisition": {"GPT-4o": (96.3, 95.0), "Qwen-2.5-7b": (64.1, 53.2)},
    "single": {"GPT-4o": (88.0, 85.1), "Qwen-2.5-7b": (39.1, 27.4)},
    "joint": {"GPT-4o": (86.7, 63.9), "Qwen-2.5-7b": (33.7, 5.6)},
    "joint3": {"GPT-4o": (61.2, 22.0)},
}
"""(percent complete, success rate) of tables 1 and 12."""

PAPER_RETRIEVAL = {
    "similarity": ((13.9, 82.9, 79.5), (3.5, 84.7, 82.1)),
    "reranker": ((2.5, 87.2, 84.1), (1.5, 84.3, 80.6)),
    "query_expansion": ((9.0, 84.9, 81.1), (1.5, 86.2, 81.1)),
}
"""(missing rate, percent complete, success rate) at k = 3 and at k = 5, GPT-4o: tables 10 and 11."""

PAPER_FORMATS = {"full": (90.0, 83.3), "summarised": (88.0, 83.3), "instruction_only": (62.4, 50.0)}
PAPER_DAMAGE = {
    "random_noise": (81.5, 78.6),
    "shuffle": (84.0, 80.6),
    "random_gaps": (84.4, 80.1),
    "without_Pick": (82.9, 79.1),
    "without_Place": (84.4, 82.6),
    "without_Navigate": (81.4, 78.5),
}
PAPER_VARIANTS = {
    "indirect": {"original": (92.0, 90.0), "changed": (80.4, 73.3)},
    "elsewhere": {"original": (100.0, 100.0), "changed": (92.5, 83.3)},
}

Row = Mapping[str, Any]


def gold_traces(root: str | os.PathLike[str]) -> dict[str, Trace]:
    """Return the reference trajectories by episode id, empty if there are none.

    They are in `<root>/gold/<episode id>.json`.

    Raises:
        GameFileError: a file is malformed.
    """
    traces = {}
    for path in sorted((pathlib.Path(root) / "gold").glob("*.json")):
        try:
            data = json.loads(path.read_text())
            steps = tuple(
                TraceStep(
                    step["thought"] or "",
                    f"{step['action'][0]}[{step['action'][1] or ''}]",
                    f"Result: {step['response'] or ''}\nObjects: {step['objects_observed'] or 'No objects found yet'}",
                )
                for step in data["steps"]
            )
            identity = (str(data["episode_id"]), data["scene_id"], data["instruction"])
            traces[identity[0]] = Trace(*identity, steps=steps)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise GameFileError(f"{path}: expected a reference trajectory: {error!r}") from error
    return traces


def percent(value: float) -> str:
    """Return a rate as percent with one digit."""
    return f"{100 * value:.1f}"


def _table(head: str, rows: list[list[str]]) -> str:
    return markdown(head.split(" | "), rows)


def _pair(values: tuple[float, ...] | None) -> str:
    return ", ".join(map(str, values)) if values else "-"


def _rates(row: Row) -> list[str]:
    return [str(row["episodes"]), percent(row["pc"]), percent(row["sr"]), between(row["sr_interval"])]


def _held_out(row: Row) -> str:
    part = row.get("held_out")
    return f"{percent(part['sr'])} of {part['episodes']}" if part else "-"


def stage_table(stages: Mapping[str, Row]) -> str:
    """Table 1, with 3-joint tasks, beside two models of the paper."""
    head = (
        "stage | episodes | PC | 95 % | SR | 95 % | SR, held-out houses | delta PC | delta SR | cycles | sim steps "
        "| paper's GPT-4o PC, SR | paper's Qwen-2.5-7b PC, SR"
    )
    rows = []
    for stage, row in stages.items():
        episodes, pc, *sr = _rates(row)
        cells = [stage, episodes, pc, between(row["pc_interval"]), *sr, _held_out(row)]
        cells += [difference(row.get("delta_pc")), difference(row.get("delta_sr"))]
        cells += [f"{row['cycles']:.1f}", f"{row['sim_steps']:.0f}"]
        rows.append([*cells, *(_pair(PAPER_STAGES[stage].get(model)) for model in ("GPT-4o", "Qwen-2.5-7b"))])
    return _table(head, rows)


def published_table(stages: Mapping[str, Row]) -> str:
    """Tabulate published scores on the episodes at hand beside ours.

    They are of the paper's models, ours on the same episodes. The table is empty without any.
    """
    rows = []
    for stage, row in stages.items():
        for part, houses in (("published", "all"), ("published_held_out", "held-out")):
            for model, one in row.get(part, {}).items():
                episodes, *rates = _rates(one)
                cells = [stage, houses, episodes, model, *rates, percent(one["our_pc"]), percent(one["our_sr"])]
                rows.append([*cells, difference(one.get("difference"))])
    head = "stage | houses | same episodes | model | its PC | its SR | 95 % | our PC | our SR | our SR - its"
    return _table(head, rows) if rows else ""


def kind_table(stages: Mapping[str, Row]) -> str:
    """Return each stage by type and subtype of knowledge."""
    rows = [
        [stage, name, *_rates(one), difference(one.get("delta_sr"))]
        for stage, row in stages.items() for part in ("by_type", "by_subtype") for name, one in row[part].items()
    ]  # fmt: skip
    return _table("stage | knowledge | episodes | PC | SR | 95 % | delta SR", rows)


def retrieval_table(report: Row) -> str:
    """Tabulate missing rates without guarantee, and what they do to success.

    These are tables 10 and 11.
    """
    rows = []
    for strategy, by_k in report["retrieval"].items():
        for number, (k, row) in enumerate(by_k.items()):
            paper = PAPER_RETRIEVAL.get(strategy)
            cells = [strategy, k, *(_missing(row.get(stage)) for stage in ("single", "joint", "joint3"))]
            cells += [percent(row["played"]["pc"]), percent(row["played"]["sr"])]
            rows.append([*cells, _pair(paper[number] if paper else None)])
    head = "strategy | k | missing, single (held-out) | joint | 3-joint | PC | SR | GPT-4o: missing, PC, SR"
    return _table(head, rows)


def _missing(rates: Mapping[str, float] | None) -> str:
    if not rates:
        return "-"
    return percent(rates["all"]) + (f" ({percent(rates['held_out'])})" if "held_out" in rates else "")


def _plain(title: str, rows: Mapping[str, Row], paper: Mapping[str, tuple[float, float]] | None = None) -> str:
    """Tabulate rows by name, without empty ones.

    The paper's stand beside them where it has any.
    """
    cells = [
        [name, *_rates(row), _held_out(row), f"{row['cycles']:.1f}", *([_pair(paper.get(name))] if paper else [])]
        for name, row in rows.items() if row
    ]  # fmt: skip
    head = f"{title} | episodes | PC | SR | 95 % | SR, held-out houses | cycles"
    return _table(head + (" | GPT-4o PC, SR" if paper else ""), cells)


def _flat(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Entries of entries by both names."""
    return {f"{name}, {part}": row for name, group in groups.items() for part, row in group.items()}


REWORDED = {
    "original": "as written",
    "bare": "small letters, no punctuation",
    "own": "reworded, list written before the parser",
    "blind": "reworded, list written by somebody who never saw the parser",
}
"""Rows of the rewordings."""


CAPTIONS = {
    "verbatim": "as in the file",
    "none now": "control: things are not described",
    "another's now": "control: each described as the next of its category",
    "memory, own": "memory's reworded, own words",
    "now, own": "present ones reworded, own words",
    "memory, blind": "memory's reworded, words of somebody who never saw the code",
    "now, blind": "present ones reworded, words of somebody who never saw the code",
}
"""Rows of reworded captions."""


def joined_table(report: Row) -> str:
    """Tabulate tasks with the memories of all houses in one.

    These are single and joint tasks (figure 6, without a guarantee).
    """

    def rates(row: Row) -> list[str]:
        return [percent(row["sr"]), _held_out(row), percent(row["missing"])] if row else ["-"] * 3

    cells = [[name, *rates(row["single"]), *rates(row["joint"])] for name, row in report["joined"].items()]
    head = "memories of all houses | single SR | held-out | missing | joint SR | held-out | missing"
    return _table(head, cells)


def encoders_table(report: Row) -> str:
    """Missing rates by sentence encoder."""
    rows = [
        [*name.split(", "), *(_missing(row.get(stage)) for stage in ("single", "joint", "joint3"))]
        for name, row in report["encoders"].items()
    ]
    return _table("encoder | strategy | among | k | missing, single (held-out) | joint | 3-joint", rows)


def _called(names: Mapping[str, str], rows: Mapping[str, Row]) -> dict[str, Row]:
    """Rows by what the table calls them."""
    return {names[name]: row for name, row in rows.items()}


def _longer(report: Row) -> dict[str, Row]:
    return {stage: row for stage, row in report["stages"].items() if stage in ("joint", "joint3")}


def _profile(report: Row) -> dict[str, Row]:
    return {f"{name}, {stage}": row for stage, group in report["profile"].items() for name, row in group.items()}


_OF_FORMATS = {f"{name}, single": pair for name, pair in PAPER_FORMATS.items()}

TABLES: dict[str, Callable[[Row], str]] = {
    "realistic": lambda report: _plain("stage, no guarantee", report["realistic"]),
    "limits": lambda report: _plain("stage", {**_longer(report), **report["limits"]}),
    "retrieval": retrieval_table,
    "top_k": lambda report: _plain("memories, single", report["top_k"]),  # figure 6
    "formats": lambda report: _plain("format", _flat(report["formats"]), _OF_FORMATS),  # table 2
    # Table 9; its baseline is the reference's memory, ours the agent's own.
    "damage": lambda report: _plain(
        "memory, single", {"own memory": report["stages"]["single"], **report["damage"]}, PAPER_DAMAGE
    ),
    "profile": lambda report: _plain("given", _profile(report)),  # figure 8
    "variants": lambda report: _plain("instructions", _flat(report["variants"]), _flat(PAPER_VARIANTS)),  # 13 and 15
    "rewordings": lambda report: _plain("instructions, single", _called(REWORDED, report["rewordings"])),
    "captions": lambda report: _plain("captions, single", _called(CAPTIONS, report["captions"])),
    "joined": joined_table,
    "encoders": encoders_table,
}
"""The tables that follow the main one, by the name of their part of the report."""


def page(report: Row) -> str:
    """Return all tables that a report has, and their origin."""
    parts = ["# MEMENTO", stage_table(report["stages"])]
    if published := published_table(report["stages"]):
        parts += ["Published scores of single episodes (`results/per_episode.csv` of the data folder):", published]
    parts.append(kind_table(report["stages"]))
    parts += [table(report) for name, table in TABLES.items() if name in report]
    parts.append(
        f"`{report['command']}`, embedder {report['embedder']}, commit {report['commit'][:10]}, {report['machine']}, "
        f"{report['seconds']:.0f} s"
    )
    return "\n\n".join(parts) + "\n"
