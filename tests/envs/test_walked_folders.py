"""Walks that envs of a process share: done again after a change, and only then."""

from __future__ import annotations

import os
import time

import pytest

from embodied_mem.envs import walked_folders
from embodied_mem.envs.walked_folders import walk


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "task" / "trial").mkdir(parents=True)
    (tmp_path / "task" / "trial" / "game").touch()
    return tmp_path


def test_a_quiet_folder_is_walked_once(folder, monkeypatch):
    monkeypatch.setattr(walked_folders, "QUIET_S", -1.0)
    rows = walk(folder)
    assert [*rows] == [(path, tuple(names)) for path, _, names in os.walk(folder, topdown=False)]
    monkeypatch.setattr(os, "walk", None)
    assert walk(folder) is rows
    monkeypatch.setattr(walked_folders, "_CHECK_S", 0.0)  # looked at again, and found to be as it was
    assert walk(str(folder)) is rows


@pytest.mark.parametrize("change", ["add", "remove", "nested"])
def test_a_change_is_seen(folder, monkeypatch, change):
    monkeypatch.setattr(walked_folders, "QUIET_S", -1.0)
    monkeypatch.setattr(walked_folders, "_CHECK_S", 0.0)
    before = walk(folder)
    time.sleep(0.02)  # a tick of the file system's clock
    if change == "add":
        (folder / "task" / "trial" / "other").touch()
    elif change == "remove":
        (folder / "task" / "trial" / "game").unlink()
    else:
        (folder / "task" / "second").mkdir()
    assert walk(folder) != before
    assert [*walk(folder)] == [(path, tuple(names)) for path, _, names in os.walk(folder, topdown=False)]


def test_a_folder_that_has_just_changed_is_walked_each_time(folder):
    assert walk(folder) == walk(folder)
    assert walk(folder) is not walk(folder)
