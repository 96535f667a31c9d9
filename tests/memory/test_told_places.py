"""What people tell of places moves things on the map, or ends their places; all else asserts nothing."""

from __future__ import annotations

import pytest

from embodied_mem.memory import LifelongMemory, Scope


@pytest.fixture
def memory():
    """A home with a mug in the kitchen and a desk in the office."""
    with LifelongMemory(Scope(user="Ann")) as home:
        for room, *fact in (("kitchen", "red mug", "on", "table"), ("office", "pen", "on", "desk 1")):
            home.begin_task(room, "look around", "", place=room)
            home.observe("look", facts=[fact], time=100.0)
            home.end_task(True)
        yield home


def places(memory: LifelongMemory, thing: str = "red mug") -> list[tuple[str, str, str]]:
    return [(one.relation, one.receptacle, one.place) for one in memory.sightings(thing) if one.current]


@pytest.mark.parametrize("text", [
    "I put the red mug on desk 1.",
    "I moved the mug to the desk.",
    "You'll find the red mug on desk 1 in the office.",
    "You know the red mug? Ben left it on the desk.",
    "The red mug isn't on the table any more, it's on the desk now.",
    "Anna said hello. The red mug has been moved to the desk in the office.",
])  # fmt: skip
def test_a_told_place_moves_a_thing_to_the_room_of_its_receptacle(memory, text):
    memory.tell(text, speaker="Ben")
    assert places(memory) == [("on", "desk 1", "office")]


@pytest.mark.parametrize("text", [
    "The red mug is gone.", "Someone took the mug.", "I moved the red mug.", "We gave the red mug away.",
    "I can't find the red mug.", "The red mug? I moved it.", "The mug isn't there any more.", "I lent the mug to Joe.",
    "You know the red mug? I don't know where it is.",
])  # fmt: skip
def test_a_thing_that_left_has_no_place(memory, text):
    memory.tell(text)
    assert places(memory) == []
    assert memory.sightings("red mug")[0].receptacle == "table"


@pytest.mark.parametrize("text", [
    "If the red mug is on the desk, bring it.", "The red mug was on the desk.", "The mug is usually on the desk.",
    "Is the red mug on the desk?", "I will put the red mug on the desk.", "Ben says the red mug is on the desk.",
    "Please put the red mug on the desk.", "The red mug belongs on the desk.", "I didn't move the red mug.",
    "Put the mug on the desk.", "My heart is in the kitchen.", "The meeting is in the office.",
    "Where did I put the mug?",
    "The pen and the red mug look nice. It is on the shelf.", "The red mug is on the desk. Just kidding.",
])  # fmt: skip
def test_what_does_not_tell_a_place_changes_nothing(memory, text):
    before = memory.spatial.numbers(), places(memory), places(memory, "pen")
    receipt = memory.tell(text)
    assert (memory.spatial.numbers(), places(memory), places(memory, "pen")) == before
    assert "spatial" not in [one.module for one in receipt.stored]


def test_a_later_sighting_ends_what_was_told_and_a_document_moves_nothing(memory):
    memory.tell("I put the red mug in the drawer of the desk.", speaker="Ben")
    memory.tell("The red mug is on the desk.", trust="document")
    assert places(memory) == [("in", "drawer of desk", "office")]
    memory.begin_task("again", "look around", "", place="bedroom")
    memory.observe("look", facts=[("red mug", "on", "bed", 0.6)])
    assert places(memory) == [("on", "bed", "bedroom")]


def test_what_one_person_told_of_places_is_forgotten_alone(memory, tmp_path):
    memory.tell("I put the red mug on the desk.", speaker="Ben")
    memory.tell("The keys are in the blue bowl.")
    other = LifelongMemory(Scope(user="Ann"))
    other.restore(memory.state())
    for one in (memory, other):
        one.forget(user="ben")
        assert places(one) == []
        assert "Ben" not in one.export()
        assert places(one, "keys") == [("in", "blue bowl", "")]
    note = next(note for note in memory.get_all("notes") if "keys" in note.text)
    memory.delete(note.id)
    assert not memory.sightings("keys")


def test_answers_name_room_and_clock_or_who_told(memory):
    assert (
        memory.retrieve("Where is the red mug?", k=1).items[0].text == "red mug is on table in kitchen, seen at 100 s"
    )
    memory.tell("I put the red mug on the desk.", speaker="Ben", when="2026-03-04 18:00")
    first = memory.retrieve("Where is the red mug?", k=1).items[0]
    assert first.text == "red mug is on desk 1 in office, told by Ben, 2026-03-04 18:00"
    asked = memory.retrieve("When did you last see the red mug?", k=1).items[0]
    assert asked.text == "red mug was last seen on table in kitchen, seen at 100 s"
    (told,) = (one for one in memory.sightings("red mug") if one.current)
    assert (told.speaker, told.place, told.view.data["clock"]) == ("Ben", "office", 100.0)


def test_a_name_in_two_spellings_at_one_place_is_one_thing(memory):
    memory.begin_task("again", "look around", "", place="bedroom")
    memory.observe("look", facts=[("car key", "on", "bed"), ("Car_Key", "on", "bed"), ("house key", "on", "bed")])
    assert [one.name for one in memory.sightings("car key")] == ["car key"]
    memory.tell("The car key is gone.")
    assert not [one for one in memory.sightings("car key") if one.current]
    assert "house key" not in memory.retrieve("When did you last see the car key?", k=1).items[0].text


def test_two_people_have_a_thing_of_the_same_name():
    memory = LifelongMemory(Scope(user="Ann"))
    memory.tell("My keys are on the hook.")
    assert memory.tell("My keys are in the bowl.", speaker="Bob").ended == ()
    assert "bowl" in memory.retrieve("Where are Bob's keys?", k=1).items[0].text
    assert memory.tell("I lost my keys.", speaker="Bob").ended == ()
    assert "hook" in memory.retrieve("Where are my keys?", k=1).items[0].text
    assert memory.tell("The keys are in the drawer.", speaker="Bob").ended
    assert memory.sightings("keys")[0].receptacle == "drawer"
