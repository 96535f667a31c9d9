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

from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.errors import InvalidInputError
from embodied_mem.training.config import Config, DataConfig, EvalConfig, GRPOConfig, WorldConfig
from embodied_mem.training.tasks import make_tasks, teach_bank
from embodied_mem.training.teachers.episodes import Sample, play_teacher
from embodied_mem.worlds.alfworld.tasks import AlfworldTasks

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


def samples_of(world: WorldConfig, **data: bool) -> list[Sample]:
    """Samples of a first play without memory and a second one with it, detours and the rest."""
    config = Config(
        world, data=DataConfig(**data), grpo=GRPOConfig(num_tasks=1, group_size=2),
        evaluation=EvalConfig(batch_size=1), seed=3,
    )  # fmt: skip
    tasks = make_tasks(config)
    played = play_teacher(
        tasks.train, range(tasks.num_train), teach_bank(config, tasks=tasks), tasks.make_teacher,
        top_k=4, detour=0.3, imagined=0.5, seed=5,
    )  # fmt: skip
    return played.samples


def labels(world: WorldConfig) -> tuple[int, str]:
    """(number of samples, their hash)."""
    samples = samples_of(world)
    values = [dataclasses.astuple(sample) for sample in samples]
    assert not any(any(row[NUM_FIELDS:]) for row in values)
    text = json.dumps([row[:NUM_FIELDS] for row in values])
    return len(samples), hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", GENERATED)
def test_labels_of_generated_games(name):
    assert [*labels(GENERATED[name])] == json.loads(GOLDEN.read_text())[name]


def test_who_learns_commands_learns_the_same_but_for_the_guidance():
    """Where another compiler learns to say what is to be done and where, it learns the command that is then given."""
    world = GENERATED["alfworld"]
    told, plain = samples_of(world, commands=True), samples_of(world)
    changed = [one != other for one, other in zip(told, plain, strict=True)]
    assert changed == [other.hint not in ("", other.action) for other in plain]
    assert 0.5 < sum(changed) / len(changed) < 1
    for one, other in zip(told, plain):
        assert one.hint == (other.hint and other.action)
        said, before = parse_output(one.output), parse_output(other.output)
        assert said == dataclasses.replace(before, guidance=one.hint)
        assert one == dataclasses.replace(other, hint=one.hint, output=one.output)


def test_commands_need_rules_to_carry_them_out(monkeypatch):
    monkeypatch.delattr(AlfworldTasks, "follower")  # as a world's own source may be
    assert samples_of(GENERATED["alfworld"])
    with pytest.raises(InvalidInputError, match=r"data\.commands: expected one world"):
        samples_of(GENERATED["alfworld"], commands=True)


@pytest.mark.parametrize("name", INSTALLED)
def test_labels_of_installed_worlds(name, eb_alfred_data, eb_habitat_data, monkeypatch, tmp_path):
    for folder in (eb_alfred_data, eb_habitat_data):
        (tmp_path / folder.name).symlink_to(folder)
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    assert [*labels(INSTALLED[name])] == json.loads(GOLDEN.read_text())[name]
