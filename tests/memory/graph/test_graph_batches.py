"""Batches of facts between ids with the extraction around them, against a plain list of facts; bad input; arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graph import RELATIONS, Model, check

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import DurableGraph, GraphModule, KnowledgeGraph, MemoryStore, NewNode

steps = st.lists(
    st.tuples(
        st.sampled_from(["pairs", "array of pairs", "rows", "array of rows"]),
        st.sampled_from(RELATIONS),
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
def test_relate_equals_the_model(steps):
    graph, model = KnowledgeGraph(), Model()
    assert graph.relate(nodes=[f"node {i}" for i in range(5)]).nodes.tolist() == [
        model.node(f"node {i}") for i in range(5)
    ]
    numbers = dict(zip(RELATIONS, graph.relation_ids(RELATIONS)))
    for time, (form, relation, names, add, end, source, direction, hops) in enumerate(steps):
        one_relation = "pairs" in form
        before = [
            i
            for i, item in enumerate(model.items)
            if item.invalid_at is None and (not one_relation or item.relation == relation)
        ]
        ended = sorted({before[i % len(before)] for i in end}) if before else []
        nodes = [model.node(name) for name in names]
        count = len(model.names)
        add = [(s % count, relation if one_relation else r, o % count) for s, r, o in add]
        gone = [(model.items[i].subject, model.items[i].relation, model.items[i].object) for i in ended]
        shape = {
            "pairs": lambda rows: [(s, o) for s, _, o in rows],
            "array of pairs": lambda rows: np.array([(s, o) for s, _, o in rows], np.uint32).reshape(-1, 2),
            "rows": lambda rows: rows,
            "array of rows": lambda rows: np.array([(s, numbers[r], o) for s, r, o in rows]).reshape(-1, 3).astype(int),
        }[form]
        got = graph.relate(
            relation if one_relation else "",
            add=shape(add),
            end=shape(gone),
            nodes=names,
            at=time,
            source=source,
            hops=hops,
            direction=direction,
        )
        assert got.nodes.tolist() == nodes
        assert got.ended.tolist() == ended
        for fact in ended:
            model.items[fact].invalid_at = time
        for i, (s, r, o) in enumerate(add):
            num_facts = len(model.items)
            assert got.facts[i] == model.add(s, r, o, time, source)
            assert got.repeated[i] == (len(model.items) == num_facts)
        sources = nodes + [node for s, _, o in add for node in (s, o)]
        found, facts = model.khop(sources, hops, direction, None, None)
        assert dict(zip(got.around.nodes.tolist(), got.around.hops.tolist())) == found
        assert set(got.around.facts.tolist()) == facts
        assert got.around.num_facts == len(facts)
        alone = graph.khop(np.array(sources, int), hops, direction)
        assert alone.nodes.tolist() == got.around.nodes.tolist()
    check(graph, model)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.relate("in", end=[(0, 0)]), r"end\[0\]: expected a current fact, got \(0, 'in', 0\)"),
        (lambda g: g.relate("in", end=[(0, 7)]), r"end\[0\].object: expected a node id below 2, got 7"),
        (lambda g: g.relate("in", end=[(0, 1)], at=4), r"end\[0\].invalid_at: expected a time from 5 on"),
        (lambda g: g.relate("in", end=[(0, 1), (0, 1)], at=6), r"end: expected each fact once"),
        (lambda g: g.relate("in", add=[(0, 1), (0, 2)]), r"add\[1\].object: expected a node id below 2, got 2"),
        (lambda g: g.relate("in", add=[(0,)]), r"add\[0\]: expected \(subject, object\) or .* got 1 values"),
        (lambda g: g.relate("in", add=[(0, -1)]), r"add: expected an id from 0"),
        (lambda g: g.relate(add=[(0, 1)]), r"relations\[0\]: expected a name"),
        (lambda g: g.relate("in", add=np.zeros((2, 2))), r"add: expected an array of integers .* got float64"),
        (lambda g: g.relate("in", add=np.zeros(2, int)), r"with 2 dimension\(s\), got int64 with 1"),
        (lambda g: g.relate("in", add=np.zeros((1, 4), int)), r"add: expected .* got 4 values"),
        (lambda g: g.relate("in", add=np.array([[0, 9, 1]])), r"add\[0\].relation: expected a relation id below"),
        (lambda g: g.relate("in", nodes="ab"), r"nodes: expected a list of names, got the one str 'ab'"),
        (lambda g: g.relate("in", nodes=[("c", "")]), r"nodes\[0\]: expected 4 values, got 2"),
        (lambda g: g.relate("in", nodes=["c"], hops=65), r"hops: expected at most 64, got 65"),
        (lambda g: g.relate("typo", end=[(0, 1)]), r"typo"),
        (lambda g: g.relate("in", add=5), r"add: expected a list, got 5"),
        (lambda g: g.khop(5), r"sources: expected a list, got 5"),
        (lambda g: g.khop([0], max_nodes=0), r"max_nodes: expected at least 1"),
    ],
)
def test_bad_input_says_what_and_changes_nothing(call, message):
    graph = KnowledgeGraph()
    graph.relate("in", nodes=["a", NewNode("b")], add=[(0, 1)], at=5)
    with graph.snapshot() as now:
        before = now.num_nodes, now.num_facts, now.num_current_facts, now.relations
    with pytest.raises(InvalidInputError, match=message):
        call(graph)
    with graph.snapshot() as now:
        assert (now.num_nodes, now.num_facts, now.num_current_facts, now.relations) == before
    graph.relate("in", add=[(1, 0)])  # and it goes on


def test_arrays_stay_what_they_were():
    graph = KnowledgeGraph()
    got = graph.relate("near", nodes=["a", "b", "c"], add=[(0, 1), (1, 2)], hops=2)
    nodes, facts = got.around.nodes, got.facts
    del got
    for i in range(50):
        graph.relate("near", nodes=[f"more {i}"], add=[(0, 3 + i)], hops=2)
    assert nodes.tolist() == [0, 1, 2]
    assert facts.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 5


def test_rows_may_come_from_generators_whose_words_do_not_live_on():
    graph = KnowledgeGraph()
    graph.relate("on", nodes=["a", "b", "c"], add=[(0, 1)], at=1)
    words = ["".join(letters) for letters in (("o", "n"), ("i", "n"), ("a", "t"))]
    end = ((0, "".join(letters), 1) for letters in [("o", "n")])
    graph.relate(end=end, add=((0, f"{word[0]}{word[1:]}", 2) for word in words), at=2)
    with graph.snapshot() as now:
        assert [now.fact(fact).relation for fact in now.facts()] == words
        assert now.fact(0).invalid_at == 2


def test_a_repeated_fact_gets_a_source():
    graph = KnowledgeGraph()
    first = graph.relate("near", nodes=["a", "b"], add=[(0, 1)], at=1, source=7)
    again = graph.relate("near", add=[(0, 1)], at=2, source=8)
    assert again.facts.tolist() == first.facts.tolist()
    assert again.repeated.tolist() == [True]
    assert again.around is None
    with graph.snapshot() as now:
        assert now.fact(0).sources == (7, 8)
    assert graph.forget(sources=[7, 8]).erased == [0]


def test_what_was_related_is_there_after_a_restart(tmp_path):
    module = GraphModule()
    with MemoryStore(tmp_path, {"graph": module}, fsync="never") as store:
        graph = DurableGraph(store, module)
        graph.relate("near", nodes=["a", NewNode("b", "thing", {"colour": "red"})], add=[(0, 1)], at=1, source=3)
        graph.relate("near", add=np.array([[1, 0]]), end=[(0, 1)], at=2)
        graph.relate(add=[(0, "on", 1)], at=3)
        with pytest.raises(InvalidInputError, match="expected the relation as a word, got 0"):
            graph.relate(add=[(0, 0, 1)])
        expected = module.graph.to_bytes()
    again = GraphModule()
    with MemoryStore(tmp_path, {"graph": again}, fsync="never"):
        assert again.graph.to_bytes() == expected
