"""A compiler's prompts from the pool of a lifelong memory: the same bytes as those its weights were trained on."""

from __future__ import annotations

import functools
import hashlib
import pathlib

import pytest

from embodied_mem import envs
from embodied_mem.memory import Experiences, LifelongMemory
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.pool import Reading
from embodied_mem.training.tasks import bank_of
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher

DIGESTS = (
    (pathlib.Path(__file__).parents[1] / "fixtures" / "compiler_prompts" / "digests.txt")
    .read_text(encoding="ascii")
    .split()
)
"""Of each prompt the first eight digits of its SHA-256, as `Experiences` gave them at commit 33e07f1."""


def teacher(_: int) -> RuleTeacher:
    return RuleTeacher(statistics_order)


@functools.cache
def world():
    games = [game.load() for game in generate(140, seed=11, num_scenes=10)]
    return envs.make("alfworld", tasks=games, num_envs=40, max_steps=50)


@functools.cache
def bank() -> Experiences:
    return bank_of(world(), 100, teacher, seed=0)


@functools.cache
def memory() -> LifelongMemory:
    made = LifelongMemory()
    for episode, _ in bank().records:
        replay(made, episode)
    return made


class FromPool:
    """Experiences of a pool."""

    def __init__(self, memory: LifelongMemory, **reading):
        self._memory, self._reading = memory, reading

    def retrieve(self, goal, k, context, exclude_task_ids):
        asked = Reading(k=k, kinds=("experience",), **self._reading)
        return self._memory.pool_of(goal, context, asked, exclude_task_ids=exclude_task_ids).experiences


def prompts(bank) -> list[str]:
    data = play_teacher(world(), range(60, 140), bank, teacher, top_k=4, detour=0.1, seed=1)
    return [prompt for sample in data.samples for prompt in (sample.compiler_prompt, sample.no_brief_prompt)]


@pytest.mark.parametrize(
    ("reading", "first", "last"), [({}, 0, 600), ({"numbered": True, "newest_first": True}, 600, 1000)]
)
def test_prompts_of_the_pool_are_those_that_weights_were_trained_on(reading, first, last):
    made = prompts(FromPool(memory(), **reading))[: last - first]
    found = [hashlib.sha256(prompt.encode()).hexdigest()[:8] for prompt in made]
    different = [prompt for prompt, now, then in zip(made, found, DIGESTS[first:last], strict=True) if now != then]
    assert not different, f"{len(different)} differ, the first is\n{different[0]}"
