"""The main job from games to table, shrunk: what it leaves, and that it ends with the same numbers when it is killed.

Killed three times, stopped once and started again each time, it ends as a run that was not; given a second time, it
trains nothing.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from quick_programs import flags
from safetensors.numpy import load_file

from embodied_mem.errors import CheckpointError
from embodied_mem.models.config import PRESETS
from embodied_mem.training.bundle import load_bundle
from embodied_mem.training.loop import read_metrics
from embodied_mem.training.run_folder import claim_run
from experiments.configs import load
from tests.training.tiny_run import NANO

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("tiny_run.py")
STEPS = {"executor": 16, "executor_correction": 16, "compiler": 12, "correction": 12, "grpo": 2}
TIMES = {
    "latency_ms_per_step", "executor_ms_per_step", "executor_prefill_ms_per_step", "executor_decode_ms_per_step",
    "compiler_ms_per_step",
}  # fmt: skip


class Runs:
    """Starts the same command again and again in one folder."""

    def __init__(self, folder: Path, cache: Path):
        self.folder, self.cache = folder, cache
        # Most of the time is compiling: programs are kept between processes and made without optimising passes.
        self._environment = {
            **os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags(),
            "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }  # fmt: skip

    def start(self, *more: str, cwd: Path | None = None) -> subprocess.Popen:
        command = [sys.executable, str(SCRIPT), str(self.folder), *more]
        return subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
        )

    def finish(self) -> str:
        """What it printed."""
        process = self.start()
        output, errors = process.communicate()
        assert process.returncode == 0, errors[-3000:]
        return output

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

    def programs(self) -> set[str]:
        """Training steps in the cache."""
        return {path.name for path in self.cache.glob("jit_*_step-*-cache")}

    def half_written(self) -> list[Path]:
        return list((self.folder / "compiler" / "checkpoints").glob("*tmp*"))


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Runs:
    folder = tmp_path_factory.mktemp("resume")
    runs = Runs(folder / "straight", folder / "cache")
    runs.printed = runs.finish()
    runs.traced = json.loads((runs.folder / "traces.json").read_text())
    return runs


def deliveries(printed: str) -> dict[str, dict]:
    """The rows of the closing JSON line (`--json`)."""
    return json.loads(printed.splitlines()[-1])["deliveries"]


def scores(printed: str) -> dict[str, dict]:
    return {name: {k: row[k] for k in row.keys() - TIMES} for name, row in deliveries(printed).items()}


def test_a_run_leaves_models_metrics_and_a_report(straight, monkeypatch):
    rows, folder = deliveries(straight.printed), straight.folder
    assert set(rows) == {"none", "compiled"}
    for name, row in rows.items():
        assert {"success", "interval", "progress", "steps", "tokens_per_step", *TIMES} <= set(row)
        assert 0 <= row["interval"][0] <= row["success"] <= row["interval"][1] <= 1
        assert row["steps"] == 2
        assert f"| {name} |" in straight.printed
    assert rows["none"]["compiler_tokens_per_step"] == 0
    assert rows["compiled"]["compiler_tokens_per_step"] > 12
    for name in ("bank.jsonl.gz", "correction/episodes_0.jsonl.gz", "tokenizer.json"):
        assert (folder / name).is_file(), name
    for name in ("report.md", "curves.png"):
        assert (folder / "report" / name).is_file(), name
    for stage, steps in STEPS.items():
        assert [line["step"] for line in straight.metrics(stage)] == list(range(steps))
    report = json.loads((folder / "report" / "report.json").read_text())
    assert report["deliveries"] == rows
    assert report["num_tasks"] == 2
    assert {"command", "commit", "machine", "config", "fingerprint"} <= set(report)
    monkeypatch.setitem(PRESETS, "nano", NANO)
    bundle = load_bundle(folder / "weights")
    assert bundle.config.to_json() + "\n" == (folder / "config.json").read_text()


def test_the_same_command_again_trains_nothing(straight):
    kept = [*straight.folder.glob("*/metrics.jsonl"), straight.folder / "bank.jsonl.gz"]
    kept += [straight.folder / "tokenizer.json", straight.folder / "weights" / "weights.safetensors"]
    assert len(kept) == len(STEPS) + 3
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept[:-1]}
    weights = kept[-1].read_bytes()
    assert deliveries(straight.finish()) == deliveries(straight.printed)
    assert json.loads((straight.folder / "traces.json").read_text())["shapes"]["_write"] == [0], "nor plays"
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept[:-1]} == before
    assert kept[-1].read_bytes() == weights


def test_a_run_stopped_and_killed_in_stages_and_in_a_checkpoint_ends_with_the_same_numbers(straight):
    runs, programs = Runs(straight.folder.with_name("killed"), straight.cache), straight.programs()
    # Asked to stop during the executor's correction.
    for stage in ("executor_correction", "compiler"):
        process = runs.start()
        while process.poll() is None and len(read_metrics(runs.folder / stage)) < 2:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
        if process.returncode == 128 + signal.SIGTERM:  # else it came behind the stage's last step
            break
    done = len(runs.metrics(stage))
    assert process.returncode == 128 + signal.SIGTERM, errors[-3000:]
    assert runs.checkpoints(stage)[-1] == done
    assert f"stopped after step {done} of {stage}; the same command goes on" in errors
    assert "Traceback" not in errors
    # While a checkpoint of the compiler's SFT is written: its folder still has the name of an unfinished one.
    runs.kill_when(runs.half_written, lambda: runs.half_written() and not (runs.folder / "correction").exists())
    # During the correction's SFT, which reads the stored episodes that the compiler played.
    runs.kill_when(
        lambda: len(read_metrics(runs.folder / "correction")) > 3 and runs.checkpoints("correction"),
        lambda: 3 < len(runs.metrics("correction")) < 12 and runs.checkpoints("correction")[-1] < 12,
    )
    # During the rollout of the second update: its marker is there, its metrics are not.
    marker = runs.folder / "rollout"
    runs.kill_when(
        lambda: marker.exists() and marker.read_text() == "1",
        lambda: marker.exists() and len(runs.metrics("grpo")) == 1 and not (runs.folder / "weights").exists(),
    )
    assert scores(runs.finish()) == scores(straight.printed)
    for stage, steps in STEPS.items():
        assert [line["step"] for line in runs.metrics(stage)] == list(range(steps))
        assert runs.metrics(stage) == straight.metrics(stage)
    assert all(
        line["grad_norm"] > 0 and line["equal_share"] < 1 for line in runs.metrics("grpo")
    )  # there was something
    assert {name.split("-")[0] for name in programs} == {"jit_executor_step", "jit_compiler_step"}
    assert runs.programs() == programs, "a resumed run is the same programs"
    digests = [
        hashlib.sha256((r.folder / "weights" / "weights.safetensors").read_bytes()).hexdigest()
        for r in (straight, runs)
    ]
    assert digests[0] == digests[1]


def test_an_arm_of_the_study_does_what_the_run_did_after_its_compiler(straight, tmp_path):
    command = ["--arms", "grpo", "shuffled", "own_none", "commands", "--grpo.steps", "2"]
    command += ["--out", str(tmp_path / "result.json")]
    process = straight.start(*command, cwd=tmp_path)
    output, errors = process.communicate()
    assert process.returncode == 0, errors[-3000:]
    [folder] = tmp_path.glob("runs/arms-*")
    own, *arms = (
        path / "weights" / "weights.safetensors" for path in (straight.folder, folder / "grpo-0", folder / "shuffled-0")
    )
    assert [arm.read_bytes() == own.read_bytes() for arm in arms] == [True, False]
    report = json.loads((tmp_path / "result.json").read_text())
    assert json.loads(output.splitlines()[-1])["arms"] == report["arms"]
    assert set(report["rows"]) == {"none", "before", "grpo 0", "shuffled 0", "own_none 0", "commands 0"}
    before, alone = (
        load_file(weights / "weights.safetensors")
        for weights in (straight.folder / "weights_before_grpo", folder / "own_none-0" / "weights")
    )
    changed = {name.partition(".")[0] for name, array in before.items() if not np.array_equal(array, alone[name])}
    assert changed == {"executor"}, "an executor of its own, the run's compiler"
    told = load_file(folder / "commands-0" / "weights" / "weights.safetensors")
    assert {name.partition(".")[0] for name in before} == {"executor", "compiler"}
    assert [any("soft_mem" in name for name in weights) for weights in (before, told)] == [True, False]
    assert report["rows"]["commands 0"]["executor_tokens_per_step"] == 0, "by rule"
    lines = straight.metrics("grpo")
    assert report["curves"]["grpo 0"]["equal_share"] == [line["equal_share"] for line in lines]
    assert report["tokens"]["grpo 0"] == sum(line["tokens"] for line in lines) > 0
    assert len(report["curves"]["shuffled 0"]["won"]) == 2
    assert lines[0]["text_kl_to_start"] == 0 < lines[1]["text_kl_to_start"]
    for checkpoints in folder.glob("*/grpo/checkpoints"):
        shutil.rmtree(checkpoints)
    again = straight.start(*command, cwd=tmp_path)
    assert again.wait() == 0
    assert not list(folder.glob("*/grpo/checkpoints")), "the weights of finished arms are enough, none is trained again"
    assert json.loads((tmp_path / "result.json").read_text())["arms"] == report["arms"]


def test_each_step_is_traced_once_per_shape(straight):
    traces, shapes = straight.traced["traces"], straight.traced["shapes"]
    assert {name: traces[name] for name in shapes} == {name: sum(each) for name, each in shapes.items()}
    assert set(shapes) == {"executor_step", "compiler_step", "grpo_gradient", "_read", "_write"}
    assert max(max(each) for each in shapes.values()) <= 6, shapes  # lengths are rounded, so there are few
    assert traces["grpo_update"] == 1
    assert traces["_append"] <= sum(shapes["_write"])


def test_the_same_folder_under_another_configuration_is_refused(straight):
    before = hashlib.sha256((straight.folder / "config.json").read_bytes()).hexdigest()
    process = straight.start("--executor_sft.learning_rate", "0.5")
    table, errors = process.communicate()
    assert process.returncode == 2, errors
    errors = f"{table}{errors}"
    assert "MISSING  run folder" in errors
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


def test_a_second_program_in_a_folder_is_refused_and_told_of_the_first(tmp_path):
    code = (
        "import sys; from embodied_mem.training.run_folder import claim_run; from experiments.configs import load\n"
        "claim_run(sys.argv[1], load('grpo_cpu')); print('claimed', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    config, root = load("grpo_cpu"), Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as first:
        assert first.stdout.readline() == "claimed\n"
        with pytest.raises(
            CheckpointError, match=rf"run: another program runs in this folder, process {first.pid} on "
        ):
            claim_run(tmp_path / "run", config)
        claim_run(tmp_path / "run", config, first=False)  # a further process of the same run
        first.send_signal(signal.SIGKILL)
        first.wait()
    claim_run(tmp_path / "run", config)
    claim_run(tmp_path / "run", config)  # its own lock is no hindrance
    second = subprocess.run(command, input="", capture_output=True, text=True, cwd=root)
    assert f"process {os.getpid()} on " in second.stderr


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").touch()
    for folder in (tmp_path / "run", tmp_path / "run" / "below"):
        with pytest.raises(CheckpointError, match="expected a folder that a run can write to"):
            claim_run(folder, load("grpo_cpu"))
