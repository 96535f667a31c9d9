"""The command that scores the planner-critic agent: table, report, and going on after it was stopped."""

from __future__ import annotations

import dataclasses
import json
import types

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult, episodes_of
from embodied_mem.memory import Experiences
from embodied_mem.parallel.resume import Finished
from embodied_mem.registry import load as part
from embodied_mem.types import Episode, Step
from experiments.evaluate import main
from experiments.solvers.embodiedbench import NOTE, rows_of, table


@pytest.fixture
def arguments(eb_habitat_data, monkeypatch, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(eb_habitat_data.parent))
    few = ["--agents", "full", "no_memory", "--subsets", "base", "--training_tasks", "2", "--num_tasks", "2"]
    return ["--config=eb_habitat", *few, "--result", str(tmp_path / "report.json")]


def without_times(report) -> list:
    return [dataclasses.replace(episode, milliseconds=0) for episode in episodes_of(report)]


def test_report_and_table(arguments, tmp_path, capsys):
    report = main([*arguments, "--json"])
    out = capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(json.dumps(report))
    assert json.loads(out.strip().splitlines()[-1])["world"] == "eb_habitat"
    assert "| retries until the episode ends |" in out
    assert "MemCompiler" in out
    assert "no comparison" in out
    assert report["subsets"]["base"]["full"]["tasks"] == 2
    assert not (tmp_path / "report.json.tasks.jsonl").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--revisit", "-3"), "--revisit: expected >= 0, got -3"),
        (("--repeat", "-1"), "--repeat: expected >= 0, got -1"),
        (("--num_tasks", "-1"), "--num_tasks: expected >= 0, got -1"),
        (("--agents",), "--agents: expected at least one"),
        (("--agents", "reflexion"), "--agents reflexion: expected --repeat >= 1"),
    ],
)
def test_options_that_would_play_nothing_are_refused(given, message):
    with pytest.raises(InvalidInputError, match=message):
        main(["--config=eb_habitat", *given])


def test_a_trace_has_every_step_and_changes_nothing(arguments, tmp_path):
    """And `embodied-mem view` makes a page of it."""
    from embodied_mem import cli

    plain = main(arguments)
    trace = tmp_path / "trace.jsonl"
    report = main([*arguments, "--trace", str(trace)])
    assert without_times(report) == without_times(plain)
    assert report["config"] == plain["config"]
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [line["agent"] for line in lines] == ["full"] * 2 + ["no_memory"] * 2
    assert [len(line["steps"]) for line in lines] == [episode.steps for episode in episodes_of(report)]
    assert cli.main(["view", str(trace), "--out", str(tmp_path / "page.html")]) == 0
    assert lines[0]["goal"] in (tmp_path / "page.html").read_text()


def test_a_stopped_command_goes_on(arguments, monkeypatch, tmp_path):
    from experiments.solvers import embodiedbench as planner

    whole = main(arguments)
    played = []
    original = planner.play

    def play(*given, **options):
        if len(played) == 3:
            raise KeyboardInterrupt
        played.append(given[-1][0].name)
        return original(*given, **options)

    monkeypatch.setattr(planner, "play", play)
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    with (tmp_path / "report.json.tasks.jsonl").open("a") as file:
        file.write('["no_memory", "base", "base')  # as a kill in the middle of a line leaves it
    monkeypatch.setattr(planner, "play", lambda *given, **more: played.append("late") or original(*given, **more))
    assert without_times(main(arguments)) == without_times(whole)
    assert played.count("late") == 1


def test_what_belongs_to_another_run_is_not_used(tmp_path):
    Finished(tmp_path / "tasks", {"commit": "a"}).add("full", "base", "base/0", [1, 1.0, 5, 1, 0])
    assert len(Finished(tmp_path / "tasks", {"commit": "a"}).rows) == 1
    assert not Finished(tmp_path / "tasks", {"commit": "b"}).rows


def test_rows_and_published_figures():
    def result(name, task, won, progress, steps, tokens, ms, **more):
        return EpisodeResult(name, task, won, progress, steps, "base", tokens=tokens, milliseconds=ms, more=more)

    episodes = [
        result("full", "t0", True, 1.0, 4, 0, 2.0, plans=1, vetoes=0),
        result("full", "t1", False, 0.5, 30, 0, 32.0, plans=2, vetoes=1),
        result("no_memory", "t0", False, 0.0, 30, 90, 60.0, plans=3, vetoes=0),
        result("no_memory", "t1", False, 0.0, 30, 90, 60.0, plans=3, vetoes=0),
    ]
    rows = rows_of(episodes)
    assert (rows["base"]["full"]["ms_per_step"], rows["base"]["no_memory"]["tokens_per_step"]) == (1, 3)
    assert rows["base"]["full"]["success"] == 0.5
    assert rows["base"]["full"]["progress"] == 0.75
    assert rows["base"]["no_memory"]["success_difference_to_full"][0] == -0.5
    lines = table(rows, part("eb_alfred", "benchmark").published).splitlines()
    assert lines[2].startswith("| retries until the episode ends | 50.0 % [")
    assert any(line.startswith("| *RoboMemory: Qwen2.5-VL-72B* | 68 % | 75.5 % |") for line in lines)
    assert NOTE.startswith("The native world is symbolic")


def test_rows_of_deliveries_say_what_the_executor_reads_and_when_nothing_is_said():
    more = {
        "executor_in": 90, "executor_out": 6, "prefill_ms": 3.0, "decode_ms": 9.0,
        "outputs": 3, "withheld": 1, "judged": 3, "nothing_due": 2, "rightly": 1, "hint_tokens": 12,
    }  # fmt: skip
    episodes = [
        EpisodeResult(name, f"t{i}", True, 1.0, 3, "base", tokens=96, milliseconds=12.0, more=given)
        for name, given in (("compiled", more), ("full", {}))
        for i in range(2)
    ]
    compiled, full = rows_of(episodes)["base"].values()
    assert (compiled["executor_tokens_in_per_step"], compiled["executor_tokens_out_per_step"]) == (30, 2)
    assert (compiled["executor_prefill_ms_per_step"], compiled["executor_decode_ms_per_step"]) == (1, 3)
    assert (compiled["noaction"], compiled["noaction_precision"], compiled["noaction_recall"]) == (1 / 3, 1, 0.5)
    assert compiled["noaction_tokens_saved"] == pytest.approx(2), "6 tokens a guided step, at a third of the steps"
    assert "noaction" not in full


def test_deliveries_that_were_stopped_go_on_to_the_same_outcomes(arguments, monkeypatch, tmp_path):
    """Models are replaced by an episode that ends in a place drawn from seed and number of the task, as sampling is."""
    from embodied_mem.agents.deliveries import Delivered
    from embodied_mem.agents.rollout import Trajectory
    from embodied_mem.evaluation import score
    from embodied_mem.training import bundle as weights
    from experiments.configs import load
    from experiments.solvers import embodiedbench as delivery

    calls = []

    def play(envs, *_, tasks, seeds, **__):
        calls.append((tuple(tasks), tuple(seeds)))
        if len(calls) == 3:
            raise KeyboardInterrupt
        idle = envs.num_envs - len(tasks)
        _, info = envs.reset(options={"task_indices": [*tasks, *[0] * idle]})
        for _ in range(3):
            draws = [(3 * task + seed) % len(info["admissible_commands"][0]) for task, seed in zip(tasks, seeds)]
            commands = [info["admissible_commands"][row][draw % 11] for row, draw in enumerate(draws)]
            *_, info = envs.step([*commands, *["look"] * idle])
        one = Episode("", "", (Step("", "look"),), False)
        return [Trajectory(t, s, one, 0.0, [Delivered()], [(8, 2)] * 3, 0.004, 0.002) for t, s in zip(tasks, seeds)]

    bundle = types.SimpleNamespace(config=load("eb_habitat"), acting=lambda **_: (None, None))
    monkeypatch.setattr(score, "play", play)
    monkeypatch.setattr(weights, "load_bundle", lambda folder, **_: bundle)
    monkeypatch.setattr(delivery, "bank_of", lambda *_: Experiences())
    monkeypatch.setattr(delivery, "BATCH", 2)
    given = ["--config=eb_habitat", "--agents", "--deliveries", "none", "static", "--subsets", "base"]
    given += ["--seeds", "0", "1", "--num_tasks", "3", "--result", str(tmp_path / "report.json")]
    with pytest.raises(KeyboardInterrupt):
        main(given)
    assert calls[0] == ((0, 0, 1, 1), (0, 1, 0, 1))
    stopped = main(given)
    assert calls[3][0] == (0, 0, 1, 1)  # the third call was `static`'s first; nothing of `none` is played again
    trace = tmp_path / "trace.jsonl"
    whole = main([*given, "--trace", str(trace)])
    assert without_times(whole) == without_times(stopped)
    assert [json.loads(line)["agent"] for line in trace.read_text().splitlines()] == ["none"] * 6 + ["static"] * 6
    none = [episode for episode in episodes_of(whole) if episode.agent == "none"]
    assert [(one.tokens, one.milliseconds) for one in none] == [(30, 6)] * 6
    assert [one.seed for one in none] == [0, 1] * 3
    assert len(whole["subsets"]["base"]["static"]["success_difference_to_none"]) == 3
    assert whole["subsets"]["base"]["none"]["tasks"] == 3  # two seeds on a task are one task
