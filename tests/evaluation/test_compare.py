"""Two reports are paired by row, task and seed; what is no comparison is refused."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult, episodes_data, episodes_of
from embodied_mem.evaluation.compare import compare, read_report, table
from embodied_mem.evaluation.evaluate import main
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import write_result

RESULTS = pathlib.Path(__file__).parents[2] / "experiments" / "results"
A = [
    EpisodeResult("none", f"t{i}", i == 0, i / 4, 10 + i, seed=s, group=f"g{i // 2}") for i in range(4) for s in (0, 1)
]
B = [dataclasses.replace(e, won=e.task in ("t0", "t1", "t2"), steps=e.steps - 1 - e.seed) for e in A]


def report(episodes, **protocol):
    return {"rate": 0.5, **episodes_data("attic", episodes, **{"max_steps": 30, **protocol})}


def test_episodes_come_back_from_a_file(tmp_path):
    played = [*A[:2], dataclasses.replace(A[2], subset="base", run=2, tokens=3.5, more={"vetoes": 2})]
    write_result(tmp_path / "new" / "a.json", report(played))
    assert episodes_of(read_report(tmp_path / "new" / "a.json")) == played
    text = (tmp_path / "new" / "a.json").read_text()
    assert len(text.splitlines()) < 20, "an episode is one line"


def test_differences_are_those_of_paired_groups():
    [row] = compare(report(A), report(B[::-1]))["rows"]  # the order of rows does not matter
    won = np.array([[1, 0], [0, 0]], float).mean(1), np.array([[1, 1], [1, 0]], float).mean(1)  # groups x tasks
    assert row["success"] == [0.25, 0.75]
    assert row["success_difference"] == list(paired_difference(won[1], won[0]))
    assert row["progress_difference"] == [0, 0, 0]
    assert row["steps_difference"][0] == -1.5
    assert (row["episodes"], row["tasks"]) == (8, 2)
    assert table({"rows": [row]}).splitlines()[2].startswith("| none | 2 | 25.0 % | 75.0 % | +50.0 [+")


def test_reports_of_one_agent_each_are_paired_whatever_the_names():
    other = [dataclasses.replace(e, agent="compiled") for e in B]
    assert compare(report(A), report(other))["rows"][0]["name"] == "none -> compiled"
    both = compare(report([*A, *other]), report([*B, *other]))["rows"]
    assert [row["name"] for row in both] == ["none", "compiled"]
    assert both[1]["success_difference"] == [0, 0, 0]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (report(A), report(B, max_steps=50), "expected the same max_steps in both, got 30 and 50; .* --force"),
        (report(A, bank=2), report(B, bank=3), "expected the same bank in both, got 2 and 3"),
        (report(A), report(B) | {"world": "cellar"}, "expected the same world in both, got 'attic' and 'cellar'"),
        (report(A), report(B[1:]), "none: expected the same tasks and seeds .* 8 and 7; in one alone: t0, seed 0"),
    ],
)
def test_what_differs_is_refused_unless_forced(first, second, message):
    with pytest.raises(InvalidInputError, match=message):
        compare(first, second)
    assert compare(first, second, force=True)["rows"]


def test_a_report_without_a_bank_is_compared_with_any():
    assert compare(report(A, bank=None), report(B, bank=3)) == compare(report(A), report(B))


def test_no_common_row_is_refused_even_by_force():
    other = [dataclasses.replace(e, agent=name) for e in B for name in ("full", "static")]
    with pytest.raises(InvalidInputError, match=r"expected an agent or delivery in both .*, got none and full, static"):
        compare(report(A), report(other), force=True)


def test_the_command(tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json")]
    for file, episodes in zip(files, (A, B)):
        write_result(pathlib.Path(file), report(episodes))
    said = main(["--compare", *files[:2], "--result", files[2], "--json"])
    assert (
        json.loads(capsys.readouterr().out.splitlines()[-1]) == said == json.loads(pathlib.Path(files[2]).read_text())
    )
    with pytest.raises(
        InvalidInputError, match=r"planner_critic.json: expected a report with `episodes`.* make it anew"
    ):
        main(["--compare", str(RESULTS / "planner_critic.json"), files[0]])
    with pytest.raises(InvalidInputError, match=r"expected a JSON report, got .*nowhere\.json"):
        main(["--compare", str(tmp_path / "nowhere.json"), files[0]])
