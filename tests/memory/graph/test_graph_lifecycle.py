"""Bytes there and back, forgetting against a graph that never knew, and audit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import KnowledgeGraph, NewFact, NewNode, Scope, Triple
from embodied_mem.memory.conflicts import Contradiction, audit, plain_name
from embodied_mem.memory.graph import ConflictRule
from embodied_mem.memory.relations import HOUSEHOLD_RULES

triples = st.builds(
    Triple,
    st.sampled_from(["apple", "mug", "agent", "fridge"]),
    st.sampled_from(["in", "on", "holds", "is", "near"]),
    st.sampled_from(["fridge", "table", "mug", "open", "closed"]),
    st.integers(0, 9),
    st.none() | st.integers(0, 3),
    st.sampled_from(["", "object"]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(triples, max_size=12), st.sets(st.integers(0, 3), min_size=1, max_size=2))
def test_forgetting_episodes_leaves_what_the_others_say(reports, gone):
    """Without rules, a graph that forgets episodes has the facts of one that never heard them."""
    reports = [r for r in reports if r.source is not None]
    graph, never = KnowledgeGraph(), KnowledgeGraph()
    for report in reports:
        graph.update([report])
        if report.source not in gone:
            never.update([report])
    told = graph.forget(sources=gone)

    def facts(one):
        with one.snapshot() as now:
            kept = [now.fact(i) for i in range(now.num_facts) if now.has_fact(i)]
            return sorted((now.node(f.subject).name, f.relation, now.node(f.object).name, f.sources) for f in kept)

    assert {f[:3] for f in facts(graph)} == {f[:3] for f in facts(never)}
    for mine, other in zip(facts(graph), facts(never)):
        assert mine[:3] == other[:3]
        assert set(mine[3]) == set(other[3])
    with graph.snapshot() as now, never.snapshot() as other:
        names = {now.node(i).name for i in range(now.num_nodes) if now.has_node(i)}
        assert names == {other.node(i).name for i in range(other.num_nodes)}
        assert now.num_erased_facts == len(told.erased)
        assert now.num_forgotten_nodes == len(told.nodes)
    copy = KnowledgeGraph.from_bytes(graph.to_bytes())
    assert copy.to_bytes() == graph.to_bytes()


def test_ids_of_forgotten_nodes_are_not_used_again():
    graph = KnowledgeGraph()
    graph.apply([NewNode("a", "secret type"), NewNode("b", attributes={"k": "v"})], add=[NewFact(0, "secret word", 1)])
    old = graph.snapshot()
    told = graph.forget(nodes=[0])
    assert (told.nodes, told.erased) == ([0], [0])  # b has attributes, so it stays
    assert graph.apply([NewNode("a")]).nodes == [2]
    assert b"secret" not in graph.to_bytes()
    assert old.node(0).name == "a"
    with graph.snapshot() as now:
        assert now.relations == []
        assert not now.has_node(0)
        for call in (now.node, now.facts_of, lambda n: now.khop([n])):
            with pytest.raises(InvalidInputError, match="got 0, which was forgotten"):
                call(0)
    with pytest.raises(InvalidInputError, match=r"nodes\[0\]: expected a known node, got 0"):
        graph.forget(nodes=[0])


def test_bytes_belong_to_a_scope():
    graph = KnowledgeGraph(Scope(user="ann"), rules=HOUSEHOLD_RULES)
    graph.update([Triple("apple", "in", "fridge", 1, 7)])
    copy = KnowledgeGraph.from_bytes(graph.to_bytes(), Scope(user="ann"))
    assert (copy.scope, copy.rules) == (graph.scope, graph.rules)
    with pytest.raises(InvalidInputError, match=r"expected one of Scope\(user='ben'"):
        KnowledgeGraph.from_bytes(graph.to_bytes(), Scope(user="ben"))
    with pytest.raises(InvalidInputError, match="checksum"):
        KnowledgeGraph.from_bytes(graph.to_bytes()[:-1])
    with pytest.raises(InvalidInputError, match="expected bytes that begin with"):
        KnowledgeGraph.from_bytes(b"")


def test_audit_lists_what_is_wrong_and_nothing_else():
    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    graph.update([Triple("apple 1", "in", "fridge", 1, 7), Triple("fridge", "is", "open", 1, 7)])
    assert audit(graph).clean
    assert audit(graph).counts == dict.fromkeys(audit(graph).counts, 0)
    ids = graph.apply([NewNode("The Apple-1"), NewNode("alone"), NewNode("table"), NewNode("apple 11")]).nodes
    with graph.snapshot() as now:
        apple, fridge = now.find("apple 1"), now.find("fridge")
    added = graph.apply(
        add=[NewFact(apple, "on", ids[2], 2, 8), NewFact(fridge, "near", fridge, 2, 8), NewFact(ids[3], "in", fridge)]
    ).facts
    report = audit(graph)
    assert report.near_names == ((apple, ids[0]),)
    assert report.contradictions == (Contradiction("place", apple, (0, added[0])),)
    assert report.orphans == (ids[0], ids[1])
    assert report.self_loops == (added[1],)
    assert report.unsourced == (added[2],)
    assert report.duplicate_facts == ()
    assert "place of 'apple 1': 0: 'apple 1' in 'fridge'; " in report.text
    assert f"{ids[1]}: 'alone'" in report.text
    graph.forget(nodes=[ids[0], ids[1]])
    assert audit(graph).counts["orphans"] == audit(graph).counts["near_names"] == 0


def test_a_rule_about_objects_is_audited_by_name():
    graph = KnowledgeGraph(rules=[ConflictRule("door", (("is", "subject", ("open", "closed")),))])
    nodes = graph.apply([NewNode(name) for name in ("door", "open", "closed", "cold")]).nodes
    graph.apply(add=[NewFact(nodes[0], "is", node, 0, 1) for node in nodes[1:]])
    assert audit(graph).contradictions == (Contradiction("door", nodes[0], (0, 1)),)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Apple_1", "the apple 1", True),
        ("apple1", "apple 1", True),
        ("apple 1", "apple 11", False),
        ("apple 1 1", "apple 11", False),
        ("A", "the", False),
        ("café", "CAFÉ", True),
    ],
)
def test_plain_names(one, other, same):
    assert (plain_name(one) == plain_name(other)) == same
