"""Deliveries of a lifelong memory: the same as those of its episodes' bank, and what only the life knows."""

from __future__ import annotations

import functools

import pytest
from scripted_play import Scripted, games, random_compiler, world

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.rollout import play
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.controls import Setting, under
from embodied_mem.memory import Experiences, LifelongMemory
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.pool import Reading
from embodied_mem.training.tasks import bank_of
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher

pytestmark = pytest.mark.usefixtures("unoptimised")


@functools.cache
def bank() -> Experiences:
    return bank_of(world(8, max_steps=50), len(games()), lambda _: RuleTeacher(statistics_order), seed=0)


def played(name: str, reading: Reading) -> tuple[list[list[str]], list]:
    """(prompts of executor and compiler, episodes)."""
    executor, compiler = Scripted(), random_compiler()
    delivery, view, acting = under(Setting(name), executor, compiler, bank(), reading=reading)
    trajectories = play(world(8), acting, delivery, view, tasks=range(8), seeds=[0] * 8, top_k=reading.k)
    return [*executor.prompts, *compiler.prompts], [one.episode for one in trajectories]


@pytest.mark.parametrize("name", ["static", "compiled", "compiled_text", "compiled_no_brief"])
def test_trajectories_are_delivered_as_those_of_the_bank(name):
    reading = Reading(k=3, kinds=("experience",))
    prompts, episodes = played(name, reading)
    assert played(f"lifelong_{name}", reading) == (prompts, episodes)
    assert any("was in" in prompt for batch in prompts for prompt in batch)


def test_what_was_said_and_seen_is_delivered_too_and_what_changes_within_the_task():
    memory = LifelongMemory()
    for episode, _ in bank().records[:4]:
        replay(memory, episode)
    memory.tell("The pencil in the shelf belongs to my sister.")
    compiler, reading = random_compiler(), Reading(k=60)
    delivery = make_delivery("lifelong_compiled", compiler, memory=memory, reading=reading)
    before = memory.export()
    play(world(8), Scripted(), delivery, Experiences(), tasks=range(8), seeds=[0] * 8, top_k=1)
    first, last = compiler.prompts[0], compiler.prompts[-1]
    assert any("belongs to my sister" in prompt for prompt in first)
    assert sum(prompt.count("\nplace now:") for prompt in first) < sum(prompt.count("\nplace now:") for prompt in last)
    assert memory.export() == before, "an episode is lived in a fork"


def test_a_lifelong_delivery_needs_a_memory():
    with pytest.raises(InvalidInputError, match="expected a lifelong memory"):
        make_delivery("lifelong_static")
