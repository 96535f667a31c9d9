"""Checkouts of the simulators' programs, for all tests of their adapters."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import simulator_checkouts


@pytest.fixture
def checkouts(tmp_path, monkeypatch):
    """`.eb_alfred`, `.eb_habitat` and `.memento`: the folder of each world's program; `.display`, an X socket."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STAND_IN_CLOSED", str(tmp_path / "closed"))
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    folder = simulator_checkouts.embodiedbench(tmp_path)
    with simulator_checkouts.screen(monkeypatch) as path:
        yield SimpleNamespace(
            eb_alfred=folder,
            eb_habitat=folder,
            memento=simulator_checkouts.partnr(tmp_path),
            display=path,
            closed=tmp_path / "closed",
        )
