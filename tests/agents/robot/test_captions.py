"""Captions: a few forms are read, loose ones stay text."""

from __future__ import annotations

import pytest

from embodied_mem.agents.robot.captions import caption_facts
from embodied_mem.agents.robot.perceiver import Perceiver


@pytest.mark.parametrize(
    ("caption", "facts"),
    [
        ("A banana on the kitchen counter, the oven is closed.",
         {("banana", "on", "kitchen counter"), ("oven", "is", "closed")}),
        ("The image shows a kitchen with a stove and two chairs.",
         {("stove", "in", "kitchen"), ("chair", "in", "kitchen"), ("chair 2", "in", "kitchen")}),
        ("a black and white photo of a cat sitting on a couch", {("cat", "on", "couch")}),
        ("a lamp that is standing behind a chair", {("lamp", "behind", "chair")}),
        ("a desk with a vase and a bowl on it", {("vase", "on", "desk"), ("bowl", "on", "desk")}),
        ("a spoon lying on a napkin next to a glass", {("spoon", "on", "napkin"), ("spoon", "next to", "glass")}),
        ("a laptop on a table in a kitchen", {("laptop", "on", "table"), ("table", "in", "kitchen")}),
        ("The robot is in front of a sink. A towel hangs on the door.",
         {("agent", "in front of", "sink"), ("towel", "on", "door")}),
    ],
)  # fmt: skip
def test_plain_captions_are_read(caption, facts):
    assert set(caption_facts(caption)) == facts
    assert set(fact[:3] for fact in Perceiver().perceive((), caption).facts) == facts


@pytest.mark.parametrize(
    "caption",
    [
        "a kitchen with a modern look",
        "a bathroom with lots of light",
        "a person in a red shirt",
        "blue and white car at the corner",
        "a dog in a basket transported on a scooter",
        "an empty, set table in a kitchen",
        "a view of the city from the window",
        "a girl eating breakfast at a table",
        "a reflection of a sink in a mirror",
        "maybe a cup on the table",
        "two children lying in a bed on a blanket",
        "a girl asleep in a bed",
    ],
)
def test_loose_captions_stay_text(caption):
    assert not caption_facts(caption)
    assert Perceiver().perceive((), caption).summary == caption
