"""The report of a comparison: a table for people, JSON with a manifest for machines, a picture of the learning curves.

print(table(scores))
write_report(directory, scores, manifest, curves={"grpo": read_metrics(run_dir / "grpo")})
"""

from __future__ import annotations

import json
import lzma
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.tables import between, difference, markdown, percent

if TYPE_CHECKING:
    from embodied_mem.evaluation.score import Score

BASELINE = "none"
_ROOT = pathlib.Path(__file__).resolve().parents[2]


def table(scores: Mapping[str, Score]) -> str:
    """Return the comparison as a Markdown table."""
    return rows_table({name: score.to_json(scores.get(BASELINE)) for name, score in scores.items()})


def rows_table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Make the table of `table` from rows as JSON data."""
    head = ["delivery", "success", "95 % interval", "vs none (paired)", "progress", "steps"]
    head += ["executor tokens/step: in + out", "executor ms/step: prefill + decode", "compiler tokens/step", "ms/step"]
    head += ["parse rate", "NOACTION", "its precision", "refused"]
    return markdown(head, [_cells(name, row) for name, row in rows.items()])


def _cells(name: str, row: Mapping[str, Any]) -> list[str]:
    return [
        name, percent(row["success"]), between(row["interval"], "-"), versus(row), percent(row["progress"]),
        f"{row['steps']:.1f}",
        f"{row['executor_tokens_in_per_step']:.0f} + {row['executor_tokens_out_per_step']:.0f}",
        f"{row['executor_prefill_ms_per_step']:.1f} + {row['executor_decode_ms_per_step']:.1f}",
        f"{row['compiler_tokens_per_step']:.0f}", f"{row['latency_ms_per_step']:.1f}", percent(row["parse_rate"]),
        percent(row["noaction"]), "-" if (right := row["noaction_precision"]) is None else percent(right),
        percent(row["refused"]) if "refused" in row else "-",
    ]  # fmt: skip


def versus(row: Mapping[str, Any]) -> str:
    """Return the cell with a delivery's paired difference to `BASELINE`."""
    if "difference_interval" not in row:
        return "-"
    return difference([row[f"difference_to_{BASELINE}"], *row["difference_interval"]])


def manifest(command: Sequence[str] | None = None, **facts: object) -> dict[str, Any]:
    """Return a result's origin: command, commit, machine, versions, and the caller's additions."""
    return {
        "command": " ".join(command or [*_program(), *sys.argv[1:]]),
        "commit": commit(),
        "modified_files": len(_git("status", "--porcelain", "--untracked-files=no").splitlines()),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **facts,
    }


def _program() -> list[str]:
    """Return the program's call: a module's name or a repository file's path."""
    path = pathlib.Path(sys.argv[0]).resolve()
    if not path.is_relative_to(_ROOT):
        return [path.name]
    inside = path.relative_to(_ROOT)
    if inside.parts[0] == "embodied_mem":
        return ["python", "-m", ".".join(inside.with_suffix("").parts)]
    return ["python", str(inside)]


def commit(*options: str) -> str:
    """Return this repository's commit, with options of `git rev-parse`; or ""."""
    return _git("rev-parse", *options, "HEAD")


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def processor() -> str:
    """Return the name of the processor."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def summary(scores: Mapping[str, Score], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparison as JSON data: `deliveries` by name, and the manifest."""
    baseline = scores.get(BASELINE)
    first = next(iter(scores.values()))
    return {
        "deliveries": {name: score.to_json(baseline) for name, score in scores.items()},
        "num_tasks": int(first.won.shape[0]),
        "num_seeds": int(first.won.shape[1]),
        **facts,
    }


def write_report(
    directory: str | os.PathLike[str],
    scores: Mapping[str, Score],
    facts: Mapping[str, Any],
    curves: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Write `report.json`, `report.md` and, with curves, `curves.png`.

    Returns what the JSON file holds.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    data = summary(scores, facts)
    write_result(directory / "report.json", data)
    lines = ["# Deliveries of memory compared", "", table(scores), ""]
    lines += [f"{data['num_tasks']} tasks, {data['num_seeds']} seeds. Command: `{facts.get('command', '')}`", ""]
    if curves and draw_curves(directory / "curves.png", curves):
        lines.append("![learning curves](curves.png)")
    (directory / "report.md").write_text("\n".join(lines) + "\n")
    return data


def write_result(path: pathlib.Path, report: Mapping[str, Any]) -> None:
    """Write a report as JSON, in one step, one episode a line."""
    report = dict(report)
    episodes = report.pop("episodes", None)
    text = json.dumps(report, indent=1)
    if episodes is not None:
        lines = ",\n".join(map(json.dumps, episodes["rows"]))
        text = (
            f'{text[:-2]},\n "episodes": {{"columns": {json.dumps(episodes["columns"])}, "rows": [\n{lines}\n ]}}\n}}'
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text + "\n")


def pack_episodes(path: pathlib.Path) -> None:
    """Move a report's episodes into the file that `read_result` reads."""
    report = json.loads(path.read_text())
    if (episodes := report.pop("episodes", None)) is not None:
        lines = "".join(f"{json.dumps(row)}\n" for row in (episodes["columns"], *episodes["rows"]))
        path.with_suffix(".episodes.jsonl.xz").write_bytes(lzma.compress(lines.encode(), preset=9))
        write_result(path, report)


def read_result(path: str | os.PathLike[str]) -> Any:
    """Read a report with its episodes.

    They may be packed beside it in `NAME.episodes.jsonl.xz`. That file has a line of column names, then a line per
    episode.
    """
    path = pathlib.Path(path)
    report, packed = json.loads(path.read_text()), path.with_suffix(".episodes.jsonl.xz")
    if packed.is_file():
        columns, *rows = map(json.loads, lzma.decompress(packed.read_bytes()).decode().splitlines())
        report["episodes"] = {"columns": columns, "rows": rows}
    return report


CURVES = (
    ("executor", "loss", "action_accuracy"),
    ("executor_correction", "loss", "action_accuracy"),
    ("compiler", "text_nll", "action_accuracy"),
    ("correction", "text_nll", "action_accuracy"),
    ("grpo", "won", "well_formed"),
    ("grpo", "equal_share", "text_kl_to_start"),
    ("grpo", "text_entropy", "soft_entropy"),
)
"""Stages, each with its metrics on the left and the right axis."""


def draw_curves(path: pathlib.Path, curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    """Draw the stages' learning curves side by side into a PNG file.

    Returns False if no stage has any.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [panel for panel in CURVES if curves.get(panel[0])]
    if not panels:
        return False
    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3.2), squeeze=False)
    for axis, (name, *metrics) in zip(axes[0], panels):
        rows = curves[name]
        width = max(1, len(rows) // 50)
        for metric, side, colour in zip(metrics, (axis, axis.twinx()), ("tab:blue", "tab:orange")):
            points = [(row["step"], row[metric]) for row in rows if metric in row]
            if not points:
                continue
            steps, values = zip(*points)
            side.plot(steps, values, color=colour, alpha=0.25, linewidth=0.8)
            side.plot(steps, _smooth(values, width), color=colour, linewidth=1.6)
            side.set_ylabel(metric, color=colour)
        axis.set_title(name)
        axis.set_xlabel("step")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def _smooth(values: Sequence[float], width: int) -> list[float]:
    """Mean of the last `width` values at each point."""
    return [sum(values[max(0, i + 1 - width) : i + 1]) / min(i + 1, width) for i in range(len(values))]
