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
    assert "a task by -10.0 [-10.0, -10.0], -33 %, and the share solved by +50 [+50, +50] points" in said
    assert "over 20 homes" in said
    few = " ".join(demo.table(results[:2]).split())
    assert "a task by -10.0 [-30.0, +10.0]" in few
    assert "over 4 tasks" in few
    assert "--homes 20" in few


def test_numbers_out_of_range_are_refused():
    with pytest.raises(InvalidInputError, match="--homes: expected >= 1, got 0"):
        demo.main(["--homes", "0"])
