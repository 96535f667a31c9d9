"""Writes the tables of README.md and docs/ from the files in experiments/results/, so that no number is typed.

    python experiments/tables.py            # rewrite them
    python experiments/tables.py --check    # exit with 1 if one is not up to date
    python experiments/tables.py --pack locomo beam   # first put their episodes beside them, compressed

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; NAME is one of `TABLES`, most of them the name of a
result. A table is made of rows (name, what was measured) and columns (head, the cell of such a row).
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import pack_episodes, read_result, versus
from embodied_mem.evaluation.tables import difference, executor_cells, markdown, percent, rate
from embodied_mem.language.chat import Prices
from embodied_mem.registry import load
from embodied_mem.serve.mcp import MAX_USERS
from experiments.dialogues import calibration, corrections
from experiments.registered import register_all
from experiments.solvers.memento.tables import PAPER_STAGES, REWORDED
from experiments.solvers.memento.tables import TABLES as MEMENTO_TABLES

register_all()

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
MAX_COMMAND = 7
"""Words of a command that stands below a table; a longer one stands in the result's file alone."""

PAPERS = {
    "MemCompiler": "https://arxiv.org/abs/2605.07594",
    "RoboMemory": "https://arxiv.org/abs/2508.01415",
    "MEMENTO": "https://arxiv.org/abs/2505.16348",
}
PAPER_ALFWORLD = (46.27, 35.03, 82.16)
"""Success on ALFWorld in percent without memory, with static injection, compiled: MemCompiler, table 3."""

PAPER_METHODS = {
    "none": (46.27, 61.19), "g_memory": (67.16, 74.62), "mem0": (12.69, 62.69), "langmem": (36.57, 62.69),
    "a_mem": (11.19, 88.81), "memgen": (42.54, 41.04), "compiled": (82.16, 91.45),
}  # fmt: skip
"""Success on ALFWorld in percent with Qwen-2.5-14B and Qwen-3.5-27B: MemCompiler, table 2, which names no release of
Mem0. Other models and other games."""

PAPER_ABLATIONS = {
    "before": "82.16; 54.67", "no_brief": "73.94; -", "soft_0": "78.93; 47.11", "soft_4": "-; 51.09",
    "soft_8": "-; 52.83", "soft_32": "-; 53.17", "linear": "-; 46.23",
}  # fmt: skip
"""Arm -> MemCompiler's own success, its Table 3 (ALFWorld) and Table 4 (mean over EB-Habitat)."""

PRICES = Prices(prompt=0.15, completion=0.60)
"""Dollars of a million tokens for the dollar equivalents: the list price of gpt-4o-mini. Nobody was paid."""

Data = dict[str, Any]
Row = tuple[str, Mapping[str, Any]]
Cell = Callable[[str, Mapping[str, Any]], str]


#
# ---- Results, rows, columns, cells -----------------------------------------------------------------------------------
#
@functools.cache
def read(name: str) -> Data:
    """Read the result of a name with its episodes."""
    return read_result(RESULTS / f"{name}.json") | {"file": f"{name}.json"}


def source(data: Data) -> str:
    """Name a result's machine, commit, and command or file."""
    short = len(data["command"].split()) <= MAX_COMMAND
    return f"{data['machine']}; commit {data['commit'][:10]}; `{data['command'] if short else data['file']}`"


def grid(rows: Iterable[Row], columns: Mapping[str, Cell] | list[tuple[str, Cell]], *footer: str) -> str:
    """Make a table with a cell for each row and column."""
    heads = [*columns.items()] if isinstance(columns, Mapping) else columns
    return markdown([head for head, _ in heads], [[cell(*row) for _, cell in heads] for row in rows], *footer)


def number(key: str, form: str) -> Cell:
    """Return the column of a number."""
    return lambda _, row: f"{row[key]:{form}}"


def paired(key: str, *more: int) -> Cell:
    """Return a paired difference's column, in points or by (scale, digits)."""
    return lambda _, row: difference(row.get(key), *more)


def named(name: str, _: Any) -> str:
    """Return the name of a row."""
    return name


def success(_: str, row: Mapping[str, Any]) -> str:
    """Success with its interval."""
    return rate(row["success"], row["interval"])


def against_none(_: str, row: Mapping[str, Any]) -> str:
    """Return the paired difference to no memory."""
    return versus(row)


def of_runs(agents: Mapping[str, list[Data]], last: int | None = None) -> Iterator[Row]:
    """Yield a row for each run of each agent; `run` says which."""
    for name, runs in agents.items():
        yield from ((name, row | {"run": run}) for run, row in enumerate(runs[:last], 1))


RUN = number("run", "d")
STEPS = number("steps", ".1f")


def games_of(data: Data) -> str:
    """Return the games and seeds that deliveries were played on."""
    max_steps = data.get("max_steps") or data["config"]["world"]["max_steps"]
    return f"{data['num_tasks']} games x {data['num_seeds']} seeds, at most {max_steps} steps"


def won_of(report: Data) -> dict[str, np.ndarray]:
    """Return each delivery's bool[tasks, seeds], both in order of names."""
    found: dict[str, dict[tuple[str, str], bool]] = {}
    for episode in episodes_of(report):
        found.setdefault(episode.agent, {})[str(episode.task), str(episode.seed)] = bool(episode.won)
    tables = {}
    for name, won in found.items():
        tasks, seeds = (sorted({key[side] for key in won}) for side in (0, 1))
        tables[name] = np.array([[won[task, seed] for seed in seeds] for task in tasks])
    return tables


#
# ---- Deliveries of memory --------------------------------------------------------------------------------------------
#
def deliveries(data: Data) -> str:
    """Compare deliveries, as the quick start ends with them."""
    columns = {
        "delivery": named, "success": success, "against none, paired": against_none, "steps": STEPS,
        "executor tokens/step": number("executor_tokens_per_step", ".0f"),
        "ms/step": number("latency_ms_per_step", ".1f"),
    }  # fmt: skip
    return grid(data["deliveries"].items(), columns, f"{games_of(data)}; {source(data)}")


def quick_start_success(data: Data) -> str:
    """Compare three deliveries of the quick start in one row."""
    rows = {f"{name} memory": data["deliveries"][key] for name, key in DELIVERED.items()}
    gain = versus(rows["compiled memory"])
    footer = f"{data['num_tasks']} unseen games, success in percent; paired gain of compiled: {gain}"
    return markdown([*rows], [[success("", row) for row in rows.values()]], footer)


DELIVERED = {"no": "none", "static": "static", "compiled": "compiled"}


def controls(data: Data) -> str:
    """Show deliveries and controls; a row's name says what differs.

    Where the teacher's guidance was played, too, each row has its share of what can be won: (row - none) / (teacher -
    none).
    """
    played = data["deliveries"]

    def share(_: str, row: Mapping[str, Any]) -> str:
        none, ceiling = (played[name]["success"] for name in ("none", "teacher"))
        return f"{100 * (row['success'] - none) / (ceiling - none):.0f} %"

    def optional(key: str) -> Cell:  # "-" in older results
        return lambda _, row: "-" if row.get("noaction") is None or row[key] is None else percent(row[key])

    columns = {
        "delivery": named, "success": success, "against none, paired": against_none,
        **({"of what can be won": share} if {"none", "teacher"} <= played.keys() else {}), "steps": STEPS,
        "NOACTION": optional("noaction"), "its precision": optional("noaction_precision"),
        "hallucinations per 100 steps": number("hallucinations_per_100_steps", ".1f"),
        "executor tokens/step": number("executor_tokens_per_step", ".0f"),
    }  # fmt: skip
    rows = ((name, row) for name, row in played.items() if not name.endswith(UNSHOWN))
    return grid(rows, columns, f"{games_of(data)}; {source(data)}")


UNSHOWN = ("static bank=other_rooms", "static bank=noisy:0.5", "static bank=poisoned", "soft=noise", "soft=only+zero")
"""Controls that stand in the results alone."""


def served(data: Data) -> str:
    """Show a published executor by delivery, with its share of ineffective commands."""

    def tokens(_: str, row: Mapping[str, Any]) -> str:
        return f"{row['executor_tokens_in_per_step']:.0f} + {row['executor_tokens_out_per_step']:.1f}"

    columns = {
        "told": named, "success": success, "against none, paired": against_none, "steps": STEPS,
        "refused": lambda _, row: percent(row["refused"]), "executor tokens/step, in + out": tokens,
    }  # fmt: skip
    return grid(data["deliveries"].items(), columns, f"{games_of(data)}; {source(data)}")


def methods(data: Data) -> str:
    """Compare memory methods with our deliveries, under one executor.

    With an empty bank every method says what `static` says, so these rows are left out; so is recall at every step.
    Another bank is compared to the committed one.
    """
    played = data["deliveries"]
    plainer = {name: _plainer(name) for name in played if _plainer(name) in played.keys() - {name}}
    won = won_of(data) if plainer else {}

    def papers(name: str, _: Any) -> str:
        method, _, setting = name.partition(" ")
        found = PAPER_METHODS.get(method.removesuffix("_1").removesuffix("_2"), ())
        return "-" if "bank=" in setting or not found else ", ".join(map(str, found))

    def against(name: str, _: Any) -> str:
        return difference(paired_difference(won[name], won[plainer[name]])) if name in plainer else "-"

    columns = {
        "delivery": named, "success": success, "against none, paired": against_none,
        **({"against its plainer row, paired": against} if plainer else {}), "steps": STEPS,
        "tokens of memories/step": number("memory_tokens_per_step", ".0f"),
        "executor tokens/step": number("executor_tokens_per_step", ".0f"),
        "memory's tokens/step": number("compiler_tokens_per_step", ".0f"),
        "the paper's: Qwen-2.5-14B, Qwen-3.5-27B": papers,
    }  # fmt: skip
    shown = (
        (name, row)
        for name, row in played.items()
        if "(rule" not in name or not ("bank=empty" in name or "_steps" in name)
    )
    return grid(shown, columns, f"{games_of(data)}; {source(data)}")


def _plainer(name: str) -> str:
    """Find a control's baseline row, different in one setting."""
    told, setting, _ = name.partition(" bank=")
    return told if setting else name.replace("_steps", "", 1)


def recall(data: Data) -> str:
    """Show where recalled lines place the goal's things, and their cost."""

    def observed(cell: Callable[[list[Data], Data], str]) -> Cell:
        return lambda _, row: cell(row["observed"], row["observed"][-1]) if "observed" in row else "-"

    def texts(at: int) -> Cell:
        return observed(lambda grown, _: f"{grown[at]['texts']:,} ({grown[at]['text_bytes'] / 1000:.0f})")

    def dollars(_: Any, last: Data) -> str:
        return f"{1000 * PRICES.cost(last['tokens_sent'], last['tokens_received']) / last['episodes']:.2f}"

    def tokens(_: Any, last: Data) -> str:
        return f"{(last['tokens_sent'] + last['tokens_received']) / last['episodes']:,.0f}"

    columns = {
        "method": named, "places told": lambda _, row: rate(row["told"], row["interval"]),
        "by lines of this room": lambda _, row: percent(row["told_here"]),
        "against static, paired": lambda name, row: (
            "-" if name == "static" else difference(row["difference_to_static"])
        ),
        "executor tokens": number("tokens", ".0f"), "calls a task": number("calls", ".0f"),
        "ms": number("milliseconds", ".1f"),
        "per episode observed: calls": observed(lambda _, last: f"{last['calls'] / last['episodes']:.2f}"),
        "tokens": observed(tokens), "dollars per 1,000 episodes": observed(dollars),
        "texts (kB) after 100": texts(0), "1,000": texts(1), "all": texts(2),
    }  # fmt: skip
    rows = ((name, row) for name, tried in data["rows"].items() for row in tried.values())
    footer = f"{data['num_tasks']} games of {data['tasks']}, {data['bank']:,} episodes observed; dollars at "
    footer += f"{PRICES.prompt} and {PRICES.completion} a million tokens sent and received; {source(data)}"
    return grid(rows, columns, footer)


#
# ---- Studies of memory -----------------------------------------------------------------------------------------------
#
def soft_budget(data: Data) -> str:
    """Show success by guidance tokens: text, and soft tokens beside it."""
    rows = data["rows"]
    compared = {
        (row["kind"], row["budget"]): row["difference"] for row in data["comparisons"] if row["kind"] != "control"
    }
    head = (
        "tokens of guidance", "text only", "tokens/step", "with soft tokens", "tokens/step", "both - text, paired",
        f"both - text with {data['num_soft']} tokens more, paired",
    )  # fmt: skip
    lines: list[list[str]] = []
    for text, both in zip(rows["text"], rows["both"]):
        cells = [cell for row in (text, both) for cell in (success("", row), f"{row['tokens']:.0f}")]
        cells += [difference(compared[kind, text["budget"]]) for kind in ("same budget", "equal tokens")]
        if not lines or lines[-1][1:] != cells:  # larger budgets are not used up
            lines.append(["all" if text["budget"] is None else str(text["budget"]), *cells])
    for row in rows["controls"][1:]:
        name = row["row"].rpartition("+")[2]
        lines.append([f"0, {name}", "-", "-", success("", row), f"{row['tokens']:.0f}", "-", "-"])
    found = data["verdict"]
    said = "The channel works" if found["works"] else "The channel does not meet the criterion"
    adds = ", ".join(map(str, found["adds_at_equal_tokens"])) or "no budget"
    said += f": both beat text of equal tokens, beyond the paired interval, at {adds}"
    return markdown(head, lines, f"{said}; {data['num_tasks']} games x {data['num_seeds']} seeds; {source(data)}")


def soft_probe(data: Data) -> str:
    """Show what a linear probe reads from soft tokens."""
    rows = {
        "linear probe": data["probe"], "the same, fitted on shuffled rows": data["shuffled"],
        "most frequent place": data["majority"], "the compiler's text": {"place": data["guidance"]},
        "the teacher's text": {"place": data["teacher"]},
    }  # fmt: skip

    def read_right(what: str) -> Cell:
        return lambda _, row: rate(row[what]["accuracy"], row[what]["interval"]) if what in row else "-"

    columns = {"": named, **{what: read_right(what) for what in ("place", "kind", "number")}}
    columns[f"bits of {data['entropy_bits']:.2f}"] = lambda _, row: f"{row['bits']:.2f}" if "bits" in row else "-"
    low, high = data["probe"]["bits_interval"]
    footer = f"{data['held_out_games']} games in {data['held_out_rooms']} rooms, fitted on {data['train_games']} games "
    footer += f"in {data['train_rooms']}; bits of the probe {low:.2f} to {high:.2f}; {source(data)}"
    return grid(rows.items(), columns, footer)


def grpo(data: Data) -> str:
    """Show GRPO's gain beside controls and in two more settings."""
    arms, before = [*data["arms"]], data["rows"]["before"]
    lines = [["before", success("", before), *[""] * (len(arms) + 2)]]
    for result in ("", "_sum", "_group"):
        for name, arm in read(f"grpo_habits{result}")["arms"].items():
            each = ", ".join(f"{100 * one:.1f}" for one in arm["success_per_seed"])
            others = [difference(arm["difference_to"].get(other)) for other in ("before", *arms)]
            lines.append([f"{name}{result.replace('_', ', ')}", percent(arm["success"]), each, *others])
    head = ["compiler", "success", "per training seed", *(f"minus {one}" for one in ("before", *arms))]
    seeds = f"each the mean of {len(data['seeds'])} training seeds"
    footer = f"{data['num_tasks']} games; intervals are paired, over games, {seeds}; {source(data)}"
    return markdown(head, lines, footer)


def ablations(data: Data) -> str:
    """Show compilers under one executor, with tokens and latency."""
    rows = {name: (data["rows"][name], None) for name in ("none", "before")}
    for name, arm in data["arms"].items():
        for key in (key for key in data["rows"] if key.split()[0] == name):
            rest = " ".join(key.split(" ")[2:])
            rows[f"{name} {rest}".strip()] = data["rows"][key], None if rest else arm["difference_to"]["before"]
    lines = [
        [
            name, success(name, row), versus(row), difference(to_before), STEPS(name, row), *executor_cells(row),
            PAPER_ABLATIONS.get(name, "-"),
        ]
        for name, (row, to_before) in rows.items()
    ]  # fmt: skip
    head = (
        "compiler", "success", "minus none, paired", "minus before, paired", "steps", "executor tokens/step, in + out",
        "its prefill + decode, ms/step", "the paper's: ALFWorld; EB-Habitat",
    )  # fmt: skip
    games = f"{data['num_tasks']} games, training seeds {', '.join(map(str, data['seeds']))}; intervals are over games"
    return markdown(head, lines, f"{games}; {source(data)}")


def training_seeds(first: Data) -> str:
    """Show mean and spread of one configuration's rows over training seeds.

    A difference is that of the means over training seeds and seeds of play; its interval is over games.
    """
    reports = [first, *(read(first["file"].replace("_seed0.json", f"_seed{seed}")) for seed in (1, 2))]
    outcomes = [won_of(report) for report in reports]

    def difference_of(one: str, other: str) -> str:
        return difference(
            paired_difference(*(np.concatenate([won[row] for won in outcomes], axis=1) for row in (one, other)))
        )

    rows = []
    for name in first["deliveries"]:
        if not all(name in won for won in outcomes):
            continue
        each = [100 * won[name].mean() for won in outcomes]
        against = "-" if name == "none" else difference_of(name, "none")
        seeds = ", ".join(f"{one:.1f}" for one in each)
        rows.append([name, f"{np.mean(each):.1f} %", f"{np.std(each, ddof=1):.1f}", seeds, against])
    trained = ", ".join(str(report["config"]["seed"]) for report in reports)
    head = "delivery", "success, mean", "standard deviation", f"training seeds {trained}", "against none, paired"
    games = "compiled with the bank that fits minus with an empty one: "
    games += f"{difference_of('compiled', 'compiled bank=empty')}; compiled minus compiled_text: "
    games += f"{difference_of('compiled', 'compiled_text')}; {first['num_tasks']} games x {first['num_seeds']} seeds "
    commits = ", ".join(report["commit"][:10] for report in reports)
    return markdown(
        head, rows, f"{games}of play for each training seed; {first['machine']}; scored at commits {commits}"
    )


def online_bank(data: Data) -> str:
    """Show success over a life, in windows of tasks."""
    settings = data["settings"]

    def window(at: int) -> Cell:
        return lambda _, row: f"{100 * row['windows'][at]['success']:.0f}"

    def mean(key: str) -> Cell:
        return lambda _, row: f"{np.mean(row[key]):.0f}"

    firsts = range(1, settings["num_tasks"] + 1, settings["window"])
    ends = (min(first + settings["window"] - 1, settings["num_tasks"]) for first in firsts)
    columns = {
        "delivery": named, **{f"{first}-{end}": window(at) for at, (first, end) in enumerate(zip(firsts, ends))},
        "all": lambda _, row: percent(row["success"]), "experiences kept": mean("experiences"),
        "of losses": mean("of_losses"),
    }  # fmt: skip
    games = f"{settings['lives']} lives, each in a home of its own, at most {data['max_steps']} steps"
    return grid(data["rows"].items(), columns, f"{games}; {source(data)}")


def noisy_triples(data: Data) -> str:
    """Show the effect of detector noise on spatial memory, by kind, rate."""
    arms = {
        "ours": "ours", "looks": "ours, with appearance", "names": "control: every name a thing",
        "theta 0": "control: threshold 0", "no conflicts": "control: no rules of conflict",
    }  # fmt: skip
    columns = {
        "noise": lambda _, row: f"{row['noise']}, {100 * row['rate']:.0f} %",
        "memory": lambda arm, _: arms[arm],
        "duplicates / 100 things": number("duplicates", ".1f"),
        "stale / 100 facts": number("stale", ".1f"),
        "missing / 100": number("missing", ".1f"),
        "wrong ends / 1,000 triples": number("wrong_ends", ".1f"),
        "us per update, p50 / p99": lambda _, row: f"{row['update_us']['p50']:.0f} / {row['update_us']['p99']:.0f}",
    }
    rows = (
        (row["arm"], row)
        for row in data["rows"]
        if (row["arm"] in ("ours", "looks") and (row["noise"] in ("none", "all") or row["rate"] == 0.2))
        or (row["noise"] == "all" and row["rate"] == 0.2)
    )
    played = f"{data['num_seeds']} homes of {data['num_things']} things, {data['num_steps']} updates each"
    return grid(rows, columns, f"Means of {played}, on a busy core; {source(data)}")


#
# ---- Agents ----------------------------------------------------------------------------------------------------------
#
def planner_critic(data: Data) -> str:
    """Show the planner-critic, its ablations and a second run."""
    columns = {
        "agent": named, "run": RUN, "success": success, "steps": number("steps", ".2f"),
        "against full, paired": paired("steps_difference_to_full", 1, 2),
        "against the first run, paired": paired("steps_difference_to_first_run", 1, 2),
    }  # fmt: skip
    footer = f"{data['num_tasks']} games of {data['tasks']}, at most {data['max_steps']} steps, "
    return grid(of_runs(data["agents"]), columns, f"{footer}{data['lives']} lifelong rollout; {source(data)}")


NUM_RUNS = 2
"""Runs of an agent in a table: a third changes little, and stands in the result."""


def agents(data: Data) -> str:
    """Show agents that play their tasks again without clearing memory."""
    columns = {
        "agent": named, "run": RUN, "success": success,
        "against the first run, paired": paired("success_difference_to_first_run"), "steps": number("steps", ".2f"),
        "steps against the first run, paired": paired("steps_difference_to_first_run", 1, 2),
    }  # fmt: skip
    footer = f"{data['num_tasks']} games of {data['tasks']}, at most {data['max_steps']} steps; {source(data)}"
    return grid(of_runs(data["agents"], NUM_RUNS), columns, footer)


def repeated(data: Data) -> str:
    """Show the subsets of a world with differences to the first run."""
    subsets = data["repeated_trials"]
    columns: list[tuple[str, Cell]] = [("agent", named), ("run", RUN)]
    for subset, played in subsets.items():

        def of(cell: Cell, played: Data = played) -> Cell:
            return lambda name, row: cell(name, played[name][row["run"] - 1])

        columns += [
            (f"{subset}: success", of(success)),
            ("against the first run, paired", of(paired("success_difference_to_first_run"))),
            ("steps", of(STEPS)),
        ]
    played = {name: runs for name, runs in next(iter(subsets.values())).items() if name != "first_reading"}
    footer = f"at most {data['protocol']['max_steps']} steps; {source(data)}"
    return grid(of_runs(played, NUM_RUNS), columns, footer)  # first_reading differs little from `full`


def robot_faults(data: Data) -> str:
    """Show the agent and ablations on a failing and a flawless robot."""

    def calm(name: str, row: Mapping[str, Any]) -> Data:
        found: Data = data["rows"]["no faults"][name][row["run"] - 1]
        return found

    def errors(_: str, row: Mapping[str, Any]) -> str:
        return f"{', '.join(map(str, row['lost_with_error'].values()))} of {row['lost']}"

    columns = [
        ("agent", named),
        ("run", RUN),
        ("no faults: success", lambda *row: percent(calm(*row)["success"])),
        ("steps", lambda *row: STEPS("", calm(*row))),
        ("faults: success", success),
        ("against full, paired", paired("success_difference_to_full")),
        ("steps", STEPS),
        ("faults met", lambda _, row: str(sum(row["faults"].values()))),
        (
            "of them in won tasks",
            lambda _, row: percent(sum(row["recovered"].values()) / max(sum(row["faults"].values()), 1)),
        ),
        ("lost tasks with planning, reasoning, perception error", errors),
    ]
    chances = {key: value for key, value in data["faults"].items() if key not in ("late_s", "max_blind")}
    footer = f"{data['num_tasks']} generated homes, at most {data['limits']['max_steps']} skills; chances: "
    footer += ", ".join(f"{key} {value:g}" for key, value in chances.items())
    return grid(of_runs(data["rows"]["faults"]), columns, f"{footer}; {source(data)}")


def scienceworld_control(data: Data) -> str:
    """Show the planner-critic by its memories; differences by kind of task."""
    kinds = len({str(episode.task).rpartition("/")[0] for episode in episodes_of(data)})
    won = {name: one.reshape(kinds, -1) for name, one in won_of(data).items()}
    nothing = "planner_critic_no_memory"
    columns = {
        "agent": named, "success": success, "score (0 to 100)": lambda _, row: f"{row['score'][0]:.1f}",
        "success minus that with nothing remembered, paired": lambda name, _: (
            "-" if name == nothing else difference(paired_difference(won[name], won[nothing]))
        ),
    }  # fmt: skip
    footer = f"{won['none'].size} episodes of {kinds} kinds of tasks; {source(data)}"
    return grid(data["agents"].items(), columns, footer)


#
# ---- Worlds ----------------------------------------------------------------------------------------------------------
#
COMPARED = ("Qwen-2.5-14B", "Qwen-2.5-VL-32B", "Gemini,", "Qwen2.5-VL-72B*", "RoboMemory without")
"""Published rows that stand in a table, by what their names contain; a world's command prints all."""

SAME = re.compile(r"\| first reading.* without long-term memory \|")
"""Rows whose tasks are won as in the row before."""


def without_published(table: str, *kept_names: str) -> str:
    """Drop published rows unless their names contain one of `kept_names`."""
    lines = [line for line in table.split("\n") if not SAME.match(line)]
    return "\n".join(line for line in lines if not line.startswith("| *") or any(n in line for n in kept_names))


def planner_benchmark(world: str, *kept_names: str) -> Callable[[Data], str]:
    """Show agents or deliveries on a world's subsets, beside papers' rows."""

    def table(data: Data) -> str:
        config = data["config"]
        tasks = max(row["tasks"] for agents in data["subsets"].values() for row in agents.values())
        played = "nothing is drawn"
        if config.get("deliveries") and "seeds" in config:
            played = f"{len(config['seeds'])} seeds of play at temperature {config['temperature']:g}"
        shown = without_published(load(world, "benchmark").table(data), *kept_names)
        return f"{shown}\n\n{tasks} tasks a subset, at most 30 steps, {played}; {source(data)}"

    return table


def revisited(world: str) -> Callable[[Data], str]:
    """Show tasks repeated in homes that the agent knows."""

    def table(data: Data) -> str:
        tasks = max(row["tasks"] for rows in data["revisited_home"].values() for row in rows.values())
        shown, limit = load(world, "benchmark").table(data), data["config"]["revisit"]
        return f"{shown}\n\n{tasks} tasks a subset, at most {limit} steps, nothing is drawn; {source(data)}"

    return table


def eb_habitat_relations(data: Data) -> str:
    """Show EB-Habitat's places described by places, blind, as first scored."""
    after = read("eb_habitat_relations_improved")
    (first, row), *others = data["rows"].items()
    rows = [(first, row), (AFTER, after["rows"]["first reading"]), *others]
    rows += [
        (f"first reading, wordings with *{name.replace('_', ' ')}* ({one['wordings']})", one)
        for name, one in data["by_relation"].items()
    ]
    columns = {
        "": named,
        "success": lambda name, row: success(name, row) if "interval" in row else percent(row["success"]),
        "steps": lambda name, row: STEPS(name, row) if "steps" in row else "-",
    }
    footer = f"{row['tasks']} tasks of {data['wordings']['played']} wordings, seed {data['seed']}; intervals count "
    return grid(rows, columns, f"{footer}wordings; {source(data)}; after the misses: {source(after)}")


AFTER = "first reading, after the misses were read (no blind number)"


def dialogues(data: Data) -> str:
    """Show contenders on dialogues' questions, some of them by kind."""
    lines = load(data["world"], "benchmark").table(data).split("\n")
    few = re.compile(r"\| (?!all )[\w -]+ \| \d+ \| (?:embedder|fusion|langmem|mem0|.* - bm25) ")
    return "\n".join(line for line in lines if not few.match(line)) + f"\n\n{source(data)}"


def scienceworld(data: Data) -> str:
    """Show ScienceWorld's agents and deliveries."""
    count, config = next(iter(data["agents"].values()))["episodes"], data["config"]
    shown = without_published(load("scienceworld", "benchmark").table(data), *COMPARED)
    return (
        f"{shown}\n\n{count} episodes: {config['variations']} {config['split']} variations of each of the 30 tasks, at "
        f"most {config['max_steps']} steps; memory: {len(data['memory'])} gold paths of training variations; "
        f"{source(data)}"
    )


def memento(data: Data) -> str:
    """Show MEMENTO's stages beside two of the paper's models."""

    def share(row: Data | None) -> str:
        return f"{percent(row['sr'])} of {row['episodes']}" if row else "-"

    reworded = read("memento_rewordings")
    rows = {stage: row | {"stage": stage} for stage, row in data["stages"].items()}
    rows |= {f"single, {REWORDED[name]}": row for name, row in [*reworded["rewordings"].items()][1:]}
    columns = {
        "stage": named,
        "tasks": number("episodes", "d"),
        "success": lambda _, row: rate(row["sr"], row["sr_interval"]),
        "held-out houses": lambda _, row: share(row.get("held_out")),
        "percent complete": lambda _, row: percent(row["pc"]),
        "GPT-4o, same tasks": lambda _, row: share(row.get("published", {}).get("gpt-4o")),
        "Qwen-2.5-7b, same tasks": lambda _, row: share(row.get("published", {}).get("qwen-2.5-7b-instruct")),
        "all of the paper's: GPT-4o, Qwen-2.5-7b": lambda _, row: (
            ", ".join(f"{sr:.1f} %" for _, sr in PAPER_STAGES[row["stage"]].values()) if "stage" in row else "-"
        ),
    }
    footer = f"Missing rate of retrieval, no model but the embedder: {data['line']['missing_at_3']:.1f} % at k = 3, "
    footer += f"{data['line']['missing_at_5']:.1f} % at k = 5. Seed {data['config']['seed']}, embedder "
    return grid(rows.items(), columns, f"{footer}{data['embedder']}; {source(data)}; rewordings: {source(reworded)}")


def memento_joined(data: Data) -> str:
    """Show the effect of k, without and with most noise."""
    lines = MEMENTO_TABLES["joined"](data).split("\n")
    return "\n".join(line for line in lines if "noise 0.25" not in line) + f"\n\n{source(data)}"


def memento_encoders(data: Data) -> str:
    """Show the simplest and best strategies' missing rates by encoder."""
    rows = {name: row for name, row in data["encoders"].items() if name.split(", ")[1] in ("similarity", "hybrid")}
    return f"{MEMENTO_TABLES['encoders']({'encoders': rows})}\n\n{source(data)}"


SUBSETS = ("base", "common_sense", "long_horizon")


def one_for_all(_: Data) -> str:
    """Compare small models of each world with a pair of all three."""
    lines: list[list[str]] = []
    heads = [f"{world}: {subset}" for world in ("EB-ALFRED", "EB-Habitat") for subset in SUBSETS]
    for kind, suffix in (("a pair per world", ""), ("one pair for three", "_household")):
        files = ("alfworld_valid_seen", "eb_alfred_deliveries", "eb_habitat_deliveries")
        first, *others = results = [read(f"{name}{suffix}") for name in files]
        found = [first["deliveries"], *(other["subsets"][subset] for other in others for subset in SUBSETS)]
        for name in DELIVERED.values():
            cells = [rate(rows[name]["success"], rows[name]["interval"], 0) for rows in found]
            lines.append([f"{name}, {kind}", *cells])
    commits = "; ".join(f"{data['commit'][:10]}, `{data['file']}`" for data in results)
    return markdown(["", "ALFWorld", *heads], lines, f"{first['machine']}; commits {commits}")


def benchmarks(alfworld: Data) -> str:
    """Make a row per benchmark: ours, a paper's figures, comparable or not."""

    def cell(row: Data, name: str = "success", interval: str = "interval") -> str:
        return "{:.1f} [{:.0f}, {:.0f}]".format(*(100 * value for value in (row[name], *row[interval])))

    def paper(world: str, subset: str, model: str, *settings: str) -> str:
        rows = {row.name: row.rows[subset][0] for row in load(world, "benchmark").published}
        return ", ".join(f"{rows[model + setting]:g}" for setting in settings)

    science = read("scienceworld")["agents"]
    rows = [
        [
            f"ALFWorld, {alfworld['tasks']}, the training seed that won most of dev",
            f"{alfworld['num_tasks']} x {alfworld['num_seeds']} seeds",
            *(cell(alfworld["deliveries"][name]) for name in DELIVERED.values()),
            cell(read("planner_critic")["agents"]["full"][0]),
            f"MemCompiler, Qwen-2.5-14B, valid_unseen: {', '.join(f'{value:g}' for value in PAPER_ALFWORLD)}",
            "no: other models, other games",
        ]
    ]
    others = {"eb_alfred": "; RoboMemory: " + paper("eb_alfred", "base", "RoboMemory: ", "Qwen2.5-VL-72B")}
    for world, title in (("eb_alfred", "EB-ALFRED"), ("eb_habitat", "EB-Habitat")):
        played, agents = read(f"{world}_deliveries"), read(world)["subsets"]["base"]
        models, ends = played["subsets"]["base"], agents["ends_itself"]
        qwen = paper(world, "base", "MemCompiler: Qwen-2.5-VL-32B, ", "no memory", "A-Mem", "compiled")
        rows += [
            [
                f"{title}, base, the agent ends the episode itself", str(ends["tasks"]), "-", "-", "-", cell(ends),
                f"MemCompiler, Qwen-2.5-VL-32B (A-Mem for static): {qwen}{others.get(world, '')}",
                "no: ours is symbolic, theirs sees images",
            ],
            [
                f"{title}, base, retries until the episode ends",
                f"{models['none']['tasks']} x {len(played['config']['seeds'])} seeds",
                *(cell(models[name]) for name in DELIVERED.values()), cell(agents["full"]), "the same", "no",
            ],
        ]  # fmt: skip
    qwen = paper("scienceworld", "test", "MemCompiler: Qwen-2.5-14B, ", "no memory", "static injection", "compiled")
    rows.append(
        [
            "ScienceWorld, test", str(science["none"]["episodes"]),
            *(cell(science[f"model {name}"]) for name in DELIVERED.values()), cell(science["planner_critic"]),
            f"MemCompiler, Qwen-2.5-14B: {qwen}", "no: same simulator, other tasks and descriptions",
        ]
    )  # fmt: skip
    for stage in ("single", "joint"):
        row = read("memento")["stages"][stage]
        other = row["published"]["gpt-4o"]
        gpt = f"MEMENTO, GPT-4o, {other['episodes']} of the same episodes: {100 * other['sr']:.1f}"
        own = ["-", "-", "-", cell(row, "sr", "sr_interval")]
        comparable = "in part: same episodes, theirs in habitat-sim"
        rows.append([f"MEMENTO, {stage}", str(row["episodes"]), *own, gpt, comparable])
    heads = ("benchmark", "tasks", "no memory", "static", "compiled", "agent by rules", "the paper's", "comparable")
    for row in rows:
        row[6] = re.sub("|".join(PAPERS), lambda paper: f"[{paper[0]}]({PAPERS[paper[0]]})", row[6])
    return markdown(heads, rows)


#
# ---- Speed and faults ------------------------------------------------------------------------------------------------
#
def speed(data: Data) -> str:
    """Compare the engine with TextWorld."""
    row = data.get("result", data)
    columns = {
        "": named, "native": number("native_steps_per_s", ",.0f"), "TextWorld": number("textworld_steps_per_s", ",.1f"),
        "ratio": number("ratio", ",.0f"),
    }  # fmt: skip
    footer = f"Loading a game takes {row['load_ms_p50']:.2f} ms (median), all {row['games']:,} games "
    footer += f"{row['load_all_s']:.1f} s; an environment takes {row['kilobytes_per_env']:.0f} kB."
    return grid([("steps/s, one thread, observations and admissible commands", row)], columns, footer)


def worlds(data: Data) -> str:
    """Show the speed of every native world."""
    columns = {
        "world": lambda name, _: f"`{name}`",
        "steps/s, 16 envs": lambda name, row: f"{row[f'{name}_steps_per_s']:,}",
        "steps/s, one env": lambda name, row: f"{row[f'{name}_single_env_steps_per_s']:,}",
        "snapshot": lambda name, row: f"{row[f'{name}_snapshot_us']:.1f} us",
    }
    rows = ((key.removesuffix("_tasks"), data) for key in data if key.endswith("_tasks"))
    where = source(data | {"command": "python experiments/bench.py --suite worlds"})
    return grid(rows, columns, f"One thread, texts included; {where}")


def graph_speed(data: Data) -> str:
    """Compare the knowledge graph with libraries, from Python."""
    update, khop = data["update_k2_us_p50"], data["khop2_us_p50"]
    times = {name: value / update["native"] for name, value in update.items()}
    kinds = {"update and 2 hops, us": update, "2 hops, us": khop, "update and 2 hops, times native": times}
    columns = {"": named, **{name: number(name, ",.1f") for name in update}}
    return grid(kinds.items(), columns, f"{data['graph_nodes']:,} nodes, median; {source(data)}")


def graph_ratio(data: Data) -> str:
    """Compare the graph in C++ with an adjacency list, by nodes, degree."""
    rows: dict[str, Data] = {}
    for key, value in data["update_k2_ratio"].items():
        nodes, _, degree = key.partition(" nodes, degree ")
        rows.setdefault(degree, {})[f"{int(nodes):,} nodes"] = value
    columns = {"degree": named, **{size: number(size, ".2f") for size in next(iter(rows.values()))}}
    return grid(rows.items(), columns, f"Update and 2 hops, median, native by bare; {source(data)}")


def long_life(data: Data) -> str:
    """Show what a pool costs in memories of growing size."""
    heads = ("episodes", "notes", "facts", "start of a task", "step after a change", "step without one",
             "tokens, mean and most", "RAM, MB", "disk, MB", "state, MB")  # fmt: skip
    cells = []
    for row in data["rows"]:
        times = (", ".join(f"{ms:.2f}" for ms in row["ms_p50_p99"][name]) for name in ("start", "step", "unchanged"))
        mean, most = row["tokens_mean_max"]
        counts = (f"{row[name]:,}" for name in ("episodes", "notes", "facts"))
        sizes = (f"{row['resident_mb']:.0f}", str(row.get("disk_mb", "-")), str(row["state_mb"]))
        cells.append([*counts, *times, f"{mean:.0f}, {most}", *sizes])
    return markdown(heads, cells, source(data))


def vector_speed(data: Data) -> str:
    """Show queries per second at 99 % recall of every library."""
    rows = {}
    for name, kinds in data["search_qps_at_recall_0.99"].items():
        count, _, spread = name.partition(" ")
        for kind, row in kinds.items():
            told = kind.replace("_", " ").replace("1 thread", "on one thread")
            ratio = data["search_qps_native_by_best_other"][f"{name} {kind}"]
            rows[f"{int(count):,} {spread or 'clustered'}, {told}"] = row | {"ratio": ratio}
    columns = {"queries/s": named}
    columns |= {name: number(name, ",.0f") for name in next(iter(rows.values())) if name != "ratio"}
    columns["native by the best other"] = number("ratio", ".1f")
    footer = f"{data['vector_dim']} dimensions, {data['vector_queries']:,} queries, recall at 10; {source(data)}"
    return grid(rows.items(), columns, footer)


def sampling(data: Data) -> str:
    """Show prefill and decode with SmolLM2's shape beside other programs."""

    def speed_of(what: str, batch: str) -> Cell:
        return lambda name, _: f"{data[f'{what}_tokens_per_s'][name][batch][0]:,.0f}"

    columns: dict[str, Cell] = {"tokens/s": lambda name, _: f"{name} ({data['contenders'][name]})"}
    for what in ("prefill", "decode"):
        columns |= {f"{what}, batch {n}": speed_of(what, str(n)) for n in data["settings"]["batches"]}
    footer = f"float32, median of {data['settings']['rounds']} rounds; {source(data)}"
    return grid(((name, {}) for name in data["contenders"]), columns, footer)


def topology(data: Data) -> str:
    """Show the programs that XLA compiles for a TPU."""

    def gigabytes(key: str) -> Cell:
        return lambda _, row: f"{row[key] / 1e9:.1f}"

    def copies(_: str, row: Data) -> str:
        return "-" if row["copies"] is None else f"{row['copies']}"

    sizes = {key: gigabytes(key) for key in ("arguments", "temporaries", "outputs", "total")}
    columns = {"GB per device, XLA": named, **sizes, "weights that a token copies": copies}
    return grid(((row["name"], row) for row in data["compiled"]), columns, source(data))


def drop_in(row: Data) -> str:
    """Compare verl-agent's rollout over the original's envs and over ours."""

    def median(name: str) -> float:
        return float(statistics.median(row[name]))

    games = f"{row['episodes']} games x 50 steps"
    rows = [
        [f"list {row['games']:,} games, s", f"{median('original_list_s'):.1f}",
         f"{row['drop_in_first_list_s']:.1f}, again {median('drop_in_list_s'):.2f}", ""],
        [f"start {row['episodes']} envs, s", f"{row['actors']} of them: {median('original_make_s'):.2f}",
         f"{row['drop_in_make_s'][0]:.2f}, again {row['drop_in_make_s'][-1]:.2f}", ""],
        [f"{games}, s", f"{row['original_scaled_s']:,}", f"{row['drop_in_median_s']:.2f}", f"{row['ratio']:,}"],
        [f"{games}, processor time, s", f"{row['original_scaled_cpu_s']:,}", f"{median('drop_in_cpu_s'):.2f}",
         f"{row['ratio_cpu']:,}"],
    ]  # fmt: skip
    times = {side: " and ".join(f"{one:,.2f}" for one in row[f"{side}_rollout_s"]) for side in ("drop_in", "original")}
    return markdown(
        ["verl-agent's rollout", "alfworld 0.4.2", "drop-in", "ratio"],
        rows,
        f"The original played {row['actors']} of the games in a process each ({times['original']} s), without Ray; its "
        f"time is scaled to {row['episodes']}. Ours, all games: {times['drop_in']} s. Load before each: "
        f"{', '.join(map(str, row['loads']))}. Answers that differ: {row['mismatches']}. {source(row)}",
    )


def table_of_faults(attacks: Mapping[str, Data]) -> str:
    """Attack, tries, landed, faults; the last row sums up."""
    rows = {name: (row["tries"], row["landed"], len(row["faults"])) for name, row in attacks.items()}
    rows["all"] = tuple(map(sum, zip(*rows.values())))
    return markdown(
        ["attack", "tries", "landed", "faults"], [[name, *map("{:,}".format, row)] for name, row in rows.items()]
    )


def faults(data: Data) -> str:
    """Show tries and faults of the long campaign of attacks."""
    hours = sum(attack["seconds"] for attack in data["attacks"].values()) / 3600
    kinds: dict[str, Data] = {}
    for name, row in data["attacks"].items():
        kind = kinds.setdefault(f"{name.partition('_')[0]}*", {"tries": 0, "landed": 0, "faults": []})
        kinds[f"{name.partition('_')[0]}*"] = {key: kind[key] + row[key] for key in kind}
    return f"{table_of_faults(kinds)}\n\n{hours:.1f} hours; seed {data['seed']}; {source(data)}"


def server_faults(data: Data) -> str:
    """Show the campaign against a server and its durable writes per second."""
    row = data["attacks"]["servers"]
    heads = ["processes killed", "connections cut", "servers killed", "in a write", "events acknowledged", "faults"]
    names = ["worker_kills", "connection_kills", "server_kills", "kills_in_a_write", "events_acknowledged"]
    counts = markdown(heads, [[*(f"{row[name]:,}" for name in names), str(len(row["faults"]))]])
    speeds = [
        [
            f"{SERVER_STORES[name]}, {disk}", " ".join(f"{rate:,.0f}" for rate in one["events_per_s"]),
            *(f"{one[percentile]:.2f}" for percentile in ("p50_ms", "p99_ms")),
        ]
        for disk, stores in data["throughput"].items()
        for name, one in stores.items()
    ]  # fmt: skip
    speed = markdown(["store", "events/s, each round", "p50, ms", "p99, ms"], speeds)
    facts = f"{row['seconds']:.0f} s; {row['scopes_written']} scopes; {data['server']}"
    return f"{counts}\n\n{speed}\n\n{facts}; {source(data)}"


def clients(data: Data) -> str:
    """Show the load of many MCP clients on both engines."""
    engines = [(SERVER_STORES[name], data[name]) for name in SERVER_STORES if name in data]
    tools = grid(
        [(f"{engine}, {tool}", row) for engine, one in engines for tool, row in one["tools"].items()],
        {"store, tool": named, "calls": number("calls", ","), "p50, ms": number("p50_ms", ",.0f"),
         "p99, ms": number("p99_ms", ",.0f")},
    )  # fmt: skip
    whole = grid(
        engines,
        {"store": named, "calls/s": number("calls_per_s", ".1f"), "events/s": number("events_per_s", ".1f"),
         "p99 of a user's first call, ms": number("first_call_ms_p99", ",.0f"),
         "server, MB": number("server_mb", ".0f"), "KB a user": number("user_kb", ".0f"),
         "refused by the limit": number("refused", "d"), "hung": number("hung", "d"),
         "errors": lambda _, row: str(len(row["errors"])), "answered and lost": lambda _, row: str(len(row["lost"])),
         "stopped in, s": number("stop_s", ".1f")},
    )  # fmt: skip
    load = f"{data['clients']} clients for {data['seconds']:.0f} s, {data['pause']:g} s between calls"
    return f"{tools}\n\n{whole}\n\n{load}; {source(data)}"


FLEET, ROBOT_EVENTS_PER_S, HOURS, HOST_GB = 10_000, 0.5, 8, 64
"""Assumed: robots; events of each; hours a day; memory of a host."""


def scale(data: Data) -> str:
    """Compute what a fleet needs from measured constants, the scarcest first."""
    server, memory = data["postgresql"], read("bench_memory_lifelong")
    servers = read("faults_postgresql")
    commits, recovery = servers["throughput"]["disk"]["postgresql"], servers["recovery"]
    calls = 2 * ROBOT_EVENTS_PER_S  # a recall for each event
    state_mb, hot_mb = memory["lifelong_state_mb"], server["user_kb"] / 1024
    rate = statistics.median(commits["events_per_s"])
    rows = [
        ("calls", f"{calls:g}/s", "serving program", f"{server['calls_per_s']:.0f}/s", server["calls_per_s"] / calls),
        ("durable commits", f"{ROBOT_EVENTS_PER_S:g}/s", "PostgreSQL server", f"{rate:.0f}/s",
         rate / ROBOT_EVENTS_PER_S),
        ("hot scopes", "1", "serving program", f"{MAX_USERS}", MAX_USERS),
        ("memory, new", f"{hot_mb:.1f} MB", f"host of {HOST_GB} GB", f"{HOST_GB} GB", 1024 * HOST_GB / hot_mb),
        (f"memory, {memory['graph_nodes']:,} things", f"{state_mb:.0f} MB", f"host of {HOST_GB} GB", f"{HOST_GB} GB",
         1024 * HOST_GB / state_mb),
    ]  # fmt: skip
    limits = markdown(
        ["a robot needs", "", "one", "gives", "robots", f"for {FLEET:,}"],
        [[what, need, one, gives, f"{robots:,.0f}", f"{-(-FLEET // max(int(robots), 1)):,}"]
         for what, need, one, gives, robots in sorted(rows, key=lambda row: row[-1])],
    )  # fmt: skip
    events, snapshot_mb = FLEET * ROBOT_EVENTS_PER_S, max(16, state_mb)
    per_day = lambda num_bytes: f"{events * HOURS * 3600 * num_bytes / 1e9:,.0f} GB a day"  # noqa: E731
    things, opening_s = f"{memory['graph_nodes']:,} things", memory["lifelong_restore_s"]
    whole = markdown(
        ["of the fleet", "", "from"],
        [
            ["events", f"{events:,.0f}/s", f"{ROBOT_EVENTS_PER_S:g}/s a robot, {HOURS} hours a day, assumed"],
            ["rows", per_day(server["row_bytes"]), f"{server['row_bytes']:.0f} bytes an event"],
            ["write-ahead log", per_day(server["wal_bytes"]), f"{server['wal_bytes']:.0f} bytes an event"],
            ["a partition of 64, at most", f"{FLEET * snapshot_mb / 64 / 1024:,.1f} GB",
             f"{FLEET / 64:.0f} scopes, each with {snapshot_mb:.0f} MB of events before a snapshot"],
            ["all states", f"{FLEET * state_mb / 1024:,.0f} GB", f"{things} each"],
            ["recovery of a server", f"{recovery['recovery_s']:,.1f} s",
             f"a kill after {recovery['events']:,} events, {recovery['log_mb']:,.0f} MB of log, no checkpoint"],
            ["its first new event", f"{recovery['append_s']:.2f} s", "acknowledged after that"],
            ["a scope is read again", f"{recovery['read_s']:.2f} s", f"its {recovery['read_events']:,} events"],
            [f"recovery of a program, {MAX_USERS} scopes", f"{MAX_USERS * opening_s:,.0f} s on one core",
             f"{opening_s:.2f} s a scope of {things}"],
        ],
    )  # fmt: skip
    files = "bench_clients.json, faults_postgresql.json, bench_memory_lifelong.json"
    return f"{limits}\n\n{whole}\n\nFrom {files}; loaded machine"


SERVER_STORES = {"embedded": "SQLite", "postgresql": "PostgreSQL", "langgraph": "LangGraph's PostgresStore",
                 "mem0": "mem0 on pgvector, word vectors", "mem0_minilm": "mem0 on pgvector, MiniLM"}  # fmt: skip


#
# ---- Pages -----------------------------------------------------------------------------------------------------------
#
TABLES: dict[str, Callable[[Data], str]] = {
    "benchmarks": benchmarks,
    "quick_start": deliveries,
    "quick_start_success": quick_start_success,
    "one_for_all": one_for_all,
    "alfworld_seeds": training_seeds,
    "planner_critic": planner_critic,
    "robot_faults": robot_faults,
    "memento": memento,
    "memento_captions": lambda data: f"{MEMENTO_TABLES['captions'](data)}\n\n{source(data)}",
    "memento_joined": memento_joined,
    "memento_encoders": memento_encoders,
    "scienceworld": scienceworld,
    "scienceworld_control": scienceworld_control,
    "eb_alfred": planner_benchmark("eb_alfred", *COMPARED),
    "eb_habitat": planner_benchmark("eb_habitat", *COMPARED),
    "eb_alfred_deliveries": planner_benchmark("eb_alfred"),
    "eb_habitat_deliveries": planner_benchmark("eb_habitat"),
    "eb_alfred_revisited": revisited("eb_alfred"),
    "eb_habitat_revisited": revisited("eb_habitat"),
    "eb_habitat_relations": eb_habitat_relations,
    **dict.fromkeys(("locomo", "beam"), dialogues),
    "calibration": lambda data: f"{calibration.table(data)}\n\n{source(data)}",
    **dict.fromkeys(
        ("corrections", "corrections_encoder"), lambda data: f"{corrections.table(data)}\n\n{source(data)}"
    ),
    **dict.fromkeys(
        ("robot_week", "robot_week_encoder"),
        lambda data: f"{load('robot_week', 'benchmark').table(data)}\n\n{source(data)}",
    ),
    **dict.fromkeys(
        ("life", "life_conditions", "life_teacher", "life_trained", "life_trained_conditions"),
        lambda data: f"{load('life', 'benchmark').table(data)}\n\n{source(data)}",
    ),
    "grpo_habits": grpo,
    "noisy_triples": noisy_triples,
    "online_bank": online_bank,
    "soft_probe": soft_probe,
    "baseline_recall": recall,
    "baseline_agents": agents,
    **dict.fromkeys(("baseline_agents_eb_alfred", "baseline_agents_eb_habitat"), repeated),
    **dict.fromkeys(("baselines_alfworld", "baselines_alfworld_read"), methods),
    **dict.fromkeys(("habits", "procedures", "change", "alfworld_judging_seed0"), controls),
    **dict.fromkeys(("ablations", "no_bank_procedures"), ablations),
    **dict.fromkeys(("soft_budget", "soft_budget_procedures"), soft_budget),
    **dict.fromkeys(("alfworld_qwen15", "alfworld_qwen05", "alfworld_smollm2"), served),
    **dict.fromkeys(("alfworld_qwen15_commands", "alfworld_qwen05_commands"), served),
    "faults": faults,
    "faults_postgresql": server_faults,
    "clients": clients,
    "scale": scale,
    "speed": speed,
    "worlds": worlds,
    "graph_speed": graph_speed,
    "graph_ratio": graph_ratio,
    "long_life": long_life,
    "vector_speed": vector_speed,
    "sampling": sampling,
    "drop_in": drop_in,
    "plan_topology_v5e16": topology,
}
FILES = {
    "benchmarks": "alfworld_judging_seed2", "quick_start": "grpo_cpu", "quick_start_success": "grpo_cpu",
    "one_for_all": "alfworld_valid_seen", "alfworld_seeds": "alfworld_judging_seed0", "speed": "bench_alfworld",
    "worlds": "bench_worlds", "graph_speed": "bench_graph_libraries", "graph_ratio": "bench_graph",
    "vector_speed": "bench_vectors", "sampling": "bench_models", "drop_in": "bench_drop_in",
    "clients": "bench_clients", "scale": "bench_clients",
}  # fmt: skip
"""Table -> result, where their names differ."""


def tidy(text: str) -> str:
    """Move "%" from cells to heads; drop zero tokens' column."""

    def rewrite(match: re.Match) -> str:
        head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in match[0].splitlines())
        columns = []
        for name, *cells in zip(head, *rows, strict=True):
            full = [cell for cell in cells if cell not in ("", "-")]
            if full and all(cell.count(" %") == 1 for cell in full):
                name, cells = f"{name}, %", [cell.replace(" %", "") for cell in cells]
            if name == "tokens/step" and set(cells) <= {"-", "0"}:  # of agents without a model
                continue
            columns.append([name, *cells])
        head, *rows = zip(*columns)
        return markdown(head, rows) + "\n"

    return re.sub(r"(?:^\|.*\|\n)+", rewrite, text + "\n", flags=re.MULTILINE).rstrip("\n")


def table(name: str) -> str:
    """Render a table from its result, or exit naming both."""
    if name not in TABLES:
        sys.exit(f"table {name}: expected one of {', '.join(TABLES)}")
    file = FILES.get(name, name)
    try:
        return tidy(TABLES[name](read(file)))
    except (OSError, LookupError, TypeError, ValueError) as error:
        sys.exit(f"table {name}: {file}.json cannot be rendered ({type(error).__name__}: {error}); make it anew")


def render(text: str) -> tuple[str, list[str]]:
    """Rewrite every table in `text`; the names are of those that differ."""
    stale = []

    def fill(match: re.Match) -> str:
        new = f"<!-- table: {match[1]} -->\n{table(match[1])}\n<!-- end -->"
        stale.extend([match[1]] * (new != match[0]))
        return new

    return re.sub(r"<!-- table: (\w+) -->\n(?:(?!<!--).)*<!-- end -->", fill, text, flags=re.DOTALL), stale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is out of date")
    parser.add_argument("--pack", nargs="*", default=(), metavar="RESULT", help="results whose episodes are packed")
    options = parser.parse_args()
    for name in options.pack:
        pack_episodes(RESULTS / f"{name}.json")
    pages = {path: render(path.read_text()) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
    stale = {path: new for path, new in pages.items() if new[1]}
    if options.check and stale:
        names = "; ".join(f"{path.relative_to(ROOT)}: {', '.join(tables)}" for path, (_, tables) in stale.items())
        sys.exit(f"out of date: {names}; run: python experiments/tables.py")
    for path, (text, _) in stale.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
