"""Items have source, step, validity and trust; what is recalled and stored again is a reference; audit finds junk."""

from __future__ import annotations

import itertools
import random

import pytest

from embodied_mem.memory import KnowledgeGraph, LifelongMemory, Triple
from embodied_mem.memory.conflicts import audit
from embodied_mem.memory.relations import HOUSEHOLD_RULES

ROOM = "Looking quickly around you, you see a desk 1, and a shelf 1."


def lived() -> LifelongMemory:
    memory = LifelongMemory()
    memory.tell("I usually keep the jug on the desk for my night drink.")
    memory.tell("The mug is blue.", trust="document")
    memory.tell("Ann likes the mug.", speaker="Bob", when="8 May")
    memory.begin_task("t", "put a mug on the shelf", ROOM)
    memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.")
    memory.observe("sing", "Nothing happens.")
    memory.observe("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
    memory.observe("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see nothing.")
    memory.observe("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.")
    memory.observe("look", "The kettle hums.")
    memory.end_task(True)
    return memory


QUERIES = ("where is the mug?", "night drink", "what had no effect? sing", "kettle", "put a mug on the shelf")


def test_every_item_has_source_step_validity_and_trust():
    memory = lived()
    seen = set()
    for query in QUERIES:
        for item in memory.retrieve(query).items:
            entry = memory.get(item.id)
            assert (entry.id, entry.module, entry.trust) == (item.id, item.module, item.trust)
            assert item.episode is not None
            assert item.episode in {episode for episode, *_ in entry.sources}
            assert any(source.step is not None for source in entry.sources)
            assert 0 < entry.recorded <= entry.valid_from <= memory.time
            assert entry.ended is None or entry.recorded <= entry.ended <= memory.time
            seen.add(item.module)
    assert seen == {"spatial", "temporal", "episodic", "semantic", "profile", "notes"}


@pytest.mark.parametrize("query", QUERIES)
def test_a_recalled_item_stored_again_is_a_reference(query):
    """Ten rounds of an agent that tells its memory what it recalls: nothing new, and every entry knows of it."""
    memory = lived()
    before = {entry.id: entry for entry in memory.get_all()}
    profile = memory.profile.nodes()
    for _ in range(10):
        for item in memory.retrieve(query).items:
            if item.module == "temporal":
                continue  # folded away within steps: what is told of it is a text as any other
            receipt = memory.tell(item.text)
            assert [one.id for one in receipt.merged if one.module == item.module] == [item.id]
            assert receipt.stored == ()
    after = {entry.id: entry for entry in memory.get_all()}
    assert after.keys() == before.keys()
    assert memory.profile.nodes() == profile
    again = [id for id in after if len(after[id].sources) == len(before[id].sources) + 10]
    assert again
    other = LifelongMemory()
    other.restore(memory.state())
    assert {entry.id: entry for entry in other.get_all()} == after
    other.forget(episode=0)
    assert all(episode != 0 for entry in other.get_all() for episode, *_ in entry.sources)


def test_what_another_says_in_the_same_words_is_no_reference():
    memory = lived()
    assert "The kettle hums." in [item.text for item in memory.retrieve("kettle").items]
    told = memory.tell("The kettle hums.", speaker="Bob")
    assert [one.text for one in told.stored if one.module == "notes"] == ["Bob: The kettle hums."]


def test_audit_finds_duplicates_loops_and_contradictions():
    graph = KnowledgeGraph()  # without rules: nothing is resolved
    triples = [("box 1", "in", "bag 1"), ("bag 1", "in", "case 1"), ("case 1", "on", "box 1"), ("mug 1", "in", "mug 1"),
               ("cup 1", "on", "desk 1"), ("cup 1", "on", "shelf 1"), ("The Cup 1", "on", "desk 1")]  # fmt: skip
    graph.update([Triple(*triple, valid_at=1, source=0) for triple in triples])
    report = audit(graph)
    assert (len(report.loops), len(report.loops[0]), report.self_loops) == (1, 3, (3,))
    assert report.counts["near_names"] == 1
    assert "box 1" in report.text
    graph._set_rules(HOUSEHOLD_RULES)
    assert audit(graph).counts["contradictions"] == 1


def test_loops_are_those_of_brute_force():
    for seed in range(40):
        draw = random.Random(seed)
        pairs = {(draw.randrange(6), draw.randrange(6)) for _ in range(draw.randrange(1, 8))}
        pairs = {pair for pair in pairs if pair[0] != pair[1]}
        graph = KnowledgeGraph()
        graph.update([Triple(f"n {a}", "in", f"n {b}", valid_at=0) for a, b in sorted(pairs)])
        rings = [
            ring for size in range(2, 7) for ring in itertools.permutations(range(6), size)
            if all(pair in pairs for pair in zip(ring, (*ring[1:], ring[0])))
        ]  # fmt: skip
        assert bool(audit(graph).loops) == bool(rings)
        assert len(audit(graph).loops) <= len({frozenset(ring) for ring in rings}) or len(rings) > 1


def test_every_reading_method_looks_back():
    memory = lived()
    note = next(entry for entry in memory.get_all("notes") if entry.text == "Ann likes the mug.")
    then = memory.time
    memory.update(note.id, "Ann likes the cup.", labels={"room": "hall"})
    assert memory.get(note.id, as_of=then).text == "Ann likes the mug."
    assert memory.get(note.id, as_of=then).labels == {}
    assert memory.get(note.id).text == "Ann likes the cup."
    assert memory.get(note.id, as_of=note.recorded - 1) is None
    for time in range(memory.time + 1):
        past = memory.get_all(as_of=time)
        assert {entry.id for entry in past} == {entry.id for entry in memory.get_all() if entry.recorded <= time}
        assert all(entry.valid_from <= time and (entry.ended is None or entry.ended <= time) for entry in past)
        for query in QUERIES:
            found = memory.retrieve(query, as_of=time).items
            assert {item.id for item in found} <= {entry.id for entry in past}
        assert f"(as of {time})" in memory.explain()
    assert memory.get_all(where={"room": "hall"}, as_of=then) == []
    assert [item.id for item in memory.retrieve("cup", where={"room": "hall"}).items] == [note.id]
    assert memory.retrieve("cup", where={"room": "hall"}, as_of=then).items == ()


def test_what_came_later_does_not_hide_what_was_there():
    memory = LifelongMemory()
    memory.tell("I like item 0 in the morning")
    then = memory.time
    for number in range(1, 60):
        memory.tell(f"I like item {number} in the morning")
    for memories in (memory.profile, memory.notes):
        (item,) = memories.retrieve("item in the morning", 1, as_of=then)
        assert "item 0" in item.text
