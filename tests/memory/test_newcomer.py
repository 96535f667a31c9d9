"""What a newcomer says and gives: counts, nobody, a role with a name, nothing, a first look that denies."""

from __future__ import annotations

import pytest

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.readers import ENGLISH


def begun(observation: str = "") -> LifelongMemory:
    memory = LifelongMemory()
    memory.begin_task("tidy", "tidy up", observation, place="kitchen")
    return memory


@pytest.mark.parametrize(
    ("older", "denial", "ends"),
    [
        ("My daughter Lily likes tea.", "Lily doesn't like tea anymore.", False),
        ("Lily likes tea.", "My daughter Lily doesn't like tea anymore.", False),
        ("Lily, my daughter, likes tea.", "My daughter, Lily, no longer likes tea.", False),
        ("My daughter Lily likes tea.", "My daughter doesn't like tea.", False),
        ("My oldest daughter Lily is allergic to nuts.", "Lily is not allergic to nuts.", False),
        ("My daughter Lily's room is blue.", "Lily's room isn't blue.", False),
        ("My sister Ann likes tea.", "My daughter Ann doesn't like tea.", False),
        ("My daughter Lily likes tea.", "Rose doesn't like tea.", False),
        ("My sister loves Paris.", "Paris is not large.", False),
        ("i like my coffee black", "i dont like my coffee black", True),
        ("I like tea and coffee.", "I don't like coffee.", False),
        ("I like tea and coffee.", "I like neither tea nor coffee. I don't like tea. I don't like coffee.", False),
        ("I like tea, coffee and milk.", "I don't like tea, coffee and milk anymore.", True),
        ("I live in Paris and work in Rome.", "I no longer work in Rome.", False),
        ("I drink coffee.", "I stopped drinking coffee.", True),
        ("The blue mug is in the kitchen.", "The blue mug is not in the kitchen any more.", True),
        ("Ann works on Mondays.", "Ann no longer works on Mondays.", True),
        ("I don't eat meat.", "I eat meat on Sundays.", False),
        ("I like tea.", "I don't like it when the door is open.", False),
    ],
)
def test_what_a_denial_ends(older, denial, ends):
    memory = LifelongMemory()
    first = memory.tell(older)
    memory.tell(denial)
    assert (memory.get(first.notes[0].id).ended is not None) == ends


def test_a_person_is_in_one_place_by_either_name():
    memory = begun("My daughter Lily is in the kitchen.")
    memory.observe("look", "Lily is in the garden.")
    assert [(one.name, one.receptacle) for one in memory.sightings()] == [("lily", "garden")]
    memory.observe("look", "My daughter Lily is not in the garden.")
    assert not memory.spatial.last_seen("lily").current


def test_a_room_is_one_room_however_it_is_spelt():
    memory = begun()
    memory.observe("look", facts=[("mug", "on", "table")])
    memory.end_task(True)
    memory.begin_task("tidy", "tidy up", "", place="The Kitchen")
    assert (memory.place, [one.name for one in memory.sightings(place="KITCHEN")]) == ("kitchen", ["mug"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("There are two plates on the table.", ["plate", "plate 2"]),
        ("I see 3 red mugs on the table.", ["red mug", "red mug 2", "red mug 3"]),
        ("Two cups of tea and a knife are on the table.", ["cup of tea", "cup of tea 2", "knife"]),
        ("A couple of knives are on the table.", ["knife", "knife 2"]),
        ("A 12 oz cup is on the table.", ["12 oz cup"]),
        ("The cloth is on two tables.", ["cloth"]),
        ("1 cup on the table", ["cup"]),
        ("A dozen eggs are in the fridge.", ["egg", *(f"egg {number}" for number in range(2, 13))]),
        ("cups: 2 on the table", []),
        ("The keys are in Ann's bag.", ["keys"]),
        ("Ann's mug is on the table.", ["ann's mug"]),
        ("There's a mug on the table and the light's off.", ["mug", "light"]),
    ],
)
def test_so_many_things_are_so_many(text, names):
    assert [subject for subject, _, _ in ENGLISH.read(text).facts] == names


def test_two_plates_are_seen_once_however_often():
    memory = begun("There are two plates on the table.")
    for _ in range(3):
        memory.observe("look", "Two plates are on the table.")
    assert len(memory.sightings("plate")) == len(memory.sightings("plates")) == 2
    memory.observe("look", "There is a plate on the table.")
    assert len(memory.sightings("plate")) == 2
    memory.observe("look", "There are plates on the shelf, and a red mug on the desk.")
    assert {one.receptacle for one in memory.sightings("plates")} == {"shelf"}
    assert [one.receptacle for one in memory.sightings("mug")] == ["desk"]


@pytest.mark.parametrize("text", ["Nobody is here.", "There is no one in the room.", "Everything is on the table."])
def test_nobody_is_no_thing(text):
    memory = begun()
    assert [row.module for row in memory.observe("look", text).stored] == ["notes"]
    assert not memory.sightings()


def test_somebody_is_a_person_whom_nobody_ends():
    memory = begun("Someone is in the kitchen.")
    assert [one.name for one in memory.sightings()] == ["person"]
    assert memory.observe("look", "Nobody is in the kitchen now.").ended


def test_nothing_makes_nothing():
    memory = begun()
    for text in ("", " \n"):
        receipt = memory.observe("", text)
        assert receipt.render() == ""
    assert memory.get_all() == []
    assert memory.retrieve().items == ()
    memory.observe("wait", "")
    assert [entry.text for entry in memory.get_all()] == ["step 3: wait"]


def test_a_denial_in_the_first_look_is_kept():
    memory = begun("The mug is not on the table.\nThere is a plate on the table.")
    assert [note.text for note in memory.get_all("notes")] == ["The mug is not on the table."]
    assert "not on the table" in memory.retrieve("is the mug on the table?").render()


def test_a_denied_class_is_denied_whatever_else_it_is():
    memory = begun("A red mug and a plate are on the table.")
    assert memory.observe("look", "There is no blue mug on the table.").ended == ()
    assert [row.text for row in memory.observe("look", "There is no mug on the table.").ended] == [
        "red mug is on table"
    ]


def test_names_with_underscores_are_found_as_they_are_written():
    memory = begun()
    memory.observe("look", facts=[("cup_1", "on", "table_1", 0.9), ("cup_2", "on", "shelf", 0.9)])
    memory.observe("wait", "")
    for query in ("where is cup_1?", "where is the cup 1?"):
        assert "cup_1 is on table_1" in memory.retrieve(query, k=1).render()


def test_what_of_the_users_own_is_denied_ends():
    memory = LifelongMemory()
    memory.tell("My phone number is 123. My wife is Eva and my son is Tom. My favourite colour is blue now.")
    texts = ["My phone number: number (123)", "My wife: wife (Eva)", "my son: son (Tom)"]
    assert [one.text for one in memory.get_all("profile")] == [*texts, "My favourite colour: colour (blue)"]
    assert "profile:k1" in {row.id for row in memory.tell("My phone number isn't 123.").ended}
    assert "profile:k4" in {row.id for row in memory.tell("My favourite colour is not blue.").ended}
    memory.tell("My password is 'a:b'.")
    assert memory.get_all("profile")[-1].text == "My password: password ('a:b')"


def test_a_denial_of_a_sentence_ends_a_part():
    memory = LifelongMemory()
    memory.tell("I like tea. I like coffee.")
    memory.tell("I don't like coffee anymore.")
    assert "in part no longer" in memory.retrieve("do I like tea?").render()
    assert memory.tell("I don't like tea.").ended
    assert memory.get("notes:0").ended == memory.time
