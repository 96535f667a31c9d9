"""The table, its JSON form, the report's files, and the command line of the scoring script."""

import json
import types
from pathlib import Path

import numpy as np
import pytest

from embodied_mem.agents.deliveries import Delivered, check_names, delivery_names, make_delivery
from embodied_mem.agents.rollout import Trajectory
from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.evaluation import score
from embodied_mem.evaluation.benchmark import EpisodeResult
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.evaluation.report import (
    manifest,
    pack_episodes,
    read_result,
    rows_table,
    summary,
    table,
    write_report,
    write_result,
)
from embodied_mem.evaluation.score import Score, result_of, score_deliveries
from embodied_mem.memory import Experiences
from embodied_mem.parallel.resume import Finished
from embodied_mem.training.config import MemoryConfig
from embodied_mem.types import Episode
from experiments import evaluate

FACTS = {"command": "python evaluate.py", "commit": "abc"}


def trajectory(task, seed, won, num_steps, texts=(), tokens=0):
    """`num_steps` steps of 100 + 4 executor tokens, 0.5 + 1.5 ms of the executor and 3 ms of the compiler each."""
    records = [Compiled(parse_output(t), [1], np.array([2]), np.array([0.0])) for t in texts] or [None] * num_steps
    delivered = [Delivered(hint=r.output.guidance if r else "", tokens=tokens, record=r) for r in records]
    episode = Episode(f"t{task}", "g", (), won)
    return Trajectory(
        task,
        seed,
        episode,
        1.0 if won else 0.25,
        delivered,
        [(100, 4)] * num_steps,
        0.003 * num_steps,
        0.002 * num_steps,
        0.0005 * num_steps,
        0.0015 * num_steps,
    )


def scores():
    """4 tasks, 2 seeds, seed by seed as `score_deliveries` plays them; `compiled` wins task 0, 1, 2, `none` task 0."""
    order = [(task, seed) for seed in (0, 1) for task in range(4)]
    none = [trajectory(t, s, t == 0, 5) for t, s in order]
    compiled = [
        trajectory(
            t, s, t < 3, 2, ["experience\ndo: find mug", "nonsense" if (t, s) == (3, 1) else "noaction"], tokens=50
        )
        for t, s in order
    ]
    played = {"none": none, "compiled": compiled}
    return {name: Score(name, [result_of(one, name, one.seed) for one in rows], 2) for name, rows in played.items()}


def test_score_of_trajectories():
    none, compiled = scores().values()
    np.testing.assert_array_equal(none.won, [[1, 1], [0, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(compiled.won, [[1, 1], [1, 1], [1, 1], [0, 0]])
    np.testing.assert_array_equal(none.table("steps"), np.full((4, 2), 5))
    assert (none.success, compiled.success) == (0.25, 0.75)
    assert compiled.interval == wilson(0.75, 4), "tasks count, not episodes"
    assert compiled.table("progress").mean() == pytest.approx(0.75 + 0.25 * 0.25)
    none, compiled = none.to_json(), compiled.to_json()
    assert (none["executor_tokens_per_step"], none["compiler_tokens_per_step"]) == (104, 0)
    assert compiled["compiler_tokens_per_step"] == 50
    assert (compiled["executor_ms_per_step"], compiled["compiler_ms_per_step"]) == pytest.approx((2, 3))
    assert (none["parse_rate"], compiled["parse_rate"]) == (1, 15 / 16)
    assert (none["guided"], compiled["guided"]) == (0, 0.5)


def test_a_comparison_that_was_stopped_goes_on(monkeypatch, tmp_path):
    """Batches of three; the second run plays what the first had not, and the third nothing."""
    calls = []

    def play(envs, executor, delivery, bank, *, tasks, seeds, **_):
        calls.append((delivery.name, tuple(zip(tasks, seeds))))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return [trajectory(t, s, (t + s) % 2 == 0, 3 + t) for t, s in zip(tasks, seeds)]

    monkeypatch.setattr(score, "play", play)
    envs, facts = types.SimpleNamespace(num_envs=3), {"commit": "a"}

    def run(seeds=(0, 1)):
        finished = Finished(tmp_path / "episodes.jsonl", facts, EpisodeResult)
        return score_deliveries(
            envs, None, None, Experiences(), deliveries=("none", "static"), tasks=range(2), seeds=seeds,
            memory=MemoryConfig(), finished=finished,
        )  # fmt: skip

    with pytest.raises(InvalidInputError, match="each once"):
        run(seeds=(0, 0))
    with pytest.raises(KeyboardInterrupt):
        run()
    stopped, whole = run(), run()
    first, second = ((0, 0), (1, 0), (0, 1)), ((1, 1),)
    assert calls[:3] == [("none", first), ("none", second), ("static", first)]
    assert calls[3:] == [("static", first), ("static", second)]
    assert [s.to_json() for s in stopped.values()] == [s.to_json() for s in whole.values()]
    np.testing.assert_array_equal(whole["static"].won, [[1, 0], [0, 1]])


def test_json_of_a_comparison():
    data = json.loads(json.dumps(summary(scores(), FACTS)))
    assert data["num_tasks"] == 4
    assert data["num_seeds"] == 2
    assert data["commit"] == "abc"
    assert list(data["deliveries"]) == ["none", "compiled"]
    for row in data["deliveries"].values():
        assert {"success", "interval", "progress", "steps", "tokens_per_step", "latency_ms_per_step"} <= set(row)
    none, compiled = data["deliveries"].values()
    assert "difference_interval" not in none
    assert compiled["tokens_per_step"] == 154
    assert compiled["latency_ms_per_step"] == pytest.approx(5)
    difference, low, high = paired_difference([[1, 1], [1, 1], [1, 1], [0, 0]], [[1, 1], [0, 0], [0, 0], [0, 0]])
    assert compiled["difference_to_none"] == difference == 0.5
    assert compiled["difference_interval"] == [low, high]


def test_table():
    head, rule, none, compiled = table(scores()).split("\n")
    assert head.count("|") == rule.count("|") == none.count("|") == compiled.count("|") == 15
    low, high = (100 * end for end in wilson(0.25, 4))
    cells = f"none | 25.0 % | {low:.1f} - {high:.1f} | - | 43.8 % | 5.0 | 100 + 4 | 0.5 + 1.5 | 0 | 5.0 | 100.0 %"
    assert none == f"| {cells} | 0.0 % | - | 0.0 % |"
    assert compiled.startswith(
        "| compiled | 75.0 % | 30.1 - 95.4 | +50.0 [+0.0, +100.0] | 81.2 % | 2.0 | 100 + 4 | 0.5 + 1.5 | 50 |"
    )
    assert compiled.endswith("| 50.0 % | - | 0.0 % |"), "nobody has judged"
    without = dict(list(scores().items())[1:])
    assert "| - |" in table(without), "without a baseline there is no difference"
    counted = scores()["none"].to_json()
    assert rows_table({"none": counted | {"refused": 0.25}}).endswith("| 25.0 % |")
    counted.pop("refused")
    assert rows_table({"none": counted}).endswith("| - |"), "a result that was made before they were counted"


def test_report_files(tmp_path):
    curves = {
        "executor": [{"step": i, "loss": 3 / (i + 1), "action_accuracy": i / 60} for i in range(60)],
        "grpo": [{"step": 0, "won": 0.5}],
    }
    data = write_report(tmp_path / "new" / "report", scores(), FACTS, curves)
    folder = tmp_path / "new" / "report"
    assert sorted(p.name for p in folder.iterdir()) == ["curves.png", "report.json", "report.md"]
    assert json.loads((folder / "report.json").read_text()) == data
    text = (folder / "report.md").read_text()
    assert table(scores()) in text
    assert "![learning curves](curves.png)" in text
    assert "python evaluate.py" in text
    assert (folder / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_report_without_curves_links_no_picture(tmp_path):
    for number, curves in enumerate((None, {}, {"grpo": []})):
        write_report(tmp_path / str(number), scores(), FACTS, curves)
        assert not (tmp_path / str(number) / "curves.png").exists()
        assert "curves.png" not in (tmp_path / str(number) / "report.md").read_text()


def test_unknown_delivery_is_refused_and_known_ones_listed():
    with pytest.raises(InvalidInputError) as raised:
        make_delivery("telepathy")
    assert all(name in str(raised.value) for name in (*delivery_names(), "telepathy"))
    with pytest.raises(InvalidInputError, match="telepathy"):
        check_names(("none", "telepathy"))
    with pytest.raises(InvalidInputError, match=r"compiled_text.*compiler"):
        make_delivery("compiled_text")


def test_evaluate_without_weights_says_what_is_missing(tmp_path):
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is missing"):
        evaluate.main(["--weights", str(tmp_path)])


def test_a_command_is_recorded_as_it_can_be_given_again(monkeypatch):
    root = Path(__file__).resolve().parents[2]
    for program, recorded in (
        (root / "embodied_mem" / "cli.py", "python -m embodied_mem.cli --all"),
        (root / "experiments" / "train.py", "python experiments/train.py --all"),
        ("/usr/local/bin/embodied-mem", "embodied-mem --all"),
    ):
        monkeypatch.setattr("sys.argv", [str(program), "--all"])
        assert manifest()["command"] == recorded


def test_packed_episodes_are_read_back(tmp_path):
    path = tmp_path / "one.json"
    rows = {"columns": ["agent", "won"], "rows": [["ours", True], ["none", False]]}
    write_result(path, {"command": "x", "episodes": rows})
    report = read_result(path)
    pack_episodes(path)
    assert "episodes" not in json.loads(path.read_text())
    assert read_result(path) == report
    pack_episodes(path)
    assert read_result(path) == report
