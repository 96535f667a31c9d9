"""Benchmarks: `python experiments/bench.py --suite alfworld` prints a table, and with `--json` one line.

The other suites are described in `experiments/benchmarks`: `memory`, `graph` (graph_native.py), `worlds`, `loading`,
`models`, `drop_in`, `clients`.

Suite `alfworld`: our engine against TextWorld on the same games in one run, on one thread.

- `native_steps_per_s`: steps per second of wall clock through the Python API, `envs.step(actions)` of a vector env with
  16 envs and 1 thread; a step answers the observation's text, the list of admissible commands, score and progress. The
  median of several rounds. Random admissible commands, drawn outside the clock. `native_single_env_steps_per_s` is the
  same with one env, where the price of a Python call is not shared.
- `textworld_steps_per_s`: the same games in TextWorld with ALFWorld's demangler, `env.step(command)`: text, score and
  admissible commands too; loading and resets are not counted.
- the same with `cpu`: per second of processor time, which other programs on the machine disturb less.
- `ratio`: the first by the second, both by wall clock. `mismatches`: commands after which the two sides differ.
- `load_ms_p50`, `load_all_s`: `Game.load` of every installed game, one after the other, from file to playable game.
- `kilobytes_per_env`: growth of the process's memory by a vector env in which each env plays a game of its own, after
  30 steps, divided by their number; what Python keeps of command texts is in it.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import pathlib
import platform
import random
import shlex
import statistics
import sys
import time
from typing import Any

import numpy as np

import embodied_mem
from analyses import alfworld_original
from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.report import commit, processor
from embodied_mem.progress import counted
from embodied_mem.worlds.alfworld import env as alfworld

ROOT = pathlib.Path(__file__).resolve().parents[1]
NUM_ENVS = 16
NUM_MEMORY_ENVS = 400


def bench_alfworld(args: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements of the suite `alfworld`."""
    files = sorted(path for split in args.splits for path in alfworld.find_games(split))
    kilobytes_per_env = _kilobytes_per_env(files)  # first, while no memory freed by others can be used again
    load_ms = []
    start, start_cpu = time.perf_counter(), time.process_time()
    for path in counted(files, "loading", "game"):
        since = time.perf_counter()
        alfworld.Game.load(str(path))
        load_ms.append(1e3 * (time.perf_counter() - since))
    load_all_s, load_all_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu

    sample = _sample(files, args.games, args.seed)
    native = [_native_rate(sample, NUM_ENVS, args) for _ in range(args.rounds)]
    single = [_native_rate(sample, 1, args) for _ in range(args.rounds)]
    original, mismatches, commands = _original_rate(sample, args)
    native += [_native_rate(sample, NUM_ENVS, args) for _ in range(args.rounds)]  # before and after, in case of drift
    original_rate, original_cpu = original
    (rate, rate_cpu), (single_rate, single_cpu) = (map(statistics.median, zip(*rates)) for rates in (native, single))
    return {
        "native_steps_per_s": round(rate),
        "native_steps_per_s_min": round(min(wall for wall, _ in native)),
        "native_steps_per_s_max": round(max(wall for wall, _ in native)),
        "native_steps_per_cpu_s": round(rate_cpu),
        "native_single_env_steps_per_s": round(single_rate),
        "native_single_env_steps_per_cpu_s": round(single_cpu),
        "textworld_steps_per_s": round(original_rate, 2),
        "textworld_steps_per_cpu_s": round(original_cpu, 2),
        "ratio": round(rate / original_rate),
        "ratio_cpu": round(rate_cpu / original_cpu),
        "load_ms_p50": round(statistics.median(load_ms), 3),
        "load_ms_max": round(max(load_ms), 3),
        "load_all_s": round(load_all_s, 2),
        "load_all_cpu_s": round(load_all_cpu_s, 2),
        "kilobytes_per_env": round(kilobytes_per_env, 1),
        "games": len(files),
        "games_in_comparison": len(sample),
        "commands_in_comparison": commands,
        "mismatches": mismatches,
    }


def _sample(files: list[pathlib.Path], count: int, seed: int) -> list[pathlib.Path]:
    """Return `count` games, spread evenly over the task types."""
    by_type = {name: [f for f in files if f.parts[-3].startswith(f"{name}-")] for name in alfworld.TASK_TYPES}
    by_type = {name: games for name, games in by_type.items() if games}
    rng = random.Random(seed)
    share = max(1, count // len(by_type))
    return [game for games in by_type.values() for game in rng.sample(games, min(share, len(games)))]


def _native_rate(sample: list[pathlib.Path], num_envs: int, args: argparse.Namespace) -> tuple[float, float]:
    """Return steps per second of wall clock and of processor time."""
    envs = embodied_mem.envs.make("alfworld", tasks=sample, num_envs=num_envs, max_steps=None, num_threads=1)
    rng = random.Random(args.seed)
    spent = spent_cpu = steps = 0.0
    for first in range(0, len(sample), num_envs):
        _, info = envs.reset(options={"task_indices": np.arange(first, first + num_envs) % len(sample)})
        for _ in range(args.native_steps // len(sample)):
            actions = [rng.choice(commands) for commands in info["admissible_commands"]]
            since, since_cpu = time.perf_counter(), time.process_time()
            _, _, _, _, info = envs.step(actions)
            spent += time.perf_counter() - since
            spent_cpu += time.process_time() - since_cpu
            steps += num_envs
    return steps / spent, steps / spent_cpu


def _original_rate(sample: list[pathlib.Path], args: argparse.Namespace) -> tuple[tuple[float, float], int, int]:
    spent, spent_cpu, steps, mismatches = 0.0, 0.0, 0, 0
    for i, path in enumerate(counted(sample, "TextWorld", "game")):
        original = alfworld_original.start_original(path)
        state = original.reset()
        env = alfworld.Env(alfworld.Game.load(str(path)))
        rng = random.Random(args.seed + i)
        for _ in range(args.commands):
            command = rng.choice(env.admissible_commands)
            since, since_cpu = time.perf_counter(), time.process_time()
            state, score, done = original.step(command)
            spent += time.perf_counter() - since
            spent_cpu += time.process_time() - since_cpu
            steps += 1
            ours = (env.step(command), env.admissible_commands, env.score, env.won)
            mismatches += ours != (state.feedback, state.admissible_commands, score, done)
        original.close()
    return (steps / spent, steps / spent_cpu), mismatches, steps


def _kilobytes_per_env(files: list[pathlib.Path]) -> float:
    count = min(NUM_MEMORY_ENVS, len(files))
    chosen = random.Random(0).sample(files, count)
    gc.collect()
    before = _resident_bytes()
    envs = embodied_mem.envs.make("alfworld", tasks=chosen, num_envs=count, max_steps=None, num_threads=1)
    _, info = envs.reset()
    rng = random.Random(0)
    for _ in range(30):
        _, _, _, _, info = envs.step([rng.choice(commands) for commands in info["admissible_commands"]])
    gc.collect()
    return (_resident_bytes() - before) / count / 1000


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MODULES = {
    "memory": "memory", "graph": "graph_native", "worlds": "worlds", "models": "models", "drop_in": "drop_in",
    "loading": "loading", "clients": "clients",
}  # fmt: skip
"""Suite -> its module in `benchmarks`, which has `bench_SUITE` and `add_arguments`."""


def _machine() -> str:
    load = os.getloadavg()[0]
    return f"{processor()}, {os.cpu_count()} cores, load {load:.1f} at the end, Python {platform.python_version()}"


def main() -> int:
    """Run one suite and return the exit status.

    It is 1 when the suite found mismatches.
    """
    from embodied_mem.evaluation.command import add_json_option, output_file

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modules = {suite: importlib.import_module(f"benchmarks.{module}") for suite, module in MODULES.items()}
    parser.add_argument("--suite", choices=sorted(["alfworld", *MODULES]), required=True)
    parser.add_argument("--splits", nargs="+", default=["train", "valid_seen"], help="splits or folders of games")
    parser.add_argument("--games", type=int, default=24, help="games played on both sides (default 24)")
    parser.add_argument("--commands", type=int, default=12, help="commands per game for TextWorld (default 12)")
    parser.add_argument(
        "--native-steps", type=int, default=48_000, help="steps per round of our engine, over all games"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds of our engine before and after TextWorld (default 3)"
    )
    parser.add_argument("--seed", type=int, default=0)
    for module in modules.values():
        module.add_arguments(parser)
    parser.add_argument("--output", type=output_file, help="file of the results; default: runs/bench_<suite>.json")
    add_json_option(parser)
    args = parser.parse_args()
    args.output = args.output or ROOT / f"runs/bench_{args.suite}.json"
    command = shlex.join(["python", *sys.argv])  # now: the planner's translator overwrites sys.argv

    bench = getattr(modules.get(args.suite), f"bench_{args.suite}", bench_alfworld)
    result = bench(args)
    width = max(map(len, result))
    print(f"{'suite ' + args.suite:{width}}  value")
    for name, value in result.items():
        if isinstance(value, int | float):  # the others have printed their own tables
            print(f"{name:{width}}  {value:>12,}")
    result = {
        "suite": args.suite,
        **result,
        "command": command,
        "commit": commit("--short") or "unknown",
        "machine": _machine(),
        "seed": args.seed,
    }
    args.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(args.output, json.dumps(result, indent=1) + "\n")
    if args.json:
        print(json.dumps(result))
    return 1 if result.get("mismatches") else 0


if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(lambda: sys.exit(main()))
