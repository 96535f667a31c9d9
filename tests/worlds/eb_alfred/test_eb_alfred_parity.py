"""EB-ALFRED beside its simulator, which the native world plays: words, limits and feedback pass through unchanged."""

from __future__ import annotations

import shutil

import pytest
import simulator_checkouts

from embodied_mem.errors import DataNotFoundError
from embodied_mem.evaluation import parity
from embodied_mem.worlds.eb_alfred.env import data_root


def test_equal_worlds_are_equal_in_every_step(tmp_path, monkeypatch):
    try:
        root = data_root()
    except DataNotFoundError as error:
        pytest.skip(str(error))
    folder = simulator_checkouts.embodiedbench(tmp_path, native=True)
    shutil.copy(root / "splits.json", folder / "embodiedbench/envs/eb_alfred/data/splits/splits.json")
    for name, value in (("STAND_IN_DATA", root), ("STAND_IN_CLOSED", tmp_path / "closed"), ("HOME", tmp_path)):
        monkeypatch.setenv(name, str(value))
    with simulator_checkouts.screen(monkeypatch):
        report = parity.main(
            ["eb_alfred", "--tasks", "4", "--folder", str(folder), "--result", str(tmp_path / "report.json")]
        )
    found = report["summary"]
    assert (found["equal_tasks"], found["steps_before_a_difference"]) == (4, found["steps"])
    steps = [step["simulator"] for task in report["tasks"].values() for step in task["steps"]]
    assert sum(step["won"] for step in steps) == 4
    assert not all(step["valid"] for step in steps)
