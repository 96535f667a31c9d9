"""The split of `grpo_tpu` that is scored once, and its batches on its mesh."""

import dataclasses

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.training.config import EvalConfig
from embodied_mem.training.tasks import make_tasks
from experiments.configs import load

PAPER = load("grpo_tpu")


def test_a_batch_of_the_paper_leaves_no_device_without_rows():
    assert PAPER.compiler_sft.batch_size % (PAPER.mesh.data * PAPER.mesh.fsdp) == 0


def test_the_table_is_of_a_split_that_nothing_was_chosen_on(alfworld_data, monkeypatch):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(alfworld_data.parents[1]))
    monkeypatch.setenv("ALFWORLD_DATA", str(alfworld_data.parent))
    world = dataclasses.replace(PAPER.world, num_train=4)
    tasks = make_tasks(dataclasses.replace(PAPER, world=world, evaluation=EvalConfig(tasks="valid_seen")))
    assert tasks.num_test == 140
    assert tasks.test is not tasks.valid
    same = make_tasks(dataclasses.replace(PAPER, world=world, evaluation=EvalConfig()))
    assert (same.test, same.num_test) == (same.valid, same.num_valid)


@pytest.mark.parametrize("tasks", ["dev", "train", "generated"])
def test_a_split_that_is_trained_or_chosen_on_is_refused(tasks):
    assert (PAPER.world.valid, PAPER.evaluation.tasks) == ("dev", "valid_unseen")
    with pytest.raises(InvalidInputError, match=r"evaluation\.tasks: expected a split of alfworld that is not world"):
        dataclasses.replace(PAPER, evaluation=EvalConfig(tasks=tasks))
