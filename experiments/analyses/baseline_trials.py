"""Compares free settings of the memory methods on `dev` games, with as many trials for each; plays no model.

    python experiments/analyses/baseline_trials.py --result experiments/results/baseline_trials.json
    python experiments/analyses/baseline_trials.py --tasks valid_seen --result experiments/results/baseline_recall.json

The free setting is how often the task stands in a method's question before the room (`MemoryMethod.TASK_WEIGHT`). A
trial recalls for the first observation of each third `dev` game, in the executor's tokens that `static` fills there,
from the training games of the weights. Counted is how often a line says where one of the goal's things was found when
the rule teacher solved that very game: `told` is that share of what it found, `told_here` that by lines that are said
to be of this room. The rooms of `dev` are held out, so that its lines tell of others. The script writes no setting: the
best is written into the methods by hand, before a test split is played. On another split only what is written there is
measured, with the cost of observing and recalling.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import time
from typing import Any

import numpy as np

from embodied_mem import registry
from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.method import row_name
from embodied_mem.compiler.view import start_view
from embodied_mem.evaluation.command import Models, output_file
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.memory.bank import BankView
from embodied_mem.training.tasks import TEACHER_STEPS, bank_of, sources_of, teach_bank
from embodied_mem.types import Episode
from embodied_mem.worlds.alfworld.tasks import games_of

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.baselines.method import clauses_of
from experiments.registered import register_all

register_all()

TRIALS = 0, 1, 4
EVERY = 3
"""Step through the `dev` games: every third one is played."""
ASKS_WHEN_IT_OBSERVES = ("g_memory",)
"""Methods that keep questions; with another setting they observe all anew."""


def main() -> None:
    """Makes all trials, prints a line for each, writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="experiments/weights/alfworld_judging")
    parser.add_argument("--tasks", default="dev", help="a split; trials are made on `dev` alone")
    parser.add_argument("--bank_file", default="", help="memory bank file; default: the teacher plays the games")
    parser.add_argument("--result", type=output_file, required=True)
    options = parser.parse_args()
    bundle = Models(options.weights).load()
    trained, memory = bundle.config, bundle.config.memory
    executor = bundle.acting(temperature=0.0, batch_buckets=(1,))[0]
    world = trained.world
    [source] = sources_of(world, trained.seed)
    games = games_of(options.tasks, 0, "valid", world, trained.seed)
    games = games[::EVERY] if options.tasks == "dev" else games
    solved = bank_of(
        source.envs(games, 64, TEACHER_STEPS), len(games), lambda task: source.teacher(), seed=trained.seed
    )
    bank = teach_bank(trained, options.bank_file)
    known = BankView(bank, numbered=memory.numbered, newest_first=memory.newest_first)
    played = [episode for episode, _ in solved.records if found_in(episode)]
    views = [
        start_view(
            one.goal,
            one.first_observation,
            known.retrieve(one.goal, memory.top_k, one.first_observation, (one.task_id,)),
            one.task_id,
        )
        for one in played
    ]
    found = [found_in(one) for one in played]

    def made(name: str) -> Any:
        episodes = known.episodes() if name in registry.names("methods") else ()
        return make_delivery(
            name, executor=executor, episodes=episodes, numbered=memory.numbered, task_key=bank.task_key,
        )  # fmt: skip

    def told(delivery: Any) -> dict[str, Any]:
        started = time.process_time()
        delivery.begin(views)
        given = delivery.deliver(views, None)
        spent = time.process_time() - started
        hits, here = (
            [len(said_in(one.memory, label) & clauses) / len(clauses) for one, clauses in zip(given, found)]
            for label in ("(?:here|elsewhere)", "here")
        )
        tokens = sum(len(executor.tokenizer.encode(one.memory)) for one in given) / len(given)
        shares.setdefault("static", hits)
        row: dict[str, Any] = {
            "told": float(np.mean(hits)), "told_here": float(np.mean(here)),
            "interval": list(paired_difference(hits, np.zeros(len(hits)))[1:]),
            "difference_to_static": list(paired_difference(hits, shares["static"])), "tokens": tokens,
        }  # fmt: skip
        row |= {"milliseconds": 1000 * spent / len(given), "calls": sum(one.calls for one in given) / len(given)}
        return row | ({"observed": delivery.observed} if getattr(delivery, "observed", ()) else {})

    shares: dict[str, list[float]] = {}
    rows = {"static": {f"top_k={memory.top_k}": told(made("static"))}}
    for name in registry.names("methods"):
        delivery, rows[row_name(name)] = made(name), {}
        for weight in TRIALS if options.tasks == "dev" else (delivery.method.TASK_WEIGHT,):
            if weight != delivery.method.TASK_WEIGHT:
                registry.load("methods", name).TASK_WEIGHT = weight
                delivery = made(name) if name in ASKS_WHEN_IT_OBSERVES else delivery
            rows[row_name(name)][f"task_weight={weight}"] = row = told(delivery)
            print(name, weight, json.dumps(row), flush=True)
    best = {name: max(tried, key=lambda one: tried[one]["told"]) for name, tried in rows.items()}
    facts = manifest(tasks=options.tasks, num_tasks=len(played), bank=len(bank))
    write_result(pathlib.Path(options.result), {"rows": rows, "best": best, **facts})
    print(json.dumps(best))


def found_in(episode: Episode) -> set[str]:
    """List where things of the goal were found."""
    return {clause for clause in clauses_of(episode) if " was in " in clause}


def said_in(memory: str, label: str) -> set[str]:
    """Return what the lines with a label say.

    Whatever else stands there is left out; a line begins with its number.
    """
    lines = (re.fullmatch(rf"(?:\d+ )?{label}: (.*)", line) for line in memory.splitlines())
    return {clause for line in lines if line for clause in line[1].split("; ")}


if __name__ == "__main__":
    main()
