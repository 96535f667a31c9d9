"""The command that plays lives of tasks: its table, its report, and that the same command gives the same outcomes."""

from __future__ import annotations

import dataclasses
import json

import pytest
from pages import FENCE, ROOT

from embodied_mem import registry
from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.evaluation.evaluate import parse
from embodied_mem.types import Episode, Step
from experiments.evaluate import main

ARGUMENTS = ["--tasks", "generated", "--num_tasks", "8", "--agents", "full", "no_critic", "--max_steps", "40"]


def test_report_and_table(tmp_path, capsys):
    report = main([*ARGUMENTS, "--json", "--result", str(tmp_path / "results" / "report.json")])
    out = capsys.readouterr().out
    assert json.loads(out.strip().splitlines()[-1])["num_tasks"] == 8
    assert out.count("| full |") == out.count("| no_critic |") == 2
    assert json.loads((tmp_path / "results" / "report.json").read_text()) == report
    for name, runs in report["agents"].items():
        for run, row in enumerate(runs):
            played = [e for e in episodes_of(report) if (e.agent, e.run) == (name, run + 1)]
            assert row["success"] == sum(e.won for e in played) / 8
            assert row["steps"] == sum(e.steps for e in played) / 8
            assert row["interval"][0] <= row["success"] <= row["interval"][1]
            assert row["memory_ms_per_step"] > 0
            assert ("steps_difference_to_full" in row) == (name == "no_critic")
            assert ("steps_difference_to_first_run" in row) == (run == 1)
    full, other = (report["agents"][name][0]["steps"] for name in ("full", "no_critic"))
    assert report["agents"]["no_critic"][0]["steps_difference_to_full"][0] == pytest.approx(other - full)
    assert report["planner"] == "rules"
    again = main(["--config=alfworld", *ARGUMENTS])
    first, second = ([dataclasses.replace(e, milliseconds=0) for e in episodes_of(one)] for one in (report, again))
    assert first == second


def test_lives_share_the_tasks():
    report = main(["--tasks", "generated", "--num_tasks", "8", "--agents", "full", "--lives", "3", "--repeat", "1"])
    assert len({episode.task for episode in episodes_of(report)}) == len(episodes_of(report)) == 8


def test_wrong_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="--lives: expected >= 1"):
        main(["--agents=full", "--lives", "0"])
    with pytest.raises(InvalidInputError, match="--deliveries: expected none beside --agents"):
        main(["--agents=full", "--deliveries", "none"])
    with pytest.raises(InvalidInputError, match=r"--config: expected one of alfworld, .*, got 'robothor'"):
        main(["--config=robothor"])


def test_a_method_in_a_file_is_played_beside_others(tmp_path, monkeypatch):
    """The example of docs/baselines.md; with models it is played in `tests/test_wheel.py`."""
    page = (ROOT / "docs/baselines.md").read_text()
    code = next(code for language, code in FENCE.findall(page) if "class LastGoals" in code)
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_registered", {})
    config = parse(["--method", "mine.py:LastGoals"])[1]
    assert config.deliveries == ("none", "static", "LastGoals", "compiled")
    config = parse(["--method", "mine.py:LastGoals", "--deliveries", "LastGoals_steps"])[1]
    assert config.deliveries == ("LastGoals_steps",)
    episodes = [Episode(f"task {n}", f"goal {n}", (Step("room", "look"),), n != 1, "") for n in range(3)]
    assert make_delivery("LastGoals", executor=None, episodes=episodes).method.recall("", "") == ["goal 2", "goal 0"]
    for place, expected in (
        ("mine.py", "expected FILE.py:CLASS, got 'mine.py'"),
        ("mine.py:Others", "expected 'Others' in it"),
        ("mine.py:MemoryMethod.observe", "expected 'MemoryMethod.observe' in it"),
        ("other.py:Mine", r"expected a Python file, got .*other\.py"),
    ):
        with pytest.raises(InvalidInputError, match=expected):
            parse(["--method", place])
