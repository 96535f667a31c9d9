"""Metrics and schedules: what is on disk after a restart, which rate is used."""

import dataclasses
import json
import types

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from embodied_mem.errors import CheckpointError, DivergedError, InvalidInputError
from embodied_mem.training.costs import costs
from embodied_mem.training.loop import MetricsWriter, read_metrics
from embodied_mem.training.optimizers import cosine
from experiments.configs import grpo_cpu

pytestmark = pytest.mark.usefixtures("unoptimised")


def _write(directory, steps, next_step=0):
    with MetricsWriter(directory, next_step=next_step) as metrics:
        for step in steps:
            metrics.write(step, {"loss": step / 10})


def test_resumed_lines_equal_straight_lines(tmp_path):
    _write(tmp_path / "straight", range(10))
    _write(tmp_path / "resumed", range(7))  # killed after step 6, in the middle of the next line
    with open(tmp_path / "resumed" / "metrics.jsonl", "a") as file:
        file.write('{"step": 7, "lo')
    _write(tmp_path / "resumed", range(4, 10), next_step=4)  # the checkpoint was after step 3
    straight, resumed = ((tmp_path / run / "metrics.jsonl").read_bytes() for run in ("straight", "resumed"))
    assert resumed == straight
    assert [record["step"] for record in read_metrics(tmp_path / "resumed")] == list(range(10))
    _write(tmp_path / "resumed", range(2))  # from the start again: nothing of before is left
    assert [record["step"] for record in read_metrics(tmp_path / "resumed")] == [0, 1]


def test_a_line_is_on_disk_as_soon_as_it_is_written(tmp_path):
    metrics = MetricsWriter(tmp_path)
    metrics.write(0, {"loss": jnp.float32(0.5), "count": np.int64(3), "note": "warm"})
    assert read_metrics(tmp_path) == [{"step": 0, "loss": 0.5, "count": 3, "note": "warm"}]
    with pytest.raises(InvalidInputError, match="step 0 after step 0"):
        metrics.write(0, {"loss": 1.0})
    with pytest.raises(InvalidInputError, match="metric 'loss': expected a number, got ndarray"):
        metrics.write(1, {"loss": np.zeros(2)})
    metrics.close()


@pytest.mark.parametrize("line", ["{", "3", '{"loss": 1}', '{"step": "1"}', "\xff"])
def test_a_damaged_line_is_named(tmp_path, line):
    _write(tmp_path, range(2))
    content = (tmp_path / "metrics.jsonl").read_bytes()
    (tmp_path / "metrics.jsonl").write_bytes(content + line.encode("latin-1") + b"\n")
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl:3: expected a JSON object with a step"):
        read_metrics(tmp_path)


def test_tensorboard_gets_the_same_numbers(tmp_path):
    _write(tmp_path, range(3))
    (events,) = tmp_path.glob("events.out.tfevents*")
    content = events.read_bytes()
    assert content.count(b"loss") >= 3
    assert np.float32(0.2).tobytes() in content  # a scalar is a little-endian float32 in the event


@pytest.mark.parametrize("name", ["loss", "action_loss", "grad_norm"])
def test_non_finite_loss_stops_the_run_and_names_the_step(tmp_path, name):
    with MetricsWriter(tmp_path, tensorboard=False) as metrics:
        metrics.write(11, {name: 1.0, "reward_mean": float("nan")})  # no rewards yet is not a failure
        with pytest.raises(DivergedError, match=rf"{name} is nan at step 12"):
            metrics.write(12, {name: jnp.nan})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail) for line in lines][1] == {"step": 12, name: None}


def test_costs_are_of_the_stages_and_tasks_that_a_run_has():
    small = grpo_cpu.config()
    tasks = types.SimpleNamespace(num_train=8, num_valid=5, num_test=3)
    assert list(costs(small, tasks)) == [
        "samples", "executor", "correction of the executor", "compiler", "correction of the compiler", "GRPO", "table"
    ]  # fmt: skip
    without = dataclasses.replace(small, grpo=dataclasses.replace(small.grpo, steps=0))
    assert "GRPO" not in costs(without, tasks)
    everything = dataclasses.replace(small.evaluation, num_tasks=0, tasks="valid_seen")
    twice = costs(dataclasses.replace(small, evaluation=everything), tasks)["table"]
    once = costs(dataclasses.replace(without, evaluation=everything), tasks)["table"]
    assert twice / once == 1 + 5 / (3 * len(everything.deliveries)), "the validation tasks are scored after GRPO, too"
    assert "table" not in costs(without, None)


def test_cosine_with_warmup_is_the_textbook_one_without_its_zero_step():
    schedule = cosine(peak=3e-4, final=3e-5, num_steps=200, warmup=0.05)
    # optax rises 0, 1/10, ..., reaching the peak at count 10; ours skips the zero: count i is its count i + 1.
    textbook = optax.warmup_cosine_decay_schedule(0.0, 3e-4, warmup_steps=10, decay_steps=199, end_value=3e-5)
    np.testing.assert_allclose([schedule(i) for i in range(10)], [textbook(i + 1) for i in range(10)], rtol=1e-6)
    np.testing.assert_allclose([schedule(i) for i in range(10, 205)], [textbook(i) for i in range(10, 205)], rtol=1e-5)
    assert schedule(0) > 0


def test_cosine_without_warmup_spans_its_two_rates():
    schedule = cosine(peak=1e-6, final=1e-7, num_steps=500)
    np.testing.assert_allclose([schedule(0), schedule(499), schedule(600)], [1e-6, 1e-7, 1e-7], rtol=1e-6)
    # Half way a cosine is at the mean of both ends; a linear fall over 499 would be there too, a quarter way it is not.
    np.testing.assert_allclose(schedule(499 / 4), 1e-7 + 9e-7 * (1 + np.sqrt(0.5)) / 2, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="final <= peak"):
        cosine(peak=1e-7, final=1e-6, num_steps=10)
