"""EB-Habitat's planner-critic: what instructions ask for, and episodes won in a home of our own."""

from __future__ import annotations

import json

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.rollout import rollout
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.worlds.eb_habitat.data import Scenes, read_tasks
from experiments.solvers.eb_habitat.agent import sentences
from tests.worlds.eb_habitat.eb_habitat_home import EMPTY_HAND, FRIDGE, SINK, SOFA, TABLE, episode, placed, quantified

FIRST = PlannerCriticConfig(retries=False)


def play(
    text: str, goal: dict, *, agent: str = "full", memory: LifelongMemory | None = None, ends_itself=False, **changes
):
    """Return how an episode with this instruction ends; `ends_itself`: for an agent that has to stop by itself."""
    content = {"episodes": [episode(goal, instruction=text, **changes)]}
    tasks = read_tasks(json.dumps(content).encode(), "home.json", Scenes())
    world = envs.make("eb_habitat", tasks=list(tasks), num_envs=1, ends_when_won=not ends_itself)
    config = FIRST if ends_itself else ABLATIONS[agent]
    [found] = rollout(world, [PlannerCriticAgent.for_world("eb_habitat", config, memory)], [[0]])
    return found


def test_things_of_one_kind_stay_apart_in_memory():
    text = "Last action executed successfully.\nOn the table 1, you see a can, a can, and a toy airplane."
    assert sentences(text, ("sofa", "black table")).split("\n") == [
        "On the black table, you see a can 200, a can 201, a toy airplane 202.",
        "You are not carrying anything.",
    ]


MOVE_ALL = quantified("FORALL", {"X": "cup"}, placed("X", SOFA))
TAKE_AWAY = quantified("EXISTS", {"X": "apple"}, placed("X", SINK), op="NAND")


@pytest.mark.parametrize(
    ("text", "goal", "changes"),
    [
        ("Move a cup to the sofa.", quantified("EXISTS", {"X": "cup"}, placed("X", SOFA), EMPTY_HAND), {}),
        ("Bring all cups to the sofa.", MOVE_ALL, {}),
        ("Put an apple in the fridge.", quantified("EXISTS", {"X": "apple"}, placed("X", FRIDGE), EMPTY_HAND), {}),
        ("Take the apple away from the sink.", TAKE_AWAY, {}),
        ("Walk to the black table.", {"pred": "robot_at", "args": [TABLE]}, {}),
    ],
)
def test_every_kind_of_episode_is_won(text, goal, changes):
    found = play(text, goal, **changes)
    assert found.won, found.record.actions
    alone = play(text, goal, ends_itself=True, **changes)
    assert (alone.won, alone.cut) == (True, False), alone.record.actions


@pytest.mark.parametrize("verb", ["open", "close"])
def test_a_door_is_moved_once(verb):
    found = play(f"{verb} the fridge.", MOVE_ALL, ends_itself=True)
    assert found.actions == ("navigate to the refrigerator push point", f"{verb} the refrigerator")


def test_without_retries_the_first_reading_is_carried_out_and_nothing_else():
    wanted = quantified("EXISTS", {"X": "apple"}, placed("X", SOFA), EMPTY_HAND)
    found = play("I am thirsty, bring me something I can use to the sofa.", wanted, ends_itself=True)
    assert (found.won, found.cut, found.actions[-1]) == (False, False, "place at the sofa")
    assert "pick up the cup" in found.actions


def test_a_goal_that_does_not_end_the_episode_can_be_lost_again():
    content = {"episodes": [episode()]}
    tasks = read_tasks(json.dumps(content).encode(), "home.json", Scenes())
    script = ["navigate to the table 1", "pick up the cup", "navigate to the sofa", "place at the sofa"]
    for ends in (True, False):
        world = envs.make("eb_habitat", tasks=list(tasks), num_envs=1, ends_when_won=ends)
        world.reset()
        for action in script:
            _, _, ended, _, info = world.step([action])
        assert (info["won"][0], ended[0]) == (True, ends)
        _, _, ended, _, info = world.step(["pick up the cup"])
        assert (info["won"][0], ended[0]) == (ends, ends)


def test_the_critic_stops_a_search_when_the_thing_was_seen():
    goal = quantified("EXISTS", {"X": "cup"}, placed("X", SOFA), EMPTY_HAND)
    full, blind = (play("Move a cup to the sofa.", goal, agent=agent) for agent in ("full", "no_critic"))
    assert full.won
    assert any("a cup was seen" in why for _, why in full.record.objections)
    assert full.record.steps < blind.record.steps


def test_what_was_found_before_orders_the_search():
    goal = quantified("EXISTS", {"X": "apple"}, placed("X", SOFA), EMPTY_HAND)
    memory = LifelongMemory(modules=ABLATIONS["full"].modules)
    first = play("Move an apple to the sofa.", goal, memory=memory)
    second = play("Move an apple to the sofa.", goal, memory=memory)
    assert first.won
    assert second.won
    assert second.record.actions[0] == "navigate to the sink in the kitchen"
    assert second.record.steps < first.record.steps
