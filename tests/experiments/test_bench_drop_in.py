"""The benchmark of verl-agent's rollout, small: the original in a process per game answers what our envs answer."""

from __future__ import annotations

import argparse

import pytest

from embodied_mem.worlds.alfworld.generator import generate, write
from experiments.benchmarks import drop_in

pytestmark = pytest.mark.slow


def test_the_original_in_processes_answers_as_our_envs_do(tmp_path, monkeypatch):
    pytest.importorskip("alfworld", reason="ALFWorld is not installed: pip install alfworld==0.4.2 --no-deps")
    write(generate(num_games=4, seed=2), tmp_path)
    monkeypatch.setattr(drop_in, "MAX_STEPS", 4)
    options = argparse.Namespace(splits=[str(tmp_path)], episodes=16, actors=2, repeats=1, seed=5)
    result = drop_in.bench_drop_in(options)
    assert result["mismatches"] == 0
    assert (result["games"], result["steps"], result["original_steps"]) == (4, 64, 8)
    assert result["ratio"] > 1
    assert result["original_scaled_s"] == pytest.approx(8 * result["original_rollout_s"][0], abs=1)

    answers_of = drop_in._answers_of
    monkeypatch.setattr(drop_in, "_answers_of", lambda *args: [(f"{one[0]} ", *one[1:]) for one in answers_of(*args)])
    assert (
        drop_in.bench_drop_in(options)["mismatches"] == 2 * 5
    )  # a changed text is seen, at the start and in each step
