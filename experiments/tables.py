"""Writes the tables of README.md and docs/ from the files in experiments/results/, so that no number is typed.

    python experiments/tables.py            # rewrite them
    python experiments/tables.py --check    # exit with 1 if one is not up to date

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; NAME is one of the functions below.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

from baseline_tables import BASELINES
from embodied_mem.evaluation.report import read_result, versus
from embodied_mem.evaluation.tables import difference, markdown, percent, rate
from embodied_mem.registry import load
from registered import register_all
from speed_tables import drop_in_table, graph_ratio_table, graph_speed_table, sampling_table, vector_speed_table
from study_tables import STUDIES, grpo_table, training_seeds_table

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from experiments.solvers.memento.tables import PAPER_STAGES, REWORDED, captions_table, encoders_table, joined_table

register_all()

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"

PAPER_ALFWORLD = (46.27, 35.03, 82.16)
"""Success on ALFWorld in percent without memory, with static injection, compiled: MemCompiler, table 3."""


PAPERS = {
    "MemCompiler": "https://arxiv.org/abs/2605.07594",
    "RoboMemory": "https://arxiv.org/abs/2508.01415",
    "MEMENTO": "https://arxiv.org/abs/2505.16348",
}

NOT_RUN = "Not run yet; the log says what is known."


def _read(name: str) -> Any:
    """Read the result of a name with its episodes, where a table needs them; None if there is no result yet."""
    path = RESULTS / f"{name}.json"
    return read_result(path) | {"file": path.name} if path.exists() else None


MAX_COMMAND = 7
"""Words of a command that stands below a table; a longer one stands in the result's file alone."""


def _source(data: dict) -> str:
    """Name a result's machine, commit, and command or file."""
    short = len(data["command"].split()) <= MAX_COMMAND
    return f"{data['machine']}; commit {data['commit'][:10]}; `{data['command'] if short else data['file']}`"


def _of(name: str, table: Callable[[dict[str, Any], str], str]) -> Callable[[], str]:
    """What writes the table of a result that may not be there yet."""
    return lambda: table(data, _source(data)) if (data := _read(name)) else NOT_RUN


def deliveries(name: str) -> str:
    """The comparison of deliveries in a report."""
    if not (data := _read(name)):
        return NOT_RUN
    head = "delivery", "success", "against none, paired", "steps", "executor tokens/step", "ms/step"
    rows = [
        [
            delivery, rate(row["success"], row["interval"]), versus(row), f"{row['steps']:.1f}",
            f"{row['executor_tokens_per_step']:.0f}", f"{row['latency_ms_per_step']:.1f}",
        ]
        for delivery, row in data["deliveries"].items()
    ]  # fmt: skip
    games = f"{data['num_tasks']} games x {data['num_seeds']} seeds"
    max_steps = data.get("max_steps", data["config"]["world"]["max_steps"])
    return markdown(head, rows, f"{games}, at most {max_steps} steps; {_source(data)}")


def quick_start() -> str:
    """What the quick start ends with: every delivery on generated games."""
    return deliveries("grpo_cpu")


def quick_start_success() -> str:
    """Compare three deliveries of the quick start in one row."""
    data = _read("grpo_cpu")
    rows = {name: data["deliveries"][name] for name in ("none", "static", "compiled")}
    cells = [rate(row["success"], row["interval"]) for row in rows.values()]
    footer = (
        f"{data['num_tasks']} unseen games, success in percent; paired gain of compiled: {versus(rows['compiled'])}"
    )
    return markdown(["no memory", "static memory", "compiled memory"], [cells], footer)


def speed() -> str:
    """The engine against TextWorld."""
    data = _read("bench_alfworld")
    row = data.get("result", data)
    what = "steps/s, one thread, observations and admissible commands"
    numbers = f"{row['native_steps_per_s']:,.0f}", f"{row['textworld_steps_per_s']:,.1f}", f"{row['ratio']:,.0f}"
    return markdown(
        ["", "native", "TextWorld", "ratio"],
        [[what, *numbers]],
        f"Loading a game takes {row['load_ms_p50']:.2f} ms (median), all {row['games']:,} games "
        f"{row['load_all_s']:.1f} s; an environment takes {row['kilobytes_per_env']:.0f} kB.",
    )


def planner_critic() -> str:
    """The planner-critic agent, what each part of it is worth, and playing the tasks a second time."""
    data = _read("planner_critic")
    head = "agent", "run", "success", "steps", "against full, paired", "against the first run, paired"
    rows = [
        [
            name, str(number), rate(row["success"], row["interval"]), f"{row['steps']:.2f}",
            *(difference(row.get(f"steps_difference_to_{other}"), 1, 2) for other in ("full", "first_run")),
        ]
        for name, runs in data["agents"].items()
        for number, row in enumerate(runs, 1)
    ]  # fmt: skip
    footer = f"{data['num_tasks']} games of {data['tasks']}, at most {data['max_steps']} steps, "
    return markdown(head, rows, f"{footer}{data['lives']} lifelong rollout; {_source(data)}")


def robot_faults() -> str:
    """The agent and its ablations on a simulated robot that fails, twice with memory kept, beside one that does not."""
    if not (data := _read("robot_faults")):
        return NOT_RUN
    head = ["agent", "run", "no faults: success", "steps", "faults: success", "against full, paired", "steps"]
    head += ["faults met", "of them in won tasks", "lost tasks with planning, reasoning, perception error"]
    rows = []
    for name, runs in data["rows"]["faults"].items():
        for number, row in enumerate(runs, 1):
            calm = data["rows"]["no faults"][name][number - 1]
            met, recovered = sum(row["faults"].values()), sum(row["recovered"].values())
            errors = ", ".join(str(count) for count in row["lost_with_error"].values())
            rows.append(
                [
                    name, str(number), percent(calm["success"]), f"{calm['steps']:.1f}",
                    rate(row["success"], row["interval"]), difference(row.get("success_difference_to_full")),
                    f"{row['steps']:.1f}", str(met), percent(recovered / max(met, 1)),
                    f"{errors} of {row['lost']}",
                ]
            )  # fmt: skip
    chances = {key: value for key, value in data["faults"].items() if key not in ("late_s", "max_blind")}
    footer = f"{data['num_tasks']} generated homes, at most {data['limits']['max_steps']} skills; chances: "
    footer += ", ".join(f"{key} {value:g}" for key, value in chances.items())
    return markdown(head, rows, f"{footer}; {_source(data)}")


def memento() -> str:
    """MEMENTO's stages beside two models of the paper: on the same episodes where published, else as in its tables."""
    if not (data := _read("memento")):
        return NOT_RUN

    def share(row: dict | None) -> str:
        return f"{percent(row['sr'])} of {row['episodes']}" if row else "-"

    rows = []
    for stage, row in data["stages"].items():
        others = [share(row.get("published", {}).get(model)) for model in ("gpt-4o", "qwen-2.5-7b-instruct")]
        paper = ", ".join(f"{sr:.1f} %" for _, sr in PAPER_STAGES[stage].values())
        success = rate(row["sr"], row["sr_interval"]), share(row.get("held_out"))
        rows.append([stage, str(row["episodes"]), *success, percent(row["pc"]), *others, paper])
    reworded = _read("memento_rewordings") or data
    for name, row in list(reworded.get("rewordings", {}).items())[1:]:
        success = rate(row["sr"], row["sr_interval"]), share(row.get("held_out"))
        rows.append([f"single, {REWORDED[name]}", str(row["episodes"]), *success, percent(row["pc"]), "-", "-", "-"])
    head = ["stage", "tasks", "success", "held-out houses", "percent complete", "GPT-4o, same tasks"]
    head += ["Qwen-2.5-7b, same tasks", "all of the paper's: GPT-4o, Qwen-2.5-7b"]
    line = data["line"]
    return markdown(
        head,
        rows,
        f"Missing rate of retrieval, no model but the embedder: {line['missing_at_3']:.1f} % at k = 3, "
        f"{line['missing_at_5']:.1f} % at k = 5. Seed {data['config']['seed']}, embedder {data['embedder']}; "
        f"{_source(data)}" + (f"; rewordings: {_source(reworded)}" if "rewordings" in reworded else ""),
    )


def memento_joined(data: dict[str, Any], source: str) -> str:
    """Show what k and noise are worth, without noise and with the most."""
    lines = joined_table(data).split("\n")
    return "\n".join(line for line in lines if "noise 0.25" not in line) + f"\n\n{source}"


def memento_encoders(data: dict[str, Any], source: str) -> str:
    """Show the missing rates of the simplest and the best strategy by encoder."""
    rows = {name: row for name, row in data["encoders"].items() if name.split(", ")[1] in ("similarity", "hybrid")}
    return f"{encoders_table({'encoders': rows})}\n\n{source}"


def noisy_triples() -> str:
    """What noise in a detector's triples does to spatial memory: all kinds at three rates, one kind at the highest."""
    if not (data := _read("noisy_triples")):
        return NOT_RUN
    counts = "duplicates", "stale", "missing", "wrong_ends"
    arms = {
        "ours": "ours", "looks": "ours, with appearance", "names": "control: every name a thing",
        "theta 0": "control: threshold 0", "no conflicts": "control: no rules of conflict",
    }  # fmt: skip
    rows = [
        [
            f"{row['noise']}, {100 * row['rate']:.0f} %", arms[row["arm"]], *(f"{row[name]:.1f}" for name in counts),
            f"{row['update_us']['p50']:.0f} / {row['update_us']['p99']:.0f}",
        ]
        for row in data["rows"]
        if (row["arm"] in ("ours", "looks") and (row["noise"] in ("none", "all") or row["rate"] == 0.2))
        or (row["noise"] == "all" and row["rate"] == 0.2)
    ]  # fmt: skip
    head = (
        "noise",
        "memory",
        "duplicates / 100 things",
        "stale / 100 facts",
        "missing / 100",
        "wrong ends / 1,000 triples",
    )
    played = f"{data['num_seeds']} homes of {data['num_things']} things, {data['num_steps']} updates each"
    return markdown([*head, "us per update, p50 / p99"], rows, f"Means of {played}, on a busy core; {_source(data)}")


def worlds() -> str:
    """Speed of every native world."""
    data = _read("bench_worlds")
    rows = [
        [
            f"`{name}`", f"{data[f'{name}_steps_per_s']:,}", f"{data[f'{name}_single_env_steps_per_s']:,}",
            f"{data[f'{name}_snapshot_us']:.1f} us",
        ]
        for name in (key.removesuffix("_tasks") for key in data if key.endswith("_tasks"))
    ]  # fmt: skip
    source = _source(data | {"command": "python experiments/bench.py --suite worlds"})
    head = "world", "steps/s, 16 envs", "steps/s, one env", "snapshot"
    return markdown(head, rows, f"One thread, texts included; {source}")


def planner_benchmark(world: str, name: str = "") -> str:
    """Agents or deliveries on a world's subsets, from the file `name` or the world's, and what papers report."""
    if not (data := _read(name or world)):
        return NOT_RUN
    tasks = {row["tasks"] for agents in data["subsets"].values() for row in agents.values()}
    shown, config = load(world, "benchmark").table(data), data["config"]
    played = "nothing is drawn"
    if config.get("deliveries") and "seeds" in config:
        played = f"{len(config['seeds'])} seeds of play at temperature {config['temperature']:g}"
    return f"{shown}\n\n{max(tasks)} tasks a subset, at most 30 steps, {played}; {_source(data)}"


def revisited(world: str) -> str:
    """Show tasks that are played again in homes that an agent knows."""
    if not (data := _read(f"{world}_revisited")):
        return NOT_RUN
    shown, limit = load(world, "benchmark").table(data), data["config"]["revisit"]
    tasks = max(row["tasks"] for rows in data["revisited_home"].values() for row in rows.values())
    return f"{shown}\n\n{tasks} tasks a subset, at most {limit} steps, nothing is drawn; {_source(data)}"


COMPARED = ("Qwen-2.5-14B", "Qwen-2.5-VL-32B", "Gemini,", "Qwen2.5-VL-72B*", "RoboMemory without")
"""Published rows that stand in a table, by what their names contain; a world's command prints all."""


def locomo(data: dict[str, Any], source: str) -> str:
    """Show LoCoMo's contenders over all questions, and three of them by kind of question."""
    lines = load("locomo", "benchmark").table(data).split("\n")
    few = re.compile(r"\| (?:multi-hop|temporal|open-domain|single-hop) \| \d+ \| (?:embedder|fusion|langmem) ")
    return "\n".join(line for line in lines if not few.match(line)) + f"\n\n{source}"


def _without_published(table: str, *kept_names: str) -> str:
    """Drop the published rows of a table but those whose names contain one of `kept_names`."""
    lines = [line for line in table.split("\n") if not _SAME.match(line)]
    return "\n".join(line for line in lines if not line.startswith("| *") or any(n in line for n in kept_names))


_SAME = re.compile(r"\| first reading.* without long-term memory \|")
"""Rows whose tasks are won as in the row before."""


def eb_alfred() -> str:
    """Show EB-ALFRED's agents."""
    return _without_published(planner_benchmark("eb_alfred"), *COMPARED)


def eb_habitat() -> str:
    """Show EB-Habitat's agents."""
    return _without_published(planner_benchmark("eb_habitat"), *COMPARED)


def eb_habitat_relations() -> str:
    """EB-Habitat's tasks whose places are described by other places, in blind wordings, as first scored."""
    if not (data := _read("eb_habitat_relations")):
        return NOT_RUN
    rows = [[arm, rate(row["success"], row["interval"]), f"{row['steps']:.1f}"] for arm, row in data["rows"].items()]
    rows += [
        [f"first reading, wordings with *{name.replace('_', ' ')}* ({row['wordings']})", percent(row["success"]), "-"]
        for name, row in data["by_relation"].items()
    ]
    count, tasks = data["wordings"]["played"], next(iter(data["rows"].values()))["tasks"]
    after = _read("eb_habitat_relations_improved")
    if after:
        row = after["rows"]["first reading"]
        name = "first reading, after the misses were read (no blind number)"
        rows.insert(1, [name, rate(row["success"], row["interval"]), f"{row['steps']:.1f}"])
    return markdown(
        ["", "success", "steps"],
        rows,
        f"{tasks} tasks of {count} wordings, seed {data['seed']}; intervals count wordings; {_source(data)}"
        + (f"; after the misses: {_source(after)}" if after else ""),
    )


def deliveries_on(world: str, name: str) -> str:
    """Deliveries of memory on EB-ALFRED or EB-Habitat; the published rows stand in the world's own table."""
    return _without_published(planner_benchmark(world, name))


SUBSETS = ("base", "common_sense", "long_horizon")
COLUMNS = [f"{world}: {subset}" for world in ("EB-ALFRED", "EB-Habitat") for subset in SUBSETS]


def one_for_all() -> str:
    """Success of the small models: a pair trained on each world beside one pair trained on three."""
    lines, sources = [], []
    for kind, suffix in (("a pair per world", ""), ("one pair for three", "_household")):
        files = [f"{name}{suffix}" for name in ("alfworld_valid_seen", "eb_alfred_deliveries", "eb_habitat_deliveries")]
        results = [_read(name) for name in files]
        if not all(results):
            return NOT_RUN
        found = [results[0]["deliveries"], *(other["subsets"][subset] for other in results[1:] for subset in SUBSETS)]
        for name in ("none", "static", "compiled"):
            cells = [rate(rows[name]["success"], rows[name]["interval"], 0) for rows in found]
            lines.append([f"{name}, {kind}", *cells])
        sources = [f"{data['commit'][:10]}, `{data['file']}`" for data in results]
    return markdown(["", "ALFWorld", *COLUMNS], lines, f"{results[0]['machine']}; commits {'; '.join(sources)}")


def scienceworld() -> str:
    """ScienceWorld."""
    if not (data := _read("scienceworld")):
        return NOT_RUN
    number, config = next(iter(data["agents"].values()))["episodes"], data["config"]
    shown = _without_published(load("scienceworld", "benchmark").table(data), *COMPARED)
    return (
        f"{shown}\n\n{number} episodes: {config['variations']} {config['split']} variations of "
        f"each of the 30 tasks, at most {config['max_steps']} steps; memory: {len(data['memory'])} gold paths of "
        f"training variations; {_source(data)}"
    )


def _published(world: str) -> tuple:
    """Published rows of a world."""
    return load(world, "benchmark").published


def _success(row: dict, name: str = "success", interval: str = "interval") -> str:
    """Success and its interval in percent, as "48.0 [35, 61]"."""
    return "{:.1f} [{:.0f}, {:.0f}]".format(*(100 * value for value in (row[name], *row[interval])))


def _paper(world: str, subset: str, *names: str) -> str:
    """Published successes of these rows."""
    rows = {row.name: row.rows[subset][0] for row in _published(world)}
    return ", ".join(f"{rows[name]:g}" for name in names)


def benchmarks() -> str:
    """A row per benchmark: our deliveries and agents by rules, a paper's figures, and whether the two compare."""
    delivered = ("none", "static", "compiled")
    qwen = [f"MemCompiler: Qwen-2.5-VL-32B, {name}" for name in ("no memory", "A-Mem", "compiled")]
    qwen_14b = [f"MemCompiler: Qwen-2.5-14B, {name}" for name in ("no memory", "static injection", "compiled")]
    alfworld, science = _read("alfworld_judging_seed2"), _read("scienceworld")["agents"]
    rows = [
        [
            f"ALFWorld, {alfworld['tasks']}, the training seed that won most of dev",
            f"{alfworld['num_tasks']} x {alfworld['num_seeds']} seeds",
            *(_success(alfworld["deliveries"][name]) for name in delivered),
            _success(_read("planner_critic")["agents"]["full"][0]),
            f"MemCompiler, Qwen-2.5-14B, valid_unseen: {', '.join(f'{value:g}' for value in PAPER_ALFWORLD)}",
            "no: other models, other games",
        ]
    ]
    others = {"eb_alfred": "; RoboMemory: " + _paper("eb_alfred", "base", "RoboMemory: Qwen2.5-VL-72B")}
    for world, title in (("eb_alfred", "EB-ALFRED"), ("eb_habitat", "EB-Habitat")):
        played, agents = _read(f"{world}_deliveries"), _read(world)["subsets"]["base"]
        models, papers = played["subsets"]["base"], _paper(world, "base", *qwen)
        ends = agents["ends_itself"]
        rows.append(
            [
                f"{title}, base, the agent ends the episode itself",
                str(ends["tasks"]),
                "-",
                "-",
                "-",
                _success(ends),
                f"MemCompiler, Qwen-2.5-VL-32B (A-Mem for static): {papers}{others.get(world, '')}",
                "no: ours is symbolic, theirs sees images",
            ]
        )
        rows.append(
            [
                f"{title}, base, retries until the episode ends",
                f"{models['none']['tasks']} x {len(played['config']['seeds'])} seeds",
                *(_success(models[name]) for name in delivered),
                _success(agents["full"]),
                "the same",
                "no",
            ]
        )
    rows.append(
        [
            "ScienceWorld, test",
            str(science["none"]["episodes"]),
            *(_success(science[f"model {name}"]) for name in delivered),
            _success(science["planner_critic"]),
            f"MemCompiler, Qwen-2.5-14B: {_paper('scienceworld', 'test', *qwen_14b)}",
            "no: same simulator, other tasks and descriptions",
        ]
    )
    for stage in ("single", "joint"):
        row = _read("memento")["stages"][stage]
        success = "-", "-", "-", _success(row, "sr", "sr_interval")
        other = row["published"]["gpt-4o"]
        paper = f"MEMENTO, GPT-4o, {other['episodes']} of the same episodes: {100 * other['sr']:.1f}"
        comparable = "in part: same episodes, theirs in habitat-sim"
        rows.append([f"MEMENTO, {stage}", str(row["episodes"]), *success, paper, comparable])
    heads = ("benchmark", "tasks", "no memory", "static", "compiled", "agent by rules", "the paper's", "comparable")
    for row in rows:
        row[6] = re.sub("|".join(PAPERS), lambda paper: f"[{paper[0]}]({PAPERS[paper[0]]})", row[6])
    return markdown(heads, rows)


def table_of_faults(attacks: dict[str, dict]) -> str:
    """Attack, tries, landed, faults; the last row sums up."""
    rows = [(name, row["tries"], row["landed"], len(row["faults"])) for name, row in attacks.items()]
    rows.append(("all", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
    lines = [[name, f"{tries:,}", f"{hit:,}", str(bad)] for name, tries, hit, bad in rows]
    return markdown(["attack", "tries", "landed", "faults"], lines)


def faults() -> str:
    """Tries and faults of the long campaign of attacks."""
    if not (data := _read("faults")):
        return "Not run yet."
    hours = sum(attack["seconds"] for attack in data["attacks"].values()) / 3600
    kinds: dict[str, dict[str, Any]] = {}
    for name, row in data["attacks"].items():
        kind = kinds.setdefault(f"{name.partition('_')[0]}*", {"tries": 0, "landed": 0, "faults": []})
        kind |= {"tries": kind["tries"] + row["tries"], "landed": kind["landed"] + row["landed"]}
        kind["faults"] += row["faults"]
    return f"{table_of_faults(kinds)}\n\n{hours:.1f} hours; seed {data['seed']}; {_source(data)}"


TABLES = {
    "benchmarks": benchmarks,
    "graph_ratio": _of("bench_graph", graph_ratio_table),
    "vector_speed": _of("bench_vectors", vector_speed_table),
    "faults": faults,
    "scienceworld": scienceworld,
    "one_for_all": one_for_all,
    "graph_speed": _of("bench_graph_libraries", graph_speed_table),
    "sampling": _of("bench_models", sampling_table),
    "drop_in": _of("bench_drop_in", drop_in_table),
    "eb_alfred": eb_alfred,
    "eb_habitat": eb_habitat,
    "eb_habitat_relations": eb_habitat_relations,
    "eb_alfred_revisited": lambda: revisited("eb_alfred"),
    "eb_habitat_revisited": lambda: revisited("eb_habitat"),
    "eb_alfred_deliveries": lambda: deliveries_on("eb_alfred", "eb_alfred_deliveries"),
    "eb_habitat_deliveries": lambda: deliveries_on("eb_habitat", "eb_habitat_deliveries"),
    "quick_start": quick_start,
    "quick_start_success": quick_start_success,
    "noisy_triples": noisy_triples,
    "locomo": _of("locomo", locomo),
    "worlds": worlds,
    "grpo_habits": lambda: grpo_table(_read, _source),
    "alfworld_seeds": lambda: training_seeds_table(_read, "alfworld_judging"),
    "speed": speed,
    "planner_critic": planner_critic,
    "robot_faults": robot_faults,
    "memento": memento,
    "memento_captions": _of("memento_captions", lambda data, source: f"{captions_table(data)}\n\n{source}"),
    "memento_joined": _of("memento_joined", memento_joined),
    **{name: _of(name, table) for name, table in (BASELINES | STUDIES).items()},
    "memento_encoders": _of("memento_encoders", memento_encoders),
}


def tidy(text: str) -> str:
    """Move "%" from cells to their heads, and drop a column of zero tokens."""

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


def render(text: str) -> str:
    """Rewrite every table in `text`."""

    def fill(match: re.Match) -> str:
        return f"<!-- table: {match[1]} -->\n{tidy(TABLES[match[1]]())}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->\n(?:(?!<!--).)*<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is out of date")
    options = parser.parse_args()
    old = {path: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
    stale = {path: new for path, text in old.items() if (new := render(text)) != text}
    if options.check and stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"{names}: out of date; run: python experiments/tables.py")
    for path, text in stale.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
