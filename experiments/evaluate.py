"""Scores deliveries of memory and agents on a world; here, ways of delivering memory with trained weights on ALFWorld.

    python experiments/evaluate.py                                   # the weights in the repository, their own games
    python experiments/evaluate.py --weights runs/.../weights --tasks path/to/games --seeds 0 1 2
    python experiments/evaluate.py --deliveries none compiled --num_tasks 50

    python experiments/evaluate.py --config=alfworld --agents full no_critic      # planner-critic: planner_critic.py
    python experiments/evaluate.py --config=memento                  # MEMENTO's two stages: evaluate_memento.py
    python experiments/evaluate.py --config=eb_alfred                # or eb_habitat: evaluate_planner.py
    python experiments/evaluate.py --config=scienceworld             # agents without a model: evaluate_scienceworld.py

Every delivery gets the same executor, memory bank, tasks and seeds. The bank holds the successes of the teacher on the
training games that the weights were trained on; it is played anew (seconds) or read from `--bank`. Finished batches are
kept beside the result: a command that is stopped goes on where it was when it is given again. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


def _config_of(arguments: list[str]) -> tuple[str, list[str]]:
    """What `--config` says, and the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", default="alfworld")
    options, rest = parser.parse_known_args(arguments)
    return options.config, rest


WEIGHTS = "experiments/weights/alfworld"


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    """The parsed command line."""
    from embodied_mem.agents.deliveries import DELIVERIES
    from experiments.configs import EVALUATIONS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--config",
        default="alfworld",
        choices=["alfworld", *EVALUATIONS],
        help="each with its own options, see e.g. --config=memento --help",
    )
    add("--weights", default=WEIGHTS, help="folder with config.json, tokenizer.json, weights.safetensors")
    add(
        "--tasks",
        default="",
        help="a split, a folder of game files, or `generated`; default: as in the weights' config",
    )
    add("--num_tasks", type=int, default=0, help="the first so many games; 0 takes all")
    add("--seeds", type=int, nargs="+", default=None, help="each game is played once per seed")
    add("--deliveries", nargs="+", default=None, choices=list(DELIVERIES), help="default: all")
    add("--max_steps", type=int, default=0, help="episode limit; 0 takes the weights' own")
    add("--temperature", type=float, default=None, help="of compiler and executor; 0 is greedy")
    add("--bank", default="", help="memory bank file; default: the teacher plays the training games")
    add("--out", default="", help="folder for report.json and report.md; default: <weights>/../evaluation")
    add("--result", default="", help="also write the JSON report to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> dict:
    given = sys.argv[1:] if arguments is None else arguments
    config_name, rest = _config_of(list(given))
    if config_name == "alfworld" and any(word.partition("=")[0] == "--agents" for word in rest):
        from experiments import planner_critic

        return planner_critic.main(rest)
    if config_name == "memento":
        from experiments import evaluate_memento

        return evaluate_memento.main(list(given))
    if config_name in ("eb_alfred", "eb_habitat"):
        from experiments import evaluate_planner

        return evaluate_planner.main(list(given))
    if config_name == "scienceworld":
        from experiments import evaluate_scienceworld

        return evaluate_scienceworld.main(list(given))
    options = arguments_of(arguments)
    from embodied_mem.models.host import keep_freed_memory

    keep_freed_memory()
    from embodied_mem import envs
    from embodied_mem.errors import DataNotFoundError, InvalidInputError
    from embodied_mem.evaluation.report import manifest, table, write_report
    from embodied_mem.training.bank import teach_bank
    from embodied_mem.training.weights import load_bundle
    from embodied_mem.training.worlds import games_of
    from experiments.configs import EVALUATIONS
    from experiments.finished import Finished, write_whole
    from experiments.scoring import refuse_weights, score

    started = time.perf_counter()
    bundle = load_bundle(options.weights)
    config, world, ev = bundle.config, bundle.config.world, bundle.config.evaluation
    if world.name in EVALUATIONS:
        refuse_weights(options.weights, world.name, "ALFWorld")
    seeds = options.seeds or list(ev.seeds)
    names = options.deliveries or list(ev.deliveries)
    source = options.tasks or world.valid
    count = options.num_tasks or (world.num_valid if source == world.valid else 0)
    games = games_of(source, count, "valid", world, config.seed)
    if not games:
        raise InvalidInputError(f"--tasks {source}: expected at least one game, got none (generated: give --num_tasks)")
    try:
        bank = teach_bank(config, options.bank)
    except DataNotFoundError as error:
        what = "the memory bank is made of the training games of the weights, or read from --bank"
        raise DataNotFoundError(f"{what}: {error}") from error
    valid = envs.make(
        "alfworld", tasks=games, num_envs=min(ev.batch_size, len(games) * len(seeds)), seed=config.seed,
        max_steps=options.max_steps or world.max_steps, grammar=world.grammar,
    )  # fmt: skip
    temperature = ev.temperature if options.temperature is None else options.temperature
    facts = manifest(
        tasks=source, seeds=seeds, max_steps=options.max_steps or world.max_steps, temperature=temperature,
        grammar=world.grammar, bank=len(bank), fingerprint=config.fingerprint(), config=dataclasses.asdict(config),
    )  # fmt: skip
    out = pathlib.Path(options.out or pathlib.Path(options.weights).parent / "evaluation")
    kept = pathlib.Path(f"{options.result or out / 'report'}.episodes.jsonl")
    same = ("commit", "tasks", "seeds", "max_steps", "temperature", "grammar", "bank", "fingerprint")
    belongs_to = {key: facts[key] for key in same} | {"games": len(games), "weights": options.weights}
    scores = score(
        config, valid, len(games), bundle.tokenizer, bundle.executor, bundle.model, bank,
        deliveries=names, seeds=seeds, temperature=temperature, finished=Finished(kept, belongs_to),
    )  # fmt: skip
    report = write_report(out, scores, facts | {"seconds": round(time.perf_counter() - started, 1)})
    if options.result:
        write_whole(options.result, json.dumps(report, indent=2) + "\n")
    kept.unlink()
    print(f"\n{table(scores)}\n")
    print(json.dumps({"deliveries": report["deliveries"], "num_tasks": len(games), "seeds": seeds}))
    return report


if __name__ == "__main__":
    from experiments.command import run

    run(main)
