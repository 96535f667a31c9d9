"""EB-ALFRED's training side as a world of a run: nothing of it is scored, and ALFWorld's runs stay what they were."""

from __future__ import annotations

import dataclasses

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import make_tasks, teach_bank
from embodied_mem.worlds.eb_alfred import env as eb_alfred
from experiments import evaluate
from experiments.configs import load
from experiments.solvers.eb_alfred.text_adapter import training_sides


@pytest.fixture
def config(eb_alfred_data, monkeypatch):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(eb_alfred_data.parent))
    small = load("eb_alfred")
    world = dataclasses.replace(small.world, num_train=8, num_valid=2)
    return dataclasses.replace(small, world=world, evaluation=dataclasses.replace(small.evaluation, batch_size=2))


def test_no_trial_is_on_two_sides(config):
    sides = training_sides()
    assert [len(side) for side in sides] == [703, 126]  # as docs/training.md has it
    train, held_out = ({task.trial for task in side} for side in sides)
    scored = {
        task.trial for subset in ("base", "common_sense", "long_horizon") for task in eb_alfred.load_tasks(subset)
    }
    assert not train & held_out
    assert not (train | held_out) & scored
    assert (len(train), len(held_out)) == (207, 33)


def test_the_teacher_wins_training_tasks_and_instructions_of_one_trial_are_one_task(config):
    tasks = make_tasks(config)
    assert (tasks.num_train, tasks.num_valid, tasks.valid.max_steps) == (8, 2, 30)
    bank = teach_bank(config, tasks=tasks)
    assert len(bank) >= 2
    _, info = tasks.valid.reset(options={"task_indices": [0, 1]})
    trials = [task.trial for task in training_sides()[1][:2]]
    assert list(info["task_id"]) == trials
    [text], info = (x[:1] if isinstance(x, list) else x for x in tasks.valid.reset(options={"task_indices": [0, 1]}))
    found = bank.retrieve(info["goal"][0], k=20, context=text, exclude_task_ids=(trials[0],))
    assert trials[0] not in {experience.episode.task_id for experience in found}


def test_alfworlds_runs_keep_their_fingerprints(config):
    assert "name" not in load("grpo_cpu").parts("data")["world"]
    assert config.parts("data")["world"]["name"] == "eb_alfred"


def test_models_of_another_world_are_told_where_they_are_scored():
    with pytest.raises(InvalidInputError, match=r"trained on eb_alfred; .* --config=eb_alfred --agents"):
        evaluate.main(["--weights", "experiments/weights/eb_alfred"])


def test_worlds_that_do_not_exist_are_refused():
    with pytest.raises(InvalidInputError, match=r"world\.name: expected one of alfworld, eb_alfred"):
        WorldConfig(name="robothor", num_train=1, num_valid=1)
    with pytest.raises(InvalidInputError, match="world: expected train, held_out"):
        WorldConfig(name="eb_alfred", train="train", valid="base")
