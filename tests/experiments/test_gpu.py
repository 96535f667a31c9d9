"""The measurement of an accelerator, rehearsed: its file's schema, and that a part's failure loses no other."""

import json

from quick_programs import flags

from embodied_mem.training.config import STAGES
from experiments import gpu

ROW_KEYS = {"seconds", "rows", "error", "xla_flags"}


def test_the_tiniest_form_writes_the_file(tmp_path):
    file = tmp_path / "gpu.json"
    gpu.main(["--tiny", "--parts", "limits", "transformers", "weights", "--output", str(file)])
    found = json.loads(file.read_text())
    assert {"tiny", "parts", "commit", "machine", "versions", "device", "count", "presets", "seconds"} <= set(found)
    assert set(found["versions"]) >= {"jax", "jaxlib", "flax", "optax"}
    assert list(found["parts"]) == ["limits", "transformers", "weights"]
    assert all({"seconds", "rows"} <= set(part) <= ROW_KEYS for part in found["parts"].values())
    device, copy, product = found["parts"]["limits"]["rows"]
    assert device["device"] == found["device"]
    assert copy["copy_bytes_per_s"] > 0 < product["product_flops_per_s"]
    assert [row["role"] for row in found["parts"]["weights"]["rows"]] == ["executor", "compiler", "compiler"]
    assert found["parts"]["weights"]["rows"][-1]["load_s"] > 0


PROGRAM = """
import json, sys, time
name = sys.argv[sys.argv.index("--part") + 1]
print(json.dumps({"part": name}), flush=True)
if name == "decode":
    time.sleep(60)
if name == "weights":
    raise RuntimeError("no room")
"""


def test_the_study_of_lives_is_trained_and_scored_in_small(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", flags())  # most of the time is compiling
    found = gpu.main(["--tiny", "--parts", "life", "--output", str(tmp_path / "gpu.json")])["parts"]["life"]
    *rows, last = found["rows"]
    names = ["oracle", "none", "static", "compiled", "lifelong_static", "lifelong_compiled", "lifelong_teacher"]
    assert [row["delivery"] for row in rows] == names
    assert rows[0]["last"]["success"] == 1
    assert list(last["differences"]) == [
        "lifelong_compiled against none", "lifelong_compiled against compiled", "compiled against none"
    ]  # fmt: skip
    assert (tmp_path / "gpu.run" / "weights" / "weights.safetensors").exists()
    steps = {stage: len((tmp_path / "gpu.run" / stage / "metrics.jsonl").read_text().splitlines()) for stage in STAGES}
    assert steps == {"executor": 2, "executor_correction": 1, "compiler": 2, "correction": 1, "grpo": 1}


def test_a_part_that_fails_or_hangs_loses_nothing(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr(gpu, "__file__", str(program))
    monkeypatch.setitem(gpu.LIMITS_S, "decode", 2)
    found = gpu.main(["--tiny", "--output", str(tmp_path / "gpu.json")])["parts"]
    assert {name: part["rows"] for name, part in found.items() if name != "train"} == {
        name: [{"part": name}] for name in gpu.LIMITS_S if name != "train"
    }
    assert {name for name, part in found.items() if "error" in part} == {"decode", "weights"}
    assert found["decode"]["error"] == "stopped after 2 s"
    assert "no room" in found["weights"]["error"]
    assert json.loads((tmp_path / "gpu.json").read_text())["parts"] == found


def test_no_part_begins_when_the_time_is_over(tmp_path):
    found = gpu.main(["--tiny", "--limit_s", "1", "--output", str(tmp_path / "gpu.json")])["parts"]
    assert {part["error"] for part in found.values()} == {"no time was left"}


def test_steps_of_a_run_that_was_stopped_are_read(tmp_path):
    for stage, line in (
        ("compiler", {"step_s": 2.0}),
        ("grpo", {"step_s": 9.0, "rollout_s": 3.0, "log_prob_gap": 0.1}),
    ):
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "metrics.jsonl").write_text(json.dumps({"step": 0, "other": 1, **line}) + "\n")
    assert gpu.training_rows(tmp_path) == [
        {"stage": "sft", "step": 0, "step_s": 2.0},
        {"stage": "grpo", "step": 0, "step_s": 9.0, "rollout_s": 3.0, "log_prob_gap": 0.1, "update_s": 6.0},
    ]
