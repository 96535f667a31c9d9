"""What the preflight of a run says of broken set-ups, one broken thing or all at once."""

import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from experiments import preflight as module
from experiments.configs import load
from experiments.preflight import Devices, Row, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
EIGHT = Devices(8, "gpu", 96 * 10**9)


@pytest.fixture(autouse=True)
def _programs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))


def weights(folder: pathlib.Path, names=("a", "b", "c"), tokens=("x", "y", "z")) -> None:
    """A folder in Hugging Face's layout: a shard for each array, an index, a tokenizer."""
    folder.mkdir(parents=True)
    files = {f"{name}.weight": f"model-{name}.safetensors" for name in names}
    for name, file in files.items():
        save_file({name: np.ones((4, 4), np.float16)}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", "vocab_size": 8, "eos_token_id": 7}))
    described = {"model": {"vocab": {token: i for i, token in enumerate(tokens)}}, "added_tokens": [{"id": 7}]}
    (folder / "tokenizer.json").write_text(json.dumps(described))


@pytest.fixture
def complete(tmp_path, monkeypatch):
    """(configuration, run folder) of `grpo_tpu` with all that it needs."""
    for split, room in (("train", "10"), ("train", "17"), ("valid_unseen", "10")):
        trial = (
            tmp_path / "data/alfworld/json_2.1.1" / split / f"pick_and_place_simple-Mug-None-Desk-{room}" / "trial_T1"
        )
        trial.mkdir(parents=True)
        (trial / "game.tw-pddl").write_text("{}")
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(module, "host_memory", lambda: 64 * 10**9)
    for role in ("compiler", "executor"):
        weights(tmp_path / "weights" / role)
    config = load("grpo_tpu")
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, weights=str(tmp_path / "weights")))
    return config, tmp_path / "runs" / "one"


def preflight(config, run_dir, devices) -> list[Row]:
    return list(itertools.chain.from_iterable(module.preflight(config, run_dir, devices)))


def missing(config, run_dir, devices=EIGHT) -> dict[str, str]:
    """What is missing, with the line that says what was found."""
    return {row.what: row.found for row in preflight(config, run_dir, lambda: devices) if row.mend}


def test_nothing_is_missing_where_all_is_there(complete):
    rows = preflight(*complete, lambda: EIGHT)
    assert not [row for row in rows if row.mend or row.note]
    assert not complete[1].exists()  # it looks and makes nothing
    names = ["configuration", "games, train", "games, valid", "games, table", "compiler's weights"]
    names += [
        "executor's weights",
        "tokenizer",
        "tokenizer",
        "run folder",
        "devices",
        "memory of a device",
        "memory of the host",
    ]
    assert [row.what for row in rows][:-1] == names
    assert "3 files, 0.00 GB, F16" in table(rows)


@pytest.mark.parametrize(
    "how", ["no folder", "no shard", "cut shard", "no index entry", "no config", "no JSON", "another model"]
)
def test_half_a_folder_of_weights(complete, tmp_path, how):
    folder = tmp_path / "weights" / "executor"
    shard = folder / "model-b.safetensors"
    match how:
        case "no folder":
            shutil.rmtree(folder)
        case "no shard":
            shard.unlink()
        case "cut shard":
            shard.write_bytes(shard.read_bytes()[:-5])
        case "no index entry":
            save_file({"other": np.ones(3, np.float16)}, shard)
        case "no config":
            (folder / "config.json").unlink()
        case "no JSON":
            (folder / "config.json").write_text("{")
        case "another model":
            described = json.loads((folder / "config.json").read_text()) | {"text_config": {"hidden_size": 3584}}
            (folder / "config.json").write_text(json.dumps(described))
    found = missing(*complete)
    assert "executor's weights" in found
    assert set(found) <= {"executor's weights", "tokenizer"}
    mend = f"hf download Qwen/Qwen2.5-14B-Instruct --local-dir {folder}"
    assert mend in table(preflight(*complete, lambda: EIGHT))


@pytest.mark.parametrize("devices", [Devices(1, "cpu", 10**12), Devices(4, "gpu", 10**12), Devices(16, "tpu", 10**12)])
def test_another_number_of_devices(complete, devices):
    assert missing(*complete, devices) == {"devices": f"{devices.count} x {devices.platform}"}


def test_a_mesh_that_takes_what_is_left_fits_any_number(complete):
    config, run_dir = complete
    config = dataclasses.replace(config, mesh=dataclasses.replace(config.mesh, data=-1))
    assert not missing(config, run_dir, Devices(12, "gpu", 96 * 10**9))
    assert set(missing(config, run_dir, Devices(6, "gpu", 96 * 10**9))) == {"devices"}


def test_too_little_memory_by_plan_of_the_host_and_on_disk(complete, monkeypatch):
    assert set(missing(*complete, Devices(8, "gpu", 12 * 10**9))) == {"memory of a device"}
    tight = preflight(*complete, lambda: Devices(8, "gpu", 20 * 10**9))
    assert [row.what for row in tight if row.note] == ["memory of a device"]
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(module, "host_memory", lambda: 10**9)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=10**9))
    host, disk = missing(*complete)
    assert host == "memory of the host"
    assert disk.startswith("disk of ")


def test_a_gpu_holds_the_layers_of_what_it_samples_from_twice(complete):
    needed = {}
    for platform in ("gpu", "tpu"):
        rows = preflight(*complete, lambda platform=platform: Devices(8, platform, 96 * 10**9))
        needed[platform] = next(float(row.wanted.split()[0]) for row in rows if row.what == "memory of a device")
    layers = 0.25 * 2 * (7.62 - 2 * 0.545 + 14.77 - 2 * 0.7786)  # GB; without tables and heads, on four devices
    assert needed["gpu"] > 12 + layers > needed["tpu"]  # 12 GB of weights


@pytest.mark.parametrize("url", ["localhost:8000", "foo", "http://127.0.0.1:1/v1"])
def test_a_server_of_rollouts_that_does_not_answer(complete, url):
    config, run_dir = complete
    served = dataclasses.replace(config.grpo, executor_server=url)
    config = dataclasses.replace(config, grpo=served, model=dataclasses.replace(config.model, images=0))
    assert missing(config, run_dir)["grpo.executor_server"].startswith("no answer: ")


def test_a_run_folder_that_cannot_be_written(complete):
    config, run_dir = complete
    run_dir.parent.mkdir()
    run_dir.write_text("a file")
    assert set(missing(config, run_dir)) == {"run folder"}
    assert set(missing(config, pathlib.Path("/proc/run"))) == {"run folder"} | {
        what for what in missing(config, pathlib.Path("/proc/run")) if what.startswith("disk")
    }


def test_a_run_folder_of_another_configuration(complete):
    config, run_dir = complete
    (run_dir / "compiler" / "checkpoints").mkdir(parents=True)
    (run_dir / "config.json").write_text(dataclasses.replace(config, seed=5).to_json())
    assert "seed: was 5, now 0" in missing(config, run_dir)["run folder"]
    (run_dir / "config.json").write_text(config.to_json())
    assert not missing(config, run_dir)


@pytest.mark.parametrize(
    ("role", "described", "said"),
    [
        ("compiler", {"model": {"vocab": {"x": 9}}, "added_tokens": [{"id": 7}]}, "10 tokens, but the compiler has 8"),
        ("compiler", {"model": {"vocab": {"x": 0}}, "added_tokens": [{"id": 6}]}, "ends with token 7"),
        ("executor", {"model": {"vocab": {"q": 9}}, "added_tokens": [{"id": 7}]}, "10 tokens, but the executor has 8"),
        ("compiler", None, "No such file"),
        ("compiler", {"model": 3}, ""),
    ],
)
def test_the_tokenizer_of_another_model(complete, tmp_path, role, described, said):
    path = tmp_path / "weights" / role / "tokenizer.json"
    path.unlink() if described is None else path.write_text(json.dumps(described))
    found = missing(*complete)
    assert set(found) == {"tokenizer"}
    assert said in found["tokenizer"]


def test_all_that_is_missing_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setattr(module, "host_memory", lambda: 10**9)
    found = missing(load("grpo_tpu"), pathlib.Path("/proc/run"), Devices(1, "gpu", 10**9))
    assert {"games, train", "compiler's weights", "executor's weights", "run folder", "devices"} <= set(found)
    assert {"memory of a device", "memory of the host"} <= set(found)


@pytest.mark.parametrize("name", ["grpo_cpu", "alfworld", "habits", "household", "smollm2_executor"])
def test_other_configurations_are_looked_at_too(name, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setattr(module, "host_memory", lambda: 64 * 10**9)
    config = load(name)
    found = missing(config, tmp_path / "run", Devices(1, "cpu", 16 * 10**9))
    assert ("games, train" in found) == (name in ("alfworld", "household", "smollm2_executor"))
    assert not {"devices", "memory of a device", "memory of the host", "run folder"} & set(found)


def test_the_command_ends_with_2_before_anything_is_made(tmp_path):
    command = [
        sys.executable,
        str(ROOT / "experiments/train.py"),
        "--config=grpo_tpu",
        "--run_dir",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr[-2000:]
    assert done.stderr.count("MISSING") >= 3
    assert "--unchecked goes on" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_model_that_nobody_knows(complete):
    config, run_dir = complete
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, compiler="qwen9"))
    assert "models" in missing(config, run_dir)


def test_files_are_looked_at_without_jax():
    program = f"""
import pathlib, sys
sys.path.insert(0, {str(ROOT / "experiments")!r})
from configs import load
from preflight import preflight
rows = next(preflight(load("grpo_tpu"), pathlib.Path("/proc/run")))
assert {{row.what for row in rows if row.mend}} >= {{"games, train", "compiler's weights", "run folder"}}
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "EMBODIED_MEM_DATA": "/nowhere"})
