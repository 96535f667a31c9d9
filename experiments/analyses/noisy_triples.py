"""Effects of a detector's noisy triples on a memory of places: duplicates, stale facts, wrong ends, time.

    python experiments/analyses/noisy_triples.py                   # all; some minutes
    python experiments/analyses/noisy_triples.py --seeds 1 --out runs/noisy.json

A generated home has 15 receptacles and 40 things of 10 classes, four of each. At each step two things are moved and the
robot looks at one receptacle: it is told all that is there, each as (thing, relation, receptacle). Noise at a rate per
triple: it is `dropped`; `duplicated` (it comes again, in the same list or in the next one); the thing is `renamed` (its
class alone, a colour and the class, another spelling, another word); or it is `wrong` (another receptacle). `all` is
one of the four, at the rate. Nothing of a benchmark is read.

The truth is what a memory without any noise would know: where each thing was shown last. Counted at the end, by class,
relation and receptacle, so that names do not matter:

- `duplicates`: things with a present place beyond those that were shown, per 100 shown;
- `stale`: present facts that are not true, beyond duplicates of true ones, per 100 facts;
- `missing`: true facts that are not there, per 100;
- `wrong_ends`: facts that were ended and are true, per 1,000 triples told;
- `update_us`: median and 99th percentile of one update of a list, processor time of the thread.

Arms: the memory as it is (`ours`), with vectors of appearance (`looks`), with every name a thing of its own (`names`),
with a threshold of 0, and without rules of conflict.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.memory import HOUSEHOLD, Relations
from embodied_mem.memory.spatial import SpatialMemory

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES = ("mug", "plate", "book", "bottle", "towel", "phone", "box", "spoon", "candle", "apple")
WORDS = dict(zip(CLASSES, ("cup", "dish", "novel", "flask", "cloth", "mobile", "carton", "ladle", "taper", "fruit")))
COLOURS = ("red", "blue", "green", "white")
PLACES = tuple(f"{kind} {n}" for kind in ("table", "shelf", "drawer", "cabinet", "bed") for n in (1, 2, 3))
NOISE = ("dropped", "duplicated", "renamed", "wrong", "all")
RATES = (0.05, 0.1, 0.2)
NUM_STEPS, MOVES = 150, 2
DIM, SPREAD = 32, 0.05  # of appearance: width, noise of one view

Fact = tuple[str, str, str]
Key = tuple[str, str, str]  # class, relation, receptacle


class Home:
    """Where all things are, and what a look shows."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self.things = [f"{kind} {n}" for kind in CLASSES for n in range(1, 5)]
        self.where = {thing: self._place() for thing in self.things}

    def _place(self) -> tuple[str, str]:
        place = self._rng.choice(PLACES)
        relation = "in" if place.startswith(("drawer", "cabinet")) else self._rng.choice(("on", "on", "on", "under"))
        return relation, place

    def step(self) -> list[Fact]:
        """Move some things and look at one receptacle."""
        for thing in self._rng.sample(self.things, MOVES):
            self.where[thing] = self._place()
        seen = self._rng.choice(PLACES)
        return [(thing, relation, place) for thing, (relation, place) in self.where.items() if place == seen]


class Noise:
    """Changes of triples on the way; names the thing behind each for the appearance."""

    def __init__(self, kind: str, rate: float, rng: random.Random):
        self._kind, self._rate, self._rng = kind, rate, rng
        self._late: list[tuple[Fact, str]] = []

    def __call__(self, facts: list[Fact]) -> list[tuple[Fact, str]]:
        told, self._late = self._late, []
        for thing, relation, place in facts:
            fact = thing, relation, place
            kind = self._kind if self._rng.random() < self._rate else ""
            kind = self._rng.choice(NOISE[:-1]) if kind == "all" else kind
            if kind == "dropped":
                continue
            if kind == "renamed":
                fact = self._renamed(thing), relation, place
            elif kind == "wrong":
                fact = thing, relation, self._rng.choice([other for other in PLACES if other != place])
            told.append((fact, thing))
            if kind == "duplicated":
                self._rng.choice((told, self._late)).append((fact, thing))
        return told

    def _renamed(self, thing: str) -> str:
        kind, _, number = thing.partition(" ")
        colour = COLOURS[int(number) - 1]
        return self._rng.choice((kind, f"{colour} {kind}", f"{kind.title()}_{number}", f"{colour} {WORDS[kind]}"))


def _class(name: str) -> str:
    """Return the class of a thing, whatever it is called."""
    words = name.lower().replace("_", " ").split()
    return next(kind for kind in CLASSES if kind in words or WORDS[kind] in words)


def _present(memory: SpatialMemory) -> tuple[collections.Counter[Key], int]:
    """Return the present facts about places, and their number of things."""
    found: collections.Counter[Key] = collections.Counter()
    things = set()
    with memory.graph.snapshot() as now:
        for number in now.facts().tolist():
            subject, relation, place = memory.triple(number)
            found[_class(subject.rpartition("/")[2]), relation, place.rpartition("/")[2]] += 1
            things.add(subject)
    return found, len(things)


def play(make: Callable[[], SpatialMemory], kind: str, rate: float, seed: int, looks: bool) -> dict[str, Any]:
    """Tell one home with noise to one memory.

    Returns the counts, and the seconds of each update.
    """
    home, noise = Home(random.Random(seed)), Noise(kind, rate, random.Random(seed + 1000))
    views = np.random.default_rng(seed)
    bases = {thing: vector / np.linalg.norm(vector) for thing in home.things for vector in [views.normal(size=DIM)]}
    memory = make()
    memory.begin(episode=0, time=0, place="home")
    truth: dict[str, tuple[str, str]] = {}
    seconds, wrong_ends, num_told = [], 0, 0
    for step in range(1, NUM_STEPS + 1):
        seen = home.step()
        truth.update({thing: (relation, place) for thing, relation, place in seen})
        told = noise(seen)
        vectors = {f[0]: bases[t] + SPREAD * views.normal(size=DIM) for f, t in told} if looks else None
        event = memory.propose(
            episode=0, step=step, time=step, given=[[*fact, None] for fact, _ in told], vectors=vectors
        )
        start = time.thread_time()
        memory.apply(event)
        seconds.append(time.thread_time() - start)
        num_told += len(told)
        if ended := [memory.triple(number) for did, number in memory.changed if did == "end"]:
            known, now = collections.Counter(_keys(truth)), _present(memory)[0]
            keys = [(_class(s.rpartition("/")[2]), relation, p.rpartition("/")[2]) for s, relation, p in ended]
            wrong_ends += sum(now[key] < known[key] for key in set(keys))
    present, num_things = _present(memory)
    known = collections.Counter(_keys(truth))
    false = present - known
    return {
        "duplicates": 100 * max(num_things - len(truth), 0) / len(truth),
        "stale": 100 * sum(count for key, count in false.items() if not known[key]) / max(present.total(), 1),
        "missing": 100 * (known - present).total() / known.total(),
        "wrong_ends": 1000 * wrong_ends / num_told,
        "seconds": seconds,
    }


def _keys(truth: dict[str, tuple[str, str]]) -> Iterator[Key]:
    return ((thing.partition(" ")[0], *where) for thing, where in truth.items())


def _without_conflicts() -> Relations:
    bare = [dataclasses.replace(one, exclusive="", containment="", transitive=False) for one in HOUSEHOLD]
    return Relations(bare, rules=())


ARMS: dict[str, tuple[Callable[[], SpatialMemory], bool]] = {
    "ours": (SpatialMemory, False),
    "looks": (SpatialMemory, True),
    "names": (lambda: SpatialMemory(theta=1.0), False),
    "theta 0": (lambda: SpatialMemory(theta=0.0), False),
    "no conflicts": (lambda: SpatialMemory(relations=_without_conflicts()), False),
}
COUNTS = ("duplicates", "stale", "missing", "wrong_ends")


def measure(seeds: range) -> list[dict[str, Any]]:
    """Return a row for each arm, noise and rate.

    It has means over the seeds, and the spread of each count.
    """
    rows = []
    for kind, rate in [("none", 0.0), *((kind, rate) for kind in NOISE for rate in RATES)]:
        for arm, (make, looks) in ARMS.items():
            played = [play(make, kind, rate, seed, looks) for seed in seeds]
            times = sorted(1e6 * second for one in played for second in one["seconds"])
            means = {name: round(statistics.mean(one[name] for one in played), 2) for name in COUNTS}
            spread = {name: round(statistics.pstdev(one[name] for one in played), 2) for name in COUNTS}
            update_us = {"p50": round(times[len(times) // 2], 1), "p99": round(times[99 * len(times) // 100], 1)}
            rows.append({"noise": kind, "rate": rate, "arm": arm, **means, "spread": spread, "update_us": update_us})
            print(
                f"{kind:10} {rate:4} {arm:13}" + "".join(f"{name} {means[name]:7.2f}  " for name in COUNTS), update_us
            )
    return rows


def main() -> None:
    """Write the rows and end with one JSON line.

    The line has the counts of each arm at all noise and the highest rate.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="homes (default 3)")
    parser.add_argument("--out", type=output_file, default=ROOT / "experiments/results/noisy_triples.json")
    options = parser.parse_args()
    rows = measure(range(options.seeds))
    facts = manifest(num_seeds=options.seeds, num_steps=NUM_STEPS, num_things=4 * len(CLASSES), num_places=len(PLACES))
    write_result(options.out, {"rows": rows, **facts})
    last = [row for row in rows if (row["noise"], row["rate"]) == ("all", RATES[-1])]
    print(json.dumps({row["arm"]: {name: row[name] for name in COUNTS} for row in last}))


if __name__ == "__main__":
    run(main)
