"""Tasks played twice in homes that are lived in: what memory of a home saves, and what the controls do not save."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.beliefs import home_told, in_home
from embodied_mem.progress import Progress
from embodied_mem.registry import load
from experiments.solvers.eb_alfred.view import HIDDEN, HiddenThings
from experiments.solvers.embodiedbench import (
    REVISITED_ROWS,
    play_in_home,
    play_revisited,
    revisited_rows,
    revisited_table,
)
from tests.worlds.eb_alfred.eb_alfred_scene import kitchen_task
from tests.worlds.eb_habitat.eb_habitat_home import homes


def test_a_home_is_told_in_the_first_line():
    assert home_told(in_home("base/3", "You are in an apartment.")) == "base/3"
    assert home_told("You are in an apartment.\nHome: base/3.") == ""


def test_a_remembered_apartment_needs_no_search_and_another_one_misleads():
    benchmark, trace = load("eb_habitat", "benchmark"), io.StringIO()
    with Progress("tasks", 2) as progress:
        rows = play_revisited(benchmark, homes(), 30, progress, trace)
    assert tuple(rows) == REVISITED_ROWS
    written = [(line["agent"], len(line["steps"])) for line in map(json.loads, trace.getvalue().splitlines())]
    assert written == [(name, rows[name][task].steps) for task in range(2) for name in REVISITED_ROWS]
    first, kept, wiped, other = ([row.steps for row in rows[name]] for name in REVISITED_ROWS)
    assert first == wiped
    assert kept[0] == 4  # there, up, to the sofa, down
    assert kept[0] < first[0] < other[0] + first[0]
    assert other[0] > kept[0]
    assert "vs wiped" in revisited_table({"homes": revisited_rows(rows)})


def test_hidden_things_are_found_only_after_they_were_seen():
    world = HiddenThings(envs.make("eb_alfred", tasks=[kitchen_task("hidden")], num_envs=1))
    observations, info = world.reset(options={"task_indices": [0]})
    assert observations[0].startswith(HIDDEN)
    number = info["admissible_commands"][0].index("find a Plate")
    for action in ("find a Plate", str(number)):
        texts, _, _, _, info = world.step([action])
        assert "invalid" in texts[0]
    assert info["num_invalid"][0] == 2
    world.step(["find a Cabinet"])
    texts = world.step(["open the Cabinet"])[0]
    assert "Plate" in texts[0]
    assert world.step(["find a Plate"])[0][0].startswith("Last action executed successfully")
    world.reset(options={"task_indices": [0]})
    assert "invalid" in world.step(["find a Plate"])[0][0]  # what was seen in an earlier episode does not count


@pytest.mark.parametrize("name", ["place", "hidden"])
def test_a_hidden_thing_is_searched_for_and_remembered(name):
    benchmark, task = load("eb_alfred", "benchmark"), kitchen_task(name)
    first, memory = play_in_home(benchmark, task, "kitchen", None, 30)
    kept, _ = play_in_home(benchmark, task, "kitchen", memory.fork(), 30)
    elsewhere, _ = play_in_home(benchmark, task, "elsewhere", memory.fork(), 30)
    assert all(played.won for played in (first, kept, elsewhere))
    assert kept.record.steps <= first.record.steps


def test_the_report_is_paired_over_tasks():
    benchmark = load("eb_habitat", "benchmark")
    small = dataclasses.replace(benchmark, load=lambda subset: homes(), subsets=("base",))
    report = small.evaluate(dataclasses.replace(small.config, revisit=6))
    assert set(report["revisited_home"]["base"]) == set(REVISITED_ROWS)
    assert report["protocol"]["max_steps"] == 6
    assert len(report["episodes"]["rows"]) == 2 * len(REVISITED_ROWS)
    assert "second time, memory kept" in small.table(report)
