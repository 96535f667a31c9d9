"""Evidence weighs: what a detector is not sure of ends nothing that is surer, until it has been seen often enough."""

from __future__ import annotations

import pytest

from embodied_mem.memory import LifelongMemory

SURE = ("mug", "on", "table", 0.99)
DOUBTFUL = ("mug", "in", "sink", 0.02)


def begun(memory: LifelongMemory | None = None) -> LifelongMemory:
    memory = LifelongMemory() if memory is None else memory
    memory.begin_task("tidy", "tidy up", "", place="kitchen")
    return memory


def where(memory: LifelongMemory, name: str = "mug") -> str | None:
    seen = memory.spatial.last_seen(name)
    return seen.receptacle if seen is not None and seen.current else None


@pytest.mark.parametrize("doubtful", [DOUBTFUL, ("mug", "not on", "table", 0.1), ("mug", "held by", "left hand", 0.3)])
def test_what_is_hardly_seen_ends_nothing_that_is_sure(doubtful, tmp_path):
    with LifelongMemory.open(tmp_path, fsync="never") as memory:
        begun(memory).observe("look", facts=[SURE])
        receipt = memory.observe("look", facts=[doubtful, ("cup", "on", "table", 0.9)])
        assert where(memory) == "table"
        assert receipt.ended == ()
        assert [row.module for row in receipt.stored] == ["spatial", "notes"]
        assert "less sure than mug is on table (confidence 0.99)" in receipt.refused[0]
        assert f"(confidence {doubtful[3]:.2f})" in receipt.notes[0].text
        assert receipt.render().count("refused: mug is") == 1
        state = memory.state()
    with LifelongMemory.open(tmp_path) as memory:
        assert memory.state() == state


@pytest.mark.parametrize(("confidences", "moved"), [((0.3,), False), ((0.3, 0.3), True), ((0.2, 0.2, 0.2), False)])
def test_sightings_add_up(confidences, moved):
    memory = begun()
    memory.observe("look", facts=[SURE])
    for confidence in confidences:
        memory.observe("look", facts=[("mug", "in", "sink", confidence)])
    assert where(memory) == ("sink" if moved else "table")
    if moved:  # 1 - 0.7 * 0.7
        assert memory.sightings("mug")[0].confidence == pytest.approx(0.51)


def test_what_is_seen_where_it_was_takes_doubt_away():
    memory = begun()
    for _ in range(3):
        memory.observe("look", facts=[SURE])
        memory.observe("look", facts=[("mug", "in", "sink", 0.3)])
    fork, again = memory.fork(), LifelongMemory()
    again.restore(memory.state())
    for one in (memory, fork, again):
        assert where(one) == "table"
        one.observe("look", facts=[("mug", "in", "sink", 0.3)])
        assert where(one) == "sink"


def test_forgetting_takes_what_was_not_believed():
    memory = begun()
    memory.observe("look", facts=[SURE, ("cup", "on", "table", 0.9)])
    memory.observe("look", facts=[("mug", "in", "secret box", 0.3)])
    assert b"secret box" in memory.spatial.state()
    memory.forget(object="secret box")
    assert b"secret box" not in memory.state()


@pytest.mark.parametrize(
    ("before", "now"), [(0.99, 0.6), (0.3, 0.4), (0.02, 0.02), (0.99, None), (None, 0.5)]
)  # likely, or as sure as what it ends
def test_what_is_sure_enough_is_believed(before, now):
    memory = begun()
    memory.observe("look", facts=[("mug", "on", "table", before)])
    assert memory.observe("look", facts=[("mug", "in", "sink", now)]).refused == ()
    assert where(memory) == "sink"


def test_another_sighting_makes_nothing_less_sure():
    memory = begun()
    memory.observe("look", facts=[SURE])
    memory.observe("look", facts=[("mug", "on", "table", 0.02)])
    assert memory.sightings("mug")[0].confidence == 0.99


@pytest.mark.parametrize("answer", ["nonsense", '{"ends": ["old"]}'])
def test_a_model_may_believe_it_and_without_its_answer_evidence_decides(answer):
    memory = begun(LifelongMemory(chat=lambda messages: answer, parallel=False))
    memory.observe("look", facts=[SURE])
    memory.observe("look", facts=[DOUBTFUL])
    assert where(memory) == ("table" if answer == "nonsense" else "sink")
    memory.close()


def test_of_a_circle_what_was_seen_the_longest_ago_ends():
    memory = begun()
    memory.observe("look", facts=[("box", "in", "bag"), ("bag", "in", "chest")])
    receipt = memory.observe("look", facts=[("bag", "in", "box")])
    assert {row.text.partition(" (")[0] for row in receipt.ended} == {"box is in bag", "bag is in chest"}
    memory.observe("look", facts=[("box", "on", "shelf")])
    receipt = memory.observe("look", facts=[("shelf", "in", "bag")])  # the bag in the box on the shelf
    assert [row.text for row in receipt.ended] == ["bag is in box"]
    assert where(memory, "shelf") == "bag"
    together = memory.observe("look", facts=[("cup", "in", "pot"), ("pot", "in", "cup")])
    assert len(together.ended) == 1


def test_a_table_under_the_lamp_on_it_is_no_circle():
    memory = begun()
    memory.observe("look", facts=[("lamp", "on", "table")])
    assert memory.observe("look", facts=[("table", "under", "lamp")]).ended == ()
    assert where(memory, "lamp") == "table"


def test_nothing_is_in_itself():
    memory = begun()
    receipt = memory.observe("look", facts=[("cup", "in", "cup", 0.99), ("mug", "in", "sink")])
    assert [row.text for row in receipt.stored] == ["mug is in sink", "cup is in cup (confidence 0.99)."]
    assert receipt.refused == ("cup is in cup (confidence 0.99). (nothing is in, on or under itself)",)
    assert [row.text for row in memory.observe("look", "The plate is on the plate.").notes] == ["plate is on plate."]
    assert memory.sightings("plate") == []
    memory.observe("look", facts=[("red mug", "in", "mug")])  # two names are two things
    assert where(memory, "red mug") == "mug"
