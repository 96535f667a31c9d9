"""ScienceWorld's original and the native world, played side by side with the same commands.

    taskset -c 0 python -m experiments.analyses.scienceworld_original --games find-plant --steps 1000 --variations 20

The Java process runs with equal hashes for all objects (`-XX:hashCode=2`), since it lists equal names in their order.
An episode ends where the two first differ, and the cause is the command's verb with the lines that differ.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import json
import os
import random
import re
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JDK_JAVA_OPTIONS", "-Xmx1g -XX:+UnlockExperimentalVMOptions -XX:hashCode=2")

from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.worlds.scienceworld.capture import NATIVE_GAMES, capture  # the Java options come first
from embodied_mem.worlds.scienceworld.engine import Env, read_task
from embodied_mem.worlds.scienceworld.jvm import Simulator

_RARE = ("focus", "reset", "task", "look", "inventory")


def command_of(env: Env, rng: random.Random) -> str:
    """Return a random command; one in five leads to another room."""
    by_verb = collections.defaultdict(list)
    for command in env.admissible_commands:
        by_verb[command.split()[0]].append(command)
    if rng.random() < 0.2:
        ways = by_verb["go"] + by_verb["teleport"] + [c for c in by_verb["open"] if "door" in c]
        if ways:
            return rng.choice(ways)
    verbs = sorted(by_verb)
    verb = rng.choice(verbs)
    if verb in _RARE and rng.random() < 0.8:
        verb = rng.choice(verbs)
    if verb == "focus" and rng.random() < 0.9:
        verb = "look"
    return rng.choice(by_verb[verb])


def play(simulator: Simulator, beginning: dict[str, Any], game: str, variation: int, steps: int, seed: int) -> Any:
    """Play one episode on both sides; return steps and what differs."""
    simulator.load(game, variation)
    env = Env(read_task(json.dumps(beginning).encode(), game))
    rng = random.Random(f"{game}/{variation}/{seed}")
    answers = [("reset", env.observation, f"{simulator.first_text}\n\n{simulator.goal}".replace(" \n\n", "\n\n"))]
    commands: list[str] = []
    for count in range(steps + 1):
        for what, ours, theirs in answers:
            if ours.strip() != theirs.strip():
                return count, (commands, what, theirs, ours)
        if env.ended or count == steps:
            break
        command = command_of(env, rng)
        commands.append(command)
        text, score, over = simulator.step(command)
        answers = [
            ("text", env.step(command), text),
            ("score", f"{env.score} {env.ended}", f"{score} {over or score < 0}"),
            ("look", env.look(), simulator._ask("freeActionLook")),
            ("inventory", env.inventory(), simulator._ask("freeActionInventory")),
        ]
    return count, None


def cause(command: str, what: str, theirs: str, ours: str) -> str:
    """Return a short key of a difference."""
    lines = [
        line for line in difflib.unified_diff(theirs.split("\n"), ours.split("\n"), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]  # fmt: skip
    return f"{command.split()[0]} | {what} | " + " ".join(re.sub(r"\d+", "#", line)[:110] for line in lines[:2])


def main() -> None:
    """Compare tasks and print the causes by their counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", nargs="+", default=list(NATIVE_GAMES), choices=NATIVE_GAMES)
    parser.add_argument("--variations", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000, help="of each task")
    parser.add_argument("--episode", type=int, default=50, help="steps of an episode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simplifications", default="")
    parser.add_argument("--result", type=Path)
    parser.add_argument("--beginnings", type=Path, help="folder that keeps what was captured")
    arguments = parser.parse_args()
    table = {}
    with Simulator(arguments.simplifications) as simulator:
        for game in arguments.games:
            row = table[game] = _compare(simulator, game, arguments)
            print(game, {key: value for key, value in row.items() if key != "causes"}, flush=True)
            for text, number in list(row["causes"].items())[:25]:
                print(f"  {number:4d} {text}")
    if arguments.result:
        report = manifest(java=os.environ["JDK_JAVA_OPTIONS"], steps=arguments.steps, episode=arguments.episode)
        write_result(arguments.result, report | {"games": table})


def _compare(simulator: Simulator, game: str, arguments: argparse.Namespace) -> dict[str, Any]:
    number = simulator.num_variations(game)
    numbers = sorted({k * number // arguments.variations for k in range(arguments.variations)})
    causes: collections.Counter[str] = collections.Counter()
    total, episode, began = 0, 0, time.monotonic()
    while total < arguments.steps:
        variation = numbers[episode % len(numbers)]
        cache = arguments.beginnings and arguments.beginnings / f"{game}_{variation}_{arguments.simplifications}.json"
        if cache and cache.exists():
            beginning = json.loads(cache.read_text(encoding="utf-8"))
        else:
            beginning = capture(simulator, game, variation)
            if cache:
                cache.write_text(json.dumps(beginning), encoding="utf-8")
        count, difference = play(simulator, beginning, game, variation, arguments.episode, arguments.seed + episode)
        if difference:
            commands, what, theirs, ours = difference
            key = cause(commands[-1] if commands else "reset", what, theirs, ours)
            if not causes[key] and os.environ.get("SHOW"):
                print(f"== {game}/{variation} {key}\n{commands}")
                print("\n".join(difflib.unified_diff(theirs.split("\n"), ours.split("\n"), n=1, lineterm="")))
            causes[key] += 1
        total += max(count, 1)
        episode += 1
    return {
        "variations": len(numbers), "episodes": episode, "steps": total, "differences": sum(causes.values()),
        "per_1000_steps": round(1000 * sum(causes.values()) / total, 1), "seconds": round(time.monotonic() - began),
        "causes": dict(causes.most_common()),
    }  # fmt: skip


if __name__ == "__main__":
    main()
