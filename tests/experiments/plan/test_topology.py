"""The programs of a small run, compiled for a TPU slice without a chip."""

import dataclasses
import importlib.util
import itertools
import os

import jax
import pytest
from jax.experimental import topologies

from embodied_mem.errors import InvalidInputError, MissingDependencyError
from embodied_mem.training.config import MeshConfig, ModelConfig
from experiments.configs import cli, load
from experiments.plan.xla_memory import compiled_memory, tpu_devices

WITHOUT = "pip install -e '.[tpu]'"
IS_THERE = importlib.util.find_spec("libtpu") is not None


@pytest.mark.skipif(IS_THERE, reason="libtpu is installed")
def test_without_the_extra_the_command_that_installs_it_is_named():
    with pytest.raises(MissingDependencyError, match="libtpu is missing: pip install"):
        tpu_devices("v5e:2x2")


def test_a_slice_that_the_compiler_does_not_know_is_refused(monkeypatch):
    def refuse(topology, platform):
        raise jax.errors.JaxRuntimeError("not divisible")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(os, "environ", {})  # what is set for a slice ends with the test
    monkeypatch.setattr(topologies, "get_topology_desc", refuse)
    with pytest.raises(InvalidInputError, match="--topology: expected a slice such as v5e:4x4, got 'v5e:4x5': not div"):
        tpu_devices("v5e:4x5")


@pytest.mark.parametrize("options", [["--compile"], ["--plan", "--topology", "v5e:4x4"]])
def test_options_of_a_plan_start_no_run(options):
    with pytest.raises(InvalidInputError, match="--compile, --topology: expected --plan --compile"):
        cli(["--config=grpo_cpu", *options], "")


@pytest.mark.slow
@pytest.mark.skipif(not IS_THERE, reason=WITHOUT)
def test_a_tpus_token_loop_copies_no_weight():
    """Layers stay stacked there; the same loop copies seven matrices of each on a CPU (`test_decode_program`)."""
    devices = tpu_devices("v5e:2x2")
    assert [device.platform for device in devices] == ["tpu"] * 4
    model = ModelConfig(compiler="tiny", executor="tiny", lora=True, max_compiler_tokens=32, max_action_tokens=16)
    base, mesh = load("grpo_cpu"), MeshConfig(1, 2, 2, sampling_tensor=2)
    grpo = dataclasses.replace(base.grpo, num_tasks=2, group_size=7)  # no activation has as many numbers as a weight
    config = dataclasses.replace(base, model=model, mesh=mesh, grpo=grpo)
    lengths = {"compiler_length": 256, "executor_length": 128}
    read, written = itertools.islice(compiled_memory(config, **lengths, devices=devices, stages=["rollout"]), 2)
    assert (read.name, read.copies) == ("prefill compiler", None)
    assert (written.name, written.copies) == ("decode compiler", 0)
    assert 0 <= written.temporaries < written.arguments, "no second copy of weights and cache"
