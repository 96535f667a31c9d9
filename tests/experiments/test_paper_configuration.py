"""`grpo_tpu` against MemCompiler's Table 7 and C.3, field by field, and the split that is scored once."""

import dataclasses

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import LoraConfig, preset
from embodied_mem.training.config import EvalConfig
from embodied_mem.training.tasks import make_tasks
from experiments.configs import load

PAPER = load("grpo_tpu")


def test_models_and_supervised_training():
    assert (PAPER.model.compiler, PAPER.model.executor, PAPER.model.lora) == ("qwen2.5-vl-7b", "qwen2.5-14b", True)
    assert {preset(name).dtype for name in (PAPER.model.compiler, PAPER.model.executor)} == {"bfloat16"}
    assert LoraConfig() == LoraConfig(rank=16, alpha=32, dropout=0.1, targets=("query", "value"))
    sft = PAPER.compiler_sft
    assert PAPER.executor_sft.steps == 0  # frozen
    assert (sft.batch_size, sft.learning_rate, sft.warmup, sft.label_smoothing) == (2, 1e-5, 0.05, 0.1)
    assert sft.optimizer == "adamw"
    assert sft.steps * sft.batch_size == 5 * 30_750
    assert (sft.action, sft.entropy, sft.latent, sft.orthogonality) == (1.0, 0.1, 1.0, 0.1)  # eq. 9
    assert (PAPER.memory.num_soft, PAPER.memory.projection) == (16, "gaussian")
    assert (PAPER.model.max_compiler_tokens, PAPER.model.max_action_tokens) == (512, 64)


def test_grpo():
    rl = PAPER.grpo
    assert (rl.num_tasks, rl.group_size, rl.steps, rl.max_steps) == (4, 4, 500, 15)
    assert (rl.clip_low, rl.clip_high) == (0.2, 0.28)
    assert (rl.temperature, rl.top_k, rl.top_p) == (1.2, 50, 1.0)
    assert (rl.learning_rate, rl.min_learning_rate, rl.weight_decay, rl.max_grad_norm) == (1e-6, 1e-7, 0.01, 1.0)


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
