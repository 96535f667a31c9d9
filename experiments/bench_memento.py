"""How fast the household world is: `python experiments/bench_memento.py --data DIR` ends with one JSON line.

- `steps_per_s`: actions per second of wall clock through the Python API, `envs.step(actions)` of a vector env with
  16 envs and 1 thread; a step answers the observation's text, success, percent complete and simulator steps. Median
  of several rounds. `cpu_steps_per_s`: the same per second of processor time, which other programs disturb less.
- `single_env_steps_per_s`: with one env, where the price of a Python call is not shared.
- `snapshot_us`: one `snapshot` and `restore`.

Actions are drawn outside the clock: walks, tours, picks, placements and perception tools with names of the episode's
house and objects.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from typing import Any

from embodied_mem.envs.memento import MementoVectorEnv
from embodied_mem.envs.memento_data import Task, load_tasks


def bench_memento(data: str | os.PathLike | None = None, steps: int = 2000, rounds: int = 5) -> dict[str, Any]:
    """Return the measurements described above.

    Args:
        data: the data folder; None takes `$EMBODIED_MEM_DATA/memento`.
        steps: steps per env and round.
        rounds: rounds of which the median is taken.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    tasks = load_tasks("acquisition", data)
    result: dict[str, Any] = {"suite": "memento", "tasks": len(tasks), "steps": steps, "rounds": rounds}
    for num_envs, name in ((16, ""), (1, "single_env_")):
        rates = [_rate(tasks, num_envs, steps, seed) for seed in range(rounds)]
        result[f"{name}steps_per_s"] = round(statistics.median(wall for wall, _ in rates))
        result[f"{name}cpu_steps_per_s"] = round(statistics.median(cpu for _, cpu in rates))
    envs = MementoVectorEnv(tasks)
    envs.reset()
    start = time.perf_counter()
    for _ in range(1000):
        envs.restore(0, envs.snapshot(0))
    result["snapshot_us"] = round(1e3 * (time.perf_counter() - start), 2)
    return result


def _rate(tasks: list[Task], num_envs: int, steps: int, seed: int) -> tuple[float, float]:
    rng = random.Random(seed)
    envs = MementoVectorEnv(tasks, num_envs=num_envs, seed=seed, max_steps=None, num_threads=1)
    wall = cpu = 0.0
    for start in range(0, steps, 40):
        envs.reset()
        names = [_names(envs, i) for i in range(num_envs)]
        script = [[_action(rng, *names[i]) for i in range(num_envs)] for _ in range(min(40, steps - start))]
        since, since_cpu = time.perf_counter(), time.process_time()
        for actions in script:
            envs.step(actions)
        wall += time.perf_counter() - since
        cpu += time.process_time() - since_cpu
    return steps * num_envs / wall, steps * num_envs / cpu


def _names(envs: MementoVectorEnv, index: int) -> tuple[list[str], list[str], list[str]]:
    env = envs.env(index)
    house = env.task.house
    rooms = [room["name"] for room in house["rooms"] if room["has_floor"]]
    return rooms, [piece["name"] for piece in house["furniture"]], list(env.state()["objects"])


def _action(rng: random.Random, rooms: list[str], furniture: list[str], objects: list[str]) -> str:
    room, piece, thing = rng.choice(rooms), rng.choice(furniture), rng.choice(objects)
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


def main() -> None:
    """Measure, print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with scenes.json, captions.json and episodes/")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    result = bench_memento(args.data, args.steps, args.rounds)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    load = os.getloadavg()[0]
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the end"
    result |= {"command": "python experiments/bench_memento.py", "commit": commit.stdout.strip()}
    result |= {"machine": f"{machine}, Python {platform.python_version()}"}
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
