"""One thing is in one place: a week of a robot that goes through rooms, against a plain record of what it saw last."""

from __future__ import annotations

import random

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope

ROOMS = ("kitchen", "bedroom", "hall", "Büro")
PLACES = ("desk 1", "shelf 1", "shelf 2")
THINGS = ("mug 1", "mug 2", "red pen", "keys", "Ann's book", "水杯", "spray_bottle_1", "vase")


def visit(memory, room, facts=(), text="", **more):
    memory.begin_task("round", "look around", "", place=room)
    receipt = memory.observe("look", text, facts=facts, **more)
    memory.end_task(True)
    return receipt


def week(memory, seed, check):
    """Seven days of four rounds; things move unseen, and some rounds see only a part, in text or from a detector."""
    draw = random.Random(seed)
    truth = {thing: (draw.choice(ROOMS), draw.choice(PLACES)) for thing in THINGS}
    last: dict[str, tuple[str, str, bool]] = {}
    for round_ in range(28):
        for thing in draw.sample(THINGS, 2):
            truth[thing] = draw.choice(ROOMS), draw.choice(PLACES)
        room, place = draw.choice(ROOMS), draw.choice(PLACES)
        there = [thing for thing in THINGS if truth[thing] == (room, place)]
        by_text = draw.random() < 0.4 and all(thing.isascii() and "'" not in thing for thing in there) and there
        held = draw.choice(there) if there and not by_text and draw.random() < 0.2 else None
        if by_text:
            visit(memory, room, text=f"On the {place}, you see {', and '.join(f'a {thing}' for thing in there)}.")
            for thing, (where, on, _) in list(last.items()):
                if (where, on) == (room, place):
                    last[thing] = where, on, False  # a complete look ends what is not there
        else:
            said = [("agent", "holds", thing) if thing == held else (thing, "on", place, 0.9) for thing in there]
            visit(memory, room, said, pose=(round_, 0.0))
        last |= {thing: (room, "agent" if thing == held else place, True) for thing in there}
        if held:
            visit(memory, room, [(held, "on", place, 0.9)])  # a hand is empty again when the next round begins
            last[held] = room, place, True
        check(memory, last)


def check_places(memory, last):
    spatial = memory.spatial
    known = spatial.places()
    by_room = {room: memory.sightings(place=room) for room in ROOMS if room in known}
    current = [(s.name, s.place, s.receptacle) for found in by_room.values() for s in found if s.current]
    wanted = [(thing, room, on) for thing, (room, on, is_there) in last.items() if is_there]
    assert sorted(current) == sorted(wanted)
    all_found = memory.sightings()
    assert sorted((s.name, s.place, s.receptacle, s.current) for s in all_found) == sorted(
        (thing, *where) for thing, where in last.items()
    )
    assert [s.seen for s in all_found] == sorted((s.seen for s in all_found), reverse=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_week_of_a_robot(tmp_path, seed):
    scope = Scope(robot="r", environment="home")
    with LifelongMemory.open(tmp_path, scope, fsync="never") as memory:
        week(memory, seed, check_places)
        state, found = memory.state(), memory.sightings()
        assert memory.fork().sightings() == found
        for thing in THINGS:
            where = next(((s.place, s.receptacle) for s in found if s.name == thing and s.current), None)
            if where is not None and where[1] != "agent":
                items = [i for i in memory.retrieve(f"where is the {thing}?", k=20).items if i.module == "spatial"]
                said = [item.text for item in items if item.fact[0] == thing and item.fact[1] == "on"]
                assert len(said) == 1
                assert f"{thing} is on {where[1]}" in said[0]
                assert f"{thing} is on {where[1]} in {where[0]}" in said[0]
    with LifelongMemory.open(tmp_path, scope, fsync="never") as again:
        assert again.state() == state
        assert again.sightings() == found
        again.store.snapshot()
    with LifelongMemory.open(tmp_path, scope, fsync="never") as again:
        assert again.sightings() == found
        other = LifelongMemory(scope)
        other.import_(again.export())
        assert other.sightings() == found
        visit(other, "hall", [("vase", "on", "desk 1")])
        assert [(s.place, s.current) for s in other.sightings("vase")] == [("hall", True)]


def current(memory, kind):
    found = (one for room in memory.spatial.places() for one in memory.sightings(kind, place=room))
    return sorted((s.name, s.place, s.receptacle) for s in found if s.current)


def test_what_is_told_apart_stays_apart():
    one, other = np.eye(4, dtype=np.float32)[:2]
    memory = LifelongMemory()
    visit(
        memory,
        "kitchen",
        [("mug", "on", "table"), ("mug", "on", "counter"), ("cup", "on", "table")],
        vectors={"cup": one},
    )
    visit(memory, "bedroom", [("cup", "on", "desk")], vectors={"cup": other})
    visit(memory, "bedroom", [("mug 7", "on", "desk")])
    assert current(memory, "mug") == [
        ("mug", "kitchen", "table"), ("mug 2", "kitchen", "counter"), ("mug 7", "bedroom", "desk")
    ]  # fmt: skip
    assert current(memory, "cup") == [("cup", "bedroom", "desk"), ("cup", "kitchen", "table")]
    visit(memory, "hall", [("cup", "on", "shelf")], vectors={"cup": one})
    assert ("cup", "kitchen", "table") not in current(memory, "cup")
    assert ("cup", "bedroom", "desk") in current(memory, "cup")


def test_furniture_of_a_room_stays():
    memory = LifelongMemory()
    for room in ("kitchen", "bedroom"):
        visit(memory, room, [("table", "in room", "room"), ("table", "next to", "window")])
    texts = [entry for entry in memory.get_all("spatial") if entry.ended is None]
    assert len(texts) == 4


@pytest.mark.parametrize(("sure", "trust"), [(0.3, "sensor"), (0.99, "document"), (0.99, "agent")])
def test_what_is_less_sure_ends_nothing(sure, trust):
    memory = LifelongMemory()
    visit(memory, "kitchen", [("vase", "on", "table", 0.95)])
    visit(memory, "bedroom", [("vase", "on", "desk", sure)], trust=trust)
    assert current(memory, "vase") == [("vase", "kitchen", "table")]
    visit(memory, "bedroom", [("vase", "on", "desk", 0.95)])
    assert current(memory, "vase") == [("vase", "bedroom", "desk")]


LOOK = "Looking quickly around you, you see a desk {0}, and a shelf {0}."


@pytest.mark.parametrize("is_named", [True, False])
def test_other_homes_have_other_things(is_named):
    memory = LifelongMemory()
    for home in (1, 2):
        named = {"place": f"flat {home}", "is_home": True} if is_named else {}
        memory.begin_task("t", "g", LOOK.format(home), **named)
        memory.observe("look", "On the desk 3, you see a mug 1.")
        memory.end_task(True)
    assert len(current(memory, "mug")) == 2
    assert [s.place for s in memory.sightings("mug")] == [memory.place]


def test_a_receipt_says_what_ended_and_forgotten_rooms_are_gone():
    memory = LifelongMemory()
    first = visit(memory, "kitchen", [("vase", "on", "table")])
    second = visit(memory, "bedroom", [("vase", "on", "desk")])
    assert second.ended[0].id == first.stored[0].id
    with pytest.raises(InvalidInputError, match="place: expected one of kitchen, bedroom, got 'kichen'"):
        memory.sightings(place="kichen")
    memory.forget(episode=0)
    assert b"kitchen" not in memory.state()
    assert LifelongMemory().sightings(place="kitchen") == []
