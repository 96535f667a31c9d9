"""Things of many rooms that a text names: all rooms at once beside one after the other."""

from __future__ import annotations

import random

import pytest

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.spatial import SpatialMemory
from embodied_mem.memory.spatial_index import MOST_OF_KIND
from embodied_mem.memory.words import phrases

KINDS = ("mug", "red mug", "Car Key", "key", "house_key", "box", "kettle", "electric kettle", "glass", "glasses", "Mug")
QUERIES = (
    "put a mug in the box", "where are the mugs?", "find mug 2", "the car key", "key 1 and house key 2", "kettles",
    "the kettle", "red mug", "my glasses", "a glass", "old cup", "nothing of it",
)  # fmt: skip


def seen_home(seed: int, num_rooms: int) -> SpatialMemory:
    memory, draw = LifelongMemory(), random.Random(seed)
    for number in range(2 * num_rooms):  # each room twice: numbers of its things do not lie together
        memory.begin_task(f"round {number}", "look around", "", place=f"room {number % num_rooms}")
        names = [f"{draw.choice(KINDS)}{draw.choice((' ', '_'))}{draw.randint(1, 3)}" for _ in range(6)]
        rows = [(name, draw.choice(("in", "on")), f"shelf {draw.randint(1, 2)}", 0.9) for name in names]
        memory.observe("look", facts=rows)
        memory.end_task(True)
    assert memory.spatial is not None
    return memory.spatial


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("has_other_names", [False, True])
def test_rooms_at_once_are_the_rooms_one_by_one(seed, has_other_names):
    spatial = seen_home(seed, 7)
    index, rooms = spatial._index, [*(f"room {i}" for i in range(7)), "no such room", ""]
    if has_other_names:
        index.link({"room 3/old cup": "room 3/mug 1", "room 4/kettles": "room 2/box 1"}, 0)
    num_found = 0
    with spatial.graph.snapshot() as now:
        for query in QUERIES:
            one_by_one = [node for room in rooms for node in index.named(room, phrases(query), now)]
            assert index.named_in(rooms, phrases(query), now) == one_by_one, query
            num_found += len(one_by_one)
    assert num_found > 50


@pytest.mark.parametrize("seed", range(3))
def test_facts_of_a_place_are_those_that_tell_where_a_thing_is(seed):
    spatial = seen_home(seed, 5)
    relations = spatial.relations
    with spatial.graph.snapshot() as now:
        nodes = now.node_ids()
        for as_of in (None, 3):
            rows = spatial._index.place_facts(nodes, now, as_of)
            for node, facts in zip(nodes, rows, strict=True):
                every = now.facts_of(node, "both", as_of).tolist()
                own = [f for f in every if (one := now.fact(f)).relation in relations.placing and one.subject == node]
                assert [fact for fact in facts if fact in own] == own
                assert set(facts) <= set(every)


def test_of_many_things_of_a_class_those_seen_last_are_found_in_other_rooms():
    with LifelongMemory() as memory:
        for number in range(2 * MOST_OF_KIND):
            room = f"room {number % 5}"
            facts = [(f"mug {number}", "on", f"shelf {number}")] + [(f"vase {number}", "on", "desk 1")] * (number == 3)
            memory.begin_task(f"visit {number}", "tidy up.", "You are in a room.", place=room, facts=facts)
            memory.end_task(True)
        memory.begin_task("now", "find the mugs and the vase.", "You are in a room.", place="another room")
        texts = [item.text for item in memory.retrieve().items if item.module == "spatial"]
        mugs = sorted(int(text.split()[1]) for text in texts if text.startswith("mug "))
        assert mugs == [*range(MOST_OF_KIND, 2 * MOST_OF_KIND)]
        assert any(text.startswith("vase 3 ") for text in texts)
