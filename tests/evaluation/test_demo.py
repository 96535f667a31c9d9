"""The demonstration: two robots that differ in memory alone, on tasks made without data, and the table at the end."""

from __future__ import annotations

import io

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation import demo


def test_the_robots_differ_by_what_they_remember_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))  # no data
    output = io.StringIO()
    results = demo.demo(2, 4, 2, output)
    assert results.shape == (2, 4, 2, 2)
    assert np.array_equal(results[:, 0, 0], results[:, 0, 1])  # nothing to remember yet
    assert results[..., 1, 1].mean() < results[..., 0, 1].mean()
    assert np.array_equal(results, demo.demo(2, 4, 2, io.StringIO()))
    said = output.getvalue()
    assert said.index("Home 2") < said.index("Home 3")
    assert sum(line.startswith("      go to ") for line in said.splitlines()) >= 2  # the last task's commands


def test_the_table_states_differences_and_their_interval():
    """20 homes of 2 tasks: solved 1/2 and 1, steps 30 and 20 in every home."""
    results = np.empty((20, 2, 2, 2))
    results[:, 0, 0], results[:, 1, 0] = (1, 10), (0, 50)
    results[:, :, 1] = (1, 20)
    said = " ".join(demo.table(results).split())
    assert "without memory 50 % [35, 65] 30.0 with memory 100 % [91, 100] 20.0" in said
    assert "over 20 homes" in said
    few = " ".join(demo.table(results[:2]).split())
    assert "over 4 tasks" in few
    assert "--homes 20" in few
    assert " ".join(demo.gain(results).split()) == (
        "With memory the robot solved 20 more of 40 tasks (+50 [+50, +50] points) and changed its steps per task by "
        "-10.0 [-10.0, -10.0], which is 33 % less."
    )
    assert "by -10.0 [-30.0, +10.0]" in demo.gain(results[:2])


def test_success_shows_what_memory_is_worth(monkeypatch, tmp_path):
    """The limit of steps lets the robot without memory fail."""
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))  # no data
    won = demo.demo(4, 12, 0, io.StringIO())[..., 0]
    assert won[..., 1].sum() >= won[..., 0].sum() + 3


def test_numbers_out_of_range_are_refused():
    with pytest.raises(InvalidInputError, match="--homes: expected >= 1, got 0"):
        demo.main(["--homes", "0"])
