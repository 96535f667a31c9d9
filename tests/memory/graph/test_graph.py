"""The knowledge graph against a plain list of facts: any sequence of batches, forks and snapshots; rules; bad input."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listed_graph import RELATIONS, Item, Model, check

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import KnowledgeGraph, NewFact, NewNode, Triple
from embodied_mem.memory.graph import ConflictRule
from embodied_mem.memory.relations import HOUSEHOLD_RULES


def check_khop(snapshot, model: Model, sources, hops, direction, relations, as_of) -> None:
    known = set(snapshot.relations)
    relations = None if relations is None else [word for word in relations if word in known] or None
    got = snapshot.khop(sources, hops, direction, relations, as_of=as_of)
    found, facts = model.khop(sources, hops, direction, relations, as_of)
    assert dict(zip(got.nodes.tolist(), got.hops.tolist())) == found
    assert len(got.nodes) == len(found)
    assert (np.diff(got.hops.astype(int)) >= 0).all()
    assert sorted(got.facts.tolist()) == sorted(facts)
    ends = [(found[snapshot.fact(fact).subject], found[snapshot.fact(fact).object]) for fact in got.facts]
    followed_from = {"out": lambda pair: pair[0], "in": lambda pair: pair[1], "both": min}[direction]
    assert got.fact_hops == [followed_from(pair) for pair in ends]
    assert not got.truncated
    # Theorem 1: at most M (D^(K+1) - 1) / (D - 1) nodes, that is M (1 + D + ... + D^K).
    degree = np.zeros(len(model.names), int)
    for item in model.items:
        if item.true_at(as_of):
            degree[item.subject] += direction != "in"
            degree[item.object] += direction != "out"
    largest = max(1, degree.max())
    assert len(got.nodes) <= len(set(sources)) * sum(largest**k for k in range(hops + 1))
    for limit in range(1, len(found)):
        cut = snapshot.khop(sources, hops, direction, relations, max_nodes=limit, as_of=as_of)
        assert cut.truncated
        assert cut.nodes.tolist() == got.nodes[:limit].tolist()
        assert set(cut.facts.tolist()) <= facts


nodes = st.integers(0, 7)
batches = st.lists(
    st.tuples(
        st.lists(st.sampled_from([f"node {i}" for i in range(12)]), max_size=3),
        st.lists(st.tuples(nodes, st.sampled_from(RELATIONS), nodes, st.none() | st.integers(0, 3)), max_size=6),
        st.lists(st.integers(0, 10**6), max_size=2),
        st.sampled_from(["", "", "fork", "snapshot"]),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=10,
)
questions = st.tuples(
    st.lists(nodes, min_size=1, max_size=3),
    st.integers(0, 4),
    st.sampled_from(["out", "in", "both"]),
    st.none() | st.sets(st.sampled_from(RELATIONS), min_size=1),
    st.none() | st.integers(-1, 12),
)


@settings(max_examples=150, deadline=None)
@given(batches, questions)
def test_batches_forks_and_snapshots_equal_the_model(batches, question):
    graph, model = KnowledgeGraph(), Model()
    graph.apply(nodes=[NewNode(f"node {i}") for i in range(8)])
    for i in range(8):
        model.node(f"node {i}")
    graphs, snapshots = [(graph, model)], []
    for time, (names, facts, invalidate, then, which) in enumerate(batches):
        graph, model = graphs[which % len(graphs)]
        current = [i for i, item in enumerate(model.items) if item.invalid_at is None]
        ended = {current[i % len(current)] for i in invalidate} if current else set()
        got = graph.apply(
            [NewNode(name) for name in names],
            [(fact, time) for fact in sorted(ended)],
            [NewFact(s, r, o, time, source) for s, r, o, source in facts],
        )
        assert got.nodes == [model.node(name) for name in names]
        for fact in ended:
            model.items[fact].invalid_at = time
        for i, fact in enumerate(facts):
            count = len(model.items)
            assert got.facts[i] == model.add(*fact[:3], time, fact[3])
            assert got.repeated[i] == (len(model.items) == count)
        if then == "fork":
            graphs.append((graph.fork(), model.copy()))
        elif then == "snapshot":
            snapshots.append((graph.snapshot(), model.copy()))
    for graph, model in graphs:
        check(graph, model)
        check_khop(graph.snapshot(), model, *question)
    for snapshot, model in snapshots:
        check(snapshot, model)
        check_khop(snapshot, model, *question)


things = st.sampled_from(["apple", "mug", "pen"])
reports = st.lists(
    st.one_of(
        st.tuples(things, st.sampled_from(["in", "on"]), st.sampled_from(["fridge", "table", "mug"])),
        st.tuples(st.sampled_from(["agent", "ann"]), st.just("holds"), things),
        st.tuples(st.just("fridge"), st.just("is"), st.sampled_from(["open", "closed", "cold", "on", "off"])),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(reports, st.integers(1, 4))
def test_update_equals_the_model(reports, size):
    graph, model = KnowledgeGraph(rules=HOUSEHOLD_RULES), Model()
    for time in range(0, len(reports), size):
        before = {i for i, item in enumerate(model.items) if item.invalid_at is None}
        num_facts, num_nodes = len(model.items), len(model.names)
        change = graph.update([Triple(*report, time, time) for report in reports[time : time + size]])
        for report in reports[time : time + size]:
            model.update(*report, time)
        assert change.new_nodes == list(range(num_nodes, len(model.names)))
        assert change.added == list(range(num_facts, len(model.items)))
        after = {i for i, item in enumerate(model.items) if item.invalid_at is None}
        new = set(range(num_facts, len(model.items)))
        assert {end.fact for end in change.ended} == (before | new) - after
        entities = change.subjects + change.objects
        found, facts = model.khop(entities, 2, "both", None, None)
        assert dict(zip(change.subgraph.nodes.tolist(), change.subgraph.hops.tolist())) == found
        assert set(change.subgraph.facts.tolist()) == facts
    check(graph, model)
    current = [item for item in model.items if item.invalid_at is None]
    for one, other in itertools.combinations(current, 2):
        assert not model.slots(one) & model.slots(other)


def test_what_the_reports_say():
    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    first = graph.update([Triple("apple", "in", "fridge", 1, 10)])
    again = graph.update(
        [Triple("apple", "in", "fridge", 2, 11), Triple("apple", "in", "fridge", 2, 11)], extract=False
    )
    assert again.repeated == first.added * 2
    assert again.subgraph is None
    taken = graph.update([Triple("agent", "holds", "apple", 3)])
    assert [(end.fact, end.by, end.rule) for end in taken.ended] == [(first.added[0], taken.added[0], "place")]
    with graph.snapshot() as now:
        fact = now.fact(first.added[0])
        assert (fact.relation, fact.valid_at, fact.invalid_at, fact.sources) == ("in", 1, 3, (10, 11))
        assert now.facts(as_of=2).tolist() == first.added
        assert now.find_fact(now.find("agent"), "holds", now.find("apple")) == taken.added[0]
        assert now.facts_of(now.find("apple"), "in").tolist() == taken.added
    with pytest.raises(InvalidInputError, match=r"closed; take another one"):
        now.find("apple")


def test_a_node_is_updated_by_its_name():
    graph = KnowledgeGraph()
    graph.apply([NewNode("mug", "", {"colour": "red", "size": "big"}, 5)])
    before = graph.snapshot()
    assert graph.apply([NewNode("mug", "object", {"colour": "blue"})]).nodes == [0]
    node = graph.snapshot().node(0)
    assert (node.type, node.attributes, node.embedding) == ("object", {"colour": "blue", "size": "big"}, 5)
    assert before.node(0).attributes["colour"] == "red"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.apply(add=[NewFact(0, "in", 9)]), r"add\[0\].object: expected a node id below 2, got 9"),
        (lambda g: g.apply(add=[NewFact(-1, "in", 0)]), r"subject: expected an id from 0"),
        (lambda g: g.apply(add=[(0, "in")]), r"add\[0\]: expected 5 values, got 2"),
        (lambda g: g.apply(nodes=[("c", "")]), r"nodes\[0\]: expected 4 values, got 2"),
        (lambda g: g.apply(invalidate=[((0, "typo", 1), 6)]), "typo"),
        (lambda g: g.apply([NewNode("")]), r"nodes\[0\].name: expected a name"),
        (lambda g: g.apply([NewNode("x" * 5000)]), r"at most 4096 bytes, got 5000"),
        (lambda g: g.apply([NewNode("x", embedding=-3)]), r"embedding: expected a handle >= 0"),
        (lambda g: g.apply(invalidate=[(0, 4)]), r"invalidate\[0\].invalid_at: expected a time from 5 on"),
        (lambda g: g.apply(invalidate=[(0, 6), (0, 6)]), r"each fact once, got 0 twice"),
        (lambda g: g.apply(invalidate=[(3, 6)]), r"expected a fact id below 1, got 3"),
        (lambda g: g.update([Triple("a", "", "b")]), r"triples\[0\].relation: expected a name"),
        (lambda g: g.update([Triple("c", "in", "b")], hops=65), r"hops: expected at most 64, got 65"),
        (lambda g: g.snapshot().khop([0], hops=-1), r"hops: expected 0 to 64"),
        (lambda g: g.snapshot().khop([2]), r"sources\[0\]: expected a node id below 2, got 2"),
        (lambda g: g.snapshot().khop([0], direction="up"), r'direction: expected "out", "in" or "both", got "up"'),
        (lambda g: g.snapshot().khop([0], relations=["on"]), r"got 'on'; known: in"),
        (lambda g: g.snapshot().khop([0], relations=[]), r"expected at least one, or None"),
        (lambda g: g.snapshot().khop([0], relations="in"), r"got the one str 'in'"),
        (lambda g: g.snapshot().khop([0], max_nodes=0), r"max_nodes: expected at least 1"),
        (lambda g: g.snapshot().node(2), r"expected a node id below 2"),
        (lambda g: g.snapshot().fact(1), r"expected a fact id below 1"),
        (lambda g: KnowledgeGraph(rules=[ConflictRule("x", ())]), r"rules\[0\] \('x'\): expected members"),
        (lambda g: KnowledgeGraph(rules=[ConflictRule("x", (("in", "both"),))]), r'the role "subject" or "object"'),
    ],
)
def test_bad_input_says_what_and_changes_nothing(call, message):
    graph = KnowledgeGraph()
    graph.apply([NewNode("a"), NewNode("b")], add=[NewFact(0, "in", 1, valid_at=5)])
    with pytest.raises(InvalidInputError, match=message):
        call(graph)
    check(graph, Model(["a", "b"], [Item(0, "in", 1, 5, None, [])]))
    graph.apply(add=[NewFact(1, "in", 0)])  # and it goes on


def test_threads_read_whole_versions_while_one_writes():
    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    graph.update([Triple(f"thing {i}", "in", f"place {i % 3}") for i in range(10)])
    problems, versions, stop = [], set(), threading.Event()

    def look():
        with graph.snapshot() as now:
            around = now.khop([now.find(f"place {i}") for i in range(3)], 1, "in")
            versions.add(now.version)
            if len(around.facts) != 10 or now.num_current_facts != 10:
                problems.append(now.version)

    def read():
        try:
            while not stop.is_set():
                look()
        except Exception as error:  # or it would end the thread unseen
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for time in range(1, 100_000):
        graph.update([Triple(f"thing {(7 * time + i) % 10}", "on", f"place {(time + i) % 3}", time) for i in range(3)])
        if problems or (time >= 300 and len(versions) > 20):
            break
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(versions) > 20  # while it was written
    graph.update([Triple("thing 1", "in", "place 0", time + 1)])
    assert graph.num_retired == 0
