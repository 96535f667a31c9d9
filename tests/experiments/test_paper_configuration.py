"""The split of `grpo_tpu` that is scored once, and its batches on its mesh."""

import dataclasses
import pathlib
import shlex

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.training.config import EvalConfig
from embodied_mem.training.tasks import make_tasks
from experiments.configs import cli, load
from experiments.preflight import _download

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


def test_the_six_commands_of_the_page_are_those_of_the_programs():
    page = (pathlib.Path(__file__).parents[2] / "docs/training.md").read_text()
    commands = [line.partition("  #")[0].rstrip() for line in page.split("```")[1].strip().splitlines()]
    assert len(commands) == 6
    downloads = [_download(PAPER, role) for role in ("compiler", "executor")]
    assert commands[1].split(" && ")[1:] == downloads
    plan, trial, run = (cli(shlex.split(command)[2:], "") for command in commands[3:])
    assert (plan[0].plan, run[0].plan) == (True, False)
    assert plan[1] == run[1] == PAPER
    assert (trial[1].compiler_sft.steps, trial[1].model, trial[1].mesh) == (20, PAPER.model, PAPER.mesh)
    assert trial[0].run_dir != run[0].run_dir
