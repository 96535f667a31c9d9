"""Things are known again by what is said of them in whatever words; rewordings keep what a caption says."""

from __future__ import annotations

import random

import pytest

from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep, parse_description
from experiments.solvers.memento.planner import alike
from experiments.solvers.memento.variants import LISTS, in_memory, now, reworded_caption, swapped, untold

PAIRS = (
    ("A teal vase with a slim neck.", "Vase, turquoise, its throat thin", "A brown vase with dots.", "vase"),
    ("A red clock with white numerals.", "crimson timepiece with pale digits", "A navy clock.", "clock"),
    ("A wooden box with a lid.", "container of oak with a cover", "A clear plastic box.", "box"),
    ("A black and white striped cushion.", "ivory pillow with ebony bands", "A floral pink cushion.", "cushion"),
)  # fmt: skip


@pytest.mark.parametrize(("caption", "same", "other", "kind"), PAIRS)
def test_the_same_in_other_words_is_more_alike_than_another_thing(caption, same, other, kind):
    assert alike(caption, same, kind) > alike(caption, other, kind) + 0.15
    assert alike(caption, same, kind) == alike(same, caption, kind)


def test_details_left_out_do_not_count_as_much_as_another_colour():
    caption = "A green cup with a gold rim and a curved handle."
    assert alike(caption, "A green cup.", "cup") > 0.6
    assert alike(caption, "A purple cup with a curved handle.", "cup") < alike(caption, "A green cup.", "cup")
    assert alike(caption, "A cup.", "cup") == 0.0  # says nothing but the category


@pytest.mark.parametrize("name", LISTS)
def test_rewordings_change_the_words_and_are_the_same_for_a_seed(name):
    caption = "A round white clock with black numbers and a brown frame."
    texts = {reworded_caption(caption, "clock", name, random.Random(seed)) for seed in range(20)}
    assert len(texts) > 10
    assert caption not in texts
    assert reworded_caption(caption, "clock", name, random.Random(3)) == reworded_caption(
        caption, "clock", name, random.Random(3)
    )


def test_memory_and_present_are_reworded_apart_and_controls_change_whose_caption_it_is():
    told = "A white cup with a green leaf."
    text = f"Result: The description of the object 'cup_0' is:\n{told}\nObjects: cup_0: bed_1 in den_1"
    trace = Trace("1", "house", "Bring the cup.", (TraceStep("", "DescribeObjectTool[cup_0]", text),))
    other = parse_description(in_memory(trace, "own").steps[0].observation)
    assert other is not None
    assert other[0] == "cup_0"
    assert other[1] != told
    assert in_memory(trace, "own").steps[0].observation.endswith("Objects: cup_0: bed_1 in den_1")
    record = {"episode_id": "1", "name_to_receptacle": {"A_:0000": "x", "B_:0000": "y", "C_:0000": "z"}}
    rows = [("A", "cup", "A red cup."), ("B", "cup", "A blue cup."), ("C", "pen", None), ("D", "pen", "A pen.")]
    assert swapped(record, rows) == [("A", "cup", "A blue cup."), ("B", "cup", "A red cup."), ("C", "pen", None)]
    assert untold(record, rows) == [("A", "cup", None), ("B", "cup", None), ("C", "pen", None)]
    assert [row[:2] for row in now(record, rows, "own")] == [("A", "cup"), ("B", "cup"), ("C", "pen")]
    assert now(record, rows, "own") == now(record, rows, "own")
