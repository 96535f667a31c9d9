"""What spatial memory keeps between steps changes no answer: forks and restored ones start without and say the same."""

import random

import pytest

from embodied_mem.memory.spatial import SpatialMemory

_NUMBERED = ("mug 1", "mug 2", "table 1", "side_table 1", "desk 1", "desk 2")
_THINGS = (*_NUMBERED, "Mug 2", "red mug", "side table 1", "pan", "left hand")
_RELATIONS = ("on", "in", "next to", "not on", "holds")


@pytest.mark.parametrize("described_from", [0, 120])
def test_names_mean_the_same_with_and_without_what_was_kept(described_from) -> None:
    draw = random.Random(5)
    memory = SpatialMemory()
    for time in range(1, 240):
        if time % 20 == 1:
            memory.begin(episode=time // 20, time=time, place=draw.choice(("kitchen", "office")))
        things = _THINGS if time > described_from else _NUMBERED
        given = [[draw.choice(things), draw.choice(_RELATIONS), draw.choice(things), None] for _ in range(2)]
        event = memory.propose("", given=given, episode=time // 20, step=time % 20, time=time)
        fork, restored = memory.fork(), SpatialMemory()
        restored.restore(memory.state())
        for one in (memory, fork, restored):
            one.apply(event)
        assert memory.state() == fork.state() == restored.state()
        for query in ("bring the red mug and mug 2", "side table"):
            assert memory.entities(query) == fork.entities(query) == restored.entities(query)
            assert memory.retrieve(query) == fork.retrieve(query) == restored.retrieve(query)
