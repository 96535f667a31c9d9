"""The loop that plays agents by text: order of tasks, giving up, what is told, and what runs without jax."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from embodied_mem.agents.agent import Agent, CommandGenerator
from embodied_mem.agents.rollout import rollout
from embodied_mem.errors import InvalidInputError


class Rooms:
    """Task t is won by the (t + 1)-th `knock` of an episode; four steps at most. It writes down what is called."""

    def __init__(self, num_envs):
        self.num_envs, self.calls = num_envs, []
        self.tasks, self.knocks, self.steps = ([0] * num_envs for _ in range(3))

    def reset(self, *, options):
        self.calls.append((options["reset_mask"].tolist(), options["task_indices"].tolist()))
        for i in np.flatnonzero(options["reset_mask"]):
            self.tasks[i], self.knocks[i], self.steps[i] = int(options["task_indices"][i]), 0, 0
        info = self._info() | {"goal": [f"goal {t}" for t in self.tasks], "task_id": [f"task {t}" for t in self.tasks]}
        return [f"hall {t}\n\ngoal {t}" for t in self.tasks], info

    def step(self, actions):
        self.calls.append(list(actions))
        for i, action in enumerate(actions):
            self.knocks[i] += action == "knock"
            self.steps[i] += 1
        info = self._info()
        return [f"knocks: {n}" for n in self.knocks], None, info["won"], np.array(self.steps) >= 4, info

    def _info(self):
        won = np.array([knocks > task for knocks, task in zip(self.knocks, self.tasks)])
        commands = [["knock", "wait"]] * self.num_envs
        return {"won": won, "progress": won.astype(float), "admissible_commands": commands}


class Knocker(Agent):
    """Says the same at every step; writes down what it is told."""

    def __init__(self, command="knock"):
        self.command, self.told = command, []

    def reset(self, goal, observation, info):
        self.told.append((goal, observation, dict(info)))

    def act(self, observation, info):
        self.told.append((observation, dict(info)))
        return self.command

    def end(self, won, observation):
        self.told.append((won, observation))


class Twice(CommandGenerator):
    def play(self, goal, text):
        assert text == "hall 3", "without the goal"
        assert (yield "knock") == "knocks: 1"
        assert (yield "knock") == "knocks: 2"


def test_agents_play_their_tasks_in_order_side_by_side():
    envs, agents = Rooms(3), [Knocker(), Knocker("wait"), Knocker()]
    ended = []
    played = rollout(envs, agents, [[1, 0], [2], []], on_episode=lambda one: ended.append(one.task))
    assert [(one.task, one.row, one.position, one.won, one.cut) for one in played] == [
        (0, 0, 1, True, False), (1, 0, 0, True, False), (2, 1, 0, False, True),
    ]  # fmt: skip
    assert ended == [1, 0, 2]
    assert played[1].actions == ("knock", "knock")
    assert played[1].answers == ("knocks: 1", "knocks: 2")
    assert envs.calls[0] == ([True, True, True], [1, 2, 0]), "an env without a task is reset, too, once"
    assert envs.calls[3] == ([True, False, False], [0, 2, 0])
    assert envs.calls[4] == ["knock", "wait", "look"]
    assert agents[2].told == []
    assert agents[0].told[:4] == [
        ("goal 1", "hall 1\n\ngoal 1", {"task_id": "task 1"}),
        ("hall 1\n\ngoal 1", {"task_id": "task 1"}), ("knocks: 1", {}), (True, "knocks: 2"),
    ]  # fmt: skip


def test_an_agent_that_has_nothing_more_to_do_ends_the_episode():
    envs, other = Rooms(2), Knocker()
    played = rollout(envs, [Twice(), other], [[3, 3], [0]])
    assert [(one.task, one.won, len(one.actions), one.cut) for one in played] == [
        (0, True, 1, False), (3, False, 2, False), (3, False, 2, False),
    ]  # fmt: skip


def test_lists_of_actions_are_given_where_asked_for():
    agent = Knocker()
    rollout(Rooms(1), [agent], [[0]], lists_actions=True)
    assert agent.told[0][2]["admissible_commands"] == ["knock", "wait"]


def test_numbers_that_differ_are_refused():
    with pytest.raises(InvalidInputError, match=r"one agent and one list of tasks per env \(2\), got 1, 2"):
        rollout(Rooms(2), [Knocker()], [[0], [1]])


def test_agents_by_text_load_no_jax():
    code = (
        "import sys\n"
        "from embodied_mem.registry import load, names\n"
        "import embodied_mem.agents.rollout, embodied_mem.cli\n"
        "for name in names('benchmark'): load(name, 'benchmark')\n"
        "print([m for m in ('jax', 'flax', 'optax', 'tyro', 'tqdm') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
