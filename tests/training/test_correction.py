"""Episodes of the compiler labelled by the teacher, against the teacher's own play."""

from __future__ import annotations

import dataclasses

import pytest

from embodied_mem import envs
from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.player import Trajectory
from embodied_mem.compiler.brief_state import Create
from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import CompilerOutput, parse_output
from embodied_mem.envs.alfworld_generator import generate
from embodied_mem.memory import MemoryBank
from embodied_mem.training import correction
from embodied_mem.training.correction import relabel
from embodied_mem.training.teacher import RuleTeacher
from embodied_mem.training.teacher_data import play_teacher

NUM_GAMES = 18


@pytest.fixture(scope="module")
def played():
    """(bank, episodes, their samples) of the teacher, without detours."""
    games = [game.load() for game in generate(NUM_GAMES, seed=1, num_scenes=12, split="train")]
    world = envs.make("alfworld", tasks=games, num_envs=NUM_GAMES, seed=0, max_steps=50)
    bank = MemoryBank()
    options = {"top_k": 3, "detour": 0.0, "seed": 0}
    bank.add_many(play_teacher(world, range(NUM_GAMES), bank, RuleTeacher, **options).episodes)
    data = play_teacher(world, range(NUM_GAMES), bank, RuleTeacher, **options)
    assert data.num_lost == 0
    return bank, data.episodes, data.samples


def trajectory_of(episode, outputs: list[CompilerOutput]) -> Trajectory:
    """The episode as if a compiler had written these outputs."""
    delivered = [Delivered(record=Compiled(output, [], (), ())) for output in outputs]
    return Trajectory(0, 0, episode, 1.0, delivered, [], 0.0, 0.0)


def experiences_of(bank, episode):
    return bank.retrieve(episode.goal, top_k=3, context=episode.first_observation, exclude_task_ids=(episode.task_id,))


def test_a_compiler_that_writes_what_the_teacher_writes_gets_the_teachers_samples(played):
    bank, episodes, samples = played
    position = 0
    for episode in episodes:
        theirs = samples[position : position + len(episode.steps)]
        position += len(theirs)
        outputs = [parse_output(sample.output) for sample in theirs]
        assert relabel(trajectory_of(episode, outputs), experiences_of(bank, episode), RuleTeacher()) == theirs
    assert position == len(samples)


def test_a_mistake_is_in_the_next_prompt_and_the_teacher_takes_it_back(played):
    bank, episodes, samples = played
    number = next(i for i, e in enumerate(episodes) if "closed" not in e.steps[1].observation)
    episode, start = episodes[number], sum(len(e.steps) for e in episodes[:number])
    outputs = [parse_output(sample.output) for sample in samples[start : start + len(episode.steps)]]
    first = outputs[0]
    # The agent goes to a place where the compiler had just claimed to have seen the object, in vain.
    place = episode.steps[0].action.removeprefix("go to ")
    thing = f"{episode.goal.split()[2].strip('.')} 9"
    false = Create("seen", thing, place)
    outputs[0] = dataclasses.replace(first, edits=(*first.edits, false))
    relabelled = relabel(trajectory_of(episode, outputs), experiences_of(bank, episode), RuleTeacher())
    assert f"{thing} in {place}" in relabelled[1].compiler_prompt
    assert f"- seen: {thing}" in relabelled[1].output
    assert relabelled[0] == samples[start]


def test_samples_survive_the_file(played, tmp_path):
    path = tmp_path / "own.jsonl.gz"
    correction._write(path, played[2])
    assert correction._read(path) == played[2]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
