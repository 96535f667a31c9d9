"""Which mentions are one thing: by name, place and appearance; what follows for facts, forgetting, state and review."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory, Selector
from embodied_mem.memory.entities import name_of, same_name, score
from embodied_mem.memory.spatial import SpatialMemory


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("mug", "the Red_Mug", 1.0),
        ("mug 1", "Mug_01", 1.0),
        ("mug 1", "mug 2", 0.0),
        ("mug", "mug 2", 1.0),
        ("red mug", "blue mug", 0.0),
        ("plates", "plate", 1.0),
        ("cup", "mug", 0.0),
        ("book", "boot", 2 * 2 / (3 + 3)),  # bo, oo, ok and bo, oo, ot
        ("", "mug", 0.0),
        ("Ann's mug", "mug", 1.0),
        ("Ann's mug", "Ben's mug", 0.0),
        ("my mug", "your mug", 0.0),
        ("my mug", "the mug", 1.0),
        ("small box", "large box", 0.0),
        ("12 oz cup", "16 oz cup", 0.0),
        ("bottle A", "bottle B", 0.0),
        ("left kitchen drawer", "right kitchen drawer", 0.0),
        ("clean mug", "unclean mug", 0.0),
        ("cup of tea", "cup of coffee", 0.0),
        ("cup of tea", "cup", 1.0),
        ("box of matches", "matches", 0.0),
        ("red mug", "red coffee mug", 1.0),
        ("large mug", "red mug", 0.0),
        ("Tasse aus Ton", "Tasse aus Glas", 0.0),
        ("coffe mug", "coffee mug", 2 * 3 / (3 + 4)),  # co, of, ff and fe
    ],
)
def test_names(one, two, expected):
    assert same_name(name_of(one), name_of(two)) == same_name(name_of(two), name_of(one)) == pytest.approx(expected)


def test_two_of_three_have_to_agree():
    assert score(1, 1, None) == 1
    assert score(1, 0, None) == 0
    assert score(0, 1, 0.9) == 0.9
    assert score(1, 0, 0.9) == 0.9
    assert score(0, 0, 1.0) == 0
    assert score(1, 1, 0.5) == 0  # it looks different


class Told:
    """A spatial memory that is told facts, one list each moment."""

    def __init__(self, **options):
        self.memory = SpatialMemory(**options)
        self.memory.begin(episode=0, time=0, place="home")

    def __call__(self, *facts, vectors=None):
        time = self.memory.time + 1
        given = [[*fact, None] for fact in facts]
        self.memory.observe("", episode=time, step=time, time=time, given=given, vectors=vectors)

    def things(self) -> dict[str, str]:
        """Name -> where it is now."""
        found = self.memory.last_places()
        return {one.name: f"{one.relation} {one.receptacle}" for one in found if one.current}


def test_a_mug_and_a_red_mug_in_one_place_are_one_thing():
    told = Told()
    told(("mug", "on", "table"))
    told(("red mug", "on", "table"))
    assert told.things() == {"mug": "on table"}
    told(("red mug", "in", "sink"))  # known by that name from now on
    assert told.things() == {"mug": "in sink"}
    assert told.memory.last_seen("red mug") == told.memory.last_seen("mug")
    assert "mug is in sink" in {item.text for item in told.memory.retrieve("the red mug")}


@pytest.mark.parametrize("names", [("red", "blue"), ("small", "large"), ("12 oz", "16 oz"), ("Ann's", "Ben's")])
@pytest.mark.parametrize("first", ["mug", "mug 3"])
def test_what_contradicts_another_name_of_a_thing_is_another_thing(names, first):
    told = Told()
    told((first, "on", "table"))
    for name in names:
        told((f"{name} mug", "on", "table"))
    assert told.things() == {first: "on table", f"{names[1]} mug": "on table"}
    again = SpatialMemory()
    again.restore(told.memory.state())
    for memory in (again, told.memory.fork()):
        told.memory = memory
        told((f"{names[1]} tea mug", "on", "table"))
        told(("plastic mug", "on", "table"))
        assert set(told.things()) == {first, f"{names[1]} mug", "plastic mug"}


@pytest.mark.parametrize("names", [("mug", "red mug"), ("red mug", "mug"), ("red mug", "blue mug"), ("mug 1", "mug 2")])
def test_two_names_in_one_list_are_two_things(names):
    told = Told()
    for _ in range(2):
        told(*((name, "on", "table") for name in names))
        assert told.things() == dict.fromkeys(names, "on table")


def test_one_name_in_two_places_at_once_is_two_things_and_they_stay_two():
    told = Told()
    for _ in range(3):
        told(("mug", "on", "table"), ("mug", "on", "desk"))
        assert told.things() == {"mug": "on table", "mug 2": "on desk"}
        told(("mug", "on", "desk"))
        told(("mug", "on", "desk"), ("mug", "on", "table"))
    told(("mug 7", "on", "table"), ("mug 7", "on", "desk"))  # a number names one thing: one of both is wrong
    assert told.things()["mug 7"] == "on desk"


def test_the_same_name_elsewhere_has_moved():
    told = Told()
    told(("mug", "on", "table"))
    told(("mug", "on", "desk"))
    assert told.things() == {"mug": "on desk"}
    told(("red mug", "on", "table"))  # the mug is not there any more
    assert told.things() == {"mug": "on desk", "red mug": "on table"}


def test_a_description_is_the_thing_that_is_there():
    told = Told()
    told(("mug 1", "on", "table"), ("mug 2", "on", "desk"))
    told(("mug", "on", "desk"))
    told(("Mug_1", "on", "table"))
    assert told.things() == {"mug 1": "on table", "mug 2": "on desk"}
    told(("agent", "at", "desk"))
    told(("mug", "held by", "agent"))  # the one that is at hand
    assert told.things() == {"mug 1": "on table", "mug 2": "held by agent"}
    told(("mug", "placed", "table"))
    assert told.things() == {"mug 1": "on table", "mug 2": "on table"}


def test_a_thing_that_gets_a_number_is_the_thing_it_was():
    told = Told()
    told(("mug", "on", "table"), ("mug", "is", "dirty"))
    told(("mug 1", "on", "table"))
    assert told.things() == {"mug 1": "on table"}
    told(("mug", "in", "sink"))
    assert told.things() == {"mug 1": "in sink"}


def test_a_numbered_thing_that_is_seen_where_something_of_its_kind_was_described_is_that_thing():
    told = Told()
    told(("mug 3", "on", "table"))
    told(("red mug", "on", "desk"))
    told(("mug 3", "on", "desk"))
    assert told.things() == {"mug 3": "on desk"}
    told(("red mug", "in", "sink"))
    assert told.things() == {"mug 3": "in sink"}
    told(("blue mug", "on", "desk"))
    told(("mug 3", "placed", "desk"))  # it was not there before
    assert told.things() == {"mug 3": "on desk", "blue mug": "on desk"}


def turned(angle: float) -> np.ndarray:
    return np.array([math.cos(angle), math.sin(angle), 0, 0], np.float32) * 3


def test_looks_tell_a_thing_where_names_or_places_do_not():
    told = Told()
    told(("mug", "on", "table"), vectors={"mug": turned(0)})
    told(("cup", "on", "table"), vectors={"cup": turned(0.1)})  # another word for what stands there
    assert told.things() == {"mug": "on table"}
    told(("tea mug", "in", "sink"), vectors={"tea mug": turned(0.2)})  # it has moved
    assert told.things() == {"mug": "in sink"}
    told(("small mug", "in", "sink"), vectors={"small mug": turned(1.5)})  # another one, by its looks
    assert told.things() == {"mug": "in sink", "small mug": "in sink"}
    with pytest.raises(InvalidInputError, match="one width"):
        told(("pan", "in", "sink"), vectors={"pan": [1, 2]})
    with pytest.raises(InvalidInputError, match="finite and not zero"):
        told(("pan", "in", "sink"), vectors={"pan": [0, 0, 0, 0]})
    state, fork = told.memory.state(), told.memory.fork()
    again = SpatialMemory()
    again.restore(state)
    assert again.state() == state
    for memory in (told.memory, again, fork):
        told.memory = memory
        told(("beaker", "in", "sink"), vectors={"beaker": turned(1.4)})
        assert told.things() == {"mug": "in sink", "small mug": "in sink"}
        told(("thing", "on", "desk"), vectors={"thing": turned(3)})
    assert told.memory.state() == again.state()


def test_theta_turns_it_off():
    told = Told(theta=1.0)
    told(("mug", "on", "table"))
    told(("red mug", "on", "table"))
    assert set(told.things()) == {"mug", "red mug"}


@pytest.mark.parametrize("selector", [Selector(object="red mug"), Selector(episode=2), Selector(object="mug")])
def test_forgetting_takes_other_names_too(selector):
    told = Told()
    told(("mug", "on", "table"))
    told(("red mug", "on", "table"), vectors={"red mug": turned(1)})
    told.memory.remove(selector)
    assert b"red" not in told.memory.state()


def chat_that_ends(verdict: str, asked: list[str]):
    def chat(messages):
        if "rule:" not in messages[-1]["content"]:
            return "[]"
        asked.append(messages[-1]["content"])
        return json.dumps({"ends": [verdict] * asked[-1].count("rule:")})

    return chat


@pytest.mark.parametrize(("verdict", "place"), [("old", "sink"), ("new", "table")])
def test_a_chat_model_reviews_what_is_less_sure_than_what_it_ends(verdict, place, tmp_path):
    asked: list[str] = []
    with LifelongMemory.open(tmp_path, chat=chat_that_ends(verdict, asked)) as memory:
        memory.begin_task("1", "tidy", "", place="home")
        memory.observe("look", facts=[("mug", "on", "table", 0.9), ("table", "next to", "sink", 0.9)])
        receipt = memory.observe("look", facts=[("mug", "in", "sink", 0.3)])
        assert len(asked) == memory.review.asked == 1
        assert "home/table next to home/sink" in asked[0]
        assert memory.spatial.last_seen("mug").receptacle == place
        assert [one.text for one in receipt.ended][-1].startswith(
            "mug is on table" if verdict == "old" else "mug is in"
        )
        memory.observe("look", facts=[("mug", "under", "table", 0.95)])  # surer than what it ends
        memory.observe("go to desk 1", "On the desk 1, you see a mug.")  # the world's own words
        assert len(asked) == memory.review.asked == 1
        state = memory.spatial.state()
    with LifelongMemory.open(tmp_path) as memory:  # the correction is an event like others
        assert memory.spatial.state() == state
        fork = memory.fork()
        assert fork.review is None
