"""Tables of the study of memory, for `tables.py`: a result's data and where it comes from, as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import versus
from embodied_mem.evaluation.tables import difference, executor_cells, markdown, percent, rate

_PROBED = ("place", "kind", "number")


def soft_budget_table(data: dict[str, Any], source: str) -> str:
    """Success by tokens of guidance: text only, and soft tokens beside it."""
    rows = data["rows"]
    compared = {
        (row["kind"], row["budget"]): row["difference"] for row in data["comparisons"] if row["kind"] != "control"
    }
    head = (
        "tokens of guidance", "text only", "tokens/step", "with soft tokens", "tokens/step", "both - text, paired",
        f"both - text with {data['num_soft']} tokens more, paired",
    )  # fmt: skip
    lines = [
        [
            "all" if text["budget"] is None else str(text["budget"]),
            rate(text["success"], text["interval"]), f"{text['tokens']:.0f}",
            rate(both["success"], both["interval"]), f"{both['tokens']:.0f}",
            *(difference(compared[kind, text["budget"]]) for kind in ("same budget", "equal tokens")),
        ]
        for text, both in zip(rows["text"], rows["both"])
    ]  # fmt: skip
    lines = [
        line for line, before in zip(lines, [[], *lines]) if line[1:] != before[1:]
    ]  # larger budgets are not used up
    for row in rows["controls"][1:]:
        cells = rate(row["success"], row["interval"]), f"{row['tokens']:.0f}"
        lines.append([f"0, {row['row'].rpartition('+')[2]}", "-", "-", *cells, "-", "-"])
    found = data["verdict"]
    said = "The channel works" if found["works"] else "The channel does not meet the criterion"
    adds = ", ".join(map(str, found["adds_at_equal_tokens"])) or "no budget"
    said += f": both beat text of equal tokens, beyond the paired interval, at {adds}"
    return markdown(head, lines, f"{said}; {data['num_tasks']} games x {data['num_seeds']} seeds; {source}")


def soft_probe_table(data: dict[str, Any], source: str) -> str:
    """What a linear probe reads from soft tokens."""
    names = {
        "probe": "linear probe",
        "shuffled": "the same, fitted on shuffled rows",
        "majority": "most frequent place",
    }
    lines = [
        [
            label, *(rate(data[name][what]["accuracy"], data[name][what]["interval"]) for what in _PROBED),
            f"{data[name]['bits']:.2f}" if "bits" in data[name] else "-",
        ]
        for name, label in names.items()
    ]  # fmt: skip
    for name, label in (("guidance", "the compiler's text"), ("teacher", "the teacher's text")):
        lines.append([label, rate(data[name]["accuracy"], data[name]["interval"]), "-", "-", "-"])
    low, high = data["probe"]["bits_interval"]
    games = (
        f"{data['held_out_games']} games in {data['held_out_rooms']} rooms, fitted on {data['train_games']} games in "
        f"{data['train_rooms']}; bits of the probe {low:.2f} to {high:.2f}"
    )
    head = ["", *_PROBED, f"bits of {data['entropy_bits']:.2f}"]
    return markdown(head, lines, f"{games}; {source}")


def controls_table(data: dict[str, Any], source: str) -> str:
    """Deliveries with their controls: what each row has that the first of its delivery has not stands in its name.

    Where the teacher's guidance was played, too, each row has its share of what can be won: (row - none) / (teacher -
    none).
    """
    played = data["deliveries"]
    shared = {"none", "teacher"} <= played.keys()
    none, ceiling = (played[name]["success"] if shared else 0.0 for name in ("none", "teacher"))

    def share(row: dict[str, Any]) -> list[str]:
        return [f"{100 * (row['success'] - none) / (ceiling - none):.0f} %"] if shared else []

    head = (
        "delivery", "success", "against none, paired", *(["of what can be won"] * shared), "steps", "NOACTION",
        "its precision", "hallucinations per 100 steps", "executor tokens/step",
    )  # fmt: skip
    rows = [
        [
            delivery, rate(row["success"], row["interval"]), versus(row), *share(row),
            f"{row['steps']:.1f}", *_noaction_cells(row),
            f"{row['hallucinations_per_100_steps']:.1f}",
            f"{row['executor_tokens_per_step']:.0f}",
        ]
        for delivery, row in played.items()
        if not delivery.endswith(_UNSHOWN)
    ]  # fmt: skip
    return markdown(head, rows, f"{_games(data)}; {source}")


_UNSHOWN = ("static bank=other_rooms", "static bank=noisy:0.5", "static bank=poisoned", "soft=noise", "soft=only+zero")
"""Controls that stand in the results alone."""


def served_table(data: dict[str, Any], source: str) -> str:
    """Deliveries to a published executor: success by what it is told, and how many of its commands have no effect."""
    head = (
        "told", "success", "against none, paired", "steps", "refused",
        "executor tokens/step, in + out",
    )  # fmt: skip
    rows = [
        [
            delivery, rate(row["success"], row["interval"]), versus(row), f"{row['steps']:.1f}",
            percent(row["refused"]),
            f"{row['executor_tokens_in_per_step']:.0f} + {row['executor_tokens_out_per_step']:.1f}",
        ]
        for delivery, row in data["deliveries"].items()
    ]  # fmt: skip
    return markdown(head, rows, f"{_games(data)}; {source}")


def _games(data: dict[str, Any]) -> str:
    return f"{data['num_tasks']} games x {data['num_seeds']} seeds, at most {data['max_steps']} steps"


def _noaction_cells(row: dict) -> list[str]:
    """Give the share of silent steps, and of these the rightly silent ones; "-" in older results."""
    if row.get("noaction") is None:
        return ["-"] * 2
    right = row["noaction_precision"]
    return [percent(row["noaction"]), "-" if right is None else percent(right)]


def grpo_table(read: Callable[[str], Any], source: Callable[[dict[str, Any]], str]) -> str:
    """Show what GRPO adds to a trained compiler, beside its controls and in two more settings."""
    data = read("grpo_habits")
    arms = list(data["arms"])
    before = data["rows"]["before"]
    lines = [["before", rate(before["success"], before["interval"]), "", *[""] * (len(arms) + 1)]]
    for result in ("", "_sum", "_group"):
        for name, arm in read(f"grpo_habits{result}")["arms"].items():
            each = ", ".join(f"{100 * one:.1f}" for one in arm["success_per_seed"])
            others = [_points(arm["difference_to"].get(other)) for other in ("before", *arms)]
            lines.append([f"{name}{result.replace('_', ', ')}", f"{100 * arm['success']:.1f} %", each, *others])
    head = ["compiler", "success", "per training seed", "minus before", *(f"minus {arm}" for arm in arms)]
    seeds = f"each the mean of {len(data['seeds'])} training seeds"
    games = f"{data['num_tasks']} games; intervals are paired, over games, {seeds}"
    return markdown(head, lines, f"{games}; {source(data)}")


PAPERS = {
    "before": "82.16; 54.67",
    "no_brief": "73.94; -",
    "soft_0": "78.93; 47.11",
    "soft_4": "-; 51.09",
    "soft_8": "-; 52.83",
    "soft_32": "-; 53.17",
    "linear": "-; 46.23",
}
"""Arm -> MemCompiler's own success, its Table 3 (ALFWorld) and Table 4 (mean over EB-Habitat)."""


def ablations_table(data: dict[str, Any], source: str) -> str:
    """A compiler trained for each row, the frozen executor the same in all, its tokens and latency beside them."""
    shown = [("none", "none", None), ("before", "before", None)]
    for name, arm in data["arms"].items():
        for row in (key for key in data["rows"] if key.split()[0] == name):
            rest = row.partition(" ")[2].partition(" ")[2]
            shown.append((f"{name} {rest}".strip(), row, None if rest else arm["difference_to"]["before"]))
    lines = [
        [
            name, rate(row["success"], row["interval"]), versus(row), _points(to_before), f"{row['steps']:.1f}",
            *executor_cells(row), PAPERS.get(name, "-"),
        ]
        for name, key, to_before in shown
        if (row := data["rows"][key])
    ]  # fmt: skip
    head = (
        "compiler", "success", "minus none, paired", "minus before, paired", "steps", "executor tokens/step, in + out",
        "its prefill + decode, ms/step", "the paper's: ALFWorld; EB-Habitat",
    )  # fmt: skip
    games = f"{data['num_tasks']} games, training seeds {', '.join(map(str, data['seeds']))}; intervals are over games"
    return markdown(head, lines, f"{games}; {source}")


def _points(found: list[float] | None) -> str:
    """ "+4.0 [+0.5, +7.5]", in points."""
    return "-" if found is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * one for one in found))


def training_seeds_table(read: Callable[[str], Any], name: str) -> str:
    """The rows that runs of one configuration have in common, one report per training seed: mean and spread.

    `read` gives the result of a name, or None; each seed's has `_seed0` and so on behind it. A
    difference is that of the means over training seeds and seeds of play; its interval is over games.
    """
    reports = [found for seed in ("_seed0", "_seed1", "_seed2") if (found := read(f"{name}{seed}"))]
    seeds = [report["config"]["seed"] for report in reports]
    rows, outcomes = [], [won_of(report) for report in reports]
    for delivery in reports[0]["deliveries"]:
        if not all(delivery in won for won in outcomes):
            continue
        each = [100 * won[delivery].mean() for won in outcomes]
        spread = f"{np.std(each, ddof=1):.1f}" if len(each) > 1 else "-"
        together, none = (np.concatenate([won[one] for won in outcomes], axis=1) for one in (delivery, "none"))
        against = "-" if delivery == "none" else _points([*paired_difference(together, none)])
        rows.append([delivery, f"{np.mean(each):.1f} %", spread, ", ".join(f"{one:.1f}" for one in each), against])
    head = (
        "delivery",
        "success, mean",
        "standard deviation",
        f"training seeds {', '.join(map(str, seeds))}",
        "against none, paired",
    )
    fits, empty = (np.concatenate([won[one] for won in outcomes], 1) for one in ("compiled", "compiled bank=empty"))
    text = np.concatenate([won["compiled_text"] for won in outcomes], axis=1)
    games = f"compiled with the bank that fits minus with an empty one: {_points([*paired_difference(fits, empty)])}; "
    games += f"compiled minus compiled_text: {_points([*paired_difference(fits, text)])}; "
    games += f"{reports[0]['num_tasks']} games x {reports[0]['num_seeds']} seeds of play for each training seed"
    commits = ", ".join(report["commit"][:10] for report in reports)
    return markdown(head, rows, f"{games}; {reports[0]['machine']}; scored at commits {commits}")


def online_bank_table(data: dict[str, Any], source: str) -> str:
    """Success over a life, in windows of tasks."""
    size, first = data["settings"]["window"], next(iter(data["rows"].values()))
    ends = [min((i + 1) * size, data["settings"]["num_tasks"]) for i in range(len(first["windows"]))]
    head = [
        "delivery",
        *(f"{i * size + 1}-{end}" for i, end in enumerate(ends)),
        "all",
        "experiences kept",
        "of losses",
    ]
    lines = [
        [
            name, *(f"{100 * window['success']:.0f}" for window in row["windows"]), percent(row["success"]),
            *(f"{np.mean(row[what]):.0f}" for what in ("experiences", "of_losses")),
        ]
        for name, row in data["rows"].items()
    ]  # fmt: skip
    games = f"{data['settings']['lives']} lives, each in a home of its own, at most {data['max_steps']} steps"
    return markdown(head, lines, f"{games}; {source}")


def won_of(report: dict[str, Any]) -> dict[str, np.ndarray]:
    """bool[tasks, seeds] of each delivery, tasks and seeds in order of their names."""
    found: dict[str, dict[tuple[str, str], bool]] = {}
    for episode in episodes_of(report):
        found.setdefault(episode.agent, {})[str(episode.task), str(episode.seed)] = bool(episode.won)
    tables = {}
    for name, won in found.items():
        tasks, seeds = (sorted({key[side] for key in won}) for side in (0, 1))
        tables[name] = np.array([[won[task, seed] for seed in seeds] for task in tasks])
    return tables


def scienceworld_control_table(data: dict[str, Any], source: str) -> str:
    """The planner-critic by what it remembers; differences are paired, over kinds of tasks, all variations of each."""
    kinds = len({str(episode.task).rpartition("/")[0] for episode in episodes_of(data)})
    won = {name: one.reshape(kinds, -1) for name, one in won_of(data).items()}
    nothing = won["planner_critic_no_memory"]
    rows = [
        [
            name, rate(row["success"], row["interval"]), f"{row['score'][0]:.1f}",
            "-" if name == "planner_critic_no_memory" else _points([*paired_difference(won[name], nothing)]),
        ]
        for name, row in data["agents"].items()
    ]  # fmt: skip
    head = "agent", "success", "score (0 to 100)", "success minus that with nothing remembered, paired"
    return markdown(head, rows, f"{won['none'].size} episodes of {kinds} kinds of tasks; {source}")


STUDIES = {
    "habits": controls_table,
    "procedures": controls_table,
    "change": controls_table,
    "ablations": ablations_table,
    "no_bank_procedures": ablations_table,
    "soft_budget": soft_budget_table,
    "soft_budget_procedures": soft_budget_table,
    "soft_probe": soft_probe_table,
    "online_bank": online_bank_table,
    "alfworld_judging_seed0": controls_table,
    "alfworld_qwen15": served_table,
    "alfworld_qwen05": served_table,
    "alfworld_qwen15_commands": served_table,
    "alfworld_qwen05_commands": served_table,
    "alfworld_smollm2": served_table,
    "scienceworld_control": scienceworld_control_table,
}
"""What writes the table of a result, by the result's name."""
