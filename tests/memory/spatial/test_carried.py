"""Contents go along with their container: what is read against a plain record of a home whose boxes are carried."""

from __future__ import annotations

import random

import pytest

from embodied_mem.memory import LifelongMemory, Scope

ROOMS = ("kitchen", "bedroom", "hall")
BOXES = ("basket 1", "blue box", "tray")
THINGS = ("red mug", "keys", "pen 1", "book")


def visit(memory, room, *facts, text=""):
    memory.begin_task("round", "look around", "", place=room)
    memory.observe("look", text, facts=facts)
    memory.end_task(True)
    return memory.time


def rooms_of(memory):
    return {one.name: one.place for one in memory.sightings() if one.current}


def room_of(memory, thing, **more):
    items = memory.retrieve(f"where is the {thing}?", **more).items
    return next((i.place for i in items if i.module == "spatial" and i.fact[0] == thing), None)


@pytest.fixture
def memory():
    memory = LifelongMemory()
    visit(memory, "kitchen", ("red mug", "in", "basket 1"), ("basket 1", "on", "counter"), ("spoon", "in", "red mug"))
    return memory


def test_contents_follow_what_is_seen_in_another_room(memory):
    before = memory.time
    visit(memory, "bedroom", ("basket 1", "on", "bed"))
    for name in ("red mug", "spoon"):
        (one,) = memory.sightings(name)
        assert (one.place, one.seen, one.current) == ("bedroom", before, True)
        assert memory.sightings(name, place="bedroom") == [one]
        assert memory.sightings(name, place="kitchen") == []
        assert (room_of(memory, name), room_of(memory, name, as_of=before)) == ("bedroom", "kitchen")
    item = memory.retrieve("where is the red mug?").items[0]
    assert item.text == "red mug is in basket 1 in bedroom"
    assert item.recorded == before
    assert (memory.get(item.id).place, memory.get(item.id, as_of=before).place) == ("bedroom", "kitchen")
    again = LifelongMemory()
    again.restore(memory.state())
    assert again.sightings() == memory.fork().sightings() == memory.sightings()


def test_contents_follow_what_is_told(memory):
    memory.tell("I put the basket 1 on the shelf in the garage.")
    assert rooms_of(memory) == {"red mug": "garage", "spoon": "garage", "basket 1": "garage"}
    visit(
        memory, "kitchen", ("red mug", "in", "basket 1")
    )  # seen there since: this basket is another one, or came back
    assert rooms_of(memory)["red mug"] == "kitchen"


def test_what_came_along_is_in_the_container(memory):
    visit(memory, "bedroom", ("basket 1", "on", "bed"))
    memory.begin_task("round", "look around", "", place="bedroom")
    assert memory.spatial.inside("basket 1") == ["red mug"]
    assert "red mug is in basket 1 in bedroom" in [i.text for i in memory.retrieve("what is in the basket 1?").items]
    memory.tell("I put the keys in the basket 1.")
    assert rooms_of(memory)["keys"] == "bedroom"


@pytest.mark.parametrize(
    "told",
    [
        lambda memory: visit(memory, "bedroom", text="The basket 1 is open. In it, you see a pen 1."),
        lambda memory: visit(memory, "bedroom", ("red mug", "not in", "basket 1")),
        lambda memory: visit(memory, "hall", ("red mug", "on", "table")),
        lambda memory: memory.tell("I took the red mug out of the basket 1."),
    ],
)
def test_what_was_taken_out_stays_behind(memory, told):
    visit(memory, "bedroom", ("basket 1", "on", "bed"))
    told(memory)
    visit(memory, "garden", ("basket 1", "on", "table"))
    assert rooms_of(memory).get("red mug") in (None, "hall")


def test_furniture_does_not_move():
    memory = LifelongMemory()
    visit(memory, "kitchen", ("mug", "in", "drawer 1"), ("drawer 1", "in", "desk"), ("jam", "on", "table"))
    visit(memory, "kitchen", ("table", "in", "kitchen"))
    visit(memory, "bedroom", ("drawer 1", "in", "desk"), ("table", "in", "bedroom"))
    assert rooms_of(memory)["mug"] == rooms_of(memory)["jam"] == "kitchen"


def test_circles_end():
    memory = LifelongMemory()
    visit(memory, "kitchen", ("bag", "in", "box"), ("key", "in", "bag"))
    visit(memory, "hall", ("box", "in", "bag"))
    visit(memory, "bedroom", ("bag", "on", "bed"))
    assert rooms_of(memory)["key"] == "bedroom"


@pytest.mark.parametrize("seed", range(6))
def test_weeks_of_carried_boxes(seed):
    draw, memory = random.Random(seed), LifelongMemory(Scope(environment="home"))
    rooms, inside = {}, {}  # as a reader of what was seen believes
    past: list[tuple[int, dict[str, str]]] = []
    for _ in range(40):
        room, box = draw.choice(ROOMS), draw.choice(BOXES)
        facts = [(box, "on", draw.choice(("desk", "shelf")))]
        rooms[box] = room
        if draw.random() < 0.4:
            thing = draw.choice(THINGS)
            facts.append((thing, "in", box))
            inside[thing] = box
        if draw.random() < 0.3:
            thing = draw.choice(THINGS)
            facts = [one for one in facts if one[0] != thing] + [(thing, "on", "floor")]
            rooms[thing], inside[thing] = room, None
        at = visit(memory, room, *facts)
        past.append((at, {thing: rooms[box or thing] for thing, box in inside.items()}))
        believed = rooms_of(memory)
        assert {thing: believed[thing] for thing in inside} == past[-1][1]
    for at, wanted in past[::7]:
        assert {thing: room_of(memory, thing, as_of=at) for thing in wanted} == wanted


def test_contents_of_a_place_in_another_room_are_found(memory):
    visit(memory, "hall", ("coat", "on", "hook"))
    found = {item.text: item.place for item in memory.retrieve("what is in the basket 1?", k=4).items}
    assert found["red mug is in basket 1 in kitchen"] == "kitchen"
    visit(memory, "cellar", *((f"jar {i}", "on", "rack") for i in range(100)))
    visit(memory, "hall", ("coat", "on", "hook"))
    found = [item.fact[0] for item in memory.spatial.retrieve("what is on the rack?") if item.fact[2] == "rack"]
    assert set(found) == {f"jar {i}" for i in range(68, 100)}
