"""Success against executor tokens per step: text only, soft tokens only, and both, on the same games and seeds.

    python experiments/analyses/soft_budget.py --weights experiments/weights/habits \\
        --result experiments/results/soft_budget.json

writes the result, ends with one JSON line, which has the verdict. Stopped and given again, it goes on with the
half that it was in.

A hint budget of B lets the first B tokens of the guidance through; `full` lets all. A soft token takes a position of
the executor's prompt as a token of text does, so there are two comparisons. "Same budget" takes soft tokens away and
gives nothing for them. "Equal tokens" gives text as many tokens more as there are soft tokens: both at B against text
at B + N. Guidance is mostly shorter than that, so text has often said everything by then; what remains is that soft
tokens may not tell more than text could in their place.

Text at budget 0 is nothing at all: the executor reads what it reads under `none`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.evaluation.command import output_file
from embodied_mem.evaluation.intervals import paired_difference

BUDGETS = (4, 8, 16)
CONTROLS = ("zero", "swapped", "noise")
GAIN, SWAP_COST = 0.10, 0.20
"""Least gain of soft tokens alone over nothing, and least loss by swapping them."""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Plays and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--weights", default="experiments/weights/habits", help="folder with config.json and weights")
    add("--budgets", type=int, nargs="+", default=BUDGETS, help="tokens of guidance, beside 0 and all of it")
    add("--num_tasks", type=int, default=0, help="validation games, the first so many; default: the weights' own")
    add("--seeds", type=int, nargs="+", default=[], help="of play; default: the weights' own")
    add("--bank_file", default="", help="memory bank; default: the teacher plays its games")
    add("--result", type=output_file, default=pathlib.Path("runs/soft_budget.json"), help="JSON file")
    options = parser.parse_args(arguments)
    played, facts = play(options)
    rows = curves(played, options.budgets)
    compared = comparisons(played, options.budgets, facts["num_soft"])
    found = verdict(compared)
    report = {"rows": rows, "comparisons": compared, "verdict": found, **facts}

    from embodied_mem.evaluation.report import write_result

    write_result(options.result, report)
    print(json.dumps({"rows": rows, "verdict": found}))
    return report


def text_row(budget: int | None) -> str:
    """Name the row with `budget` tokens of guidance and no soft tokens."""
    return "none" if budget == 0 else "compiled_text" + (f" hint_tokens={budget}" if budget else "")


def both_row(budget: int | None) -> str:
    """Name the row with `budget` tokens of guidance and soft tokens."""
    return "compiled soft=only" if budget == 0 else "compiled" + (f" hint_tokens={budget}" if budget else "")


def play(options: argparse.Namespace) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return (rows by name with `won` [tasks, seeds], where they come from).

    They are played by the benchmark of the weights' world.
    """
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags

    set_gpu_flags()
    keep_freed_memory()
    import dataclasses

    from embodied_mem.registry import load
    from embodied_mem.training.bundle import load_bundle

    config = load_bundle(options.weights).config
    num_soft, full = config.memory.num_soft, config.model.max_compiler_tokens
    if not num_soft:
        raise InvalidInputError(f"--weights {options.weights}: expected models with soft tokens, got some without")
    text = sorted({*options.budgets, *(budget + num_soft for budget in (0, *options.budgets))})
    soft = ("intact", "only", *(f"only+{control}" for control in CONTROLS))
    parts: dict[str, dict[str, Any]] = {
        "text": {"deliveries": ("none", "compiled_text"), "hint_tokens": (full, *text)},
        "soft": {"deliveries": ("compiled",), "hint_tokens": (full, *options.budgets), "soft": soft},
    }
    benchmark = load(config.world.name, "benchmark")
    given = {"weights": options.weights, "num_tasks": options.num_tasks, "seeds": tuple(options.seeds)}
    rows: dict[str, dict[str, Any]] = {}
    facts: dict[str, Any] = {"num_soft": num_soft, "budgets": list(options.budgets)}
    for name, changes in parts.items():
        folder = options.result.parent / f"{options.result.stem}.{name}"
        asked = dataclasses.replace(benchmark.config, **given, **changes, bank_file=options.bank_file, out=folder)
        report = benchmark.evaluate(asked)
        rows |= rows_of(report)
        kept = ("num_tasks", "num_seeds", "command", "commit", "modified_files", "machine", "python", "max_steps")
        facts |= {key: report[key] for key in (*kept, "temperature", "tasks", "seeds", "bank", "fingerprint")}
        facts["seconds"] = round(facts.get("seconds", 0) + report["seconds"], 1)
        for file in ("report.json", "report.md"):  # what counts is in the result
            (folder / file).unlink()
        folder.rmdir()
    return rows, facts


def rows_of(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a report's deliveries by name, each with `won` [tasks, seeds]."""
    rows: dict[str, dict[str, Any]] = {name: dict(row) for name, row in report["deliveries"].items()}
    shape = report["num_tasks"], report["num_seeds"]
    for name, row in rows.items():
        won = [episode.won for episode in episodes_of(report) if episode.agent == name]
        row["won"] = np.asarray(won, float).reshape(shape)
    return rows


def curves(played: Mapping[str, Mapping[str, Any]], budgets: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """Return the points of `text`, `both` and what stands beside them.

    The first two are by budget, the others at budget 0.
    """
    steps: list[int | None] = [0, *budgets, None]

    def point(name: str, budget: int | None) -> dict[str, Any]:
        row = played[name]
        keys = {"success": "success", "interval": "interval", "tokens": "executor_tokens_per_step", "steps": "steps"}
        return {"row": name, "budget": budget} | {key: row[source] for key, source in keys.items()}

    controls = [point(f"compiled soft=only+{control}", 0) for control in CONTROLS]
    text = sorted(name for name in played if name.startswith("compiled_text hint_tokens="))
    longer = sorted(int(name.partition("=")[2]) for name in text)
    return {
        "text": [point(text_row(budget), budget) for budget in steps],
        "both": [point(both_row(budget), budget) for budget in steps],
        "controls": [point("none", 0), *controls],
        "text_at_equal_tokens": [point(text_row(budget), budget) for budget in longer if budget not in budgets],
    }


def comparisons(played: Mapping[str, Mapping[str, Any]], budgets: Sequence[int], num_soft: int) -> list[dict[str, Any]]:
    """Return paired differences of success, [mean, low, high].

    They are of both at a budget against text, and of the controls at budget 0.
    """
    pairs: list[tuple[str, int | None, str, str]] = []
    for budget in (0, *budgets, None):
        pairs.append(("same budget", budget, both_row(budget), text_row(budget)))
        more = None if budget is None else budget + num_soft
        pairs.append(("equal tokens", budget, both_row(budget), text_row(more)))
    for other in ("none", *(f"compiled soft=only+{control}" for control in CONTROLS)):
        pairs.append(("control", 0, both_row(0), other))
    return [
        {
            "kind": kind, "budget": budget, "row": first, "against": second,
            "difference": list(paired_difference(played[first]["won"], played[second]["won"])),
            "tokens": [played[name]["executor_tokens_per_step"] for name in (first, second)],
        }
        for kind, budget, first, second in pairs
    ]  # fmt: skip


def verdict(compared: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Judge the channel by the criterion of the study."""
    controls = {row["against"].rpartition("+")[2]: row["difference"] for row in compared if row["kind"] == "control"}
    alone = controls["zero"][0] >= GAIN and controls["none"][0] >= GAIN
    swap = controls["swapped"][0] >= SWAP_COST
    adding = [row["budget"] for row in compared if row["kind"] == "equal tokens" and row["difference"][1] > 0]
    at_same = [row["budget"] for row in compared if row["kind"] == "same budget" and row["difference"][1] > 0]
    return {
        "alone": alone, "swap": swap, "adds_at_equal_tokens": adding, "adds_at_same_budget": at_same,
        "works": bool(alone and swap and adding),
    }  # fmt: skip


if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(main)
