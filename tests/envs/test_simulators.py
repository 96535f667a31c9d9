"""Adapters to the real simulators, on stand-ins that follow their signatures; missing parts; dead processes."""

from __future__ import annotations

import ast
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import embodied_mem
from embodied_mem.envs import make
from embodied_mem.envs.process_env import CRASHED, NO_EPISODE
from embodied_mem.errors import DataNotFoundError, InvalidInputError, MissingDependencyError, SimulatorError


@pytest.fixture
def envs(checkouts, request):
    world, backend, options = request.param
    made = make(world, backend=backend, folder=getattr(checkouts, world), **options)
    yield made
    made.close()


def _alfred(**options):
    return pytest.param(("eb_alfred", "embodiedbench", {"resolution": 300} | options), id="eb_alfred")


def _habitat(**options):
    return pytest.param(("eb_habitat", "embodiedbench", {"resolution": 5} | options), id="eb_habitat")


def _partnr(**options):
    return pytest.param(("memento", "habitat", {"tasks": "val.json.gz"} | options), id="partnr")


@pytest.mark.parametrize("envs", [_alfred(num_envs=2)], indirect=True)
def test_eb_alfred(envs):
    observations, info = envs.reset(options={"task_indices": [2, 0]})
    assert observations == ["Your task is to: Take apple 2.", "Your task is to: Take apple 0."]
    assert list(info["goal"]) == ["Take apple 2.", "Take apple 0."]
    assert list(info["task_id"]) == ["base/2", "base/0"]
    assert info["admissible_commands"][0] == ("find a Apple", "pick up the Apple", "find a Apple_2")
    for image, episode in zip(info["images"], (3, 1)):
        assert (image.dtype, image.shape) == (np.uint8, (300, 300, 3))
        assert image[0, 0].tolist() == [episode, 0, 255]
    observations, rewards, terminations, truncations, info = envs.step(["find a Apple", "1"])
    assert observations == ["Last action executed successfully.", "Last action is invalid. Why?"]
    assert info["action_valid"].tolist() == [True, False]
    assert info["num_invalid"].tolist() == [0, 1]
    assert info["progress"].tolist() == [0.5, 0.5]
    assert info["program_reward"].tolist() == [0.25, 0.25]
    assert [image[0, 0, 1] for image in info["images"]] == [1, 1]
    _, rewards, terminations, truncations, info = envs.step([" pick up the Apple ", "dance"])
    assert (rewards.tolist(), terminations.tolist()) == ([1, 0], [True, False])
    assert not truncations.any()
    assert info["won"].tolist() == [True, False]
    assert info["images"][1][0, 0, 1] == 1  # an answer that is no action takes no step
    for expected in range(3, 11):
        _, _, terminations, _, info = envs.step(["find a Apple", "3"])
        assert info["num_invalid"].tolist() == [0, expected]
    assert terminations.tolist() == [True, True]
    assert info["progress"].tolist() == [1, 0]  # an episode that ends on an unusable answer
    observations, info = envs.reset(options={"reset_mask": np.array([False, True]), "task_indices": [0, 1]})
    assert list(info["goal"]) == ["Take apple 2.", "Take apple 1."]
    with pytest.raises(InvalidInputError, match="cannot be copied"):
        envs.snapshot(0)


@pytest.mark.parametrize("envs", [_alfred(num_envs=2), _habitat(num_envs=2)], indirect=True)
def test_gymnasiums_wrappers_take_simulators(envs):
    wrapped = DictInfoToList(RecordEpisodeStatistics(envs))
    observations, rows = wrapped.reset(seed=[3, 4])
    assert observations in wrapped.observation_space
    assert [row["images"].shape[2] for row in rows] == [3, 3]
    assert wrapped.action_space.sample() in wrapped.action_space
    observations, *_, rows = wrapped.step(["0", "dance"])
    assert observations in wrapped.observation_space
    assert [row["action_valid"] for row in rows] == [True, False]


@pytest.mark.parametrize("envs", [_alfred(max_steps=3), _habitat(max_steps=3)], indirect=True)
def test_limits_truncate_and_unusable_answers_take_no_step(envs):
    envs.reset()
    for action, truncated in (("0", False), ("dance", False), ("0", False), ("0", True)):
        _, _, terminations, truncations, _ = envs.step([action])
        assert (terminations[0], truncations[0]) == (False, truncated)


@pytest.mark.parametrize("envs", [_habitat()], indirect=True)
def test_eb_habitat(envs):
    assert envs.num_tasks == 6
    observations, info = envs.reset(options={"task_indices": [3]})
    assert observations == ["Your task is to: Move cup 3."]
    assert info["images"][0].shape == (5, 5, 3)
    observations, info = envs.reset(options={"task_indices": [1]})
    assert list(info["goal"]) == ["Move cup 1."]
    observations, _, _, _, info = envs.step(["pick up the cup"])
    assert observations == ["Last action is invalid."]
    assert (info["num_invalid"][0], info["action_valid"][0], info["images"][0][1:].max()) == (1, False, 1)
    _, rewards, terminations, _, info = envs.step(["place at the sofa"])
    assert (rewards[0], terminations[0], info["won"][0], info["progress"][0]) == (1, True, True, 1)


@pytest.mark.parametrize("envs", [_partnr()], indirect=True)
def test_partnr(envs):
    observations, info = envs.reset(options={"task_indices": [1]})
    assert observations == ["Task: Tidy room 1.\n\nFurniture: table of Tidy room 1."]
    assert list(info["task_id"]) == ["val.json.gz/1"]
    assert info["images"][0].shape == (4, 6, 3)  # of agent 0, without alpha
    tools = "Clean, DescribeObjectTool, Explore, Navigate"
    for action, text, valid in (
        ("Navigate[table_1]", "Successful execution of table_1!", True),
        ("DescribeObjectTool[cup_1]", "cup_1 is red.", True),
        ("FindObjectTool[cups]", f"FindObjectTool cannot be used here. Tools: {tools}", False),
        ("Fly[]", f"Fly cannot be used here. Tools: {tools}", False),
        ("walk", "Expected Name[arguments], got walk", False),
    ):
        observations, _, terminations, _, info = envs.step([action])
        assert (observations[0], info["action_valid"][0]) == (text, valid)
        assert info["progress"][0] == 0.5  # two simulator steps of four
        assert info["images"][0][1:].max() == 2
        assert not terminations[0]
    _, rewards, terminations, _, info = envs.step(["Thought: there.\nNavigate[chair_1]"])
    assert (info["won"][0], rewards[0], terminations[0]) == (True, 1, False)
    assert envs.step(["Done[]"])[2][0]
    observations, info = envs.reset(options={"task_indices": [0]})
    assert list(info["goal"]) == ["Tidy room 0."]
    assert not info["won"][0]


@pytest.mark.parametrize("envs", [_alfred(num_envs=2)], indirect=True)
def test_a_dead_process_marks_its_episode_and_is_replaced(envs, checkouts):
    envs.reset()
    lost = envs.simulators[0].process
    os.kill(lost.pid, signal.SIGKILL)
    observations, _, _, truncations, info = envs.step(["0", "0"])
    assert observations[0].startswith(CRASHED)
    assert observations[1] == "Last action executed successfully."
    assert info["crashed"].tolist() == [True, False] == truncations.tolist()
    data = checkouts.eb_alfred / "embodiedbench/envs/eb_alfred/data/json_2.1.0"
    data.rename(checkouts.eb_alfred / "elsewhere")  # so that the replacement cannot start
    with pytest.raises(DataNotFoundError, match=r"json_2\.1\.0"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.answers()[0] == [NO_EPISODE, "Last action executed successfully."]
    with pytest.raises(InvalidInputError, match="its reset failed"):
        envs.step(["0", "0"])
    (checkouts.eb_alfred / "elsewhere").rename(data)
    _, info = envs.reset(options={"reset_mask": np.array([True, False])})
    assert not info["crashed"].any()
    assert envs.simulators[0].process.pid != lost.pid


@pytest.mark.parametrize("envs", [_alfred()], indirect=True)
def test_an_error_inside_is_told_with_its_place(envs):
    envs.reset()
    simulator = envs.simulators[0]
    with pytest.raises(SimulatorError, match=r"(?s)assert self\._current_episode_num < .*AssertionError"):
        simulator.ask(do="reset", task=99, seed=0)
    envs.close()
    with pytest.raises(SimulatorError, match="was closed"):
        simulator.ask(do="reset", task=0, seed=0)


def test_processes_close_their_program_and_end_with_the_parent(checkouts, tmp_path):
    envs = make("eb_alfred", backend="embodiedbench", folder=checkouts.eb_alfred)
    envs.close()
    assert checkouts.closed.read_text() == "closed\n"
    parent = os.fork()
    if not parent:
        made = make("eb_alfred", backend="embodiedbench", folder=checkouts.eb_alfred)
        (tmp_path / "pid").write_text(str(made.simulators[0].process.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    worker = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 60
    while "worker.py" in _command(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert "worker.py" not in _command(worker)
    assert checkouts.closed.read_text() == "closed\n" * 2


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_bad_arguments_are_refused_without_a_process(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen", refused)
    for options, message in (
        ({"tasks": "spatial_relationship"}, "expected one of base, .*spatial, or ids"),
        ({"tasks": []}, "at least one"),
        ({"tasks": ["base/0", "long_horizon/1"]}, "of one set, got base, long_horizon"),
        ({"tasks": ["base"]}, r"tasks\[0\]: expected <set>/<number>, got 'base'"),
        ({"num_envs": 0}, "num_envs"),
        ({"max_steps": 0}, "max_steps"),
        ({"resolution": 299}, "resolution: expected >= 300, got 299"),
        ({"reach": "group"}, "expected options among tasks"),
        ({"backend": "thor"}, "backend: expected None or 'embodiedbench' for eb_alfred, got 'thor'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            make("eb_alfred", **{"backend": "embodiedbench"} | options)
    with pytest.raises(InvalidInputError, match="backend: expected None for alfworld, got 'habitat'"):
        make("alfworld", backend="habitat")


def test_a_task_or_interpreter_that_is_not_there_is_refused(checkouts, tmp_path):
    with pytest.raises(InvalidInputError, match="expected base/0 to base/2, got base/3"):
        make("eb_alfred", backend="embodiedbench", folder=checkouts.eb_alfred, tasks=["base/2", "base/3"])
    with pytest.raises(MissingDependencyError, match="interpreter cannot be started"):
        make("eb_alfred", backend="embodiedbench", python=str(tmp_path / "python"))


def test_what_runs_under_the_programs_pythons_is_old_python_and_imports_numpy_alone():
    package = Path(embodied_mem.__file__).parent
    files = [
        package / "envs" / "simulators" / f"{n}.py" for n in ("worker", "simulator_tools", "embodiedbench_program")
    ]
    files += sorted(package.glob("worlds/*/simulator_program.py"))
    assert len(files) == 6
    imported = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(), feature_version=(3, 8))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imported.add((node.names[0].name if isinstance(node, ast.Import) else node.module).split(".")[0])
    assert imported - sys.stdlib_module_names == {"numpy", "simulator_tools", "embodiedbench_program"}


def test_no_program_is_imported_here(checkouts, monkeypatch):
    monkeypatch.syspath_prepend(str(checkouts.eb_alfred))
    make("eb_alfred", backend="embodiedbench", folder=checkouts.eb_alfred).close()
    assert not {"embodiedbench", "habitat_llm"} & set(sys.modules)
