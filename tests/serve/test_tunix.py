"""Tunix's task environment: an episode against the world's own, in the way its learner makes and drives envs."""

from __future__ import annotations

import pytest

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError

pytest.importorskip("tunix.rl.agentic.environments.base_environment", reason="google-tunix is not installed")

from embodied_mem.serve.tunix import TunixWorld, batches


def test_a_group_plays_one_task_as_the_world_does():
    (batch,) = batches(1, batch_size=4, first_seed=3)
    row = {name: values[:1] for name, values in batch.items()}  # as its learner cuts a batch
    world = TextEnv("alfworld", max_steps=4)
    text, info = world.reset(seed=3)
    commands = [info["admissible_commands"][0], "fly away", "look", "inventory"]
    for pair_index in range(2):
        env = TunixWorld(row, group_id=7, pair_index=pair_index, world="alfworld", max_steps=4)
        first, _ = env.reset()
        assert first.startswith(text)
        assert env.extra_kwargs == {"group_id": 7, "pair_index": pair_index}
        world.reset(seed=3)
        for step, command in enumerate(commands):
            expected, reward, _, _, expected_info = world.step(command)
            observation, paid, done, info = env.step(f"<think>hm</think><action>{command}</action>")
            assert observation.startswith(expected)
            assert (paid, done) == (reward, step == 3)
            assert info == {
                "command": command,
                "won": bool(expected_info["won"]),
                "progress": expected_info["progress"],
            }
        env.close()


def test_a_reward_of_ones_own_replaces_the_worlds():
    env = TunixWorld({"seed": 0}, reward_fn=lambda task, action, reward: len(action) + task["seed"])
    env.reset()
    assert env.step("look")[1] == 4.0


def test_a_row_without_a_seed_is_refused():
    with pytest.raises(InvalidInputError, match="seed"):
        TunixWorld({"prompts": "hello"})
