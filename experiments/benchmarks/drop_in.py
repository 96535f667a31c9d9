"""Rollout time for those who train on ALFWorld: the original's batch env, and ours behind the same import.

`python experiments/bench.py --suite drop_in`. Both sides get one config, one pool of games, one seed, and play random
admissible commands to each game's end or 50 steps; so they play the same episodes, and `mismatches` counts steps whose
texts, scores, dones or infos differ.

- `original_rollout_s`, `drop_in_rollout_s`: `reset` and all steps of `--episodes` episodes in one batch of as many
  games. The original runs a process per game, ours is one process; the clock is the wall's, commands are drawn in it.
  Ours is the median of `--rounds` rounds, before and after the original's one, each with an env of its own.
- `ratio`: the first by the second.
- `drop_in_large_rollout_s`: the same for `--large` episodes on our side alone; nothing is scaled from fewer.
- `cores`: those that this program may use.
- `*_init_s`: `init_env`; `*_games_s`: listing the games, `AlfredTWEnv(config)`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from embodied_mem.progress import counted
from embodied_mem.worlds.alfworld.compat import AlfredTWEnv
from embodied_mem.worlds.alfworld.env import find_games

MAX_STEPS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this suite."""
    parser.add_argument("--episodes", type=int, default=16, help="drop_in: episodes on both sides (default 16)")
    parser.add_argument("--large", type=int, default=256, help="drop_in: episodes on our side alone (default 256)")


def bench_drop_in(args: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements named in the module's text."""
    from alfworld.agents.environment import get_environment

    files = sorted(path for split in args.splits for path in find_games(split))
    sample = random.Random(args.seed).sample(files, args.large)
    with tempfile.TemporaryDirectory() as folder:
        for path in counted(sample, "storing", "game"):
            _store(path, Path(folder))
        config = _config(folder)
        ours = [_rollout(AlfredTWEnv, config, args.episodes) for _ in range(args.rounds)]
        original = _rollout(get_environment("AlfredTWEnv"), config, args.episodes)
        ours += [_rollout(AlfredTWEnv, config, args.episodes) for _ in range(args.rounds)]
        rounds = counted(range(2 * args.rounds), f"{args.large} episodes", "round")
        large = [_rollout(AlfredTWEnv, config, args.large) for _ in rounds]
    assert all(one["answers"] == ours[0]["answers"] for one in ours)
    measured = {"original": ([original], 3), "drop_in": (ours, 5), "drop_in_large": (large, 4)}
    times = {
        f"{side}_{name}": round(statistics.median(one[name] for one in runs), digits)
        for side, (runs, digits) in measured.items()
        for name in ("games_s", "init_s", "rollout_s")
    }
    for side, (runs, digits) in list(measured.items())[1:]:
        rollouts = [one["rollout_s"] for one in runs]
        times |= {f"{side}_rollout_s_min": round(min(rollouts), digits)}
        times |= {f"{side}_rollout_s_max": round(max(rollouts), digits)}
    pairs = zip(original["answers"], ours[0]["answers"], strict=True)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "episodes": args.episodes,
        "steps": original["steps"],
        "won": original["won"],
        "mismatches": sum(theirs != own for theirs, own in pairs),
        **times,
        "ratio": round(original["rollout_s"] / statistics.median(one["rollout_s"] for one in ours)),
        "large_episodes": args.large,
        "large_steps": large[0]["steps"],
        "rounds": 2 * args.rounds,
    }


def _rollout(kind: Any, config: dict[str, Any], batch_size: int) -> dict[str, Any]:
    """Play one batch to its end with a new env; return times, counts and all answers but the paths of files."""
    times = [time.perf_counter()]
    games = kind(config, train_eval="train")
    times.append(time.perf_counter())
    env = games.init_env(batch_size)
    times.append(time.perf_counter())
    rngs = [random.Random(row) for row in range(batch_size)]
    texts, infos = env.reset()
    answers, dones, num_steps = [(texts, infos)], (False,) * batch_size, 0
    while not all(dones):
        num_steps += batch_size - sum(dones)
        commands = [rng.choice(possible) for rng, possible in zip(rngs, infos["admissible_commands"])]
        texts, scores, dones, infos = env.step(commands)
        answers.append((texts, scores, dones, infos))
    times.append(time.perf_counter())
    env.close()
    games_s, init_s, rollout_s = (after - before for before, after in itertools.pairwise(times))
    return {"games_s": games_s, "init_s": init_s, "rollout_s": rollout_s, "answers": answers, "steps": num_steps,
            "won": sum(infos["won"])}  # fmt: skip


def _store(path: Path, folder: Path) -> None:
    """Link a game into a folder, with the `traj_data.json` beside it that the original asks for."""
    trial = folder / path.parts[-3] / path.parts[-2]
    trial.mkdir(parents=True)
    (trial / path.name).symlink_to(path.resolve())
    (trial / "traj_data.json").write_text(json.dumps({"task_type": path.parts[-3].split("-")[0]}))


def _config(folder: str) -> dict[str, Any]:
    return {
        "dataset": {"data_path": folder, "num_train_games": -1},
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6], "domain_randomization": False,
                "expert_type": "handcoded"},
        "general": {"training_method": "dqn"},
        "rl": {"training": {"max_nb_steps_per_episode": MAX_STEPS}},
    }  # fmt: skip
