"""Durable writes, threads, opening, snapshots and forgets of a memory's store, and what the disk takes for a bare file.

    python experiments/benchmarks/store.py --folder /some/disk

Rounds of the engines alternate. The event is that of a told sentence, as `LifelongMemory.tell` records it. The bare
file is `write` and `fdatasync` of the same bytes. experiments/results/store.json is of the commit that had our own log
beside SQLite; `ENGINES` takes another engine in its place.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import sqlite3
import sys
import tempfile
import threading
import time

import numpy as np

from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.report import commit
from embodied_mem.memory import LifelongMemory, MemoryStore

ENGINES = {"sqlite": MemoryStore}


class Sink:
    """A module that takes everything and has a state of a given size."""

    def __init__(self, size: int = 100):
        self.size, self.events = size, 0

    def check(self, event):
        pass

    def apply(self, event):
        self.events += 1

    def state(self):
        return b"x" * self.size

    def restore(self, state):
        pass

    def remove(self, selector):
        return {"events": 0}


def usual_event() -> dict:
    """Return the event of one told sentence."""
    with tempfile.TemporaryDirectory() as folder, LifelongMemory.open(folder) as memory:
        memory.tell("I like my coffee without sugar, and my blue mug is on the shelf in the kitchen.")
        with contextlib.closing(sqlite3.connect(f"{folder}/memory.db")) as connection:
            ((record,),) = connection.execute("SELECT record FROM events")
    return json.loads(record[record.index(b"[") :])[1]


def percentiles(seconds: list[float]) -> dict:
    p50, p99, most = np.percentile(seconds, [50, 99, 100]) * 1e6
    return {
        "p50_us": round(float(p50), 1), "p99_us": round(float(p99), 1), "max_us": round(float(most), 1),
        "writes": len(seconds),
    }  # fmt: skip


def timed_writes(one, event: dict, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        one.record("sink", event)
        seconds.append(time.perf_counter() - began)
    return seconds


def bare_writes(folder: pathlib.Path, event: dict, count: int) -> list[float]:
    data, seconds = json.dumps(["sink", event]).encode(), []
    file = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(count):
        began = time.perf_counter()
        os.write(file, data)
        os.fdatasync(file)
        seconds.append(time.perf_counter() - began)
    os.close(file)
    return seconds


def single(root: pathlib.Path, event: dict, rounds: int, count: int) -> dict:
    """Time writes of one thread, the engines in turns, by policy."""
    result = {}
    for fsync in ("always", "interval", "never"):
        seconds: dict[str, list[float]] = {name: [] for name in ("bare", *ENGINES)}
        stores = {name: engine(root / f"single-{fsync}-{name}", {"sink": Sink()}, fsync=fsync)
                  for name, engine in ENGINES.items()}  # fmt: skip
        for _ in range(rounds):
            if fsync == "always":
                seconds["bare"] += bare_writes(root, event, count)
            for name, one in stores.items():
                seconds[name] += timed_writes(one, event, count)
        for one in stores.values():
            one.close()
        result[fsync] = {name: percentiles(times) for name, times in seconds.items() if times}
    return result


def threads(root: pathlib.Path, event: dict, count: int, num_threads: int, rounds: int) -> dict:
    """Count durable writes per second of several threads."""
    rates: dict[str, list[float]] = {name: [] for name in ENGINES}
    stores = {name: engine(root / f"threads-{name}", {"sink": Sink()}) for name, engine in ENGINES.items()}
    for _ in range(rounds):
        for name, one in stores.items():
            workers = [threading.Thread(target=timed_writes, args=(one, event, count)) for _ in range(num_threads)]
            began = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            rates[name].append(num_threads * count / (time.perf_counter() - began))
    for one in stores.values():
        one.close()
    return {
        name: {"events_per_s": round(float(np.median(rate))), "rounds": [round(one) for one in rate]}
        for name, rate in rates.items()
    }


def size_of(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def replay(root: pathlib.Path, event: dict, count: int) -> dict:
    """Open a folder of many events, then of a large state; forget."""
    result = {}
    for name, engine in ENGINES.items():
        folder = root / f"replay-{name}"
        with engine(folder, {"sink": Sink()}, fsync="never", snapshot_bytes=1 << 40) as one:
            timed_writes(one, event, count)
        size, opens = size_of(folder), []
        for _ in range(3):
            began = time.perf_counter()
            with engine(folder, {"sink": (sink := Sink())}, read_only=True):
                opens.append(time.perf_counter() - began)
            assert sink.events == count
        with engine(folder, {"sink": Sink(64 << 20)}, snapshot_bytes=1 << 40) as one:
            began = time.perf_counter()
            one.snapshot()
            snapshot = time.perf_counter() - began
            state_bytes = size_of(folder)
            began = time.perf_counter()
            one.forget(object="nothing")
            forget = time.perf_counter() - began
        began = time.perf_counter()
        with engine(folder, {"sink": Sink()}, read_only=True):
            state = time.perf_counter() - began
        small = root / f"small-{name}"
        with engine(small, {"sink": Sink(10_000)}) as one:
            forgets = []
            for _ in range(20):
                timed_writes(one, event, 5)
                began = time.perf_counter()
                one.forget(object="nothing")
                forgets.append(time.perf_counter() - began)
        result[name] = {
            "events": count, "open_s": round(min(opens), 3), "bytes": size, "snapshot_64_mib_s": round(snapshot, 3),
            "bytes_with_64_mib": state_bytes, "forget_64_mib_s": round(forget, 3), "open_64_mib_s": round(state, 3),
            "forget_10_kb_ms": round(float(np.median(forgets)) * 1e3, 2),
        }  # fmt: skip
    return result


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="on the disk to be measured")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--writes", type=int, default=100, help="of a round")
    parser.add_argument("--events", type=int, default=100_000, help="to be replayed")
    args = parser.parse_args()
    root, event = pathlib.Path(tempfile.mkdtemp(dir=args.folder)), usual_event()
    try:
        result = {
            "command": "python " + " ".join(sys.argv),
            "commit": commit(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "sqlite": sqlite3.sqlite_version,
            "event_bytes": len(json.dumps(["sink", event]).encode()),
            "load": os.getloadavg()[0],
            "single": single(root, event, args.rounds, args.writes),
            "threads": {str(n): threads(root, event, args.writes // 2, n, args.rounds) for n in (4, 16)},
            "replay": replay(root, event, args.events),
        }
    finally:
        shutil.rmtree(root)
    print(json.dumps(result, indent=1))
    if args.output:
        write_text(args.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
