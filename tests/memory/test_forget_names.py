"""Forgetting a thing takes all of its names along, in every module, file and export."""

from __future__ import annotations

import numpy as np
import pytest

from embodied_mem.memory import LifelongMemory

LOOKS = np.eye(4, dtype=np.float32)


def lived(memory):
    memory.begin_task("t1", "tidy the desk", "On the desk 1, you see a mug 1 and a pen 1.", place="kitchen")
    memory.observe("take mug 1 from desk 1", "You take the mug 1.")
    memory.observe("look", facts=[("mug 1", "on", "shelf 1")], vectors={"mug 1": LOOKS[0]})
    memory.observe("look", facts=[("red mug", "on", "shelf 1")], vectors={"red mug": LOOKS[0]})
    memory.end_task(True)
    memory.tell("The red mug belongs to Ann.")
    memory.tell("The pen 1 belongs to Bob.")
    memory.tell("A mug without a name is missing.")


@pytest.mark.parametrize("name", ["mug 1", "red mug"])
def test_all_names_of_a_thing_go(tmp_path, name):
    with LifelongMemory.open(tmp_path, fsync="never") as memory:
        lived(memory)
        assert all(one in memory.export() for one in ("mug 1", "red mug"))  # the two are known to be one
        receipt = memory.forget(object=name)
        left = memory.export()
        assert "mug 1" not in left
        assert "red mug" not in left
        assert "belongs to Bob" in left
        assert "A mug without a name" in left
        assert all("pen 1" not in one.text for one in receipt.similar)
    with LifelongMemory.open(tmp_path, fsync="never") as again:
        assert again.export() == left


def test_a_bare_class_names_other_things():
    memory = LifelongMemory()
    memory.begin_task("t1", "tidy the desk", "", place="kitchen")
    memory.observe("look", facts=[("red mug", "on", "shelf 1"), ("blue mug", "on", "desk 1")])
    memory.observe("look", facts=[("mug", "on", "shelf 1")])
    memory.end_task(True)
    receipt = memory.forget(object="red mug")
    assert [one.name for one in memory.sightings()] == ["blue mug"]
    assert any("mug is on shelf 1" in one.text for one in receipt.similar)
