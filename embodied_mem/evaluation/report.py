"""The report of a comparison: a table for people, JSON with a manifest for machines, a picture of the learning curves.

print(table(scores))
write_report(directory, scores, manifest, curves={"grpo": read_metrics(run_dir / "grpo")})
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence

from embodied_mem.evaluation.score import Score

BASELINE = "none"


def table(scores: Mapping[str, Score]) -> str:
    """The comparison as a Markdown table."""
    head = (
        "| delivery | success | 95 % interval | vs none (paired) | progress | steps | executor tokens/step | "
        "compiler tokens/step | ms/step | parse rate |"
    )
    lines = [head, "|" + "---|" * 10]
    baseline = scores.get(BASELINE)
    for name, score in scores.items():
        row = score.to_json(baseline)
        low, high = row["interval"]
        versus = "-"
        if "difference_interval" in row:
            d_low, d_high = row["difference_interval"]
            versus = f"{100 * row['difference_to_' + BASELINE]:+.1f} [{100 * d_low:+.1f}, {100 * d_high:+.1f}]"
        lines.append(
            f"| {name} | {100 * row['success']:.1f} % | {100 * low:.1f} - {100 * high:.1f} | {versus} "
            f"| {100 * row['progress']:.1f} % | {row['steps']:.1f} | {row['executor_tokens_per_step']:.0f} "
            f"| {row['compiler_tokens_per_step']:.0f} | {row['latency_ms_per_step']:.1f} "
            f"| {100 * row['parse_rate']:.1f} % |"
        )
    return "\n".join(lines)


def manifest(command: Sequence[str] | None = None, **facts: object) -> dict:
    """Where a result comes from: command, commit, machine, versions, and what the caller adds."""
    root = pathlib.Path(__file__).resolve().parents[2]
    return {
        "command": " ".join(command or ["python", os.path.relpath(sys.argv[0], root), *sys.argv[1:]]),
        "commit": _git(root, "rev-parse", "HEAD"),
        "modified_files": len(_git(root, "status", "--porcelain", "--untracked-files=no").splitlines()),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **facts,
    }


def _git(root: pathlib.Path, *arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _processor() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def summary(scores: Mapping[str, Score], facts: Mapping) -> dict:
    """The comparison as JSON data: `deliveries` by name, and the manifest."""
    baseline = scores.get(BASELINE)
    first = next(iter(scores.values()))
    return {
        "deliveries": {name: score.to_json(baseline) for name, score in scores.items()},
        "num_tasks": int(first.won.shape[0]),
        "num_seeds": int(first.won.shape[1]),
        **facts,
    }


def write_report(
    directory: str | os.PathLike,
    scores: Mapping[str, Score],
    facts: Mapping,
    curves: Mapping[str, Sequence[Mapping]] | None = None,
) -> dict:
    """Writes `report.json`, `report.md` and, with curves, `curves.png`; returns what the JSON file holds."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    data = summary(scores, facts)
    (directory / "report.json").write_text(json.dumps(data, indent=2) + "\n")
    lines = ["# Deliveries of memory compared", "", table(scores), ""]
    lines += [f"{data['num_tasks']} tasks, {data['num_seeds']} seeds. Command: `{facts.get('command', '')}`", ""]
    if curves and draw_curves(directory / "curves.png", curves):
        lines.append("![learning curves](curves.png)")
    (directory / "report.md").write_text("\n".join(lines) + "\n")
    return data


CURVES = {
    "executor": ("loss", "action_accuracy"),
    "executor_correction": ("loss", "action_accuracy"),
    "compiler": ("text_nll", "action_accuracy"),
    "correction": ("text_nll", "action_accuracy"),
    "grpo": ("won", "well_formed"),
}
"""What is drawn per stage: two metrics, on the left and the right axis."""


def draw_curves(path: pathlib.Path, curves: Mapping[str, Sequence[Mapping]]) -> bool:
    """Draws the learning curves of the stages side by side into a PNG file; False if no stage has any."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    stages = [name for name in CURVES if curves.get(name)]
    if not stages:
        return False
    figure, axes = plt.subplots(1, len(stages), figsize=(4.5 * len(stages), 3.2), squeeze=False)
    for axis, name in zip(axes[0], stages):
        rows = curves[name]
        width = max(1, len(rows) // 50)
        for metric, side, colour in zip(CURVES[name], (axis, axis.twinx()), ("tab:blue", "tab:orange")):
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
