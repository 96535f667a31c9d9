"""Rollout time for those who train on ALFWorld with verl-agent: its envs before, and behind our import.

`python experiments/bench.py --suite drop_in`. verl-agent starts an actor with an env of one game for each of
`--episodes` games, and steps all of them with one command each. Ours is `serve.verl_agent.build_alfworld_envs` with the
same configuration, games (all of `--splits`), seeds and groups. Both sides play random admissible commands for 50
steps, drawn from a generator per game, so they play the same episodes.

- `drop_in_*`: all `--episodes` games.
- `original_*`: `alfworld` 0.4.2 in a process per game, without Ray, whose actors cost more. It plays `--actors` of the
  games, one of each of as many groups, at the same time: enough to occupy all cores. `original_scaled_s` is its rollout
  times `episodes / actors`; nothing else is scaled.
- Both are measured `--repeats` times, alternating; lists hold the single times, ours first. `ratio` is of medians.
- `mismatches`: answers of a game (text, reward, done, won, admissible commands) that differ.
- `*_list_s`: listing the games; of ours the first time and again. `*_make_s`: starting the envs; `*_rollout_s`: `reset`
  and 50 steps, wall clock. `*_cpu_s`: processor time of making and rollout, which other programs disturb less; `loads`:
  load of the machine before each measurement. `ratio_cpu` is of processor time, the original's scaled, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from embodied_mem.progress import counted
from embodied_mem.serve.verl_agent import WON_REWARD, build_alfworld_envs
from embodied_mem.worlds.alfworld.compat import AlfredTWEnv
from embodied_mem.worlds.alfworld.env import find_games

MAX_STEPS = 50
GROUP = 8

Answers = list[tuple[Any, ...]]
"""After each step (text, reward, done, won, admissible commands)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this suite."""
    parser.add_argument("--episodes", type=int, default=128, help="drop_in: games side by side (default 128)")
    parser.add_argument("--actors", type=int, default=4, help="drop_in: of these, games of the original (default 4)")
    parser.add_argument("--repeats", type=int, default=2, help="drop_in: measurements of each side (default 2)")


def bench_drop_in(args: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements named in the module's text."""
    from alfworld.agents.environment import get_environment

    files = sorted(path for split in args.splits for path in find_games(split))
    some = [*range(0, args.episodes, args.episodes // args.actors)][: args.actors]
    ours, original, loads, mismatches = [], [], list[float](), 0
    with tempfile.TemporaryDirectory() as folder:
        for path in counted(files, "storing", "game"):
            _store(path, Path(folder))
        config = _config(folder)
        path = Path(folder, "config_tw.yaml")
        path.write_text(json.dumps(config))  # JSON is YAML
        first_list_s, _ = _time_of(lambda: AlfredTWEnv(config))
        for _ in counted(range(args.repeats), "both sides", "time"):
            loads.append(round(os.getloadavg()[0], 1))
            own = _ours(path, config, args)
            loads.append(round(os.getloadavg()[0], 1))
            theirs = _original(get_environment("AlfredTWEnv"), config, some, args.seed)
            for row, answers in zip(some, theirs.pop("answers"), strict=True):
                mismatches += sum(a != b for a, b in zip(own["answers"][row], answers, strict=True))
            steps = sum(len(answers) - 1 for answers in own.pop("answers"))
            ours.append(own)
            original.append(theirs)
    times = {
        f"{side}_{name}": [round(run[name], 4) for run in runs]
        for side, runs in (("drop_in", ours), ("original", original))
        for name in ("list_s", "make_s", "rollout_s", "cpu_s")
    }
    own_s, own_cpu_s = (statistics.median(run[name] for run in ours) for name in ("rollout_s", "cpu_s"))
    scaled_s, scaled_cpu_s = (
        statistics.median(run[name] for run in original) * args.episodes / args.actors
        for name in ("rollout_s", "cpu_s")
    )
    return {
        "cores": len(os.sched_getaffinity(0)),
        "games": len(files),
        "episodes": args.episodes,
        "group": GROUP,
        "steps": steps,
        "actors": args.actors,
        "original_steps": args.actors * MAX_STEPS,
        "mismatches": mismatches,
        "drop_in_first_list_s": round(first_list_s, 4),
        **times,
        "original_scaled_s": round(scaled_s),
        "original_scaled_cpu_s": round(scaled_cpu_s),
        "drop_in_median_s": round(own_s, 4),
        "ratio": round(scaled_s / own_s),
        "ratio_cpu": round(scaled_cpu_s / own_cpu_s),
        "loads": loads,
    }


def _time_of(work: Callable[[], Any]) -> tuple[float, Any]:
    since = time.perf_counter()
    result = work()
    return time.perf_counter() - since, result


def _ours(path: Path, config: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    list_s, _ = _time_of(lambda: AlfredTWEnv(config))
    cpu_s = time.process_time()
    make_s, envs = _time_of(lambda: build_alfworld_envs(path, args.seed, args.episodes // GROUP, GROUP))
    rngs = [random.Random(row) for row in range(args.episodes)]

    def rollout() -> list[Answers]:
        texts, _, infos = envs.reset()
        answers = [[(text, 0.0, False, info["won"], info["admissible_commands"])] for text, info in zip(texts, infos)]
        for _ in range(MAX_STEPS):
            commands = [rng.choice(possible) for rng, possible in zip(rngs, envs.get_admissible_commands)]
            texts, _, rewards, dones, infos = envs.step(commands)
            for row, (text, reward, is_done, info) in enumerate(zip(texts, rewards, dones, infos)):
                answers[row].append((text, reward, is_done, info["won"], info["admissible_commands"]))
        return answers

    rollout_s, answers = _time_of(rollout)
    cpu_s = time.process_time() - cpu_s
    return {"list_s": list_s, "make_s": make_s, "rollout_s": rollout_s, "cpu_s": cpu_s, "answers": answers}


def _original(kind: Any, config: dict[str, Any], rows: Sequence[int], seed: int) -> dict[str, Any]:
    list_s, games = _time_of(lambda: kind(config, train_eval="train"))
    rngs = [random.Random(row) for row in rows]
    cpu_s = _cpu_s_of_ended()
    with contextlib.ExitStack() as stack:
        make_s, actors = _time_of(lambda: [stack.enter_context(_actor(games, seed + row // GROUP)) for row in rows])

        def rollout() -> list[Answers]:
            answers = [[answer] for answer in _answers_of(actors, [None] * len(rows))]
            for _ in counted(range(MAX_STEPS), f"{len(rows)} games of the original", "step"):
                commands = [rng.choice(own[-1][-1]) for rng, own in zip(rngs, answers)]
                for own, answer in zip(answers, _answers_of(actors, commands)):
                    own.append(answer)
            return answers

        rollout_s, answers = _time_of(rollout)
    cpu_s = _cpu_s_of_ended() - cpu_s
    return {"list_s": list_s, "make_s": make_s, "rollout_s": rollout_s, "cpu_s": cpu_s, "answers": answers}


def _cpu_s_of_ended() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _answers_of(actors: Sequence[Any], commands: Sequence[str | None]) -> Answers:
    for actor, command in zip(actors, commands):
        actor.send(command)
    return [actor.recv() for actor in actors]


@contextlib.contextmanager
def _actor(games: Any, seed: int) -> Iterator[Any]:
    """Start a process with an env of one game; yield its pipe.

    An actor of verl-agent has such a process.
    """
    here, there = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=_act, args=(games, seed, there))
    process.start()
    try:
        assert here.recv() == "made"
        yield here
    finally:
        process.kill()
        process.join()


def _act(games: Any, seed: int, pipe: Any) -> None:
    env = games.init_env(batch_size=1)
    env.seed(seed)
    pipe.send("made")
    while True:
        command = pipe.recv()
        if command is None:
            texts, infos = env.reset()
            dones = [False]
        else:
            texts, _, dones, infos = env.step([command])
        is_won = infos["won"][0]
        pipe.send((texts[0], WON_REWARD * is_won, dones[0], is_won, infos["admissible_commands"][0]))


def _store(path: Path, folder: Path) -> None:
    """Link a game into a folder, with `traj_data.json` beside it.

    The original asks for that file.
    """
    trial = folder / path.parts[-3] / path.parts[-2]
    trial.mkdir(parents=True)
    (trial / path.name).symlink_to(path.resolve())
    (trial / "traj_data.json").write_text(json.dumps({"task_type": path.parts[-3].split("-")[0]}))


def _config(folder: str) -> dict[str, Any]:
    return {
        "dataset": {"data_path": folder, "num_train_games": -1},
        "env": {"type": "AlfredTWEnv", "goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6],
                "domain_randomization": False, "expert_type": "handcoded"},
        "general": {"training_method": "dqn"},
        "rl": {"training": {"max_nb_steps_per_episode": MAX_STEPS}},
    }  # fmt: skip
