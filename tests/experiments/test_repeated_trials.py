"""Agents of other papers beside ours in a world that is played through a text adapter."""

from __future__ import annotations

import dataclasses

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.registry import load
from experiments.solvers.embodiedbench import source_of
from tests.worlds.eb_alfred.eb_alfred_scene import kitchen_task
from tests.worlds.eb_habitat.eb_habitat_home import homes

AGENTS = ("full", "first_reading", "reflexion", "voyager", "cradle")


def played(world, tasks, max_steps):
    benchmark = load(world, "benchmark")
    small = dataclasses.replace(benchmark, load=lambda subset: tasks, training=list, subsets=("base",))
    config = dataclasses.replace(small.config, agents=AGENTS, repeat=2, max_steps=max_steps)
    report = small.evaluate(config)
    assert "reflexion (rules)" in small.table(report)
    assert small.line(report)["subsets"] == report["repeated_trials"]
    return report["repeated_trials"]["base"]


def test_who_remembers_an_apartment_needs_fewer_steps_in_the_second_run():
    rows = played("eb_habitat", homes(), 30)
    assert list(rows) == ["full", "first_reading", "reflexion (rules)", "voyager (rules)", "cradle (rules)"]
    assert all(run["success"] == 1 for runs in rows.values() for run in runs)
    for name in ("full", "voyager (rules)"):
        first, second = rows[name]
        assert second["steps"] < first["steps"]
    assert rows["voyager (rules)"][1]["steps"] == 4  # there, up, to the sofa, down
    first, second = rows["reflexion (rules)"]
    assert first["steps"] == second["steps"]  # it learns of failed trials alone


def test_reflexion_wins_in_the_second_run_what_was_too_long_for_the_first():
    rows = played("eb_habitat", homes(), 5)
    first, second = rows["reflexion (rules)"]
    assert first["success"] < second["success"] == 1


@pytest.mark.parametrize("name", ["place", "hidden"])
def test_a_kitchen_is_played_by_all(name):
    rows = played("eb_alfred", [kitchen_task(name)], 30)
    assert all(run["success"] == 1 for runs in rows.values() for run in runs)


def test_a_player_looks_first_where_it_is_told():
    world = source_of("eb_habitat").envs(homes(), 1, 30)
    first, info = world.reset(options={"task_indices": [0]})
    player = source_of("eb_habitat").player()
    player.reset(info["goal"][0], first[0], ["chair 1"])
    assert player.order[0] == "chair 1"
    assert player.act(first[0]) == "go to chair 1"
    [text], *_ = world.step(["go to chair 1"])
    player.reset(info["goal"][0], first[0])
    assert player.act(first[0]) != "go to chair 1"
    player.observe("go to chair 1", text)
    assert player.act(text) not in ("go to chair 1", "examine chair 1")  # it knows what is there


def test_agents_of_other_papers_need_runs():
    config = load("eb_habitat", "benchmark").config
    for given in ({"agents": ("voyager",)}, {"agents": ("full",), "repeat": 2, "revisit": 6}):
        with pytest.raises(InvalidInputError, match="--repeat"):
            dataclasses.replace(config, **given)
