"""Latency of a full step of `LifelongMemory` in a large memory: `python experiments/benchmarks/lifelong.py`.

The graph is filled with generated households, each walked through in the game's own words as one task until there are
`--nodes` nodes; `--past` whole episodes come on top. Then an expert plays ALFWorld episodes (official games where they
are installed, else generated ones), and each step is timed: `observe(action, answer)` and `retrieve(goal, budget)`.
Rules only, one process pinned to one core, one thread; the game itself is not in the time.

- `lifelong_step_ms_p50`, `_p99`, `_max`: wall clock of any step: `observe`, or `begin_task` for the first, and retrieve
  together; `lifelong_step_cpu_ms_*` the same in processor time of the thread, which other programs disturb less.
- `lifelong_begin_ms_p50`, `_p99`, `lifelong_begin_cpu_ms_*`: the first step of a task alone, which searches long-term
  memory, since that changes with tasks only.
- `lifelong_observe_ms_p50`, `lifelong_retrieve_ms_p50`, `lifelong_end_task_ms_p50`: parts, and the task-level update.
- `lifelong_threads_step_ms_p50`: the same steps with the modules in threads, to see that rules do not want them.
- `lifelong_state_s`, `lifelong_state_mb`, `lifelong_restore_s`: the whole memory to bytes and back.
- `lifelong_fork_ms_p50`, `lifelong_fork_kb`: an independent copy; time, and memory that Python allocates for it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
import tracemalloc
from typing import Any

from embodied_mem.errors import DataNotFoundError
from embodied_mem.memory import Scope
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.progress import Progress, counted
from embodied_mem.worlds.alfworld.env import Env, Game, find_games, task_id_of
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.generator import Generator

_MAX_STEPS = 50


def bench_lifelong(
    num_nodes: int = 100_000, num_past: int = 200, num_episodes: int = 60, budget_tokens: int = 256, seed: int = 0
) -> dict[str, Any]:
    """Return the measurements named in the module's text."""
    memory = LifelongMemory(Scope(user="bench", environment="homes"))
    generator = Generator(seed)
    start = time.perf_counter()
    rooms = _fill(memory, generator, num_nodes)
    fill_s = time.perf_counter() - start
    past = [_play(_generated(generator, scene, "valid", scene)) for scene in range(num_past)]
    for task_id, goal, texts, actions, won in counted(past, "past tasks", "task"):
        memory.begin_task(task_id, goal, texts[0])
        for action, text in zip(actions, texts[1:]):
            memory.observe(action, text)
        memory.end_task(won)
    games, source = _games(generator, num_episodes, seed)
    played = [_play(game) for game in games]
    state, state_s = _timed(memory.state)
    restored = LifelongMemory(memory.scope)
    _, restore_s = _timed(lambda: restored.restore(state))
    threaded = LifelongMemory(memory.scope, parallel=True)
    threaded.restore(state)
    core = _pin()
    times = _measure(memory, played, budget_tokens)
    threads = _measure(threaded, played[:10], budget_tokens)
    threaded.close()
    os.sched_setaffinity(0, core)
    both, cpu = [a + b for a, b in zip(times["observe"], times["retrieve"])], times["cpu"]
    in_threads = [a + b for a, b in zip(threads["observe"], threads["retrieve"])]
    begins, begins_cpu = ([values[i] for i in times["first"]] for values in (both, cpu))
    fork_s = [_timed(memory.fork)[1] for _ in range(64)]
    tracemalloc.start()
    another = memory.fork()
    fork_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    another.close()
    with memory.spatial.graph.snapshot() as now:
        nodes, facts = now.num_nodes, now.num_current_facts
    tails = {"step_ms": both, "step_cpu_ms": cpu, "begin_ms": begins, "begin_cpu_ms": begins_cpu}
    medians = {
        "observe_ms": times["observe"], "retrieve_ms": times["retrieve"], "end_task_ms": times["end"],
        "threads_step_ms": in_threads, "fork_ms": fork_s,
    }  # fmt: skip
    return {
        **{f"lifelong_{name}_p50": _quantile(values, 0.5) for name, values in (tails | medians).items()},
        **{f"lifelong_{name}_p99": _quantile(values, 0.99) for name, values in tails.items()},
        "lifelong_step_ms_max": _quantile(both, 1.0),
        "lifelong_items_mean": round(statistics.mean(times["items"]), 1),
        "lifelong_state_s": round(state_s, 2),
        "lifelong_state_mb": round(len(state) / 1e6, 1),
        "lifelong_restore_s": round(restore_s, 2),
        "lifelong_fork_kb": round(fork_bytes / 1024, 1),
        "steps": len(both),
        "episodes": len(played),
        "games": source,
        "graph_nodes": nodes,
        "graph_current_facts": facts,
        "rooms": rooms,
        "fill_s": round(fill_s, 1),
        "episodic_entries": len(memory.episodic),
        "semantic_entries": len(memory.semantic),
        "budget_tokens": budget_tokens,
    }


def _generated(generator: Generator, scene: int, split: str, trial: int) -> Game:
    """Return a generated game of a scene.

    Its task is one that the scene can serve.
    """
    task = sorted(generator.scene(scene).goals)[0]
    return generator.game(scene, trial, split, task).load()


def _fill(memory: LifelongMemory, generator: Generator, num_nodes: int) -> int:
    """Walk through generated households until the graph has enough nodes.

    Returns the number of households.
    """
    scene = done = 0
    spatial = memory.spatial
    progress = Progress("households", num_nodes, unit="node")
    while True:
        with spatial.graph.snapshot() as now:
            progress.update(now.num_nodes - done)
            done = now.num_nodes
            if done >= num_nodes:
                progress.close()
                return scene
        game = _generated(generator, scene, "train", 0)
        env = Env(game)
        text = env.reset()
        memory.begin_task(f"household {scene}", game.task, text)
        for name, receptacle in env.state()["receptacles"].items():
            commands = [f"go to {name}", f"open {name}"] if receptacle["openable"] else [f"go to {name}"]
            for command in commands:
                memory.observe(command, env.step(command))
        memory.end_task(True)
        scene += 1


def _games(generator: Generator, count: int, seed: int) -> tuple[list[Game], str]:
    try:
        files = find_games("valid_seen")
    except DataNotFoundError:
        return [_generated(generator, scene, "valid", 10_000 + scene) for scene in range(count)], "generated"
    chosen = random.Random(seed).sample(files, min(count, len(files)))
    return [Game.load(str(path)) for path in sorted(chosen, key=task_id_of)], "valid_seen"


def _play(game: Game) -> tuple[str, str, list[str], list[str], bool]:
    """Return (task id, goal, texts, actions, won) of an expert's episode.

    The observing expert plays it.
    """
    env, expert = Env(game), ObservingExpert()
    texts, actions = [env.reset()], []
    expert.reset(game.task, texts[0])
    while len(actions) < _MAX_STEPS and not env.won:
        actions.append(expert.act(texts[-1]))
        texts.append(env.step(actions[-1]))
    return game.name, game.task, texts, actions, env.won


def _measure(memory: LifelongMemory, played: list, budget_tokens: int) -> dict[str, list]:
    times: dict[str, list] = {"observe": [], "retrieve": [], "cpu": [], "end": [], "first": [], "items": []}
    for task_id, goal, texts, actions, won in played:
        times["first"].append(len(times["observe"]))
        for action, text in zip(["", *actions], texts):
            cpu, start = time.thread_time(), time.perf_counter()
            if action:
                memory.observe(action, text)
            else:
                memory.begin_task(task_id, goal, text)
            middle = time.perf_counter()
            recollection = memory.retrieve(goal, budget_tokens)
            end = time.perf_counter()
            times["cpu"].append(time.thread_time() - cpu)
            times["observe"].append(middle - start)
            times["retrieve"].append(end - middle)
            times["items"].append(len(recollection.items))
        _, seconds = _timed(lambda: memory.end_task(won))  # noqa: B023 (called at once)
        times["end"].append(seconds)
    return times


def _timed(call: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def _pin() -> set[int]:
    """Keep this process on one core; the cores it had before."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    return cores


def _quantile(seconds: list[float], share: float) -> float:
    """Milliseconds."""
    ranked = sorted(seconds)
    return round(1e3 * ranked[min(int(share * len(ranked)), len(ranked) - 1)], 4)


def main() -> None:
    """Print the measurements and end with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes in the graph (default 100000)")
    parser.add_argument("--past", type=int, default=200, help="episodes in long-term memory (default 200)")
    parser.add_argument("--episodes", type=int, default=60, help="episodes that are timed (default 60)")
    parser.add_argument("--budget", type=int, default=256, help="tokens of a recollection (default 256)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    result = bench_lifelong(args.nodes, args.past, args.episodes, args.budget, args.seed)
    width = max(map(len, result))
    for name, value in result.items():
        print(f"{name:{width}}  {value:>12}")
    print(json.dumps(result))


if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(main)
