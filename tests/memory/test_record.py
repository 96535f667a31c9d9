"""Single entries: by id, by label, changed, deleted from every file, at an earlier time; exported and told again."""

from __future__ import annotations

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope

ROOM = "Looking quickly around you, you see a desk 1, and a shelf 1."


def lived(memory: LifelongMemory) -> LifelongMemory:
    memory.tell("The spare key is under the mat.", speaker="Bob", when="8 May 2023", labels={"room": "hall", "n": 1})
    memory.tell("I like my tea in the blue mug.", labels={"room": "kitchen"})
    memory.begin_task("t", "put a mug on the shelf", ROOM)
    memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.")
    memory.observe("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
    memory.observe("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see nothing.")
    memory.observe("sing", "Nothing happens.")
    memory.observe("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.")
    memory.end_task(True)
    return memory


def test_every_entry_is_found_by_its_id():
    memory = lived(LifelongMemory())
    entries = memory.get_all()
    assert {entry.module for entry in entries} == {"spatial", "temporal", "episodic", "semantic", "profile", "notes"}
    assert len({entry.id for entry in entries}) == len(entries)
    for entry in entries:
        assert memory.get(entry.id) == entry
        assert memory.history(entry.id)[-1] == entry
        assert entry.sources
        assert entry.recorded <= entry.valid_from
    assert memory.get("notes:99") is memory.get("spatial:99") is memory.get("profile:k99") is None
    for wrong in ("notes", "moods:1", 7, "", None):
        with pytest.raises(InvalidInputError, match="id: expected"):
            memory.get(wrong)


def test_a_receipt_names_what_is_there():
    memory = LifelongMemory()
    memory.begin_task("t", "put a mug on the shelf", ROOM)
    first = memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.")
    assert {one.text for one in first.stored} == {"agent is at desk 1", "mug 1 is on desk 1"}
    again = memory.observe("look", "On the desk 1, you see a mug 1.")
    assert [one.text for one in again.merged] == ["mug 1 is on desk 1"]
    gone = memory.observe("look", "On the desk 1, you see nothing.")
    assert [one.text for one in gone.ended] == ["mug 1 is on desk 1"]
    for one in (*first.stored, *again.merged, *gone.ended):
        assert memory.get(one.id).text == one.text
    assert (memory.get(gone.ended[0].id).ended, gone.notes, first.structured) == (memory.time, (), first.stored)
    assert gone.render() == f"ended {gone.ended[0].id}: mug 1 is on desk 1"


def test_labels_speakers_and_modules_filter():
    memory = lived(LifelongMemory())
    assert [entry.text for entry in memory.get_all(where={"room": "hall", "n": 1})] == [
        "The spare key is under the mat."
    ]
    assert memory.get_all(where={"room": "hall", "n": 2}) == []
    assert len(memory.get_all("notes", where={"speaker": "Bob"})) == 1
    everywhere = memory.retrieve("blue mug key").items
    assert {item.module for item in everywhere} > {"notes"}
    for where in ({"room": "kitchen"}, {"module": "notes", "room": "kitchen"}):
        assert [item.data["said"] for item in memory.retrieve("mug key", where=where).items] == [
            "I like my tea in the blue mug."
        ]
    assert {item.module for item in memory.retrieve("mug", where={"module": "spatial"}).items} == {"spatial"}
    assert len(memory.retrieve("blue mug key", k=2).items) == 2
    with pytest.raises(InvalidInputError, match="module: expected one of"):
        memory.get_all("moods")


def test_an_update_keeps_what_was_before():
    memory = lived(LifelongMemory())
    note = next(entry for entry in memory.get_all("notes") if "blue mug" in entry.text)
    before = memory.time
    receipt = memory.update(note.id, "I like my tea in the green cup.", labels={"room": "garden"})
    assert [one.id for one in receipt.merged if one.module == "notes"] == [note.id]
    assert [(entry.text, entry.ended) for entry in memory.history(note.id)] == [
        ("I like my tea in the blue mug.", memory.time),
        ("I like my tea in the green cup.", None),
    ]
    assert memory.get(note.id).labels == {"room": "garden"}
    assert "blue mug" not in memory.retrieve("what do I like my tea in?").render()
    assert "green cup" in memory.retrieve("what do I like my tea in?").render()
    assert "blue mug" in memory.retrieve("what do I like my tea in?", as_of=before).render()
    assert "green cup" not in memory.retrieve("what do I like my tea in?", as_of=before).render()
    for id, text in ((note.id, " "), ("notes:99", "x"), ("spatial:0", "x")):
        with pytest.raises(InvalidInputError, match="expected"):
            memory.update(id, text)


def test_what_is_deleted_is_in_no_file(tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        lived(memory)
        memory.store.snapshot()
        doomed = memory.tell("My secretbox opens with a song.")
        assert b"secretbox" in b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert sum(memory.delete(doomed.notes[0].id).values()) > 0
        assert b"secretbox" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert memory.get(doomed.notes[0].id) is None
        lesson = memory.get_all("semantic")[0]
        memory.delete(lesson.id)
        note = next(entry for entry in memory.get_all("notes") if "blue mug" in entry.text)
        assert any("blue mug" in entry.text for entry in memory.get_all("profile"))
        memory.delete(note.id)
        assert not any("blue mug" in entry.text for entry in memory.get_all("profile"))  # it followed from the note
        state = memory.state()
        for id in ("notes:99", "spatial:0"):
            with pytest.raises(InvalidInputError, match="id: expected"):
                memory.delete(id)
    with LifelongMemory.open(tmp_path, Scope(user="ann")) as memory:
        assert memory.state() == state
        assert memory.get(lesson.id) is None


@pytest.mark.parametrize("deleted", ["1111", "9876"])
def test_a_deleted_value_goes_and_the_other_answers(deleted, tmp_path):
    """One note overwrote what the profile had from another: neither leaves its value there."""

    def in_files() -> bool:
        return deleted.encode() in b"".join(path.read_bytes() for path in tmp_path.iterdir())

    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        notes = {pin: memory.tell(f"My pin is {pin}.").notes[0].id for pin in ("1111", "9876")}
        (other,) = notes.keys() - {deleted}
        memory.tell("My dog is Rex.")
        memory.store.snapshot()
        assert in_files()
        assert deleted in memory.export()
        memory.delete(notes[deleted])
        assert not in_files()
        assert deleted not in memory.export()
        found = memory.retrieve("what is my pin?")
        assert deleted not in found.render()
        assert f"My pin: pin ({other})" in [item.text for item in found.items if item.module == "profile"]
        assert any("Rex" in entry.text for entry in memory.get_all("profile"))
        memory.tell("My pin is 5555.")
        state, found = memory.state(), memory.retrieve("what is my pin?")
    with LifelongMemory.open(tmp_path, Scope(user="ann")) as memory:
        assert memory.state() == state
        assert memory.retrieve("what is my pin?") == found


def test_deleting_brings_back_nothing_that_has_ended():
    memory = LifelongMemory()
    memory.tell("I like oat milk.", labels={"n": 1})
    again = memory.tell("I like oat milk.", labels={"n": 2}).notes[0].id
    memory.tell("I don't like oat milk anymore.")
    memory.delete(again)
    assert [entry for entry in memory.get_all("profile") if entry.ended is None] == []


def test_what_is_left_after_forgetting_is_what_is_restored():
    """A note that two tasks support loses one, then its text: nothing of either stays in what it is found by."""
    memory = LifelongMemory()
    for task in ("first", "second"):
        memory.begin_task(task, "look around", "A hall with a green door.")
        memory.observe("look", "The old clock ticks.")
        memory.end_task(False)
    clock = next(entry for entry in memory.get_all("notes") if "clock" in entry.text)
    assert [episode for episode, *_ in clock.sources] == [0, 1]
    memory.forget(episode=0)
    other = LifelongMemory()
    other.restore(memory.state())
    for query in ("clock", "green door", "who ticks in the hall?"):
        assert memory.retrieve(query) == other.retrieve(query)
    assert [episode for episode, *_ in memory.get(clock.id).sources] == [1]
    memory.update(clock.id, "The old bell rings.")
    assert "clock" not in memory.retrieve("clock", where={"module": "notes"}).render()
    memory.delete(clock.id)
    assert memory.get(clock.id) is None
