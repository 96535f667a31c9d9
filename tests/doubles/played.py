"""Whole episodes for the tests of the memories: an expert with random commands in between, in generated games."""

from __future__ import annotations

import random

from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.env import Env
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.generator import GeneratedGame


def played(game: GeneratedGame, seed: int, noise: float = 0.3, max_steps: int = 40) -> Episode:
    """One episode; `noise` is the share of random commands, half of them not admissible."""
    rng = random.Random(seed)
    env = Env(game.load())
    text = env.reset()
    expert = ObservingExpert()
    expert.reset(game.goal, text)
    steps = []
    while len(steps) < max_steps and not env.won:
        if rng.random() < noise:
            names = sorted(env.state()["receptacles"])
            command = rng.choice([*env.admissible_commands, *(f"open {name}" for name in names)])
            answer = env.step(command)
            expert.observe(command, answer)
        else:
            command = expert.act(text)
            answer = env.step(command)
        steps.append(Step(text, command))
        text = answer
    return Episode(game.task_id, game.goal, tuple(steps), env.won, text)
