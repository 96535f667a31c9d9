"""A note that gets another text leaves nothing of the old one in what is so now: profile, ends, what is told again."""

from __future__ import annotations

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope

GREEN, BLUE = "My favorite color is green.", "My favorite color is blue."


@pytest.mark.parametrize("text", ["I work on trains.", "My favorite song is Moon River.", "I take the bus."])
def test_an_update_of_the_later_of_two_notes_leaves_what_the_other_one_says(text, tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        memory.tell(GREEN)
        later = memory.tell(BLUE).notes[0].id
        memory.update(later, text)
        (colour,) = (one for one in memory.get_all("profile") if "color" in one.text)
        assert (colour.text, colour.ended) == ("My favorite color: color (green)", None)
        assert colour.data["notes"] == (0,)
        assert "(blue)" not in memory.retrieve("what is my favorite color?").render()
        assert [one.text[-7:].strip(" ()") for one in memory.history(colour.id)] == ["green", "blue", "green"]
        memory.delete(later)
        assert "blue" not in memory.export().lower()
        state = memory.state()
    with LifelongMemory.open(tmp_path, Scope(user="ann")) as memory:
        assert memory.state() == state


def test_an_update_ends_what_only_it_told():
    memory = LifelongMemory()
    told = memory.tell(GREEN)
    memory.update(told.notes[0].id, "I work on trains.")
    assert [one.ended is None for one in memory.get_all("profile")] == [False]


def test_an_update_that_denies_ends_what_was_claimed():
    memory = LifelongMemory()
    paris, tea = memory.tell("I live in Paris."), memory.tell("I like tea.")
    receipt = memory.update(tea.notes[0].id, "I no longer live in Paris.")
    assert paris.notes[0].id in {row.id for row in receipt.ended}
    assert memory.get(paris.notes[0].id).ended == memory.time


def test_what_was_recalled_and_has_changed_since_is_news_again():
    memory = LifelongMemory()
    note = memory.tell(BLUE).notes[0].id
    memory.retrieve("favorite color")
    memory.update(note, "My favorite color is red.")
    again = memory.tell(BLUE)
    assert [row.text for row in again.notes] == [BLUE]
    assert [one.text for one in memory.get_all("profile")] == ["My favorite color: color (blue)"]


def test_two_notes_that_say_the_same_are_told_apart():
    memory = LifelongMemory()
    first, second = memory.tell("I like tea."), memory.tell("I like milk.")
    memory.update(second.notes[0].id, "I like tea.")
    memory.update(second.notes[0].id, "I like juice.")
    again = memory.tell("I like tea.")
    assert first.notes[0].id in {row.id for row in again.merged}


def test_an_update_to_nothing_new_is_refused():
    memory = LifelongMemory()
    note = memory.tell(GREEN).notes[0].id
    with pytest.raises(InvalidInputError, match="neither"):
        memory.update(note)
    assert len(memory.history(note)) == 1


@pytest.mark.parametrize(
    ("text", "now"), [("The cup is in the box.", "cup is in box"), ("I never had one.", "cup was last on shelf")]
)
def test_an_update_moves_what_it_told_the_place_of(text, now, tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        note = memory.tell("The cup is on the shelf.").notes[0].id
        memory.tell("The pan is on the shelf.")
        memory.update(note, text)
        assert memory.retrieve("Where is the cup?").items[0].text.startswith(now)
        assert memory.retrieve("Where is the cup?", as_of=2).items[0].text.startswith("cup is on shelf")
        assert memory.retrieve("Where is the pan?").items[0].text.startswith("pan is on shelf")
        fork, state = memory.fork(), memory.state()
        memory.delete(note)
        assert "cup" not in memory.export()
        assert fork.state() == state


def test_an_update_leaves_what_was_seen_or_told_since():
    memory = LifelongMemory()
    note = memory.tell("The cup is on the shelf.").notes[0].id
    memory.tell("I moved the cup to the box.")
    memory.update(note, "I like tea.")
    assert memory.retrieve("Where is the cup?").items[0].text.startswith("cup is in box")
