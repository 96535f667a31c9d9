"""A world beside its simulator: equal where the native world plays the stand-in, different where it is made to err."""

from __future__ import annotations

import json

import eb_habitat_home as home
import numpy as np
import pytest
import simulator_checkouts

from embodied_mem import cli
from embodied_mem.envs import make
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.evaluation import parity
from embodied_mem.registry import load


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command line of a comparison of three tasks, whose simulator is the native world."""
    goals = [f"Move cup {place} to the sofa." for place in range(3)]
    episodes = [home.episode(id=f"base/{place:03d}", instruction=goal) for place, goal in enumerate(goals)]
    data = tmp_path / "data/eb_habitat"
    data.mkdir(parents=True)
    (data / "base.json").write_text(json.dumps({"episodes": episodes}))
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(data.parent))
    monkeypatch.setenv("STAND_IN_DATA", str(data))
    folder = simulator_checkouts.embodiedbench(tmp_path, goals=goals, native=True)
    return ["eb_habitat", "--tasks", "3", "--folder", str(folder), "--result", str(tmp_path / "report.json")]


def test_equal_worlds_are_equal_in_every_step(command, tmp_path, capsys):
    assert cli.main(["parity", *command]) == 0
    said = capsys.readouterr()
    assert "3/3 tasks" in said.err
    assert " left" not in said.err  # three tasks say nothing of the rest
    report = json.loads((tmp_path / "report.json").read_text())
    found = report["summary"]
    assert (found["tasks"], found["equal_tasks"], found["equal_instructions"]) == (3, 3, 3)
    assert found["steps_before_a_difference"] == found["steps"] > 9
    assert set(found["equal"].values()) == {found["steps"]}
    assert not all(step["native"]["valid"] for task in report["tasks"].values() for step in task["steps"])
    assert (tmp_path / "report.md").read_text() in said.out
    assert not (tmp_path / "report.json.tasks.jsonl").exists()


def test_a_difference_is_found_where_it_is(command, monkeypatch):
    monkeypatch.setenv("STAND_IN_DIFFERS", "pick up the cup")
    report = parity.main(command)
    found = report["summary"]
    assert found["equal_tasks"] == 0
    assert found["first_differences"] == [["pick", "feedback, valid, progress", 3]] or all(
        kind == "pick" and aspects.startswith("feedback, valid") for kind, aspects, _ in found["first_differences"]
    )
    for task in report["tasks"].values():
        first = next(step for step in task["steps"] if step["differs"])
        assert first["action"] == "pick up the cup"
        assert (first["native"]["valid"], first["simulator"]["valid"]) == (True, False)
        assert first["simulator"]["feedback"] == "Last action is invalid. It stands badly."
    assert f"step {1 + task['steps'].index(first)}, `pick up the cup`: feedback " in parity.readable(report)


def test_a_crash_is_told_and_the_next_task_is_played(command, monkeypatch):
    monkeypatch.setenv("STAND_IN_NEVER_STARTS", "0")
    monkeypatch.setenv("STAND_IN_DIES", "1")
    report = parity.main(command)
    assert (report["summary"]["crashed_tasks"], report["summary"]["equal_tasks"]) == (2, 1)
    assert report["tasks"]["base/0"]["crash"].endswith("RuntimeError: no navmesh\n")
    assert "SIGKILL" in report["tasks"]["base/1"]["crash"]
    assert report["tasks"]["base/2"]["steps"][-1]["simulator"]["won"]


def test_a_command_that_was_stopped_goes_on(command, monkeypatch, tmp_path):
    played = []

    def compare(native, simulator, world, number, seed):
        if number == 2 and played == [0, 1]:
            played.append("stopped")
            raise KeyboardInterrupt
        played.append(number)
        return real(native, simulator, world, number, seed)

    real = parity.compare
    monkeypatch.setattr(parity, "compare", compare)
    with pytest.raises(KeyboardInterrupt):
        parity.main(command)
    assert not (tmp_path / "report.json").exists()
    assert parity.main(command)["summary"]["tasks"] == 3
    assert played == [0, 1, "stopped", 2]


def test_other_instructions_are_refused_before_anything_is_compared(command, tmp_path):
    path = tmp_path / "data/eb_habitat/base.json"
    path.write_text(path.read_text().replace("Move cup 1 ", "Move plate 1 "))
    with pytest.raises(GameFileError, match=r"base/1: the program's file says 'Move cup 1 to the sofa\.'"):
        parity.main(command)


@pytest.mark.parametrize("world", ["eb_alfred", "eb_habitat"])
def test_what_is_played_reaches_the_goal_by_way_of_mistakes(world):
    part = load(world, "parity")
    try:
        envs = make(world, tasks="base", **part.options)
    except DataNotFoundError as error:
        pytest.skip(str(error))
    refused = 0
    for place in range(0, 50, 7):
        envs.reset(options={"task_indices": [place]})
        actions = part.actions(envs.env(0), np.random.default_rng([0, place]))
        assert actions == part.actions(envs.env(0), np.random.default_rng([0, place]))
        for action in actions:
            *_, info = envs.step([action])
        refused += int(info["num_invalid"][0])
        assert info["won"][0], (place, actions)
    assert refused > 5
