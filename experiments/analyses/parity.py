"""Play every official ALFWorld game on both sides, ours and the original's, and count the differences.

    python experiments/analyses/parity.py                    # all installed games: about an hour on one core
    python experiments/analyses/parity.py --games 100        # a sample of them
    python experiments/analyses/parity.py --grammar 0.3      # the wording of ALFWorld 0.3.x

Needs `pip install "embodied_mem[envs]"` and ALFWorld's data (see docs/worlds/alfworld.md). A run that was stopped goes
on where it was when started again with the same arguments. The closing JSON line is also written to
`runs/alfworld_parity.json`, or what `--output` names. Exit status 1 when anything differs.
"""

from __future__ import annotations

import argparse
import collections
import gc
import json
import multiprocessing
import pathlib
import platform
import random
import shlex
import sys
import time

import alfworld_original

from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import commit
from embodied_mem.worlds.alfworld import env as alfworld

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERT_SHARES = (0.2, 0.5, 0.9)
"""Share of commands from the file's walkthrough, for one game after the other; the last one wins most games."""


def main() -> int:
    """Run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", nargs="+", default=["train", "valid_seen"], help="splits or folders to play")
    parser.add_argument("--games", type=int, help="how many games, drawn at random; default all")
    parser.add_argument("--commands", type=int, default=24, help="commands per game (default 24)")
    parser.add_argument("--seed", type=int, default=0, help="decides order and commands (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side (default 1)")
    parser.add_argument("--grammar", choices=["0.4", "0.3"], default="0.4")
    parser.add_argument("--output", type=output_file, default=ROOT / "runs/alfworld_parity.json")
    parser.add_argument("--work-dir", type=pathlib.Path, default=ROOT / "runs/parity", help="what is done so far")
    args = parser.parse_args()
    command_line = shlex.join(["python", *sys.argv])  # now: the planner's translator overwrites sys.argv

    games = sorted(path for split in args.splits for path in alfworld.find_games(split))
    random.Random(args.seed).shuffle(games)
    games = games[: args.games]
    args.work_dir.mkdir(parents=True, exist_ok=True)
    record = args.work_dir / f"grammar{args.grammar}-seed{args.seed}-commands{args.commands}.jsonl"
    rows = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    done = {row["game"]: row for row in rows}

    todo = [
        (str(path), args.commands, i, args.grammar)
        for i, path in enumerate(games)
        if alfworld.task_id_of(path) not in done
    ]
    start = time.monotonic()
    # TextWorld keeps a few megabytes of every game it ever loaded, so each process plays a few games only.
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=20) as pool, record.open("a") as file:
        for new, (path, differences) in enumerate(pool.imap_unordered(_play, todo), start=1):
            row = {"game": alfworld.task_id_of(path), "differences": differences}
            done[row["game"]] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            for difference in differences:
                print(f"\n{difference}", flush=True)
            left = (time.monotonic() - start) / new * (len(todo) - new)
            progress = f"{len(games) - len(todo) + new}/{len(games)} games, {left / 60:.0f} min left"
            print(f"\r{progress} ", end="", file=sys.stderr, flush=True)

    played = [done[alfworld.task_id_of(path)] for path in games]
    types = collections.Counter(row["game"].split("-", 1)[0] for row in played)
    result = {
        "suite": "alfworld_parity",
        "games": len(played),
        "commands_per_game": args.commands,
        "games_by_task_type": dict(sorted(types.items())),
        "mismatches": sum(len(row["differences"]) for row in played),
        "grammar": args.grammar,
        "seed": args.seed,
        "command": command_line,
        "commit": commit("--short") or "unknown",
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
    }
    print(f"\n{'task type':34s} games")
    for name, count in sorted(types.items()):
        print(f"{name:34s} {count:5d}")
    print(f"{'differences':34s} {result['mismatches']:5d}")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(args.output, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))
    return 1 if result["mismatches"] else 0


def _play(job: tuple[str, int, int, str]) -> tuple[str, list[str]]:
    path, num_commands, seed, grammar = job
    gc.disable()  # the planner's translator makes millions of small objects; the process ends after a few games
    with alfworld_original.memoised():
        share = EXPERT_SHARES[seed % len(EXPERT_SHARES)]
        return path, alfworld_original.compare_game(path, num_commands, seed, grammar, expert_share=share)


if __name__ == "__main__":
    run(lambda: sys.exit(main()))
