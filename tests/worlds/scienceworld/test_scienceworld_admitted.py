"""An admitted task is played natively by `make`: without a Java process, with snapshots."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import embodied_mem
from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.scienceworld import beginnings
from embodied_mem.worlds.scienceworld.beginnings import is_native

pytest.importorskip("scienceworld", reason='ScienceWorld is not installed: pip install "embodied_mem[scienceworld]"')

PLACES = [
    {"k": "universe", "n": "universe", "f": "bo"},
    {"k": "room", "n": "kitchen", "f": "bo", "p": 0},
    {"k": "agent", "n": "agent", "f": "", "p": 1},
    {"k": "inventory", "n": "inventory", "f": "bo", "p": 2},
    {"k": "box", "n": "red box", "f": "bom", "p": 1},
    {"k": "plant", "n": "pea plant", "f": "bom", "p": 1, "stage": 3},
]
BEGINNING = {"id": "find-plant/3", "goal": "Find a plant.", "teleports": False, "things": PLACES}
BEGINNING |= {"focus": ["plant"], "box": 4, "place": 1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBODIED_MEM_CACHE", str(tmp_path))
    monkeypatch.setattr(beginnings, "Simulator", None)  # a process would fail
    (tmp_path / "scienceworld").mkdir()
    (tmp_path / "scienceworld/find-plant_3.2.json.gz").write_bytes(gzip.compress(json.dumps(BEGINNING).encode()))
    return tmp_path


def test_an_admitted_task_is_played_without_a_process(folder: Path) -> None:
    envs = embodied_mem.envs.make("scienceworld", tasks=["find-plant/3"], num_envs=2)
    observations, info = envs.reset()
    assert observations[0].startswith("This room is called the kitchen.")
    assert observations[0].endswith("Find a plant.")
    assert info["native"].tolist() == [True, True]
    assert "focus on red box" in info["admissible_commands"][0]
    total = np.zeros(2)
    for command in ("wait1", "focus on pea plant", "pick up pea plant"):
        total += envs.step([command, "look around"])[1]
    assert [envs.subgoals(0), envs.subgoals(1)] == [(1, 2), (0, 2)]
    snapshot = envs.snapshot(0)
    _, rewards, terminations, _, info = envs.step(["move pea plant to red box", "focus on red box"])
    assert terminations.tolist() == [True, True]
    assert info["score"].tolist() == [100, -100]
    assert (total + rewards).tolist() == pytest.approx([1.0, -1.0])
    with pytest.raises(InvalidInputError, match="snapshot"):
        envs.restore(1, (1, "", ""))
    envs.restore(1, snapshot)
    envs.step(["", "move pea plant to red box"])
    assert envs.answers()[1]["won"].tolist() == [True, True]
    envs.close()


def test_other_tasks_and_simplifications_are_the_originals() -> None:
    assert is_native("find-plant")
    assert is_native("lifespan-shortest-lived")
    assert is_native("inclined-plane-determine-angle")
    assert not is_native("find-plant", "easy")
    assert not is_native("boil")


def test_an_env_of_the_original_has_no_snapshot(folder: Path) -> None:
    envs = embodied_mem.envs.make("scienceworld", tasks=["find-plant/3"])
    with pytest.raises(InvalidInputError, match="reset"):
        envs.snapshot(0)
    envs.close()
