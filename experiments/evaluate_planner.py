"""Scores the planner-critic agent and its ablations on EB-ALFRED or EB-Habitat; `evaluate.py --config` calls it.

    python experiments/evaluate.py --config=eb_alfred --result experiments/results/eb_alfred.json
    python experiments/evaluate.py --config=eb_habitat --agents full no_memory --num_tasks 10

    python experiments/evaluate.py --config=eb_habitat --agents --deliveries none static compiled --weights RUN/weights

The last one scores deliveries of memory, by models that read ALFWorld's texts (`dialect_deliveries`): by default those
that were trained on ALFWorld, with three seeds at temperature 0.5, since greedy play repeats refused commands. A task's
outcome is its mean over the seeds, and intervals count tasks.

An agent first lives through the training tasks, then every scored task starts from that memory. Each finished task is
kept in `<result>.tasks.jsonl`: a command that is stopped goes on where it was when it is given again, with the same
settings and the same commit. Ends with the table, the papers' figures beside it, and one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import pathlib
import tempfile
from collections.abc import Sequence

from experiments.finished import Finished, write_whole

NOTE = (
    "The native world is symbolic: no images, no physics, and a text names what is in view. The papers' agents see "
    "images in the real simulators, so their figures are beside these for orientation and are no comparison."
)


def arguments_of(arguments: list[str]) -> tuple[argparse.Namespace, object]:
    """(options, configuration with what the command line changes)."""
    from embodied_mem.evaluation.planner_benchmark import AGENTS, BENCHMARKS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--config", required=True, choices=list(BENCHMARKS))
    add("--agents", nargs="*", choices=list(AGENTS), help="default: all")
    add("--deliveries", nargs="*", choices=["none", "static", "compiled"], help="of the weights")
    add("--weights", help="folder with models that read ALFWorld's texts")
    add("--seeds", nargs="+", type=int, help="of deliveries; default: 0 1 2")
    add("--temperature", type=float, help="of deliveries; default: 0.5, 0 is greedy")
    add("--subsets", nargs="+", help="default: all at hand")
    add("--training_tasks", type=int, help="the first so many; default: all")
    add("--num_tasks", type=int, help="of each subset, the first so many; default: all")
    add("--result", default="", help="write the JSON report to this file, and finished tasks beside it")
    options = parser.parse_args(arguments)
    config = importlib.import_module(f"experiments.configs.{options.config}").config()
    changes = {field.name: getattr(options, field.name, None) for field in dataclasses.fields(config)}
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in changes.items() if v is not None}
    return options, dataclasses.replace(config, **given)


def play_all(config, finished: Finished) -> dict[str, dict[str, list[list]]]:
    """Outcomes by subset and agent, in order of the tasks."""
    from embodied_mem.evaluation.planner_benchmark import (
        AGENTS,
        BENCHMARKS,
        play,
        remember,
        scored_tasks,
        training_tasks,
    )
    from embodied_mem.training.progress import Progress

    benchmark, rows = BENCHMARKS[config.world], finished.rows
    subsets = {
        subset: scored_tasks(benchmark, subset)[: config.num_tasks or None]
        for subset in config.subsets or benchmark.subsets
    }
    training = training_tasks(benchmark)[: config.training_tasks or None]
    left = {
        name: [
            (subset, task)
            for subset, tasks in subsets.items()
            for task in tasks
            if (name, subset, task.name) not in rows
        ]
        for name in config.agents
    }
    open_parts = {
        (name, subset): numbers
        for name in config.deliveries
        for subset, tasks in subsets.items()
        if (numbers := [number for number, task in enumerate(tasks) if (name, subset, task.name) not in rows])
    }
    if open_parts:
        from experiments.dialect_deliveries import play_deliveries

        play_deliveries(
            config.world, config.weights, open_parts, subsets, training_tasks=config.training_tasks,
            seeds=config.seeds, temperature=config.temperature,
            on_task=lambda name, subset, task, row: finished.add(name, subset, task.name, row),
        )  # fmt: skip
    memories: dict[tuple, object] = {}
    for name in config.agents:
        agent = AGENTS[name]
        if not left[name]:
            continue
        if agent.modules not in memories:  # what is remembered does not depend on who criticises later
            lives = len(training) if agent.long_term else 0
            with Progress(f"{name}: training tasks", lives, unit="task") as progress:
                memory = remember(benchmark, dataclasses.replace(agent, critic=True), training, progress_of(progress))
            memories[agent.modules] = memory
        with Progress(name, len(left[name]), unit="task") as progress:
            for subset, task in left[name]:
                [outcome] = play(benchmark, agent, memories[agent.modules], [task])
                record = outcome.record
                ms = 1000 * (record.memory_s + record.think_s)
                row = [int(outcome.won), outcome.progress, record.steps, record.plans, record.vetoes, 0, ms]
                finished.add(name, subset, task.name, row)
                progress.update(won=outcome.won)
    return {
        subset: {
            name: [rows[name, subset, task.name] for task in tasks] for name in (*config.deliveries, *config.agents)
        }
        for subset, tasks in subsets.items()
    }


def progress_of(progress):
    """What `play_lives` calls when a task ends."""
    return lambda outcome: progress.update(won=outcome.won)


def rows_of(played: dict[str, dict[str, list[list]]]) -> dict[str, dict[str, dict]]:
    """Numbers of each subset and agent: 95 % intervals, paired differences to the full agent or else to `none`."""
    import numpy as np

    from embodied_mem.evaluation.intervals import paired_difference, wilson

    rows: dict[str, dict[str, dict]] = {}
    for subset, agents in played.items():
        columns = {name: np.array(outcomes, float).T for name, outcomes in agents.items()}
        baseline = "full" if "full" in columns else "none"
        rows[subset] = {}
        for name, (won, progress, steps, plans, vetoes, tokens, ms) in columns.items():
            mean, low, high = paired_difference(progress, np.zeros_like(progress))
            row = {
                "success": float(won.mean()),
                "interval": list(wilson(float(won.mean()), len(won))),
                "progress": mean,
                "progress_interval": [low, high],
                "steps": float(steps.mean()),
                "plans": float(plans.mean()),
                "vetoes": float(vetoes.mean()),
                "tokens_per_step": float(tokens.sum() / max(steps.sum(), 1)),
                "ms_per_step": float(ms.sum() / max(steps.sum(), 1)),
                "tasks": len(won),
            }
            if name != baseline and baseline in columns:
                row[f"success_difference_to_{baseline}"] = list(paired_difference(won, columns[baseline][0]))
                row[f"steps_difference_to_{baseline}"] = list(paired_difference(steps, columns[baseline][2]))
            rows[subset][name] = row
    return rows


def cost_cells(rows: Sequence[dict]) -> list[str]:
    """Cells with the tokens and milliseconds of a step, over all the rows."""
    steps = max(sum(row["steps"] for row in rows), 1e-9)
    tokens, ms = (sum(row[key] * row["steps"] for row in rows) / steps for key in ("tokens_per_step", "ms_per_step"))
    return [f"{tokens:.0f}", f"{ms:.1f}"]


def table(world: str, rows: dict[str, dict[str, dict]]) -> str:
    """The comparison as a Markdown table, published figures below; the cost of a step is that of deciding alone."""
    from experiments.published import PUBLISHED

    subsets = list(rows)
    heads = ["agent", *(f"{subset}: success | progress | steps" for subset in subsets), "tokens/step", "ms/step"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * (3 + 3 * len(subsets))]
    for name in next(iter(rows.values())):
        cells = [name]
        for subset in subsets:
            row = rows[subset][name]
            low, high = (100 * value for value in row["interval"])
            cells.append(f"{100 * row['success']:.1f} % [{low:.1f}, {high:.1f}]")
            low, high = (100 * value for value in row["progress_interval"])
            cells.append(f"{100 * row['progress']:.1f} % [{low:.1f}, {high:.1f}]")
            cells.append(f"{row['steps']:.1f}")
        cells += cost_cells([rows[subset][name] for subset in subsets])
        lines.append(f"| {' | '.join(cells)} |")
    for published in PUBLISHED[world]:
        cells = [f"*{published.name}*"]
        for subset in subsets:
            cells += ["-" if value is None else f"{value:g} %" for value in published.rows.get(subset, (None, None))]
            cells.append("-")
        cells += ["-", "-"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> dict:
    """Plays, prints the table, returns the report."""
    import time

    options, config = arguments_of(arguments)
    from embodied_mem.evaluation.report import manifest

    started = time.perf_counter()
    facts = manifest(config=dataclasses.asdict(config), planner="rules", note=NOTE)
    belongs_to = {key: facts[key] for key in ("commit", "config")}
    shown = ("world", "training_tasks", "weights", "seeds", "temperature")
    belongs_to["config"] = {k: v for k, v in belongs_to["config"].items() if k in shown}
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(f"{options.result}.tasks.jsonl" if options.result else f"{scratch}/tasks.jsonl")
        played = play_all(config, Finished(path, belongs_to))
        rows = rows_of(played)
        report = {"subsets": rows, "outcomes": played, **facts, "seconds": round(time.perf_counter() - started, 1)}
        if options.result:
            write_whole(options.result, json.dumps(report) + "\n")
        path.unlink()
    print(f"\n{table(config.world, rows)}\n\n{NOTE}\n")
    print(json.dumps({"world": config.world, "subsets": rows}))
    return report
