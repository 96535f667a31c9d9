"""Writes the tables of README.md and docs/ from the files in experiments/results/, so that no number is typed.

    python experiments/tables.py            # rewrite them
    python experiments/tables.py --check    # exit with 1 if one is not up to date

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; NAME is one of the functions below.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from embodied_mem.evaluation.memento_tables import PAPER_STAGES

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"


def _source(data: dict) -> str:
    """Where a result comes from."""
    return f"{data['machine']}; commit {data['commit'][:10]}; `{data['command']}`"


def deliveries(name: str) -> str:
    """The comparison of deliveries in a report."""
    if not (RESULTS / f"{name}.json").exists():
        return "Not run yet; the log says what is known."
    data = json.loads((RESULTS / f"{name}.json").read_text())
    lines = [
        "| delivery | success | 95 % interval | against none, paired | steps | executor tokens/step | ms/step |",
        "|---|---|---|---|---|---|---|",
    ]
    for delivery, row in data["deliveries"].items():
        low, high = row["interval"]
        versus = "-"
        if "difference_interval" in row:
            versus = "{:+.1f} [{:+.1f}, {:+.1f}]".format(
                *(100 * v for v in (row["difference_to_none"], *row["difference_interval"]))
            )
        lines.append(
            f"| {delivery} | {100 * row['success']:.1f} % | {100 * low:.1f} to {100 * high:.1f} | {versus} "
            f"| {row['steps']:.1f} | {row['executor_tokens_per_step']:.0f} | {row['latency_ms_per_step']:.1f} |"
        )
    config = data["config"]["world"]
    lines += [
        "",
        f"{data['num_tasks']} games x {data['num_seeds']} seeds, at most {data.get('max_steps', config['max_steps'])} "
        f"steps; {_source(data)}",
    ]
    return "\n".join(lines)


def quick_start() -> str:
    """What the main job ends with."""
    return deliveries("grpo_cpu")


def alfworld() -> str:
    """The long run on ALFWorld's own games."""
    return deliveries("alfworld_valid_seen")


def speed() -> str:
    """The engine against TextWorld."""
    data = json.loads((RESULTS / "bench_alfworld.json").read_text())
    row = data.get("result", data)
    return "\n".join(
        [
            "| | native | TextWorld | ratio |",
            "|---|---|---|---|",
            f"| steps/s, one thread, observations and admissible commands | {row['native_steps_per_s']:,.0f} "
            f"| {row['textworld_steps_per_s']:,.1f} | {row['ratio']:,.0f} |",
            "",
            f"Loading a game takes {row['load_ms_p50']:.2f} ms (median), all {row['games']:,} games "
            f"{row['load_all_s']:.1f} s; an environment takes {row['kilobytes_per_env']:.0f} kB.",
        ]
    )


def graph_speed() -> str:
    """The knowledge graph beside libraries, from Python."""
    data = json.loads((RESULTS / "bench_memory.json").read_text())
    update, khop = data["update_k2_us_p50"], data["khop2_us_p50"]
    lines = ["| | " + " | ".join(update) + " |", "|---|" + "---|" * len(update)]
    for what, row in (("update and 2 hops, us", update), ("2 hops, us", khop)):
        lines.append(f"| {what} | " + " | ".join(f"{value:,.1f}" for value in row.values()) + " |")
    lines += [
        "",
        f"{data['graph_nodes']:,} nodes, median. A whole step of `LifelongMemory` beside them and "
        f"{data['episodic_entries']:,} episodes: p50 {data['lifelong_step_ms_p50']:.2f} ms, "
        f"p99 {data['lifelong_step_ms_p99']:.2f} ms. {_source(data)}",
    ]
    return "\n".join(lines)


def sampling() -> str:
    """Prefill and decode with SmolLM2's shape beside other programs."""
    data = json.loads((RESULTS / "bench_models.json").read_text())
    batches = [str(batch) for batch in data["settings"]["batches"]]
    heads = [f"{what}, batch {batch}" for what in ("prefill", "decode") for batch in batches]
    lines = ["| tokens/s | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name, version in data["contenders"].items():
        values = [data[f"{what}_tokens_per_s"][name][batch][0] for what in ("prefill", "decode") for batch in batches]
        lines.append(f"| {name} ({version}) | " + " | ".join(f"{value:,.0f}" for value in values) + " |")
    return "\n".join([*lines, "", f"float32, median of {data['settings']['rounds']} rounds; {_source(data)}"])


def planner_critic() -> str:
    """The planner-critic agent, what each part of it is worth, and playing the tasks a second time."""
    data = json.loads((RESULTS / "planner_critic.json").read_text())
    lines = [
        "| agent | run | success | 95 % interval | steps | against full, paired | against the first run, paired |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, runs in data["agents"].items():
        for number, row in enumerate(runs, 1):
            low, high = row["interval"]
            lines.append(
                f"| {name} | {number} | {100 * row['success']:.1f} % | {100 * low:.1f} to {100 * high:.1f} "
                f"| {row['steps']:.2f} | {_steps(row, 'full')} | {_steps(row, 'first_run')} |"
            )
    lines += [
        "",
        f"{data['num_tasks']} games of {data['tasks']}, at most {data['max_steps']} steps, {data['lives']} life; "
        f"{_source(data)}",
    ]
    return "\n".join(lines)


def _steps(row: dict, other: str) -> str:
    """The paired difference of steps to another row, with its interval."""
    difference = row.get(f"steps_difference_to_{other}")
    return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*difference) if difference else "-"


def memento() -> str:
    """MEMENTO's stages beside two models of the paper: on the same episodes where published, else as in its tables."""
    if not (RESULTS / "memento.json").exists():
        return "Not run yet; the log says what is known."
    data = json.loads((RESULTS / "memento.json").read_text())
    lines = [
        "| stage | tasks | success | 95 % interval | held-out houses | percent complete | GPT-4o, same tasks "
        "| Qwen-2.5-7b, same tasks | all of the paper's: GPT-4o, Qwen-2.5-7b |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for stage, row in data["stages"].items():
        low, high = row["sr_interval"]
        held_out = f"{100 * row['held_out']['sr']:.1f} % of {row['held_out']['episodes']}" if "held_out" in row else "-"
        success = f"{100 * row['sr']:.1f} % | {100 * low:.1f} to {100 * high:.1f}"
        same = [row.get("published", {}).get(model) for model in ("gpt-4o", "qwen-2.5-7b-instruct")]
        others = [f"{100 * one['sr']:.1f} % of {one['episodes']}" if one else "-" for one in same]
        paper = ", ".join(f"{sr:.1f} %" for _, sr in PAPER_STAGES[stage].values())
        cells = [stage, str(row["episodes"]), success, held_out, f"{100 * row['pc']:.1f} %", *others, paper]
        lines.append(f"| {' | '.join(cells)} |")
    line = data["line"]
    lines += [
        "",
        f"Missing rate of retrieval, no model but the embedder: {line['missing_at_3']:.1f} % at k = 3, "
        f"{line['missing_at_5']:.1f} % at k = 5. Seed {data['config']['seed']}, embedder {data['embedder']}; "
        f"{_source(data)}",
    ]
    return "\n".join(lines)


def worlds() -> str:
    """Speed of every native world."""
    data = json.loads((RESULTS / "bench_worlds.json").read_text())
    ids = [key.removesuffix("_tasks") for key in data if key.endswith("_tasks")]
    lines = ["| world | steps/s, 16 envs | steps/s, one env | snapshot |", "|---|---|---|---|"]
    for name in ids:
        lines.append(
            f"| `{name}` | {data[f'{name}_steps_per_s']:,} | {data[f'{name}_single_env_steps_per_s']:,} "
            f"| {data[f'{name}_snapshot_us']:.1f} us |"
        )
    command = "python experiments/bench.py --suite worlds"
    return "\n".join(
        [*lines, "", f"One thread, texts included; {data['machine']}; commit {data['commit'][:10]}; `{command}`"]
    )


def planner_benchmark(world: str, name: str = "") -> str:
    """Agents or deliveries on a world's subsets, from the file `name` or the world's, and what papers report."""
    name = name or world
    if not (RESULTS / f"{name}.json").exists():
        return "Not run yet; the log says what is known."
    from experiments.evaluate_planner import table

    data = json.loads((RESULTS / f"{name}.json").read_text())
    tasks = {row["tasks"] for agents in data["subsets"].values() for row in agents.values()}
    shown, config = table(world, data["subsets"]), data["config"]
    played = "nothing is drawn"
    if config.get("deliveries") and "seeds" in config:
        played = f"{len(config['seeds'])} seeds of play at temperature {config['temperature']:g}"
    return f"{shown}\n\n{max(tasks)} tasks a subset, at most 30 steps, {played}; {_source(data)}"


def eb_alfred() -> str:
    """EB-ALFRED."""
    return planner_benchmark("eb_alfred")


def eb_habitat() -> str:
    """EB-Habitat."""
    return planner_benchmark("eb_habitat")


def deliveries_on(world: str, name: str) -> str:
    """Deliveries of memory on EB-ALFRED or EB-Habitat; the published rows stand in the world's own table."""
    lines = planner_benchmark(world, name).split("\n")
    return "\n".join(line for line in lines if not line.startswith("| *"))


def embodiedbench() -> str:
    """Success on EB-ALFRED and EB-Habitat in one table: our agents and deliveries, and some published rows."""
    from experiments.published import PUBLISHED

    subsets = ("base", "common_sense", "long_horizon")
    rows: dict[str, list[str]] = {}
    for column, world in enumerate(("eb_alfred", "eb_habitat")):
        files = [RESULTS / f"{name}.json" for name in (f"{world}_deliveries", world)]
        ours = {
            (name, subset): "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * v for v in (row["success"], *row["interval"])))
            for file in files
            if file.exists()
            for subset, agents in json.loads(file.read_text())["subsets"].items()
            for name, row in agents.items()
        }
        theirs = {
            (f"*{published.name}*", subset): "-" if success is None else f"{success:g} %"
            for published in PUBLISHED[world]
            for subset, (success, _) in published.rows.items()
        }
        for (name, subset), text in {**ours, **theirs}.items():
            name = _AGENTS.get(name, name)
            rows.setdefault(name, ["-"] * 6)[3 * column + subsets.index(subset)] = text
    heads = [f"{world}: {subset}" for world in ("EB-ALFRED", "EB-Habitat") for subset in subsets]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    shown = [*_AGENTS.values(), *(f"*{name}*" for name in _COMPARED)]
    lines += [f"| {name} | {' | '.join(rows[name])} |" for name in shown if name in rows]
    return "\n".join(lines)


_AGENTS = {
    "none": "small models, no memory",
    "static": "small models, static injection",
    "compiled": "small models, compiled",
    "full": "planner-critic",
    "no_critic": "planner-critic without critic",
    "no_memory": "planner-critic without memory",
}
_COMPARED = (
    "MemCompiler: Qwen-2.5-VL-32B, no memory",
    "MemCompiler: Qwen-2.5-VL-32B, A-Mem",
    "MemCompiler: Qwen-2.5-VL-32B, compiled",
    "MemCompiler: Gemini, no memory",
    "MemCompiler: Gemini, A-Mem",
    "RoboMemory: Qwen2.5-VL-72B",
    "RoboMemory without critic",
)


def one_for_all() -> str:
    """Success of the small models: a pair trained on each world beside one pair trained on three."""
    subsets = ("base", "common_sense", "long_horizon")
    lines = [f"| | ALFWorld | {' | '.join(f'{w}: {s}' for w in ('EB-ALFRED', 'EB-Habitat') for s in subsets)} |"]
    lines.append("|" + "---|" * 8)
    sources = []
    for kind, suffix in (("a pair per world", ""), ("one pair for three", "_household")):
        files = [f"alfworld_valid_seen{suffix}", f"eb_alfred_deliveries{suffix}", f"eb_habitat_deliveries{suffix}"]
        paths = [RESULTS / f"{name}.json" for name in files]
        if not all(path.exists() for path in paths):
            return "Not run yet; the log says what is known."
        alfworld, *others = (json.loads(path.read_text()) for path in paths)
        found = [alfworld["deliveries"], *(other["subsets"][subset] for other in others for subset in subsets)]
        for name in ("none", "static", "compiled"):
            cells = [
                "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * v for v in (rows[name]["success"], *rows[name]["interval"])))
                for rows in found
            ]
            lines.append(f"| {name}, {kind} | {' | '.join(cells)} |")
        sources += [_source(data) for data in (alfworld, *others)] if suffix else []
    return "\n".join([*lines, "", *(f"- {source}" for source in sources)])


def scienceworld() -> str:
    """ScienceWorld."""
    if not (RESULTS / "scienceworld.json").exists():
        return "Not run yet; the log says what is known."
    from experiments.evaluate_scienceworld import table

    data = json.loads((RESULTS / "scienceworld.json").read_text())
    number = next(iter(data["agents"].values()))["episodes"]
    config = data["config"]
    return (
        f"{table(data['agents'])}\n\n{number} episodes: {config['variations']} {config['split']} variations of "
        f"each of the 30 tasks, at most {config['max_steps']} steps; memory: {len(data['memory'])} gold paths of "
        f"training variations; {_source(data)}"
    )


TABLES = {
    "scienceworld": scienceworld,
    "one_for_all": one_for_all,
    "graph_speed": graph_speed,
    "sampling": sampling,
    "eb_alfred": eb_alfred,
    "eb_habitat": eb_habitat,
    "eb_alfred_deliveries": lambda: deliveries_on("eb_alfred", "eb_alfred_deliveries"),
    "eb_alfred_deliveries_alfworld": lambda: deliveries_on("eb_alfred", "eb_alfred_deliveries_alfworld"),
    "eb_habitat_deliveries": lambda: deliveries_on("eb_habitat", "eb_habitat_deliveries"),
    "embodiedbench": embodiedbench,
    "quick_start": quick_start,
    "worlds": worlds,
    "alfworld": alfworld,
    "speed": speed,
    "planner_critic": planner_critic,
    "memento": memento,
}


def render(text: str) -> str:
    """`text` with every table written anew."""

    def fill(match: re.Match) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is out of date")
    options = parser.parse_args()
    old = {path: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
    stale = {path: new for path, text in old.items() if (new := render(text)) != text}
    if options.check and stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"{names}: out of date; run: python experiments/tables.py")
    for path, text in stale.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
