"""The suite `graph` of bench.py: the native graph beside a bare adjacency list, by size, degree and number of hops.

Builds csrc/bench/graph.cpp, which says what is measured, runs it, and reads what Google Benchmark writes. `rows` has
one object for each benchmark and graph; times are microseconds, `ratio` is the median of the native side by that of the
bare one.
`update_k2_ratio` has it once more for a whole round, by graph; `peak_mb` is the program's memory at most.

`--graph-repeats 3` runs the program three times: then a row has the medians, and the spread of the ratio.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from embodied_mem.errors import InternalError, InvalidInputError, MissingDependencyError

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
COUNTERS = ("p50_us", "p99_us", "bare_p50_us", "bare_p99_us", "ratio", "visited")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this suite."""
    add = parser.add_argument_group("suite graph").add_argument
    add("--graph-filter", default=".", metavar="REGEX", help="benchmarks to run, such as nodes:1000/ (default: all)")
    add("--graph-repeats", type=int, default=1, help="runs of the program (default 1)")


def bench_graph(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the measurements of the suite."""
    if args.graph_repeats < 1:
        raise InvalidInputError(f"--graph-repeats: expected >= 1, got {args.graph_repeats}")
    program = build()
    files = []
    for i in range(args.graph_repeats):
        files.append(BUILD / f"graph_{i}.json")
        print(f"run {i + 1} of {args.graph_repeats}: {program.relative_to(ROOT)}", file=sys.stderr, flush=True)
        options = [f"--benchmark_filter={args.graph_filter}", f"--benchmark_out={files[-1]}"]
        status, said = _call(str(program), *options, "--benchmark_out_format=json")
        if status == 2:
            raise InvalidInputError(f"--graph-filter: expected names of benchmarks, got {args.graph_filter!r}: {said}")
        if status:
            raise InternalError(f"{program} ended with status {status}:\n{said}")
    rows = read(files)
    print(table(rows))
    rounds = [row for row in rows if row["benchmark"] == "update_k2"]
    return {
        "rows": rows,
        "update_k2_ratio": {f"{row['nodes']} nodes, degree {row['degree']}": row["ratio"] for row in rounds},
        "peak_mb": max(row.pop("peak_mb") for row in rows),
        "repeats": len(files),
    }


def build() -> pathlib.Path:
    """Builds `bench_graph` where it is out of date, and returns its path."""
    if shutil.which("cmake") is None:
        raise MissingDependencyError("cmake is not installed; pip install cmake")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DEMBODIED_MEM_BINDINGS=OFF", "-DEMBODIED_MEM_BENCH=ON"]
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(BUILD), *options],
        ["cmake", "--build", str(BUILD), "--target", "bench_graph", "--parallel"],
    ):
        status, said = _call(*command)
        if left_out := re.search(r"bench_graph is left out.*", said):
            raise MissingDependencyError(left_out[0])
        if status:
            raise MissingDependencyError(f"{shlex.join(command)} failed with status {status}:\n{said}")
    return BUILD / "bench_graph"


def _call(*command: str) -> tuple[int, str]:
    """Returns the exit status, and the end of what the command prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout[-4000:].strip()


def read(files: Iterable[pathlib.Path]) -> list[dict[str, Any]]:
    """Returns a row for each benchmark in Google Benchmark's JSON files.

    Figures are medians over runs, and `ratio_min` and `ratio_max` their spread where there are several.

    Raises:
        InvalidInputError: a benchmark failed, or a file is none of `bench_graph`.
    """
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in files:
        try:
            benchmarks = json.loads(path.read_text())["benchmarks"]
        except (json.JSONDecodeError, KeyError) as error:
            raise InvalidInputError(f"{path}: expected JSON of Google Benchmark, got {error!r}") from error
        for run in benchmarks:
            name = run["run_name"]
            if run.get("error_occurred"):
                raise InvalidInputError(f"{path}: {name} failed: {run.get('error_message')}")
            if run["run_type"] != "iteration":
                continue  # means and deviations over repetitions, which are among the others
            if missing := {"p50_us", "p99_us", "peak_mb"} - run.keys():
                raise InvalidInputError(f"{path}: {name} has no {', '.join(sorted(missing))}; it is not of bench_graph")
            runs.setdefault(name, []).append(run)
    rows = []
    for name, group in runs.items():
        fields = {key: int(value) for key, value in re.findall(r"/(nodes|degree|hops|iterations):(\d+)", name)}
        row = {"benchmark": name.partition("/")[0], **fields}
        for counter in COUNTERS:
            if values := [run[counter] for run in group if counter in run]:
                row[counter] = round(statistics.median(values), 3)
        if len(group) > 1 and "ratio" in row:
            ratios = [run["ratio"] for run in group]
            row |= {"ratio_min": round(min(ratios), 3), "ratio_max": round(max(ratios), 3)}
        rows.append(row | {"peak_mb": round(max(run["peak_mb"] for run in group))})
    if not rows:
        raise InvalidInputError("no benchmark was run")
    return sorted(rows, key=lambda row: (row["nodes"], row["degree"]))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows for people."""
    head = f"{'nodes':>9} {'degree':>6} {'K':>2}  {'benchmark':15}" + "".join(
        f" {title:>11}" for title in ("native p50", "native p99", "bare p50", "bare p99", "ratio", "visited")
    )
    lines = [head + "   (us)"]
    for row in rows:
        hops = {"khop": row.get("hops"), "update_k2": 2, "update_by_names": 2}.get(row["benchmark"], "")
        figures = "".join(f" {row[counter]:11.2f}" if counter in row else f" {'-':>11}" for counter in COUNTERS)
        lines.append(f"{row['nodes']:9} {row['degree']:6} {hops:>2}  {row['benchmark']:15}{figures}")
    return "\n".join(lines)
