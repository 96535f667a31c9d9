"""Raw batches and the extraction around them, against a plain list of facts, and arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listed_graph import RELATIONS, Model, check

from embodied_mem.memory import KnowledgeGraph, NewFact, NewNode

steps = st.lists(
    st.tuples(
        st.lists(st.sampled_from([f"node {i}" for i in range(12)]), max_size=3),
        st.lists(st.tuples(st.integers(0, 20), st.sampled_from(RELATIONS), st.integers(0, 20)), max_size=6),
        st.lists(st.integers(0, 10**6), max_size=3),
        st.none() | st.integers(0, 3),
        st.sampled_from(["out", "in", "both"]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=120, deadline=None)
@given(steps)
def test_a_batch_equals_the_model(steps):
    graph, model = KnowledgeGraph(), Model()
    assert graph.apply([NewNode(f"node {i}") for i in range(5)]).nodes == [model.node(f"node {i}") for i in range(5)]
    for time, (names, add, end, source, direction, hops) in enumerate(steps):
        before = [i for i, item in enumerate(model.items) if item.invalid_at is None]
        ended = sorted({before[i % len(before)] for i in end}) if before else []
        nodes = [model.node(name) for name in names]
        count = len(model.names)
        add = [(s % count, r, o % count) for s, r, o in add]
        gone = [(model.items[i].subject, model.items[i].relation, model.items[i].object) for i in ended]
        got = graph.apply(
            map(NewNode, names), [(fact, time) for fact in gone], [NewFact(*fact, time, source) for fact in add]
        )
        assert got.nodes == nodes
        for fact in ended:
            model.items[fact].invalid_at = time
        for i, (s, r, o) in enumerate(add):
            num_facts = len(model.items)
            assert got.facts[i] == model.add(s, r, o, time, source)
            assert got.repeated[i] == (len(model.items) == num_facts)
        sources = nodes + [node for s, _, o in add for node in (s, o)]
        found, facts = model.khop(sources, hops, direction, None, None)
        around = graph.khop(np.array(sources, int), hops, direction)
        assert dict(zip(around.nodes.tolist(), around.hops.tolist())) == found
        assert set(around.facts.tolist()) == facts
        assert around.num_facts == len(facts)
    check(graph, model)


def test_arrays_stay_what_they_were():
    graph = KnowledgeGraph()
    graph.apply(map(NewNode, "abc"), add=[NewFact(0, "near", 1), NewFact(1, "near", 2)])
    around = graph.khop([0], hops=2)
    nodes, facts = around.nodes, around.facts
    del around
    for i in range(50):
        graph.apply([NewNode(f"more {i}")], add=[NewFact(0, "near", 3 + i)])
    assert nodes.tolist() == [0, 1, 2]
    assert facts.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 5


def test_rows_may_come_from_generators_whose_words_do_not_live_on():
    graph = KnowledgeGraph()
    graph.apply(map(NewNode, "abc"), add=[NewFact(0, "on", 1, 1)])
    words = ["".join(letters) for letters in (("o", "n"), ("i", "n"), ("a", "t"))]
    end = (((0, "".join(letters), 1), 2) for letters in [("o", "n")])
    graph.apply(invalidate=end, add=(NewFact(0, f"{word[0]}{word[1:]}", 2, 2) for word in words))
    with graph.snapshot() as now:
        assert [now.fact(fact).relation for fact in now.facts()] == words
        assert now.fact(0).invalid_at == 2


def test_a_repeated_fact_gets_a_source():
    graph = KnowledgeGraph()
    first = graph.apply(map(NewNode, "ab"), add=[NewFact(0, "near", 1, 1, 7)])
    again = graph.apply(add=[NewFact(0, "near", 1, 2, 8)])
    assert again.facts == first.facts
    assert again.repeated == [True]
    with graph.snapshot() as now:
        assert now.fact(0).sources == (7, 8)
    assert graph.forget(sources=[7, 8]).erased == [0]
