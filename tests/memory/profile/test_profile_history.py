"""What the profile knew before: its versions, with times and sources, in history and in looking back."""

from __future__ import annotations

import pytest

from embodied_mem.memory import LifelongMemory, Scope

COLOURS = ("green", "blue", "red")


def told(memory: LifelongMemory) -> str:
    """Three colours at the times 1 to 3; the id of the entry."""
    for colour in COLOURS:
        receipt = memory.tell(f"My favorite color is {colour}.")
    return next(row.id for row in receipt.merged if row.module == "profile")


def texts(memory: LifelongMemory, id: str) -> list[tuple[str, int, int | None]]:
    return [(one.text.partition("(")[2].rstrip(")"), one.valid_from, one.ended) for one in memory.history(id)]


def test_history_and_looking_back_show_the_earlier_values(tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        id = told(memory)
        state = memory.state()
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as again:
        assert again.state() == state
        copy = LifelongMemory(Scope(user="ann"))
        copy.import_(again.export())
        for memory in (again, again.fork(), copy):
            assert texts(memory, id) == [("green", 1, 2), ("blue", 2, 3), ("red", 3, None)]
            assert [len(one.sources) for one in memory.history(id)] == [1, 1, 1]
            for time, colour in enumerate(COLOURS, 1):
                then = memory.get(id, as_of=time)
                assert (colour in then.text, then.ended) == (True, None)
                found = memory.retrieve("what is my favorite color?", as_of=time, where={"module": "profile"})
                assert [item.text for item in found.items] == [f"My favorite color: color ({colour})"]
                assert f"({colour})" in memory.get_all("profile", as_of=time)[0].text


def test_each_version_has_its_source():
    memory = LifelongMemory()
    for number, colour in enumerate(COLOURS[:2]):
        memory.begin_task(f"task {number}", f"My favorite color is {colour}.", "")
        memory.end_task(True)
    (entry,) = memory.get_all("profile")
    first, now = memory.history(entry.id)
    assert [[source[:2] for source in one.sources] for one in (first, now)] == [[(0, 0)], [(0, 0), (1, 0)]]
    memory.forget(episode=0)
    (entry,) = memory.get_all("profile")
    assert [one.text for one in memory.history(entry.id)] == ["My favorite color: color (blue)"]


def test_the_same_again_is_no_version_and_what_ended_is_one():
    memory = LifelongMemory()
    for _ in range(3):
        memory.tell("I drink black coffee after lunch.")
        memory.tell("My favorite color is green.")
    (colour,) = (one for one in memory.get_all("profile") if "color" in one.text)
    assert len(memory.history(colour.id)) == 1
    told = memory.tell("I like oat milk.")
    (id,) = (row.id for row in told.stored if row.module == "profile")
    began = memory.time
    memory.tell("I don't like oat milk anymore.")
    ended = memory.time
    memory.tell("I like oat milk.")
    assert [(one.valid_from, one.ended) for one in memory.history(id)] == [(began, ended), (memory.time, None)]


@pytest.mark.parametrize("forgotten", ["green", "color"])
def test_forgetting_takes_versions(forgotten):
    memory = LifelongMemory()
    told(memory)
    memory.forget(object=forgotten)
    assert forgotten.encode() not in memory.state()
    assert bool(memory.get_all("profile")) == (forgotten == "green")
