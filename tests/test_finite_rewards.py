"""NaN and infinity as rewards, progress or outcomes are refused by name, wherever they come in."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embodied_mem import registry
from embodied_mem.agents.agent import Agent
from embodied_mem.agents.rollout import rollout
from embodied_mem.envs import make
from embodied_mem.envs.simulators.env import _Episode, _Simulators
from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError, SimulatorError
from embodied_mem.memory import Experiences, LifelongMemory, lifelong
from embodied_mem.training.grpo import group_normalized_advantages
from embodied_mem.types import Episode, Step
from experiments.baselines.memgen_training import shaped_rewards

WRONG = [float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("wrong", [*WRONG, np.float64("nan"), None, 1.5])
def test_a_memory(wrong):
    memory = LifelongMemory()
    memory.begin_task("t", "put a mug on the desk.", "You see a desk 1.")
    before = memory.state()
    with pytest.raises(InvalidInputError, match="won: expected True or False"):
        memory.end_task(wrong)
    assert memory.state() == before
    episode = Episode("t", "put a mug on the desk.", (Step("You see a desk 1.", "look"),), wrong, "")
    for add in (functools.partial(lifelong.replay, LifelongMemory()), Experiences().add):
        with pytest.raises(InvalidInputError, match=r"won: expected True or False"):
            add(episode)


@pytest.mark.parametrize("wrong", WRONG)
def test_grpo(wrong):
    rewards = np.array([[0.0, 1.0], [wrong, 1.0]])
    with pytest.raises(InvalidInputError, match=r"rewards\[1, 0\]: expected a finite number, got (nan|-?inf)"):
        group_normalized_advantages(jnp.asarray(rewards))
    assert jax.jit(group_normalized_advantages)(jnp.ones((2, 2)))[1] == 2
    with pytest.raises(InvalidInputError, match=r"rewards\[2\]: expected a finite number"):
        shaped_rewards(rewards.reshape(-1), [np.zeros(1, bool)] * 4, 0.1)


class Looks(Agent):
    def reset(self, goal, observation, info):
        pass

    def act(self, observation, info):
        return "look"

    def end(self, won, observation):
        pass


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("field", ["won", "progress"])
def test_a_rollout_in_a_world_of_others(wrong, field):
    home = registry.load("alfworld", "generated")(2, 0)
    envs = make("alfworld", **home, num_envs=2, max_steps=2)
    step = envs.step

    def wrong_step(actions):
        *answers, info = step(actions)
        return *answers, info | {field: np.array([0.0, wrong])}

    envs.step = wrong_step
    with pytest.raises(InvalidInputError, match=rf"info\['{field}'\]\[1\]: expected a finite number, got (nan|-?inf)"):
        rollout(envs, [Looks(), Looks()], [[0], [1]])


@pytest.mark.parametrize("wrong", WRONG)
def test_a_single_env(wrong):
    env = TextEnv("alfworld")
    env.reset(seed=1)
    step = env._envs.step
    env._envs.step = lambda actions: (step(actions)[0], np.array([wrong]), *step(actions)[2:])
    with pytest.raises(InvalidInputError, match=r"reward: expected a finite number, got (nan|-?inf)"):
        env.step("look")


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("field", ["reward", "progress"])
def test_a_simulator(wrong, field):
    class Program:
        def ask(self, **request):
            return {"text": "t", "progress": 0.0, "ended": False, "valid": True, field: wrong}

    with pytest.raises(SimulatorError, match=rf"{field}: expected a finite number of the program, got (nan|-?inf)"):
        _Simulators.play(None, Program(), _Episode(), "look")
