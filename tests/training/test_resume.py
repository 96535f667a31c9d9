"""A whole small run, killed four times and started again each time, ends with the numbers of a run that was not."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embodied_mem.errors import CheckpointError
from embodied_mem.training.metrics import read_metrics
from embodied_mem.training.runs import claim_run
from experiments.configs import load

SCRIPT = Path(__file__).with_name("tiny_run.py")
STEPS = {"executor": 24, "executor_correction": 4, "compiler": 12, "correction": 8, "grpo": 2}


class Runs:
    """Starts the same command again and again in one folder."""

    def __init__(self, folder: Path, cache: Path):
        self.folder = folder
        # Most of the time is compiling: programs are kept between processes and made without optimising passes.
        self._environment = {
            **os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_backend_optimization_level=0",
            "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }  # fmt: skip

    def start(self, *more: str) -> subprocess.Popen:
        command = [sys.executable, str(SCRIPT), str(self.folder), *more]
        return subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self) -> None:
        process = self.start()
        output, errors = process.communicate()
        assert process.returncode == 0, errors[-3000:]
        assert json.loads(output.splitlines()[-1])["deliveries"]["none"]["steps"] == 2

    def kill_when(self, reached, landed) -> None:
        """Starts, kills as soon as `reached()`, and repeats (what was killed too late goes on) until `landed()`."""
        for _ in range(4):
            process = self.start()
            while process.poll() is None and not reached():
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL, errors[-3000:]
            if landed():
                return
        raise AssertionError("no kill hit what it should have")

    def metrics(self, stage: str) -> list[dict]:
        """Lines without what depends on the machine."""
        lines = read_metrics(self.folder / stage)
        return [
            {name: value for name, value in line.items() if not name.endswith("_s") and name != "peak_memory_bytes"}
            for line in lines
        ]

    def checkpoints(self, stage: str) -> list[int]:
        names = [path.name for path in (self.folder / stage / "checkpoints").glob("*")]
        return sorted(int(name) for name in names if name.isdigit())

    def half_written(self) -> list[Path]:
        return list((self.folder / "compiler" / "checkpoints").glob("*tmp*"))


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Runs:
    folder = tmp_path_factory.mktemp("resume")
    runs = Runs(folder / "straight", folder / "cache")
    runs.finish()
    return runs


def test_a_run_killed_in_every_stage_and_in_a_checkpoint_ends_with_the_same_numbers(straight):
    runs = Runs(straight.folder.with_name("killed"), straight.folder.with_name("cache"))
    # During the executor's SFT, past its first checkpoint.
    runs.kill_when(
        lambda: len(read_metrics(runs.folder / "executor")) > 5 and runs.checkpoints("executor"),
        lambda: 5 < len(runs.metrics("executor")) < 24 and runs.checkpoints("executor")[-1] < 24,
    )
    # While a checkpoint of the compiler's SFT is written: its folder still has the name of an unfinished one.
    runs.kill_when(runs.half_written, lambda: runs.half_written() and not (runs.folder / "correction").exists())
    # During the correction's SFT, which reads the stored episodes that the compiler played.
    runs.kill_when(
        lambda: len(read_metrics(runs.folder / "correction")) > 3 and runs.checkpoints("correction"),
        lambda: 3 < len(runs.metrics("correction")) < 8 and runs.checkpoints("correction")[-1] < 8,
    )
    # During the rollout of the second update: its marker is there, its metrics are not.
    marker = runs.folder / "rollout"
    runs.kill_when(
        lambda: marker.exists() and marker.read_text() == "1",
        lambda: marker.exists() and len(runs.metrics("grpo")) == 1 and not (runs.folder / "weights").exists(),
    )
    runs.finish()
    for stage, steps in STEPS.items():
        assert [line["step"] for line in runs.metrics(stage)] == list(range(steps))
        assert runs.metrics(stage) == straight.metrics(stage)
    assert all(
        line["grad_norm"] > 0 and line["equal_groups"] < 2 for line in runs.metrics("grpo")
    )  # there was something
    digests = [
        hashlib.sha256((r.folder / "weights" / "weights.safetensors").read_bytes()).hexdigest()
        for r in (straight, runs)
    ]
    assert digests[0] == digests[1]


def test_each_step_is_traced_once_per_shape(straight):
    record = json.loads((straight.folder / "traces.json").read_text())
    traces, shapes = record["traces"], record["shapes"]
    assert {name: traces[name] for name in shapes} == {name: sum(each) for name, each in shapes.items()}
    assert set(shapes) == {"executor_step", "compiler_step", "grpo_gradient", "_read", "_write"}
    assert max(max(each) for each in shapes.values()) <= 6, shapes  # lengths are rounded, so there are few
    assert traces["grpo_update"] == 1
    assert traces["_append"] <= sum(shapes["_write"])


def test_the_same_folder_under_another_configuration_is_refused(straight):
    before = hashlib.sha256((straight.folder / "config.json").read_bytes()).hexdigest()
    process = straight.start("--executor_sft.learning_rate", "0.5")
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "CheckpointError" in errors
    assert "executor_sft.learning_rate: was " in errors
    assert ", now 0.5. Use the configuration that it was made with, or another --run_dir" in errors
    assert hashlib.sha256((straight.folder / "config.json").read_bytes()).hexdigest() == before


def test_a_folder_may_change_what_has_not_begun(tmp_path):
    import dataclasses

    config = load("grpo_cpu")
    other = dataclasses.replace(config, compiler_sft=dataclasses.replace(config.compiler_sft, steps=7))
    claim_run(tmp_path, config)
    claim_run(tmp_path, dataclasses.replace(config, seed=5))  # nothing was made yet
    (tmp_path / "executor" / "checkpoints").mkdir(parents=True)
    claim_run(tmp_path, dataclasses.replace(other, seed=5))
    with pytest.raises(
        CheckpointError, match=r"its executor was made under another configuration: seed: was 5, now 0\. "
    ):
        claim_run(tmp_path, other)
    (tmp_path / "compiler" / "checkpoints").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=rf"compiler_sft\.steps: was 7, now {config.compiler_sft.steps}"):
        claim_run(tmp_path, dataclasses.replace(config, seed=5))
    (tmp_path / "correction").mkdir()
    (tmp_path / "correction" / "episodes_0.jsonl.gz").touch()
    more = dataclasses.replace(other, seed=5, correction=dataclasses.replace(other.correction, num_games=3))
    with pytest.raises(CheckpointError, match=r"its correction was made .*correction\.num_games: was \d+, now 3"):
        claim_run(tmp_path, more)
    (tmp_path / "config.json").write_text('{"seed": ')
    with pytest.raises(CheckpointError, match=r"config\.json: expected JSON"):
        claim_run(tmp_path, config)
