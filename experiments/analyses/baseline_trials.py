"""Compares free settings of the memory methods on `dev` games, with as many trials for each; plays no model.

    python experiments/analyses/baseline_trials.py --result experiments/results/baseline_trials.json

The free setting is how often the task stands in a method's question before the room (`MemoryMethod.TASK_WEIGHT`). A
trial recalls for the first observation of each third `dev` game, in the executor's tokens that `static` fills there,
from the training games of the weights. Counted is how often a line of this room says where one of the goal's things was
found when the rule teacher solved that very game: `told` is that share of what it found. The script writes no setting:
the best is written into the methods by hand, before a test split is played.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

from embodied_mem.agents.baselines import METHODS
from embodied_mem.agents.baselines.method import clauses_of
from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.view import start_view
from embodied_mem.evaluation.command import Models, output_file
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.memory.bank.settings import BankView
from embodied_mem.training.bank import bank_of, teach_bank
from embodied_mem.training.tasks import TEACHER_STEPS, sources_of
from embodied_mem.worlds.alfworld.tasks import games_of

TRIALS = 0, 1, 4
EVERY = 3
"""Of the `dev` games, so many-th ones are taken."""


def main() -> None:
    """Makes all trials, prints a line for each, writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="experiments/weights/alfworld_judging")
    parser.add_argument("--result", type=output_file, required=True)
    options = parser.parse_args()
    bundle = Models(options.weights).load()
    trained, memory = bundle.config, bundle.config.memory
    executor = bundle.acting(temperature=0.0, batch_buckets=(1,))[0]
    [source], games = sources_of(trained.world, trained.seed), games_of("dev", 0, "valid", trained.world, trained.seed)
    games = games[::EVERY]
    solved = bank_of(
        source.envs(games, 64, TEACHER_STEPS), len(games), lambda task: source.teacher(), seed=trained.seed
    )
    bank = teach_bank(trained)
    known = BankView(bank, numbered=memory.numbered, newest_first=memory.newest_first)
    played = [episode for episode, _ in solved.records]
    views = [
        start_view(
            one.goal, one.first_observation, known.retrieve(one.goal, memory.top_k, one.first_observation), one.task_id
        )
        for one in played
    ]  # fmt: skip
    found = [{clause for clause in clauses_of(one) if " was in " in clause} for one in played]

    def told(name: str) -> dict[str, float]:
        delivery: Any = make_delivery(
            name, executor=executor, episodes=known.episodes() if name in METHODS else (), numbered=memory.numbered,
            task_key=bank.task_key,
        )  # fmt: skip
        delivery.begin(views)
        texts = [delivered.memory for delivered in delivery.deliver(views, None)]
        hits = sum(f"here: {clause}" in text for text, clauses in zip(texts, found) for clause in clauses)
        tokens = sum(len(executor.tokenizer.encode(text)) for text in texts) / len(texts)
        return {"told": hits / sum(map(len, found)), "tokens": tokens}

    rows = {"static": {f"top_k={memory.top_k}": told("static")}}
    print("static", json.dumps(rows["static"]), flush=True)
    for name, method in METHODS.items():
        rows[name] = {}
        for weight in TRIALS:
            method.TASK_WEIGHT = weight
            rows[name][f"task_weight={weight}"] = row = told(name)
            print(name, weight, json.dumps(row), flush=True)
    best = {name: max(tried, key=lambda one: tried[one]["told"]) for name, tried in rows.items()}
    facts = manifest(tasks="dev", num_tasks=len(played), things_found=sum(map(len, found)), bank=len(bank))
    write_result(pathlib.Path(options.result), {"trials": rows, "best": best, **facts})
    print(json.dumps(best))


if __name__ == "__main__":
    main()
