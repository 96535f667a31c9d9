"""The simulated robot: without faults it is the world, each fault does what it says, and agents get over them."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.robot.runner import NOTHING_SEEN, Limits, Runner
from embodied_mem.agents.robot.simulated import Faults, Injected, Roles, SimulatedRobot
from embodied_mem.agents.rollout import rollout
from embodied_mem.errors import InvalidInputError
from embodied_mem.registry import load
from embodied_mem.worlds.alfworld.generator import generate
from experiments.analyses.robot_faults import sort_errors

ROLES = Roles(take="take", put="put", open="open", go="go_to")
SKILLS = load("alfworld", "skills")(PlannerCriticConfig())
LIMITS = Limits(max_steps=50)
MANY = Faults(grasp=0.15, slip=0.05, stuck=0.15, wrong=0.05, blind=0.1, late=0.05)


@pytest.fixture(scope="module")
def games():
    return [game.load() for game in generate(4, seed=3, split="valid")]


def robot_of(games, faults=None, seed=0) -> SimulatedRobot:
    world = envs.make("alfworld", tasks=games, num_envs=1, max_steps=None)
    return SimulatedRobot(world, SKILLS, ROLES, faults, seed=seed)


def turns(robot, task=0, agent=None):
    robot.begin(task)
    agent = agent or PlannerCriticAgent.for_world("alfworld")
    run = Runner(robot, LIMITS, clock=robot.clock).run(agent, robot.goal, robot.task_id, lambda: robot.won)
    return run, [(step.command, step.outcome.message) for step in run.steps]


def test_without_faults_it_is_the_world(games):
    """The same commands and answers, to the end, as where the agent plays in the world itself."""
    world = envs.make("alfworld", tasks=games, num_envs=1, max_steps=50)
    played = rollout(world, [PlannerCriticAgent.for_world("alfworld")], [range(len(games))])
    robot, agent = robot_of(games), PlannerCriticAgent.for_world("alfworld")
    for task, episode in enumerate(played):
        run, done = turns(robot, task, agent)
        assert (run.won, done) == (episode.won, list(zip(episode.actions, episode.answers)))
        assert robot.injected == []
        assert robot.worked == [answer != "Nothing happens." for answer in episode.answers]
    assert any(episode.won for episode in played)


def fetched(robot) -> tuple[str, str]:
    """(thing, place) of a thing that the robot stands at and could take."""
    for place in [skill["place"] for skill in robot._calls("go_to")]:
        robot.execute("go_to", {"place": place})
        for call in robot._calls("open"):
            robot._do(f"open {call['place']}")
        if len(robot._calls("take")) > 1:
            return robot._calls("take")[0]["thing"], place
    raise AssertionError("nothing to take")


def test_each_fault_does_what_it_says(games):
    def started(**faults):
        robot = robot_of(games, Faults(**faults))
        robot.begin(0)
        return robot, fetched(robot)

    robot, (thing, place) = started(grasp=1.0)
    outcome = robot.execute("take", {"thing": thing, "place": place})
    assert (outcome.status, outcome.message, robot.held, robot.worked[-1]) == (
        "failure",
        "The grasp failed.",
        "",
        False,
    )
    robot, (thing, place) = started(wrong=1.0)
    outcome = robot.execute("take", {"thing": thing, "place": place})
    assert (outcome.status, robot.held) == ("success", outcome.message.split(" the ")[1].removesuffix(" from"))
    assert robot.held not in ("", thing)
    robot, (thing, place) = started(slip=1.0)
    robot.execute("take", {"thing": thing, "place": place})
    assert robot.held == thing
    away = next(call["place"] for call in robot._calls("go_to"))
    outcome = robot.execute("go_to", {"place": away})
    assert outcome.message.endswith("\nYou are not carrying anything.")
    assert (robot.held, robot.at) == ("", away)
    robot.execute("go_to", {"place": place})
    assert {"thing": thing, "place": place} in robot._calls("take")
    assert robot.injected == [Injected(len(robot.worked) - 1, "slip")]


def test_a_door_sticks_once_or_twice_and_then_opens(games):
    robot = robot_of(games, Faults(stuck=1.0))
    robot.begin(0)
    for place in [call["place"] for call in robot._calls("go_to")]:
        robot.execute("go_to", {"place": place})
        if robot._calls("open"):
            break
    tries = [robot.execute("open", {"place": place}).status for _ in range(3)]
    assert tries in (["failure", "success", "failure"], ["failure", "failure", "success"])  # an open door does not open


def test_a_blind_robot_is_asked_again_and_a_late_one_cancelled(games):
    run, _ = turns(robot_of(games, Faults(blind=1.0, max_blind=1)))
    assert all(step.tries == 3 and step.outcome.message != NOTHING_SEEN for step in run.steps)
    run, _ = turns(robot_of(games, Faults(blind=1.0, max_blind=4)))
    assert any(step.outcome.message == NOTHING_SEEN for step in run.steps)
    robot = robot_of(games, Faults(late=1.0, late_s=1000))
    run, _ = turns(robot)
    assert all(step.stopped and step.outcome.status == "unknown" for step in run.steps)
    assert robot.clock.now == 60 * len(run.steps)  # of no real second
    robot = robot_of(games, Faults(late=1.0, late_s=10))
    run, _ = turns(robot)
    assert not any(step.stopped for step in run.steps)
    assert 5 * len(run.steps) < robot.clock.now < 20 * len(run.steps)


def test_the_same_seed_is_the_same_luck_and_another_is_not(games):
    first, second = (turns(robot_of(games, MANY)) for _ in range(2))
    assert first == second
    assert turns(robot_of(games, MANY, seed=1))[1] != first[1]


def test_the_agent_gets_over_faults(games):
    """It looks what came of a step that nobody saw, and takes once more what slipped."""
    robot, agent = robot_of(games, MANY), PlannerCriticAgent.for_world("alfworld")
    runs = [turns(robot, task, agent) for task in range(len(games))]
    assert all(run.won for run, _ in runs)
    blind, checked = robot_of(games, Faults(blind=0.5)), 0
    for task in range(len(games)):
        _, done = turns(blind, task)
        for (command, text), (following, _) in itertools.pairwise(done):
            if text == NOTHING_SEEN and (verb := command.split()[0]) in ("open", "take", "move"):
                assert following == ("inventory" if verb != "open" else command.replace("open", "examine"))
                checked += 1
    assert checked > 2


def test_errors_are_sorted_by_what_was_known():
    here = ("", "desk 1")
    assert sort_errors([("take mug 1 from desk 1", True, True, here, here)]) == []
    refused, unaware = ("open desk 1", True, False, here, here), ("open desk 1", True, False, ("mug 1", "desk 1"), here)
    told = [refused, refused, unaware, ("go to bed 1", False, False, here, here), refused]
    assert sort_errors(told) == ["planning", "reasoning", "perception", "planning"]


def test_wrong_arguments_are_refused(games):
    with pytest.raises(InvalidInputError, match=r"faults.grasp: expected a chance of 0 to 1, got 2"):
        Faults(grasp=2)
    with pytest.raises(InvalidInputError, match="expected max_blind >= 1 and late_s > 0"):
        Faults(max_blind=0)
    world = envs.make("alfworld", tasks=games, num_envs=2)
    with pytest.raises(InvalidInputError, match="envs: expected one env for one robot, got 2"):
        SimulatedRobot(world, SKILLS, ROLES)
    with pytest.raises(InvalidInputError, match=r"roles: expected some of go_to, .*, got 'grab'"):
        SimulatedRobot(envs.make("alfworld", tasks=games), SKILLS, dataclasses.replace(ROLES, take="grab"))
