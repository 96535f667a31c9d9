"""Vector search beside hnswlib, usearch, faiss and numpy; the vector part of `bench.py --suite memory`.

All hold the same unit vectors: in groups, as encoders make them of sentences about alike things, or (`unclustered`)
without any. Each contender comes with the indexes that a good user of it would try; of each, the cheapest search
setting that reaches the recall asked for with one half of the queries is timed with the other half, and a contender
counts with its best index. Batches of all queries (on one thread and on all cores) and one query per call, in turns
over several rounds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embodied_mem.memory import VectorIndex
from embodied_mem.memory.vectors import AUTO_LIMIT
from embodied_mem.progress import counted

K = 10
CONNECTIVITY, EF_CONSTRUCTION = 16, 200
EF = (10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640, 900)
KINDS = {"exact": (1,), "hnsw": EF}  # ours
MODES = ("batch", "batch_1_thread", "single")
NUM_INSERTED = 200

Search = Callable[[np.ndarray, int, int], np.ndarray]  # float32[B, d], setting, threads -> ids[B, K]


@dataclasses.dataclass
class Index:
    """An index of a contender: `search(queries, setting, num_threads)` returns ids, settings go from fast to sure."""

    contender: str
    name: str
    search: Search
    settings: Sequence[int] = (0,)
    build_s: float = 0.0


def clustered(num_vectors: int, num_queries: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors as encoders make them.

    They are clusters that vary along few directions, and a little in all.
    """
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((max(10, num_vectors // 100), dim), dtype=np.float32)
    directions = rng.standard_normal((32, dim), dtype=np.float32) / np.sqrt(32)

    def draw(count: int) -> np.ndarray:
        rows = centers[rng.integers(len(centers), size=count)]
        rows += rng.standard_normal((count, 32), dtype=np.float32) @ directions
        rows += 0.2 * rng.standard_normal((count, dim), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return draw(num_vectors), draw(num_queries)


def unclustered(num_vectors: int, num_queries: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors without groups.

    The variance of the i-th direction falls as 1 / i.
    """
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((num_vectors + num_queries, dim), dtype=np.float32)
    rows /= np.sqrt(np.arange(1, dim + 1, dtype=np.float32))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[:num_vectors], rows[num_vectors:]


DATA = {"clustered": clustered, "unclustered": unclustered}


def native_search(index: VectorIndex) -> Search:
    """Return the search of one of ours, with `ef_search` as setting."""

    def search(queries: np.ndarray, setting: int, num_threads: int) -> np.ndarray:
        return index.search(queries, K, ef_search=setting, num_threads=num_threads)[0]

    return search


def native(rows: np.ndarray, threads: int) -> list[Index]:
    """Return the exact and the HNSW kind."""
    indexes = []
    for kind, settings in KINDS.items():
        index = VectorIndex(rows.shape[1], "inner_product", kind, CONNECTIVITY, EF_CONSTRUCTION)
        since = time.perf_counter()
        index.add(np.arange(len(rows)), rows, num_threads=threads)
        spent = time.perf_counter() - since
        indexes.append(Index("native", kind, native_search(index), settings, spent))
    return indexes


def hnswlib(rows: np.ndarray, threads: int) -> list[Index]:
    """hnswlib's own binding."""
    import hnswlib as library

    index = library.Index("ip", rows.shape[1])
    index.init_index(len(rows), ef_construction=EF_CONSTRUCTION, M=CONNECTIVITY, random_seed=1)
    since = time.perf_counter()
    index.add_items(rows, num_threads=threads)
    spent = time.perf_counter() - since

    def search(queries: np.ndarray, ef: int, num_threads: int) -> np.ndarray:
        index.set_ef(ef)
        return index.knn_query(queries, K, num_threads=num_threads)[0]

    return [Index("hnswlib", "hnsw", search, EF, spent)]


def usearch(rows: np.ndarray, threads: int) -> list[Index]:
    """Measure its HNSW with vectors in float32 and bf16, its default."""
    from usearch.index import Index as Library

    indexes = []
    for dtype in ("f32", "bf16"):
        index = Library(
            ndim=rows.shape[1], metric="ip", dtype=dtype, connectivity=CONNECTIVITY, expansion_add=EF_CONSTRUCTION
        )
        since = time.perf_counter()
        index.add(np.arange(len(rows)), rows, threads=threads)
        spent = time.perf_counter() - since

        def search(queries: np.ndarray, ef: int, num_threads: int, index: Library = index) -> np.ndarray:
            index.expansion_search = ef
            return index.search(queries, K, threads=num_threads).keys

        indexes.append(Index("usearch", f"hnsw_{dtype}", search, EF, spent))
    return indexes


def faiss(rows: np.ndarray, threads: int) -> list[Index]:
    """Make its indexes: flat, HNSW and inverted lists.

    The lists are of floats, of 8 bits (alone and re-ranked) and of 4 bits (re-ranked).
    """
    import faiss as library

    num_lists = int(np.sqrt(len(rows)))
    dim = rows.shape[1]
    probes = [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256) if n <= num_lists]
    kinds: list[tuple[str, str, Sequence[int]]] = [
        ("flat", "Flat", (1,)),
        ("hnsw", f"HNSW{CONNECTIVITY}", EF),
        ("ivf", f"IVF{num_lists},Flat", probes),
        ("ivf_sq8", f"IVF{num_lists},SQ8", probes),
        ("ivf_sq8_re", f"IVF{num_lists},SQ8,RFlat", probes),
        ("ivf_pq4_re", f"IVF{num_lists},PQ{dim // 4}x4fs,RFlat", probes),
    ]
    library.omp_set_num_threads(threads)
    indexes = []
    for name, factory, settings in kinds:
        index = library.index_factory(dim, factory, library.METRIC_INNER_PRODUCT)
        inner = library.downcast_index(index.base_index) if factory.endswith("RFlat") else index
        if inner is not index:
            index.k_factor = 4 if "PQ" in factory else 2
        if name == "hnsw":
            inner.hnsw.efConstruction = EF_CONSTRUCTION

        def configure(setting: int, name: str = name, inner: Any = inner) -> None:
            if name == "hnsw":
                inner.hnsw.efSearch = setting
            elif name != "flat":
                inner.nprobe = setting

        since = time.perf_counter()
        if not index.is_trained:
            index.train(rows)
        index.add(rows)
        spent = time.perf_counter() - since

        def search(
            queries: np.ndarray, setting: int, num_threads: int, index: Any = index, configure: Any = configure
        ) -> np.ndarray:
            configure(setting)
            library.omp_set_num_threads(num_threads)
            return index.search(queries, K)[1]

        indexes.append(Index("faiss", name, search, settings, spent))
    return indexes


def numpy(rows: np.ndarray, threads: int) -> list[Index]:
    """Search by a matrix product and `argpartition`, in parts fitting the cache."""
    limit = None
    if importlib.util.find_spec("threadpoolctl"):
        from threadpoolctl import ThreadpoolController

        limit = ThreadpoolController().limit
    transposed = rows.T

    def search(queries: np.ndarray, setting: int, num_threads: int) -> np.ndarray:
        answers = []
        with limit(limits=num_threads) if limit else contextlib.nullcontext():
            for begin in range(0, len(queries), 64):
                scores = queries[begin : begin + 64] @ transposed
                best = np.argpartition(scores, -K, axis=1)[:, -K:]
                order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1)
                answers.append(np.take_along_axis(best, order, 1))
        return np.concatenate(answers)

    return [Index("numpy", "matmul", search)]


CONTENDERS: dict[str, tuple[Callable[[np.ndarray, int], list[Index]], str]] = {
    "native": (native, "embodied_mem"),
    "hnswlib": (hnswlib, "hnswlib"),
    "usearch": (usearch, "usearch"),
    "faiss": (faiss, "faiss"),
    "numpy": (numpy, "numpy"),
}
PACKAGES = {"hnswlib": "hnswlib", "usearch": "usearch", "faiss": "faiss-cpu"}


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    """Returns the share of the true neighbours that were found."""
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), truth.tolist())]))


def _rate(
    index: Index, setting: int, queries: np.ndarray, mode: str, threads: int, seconds: float
) -> tuple[float, float]:
    """Return queries per second of wall clock and of processor time.

    They are measured over about `seconds`.
    """
    if mode == "single":
        parts, num_threads = [queries[i : i + 1] for i in range(len(queries))], 1
    else:
        parts, num_threads = [queries], threads if mode == "batch" else 1
    done, since, since_cpu = 0, time.perf_counter(), time.process_time()
    while not done or time.perf_counter() - since < seconds:
        for part in parts:
            index.search(part, setting, num_threads)
            done += len(part)
            if mode == "single" and time.perf_counter() - since > seconds:
                break
    return done / (time.perf_counter() - since), done / (time.process_time() - since_cpu)


def bench_size(num_vectors: int, data: str, args: Any) -> dict[str, Any]:
    """Returns what was measured with so many vectors, by contender."""
    threads = os.cpu_count() or 1
    rows, drawn = DATA[data](num_vectors, 2 * args.queries, args.dim, args.seed)
    oracle = VectorIndex(args.dim, "inner_product", "exact")
    oracle.add(np.arange(num_vectors), rows)
    tuning, queries = drawn[: args.queries], drawn[args.queries :]
    tuning_truth, truth = oracle.search(tuning, K)[0], oracle.search(queries, K)[0]
    indexes, absent = [], {}
    for name, (make, module) in CONTENDERS.items():
        if importlib.util.find_spec(module) is None:
            absent[name] = f"absent: pip install {PACKAGES[name]}"
            continue
        print(f"{num_vectors} vectors, {data}: {name} builds", file=sys.stderr, flush=True)
        indexes += make(rows, threads)
    chosen, rates = [], {}
    for index in counted(indexes, f"{num_vectors} vectors, {data}: settings", "index"):
        reached = 0.0
        for setting in index.settings:
            reached = recall(index.search(tuning, setting, threads), tuning_truth)
            if reached >= args.recall:
                chosen.append((index, setting, recall(index.search(queries, setting, threads), truth)))
                break
        else:
            print(f"{index.contender} {index.name}: recall {reached:.4f} at most, left out", file=sys.stderr)
    work = [(i, mode) for _ in range(args.rounds) for i in range(len(chosen)) for mode in MODES]
    for i, mode in counted(work, f"{num_vectors} vectors, {data}: rates", "rate"):
        index, setting, _ = chosen[i]
        rates.setdefault((i, mode), []).append(_rate(index, setting, queries, mode, threads, args.seconds))
    table: dict[str, Any] = {mode: dict(absent) for mode in MODES}
    by_index = []
    for i, (index, setting, reached) in enumerate(chosen):
        row: dict[str, Any] = {
            "contender": index.contender,
            "index": index.name,
            "setting": setting,
            "recall": round(reached, 4),
            "build_s": round(index.build_s, 2),
        }
        for mode in MODES:
            values = rates[i, mode]
            wall, cpu = zip(*values)
            row[f"{mode}_qps"] = round(statistics.median(wall), 1)
            row[f"{mode}_qps_min_max"] = [round(min(wall), 1), round(max(wall), 1)]
            row[f"{mode}_queries_per_cpu_s"] = round(statistics.median(cpu), 1)
            best = table[mode].get(index.contender, 0)
            table[mode][index.contender] = max(best, row[f"{mode}_qps"])
        by_index.append(row)
    for row in by_index:
        print(
            f"{num_vectors:8} {data} {row['contender']:8} {row['index']:10} setting {row['setting']:4}"
            f"  recall {row['recall']:.4f}"
            f"  batch {row['batch_qps']:10,.0f}/s  on 1 thread {row['batch_1_thread_qps']:10,.0f}/s"
            f"  single {row['single_qps']:10,.0f}/s  per CPU second {row['batch_1_thread_queries_per_cpu_s']:10,.0f}"
            f" and {row['single_queries_per_cpu_s']:10,.0f}  built in {row['build_s']:.1f} s"
        )
    return {
        "label": str(num_vectors) if data == "clustered" else f"{num_vectors} {data}",
        "qps": table,
        "by_index": by_index,
    }


def bench_vectors(args: Any) -> dict[str, Any]:
    """Return `search_qps_at_recall_<r>`, every index, our rate by the best other.

    The first is (size, data -> mode -> contender).
    """
    sizes = [bench_size(size, data, args) for size in args.vectors for data in args.vector_data]
    ratios = {}
    for size in sizes:
        for mode, rates in size["qps"].items():
            others = [rate for name, rate in rates.items() if name != "native" and not isinstance(rate, str)]
            if others and "native" in rates:
                ratios[f"{size['label']} {mode}"] = round(rates["native"] / max(others), 2)
    return {
        f"search_qps_at_recall_{args.recall}": {size["label"]: size["qps"] for size in sizes},
        "search_qps_native_by_best_other": ratios,
        "vector_indexes": {size["label"]: size["by_index"] for size in sizes},
        "vector_dim": args.dim,
        "vector_queries": args.queries,
    }


def bench_limit(args: Any) -> dict[str, Any]:
    """Return `auto_limit`: the least size where HNSW is cheaper than exact.

    It is by queries per insertion, of `args.limit_sizes`.
    """
    rows = []
    for size in args.limit_sizes:
        print(f"{size} vectors: an insertion and a query", file=sys.stderr, flush=True)
        vectors, queries = clustered(size + NUM_INSERTED, args.queries, args.dim, args.seed)
        row: dict[str, Any] = {"vectors": size}
        truth = None
        for kind, settings in KINDS.items():
            index = VectorIndex(args.dim, "inner_product", kind, CONNECTIVITY, EF_CONSTRUCTION)
            index.add(np.arange(size), vectors[:size])
            spent = []
            for i in range(size, size + NUM_INSERTED):
                since = time.perf_counter()
                index.add([i], vectors[i : i + 1], num_threads=1)
                spent.append(time.perf_counter() - since)

            search, threads = native_search(index), os.cpu_count() or 1
            truth = search(queries, 1, threads) if truth is None else truth
            reach = (effort for effort in settings if recall(search(queries, effort, threads), truth) >= args.recall)
            setting = next(reach, settings[-1])
            measured = Index("native", kind, search)
            rates = [_rate(measured, setting, queries, "single", 1, args.seconds)[0] for _ in range(args.rounds)]
            row[f"{kind}_insertion_us"] = round(1e6 * statistics.median(spent), 1)
            row[f"{kind}_query_us"] = round(1e6 / statistics.median(rates), 1)
            row[f"{kind}_setting"] = setting
        rows.append(row)
        print(
            f"{size:8} vectors  us to add, find:",
            *(f"{kind} {row[f'{kind}_insertion_us']:,.1f} {row[f'{kind}_query_us']:,.1f} " for kind in KINDS),
        )

    def cost(row: dict[str, Any], kind: str, num_queries: int) -> float:
        return row[f"{kind}_insertion_us"] + num_queries * row[f"{kind}_query_us"]

    limits: dict[str, Any] = {}
    for num_queries in (1, 10, 100):
        cheaper = [row["vectors"] for row in rows if cost(row, "hnsw", num_queries) < cost(row, "exact", num_queries)]
        limits[str(num_queries)] = min(cheaper, default=f"above {rows[-1]['vectors']}")
    return {"auto_limit": limits, "auto_limit_in_use": AUTO_LIMIT, "auto_limit_rows": rows}
