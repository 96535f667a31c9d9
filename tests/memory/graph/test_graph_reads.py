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
        assert change == updated.update([classed(fact, time, time // 2) for fact in batch], extract=False)
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
