"""The main job from games to table, shrunk to what two cores do in a minute, and the same command a second time."""

import json

import pytest

from embodied_mem.models.config import PRESETS, DecoderConfig
from embodied_mem.training.weights import load_bundle
from experiments import train

FIELDS = {
    "world.num_train": 6, "world.num_valid": 2, "world.num_scenes": 4, "world.max_steps": 3, "memory.top_k": 1,
    "memory.num_soft": 4, "model.compiler": "nano", "model.executor": "nano", "model.vocab_size": 400,
    "model.max_compiler_tokens": 8, "model.max_action_tokens": 4,
    "executor_sft.steps": 3, "executor_sft.batch_size": 2, "compiler_sft.steps": 3, "compiler_sft.batch_size": 2,
    "executor_correction.num_games": 3, "executor_correction.max_steps": 2, "executor_correction.sft.steps": 2,
    "executor_correction.sft.batch_size": 2,
    "correction.num_games": 3, "correction.max_steps": 2, "correction.sft.steps": 2, "correction.sft.batch_size": 2,
    "grpo.steps": 1, "grpo.num_tasks": 2, "grpo.group_size": 2, "grpo.max_steps": 2, "grpo.microbatch": 4,
    "evaluation.batch_size": 2,
}  # fmt: skip
TIMES = {"latency_ms_per_step", "executor_ms_per_step", "compiler_ms_per_step"}
ROWS = {"executor": 3, "executor_correction": 2, "compiler": 3, "correction": 2, "grpo": 1}


def invoke(run_dir, capsys):
    """(the closing JSON line, all that was printed)."""
    arguments = [word for name, value in FIELDS.items() for word in (f"--{name}", str(value))]
    arguments += ["--evaluation.deliveries", "none", "compiled"]
    train.main(["--config=grpo_cpu", "--run_dir", str(run_dir), *arguments])
    printed = capsys.readouterr().out
    return json.loads(printed.strip().splitlines()[-1]), printed


def scores(line):
    return {
        name: {key: value for key, value in row.items() if key not in TIMES} for name, row in line["deliveries"].items()
    }


@pytest.fixture
def nano(monkeypatch):
    shape = {"width": 32, "num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 16, "mlp_width": 32}
    monkeypatch.setitem(PRESETS, "nano", DecoderConfig(**shape))


def test_main_job_twice(nano, tmp_path, capsys):
    run_dir = tmp_path / "run"
    line, printed = invoke(run_dir, capsys)
    assert set(line["deliveries"]) == {"none", "compiled"}
    for row in line["deliveries"].values():
        assert {"success", "interval", "progress", "steps", "tokens_per_step", "latency_ms_per_step"} <= set(row)
        assert 0 <= row["interval"][0] <= row["success"] <= row["interval"][1] <= 1
        assert 1 <= row["steps"] <= 3
    assert line["deliveries"]["none"]["compiler_tokens_per_step"] == 0
    assert line["deliveries"]["compiled"]["compiler_tokens_per_step"] > 8
    assert "| none |" in printed
    assert "| compiled |" in printed
    for name in (
        "config.json",
        "bank.jsonl.gz",
        "correction/episodes_0.jsonl.gz",
        "tokenizer.json",
        "report/report.json",
        "report/report.md",
    ):
        assert (run_dir / name).is_file(), name
    assert (run_dir / "report" / "curves.png").is_file()
    for stage, rows in ROWS.items():
        metrics = [json.loads(x) for x in (run_dir / stage / "metrics.jsonl").read_text().splitlines()]
        assert [m["step"] for m in metrics] == list(range(rows))
    report = json.loads((run_dir / "report" / "report.json").read_text())
    assert report["deliveries"] == line["deliveries"]
    assert report["num_tasks"] == 2
    assert {"command", "commit", "machine", "config", "fingerprint"} <= set(report)
    bundle = load_bundle(run_dir / "weights")
    assert bundle.config.to_json() + "\n" == (run_dir / "config.json").read_text()

    kept = [*run_dir.glob("*/metrics.jsonl"), run_dir / "bank.jsonl.gz", run_dir / "tokenizer.json"]
    kept.append(run_dir / "weights" / "weights.safetensors")
    before = {path: path.read_bytes() for path in kept}
    again, _ = invoke(run_dir, capsys)
    assert scores(again) == scores(line)
    assert {path: path.read_bytes() for path in kept} == before, "nothing is trained twice"
