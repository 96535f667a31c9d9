"""Facts in whatever words: stale places end, hands are told apart, nothing that is said is lost to a query."""

from __future__ import annotations

import itertools
import json

import pytest

from embodied_mem.memory import HOUSEHOLD, LifelongMemory, Relation, Relations, Selector
from embodied_mem.memory.spatial import SpatialMemory

SAID = {
    "in": ("mug", "inside", "X"), "on": ("mug", "onTopOf", "X"), "under": ("mug", "beneath", "X"),
    "left": ("mug", "held by", "left hand"), "agent": ("agent", "holds", "mug"), "with": ("mug", "in", "right gripper"),
}  # fmt: skip


class Told:
    """A spatial memory that is told facts, one list each moment."""

    def __init__(self, relations: Relations | None = None):
        self.memory = SpatialMemory() if relations is None else SpatialMemory(relations=relations)
        self.memory.begin(episode=0, time=0, place="home")

    def __call__(self, *facts: tuple[str, str, str]) -> None:
        time = self.memory.time + 1
        event = {"op": "observe", "episode": 0, "step": time, "time": time, "complete": []}
        self.memory.apply(event | {"facts": [list(fact) for fact in facts]})

    def current(self) -> set[str]:
        with self.memory.graph.snapshot() as now:
            return set(self.memory.texts_of(now.facts().tolist()))


@pytest.mark.parametrize(("one", "two"), itertools.permutations(SAID, 2))
def test_the_last_place_is_the_only_one(one, two):
    told = Told()
    for word, place in ((one, "drawer"), (two, "table")):
        told(tuple(end.replace("X", place) for end in SAID[word]))
    assert len(told.current()) == 1
    last = told.memory.last_seen("mug")
    expected = {
        "in": ("in", "table"),
        "on": ("on", "table"),
        "under": ("under", "table"),
        "agent": ("held by", "agent"),
    }
    expected |= {"left": ("held by", "left hand"), "with": ("held by", "right gripper")}
    assert (last.relation, last.receptacle, last.current) == (*expected[two], True)
    assert told.memory.held() == (["mug"] if last.relation == "held by" else [])


def test_hands_hold_one_thing_each_and_go_with_the_agent():
    told = Told()
    told(("mug", "held by", "left hand"), ("plate", "held by", "right hand"))
    assert told.memory.held() == ["mug", "plate"]
    told(("fork", "held by", "left hand"))
    assert set(told.memory.held()) == {"plate", "fork"}
    assert {"left hand holds fork", "right hand holds plate"} <= {item.text for item in told.memory.retrieve("eat")}
    told.memory.begin(episode=1, time=told.memory.time + 1, place="garden")
    assert told.memory.held() == []


def test_what_is_next_to_a_thing_stays_in_its_place():
    told = Told()
    told(("mug", "in", "drawer"))
    told(("mug", "beside", "plate"))
    assert told.current() == {"mug is in drawer", "mug is next to plate"}


def test_a_wider_place_ends_no_nearer_one():
    told = Told()
    told(("cabinet", "in", "kitchen"), ("cup", "in", "cabinet"), ("spoon", "in", "cup"))
    told(("spoon", "in", "kitchen"))
    assert told.memory.last_seen("spoon").receptacle == "cup"
    assert told.memory.last_seen("spoon").seen == 2
    told(("spoon", "in", "garden"))
    assert told.memory.last_seen("spoon").receptacle == "garden"
    told(("ring", "in", "box"), ("box", "in", "ring"))  # round and round
    told(("ring", "in", "hall"))
    assert told.memory.last_seen("ring").receptacle == "hall"


@pytest.mark.parametrize("query", ["what about the vase?", "and Ann?"])
def test_a_relation_that_nobody_declared_is_kept_and_found(query):
    told = Told()
    told(("vase", "painted by", "ann"), ("vase", "is under", "shelf"))
    assert "vase painted by ann" in {item.text for item in told.memory.retrieve(query)}
    assert told.memory.last_seen("vase").receptacle == "shelf"


def test_what_is_under_a_table_is_not_what_a_look_at_it_shows():
    told = Told()
    told(("cat", "under", "table 1"), ("cup 1", "on", "table 1"))
    told.memory.observe("On the table 1, you see a pen 1.", episode=0, step=9, time=9)
    assert told.current() == {"cat is under table 1", "pen 1 is on table 1"}
    assert told.memory.inside("table 1") == ["pen 1"]


def test_own_relations_of_a_lifelong_memory_outlive_its_state():
    relations = Relations((*HOUSEHOLD, Relation("plugged into", exclusive="subject")))
    chat = lambda messages: json.dumps([["lamp", "plugged_into", messages[-1]["content"].split()[-1]]])  # noqa: E731
    memory = LifelongMemory(chat=chat, modules=("spatial",), relations=relations)
    memory.begin_task("1", "look", "", place="home")
    memory.observe("look", "I saw the lamp in one")
    other = LifelongMemory(modules=("spatial",), relations=relations)
    other.restore(memory.state())
    memory.observe("look", "I saw the lamp in two")
    assert [item.text for item in memory.retrieve("lamp").items] == ["lamp is plugged into two"]
    assert [item.text for item in other.retrieve("lamp").items] == ["lamp is plugged into one"]
    assert other.spatial.graph.rules == relations.rules()


def test_forgetting_takes_hands_and_open_relations_too():
    told = Told()
    told(("vase", "painted by", "ann"), ("vase", "held by", "left hand"))
    told.memory.remove(Selector(object="vase"))
    assert told.memory.held() == []
    assert told.current() == set()
