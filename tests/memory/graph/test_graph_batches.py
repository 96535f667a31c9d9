"""Raw batches and the extraction around them, against a plain list of facts; bad input; arrays; logs of before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listed_graph import RELATIONS, Model, check

from embodied_mem.errors import InvalidInputError
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda g: g.apply(invalidate=[((0, "in", 0), 6)]),
            r"invalidate\[0\]: expected a current fact, got \(0, ",
        ),
        (lambda g: g.apply(invalidate=[((0, "in", 7), 6)]), r"object: expected a node id below 2, got 7"),
        (lambda g: g.apply(invalidate=[((0, "in", 1), 4)]), r"invalidate\[0\].invalid_at: expected a time from 5 on"),
        (lambda g: g.apply(invalidate=[((0, "in", 1), 6)] * 2), r"invalidate: expected each fact once"),
        (lambda g: g.apply(invalidate=[((0, "typo", 1), 6)]), r"typo"),
        (
            lambda g: g.apply(add=[NewFact(0, "in", 1), NewFact(0, "in", 2)]),
            r"add\[1\].object: expected a node id below 2",
        ),
        (lambda g: g.apply(add=[(0, "in")]), r"add\[0\]: expected 5 values, got 2"),
        (lambda g: g.apply(add=[NewFact(0, "in", -1)]), r"object: expected an id from 0"),
        (lambda g: g.apply(add=[NewFact(0, "", 1)]), r"relations\[0\]: expected a name"),
        (lambda g: g.apply(nodes=[("c", "")]), r"nodes\[0\]: expected 4 values, got 2"),
        (lambda g: g.khop([0], hops=65), r"hops: expected at most 64, got 65"),
        (lambda g: g.khop(5), r"sources: expected a list, got 5"),
        (lambda g: g.khop([0], max_nodes=0), r"max_nodes: expected at least 1"),
    ],
)
def test_bad_input_says_what_and_changes_nothing(call, message):
    graph = KnowledgeGraph()
    graph.apply([NewNode("a"), NewNode("b")], add=[NewFact(0, "in", 1, 5)])
    with graph.snapshot() as now:
        before = now.num_nodes, now.num_facts, now.num_current_facts, now.relations
    with pytest.raises(InvalidInputError, match=message):
        call(graph)
    with graph.snapshot() as now:
        assert (now.num_nodes, now.num_facts, now.num_current_facts, now.relations) == before
    graph.apply(add=[NewFact(1, "in", 0)])  # and it goes on


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
