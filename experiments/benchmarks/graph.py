"""The knowledge graph from Python beside graph libraries and a graph database; a part of `bench.py --suite memory`.

Random directed graphs, every node with `degree` edges out. A round is an update (4 edges removed, 8 added, 2 new nodes)
and the extraction of all that lies within 2 edges out of the nodes that it touched, as nodes and edges; then an
extraction alone from one random node. In every other round the update is timed without its extraction. Names, times
and sources are kept by `native` only, as in csrc/bench/graph.cpp, which defines the round. `native` finds what ends and
links what begins by name, and extracts in the same call. Of the libraries igraph extracts from several nodes in one
call; the others have no search that ends at a distance and costs what it visits, so each gives its neighbours to the
same short loop, by the fastest of its methods. The database gets prepared statements for many rows at a time, and a
transaction for each update. What each is called with is made outside the clock, in the form that it takes.

Every contender does the same rounds; nodes and edges found are compared in each. One that needs longer than
`--graph-seconds` for its rounds does fewer, at least `MIN_ROUNDS`; `rounds` says how many.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib.util
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from embodied_mem.memory import KnowledgeGraph, NewFact, NewNode, Triple

Edge = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Round:
    """A round's changes (new nodes are `fresh` and `fresh` + 1), and one more node to look around."""

    fresh: int
    remove: list[Edge]
    add: list[Edge]
    sources: list[int]
    alone: int


class Contender(abc.ABC):
    """A graph of `num_nodes` nodes and these edges."""

    def prepared(self, work: Round) -> Any:
        """Return what `update` takes; outside the clock."""
        return work

    @abc.abstractmethod
    def update(self, work: Any) -> None: ...

    def update_k2(self, work: Any, sources: list[int]) -> tuple[set[int] | Any, int]:
        """Update, then return the same as `khop2`."""
        self.update(work)
        return self.khop2(sources)

    @abc.abstractmethod
    def khop2(self, sources: list[int]) -> tuple[set[int] | Any, int]:
        """Return the nodes within 2 edges out of the sources.

        The second value is how many edges lead there.
        """


class Native(Contender):
    """`update`, everything by name."""

    def __init__(self, num_nodes: int, edges: list[Edge]):
        self.graph = KnowledgeGraph()
        self.time = 0
        self.graph.apply([NewNode(_name(i), "object") for i in range(num_nodes)])
        self.graph.apply(add=[NewFact(a, "near", b) for a, b in edges])

    def prepared(self, work: Round) -> tuple[list[Any], list[Any]]:
        self.time += 1
        ends = [((_name(a), "near", _name(b)), self.time) for a, b in work.remove]
        return [Triple(_name(a), "near", _name(b), self.time, None, "object", "object") for a, b in work.add], ends

    def update(self, work: tuple[list[Any], list[Any]]) -> None:
        triples, ends = work
        self.graph.update(triples, invalidate=ends, extract=False)

    def update_k2(self, work: tuple[list[Any], list[Any]], sources: list[int]) -> tuple[Any, int]:
        triples, ends = work  # the ends of the triples are the sources
        around = self.graph.update(triples, invalidate=ends, hops=2, direction="out").subgraph
        return around.nodes, around.num_facts

    def khop2(self, sources: list[int]) -> tuple[Any, int]:
        around = self.graph.khop(sources, 2, "out")
        return around.nodes, around.num_facts


class NativeRows(Native):
    """`apply` with rows of ids: what the other libraries do, that is without names to link and rules to ask."""

    def prepared(self, work: Round) -> tuple[list[Any], list[Any], list[Any]]:
        fresh = sorted({node for edge in work.add for node in edge if node >= work.fresh})
        nodes = [tuple(NewNode(_name(node), "object")) for node in fresh]
        return nodes, [((a, "near", b), 1) for a, b in work.remove], [tuple(NewFact(a, "near", b)) for a, b in work.add]

    def update(self, work: tuple[list[Any], list[Any], list[Any]]) -> None:
        self.graph.apply(*work)

    update_k2 = Contender.update_k2


def _name(number: int) -> str:
    return f"object {number}"


class Networkx(Contender):
    def __init__(self, num_nodes: int, edges: list[Edge]):
        import networkx

        self.graph = networkx.DiGraph()
        self.graph.add_nodes_from(range(num_nodes))
        self.graph.add_edges_from(edges)

    def update(self, work: Round) -> None:
        self.graph.remove_edges_from(work.remove)
        self.graph.add_nodes_from((work.fresh, work.fresh + 1))
        self.graph.add_edges_from(work.add)

    def khop2(self, sources: list[int]) -> tuple[set[int], int]:
        return _two_hops(sources, self.graph.neighbors)


class Rustworkx(Contender):
    def __init__(self, num_nodes: int, edges: list[Edge]):
        import rustworkx

        self.graph = rustworkx.PyDiGraph()
        self.graph.add_nodes_from(range(num_nodes))
        self.graph.add_edges_from_no_data(edges)

    def update(self, work: Round) -> None:
        self.graph.remove_edges_from(work.remove)
        self.graph.add_nodes_from([work.fresh, work.fresh + 1])
        self.graph.add_edges_from_no_data(work.add)

    def khop2(self, sources: list[int]) -> tuple[set[int], int]:
        return _two_hops(sources, self.graph.successor_indices)


class Igraph(Contender):
    def __init__(self, num_nodes: int, edges: list[Edge]):
        import igraph

        self.graph = igraph.Graph(n=num_nodes, edges=edges, directed=True)

    def update(self, work: Round) -> None:
        self.graph.delete_edges(work.remove)
        self.graph.add_vertices(2)
        self.graph.add_edges(work.add)

    def khop2(self, sources: list[int]) -> tuple[set[int], int]:
        near = self.graph.neighborhood(sources, order=1, mode="out")
        first = set().union(*near)
        nodes = first.union(*self.graph.neighborhood(list(first), order=1, mode="out"))
        return nodes, sum(self.graph.degree(list(first), mode="out"))


class Networkit(Contender):
    def __init__(self, num_nodes: int, edges: list[Edge]):
        import networkit

        self.graph = networkit.Graph(num_nodes, directed=True)
        for a, b in edges:
            self.graph.addEdge(a, b)

    def update(self, work: Round) -> None:
        for a, b in work.remove:
            self.graph.removeEdge(a, b)
        self.graph.addNodes(2)
        for a, b in work.add:
            self.graph.addEdge(a, b)

    def khop2(self, sources: list[int]) -> tuple[set[int], int]:
        return _two_hops(sources, self.graph.iterNeighbors)


class Kuzu(Contender):
    def __init__(self, num_nodes: int, edges: list[Edge]):
        import kuzu

        self.folder = tempfile.mkdtemp()
        self.connection = kuzu.Connection(kuzu.Database(f"{self.folder}/graph"))
        run = self.connection.execute
        run("CREATE NODE TABLE Thing(id INT64 PRIMARY KEY)")
        run("CREATE REL TABLE Near(FROM Thing TO Thing)")
        for name, lines in (("Thing", map(str, range(num_nodes))), ("Near", (f"{a},{b}" for a, b in edges))):
            with open(f"{self.folder}/{name}.csv", "w") as file:
                file.write("\n".join(lines))
            run(f"COPY {name} FROM '{self.folder}/{name}.csv' (HEADER=false)")
        prepare = self.connection.prepare
        pairs = "UNWIND $pairs AS p MATCH (a:Thing {id: p[1]})"
        self.remove = prepare(f"{pairs}-[r:Near]->(b:Thing {{id: p[2]}}) DELETE r", {"pairs": [[0, 0]]})
        self.nodes = prepare("UNWIND $ids AS i CREATE (:Thing {id: i})", {"ids": [0]})
        self.add = prepare(f"{pairs}, (b:Thing {{id: p[2]}}) CREATE (a)-[:Near]->(b)", {"pairs": [[0, 0]]})
        first = "UNWIND $ids AS i MATCH (a:Thing {id: i})-[r:Near]->(b:Thing)"
        self.around = prepare(f"{first} RETURN DISTINCT a.id, b.id", {"ids": [0]})

    def prepared(self, work: Round) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        remove, add = ({"pairs": [list(edge) for edge in edges]} for edges in (work.remove, work.add))
        return remove, {"ids": [work.fresh, work.fresh + 1]}, add

    def update(self, work: tuple[dict[str, Any], dict[str, Any], dict[str, Any]]) -> None:
        run = self.connection.execute
        run("BEGIN TRANSACTION")
        for statement, parameters in zip((self.remove, self.nodes, self.add), work):
            run(statement, parameters)
        run("COMMIT")

    def khop2(self, sources: list[int]) -> tuple[set[int], int]:
        nodes, last, num_edges = set(sources), list(dict.fromkeys(sources)), 0
        for _ in range(2):  # one query for each hop was faster here than one with a variable length
            edges = self.connection.execute(self.around, {"ids": last}).get_all()
            num_edges += len(edges)
            last = list({b for _, b in edges} - nodes)
            nodes.update(last)
        return nodes, num_edges

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _two_hops(sources: list[int], neighbors: Callable[[int], Any]) -> tuple[set[int], int]:
    nodes, last, num_edges = set(sources), set(sources), 0
    for _ in range(2):
        reached: list[int] = []
        for node in last:
            reached.extend(neighbors(node))
        num_edges += len(reached)
        last = set(reached) - nodes
        nodes |= last
    return nodes, num_edges


CONTENDERS: dict[str, tuple[Callable[[int, list[Edge]], Contender], str]] = {
    "native": (Native, "embodied_mem"),
    "native, rows": (NativeRows, "embodied_mem"),
    "networkx": (Networkx, "networkx"),
    "rustworkx": (Rustworkx, "rustworkx"),
    "igraph": (Igraph, "igraph"),
    "networkit": (Networkit, "networkit"),
    "kuzu": (Kuzu, "kuzu"),
}
MIN_ROUNDS = 8  # a tenth, at least one, is to warm up; of the others every second is without its extraction


def _plan(num_nodes: int, degree: int, rounds: int, seed: int) -> tuple[list[Edge], list[Round]]:
    """Return the first edges and the rounds.

    No edge is there twice at any time.
    """
    rng = random.Random(seed)
    edges = [(a, b) for a in range(num_nodes) for b in rng.sample(range(num_nodes), degree) if a != b]
    current, left, works = set(edges), list(edges), []
    for i in range(rounds):
        fresh = num_nodes + 2 * i
        remove = []
        for _ in range(4):
            at = rng.randrange(len(left))
            left[at], left[-1] = left[-1], left[at]
            remove.append(left.pop())
        current.difference_update(remove)
        add, sources = [], []
        for k, (a, _) in enumerate(remove):
            node, b = fresh + k % 2, rng.randrange(num_nodes)
            add += [edge for edge in ((a, node), (node, b)) if edge not in add]
            sources += [a, node, b]
        current.update(add)
        works.append(Round(fresh, remove, add, sources, rng.randrange(num_nodes)))
    return edges, works


def _at_hand(work: Round) -> Round:
    """Copy a round into new objects.

    A program that has just seen what changed has such; a plan's lie cold in memory.
    """
    pairs = ([(a + 0, b + 0) for a, b in edges] for edges in (work.remove, work.add))
    return Round(work.fresh, *pairs, [node + 0 for node in work.sources], work.alone)


def _measure(contender: Contender, works: list[Round], seconds: float) -> tuple[dict[str, list[float]], list[Any]]:
    times: dict[str, list[float]] = {"update": [], "update_k2": [], "khop2": []}
    answers = []
    start = time.perf_counter()
    for i, work in enumerate(works):
        if i >= MIN_ROUNDS and time.perf_counter() - start > seconds:
            break
        prepared = contender.prepared(_at_hand(work))
        since = time.perf_counter()
        if i % 2 == 0:
            around = contender.update_k2(prepared, work.sources)
            times["update_k2"].append(1e6 * (time.perf_counter() - since))
        else:
            contender.update(prepared)
            times["update"].append(1e6 * (time.perf_counter() - since))
            around = contender.khop2(work.sources)
        since = time.perf_counter()
        alone = contender.khop2([work.alone])
        times["khop2"].append(1e6 * (time.perf_counter() - since))
        answers.append([(frozenset(map(int, nodes)), num_edges) for nodes, num_edges in (around, alone)])
    return times, answers


def bench_graphs(args: Any) -> dict[str, Any]:
    """Returns `update_k2_us_p50` and `khop2_us_p50` by contender (the first degree), and all rows."""
    rows, mismatches = [], 0
    for degree in args.degrees:
        edges, works = _plan(args.nodes, degree, args.graph_rounds, args.seed)
        expected: list[Any] = []
        for name, (make, module) in CONTENDERS.items():
            if importlib.util.find_spec(module) is None:
                rows.append({"contender": name, "degree": degree, "absent": f"pip install {module}"})
                continue
            print(f"{args.nodes} nodes of degree {degree}: {name}", file=sys.stderr, flush=True)
            contender = make(args.nodes, edges)
            times, answers = _measure(contender, works, args.graph_seconds)
            expected = expected or answers
            mismatches += sum(a != b for a, b in zip(answers, expected))
            row: dict[str, Any] = {"contender": name, "degree": degree, "rounds": len(answers)}
            for what, values in times.items():
                values = sorted(values[max(1, len(values) // 10) :])  # the first tenth is to warm up
                row[f"{what}_us_p50"] = round(statistics.median(values), 1)
                row[f"{what}_us_p99"] = round(values[int(0.99 * (len(values) - 1))], 1)
            rows.append(row)
            print(
                f"{args.nodes:8} nodes, degree {degree}  {name:10} update + 2 hops {row['update_k2_us_p50']:10,.1f} us"
                f"  2 hops {row['khop2_us_p50']:8,.1f} us"
                f"  (p99 {row['update_k2_us_p99']:,.0f}, {row['khop2_us_p99']:,.0f}; {row['rounds']} rounds)"
            )
            if isinstance(contender, Kuzu):
                contender.close()
            del contender
    first = [row for row in rows if row["degree"] == args.degrees[0]]
    return {
        **{
            key: {row["contender"]: row.get(key, f"absent: {row.get('absent')}") for row in first}
            for key in ("update_k2_us_p50", "khop2_us_p50")
        },
        "graph_nodes": args.nodes,
        "graph_rows": rows,
        "mismatches": mismatches,
    }
