"""The table of the papers' parts: each command is one that its program would take."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import sys

import pytest
from pages import ROOT

from embodied_mem.evaluation.evaluate import parse
from experiments.configs import cli
from experiments.registered import register_all

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.count(" | ") == 2]
CELLS = {command for _, command, _ in ROWS if command.startswith("`")}
COMMANDS = sorted(
    re.sub(r"^(evaluate|train) ", r"python experiments/\1.py ", command.strip("`")) for command in CELLS
) + re.findall(r"^python .*$", PAGE, re.MULTILINE)
STATES = ("scored", "small models", "tested", "not run", "absent")
PROGRAMS = {"experiments/evaluate.py": parse, "experiments/train.py": lambda words: cli(words, "")}


@functools.cache
def options_of(*program: str) -> set[str]:
    """The options in a program's help."""
    command = [sys.executable, *(("-m", "embodied_mem.cli") if program[0] == "embodied-mem" else program[:1])]
    run = subprocess.run([*command, *program[1:], "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(re.findall(r"--[\w-]+", run.stdout))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program_takes_the_command(command, tmp_path):
    register_all()
    file = tmp_path / "model.gguf"
    file.touch()
    words = [{"FOLDER": str(tmp_path), "FILE": str(file)}.get(word, word) for word in shlex.split(command)]
    if words[0] == "python" and words[1] in PROGRAMS:
        PROGRAMS[words[1]](words[2:])
        return
    program = words[:2] if words[0] == "embodied-mem" else words[1:2]
    assert {word for word in words if word.startswith("--")} <= options_of(*program)


def test_every_part_has_a_state():
    assert len(ROWS) > 35
    assert [row for row in ROWS if not row[2].startswith((*STATES, "state"))] == []
    assert all(bool(command) == (state != "absent") for _, command, state in ROWS)


@pytest.mark.parametrize("wrong", ["--config=alfworld --deliverys none", "--config=memento --tables nothing"])
def test_a_wrong_command_is_noticed(wrong):
    register_all()
    with pytest.raises(SystemExit):
        parse(wrong.split())
