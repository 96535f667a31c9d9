"""Folders in a store, by a local double of `gs://` behind fsspec; a stage that is lost with its machine goes on."""

import dataclasses
import sys

import numpy as np
import pytest
from local_bucket import serve

from embodied_mem.errors import MissingDependencyError
from embodied_mem.parallel import object_store
from embodied_mem.parallel.object_store import local_copy, push
from embodied_mem.training.config import weights_of
from embodied_mem.training.loop import read_metrics, run_loop
from experiments.configs import load


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """The folder that is `gs://bucket`."""
    serve(tmp_path)
    return tmp_path / "bucket"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Begin anew on a machine of this name."""

    def begin(name):
        monkeypatch.setenv("HOME", str(tmp_path / name))
        monkeypatch.setattr(object_store, "_stores", {})
        return local_copy("gs://bucket/run")

    return begin


def test_a_reader_finds_the_last_whole_push(bucket, machine):
    first = machine("one")
    assert first.is_dir()
    assert local_copy("runs/a") == local_copy(local_copy("runs/a")), "a local path stays itself"
    for name in ("stage/metrics.jsonl", "gone", "lock", ".a.0123456789abcdef.partial"):
        (first / name).parent.mkdir(exist_ok=True)
        (first / name).write_text(f"old {name}")
    push(first)
    (first / "gone").unlink()
    (first / "stage/metrics.jsonl").write_text("new stage/metrics.jsonl")  # as long as before
    push(first)
    (bucket / "run/half").write_text("of a push that was killed")
    second = machine("two")
    assert {p.relative_to(second).as_posix(): p.read_text() for p in second.rglob("*") if p.is_file()} == {
        "stage/metrics.jsonl": "new stage/metrics.jsonl"
    }
    (second / "mine").write_text("that was never sent")
    machine("one")
    assert machine("two") == second
    assert not (second / "mine").exists()


def test_published_weights_are_found_in_a_store(bucket, machine):
    for role in ("compiler", "executor"):
        (bucket / "weights" / role).mkdir(parents=True)
        (bucket / "weights" / role / "model.safetensors").write_bytes(b"some bytes")
    machine("one")
    config = load("grpo_tpu")
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, weights="gs://bucket/weights"))
    assert (weights_of(config, "executor") / "model.safetensors").read_bytes() == b"some bytes"


@pytest.mark.parametrize("place", ["s3://bucket/run", "memory://run"])
def test_a_store_without_its_package_is_refused_with_the_packages(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependencyError, match=f"^{place}: expected a folder, .*pip install s3fs"):
        local_copy(place)


class Lost(Exception):
    """A machine that is gone."""


def test_a_stage_goes_on_elsewhere_to_the_numbers_of_a_straight_run(bucket, machine, tmp_path):
    def trained(folder, last=9):
        def step(state, number, _):
            if number > last:
                raise Lost
            state = {"x": state["x"] * 1.5 + number}
            return state, {"loss": state["x"].sum()}

        state = {"x": np.ones(3, np.float32)}
        return run_loop("grpo", folder, load("grpo_cpu"), state, step, num_steps=7, checkpoint_every=2)

    straight = trained(tmp_path / "straight")
    with pytest.raises(Lost):
        trained(machine("one"), last=4)
    folder = machine("two")
    assert [metrics["step"] for metrics in read_metrics(folder / "grpo")] == [0, 1, 2, 3]
    np.testing.assert_array_equal(trained(folder)["x"], straight["x"])
    losses = [[m["loss"] for m in read_metrics(one / "grpo")] for one in (folder, tmp_path / "straight")]
    assert losses[0] == losses[1]
    sent = {path.relative_to(bucket / "run/grpo") for path in (bucket / "run/grpo/checkpoints").rglob("*/_*")}
    assert {path.parts[1] for path in sent} == {"6", "7"}
