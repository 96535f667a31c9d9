"""README's call: a lifelong memory, compiled by weights that come with the package."""

from __future__ import annotations

import pathlib
import re

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory

README = pathlib.Path(__file__).parents[2] / "README.md"
ROOM = "You are in a room. Looking quickly around you, you see a cabinet 1, a desk 1, a fridge 1, and a sinkbasin 1."
PLAYED = [
    ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1."),
    ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
    ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."),
    ("clean mug 1 with sinkbasin 1", "You clean the mug 1 using the sinkbasin 1."),
    ("go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed."),
    ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing."),
    ("move mug 1 to cabinet 1", "You move the mug 1 to the cabinet 1."),
]


@pytest.mark.usefixtures("unoptimised")
def test_readme_compiles_a_lifelong_memory(capsys):
    memory = LifelongMemory()
    memory.begin_task("task 1", "put a clean mug in cabinet.", ROOM)
    for action, answer in PLAYED:
        memory.observe(action, answer)
    memory.end_task(won=True)
    memory.tell("My sister gave me the blue mug.")
    memory.begin_task("task 2", "put a clean mug in fridge.", ROOM)
    [block] = [one for one in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "guide(" in one]
    names = {"memory": memory, "observation": ROOM}
    exec(block, names)
    guide = names["compiler"].guide(memory, ROOM)
    assert guide.text == "find mug in desk 1"
    [source] = guide.sources
    assert source.episode == 0
    assert "mug was in desk 1" in source.text
    assert any("sister" in one.record.text and "experience only" in one.reason for one in guide.withheld)
    assert guide.soft is not None
    said = capsys.readouterr().out
    assert said.startswith("do: find mug in desk 1\n")
    assert "(task 0, sensor): " in said
    memory.observe(*PLAYED[0])
    after = names["compiler"].guide(memory)
    assert after.text == "take mug 1 from desk 1"
    assert "searched: desk 1" in after.state.render()
    memory.end_task(won=False)
    early = LifelongMemory()
    early.tell("My sister gave me the blue mug.")
    early.begin_task("task 1", "put a clean mug in fridge.", ROOM)
    assert "(before any task, user): " in str(names["compiler"].guide(early))
    with pytest.raises(InvalidInputError, match="begin_task"):
        names["compiler"].guide(memory)
