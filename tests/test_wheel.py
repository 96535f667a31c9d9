"""What an installed wheel does without `experiments/`: its files alone, in a folder of their own, run every command."""

from __future__ import annotations

import ast
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from pages import FENCE, ROOT
from quick_programs import flags

from embodied_mem.memory import Experiences

pytestmark = pytest.mark.slow

SCRIPT = """
import importlib.util, sys, embodied_mem
from embodied_mem import registry
from embodied_mem.cli import main

assert embodied_mem.__file__.startswith(sys.argv[1]), embodied_mem.__file__
assert importlib.util.find_spec("experiments") is None
for command in (["data"], ["doctor"], ["demo", "--homes", "1"], ["play", "alfworld", "--tasks", "generated"]):
    assert main(command) == 0, command
main(["evaluate", "--agents", "full", "--tasks", "generated", "--num_tasks", "1", "--repeat", "1"])
for name in registry.BUILT_IN:  # every part that a card names
    card = registry.card(name)
    for part in registry.PARTS:
        if getattr(card, part):
            assert registry.load(name, part) is not None, (name, part)
for command in (["evaluate", "--help"], ["parity", "--help"], ["memory", "--help"], ["view", "--help"]):
    try:
        main(command)
    except SystemExit as end:
        assert not end.code, command
from embodied_mem.worlds.alfworld.compat import AlfredTWEnv, BatchEnv, get_environment
from embodied_mem.worlds.memento.agent.react import ReActAgent
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.serve.tools import call
print("all commands ran")
"""
PLAYED = """
from embodied_mem.memory import LifelongMemory, Scope

observation = "You are in a room. Looking quickly around you, you see a cabinet 1, a desk 1, and a fridge 1."
memory = LifelongMemory.open("memory/ann", Scope(user="ann"))
memory.begin_task("task 1", "put a mug in cabinet.", observation)
memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.")
memory.observe("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
memory.observe("go to cabinet 1", "You arrive at cabinet 1. On the cabinet 1, you see nothing.")
memory.observe("move mug 1 to cabinet 1", "You move the mug 1 to the cabinet 1.")
memory.end_task(won=True)
memory.tell("My sister gave me the mug.")
memory.begin_task("task 2", "put a mug in fridge.", observation)
"""
SERVERS = {
    # Over stdio it ends with its input.
    "mcp": "from embodied_mem.serve.mcp import main; sys.exit(main(['memory', '--user', 'ann']))",
    "openenv": "from embodied_mem.serve.openenv import app; assert app('alfworld').routes",
    "langgraph": "from embodied_mem.serve.langgraph import MemoryBaseStore; MemoryBaseStore('store')",
    "verifiers": "from embodied_mem.serve.verifiers import WorldTaskset",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> pathlib.Path:
    """A folder with the files that a wheel has: modules, the package data of pyproject.toml, weights of setup.py."""
    site, package = tmp_path_factory.mktemp("site"), ROOT / "embodied_mem"
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["embodied_mem"]
    for path in {path for pattern in ("**/*.py", "_native*.so", *data) for path in package.glob(pattern)}:
        target = site / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path) if path.suffix == ".so" else shutil.copyfile(path, target)
    for name in ast.literal_eval(re.search(r"^WEIGHTS = (.*)", (ROOT / "setup.py").read_text(), re.MULTILINE)[1]):
        shutil.copytree(ROOT / "experiments" / "weights" / name, site / "embodied_mem" / "weights" / name)
    return site


def _run(installed: pathlib.Path, arguments: list[str], cwd: pathlib.Path, said: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags()}
    command = [sys.executable, "-P", *arguments]
    result = subprocess.run(command, cwd=cwd, env=environment, input=said, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    return result.stdout


def test_every_command_runs(installed, tmp_path):
    assert _run(installed, ["-c", SCRIPT, str(installed)], tmp_path, "look\n/quit\n").endswith("all commands ran\n")


def test_shipped_weights_and_a_method_of_ones_own_are_scored(installed, tmp_path):
    page = (ROOT / "docs/baselines.md").read_text()
    code = next(code for language, code in FENCE.findall(page) if "class LastGoals" in code)
    (tmp_path / "mine.py").write_text(code)
    Experiences().save(tmp_path / "bank.json")
    command = ["-m", "embodied_mem.cli", "evaluate", "--weights", "habits", "--method", "mine.py:LastGoals"]
    command += ["--deliveries", "LastGoals", "compiled", "--bank_file", "bank.json", "--num_tasks", "1"]
    out = _run(installed, [*command, "--seeds", "0", "--batch_size", "1", "--max_steps", "2"], tmp_path)
    assert out.count("| LastGoals (rule extraction) |") == out.count("| compiled |") == 1


@pytest.mark.parametrize("name", SERVERS)
def test_servers_start(installed, tmp_path, name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: pip install -e '.[{name}]'")
    _run(installed, ["-c", f"import sys; {SERVERS[name]}"], tmp_path)


def test_readmes_lines_guide_by_weights_of_the_wheel(installed, tmp_path):
    """At a step of a second task, whose thing was found in the first."""
    [lines] = [code for _, code in FENCE.findall((ROOT / "README.md").read_text()) if "compiler.guide(" in code]
    (tmp_path / "lines.py").write_text(PLAYED + lines)
    said = _run(installed, ["lines.py"], tmp_path).splitlines()
    assert said[0] == "do: find mug in desk 1"
    assert any(line.startswith("from ") and "mug was in desk 1" in line for line in said)
    assert any(line.startswith("withheld ") and "sister" in line for line in said)


def test_what_is_in_a_clone_says_so(installed, tmp_path):
    for words, name in (
        (["--config=memento"], "the benchmark of memento"),
        (["--deliveries", "mem0_2"], "mem0_2"),
        (["--agents", "voyager"], "voyager"),
    ):
        command = [sys.executable, "-P", "-m", "embodied_mem.cli", "evaluate", *words]
        environment = {**os.environ, "PYTHONPATH": str(installed)}
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode != 0
        assert f"{name} is in a clone of the repository only" in result.stderr
