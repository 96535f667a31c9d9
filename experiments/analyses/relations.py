"""Accuracy of reading instructions that describe EB-Habitat's places by others, in words of somebody else.

    python experiments/analyses/relations.py --result experiments/results/eb_habitat_relations.json

Draws tasks for each wording of `experiments/solvers/eb_habitat/relations_blind.txt` and plays them with the agent by
rules, which lived through the training tasks before. The control is the same agent in a world whose first text does
not tell how places stand. A wording's outcome is its mean over its tasks, and intervals count wordings.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import statistics
import sys
from typing import Any

from embodied_mem.evaluation.intervals import success_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.progress import Progress

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.registered import register_all
from experiments.solvers.eb_habitat.benchmark import BENCHMARK
from experiments.solvers.eb_habitat.relations import drawn, wordings
from experiments.solvers.embodiedbench import AGENTS, play, remember

register_all()

ARMS = {
    "first reading": ("first_reading", {}),
    "first reading, relations not told": ("first_reading", {"relations": False}),
    "first reading, ends the episode itself": ("ends_itself", {"ends_when_won": False}),
    "retries until the episode ends": ("full", {}),
}


def measure(per_line: int, seed: int, note: str) -> dict[str, Any]:
    """Return the report: the arms' rows, and the first's success by relation."""
    facts = manifest(per_line=per_line, seed=seed, note=note)
    lines = wordings()
    tasks = drawn(lines, per_line, seed)
    training = BENCHMARK.training()
    rows, by_relation = {}, collections.defaultdict(list)
    missed: collections.Counter[int] = collections.Counter()
    for arm, (agent, options) in ARMS.items():
        memory = remember(BENCHMARK, AGENTS[agent], training)
        won = collections.defaultdict(list)
        steps = []
        with Progress(arm, len(tasks), unit="task") as progress:
            for number, task, _ in tasks:
                [outcome] = play(BENCHMARK, AGENTS[agent], memory, [task], **options)
                won[number].append(float(outcome.won))
                steps.append(len(outcome.actions))
                progress.update(won=outcome.won)
        means = [statistics.mean(one) for one in won.values()]
        rows[arm] = {**success_row(means), "steps": round(statistics.mean(steps), 2), "tasks": len(tasks)}
        if arm == "first reading":
            for number, one in won.items():
                missed[number] += one.count(0.0)
                target, source = lines[number].target.told, lines[number].source
                for relation in {name for name, _ in (*target, *(source.told if source else ()))}:
                    by_relation[relation].append(statistics.mean(one))
    return {
        "rows": rows,
        "by_relation": {
            name: {"success": round(statistics.mean(one), 4), "wordings": len(one)}
            for name, one in sorted(by_relation.items())
        },
        "wordings": {"in the file": len(lines), "played": len({number for number, _, _ in tasks})},
        "missed": {str(number): count for number, count in sorted(missed.items()) if count},
        **facts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per_line", type=int, default=3, help="tasks of each wording")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--note", default="", help="what is kept with the numbers")
    parser.add_argument("--result", type=pathlib.Path, help="JSON file for the report")
    options = parser.parse_args()
    report = measure(options.per_line, options.seed, options.note)
    if options.result:
        write_result(options.result, report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
