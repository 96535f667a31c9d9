"""Play ALFWorld games with the two experts and report how many steps they need.

The privileged expert plays a shortest plan; the observing expert searches in three orders: as the room lists its
receptacles, as households keep such things, and where the train split's games found the goal's object (in the same
scene first; the game that is played is left out). Every game must be won.

    ALFWORLD_DATA=... python experiments/analyses/measure_experts.py   # 3,693 official games and 1,000 generated ones

Without installed data only generated games are played. Writes runs/alfworld_experts.json, or what `--out` names, and
ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import statistics
import time
from collections.abc import Sequence

from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import commit
from embodied_mem.worlds.alfworld.env import Env, Game, data_root
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan
from embodied_mem.worlds.alfworld.wording.search_orders import FoundOrder, SearchOrder, room_order, statistics_order
from embodied_mem.worlds.alfworld.wording.text import parse_command, parse_room, type_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_STEPS = 300


def remember(found: FoundOrder, receptacles: list[str], walkthrough: Sequence[str], count: int = 1) -> None:
    """Add to `found` (or take back) where a walkthrough picked up its objects and where it switched its lamp on."""
    at = ""
    for command in map(parse_command, walkthrough):
        if command.verb == "go":
            at = command.receptacle
        elif command.verb in ("take", "use"):
            found.add(receptacles, type_of(command.object), command.receptacle or at, count)


def play_observing(game: Game, order: SearchOrder, grammar: str) -> tuple[int, bool]:
    """Return (steps, won) of the observing expert."""
    env, expert = Env(game, grammar), ObservingExpert(grammar)
    observation = env.reset()
    expert.reset(game.task, observation, order)
    while not env.won and env.num_steps < MAX_STEPS:
        observation = env.step(expert.act(observation))
    return env.num_steps, env.won


def play_privileged(game: Game, grammar: str) -> tuple[int, bool]:
    """Return (steps, won) of the privileged expert."""
    env = Env(game, grammar)
    for command in shortest_plan(WorldState.from_env(env), grammar):
        env.step(command)
    return env.num_steps, env.won


def summarize(plays: list[tuple[int, bool]], seconds: float) -> dict:
    """Return counts and step statistics; a game that was not won counts with all the steps it took."""
    steps = sorted(count for count, _ in plays)
    return {
        "games": len(plays),
        "solved": sum(won for _, won in plays),
        "mean": round(statistics.mean(steps), 3),
        "median": statistics.median(steps),
        "p95": steps[min(len(steps) - 1, int(0.95 * len(steps)))],
        "max": steps[-1],
        "over_50_steps": sum(count > 50 for count in steps),
        "steps_per_s": round(sum(steps) / seconds),
    }


def measure(games: list[Game], found: FoundOrder, is_train: bool, grammar: str) -> dict:
    """Return the results of all experts on these games; `is_train` says that `found` remembers these very games."""
    orders = {"room_order": room_order, "household_order": statistics_order, "train_order": found}
    results = {}
    for name in ("privileged", *orders):
        start, plays = time.perf_counter(), []
        for game in games:
            leave_out = is_train and name == "train_order"
            if leave_out:
                remember(found, parse_room(Env(game).reset()), game.walkthrough, -1)
            if name == "privileged":
                plays.append(play_privileged(game, grammar))
            else:
                plays.append(play_observing(game, orders[name], grammar))
            if leave_out:
                remember(found, parse_room(Env(game).reset()), game.walkthrough)
        results[name] = summarize(plays, time.perf_counter() - start)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, default=data_root(), help="folder json_2.1.1, if not installed")
    parser.add_argument("--num_generated", type=int, default=1000)
    parser.add_argument("--num_scenes", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--grammar", default="0.4")
    parser.add_argument("--out", type=output_file, default=ROOT / "runs/alfworld_experts.json")
    options = parser.parse_args()
    results, found = {}, FoundOrder()
    if options.data is not None:
        for split in ("train", "valid_seen"):
            games = [Game.load(str(file)) for file in sorted(options.data.glob(f"{split}/*/*/game.tw-pddl"))]
            for game in games if split == "train" else ():
                remember(found, parse_room(Env(game).reset()), game.walkthrough)
            results[split] = measure(games, found, split == "train", options.grammar)
            print_table(split, results[split])
    memories = FoundOrder()
    for split in ("train", "valid"):
        generated = generate(options.num_generated, options.seed, options.num_scenes, split)
        games = [game.load() for game in generated]
        for game, source in zip(games, generated, strict=True):
            if split == "train":
                remember(memories, parse_room(Env(game).reset()), source.walkthrough)
    results["generated_valid"] = measure(games, memories, False, options.grammar)
    print_table("generated_valid", results["generated_valid"])
    report = {
        "command": f"python experiments/analyses/measure_experts.py --num_generated {options.num_generated} "
        f"--num_scenes {options.num_scenes} --seed {options.seed} --grammar {options.grammar}",
        "commit": commit("--short"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "grammar": options.grammar,
        "seed": options.seed,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(options.out, json.dumps(report, indent=1) + "\n")
    print(json.dumps({split: {name: row["mean"] for name, row in rows.items()} for split, rows in results.items()}))


def print_table(split: str, rows: dict) -> None:
    print(f"{split:16} {'games':>6} {'solved':>6} {'mean':>7} {'median':>6} {'p95':>4} {'max':>4} {'> 50':>5}")
    for name, row in rows.items():
        print(
            f"  {name:14} {row['games']:6} {row['solved']:6} {row['mean']:7.2f} {row['median']:6g} {row['p95']:4} "
            f"{row['max']:4} {row['over_50_steps']:5}"
        )


if __name__ == "__main__":
    run(main)
