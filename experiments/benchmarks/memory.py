"""The suite `memory` of bench.py: vector search and graph updates beside the libraries that people use for them.

- `search_qps_at_recall_<r>`: queries per second at recall@10 of at least r, by number of vectors, mode (a batch on all
  cores, a batch on one thread, single queries) and contender; `search_qps_native_by_best_other`: ours by the best of
  the others.
- `auto_limit`: from how many vectors on HNSW is cheaper than the exact kind, by single queries per insertion.
- `update_k2_us_p50`, `khop2_us_p50`: microseconds of an update with the extraction around it, and of an extraction of 2
  hops around one node, by contender.
- `lifelong_step_ms_p99` and the rest of `benchmarks/lifelong.py`: a full step of `LifelongMemory` in a large graph.

`pip install -e .[bench]` installs the contenders; one that is not there is named with the command that brings it.
"""

from __future__ import annotations

import argparse
from typing import Any

PARTS = ["graph", "lifelong", "vectors", "limit"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this suite."""
    add = parser.add_argument_group("suite memory").add_argument
    add("--parts", nargs="+", choices=PARTS, default=PARTS)
    add("--vectors", nargs="+", type=int, default=[10_000, 100_000], help="sizes of the vector indexes")
    add(
        "--vector-data",
        nargs="+",
        default=["clustered", "unclustered"],
        choices=["clustered", "unclustered"],
        help="what the vectors are like (default both)",
    )
    add("--dim", type=int, default=384, help="numbers in a vector (default 384)")
    add("--queries", type=int, default=1000, help="queries in a batch (default 1000)")
    add("--limit-sizes", nargs="+", type=int, default=[2500, 5000, 10_000, 20_000, 40_000], help="for `auto_limit`")
    add("--recall", type=float, default=0.99, help="recall@10 that every index is set to (default 0.99)")
    add("--seconds", type=float, default=0.5, help="per measurement (default 0.5)")
    add("--nodes", type=int, default=100_000, help="nodes of the graphs (default 100,000)")
    add("--degrees", nargs="+", type=int, default=[4, 8], help="facts out of a node; the first gives the JSON keys")
    add("--graph-rounds", type=int, default=1000, help="updates and extractions per contender (default 1000)")
    add("--graph-seconds", type=float, default=10, help="a contender does no more rounds after this (default 10)")


def bench_memory(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the measurements of the suite."""
    from .graph import bench_graphs
    from .vectors import bench_limit, bench_vectors

    result: dict[str, Any] = {}
    if "graph" in args.parts:  # first, before the vectors fill the memory
        result |= bench_graphs(args)
    if "lifelong" in args.parts:
        from .lifelong import bench_lifelong

        result |= bench_lifelong()
    if "vectors" in args.parts:
        result |= bench_vectors(args)
    if "limit" in args.parts:
        result |= bench_limit(args)
    return result
