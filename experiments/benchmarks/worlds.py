"""Speed of the native worlds: `python experiments/bench.py --suite worlds` ends with one JSON line.

Every registered world whose data is installed, or those that `--worlds` names:

- `<id>_steps_per_s`: actions per second of wall clock through the Python API, `envs.step(actions)` of a vector env with
  16 envs and 1 thread; a step answers the text, score, progress and the world's other entries of `info`. Median of
  several rounds; `_min` and `_max` are the slowest and the fastest round. `<id>_cpu_steps_per_s`: the same per second
  of processor time, which other programs on the machine disturb less.
- `<id>_single_env_steps_per_s`: with one env, where the price of a Python call is not shared.
- `<id>_snapshot_us`: one `snapshot` and `restore`.
- `<id>_tasks`: tasks drawn from.

Actions are drawn at random outside the clock; envs start anew every 40 steps.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from embodied_mem.envs import make
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.progress import counted
from embodied_mem.registry import card, load, names

NATIVE = [name for name in names("env") if card(name).native]
NUM_ENVS = 16
EPISODE_STEPS = 40


def admissible_action(rng: random.Random, envs: NativeVectorEnv, info: Mapping[str, Any], index: int) -> str:
    """Return one of the commands that `info` lists for env `index`."""
    return rng.choice(info["admissible_commands"][index])


def memento_action(rng: random.Random, envs: NativeVectorEnv, info: Mapping[str, Any], index: int) -> str:
    """Draw a walk, tour, pick, placement or question.

    The names are those of the episode's house and objects.
    """
    env = envs.env(index)
    house = env.task.house
    room = rng.choice([room["name"] for room in house["rooms"] if room["has_floor"]])
    piece = rng.choice(house["furniture"])["name"]
    thing = rng.choice(list(env.state()["objects"]))
    return rng.choice(
        (
            f"Explore[{room}]",
            f"Navigate[{piece}]",
            f"Navigate[{thing}]",
            f"Pick[{thing}]",
            f"Place[{thing}, on, {piece}, None, None]",
            f"DescribeObjectTool[{thing}]",
            f"FindReceptacleTool[a table in the {room}]",
        )
    )


@dataclasses.dataclass(frozen=True)
class Drive:
    """A random drive of a world: an action, and options under which play does not end early."""

    action: Callable[[random.Random, NativeVectorEnv, Mapping[str, Any], int], str] = admissible_action
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


DRIVES: dict[str, Drive] = {
    "alfworld": Drive(),
    "eb_alfred": Drive(options={"max_invalid": 60_000}),
    "eb_habitat": Drive(options={"max_invalid": 60_000}),
    "memento": Drive(memento_action),
}
"""One for each registered world."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the suite."""
    parser.add_argument("--worlds", nargs="+", help="ids of worlds (default all whose data is installed)")
    parser.add_argument("--world-steps", type=int, default=400, help="suite worlds: steps per env and round")
    parser.add_argument("--world-rounds", type=int, default=7, help="suite worlds: rounds")


def bench_worlds(args: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements described above.

    Raises:
        InvalidInputError: a world is unknown.
        DataNotFoundError: the data of a world that was asked for is not installed, or of none at all.
    """
    for world in args.worlds or ():
        if world not in NATIVE:
            raise InvalidInputError(f"--worlds: expected some of {', '.join(NATIVE)}, got {world!r}")
    result: dict[str, Any] = {}
    for world in counted(args.worlds or NATIVE, "random play", "world"):
        drive = DRIVES[world]
        try:
            num_tasks = make(world, tasks=load(world, "env").default_tasks, **drive.options).num_tasks
        except DataNotFoundError as error:
            if args.worlds:
                raise
            print(f"{world} is left out: {error}", file=sys.stderr)
            continue
        result[f"{world}_tasks"] = num_tasks
        for num_envs, name in ((NUM_ENVS, ""), (1, "single_env_")):
            rates = [_rate(world, num_envs, args.world_steps, args.seed + k) for k in range(args.world_rounds)]
            wall = [rate for rate, _ in rates]
            result[f"{world}_{name}steps_per_s"] = round(statistics.median(wall))
            result[f"{world}_{name}steps_per_s_min"] = round(min(wall))
            result[f"{world}_{name}steps_per_s_max"] = round(max(wall))
            result[f"{world}_{name}cpu_steps_per_s"] = round(statistics.median(cpu for _, cpu in rates))
        envs = make(world, tasks=load(world, "env").default_tasks, **drive.options)
        envs.reset()
        since = time.perf_counter()
        for _ in range(1000):
            envs.restore(0, envs.snapshot(0))
        result[f"{world}_snapshot_us"] = round(1e3 * (time.perf_counter() - since), 2)
    if not result:
        raise DataNotFoundError("no world's data is installed; docs/envs.md says where it is looked for")
    return result


def _rate(world: str, num_envs: int, steps: int, seed: int) -> tuple[float, float]:
    """Return steps per second of wall clock and of processor time."""
    drive = DRIVES[world]
    rng = random.Random(seed)
    options = {"num_envs": num_envs, "seed": seed, "max_steps": None, "num_threads": 1}
    envs = make(world, tasks=load(world, "env").default_tasks, **options, **drive.options)
    wall = cpu = 0.0
    for step in range(steps):
        if step % EPISODE_STEPS == 0:
            _, info = envs.reset()
        actions = [drive.action(rng, envs, info, i) for i in range(num_envs)]
        since, since_cpu = time.perf_counter(), time.process_time()
        _, _, _, _, info = envs.step(actions)
        wall += time.perf_counter() - since
        cpu += time.process_time() - since_cpu
    return steps * num_envs / wall, steps * num_envs / cpu
