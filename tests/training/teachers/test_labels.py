"""What teachers say in each world, with detours, false beliefs and imagined answers: the same as when it was recorded.

Models were trained on these labels, so a change of them is a change of every result. Games are made by the generator
or from the first training tasks of a world.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib

import pytest

from embodied_mem.training.bank import teach_bank
from embodied_mem.training.config import Config, EvalConfig, GRPOConfig, WorldConfig
from embodied_mem.training.tasks import make_tasks
from embodied_mem.training.teachers.episodes import play_teacher

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "teacher_labels.json"
"""Name of a world -> number of samples, SHA-256 of their first fields as JSON."""

NUM_FIELDS = 8
"""Fields of a sample that the hashes were made of; later ones (`plain_action`, pictures) are empty in these worlds."""

GENERATED = {
    "alfworld": WorldConfig(num_train=12, num_valid=2, num_scenes=8),
    "alfworld_0.3": WorldConfig(num_train=12, num_valid=2, num_scenes=8, grammar="0.3"),
}
INSTALLED = {
    name: WorldConfig(name=name, train=train, valid=valid, num_train=12, num_valid=2, num_scenes=8)
    for name, train, valid in (
        ("eb_alfred", "train", "held_out"),
        ("eb_habitat", "train", "held_out"),
        ("all", "generated", "generated"),
    )
}


def labels(world: WorldConfig) -> tuple[int, str]:
    """(number of samples, their hash) of a first play without memory and a second one with it, detours and the rest."""
    config = Config(world, grpo=GRPOConfig(num_tasks=1, group_size=2), evaluation=EvalConfig(batch_size=1), seed=3)
    tasks = make_tasks(config)
    played = play_teacher(
        tasks.train, range(tasks.num_train), teach_bank(config, tasks=tasks), tasks.make_teacher,
        top_k=4, detour=0.3, imagined=0.5, seed=5,
    )  # fmt: skip
    values = [dataclasses.astuple(sample) for sample in played.samples]
    assert not any(any(row[NUM_FIELDS:]) for row in values)
    text = json.dumps([row[:NUM_FIELDS] for row in values])
    return len(played.samples), hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", GENERATED)
def test_labels_of_generated_games(name):
    assert [*labels(GENERATED[name])] == json.loads(GOLDEN.read_text())[name]


@pytest.mark.parametrize("name", INSTALLED)
def test_labels_of_installed_worlds(name, eb_alfred_data, eb_habitat_data, monkeypatch, tmp_path):
    for folder in (eb_alfred_data, eb_habitat_data):
        (tmp_path / folder.name).symlink_to(folder)
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    assert [*labels(INSTALLED[name])] == json.loads(GOLDEN.read_text())[name]
