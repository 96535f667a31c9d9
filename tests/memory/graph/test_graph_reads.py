"""Reads and writes of many things in one call, against the same one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import KnowledgeGraph, Triple
from embodied_mem.memory.readers.reading import class_of
from embodied_mem.memory.relations import HOUSEHOLD_RULES

names = st.sampled_from(
    ["home/mug 1", "home/mug 2", "home/desk_10", "home/red mug", "mug1", "12", "_1", " 7", "a/b/é 3", "agent", "x 1 2"]
)
facts = st.lists(st.tuples(names, st.sampled_from(["on", "in", "is", "at", "holds"]), names), min_size=1, max_size=8)


LISTS = ("subjects", "objects", "facts", "new_nodes", "added", "repeated", "ended")


def classed(fact, time, source):
    subject, relation, object_ = fact
    kinds = [class_of(name.rpartition("/")[2]) for name in (subject, object_)]
    return Triple(*fact, time, source, kinds[0], "" if relation == "is" else kinds[1])


@settings(max_examples=150, deadline=None)
@given(st.lists(facts, min_size=1, max_size=6))
def test_note_is_update_with_types_by_name(batches):
    noted, updated = KnowledgeGraph(rules=HOUSEHOLD_RULES), KnowledgeGraph(rules=HOUSEHOLD_RULES)
    for time, batch in enumerate(batches):
        change = noted.note(batch, valid_at=time, source=time // 2, state="is")
        other = updated.update([classed(fact, time, time // 2) for fact in batch], extract=False)
        assert [getattr(change, name) for name in LISTS] == [getattr(other, name) for name in LISTS]
        assert change.subgraph is None is other.subgraph
    assert noted.to_bytes() == updated.to_bytes()


@settings(max_examples=100, deadline=None)
@given(st.lists(facts, min_size=1, max_size=6), st.integers(0, 5), st.booleans())
def test_many_at_once_are_as_one_by_one(batches, forgotten, past):
    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    for time, batch in enumerate(batches):
        graph.note(batch, valid_at=time, source=time, state="is")
    with graph.snapshot() as now:
        graph.forget([forgotten % now.num_nodes])
    as_of = len(batches) // 2 if past else None
    with graph.snapshot() as now:
        nodes = now.node_ids()
        assert now.names(nodes) == [now.name(node) for node in nodes]
        assert now.names([forgotten % now.num_nodes]) == [""]
        words = ["nothing", *now.names(nodes)]
        assert now.find_all(words) == [now.find(word) for word in words]
        for direction in ("out", "in", "both"):
            one_by_one = [now.facts_of(node, direction, as_of).tolist() for node in nodes]
            assert now.facts_of_all(nodes, direction, as_of) == one_by_one
        known = [fact for fact in range(now.num_facts) if now.has_fact(fact)]
        each = [now.fact(fact) for fact in known]
        assert now.are_current(known) == [fact.invalid_at is None for fact in each]
        assert now.named_facts(known) == [
            (now.name(f.subject), f.relation, now.name(f.object), f.subject, f.object, f.valid_at) for f in each
        ]


def test_what_is_not_there_is_refused():
    graph = KnowledgeGraph()
    graph.note([("mug 1", "on", "desk 1")], valid_at=0, source=0, state="is")
    with graph.snapshot() as now:
        for read in (now.named_facts, now.are_current):
            with pytest.raises(InvalidInputError, match="expected a fact id below 1, got 1"):
                read([0, 1])
        with pytest.raises(InvalidInputError, match="got 2"):
            now.names([2])
        with pytest.raises(InvalidInputError, match="expected a text, got 3"):
            now.find_all(["mug 1", 3])
        with pytest.raises(InvalidInputError, match="got 9"):
            now.facts_of_all([0, 9])
    before = graph.to_bytes()
    for bad in ([("mug 1", "on")], [("mug 1", 3, "desk 1")], [("", "on", "desk 1")], "text"):
        with pytest.raises(InvalidInputError):
            graph.note(bad, valid_at=1, source=0, state="is")
    assert graph.to_bytes() == before


things = st.sampled_from([f"thing {i}" for i in range(12)])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.lists(st.tuples(things, things), max_size=5), st.randoms()), min_size=1, max_size=6))
def test_an_update_that_ends_facts_by_name_is_both_one_after_the_other(batches):
    one, two = KnowledgeGraph(rules=HOUSEHOLD_RULES), KnowledgeGraph(rules=HOUSEHOLD_RULES)
    for time, (pairs, random) in enumerate(batches, start=1):
        with two.snapshot() as now:
            current = [now.fact(fact) for fact in now.facts().tolist()]
            ends = [
                ((now.name(fact.subject), fact.relation, now.name(fact.object)), time)
                for fact in random.sample(current, min(3, len(current)))
            ]
        with two.snapshot() as now:
            two.apply(invalidate=[((now.find(s), relation, now.find(o)), end) for (s, relation, o), end in ends])
        triples = [Triple(s, "in" if random.random() < 0.5 else "near", o, time, time) for s, o in pairs]
        change, other = one.update(triples, invalidate=ends, hops=1), two.update(triples, hops=1)
        assert [getattr(change, name) for name in LISTS] == [getattr(other, name) for name in LISTS]
        assert change.subgraph.nodes.tolist() == other.subgraph.nodes.tolist()
        assert change.subgraph.facts.tolist() == other.subgraph.facts.tolist()
    with one.snapshot() as now, two.snapshot() as then:
        assert [now.fact(i) for i in range(now.num_facts)] == [then.fact(i) for i in range(then.num_facts)]


@pytest.mark.parametrize(
    ("invalidate", "message"),
    [
        ([(("mug", "in", "sink"), 9)], r"invalidate\[0\]: expected a current fact"),
        ([(("mug", "near", "cup"), 9)], "expected a current fact"),
        ([(("", "in", "cup"), 9)], r"invalidate\[0\]\.subject: expected a name"),
        ([(("mug", "in", "cup"), 4)], "expected a time from 5 on"),
        ([(("mug", "in", "cup"), 9), (("mug", "in", "cup"), 9)], "each fact once"),
        ([(("mug", "in"), 9)], "expected 3 values"),
        ([("mugs", 9)], "expected 3 values"),
        (5, "expected a list|expected arguments"),
    ],
)
def test_a_wrong_end_changes_nothing(invalidate, message):
    graph = KnowledgeGraph()
    graph.update([Triple("mug", "in", "cup", 5)])
    before = graph.to_bytes()
    with pytest.raises(InvalidInputError, match=message):
        graph.update([Triple("new", "in", "cup", 6)], invalidate=invalidate)
    assert graph.to_bytes() == before
    graph.update([], invalidate=[(("mug", "in", "cup"), 5)])
    with graph.snapshot() as now:
        assert now.num_current_facts == 0
