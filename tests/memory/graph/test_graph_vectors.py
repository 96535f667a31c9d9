"""Linking by vectors in one call against searching in Python first; failures; a writer beside readers; forgetting."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import HOUSEHOLD_RULES, KnowledgeGraph, NewNode, Triple, VectorIndex

DIM, THETA = 16, 0.9
TYPES = ("", "cup", "box")


def unit(*parts: float) -> np.ndarray:
    return np.array([*parts, *[0.0] * (DIM - len(parts))], np.float32)


def at_cosine(cosine: float) -> np.ndarray:
    """A vector with this cosine to unit(1)."""
    return unit(cosine, np.sqrt(1 - cosine**2))


class World:
    """Names in clusters: within one most cosines, not all, are above THETA; one name in eight has no vector."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        centres = rng.normal(size=(8, DIM))
        self.vectors = {
            f"thing {c} {v}": (centres[c] + rng.normal(size=DIM) * 0.25 * np.linalg.norm(centres[c]) / DIM**0.5).astype(
                np.float32
            )
            for c in range(8)
            for v in range(12)
        }
        self.names = list(self.vectors)
        for name in self.names[::8]:
            del self.vectors[name]

    def batch(self, time: int) -> list[Triple]:
        def mention() -> tuple[str, str]:
            return self.names[self.rng.integers(len(self.names))], TYPES[self.rng.integers(3)]

        triples = []
        for _ in range(self.rng.integers(1, 6)):
            (subject, subject_type), (object_, object_type) = mention(), mention()
            relation = ("in", "on", "near")[self.rng.integers(3)]
            triples.append(Triple(subject, relation, object_, time, time, subject_type, object_type))
        return triples


class TwoSteps:
    """The same by search in Python and candidates, one mention at a time."""

    def __init__(self, kind: str):
        self.graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
        self.index = VectorIndex(DIM, kind=kind)

    def link(self, name: str, type_: str, vectors: dict[str, np.ndarray]) -> list[int]:
        """Candidates; a node is made if there are none."""
        with self.graph.snapshot() as now:
            node = now.find(name)
            vector = vectors.get(name)
            if node is None and vector is not None and len(self.index):
                for id, score in zip(*self.index.search(vector, k=len(self.index), ef_search=200)):
                    if id >= 0 and score > THETA and (not type_ or now.node(int(id)).type in ("", type_)):
                        return [int(id)]
        node = self.graph.apply([NewNode(name, type_)]).nodes[0] if node is None else node
        if vector is not None and node not in self.index:
            self.index.add([node], vector[None], num_threads=1)
        return []

    def update(self, triples: list[Triple], vectors: dict[str, np.ndarray]) -> list[tuple[int, int, int]]:
        rows = []
        for t in triples:
            subject = self.link(t.subject, t.subject_type, vectors)
            # The subject's type is known before its object is looked at, as in one call.
            if not subject:
                with self.graph.snapshot() as now:
                    node = now.find(t.subject)
                    if t.subject_type and not now.node(node).type:
                        self.graph.apply([NewNode(t.subject, t.subject_type)])
            object_ = self.link(t.object, t.object_type, vectors)
            change = self.graph.update(
                [
                    Triple(
                        *(t.subject, t.relation, t.object, t.valid_at, t.source, t.subject_type, t.object_type),
                        *(subject, object_),
                    )
                ]
            )
            rows.append((change.subjects[0], change.objects[0], change.facts[0]))
        return rows


def content(graph: KnowledgeGraph) -> tuple:
    with graph.snapshot() as now:
        return [now.node(i) for i in range(now.num_nodes)], [now.fact(i) for i in range(now.num_facts)]


def vectors_of(index: VectorIndex) -> dict[int, bytes]:
    return {int(id): index.vector(int(id)).tobytes() for id in index.ids}


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
@pytest.mark.parametrize("seed", range(4))
def test_one_call_does_what_two_steps_do(kind, seed):
    world = World(np.random.default_rng(seed))
    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES, index=VectorIndex(DIM, kind=kind), theta=THETA)
    other, num_similar = TwoSteps(kind), 0
    for time in range(60):
        triples = world.batch(time)
        change = graph.update(triples, vectors=world.vectors)
        num_similar += len(change.similar_nodes)
        assert list(zip(change.subjects, change.objects, change.facts)) == other.update(triples, world.vectors)
    assert content(graph) == content(other.graph)
    assert vectors_of(graph.index) == vectors_of(other.index)
    assert num_similar > 20
    assert 8 < len(graph.index) < len(world.vectors)  # some of a cluster are one node, some are not


def test_the_search_goes_past_nodes_of_another_type():
    graph = KnowledgeGraph(index=VectorIndex(DIM), theta=THETA)
    for i in range(20):  # more than one search asks for, and all of them nearer than the cup
        node = graph.apply([NewNode(f"box {i}", "box")]).nodes
        graph.index.add(node, at_cosine(0.99 - i / 1000)[None])
    cup = graph.apply([NewNode("cup 1", "cup")]).nodes[0]
    graph.index.add([cup], at_cosine(0.91)[None])
    change = graph.update([Triple("mug 1", "near", "door 1", subject_type="cup")], vectors={"mug 1": unit(1)})
    assert change.similar_nodes == [cup]
    change = graph.update([Triple("jug 1", "near", "door 1", subject_type="jug")], vectors={"jug 1": unit(1)})
    assert change.similar_nodes == []
    assert change.new_nodes == change.subjects


@pytest.mark.parametrize(("cosine", "linked"), [(0.901, True), (0.899, False)])
def test_theta_is_the_border(cosine, linked):
    graph = KnowledgeGraph(index=VectorIndex(DIM), theta=THETA)
    vectors = {"sofa 1": unit(1), "couch 1": at_cosine(cosine)}
    graph.update([Triple("sofa 1", "near", "door 1")], vectors=vectors)
    change = graph.update([Triple("couch 1", "near", "door 1")], vectors=vectors)
    assert (change.similar_nodes == [0]) == linked
    assert graph.index.ids.tolist() == ([0] if linked else [0, 2])


def test_names_of_one_batch_are_compared_too():
    vectors = {"sofa 1": unit(1), "couch 1": at_cosine(0.95)}
    graph = KnowledgeGraph(index=VectorIndex(DIM), theta=THETA)
    change = graph.update([Triple("sofa 1", "near", "door 1"), Triple("couch 1", "near", "lamp 1")], vectors=vectors)
    assert change.subjects == [0, 0]


def test_a_node_without_a_vector_gets_one():
    graph = KnowledgeGraph(index=VectorIndex(DIM), theta=THETA)
    graph.update([Triple("sofa 1", "near", "door 1")])
    assert len(graph.index) == 0
    graph.update([Triple("sofa 1", "near", "lamp 1")], vectors={"sofa 1": unit(2), "not mentioned": unit(0, 1)})
    assert vectors_of(graph.index) == {0: unit(1).tobytes()}
    graph.observe([Triple("couch 1", "near", "lamp 2")], {"couch 1": at_cosine(0.95)})
    assert graph.integrate().subjects == [0]


BAD = {
    "an empty name": ([Triple("", "near", "door 1")], {}, "name"),
    "an unknown candidate": ([Triple("a", "near", "door 1", subject_candidates=[99])], {}, "candidates"),
    "not a number": ([Triple("a", "near", "door 1")], {"a": unit(np.nan)}, "'a'.*finite"),
    "no direction": ([Triple("a", "near", "door 1")], {"a": unit(0)}, "'a'.*length is 0"),
    "no direction of a known one": ([Triple("sofa 1", "near", "door 1")], {"sofa 1": unit(0)}, "length is 0"),
    "another size": (
        [Triple("a", "near", "door 1")],
        {"a": np.ones(3, np.float32)},
        r"float32\[16\], got float32\[3\]",
    ),
    "too many hops": ([Triple("a", "near", "door 1")], {"a": unit(1)}, "hops"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_batch_that_is_refused_changes_neither(case):
    graph = KnowledgeGraph(index=VectorIndex(DIM), theta=THETA)
    good = [Triple("sofa 1", "near", "door 1"), Triple("lamp 1", "near", "door 1")]
    vectors = {"sofa 1": unit(1), "lamp 1": unit(0, 1)}
    graph.update(good[:1], vectors=vectors)
    before = graph.to_bytes(), vectors_of(graph.index)
    triples, bad, words = BAD[case]
    with pytest.raises(InvalidInputError, match=words):
        graph.update(good[1:] + triples, vectors=vectors | bad, hops=1000 if "hops" in case else 2)
    assert (graph.to_bytes(), vectors_of(graph.index)) == before
    assert graph.update(good[1:], vectors=vectors).new_nodes == [2]
    assert graph.index.ids.tolist() == [0, 2]


def test_an_index_of_another_graph_is_refused():
    index = VectorIndex(DIM)
    graph = KnowledgeGraph(index=index, theta=THETA)
    graph.update([Triple("sofa 1", "near", "door 1")])
    before = graph.to_bytes()
    for id, vector in ((2, unit(0, 1)), (7, unit(1))):  # the next node's; one that the search finds
        index.add([id], vector[None])
        with pytest.raises(InvalidInputError, match="belongs to one graph"):
            graph.update([Triple("couch 1", "near", "door 1")], vectors={"couch 1": unit(1)})
        assert (graph.to_bytes(), index.ids.tolist()) == (before, [id])
        with pytest.raises(InvalidInputError, match="belongs to one graph"):
            KnowledgeGraph.from_bytes(before, index=index)
        index.remove([id])
    assert KnowledgeGraph.from_bytes(before, index=index).index is index
    with pytest.raises(InvalidInputError, match="graph with an index"):
        graph.fork().update([Triple("couch 1", "near", "door 1")], vectors={"couch 1": unit(1)})


def test_what_is_forgotten_is_not_found():
    graph = KnowledgeGraph(index=VectorIndex(DIM), theta=THETA)
    vectors = {"sofa 1": unit(1), "couch 1": at_cosine(0.95), "door 1": unit(0, 0, 1)}
    graph.update([Triple("sofa 1", "near", "door 1")], vectors=vectors)
    graph.forget([0])
    assert len(graph.index) == 0  # the door had no other fact
    assert graph.update([Triple("couch 1", "near", "door 1")], vectors=vectors).new_nodes == [2, 3]


def test_readers_beside_a_writer():
    """Whatever a search finds is in a snapshot taken afterwards, with the name that the vector is of."""
    rng = np.random.default_rng(11)
    vectors = {f"thing {i}": rng.normal(size=DIM).astype(np.float32) for i in range(400)}
    names = {vector.tobytes(): name for name, vector in vectors.items()}
    index = VectorIndex(DIM, metric="inner_product")  # vectors are kept as they are
    graph = KnowledgeGraph(index=index, theta=1e6)
    done, seen, problems = threading.Event(), [0, 0], []

    def look(reader: int) -> None:
        rng = np.random.default_rng(reader)
        try:
            while not done.is_set():
                found, _ = index.search(rng.normal(size=DIM).astype(np.float32), k=8, num_threads=1)
                with graph.snapshot() as now:
                    for id in found[found >= 0].tolist():
                        assert now.node(id).name == names[index.vector(id).tobytes()]
                        seen[reader] += 1
        except BaseException as problem:
            problems.append(problem)

    readers = [threading.Thread(target=look, args=(i,)) for i in range(2)]
    for reader in readers:
        reader.start()
    for i in range(0, 400, 2):
        graph.update([Triple(f"thing {i}", "near", f"thing {i + 1}", i)], vectors=vectors)
        while i == 100 and min(seen) == 0 and not problems:
            done.wait(0.001)
    done.set()
    for reader in readers:
        reader.join(30)
    assert problems == []
    assert min(seen) > 0
    assert len(index) == 400
