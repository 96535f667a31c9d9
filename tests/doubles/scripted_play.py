"""Eight generated games, an executor that walks by its keys, a compiler that says what a test wants."""

import functools
import re

import jax
import numpy as np

from embodied_mem import envs
from embodied_mem.agents.rollout import play
from embodied_mem.compiler.executor import Turn
from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.worlds.alfworld.generator import generate

SOFT = "<soft>"


@functools.cache
def games():
    return tuple(game.load() for game in generate(8, seed=0, num_scenes=12, prove=False))


def world(num_envs, max_steps=6):
    return envs.make("alfworld", tasks=list(games()), num_envs=num_envs, seed=0, max_steps=max_steps)


class Scripted:
    """An executor for tests: walks the room by its key and keeps what it read."""

    def __init__(self, script=None):
        self.prompts: list[list[str]] = []
        self.soft: list[list] = []
        self.script = script

    def act(self, prompts, keys, soft):
        self.prompts.append(list(prompts))
        self.soft.append(list(soft))
        numbers = np.asarray(jax.random.key_data(keys))[:, -1]
        actions = []
        for prompt, number in zip(prompts, numbers):
            room = re.search(r"^room: (.*)$", prompt, re.M)[1].split("; ")
            place = room[int(number) % len(room)]
            actions.append(self.script[len(self.prompts) - 1] if self.script else f"go to {place}")
        return Turn(actions, [len(p) for p in prompts], [3] * len(prompts))


class ScriptedCompiler:
    """A compiler for tests: says `text(prompt, random number of the row)`."""

    num_soft = 4

    def __init__(self, text):
        self.text = text
        self.prompts: list[list[str]] = []

    def compile(self, prompts, keys, *, soft=True):
        self.prompts.append(list(prompts))
        numbers = np.asarray(jax.random.key_data(keys))[:, -1]
        return [
            Compiled(
                parse_output(self.text(prompt, number)), [1] * 7, np.array([5, 2]), np.zeros(2, np.float32),
                np.full((4, 3), number % 100, np.float32) if soft else None, np.zeros(4) if soft else None,
            )
            for prompt, number in zip(prompts, numbers)
        ]  # fmt: skip


def random_compiler():
    return ScriptedCompiler(lambda _, n: f"experience\ndo: think of {n}" if n % 3 else "brief\n+ searched: desk 1")


class Ending:
    """A world whose episode of task t ends after 1 + t % 3 steps; it counts resets."""

    def __init__(self, num_envs):
        self.envs = world(num_envs)
        self.num_envs, self.max_steps, self.resets = num_envs, 6, 0

    def reset(self, *, options):
        self.resets += 1
        begun = options.get("reset_mask", np.ones(self.num_envs, bool))
        limits = 1 + np.asarray(options["task_indices"]) % 3
        self.left = np.where(begun, limits, self.left if self.resets > 1 else 0)
        return self.envs.reset(options=options)

    def step(self, actions):
        self.left -= 1
        observations, rewards, terminations, truncations, info = self.envs.step(actions)
        return observations, rewards, terminations | (self.left == 0), truncations, info


PAIRS = [(0, 0), (3, 0), (2, 1), (2, 2), (5, 9), (7, 0), (1, 4), (6, 0)]


def refilled(num_envs, executor, delivery, bank):
    """Play `PAIRS` in so many rows."""
    ending = Ending(num_envs)
    trajectories = play(
        ending, executor, delivery, bank, tasks=[t for t, _ in PAIRS], seeds=[s for _, s in PAIRS], top_k=2
    )
    return ending, trajectories
