"""Frozen executors on real games before training: which ones a run goes on with."""

from __future__ import annotations

import pytest

from embodied_mem import envs
from embodied_mem.compiler.executor import Turn
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.score import check_executor
from embodied_mem.memory import Experiences
from embodied_mem.training.config import Config, WorldConfig
from embodied_mem.worlds.alfworld.generator import generate


class Says:
    """An executor that says these commands in turn."""

    def __init__(self, *commands: str):
        self.commands, self.count = commands, 0

    def act(self, prompts, keys, soft=None):
        command = self.commands[self.count % len(self.commands)]
        self.count += 1
        return Turn([command] * len(prompts), [1] * len(prompts), [1] * len(prompts))


def checked(*commands: str):
    games = [game.load() for game in generate(3, seed=0, num_scenes=3, prove=False)]
    world = envs.make("alfworld", tasks=games, num_envs=2, seed=0, max_steps=6)
    return check_executor(
        Config(WorldConfig(num_train=4, num_valid=1)), Says(*commands), world, len(games), Experiences()
    )


def test_one_whose_commands_are_refused_is_not_trained_for():
    with pytest.raises(InvalidInputError, match="won 0 of 3 training games in 6 steps each, and 33 % of its commands"):
        checked("look", "dance", "put it down")


def test_one_that_acts_passes_even_without_a_win():
    row = checked("look", "dance")
    assert (row.success, row.per_step("refused")) == (0.0, 0.5)
