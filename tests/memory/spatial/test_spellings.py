"""One thing has one node, however a detector, a text or a caller spells its name."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pytest

from embodied_mem.memory import LifelongMemory

SPELLINGS = (
    ("Mug", "mug", "MUG", "the  mug", "\uff4d\uff55\uff47", "a Mug"),
    ("mug 1", "MUG 1", "Mug_1", "mug 01", "Mug\u00a01"),
    ("DeskLamp", "desk lamp", "desk_lamp", "Desk Lamp"),
    ("caf\u00e9 cup", "cafe\u0301 cup", "CAF\u00c9 CUP"),
    ("Stra\u00dfe", "STRASSE"),
)


@pytest.mark.parametrize(("first", "second"), [pair for row in SPELLINGS for pair in itertools.permutations(row, 2)])
def test_spellings_of_one_thing(first, second):
    memory = LifelongMemory()
    memory.begin_task("t", "tidy up", "", place="kitchen")
    memory.observe("look", facts=[(first, "on", "Table", 0.9)])
    memory.observe("look", facts=[(second, "in", "sink", 0.9)], vectors={first: np.eye(3, dtype=np.float32)[0]})
    assert memory.spatial.inside("table") == []
    assert len(memory.spatial.inside("SINK")) == 1
    shown = memory.spatial.inside("sink")[0]
    assert shown == " ".join(unicodedata.normalize("NFC", first).split())  # as it was spelled first
    assert memory.spatial.last_seen(second).receptacle == "sink"
    copy = memory.fork()
    copy.observe("look", facts=[(first, "on", "Table", 0.9)])
    assert (copy.spatial.inside("sink"), len(copy.spatial.inside("table"))) == ([], 1)
    memory.restore(memory.state())
    memory.observe("look", facts=[(second, "is", "clean"), (first, "on", "table")])
    assert (memory.spatial.inside("sink"), memory.spatial.inside("table")) == ([], [shown])
    assert memory.spatial.states(first) == {"clean"}


def test_two_spellings_in_one_list():
    memory = LifelongMemory()
    memory.begin_task("t", "tidy up", "", place="kitchen")
    memory.observe("look", facts=[("Cup 3", "on", "table"), ("cup 3", "on", "table"), ("cup 3", "is", "clean")])
    assert memory.spatial.inside("table") == ["Cup 3"]
    assert memory.spatial.states("Cup 3") == {"clean"}
