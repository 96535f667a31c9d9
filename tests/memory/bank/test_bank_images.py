"""Episodes with images in a bank and its file: each image once, by its hash; without images nothing is different."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.language.images import observation, png
from embodied_mem.memory import Experiences
from embodied_mem.types import Episode, Observation, Step

FIRST, SECOND, LAST = (png(np.full((2, 2, 3), value, np.uint8)) for value in (1, 2, 3))
STEPS = (
    Step("You see a desk 1, and a shelf 1.", "go to desk 1", (FIRST,)),
    Step("You arrive at desk 1. On the desk 1, you see a mug 1.", "take mug 1 from desk 1", (SECOND, FIRST)),
    Step("You pick up the mug 1 from the desk 1.", "move mug 1 to shelf 1"),
)
EPISODE = Episode("a", "put a mug in shelf.", STEPS, True, "You move the mug 1 to the shelf 1.", (LAST,))


def bare(episode: Episode) -> Episode:
    steps = tuple(Step(step.observation, step.action) for step in episode.steps)
    return dataclasses.replace(episode, steps=steps, final_images=())


@pytest.mark.parametrize("name", ["bank.jsonl", "bank.jsonl.gz"])
def test_a_bank_with_images_comes_back(name, tmp_path):
    bank = Experiences()
    bank.add_many([EPISODE, dataclasses.replace(EPISODE, task_id="b"), bare(EPISODE)])
    assert len(bank) == 3  # what was seen besides the words makes another episode
    bank.save(tmp_path / name)
    again = Experiences.load(tmp_path / name)
    assert again.records == bank.records
    again.save(tmp_path / f"again_{name}")
    assert (tmp_path / f"again_{name}").read_bytes() == (tmp_path / name).read_bytes()


def test_each_image_is_written_once_and_texts_as_they_were(tmp_path):
    bank = Experiences()
    bank.add_many([EPISODE, dataclasses.replace(EPISODE, task_id="b"), bare(EPISODE)])
    bank.save(tmp_path / "bank.jsonl")
    one, two, three = map(json.loads, (tmp_path / "bank.jsonl").read_text().splitlines()[1:])
    assert [len(names) for names in one["images"]] == [1, 2, 0, 1]
    assert len(one["image_files"]) == 3
    assert two["images"] == one["images"]
    assert "image_files" not in two
    assert three.keys() == {"task_id", "goal", "rationale", "steps", "final_observation"}


@pytest.mark.parametrize("damage", ["other bytes", "no bytes", "a group less"])
def test_a_record_whose_images_do_not_fit_is_refused(damage, tmp_path):
    from embodied_mem.language.images import ImagePool

    record = ImagePool().stored([(FIRST,), (SECOND,)])
    names = list(record["image_files"])
    if damage == "other bytes":
        record["image_files"][names[0]] = record["image_files"][names[1]]
    elif damage == "no bytes":
        del record["image_files"][names[0]]
    else:
        record["images"].pop()
    with pytest.raises(InvalidInputError, match="expected"):
        ImagePool().read(record, 2)


def test_an_experience_shows_where_the_thing_was():
    bank = Experiences()
    bank.add(EPISODE)
    [found] = bank.retrieve("put a mug in shelf.")
    assert found.images == (SECOND, FIRST)
    never_taken = dataclasses.replace(EPISODE, goal="look around.", steps=(Step("A room.", "look", (FIRST,)),))
    bank.add(never_taken)
    assert {one.images for one in bank.retrieve("look around.", k=2)} == {(SECOND, FIRST), (LAST,)}


def test_only_tuples_of_files_are_images():
    for images in ([FIRST], (np.zeros((2, 2, 3), np.uint8),), FIRST):
        with pytest.raises(InvalidInputError, match="tuple of files"):
            Experiences().add(dataclasses.replace(EPISODE, final_images=images))


def test_what_a_world_shows_becomes_files():
    pixels = np.full((2, 2, 3), 1, np.uint8)
    info = {"images": [pixels, None, (pixels, SECOND)]}
    assert [observation("a", info, row) for row in range(3)] == [
        Observation("a", (FIRST,)), Observation("a"), Observation("a", (FIRST, SECOND)),
    ]  # fmt: skip
    assert observation("a", {}, 0) == Observation("a")
