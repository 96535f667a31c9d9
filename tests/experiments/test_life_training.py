"""Training on lives: the teacher says what the pool tells, and who breaks a day's rules has lost."""

import numpy as np
import pytest

from embodied_mem.agents.rollout import Lockstep
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.pool import KINDS, Reading
from embodied_mem.memory.words import words_of
from embodied_mem.training.teachers.episodes import play_teacher
from experiments.life.benchmark import CONDITIONS
from experiments.life.lives import read_instruction
from experiments.life.player import LifeTeacher
from experiments.life.tasks import LifeEnvs, lives_of, pools_of

READING = Reading(k=12, kinds=KINDS, focused=True, newest_first=True)


@pytest.fixture(scope="module")
def days():
    return lives_of(1, "train")[0].days[:60]


@pytest.fixture(scope="module")
def pools(days):
    return pools_of(lives_of(1, "train"), days, READING)


def wins(days, pools, setting: str) -> float:
    """The share of days that the teacher wins with what a setting shows, each within its own limit."""
    envs = LifeEnvs(days, len(days), seed=0, max_steps=20)
    data = play_teacher(
        envs, range(len(days)), pools.under((setting,), 0), lambda task: LifeTeacher(), top_k=12, detour=0.0, seed=0
    )
    return len(data.episodes) / len(days)


def test_the_pool_tells_the_teacher_more_than_past_episodes_and_these_more_than_nothing(days, pools):
    none, bank, pool = (wins(days, pools, setting) for setting in ("empty", "committed", "pool"))
    assert none + 0.1 < bank < pool - 0.1
    assert pool > 0.85


def test_what_the_teacher_says_stands_in_the_prompt_that_the_compiler_reads(days, pools):
    envs = LifeEnvs(days, len(days), seed=0, max_steps=20)
    data = play_teacher(
        envs, range(len(days)), pools.under(("pool",), 0), lambda task: LifeTeacher(), top_k=12, detour=0.0, seed=0
    )
    first = [sample for sample in data.samples if not sample.view[2] and sample.hint.startswith("find ")]
    assert len(first) > 20
    for sample in first:
        kind = sample.hint.rpartition(" in ")[2].split()[0]
        assert kind in f"{sample.memory}\n{sample.view[0]}"


def test_a_condition_takes_from_the_pools_what_its_memory_lacks(days, pools):
    def modules(some) -> set[str]:
        return {record.module for start in some.starts.values() for record in start.pool.records}

    others = lives_of(2, "train")[1:]
    without = pools_of(lives_of(1, "train"), days, READING, CONDITIONS["without notes"])
    irrelevant = pools_of(lives_of(1, "train"), days, READING, CONDITIONS["irrelevant"], others)
    assert "notes" in modules(pools) - modules(without)
    assert irrelevant.starts != pools.starts
    assert modules(irrelevant) >= modules(pools)


def test_every_record_of_a_focused_pool_names_the_thing_or_the_procedure(days, pools):
    for day in days:
        start = pools.starts[day.game.trial]
        instruction = read_instruction(day.instruction)
        words = {*(instruction.name or instruction.kind).split()}
        assert all(words <= {*words_of(record.text)} for record in start.pool.records)
    assert any(start.pool.left_out for start in pools.starts.values())


def test_no_record_stands_twice_though_it_is_found_by_goal_and_by_what_is_to_be_done(pools):
    for start in pools.starts.values():
        others = [record.id for record in start.pool.records if record.kind not in ("experience", "failure")]
        assert len(others) == len(set(others))


def test_taking_what_is_somebody_elses_and_too_many_steps_end_a_day_as_lost(days):
    day = next(day for day in days if day.truth.forbidden)
    kind, place = day.truth.forbidden
    envs = LifeEnvs([day], 1, seed=0, max_steps=20)
    envs.reset(options={"task_indices": np.array([0])})
    envs.step([f"go to {place}"])
    _, _, _, cut, info = envs.step([f"open {place}"])
    if not any(f"take {kind} " in command for command in info["admissible_commands"][0]):
        _, _, _, cut, info = envs.step([f"examine {place}"])
    [take] = [command for command in info["admissible_commands"][0] if command.startswith(f"take {kind} ")]
    assert not cut[0]
    _, _, _, cut, info = envs.step([take])
    assert cut[0]
    assert not info["won"][0]
    game = Lockstep(envs, [0], _Nothing(), 1)
    for _ in range(day.budget):
        assert game.running
        game.step(["look"])
    assert not game.running


def test_a_day_that_begins_later_has_its_own_limit(days):
    first, second = days[:2]
    envs = LifeEnvs(days, 1, seed=0, max_steps=20)
    game = Lockstep(envs, [0, 1], _Nothing(), 1)
    for _ in range(first.budget):
        game.step(["look"])
    assert (game.running, game.num_left) == ([], 1)
    [row] = game.refill()
    assert (row.number, row.index, row.task) == (1, 0, 1)
    for _ in range(second.budget):
        assert game.running
        game.step(["look"])
    assert not game.running


class _Nothing:
    def retrieve(self, goal, k, context, exclude_task_ids):
        return ()


def test_an_unknown_setting_is_refused(pools):
    with pytest.raises(InvalidInputError, match="stale"):
        pools.under(("stale",), 0)
