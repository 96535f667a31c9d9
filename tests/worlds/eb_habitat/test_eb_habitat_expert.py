"""The planner solves every episode at hand that is not satisfied at the start, without a refused action."""

from __future__ import annotations

import itertools
import json

import pytest
from eb_habitat_home import LEFT_DRAWER, SINK, SOFA, TABLE, episode, placed, quantified

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.eb_habitat.data import Scenes, load_tasks, read_tasks
from embodied_mem.worlds.eb_habitat.env import Env
from embodied_mem.worlds.eb_habitat.expert import solve

NUM_EPISODES = {"base": 50, "common_sense": 50, "long_horizon": 50, "train_validation": 99}
LONGEST = 12  # of the plans, as the data's notes state


def played(env):
    for action in solve(env):
        assert not env.ended
        env.step(action)
    return env


def test_every_episode_is_solved(eb_habitat_data):
    lengths = []
    for subset, expected in NUM_EPISODES.items():
        tasks = [task for task in load_tasks(subset, eb_habitat_data) if not task.satisfied_at_start]
        assert len(tasks) == expected
        for task in tasks:
            env = played(Env(task))
            assert (env.won, env.num_invalid) == (True, 0), task.name
            lengths.append(env.num_steps)
    assert len(lengths) == 249
    assert max(lengths) <= LONGEST


def test_every_episode_is_solved_with_reach_by_geometry(eb_habitat_data):
    for subset in NUM_EPISODES:
        for task in load_tasks(subset, eb_habitat_data):
            env = played(Env(task, seed=1, reach="geometry"))
            assert (env.won, env.num_invalid) == (True, 0), task.name
            assert env.num_steps <= LONGEST


def _task(goal, objects):
    return read_tasks(json.dumps({"episodes": [episode(goal, objects)]}).encode(), "plans", Scenes())[0]


@pytest.mark.parametrize(
    "start", [(), ("6", "pick up the cup"), ("6", "pick up the cup", "14", "58"), ("9", "17", "31")]
)
def test_plans_from_anywhere(start):
    """From any state: something else in hand, the cup shut in a drawer."""
    objects = {"apple_0": SINK, "cup_0": TABLE, "cup_1": TABLE}
    both = quantified("EXISTS", {"X": "cup", "Y": "cup"}, placed("X", SOFA), placed("Y", LEFT_DRAWER))
    env = Env(_task(both, objects))
    for action in start:
        env.step(action)
    refused = env.num_invalid
    assert played(env).won
    assert env.num_invalid == refused


def test_other_forms_of_goals():
    objects = {"apple_0": SINK, "cup_0": TABLE, "cup_1": TABLE}
    opened = {"pred": "opened_cab", "args": ["cab_push_point_4"]}
    closed = {"pred": "closed_fridge", "args": ["fridge_push_point"]}
    for goal in (
        {"pred": "holding", "args": ["cup_1"]},  # cup_0 comes first to hand and has to be put away
        {"op": "AND", "args": [opened, {"pred": "robot_at", "args": [SOFA]}]},
        {"op": "NOR", "args": [placed("cup_0", TABLE), placed("cup_1", TABLE), closed]},
        {"op": "NAND", "args": [placed("cup_0", TABLE), placed("apple_0", SINK)]},
        {"pred": "in", "args": ["cup_1", "cab_push_point_5"]},
        {"pred": "robot_at_obj", "args": ["apple_0"]},
    ):
        env = played(Env(_task(goal, objects)))
        assert env.won
        assert env.num_invalid == 0


def test_what_cannot_be_is_said():
    env = Env(_task({"op": "AND", "args": [placed("cup_0", TABLE), placed("cup_0", SOFA)]}, {"cup_0": SINK}))
    with pytest.raises(InvalidInputError, match="no plan found"):
        solve(env)
    for action in itertools.repeat("hm", 10):
        env.step(action)
    with pytest.raises(InvalidInputError, match="the env has ended"):
        solve(env)
