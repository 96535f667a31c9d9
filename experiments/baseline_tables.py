"""Tables of other papers' memory methods and agents, for `tables.py`: a result's data and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import versus
from embodied_mem.evaluation.tables import difference, markdown, percent, rate
from embodied_mem.language.chat import Prices

PRICES = Prices(prompt=0.15, completion=0.60)
"""Dollars of a million tokens for the dollar equivalents: the list price of gpt-4o-mini. Nobody was paid."""

PAPERS = {
    "none": (46.27, 61.19), "g_memory": (67.16, 74.62), "mem0": (12.69, 62.69), "langmem": (36.57, 62.69),
    "a_mem": (11.19, 88.81), "memgen": (42.54, 41.04), "compiled": (82.16, 91.45),
}  # fmt: skip
"""Success on ALFWorld in percent with Qwen-2.5-14B and Qwen-3.5-27B: MemCompiler, table 2, which names no release of
Mem0. Other models and other games."""


_RUNS = 2
"""Runs of an agent in a table: a third changes little, and stands in the result."""


def recall_table(data: dict[str, Any], source: str) -> str:
    """What recalled lines tell of where the goal's things are, and what that costs."""
    head = [
        "method",
        "places told",
        "by lines of this room",
        "against static, paired",
        "executor tokens",
        "calls a task",
        "ms",
    ]
    head += [
        "per episode observed: calls",
        "tokens",
        "dollars per 1,000 episodes",
        "texts (kB) after 100",
        "1,000",
        "all",
    ]
    rows = []
    for name, tried in data["rows"].items():
        [row] = tried.values()
        cells = [
            name, rate(row["told"], row["interval"]), percent(row["told_here"]),
            "-" if name == "static" else difference(row["difference_to_static"]),
            f"{row['tokens']:.0f}", f"{row['calls']:.0f}", f"{row['milliseconds']:.1f}",
        ]  # fmt: skip
        rows.append([*cells, *(_observed(row["observed"]) if "observed" in row else ["-"] * 6)])
    footer = (
        f"{data['num_tasks']} games of {data['tasks']}, {data['bank']:,} episodes observed; dollars at {PRICES.prompt} "
    )
    return markdown(head, rows, f"{footer}and {PRICES.completion} a million tokens sent and received; {source}")


def _observed(grown: list[dict[str, int]]) -> list[str]:
    last = grown[-1]
    tokens = last["tokens_sent"] + last["tokens_received"]
    dollars = PRICES.cost(last["tokens_sent"], last["tokens_received"]) / last["episodes"]
    return [
        f"{last['calls'] / last['episodes']:.2f}", f"{tokens / last['episodes']:,.0f}", f"{1000 * dollars:.2f}",
        *(f"{one['texts']:,} ({one['text_bytes'] / 1000:.0f})" for one in grown),
    ]  # fmt: skip


def agents_table(data: dict[str, Any], source: str) -> str:
    """Agents that play their tasks again without clearing memory."""
    head = ["agent", "run", "success", "against the first run, paired", "steps"]
    head += ["steps against the first run, paired"]
    rows = [
        [
            name, str(number), rate(row["success"], row["interval"]),
            difference(row.get("success_difference_to_first_run")), f"{row['steps']:.2f}",
            difference(row.get("steps_difference_to_first_run"), 1, 2),
        ]
        for name, runs in data["agents"].items()
        for number, row in enumerate(runs[:_RUNS], 1)
    ]  # fmt: skip
    return markdown(
        head, rows, f"{data['num_tasks']} games of {data['tasks']}, at most {data['max_steps']} steps; {source}"
    )


def repeated_table(data: dict[str, Any], source: str) -> str:
    """The same on the subsets of a world: success and steps of each run; differences are to the agent's first run."""
    head = ["agent", "run"]
    for subset in data["repeated_trials"]:
        head += [f"{subset}: success", "against the first run, paired", "steps"]
    rows = []
    for name, runs in next(iter(data["repeated_trials"].values())).items():
        if name == "first_reading":  # differs little from `full`; it is in the result
            continue
        for number in range(len(runs[:_RUNS])):
            cells = [name, str(number + 1)]
            for row in (subset[name][number] for subset in data["repeated_trials"].values()):
                against = difference(row.get("success_difference_to_first_run"))
                cells += [rate(row["success"], row["interval"]), against, f"{row['steps']:.1f}"]
            rows.append(cells)
    return markdown(head, rows, f"at most {data['protocol']['max_steps']} steps; {source}")


def deliveries_table(data: dict[str, Any], source: str) -> str:
    """Compare memory methods with the deliveries of this package, played by one executor.

    With an empty bank every method says what `static` says, so these rows are left out; so is recall at every step.
    Another bank is compared to the committed one.
    """
    head = ["delivery", "success", "against none, paired", "steps", "tokens of memories/step"]
    head += ["executor tokens/step", "memory's tokens/step", "the paper's: Qwen-2.5-14B, Qwen-3.5-27B"]
    rows = [
        [
            name, rate(row["success"], row["interval"]), versus(row), f"{row['steps']:.1f}",
            f"{row['memory_tokens_per_step']:.0f}", f"{row['executor_tokens_per_step']:.0f}",
            f"{row['compiler_tokens_per_step']:.0f}",
            _papers(name),
        ]
        for name, row in data["deliveries"].items()
        if "(rule" not in name or not ("bank=empty" in name or "_steps" in name)
    ]  # fmt: skip
    plainer = {name: _plainer(name) for name in data["deliveries"]}
    pairs = {name: other for name, other in plainer.items() if other != name and other in plainer}
    if pairs:
        head.insert(3, "against its plainer row, paired")
        won: dict[str, dict[tuple[str, int], bool]] = {}
        for one in episodes_of(data):
            won.setdefault(one.agent, {})[one.task, one.seed] = bool(one.won)
        for row in rows:
            row.insert(3, _against(won[row[0]], won[pairs[row[0]]]) if row[0] in pairs else "-")
    games = f"{data['num_tasks']} games x {data['num_seeds']} seeds, at most {data['max_steps']} steps"
    return markdown(head, rows, f"{games}; {source}")


def _papers(name: str) -> str:
    method, _, setting = name.partition(" ")
    found = PAPERS.get(method.removesuffix("_1").removesuffix("_2"), ())
    return "-" if "bank=" in setting or not found else ", ".join(map(str, found))


def _plainer(name: str) -> str:
    """The row that differs by one setting: of another bank that of the committed, of recall at every step once."""
    told, setting, _ = name.partition(" bank=")
    return told if setting else name.replace("_steps", "", 1)


def _against(row: dict[tuple[str, int], bool], other: dict[tuple[str, int], bool]) -> str:
    tasks = sorted({task for task, _ in row})
    seeds = sorted({seed for _, seed in row})
    sides = [[[side[task, seed] for seed in seeds] for task in tasks] for side in (row, other)]
    return difference(paired_difference(*sides))


BASELINES: dict[str, Callable[[dict[str, Any], str], str]] = {
    "baseline_recall": recall_table,
    "baseline_agents": agents_table,
    "baseline_agents_eb_alfred": repeated_table,
    "baseline_agents_eb_habitat": repeated_table,
    "baselines_alfworld": deliveries_table,
    "baselines_alfworld_read": deliveries_table,
}
"""Table by result."""
