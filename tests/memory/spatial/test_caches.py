"""What spatial memory keeps of names between steps changes no answer: a fork, which starts without, says the same."""

import random

from embodied_mem.memory.spatial.spatial import SpatialMemory

_THINGS = ("mug 1", "mug 2", "Mug 2", "red mug", "side table 1", "side_table 1", "pan", "desk 1", "left hand")
_RELATIONS = ("on", "in", "next to", "not on", "holds")


def test_names_mean_the_same_with_and_without_what_was_kept() -> None:
    draw = random.Random(5)
    memory = SpatialMemory()
    for time in range(1, 240):
        if time % 20 == 1:
            memory.begin(episode=time // 20, time=time, place=draw.choice(("kitchen", "office")))
        given = [[draw.choice(_THINGS), draw.choice(_RELATIONS), draw.choice(_THINGS), None] for _ in range(2)]
        event = memory.propose("", given=given, episode=time // 20, step=time % 20, time=time)
        without = memory.fork()
        memory.apply(event)
        without.apply(event)
        assert memory.state() == without.state()
        for query in ("bring the red mug and mug 2", "side table"):
            assert memory.entities(query) == without.entities(query)
            assert memory.retrieve(query) == without.retrieve(query)
