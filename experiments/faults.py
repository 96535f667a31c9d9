"""The long campaign against the library: kills, damage, full disks, mutated input, threads, forks, faulty servers.

    python experiments/faults.py --hours 3                        # all attacks; given again, it goes on
    python experiments/faults.py --hours 0.2 --attacks kill_write flip_log --seed 7
    python experiments/faults.py --planted                        # does each attack find the fault planted for it?
    python experiments/faults.py --replay runs/faults/failing/flip_log-0-12
    python experiments/faults.py --hours 0 --output experiments/results/faults.json      # write what is there
    python experiments/faults.py --store postgresql --hours 0.1   # processes and a server, see attacks/servers.py

Each attack gets the same time (`WEIGHTS` has the exceptions), in turns of `--turn` seconds. A try is one kill, one
damaged file, one mutated input, one call of a thread; it has landed when it is known to have struck: the process died
in the middle of the operation, the disk refused, the reader refused the input. The folder of the run (`--run_dir`)
holds the counts, from which a killed campaign goes on, and `failing/`, the input of every fault. The exit status is
the number of faults. docs/attacks.md has what is attacked.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import platform
import sys
import time

from attacks import ATTACKS, Outcome, attack
from attacks.planted import PLANTED
from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.report import commit
from embodied_mem.progress import Progress
from tables import table_of_faults

MAX_FAULTS = 20
"""Most faults of one attack; its turns end there, so that a fault which is always there does not fill the disk."""

WEIGHTS = {"mutate_native": 6.0} | {f"kill_{what}": 4.0 for what in ("write", "snapshot", "forget", "open", "vectors")}
"""Shares of the time, where they are not 1: one attack for ten readers; kills, some twenty a second."""


def load(path: pathlib.Path, names: list[str], seed: int) -> dict[str, Outcome]:
    """Read a campaign's counts so far. Raises for another seed."""
    counts = {name: Outcome() for name in names}
    if path.exists():
        saved = json.loads(path.read_text())
        if saved["seed"] != seed:
            sys.exit(f"error: {path} is of seed {saved['seed']}, got {seed}; give another --run_dir")
        counts = {name: Outcome(**values) for name, values in saved["attacks"].items()} | {
            name: empty for name, empty in counts.items() if name not in saved["attacks"]
        }
    return counts


def report(counts: dict[str, Outcome], seed: int, command: str) -> dict:
    """Return a campaign's result, in the form of all results."""
    return {
        "command": command,
        "commit": commit(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}, {platform.system()}",
        "seed": seed,
        "attacks": {name: dataclasses.asdict(counts[name]) for name in ATTACKS if name in counts},
    }


def campaign(args: argparse.Namespace, names: list[str]) -> dict[str, Outcome]:
    """Run turns until the time is up.

    The file of counts is replaced after each.
    """
    state = args.run_dir / "faults.json"
    command = f"python experiments/faults.py --hours {args.hours:g} --seed {args.seed}"
    counts = load(state, names, args.seed)
    budget = args.hours * 3600
    spent = sum(outcome.seconds for outcome in counts.values())
    with Progress("faults", total=round(budget), start=round(min(spent, budget)), unit="second") as progress:
        while budget:
            live = [name for name in names if len(counts[name].faults) < MAX_FAULTS]
            if not live:
                break
            if sum(outcome.seconds for outcome in counts.values()) >= budget:
                break
            name = min(live, key=lambda name: counts[name].seconds / WEIGHTS.get(name, 1.0))
            one, began = counts[name], time.monotonic()
            more = attack(name, args.seed, first=one.cases, seconds=args.turn, keep=args.run_dir / "failing")
            for fault in more.faults:
                print(f"FAULT {name}: {fault['seen']}\n      {args.run_dir / 'failing' / fault['folder']}", flush=True)
            counts[name] = Outcome(
                one.tries + more.tries, one.landed + more.landed, one.cases + more.cases,
                one.seconds + time.monotonic() - began, one.faults + more.faults,
            )  # fmt: skip
            write_text(state, json.dumps(report(counts, args.seed, command), indent=1) + "\n")
            num_faults = sum(len(outcome.faults) for outcome in counts.values())
            progress.update(max(round(time.monotonic() - began), 1), attack=name, faults=num_faults)
    return counts


def replay(folder: pathlib.Path) -> int:
    """Make a case again that has failed; the number of faults."""
    case = json.loads((folder / "case.json").read_text())
    print(f"was: {case['seen']}")
    outcome = attack(case["attack"], case["seed"], first=case["case"], cases=1)
    print(f"now: {outcome.faults[0]['seen'] if outcome.faults else 'no fault'}")
    return len(outcome.faults)


def show_planted(seed: int) -> int:
    """Plant each fault and print what its attack says.

    Returns the number of those that are not found.
    """
    missed = 0
    for planted, name in PLANTED.items():
        case = 0
        while not (outcome := attack(name, seed, first=case, cases=1, planted=planted)).faults and case < 7:
            case += 1
        seen = outcome.faults[0]["seen"] if outcome.faults else "MISSED"
        missed += not outcome.faults
        print(f"{planted} by {name}, case {case}: {seen}", flush=True)
    print(f"{len(PLANTED) - missed} of {len(PLANTED)} planted faults found")
    return missed


def server_campaign(args: argparse.Namespace) -> int:
    """Attack a server and measure it; return the number of faults."""
    from attacks import servers  # needs the extra `postgres`
    from attacks.cluster import version

    command = f"python experiments/faults.py --store {args.store} --hours {args.hours:g} --seed {args.seed}"
    sizes = args.workers, args.scopes
    result = report({}, args.seed, f"{command} --workers {sizes[0]} --scopes {sizes[1]} --events {args.events}")
    result["server"] = version()
    result["attacks"] = {"servers": servers.campaign(args.hours * 3600, *sizes, args.seed, args.events)}
    result["recovery"] = servers.recovery(args.events, None)
    speed = functools.partial(servers.throughput, args.turn, args.workers)
    result["throughput"] = {"disk": speed(args.scopes // 5, None), "memory": speed(args.scopes, servers.MEMORY_DISK)}
    print(json.dumps(result, indent=1))
    if args.output:
        write_text(args.output, json.dumps(result, indent=1) + "\n")
    return min(len(result["attacks"]["servers"]["faults"]), 250)


def main() -> int:
    """Run the campaign, print its table, and return the number of faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0, help="of all turns together, earlier ones included")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=list(ATTACKS), metavar="NAME")
    parser.add_argument("--turn", type=float, default=20.0, help="seconds of one turn (default 20)")
    parser.add_argument("--run_dir", type=pathlib.Path, default=pathlib.Path("runs/faults"))
    parser.add_argument("--output", type=pathlib.Path, help="write the result here as well")
    parser.add_argument("--planted", action="store_true", help="plant a fault for each attack; it must be found")
    parser.add_argument("--replay", type=pathlib.Path, help="folder of one fault, to be made again")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--workers", type=int, default=8, help="processes that write to a server")
    parser.add_argument("--scopes", type=int, default=1000, help="on a server")
    parser.add_argument("--events", type=int, default=10**6, help="on a server; so many end it before the hours do")
    args = parser.parse_args()
    if args.store == "postgresql":
        return server_campaign(args)
    if args.replay:
        return replay(args.replay)
    if args.planted:
        return show_planted(args.seed)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    if "mutate_native" in args.attacks and args.hours:
        from attacks.mutations import build

        print("building the native program with sanitizers", flush=True)
        build()
    began = time.monotonic()
    counts = campaign(args, args.attacks)
    result = json.loads((args.run_dir / "faults.json").read_text())
    print(table_of_faults(result["attacks"]))
    print(f"{time.monotonic() - began:.0f} s; seed {args.seed}; commit {result['commit'][:10]}; {result['machine']}")
    if args.output:
        write_text(args.output, json.dumps(result, indent=1) + "\n")
    return min(sum(len(outcome.faults) for outcome in counts.values()), 250)


if __name__ == "__main__":
    sys.exit(main())
