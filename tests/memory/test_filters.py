"""Labels never hide what a memory knows itself; filters, places and ids that name nothing are errors or nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import AsyncLifelongMemory, LifelongMemory, Scope
from embodied_mem.memory.notes import RESERVED
from embodied_mem.memory.record import FIELDS
from embodied_mem.serve.tools import call

NAMES = [*sorted(RESERVED), "Trust", " speaker ", "ｍｏｄｕｌｅ"]
MANY = "9" * 5000


def exported_with_label(name):
    memory = LifelongMemory()
    memory.tell("The door code is 1234.", labels={"room": "hall"})
    return memory.export().replace('"room"', json.dumps(name, ensure_ascii=False))


DOORS = {
    "tell": lambda memory, labels: memory.tell("x", labels=labels),
    "tell again": lambda memory, labels: (memory.tell("x"), memory.tell("x", labels=labels)),
    "update": lambda memory, labels: memory.update(memory.tell("x").notes[0].id, labels=labels),
    "import": lambda memory, labels: memory.import_(exported_with_label(*labels)),
    "async": lambda memory, labels: asyncio.run(AsyncLifelongMemory(memory).tell("x", labels=labels)),
    "notes": lambda memory, labels: memory.notes.tell("x", episode=0, step=0, time=1, labels=labels),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("name", NAMES)
def test_no_label_is_called_as_a_field(door, name):
    memory = LifelongMemory()
    with pytest.raises(InvalidInputError, match=r"labels: .* expected a name that is no field"):
        door(memory, {name: "user"})
    assert [entry.labels for entry in memory.get_all("notes")] in ([], [{}])


def test_other_labels_enter_by_every_door():
    for door in DOORS.values():
        memory = LifelongMemory()
        door(memory, {"place": "hall"})
        assert next(entry.labels for entry in memory.get_all("notes") if entry.labels).keys() == {"place"}


def lived(memory):
    memory.tell("The spare key is under the mat.", speaker="Bob", labels={"room": "hall"})
    memory.tell("My favorite mug is the blue mug.")
    memory.begin_task("t", "put a mug on the shelf", "You see a desk 1.", place="kitchen")
    memory.observe("look", "On the desk 1, you see a mug 1.", pose=(0, 0), images=[b"x"])
    memory.observe("sing", "Nothing happens.")
    memory.end_task(True)
    return memory


def test_every_field_is_a_key_and_no_other_name():
    memory = lived(LifelongMemory(Scope(user="ann")))
    assert {"spatial", "views", "episodic", "profile", "notes"} <= {entry.module for entry in memory.get_all()}
    for entry in memory.get_all():
        names = {"id", "module", "kind", "trust", *entry.data, *(("pose",) if entry.pose else ())}
        assert names <= {*FIELDS}
        for name in names:
            value = getattr(entry, name) if name in ("id", "module", "kind", "trust", "pose") else entry.data[name]
            assert entry in memory.get_all(where={name: value})
    for ask in (memory.get_all, lambda where: memory.retrieve("mug", where=where)):
        assert ask(where={"room": "hall"})
        for where in ({"speeker": "Bob"}, {"room": "hall", "Trust": "user"}, {"": 1}, {3: 1}):
            with pytest.raises(InvalidInputError, match=r"where: expected a field .*speaker.* or a label .room., got"):
                ask(where=where)
        for where in ({"module": "notess"}, {"trust": "usr"}):
            with pytest.raises(InvalidInputError, match=r"where: (module|trust): expected one of"):
                ask(where=where)
    memory.update("notes:0", labels={"floor": 1})
    assert memory.get_all(where={"room": "hall"}) == []
    assert LifelongMemory().get_all(where={"room": "hall"}) == []


def test_an_id_of_many_digits_is_nobodys():
    memory = lived(LifelongMemory())
    for module in ("spatial", "temporal", "episodic", "semantic", "profile", "notes", "views"):
        for number in (MANY, "k" + MANY, "-" + MANY, "9" * 25):
            id = f"{module}:{number}"
            assert memory.get(id) is None
            assert memory.history(id) == []
            for do in (memory.delete, lambda id: memory.update(id, "x")):
                with pytest.raises(InvalidInputError, match=r"id: expected (one|that) of"):
                    do(id)
            for tool, given in (("update", {"id": id, "text": "x"}), ("forget", {"id": id})):
                assert "expected" in json.loads(call(memory, tool, given))["error"]
