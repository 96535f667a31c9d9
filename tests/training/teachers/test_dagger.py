"""Episodes of the compiler labelled by the teacher, against the teacher's own play."""

from __future__ import annotations

import dataclasses
import types

import pytest

from embodied_mem import envs
from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.rollout import Trajectory
from embodied_mem.compiler.brief_state import Create
from embodied_mem.compiler.executor import Turn
from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import CompilerOutput, parse_output
from embodied_mem.memory import Experiences
from embodied_mem.training.config import CorrectionConfig, SFTConfig
from embodied_mem.training.tasks import TrainingTasks
from embodied_mem.training.teachers import dagger as correction
from embodied_mem.training.teachers.dagger import relabel
from embodied_mem.training.teachers.episodes import play_teacher, read_samples, write_samples
from embodied_mem.training.teachers.games import Games
from embodied_mem.types import Step
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher
from experiments.configs import load

NUM_GAMES = 18


def world_of(num_envs: int):
    """The games of this file."""
    games = [game.load() for game in generate(NUM_GAMES, seed=1, num_scenes=12, split="train")]
    return envs.make("alfworld", tasks=games, num_envs=num_envs, seed=0, max_steps=50)


def teacher_of(task: int) -> RuleTeacher:
    """The teacher of a task."""
    return RuleTeacher()


@pytest.fixture(scope="module")
def played():
    """(bank, episodes, their samples) of the teacher, without detours."""
    world = world_of(NUM_GAMES)
    bank = Experiences()
    options = {"top_k": 3, "detour": 0.0, "seed": 0}
    bank.add_many(play_teacher(world, range(NUM_GAMES), bank, teacher_of, **options).episodes)
    data = play_teacher(world, range(NUM_GAMES), bank, teacher_of, **options)
    assert data.num_lost == 0
    return bank, data.episodes, data.samples


def trajectory_of(episode, outputs: list[CompilerOutput], experiences=()) -> Trajectory:
    """The episode as if a compiler had written these outputs."""
    delivered = [Delivered(record=Compiled(output, [], (), ())) for output in outputs]
    return Trajectory(0, 0, episode, 1.0, delivered, [], 0.0, 0.0, experiences=experiences)


def experiences_of(bank, episode):
    return bank.retrieve(episode.goal, k=3, context=episode.first_observation, exclude_task_ids=(episode.task_id,))


def test_a_compiler_that_writes_what_the_teacher_writes_gets_the_teachers_samples(played):
    bank, episodes, samples = played
    position = 0
    for episode in episodes:
        theirs = samples[position : position + len(episode.steps)]
        position += len(theirs)
        outputs = [parse_output(sample.output) for sample in theirs]
        assert relabel(trajectory_of(episode, outputs, experiences_of(bank, episode)), RuleTeacher()) == theirs
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
    relabelled = relabel(trajectory_of(episode, outputs, experiences_of(bank, episode)), RuleTeacher())
    assert f"{thing} in {place}" in relabelled[1].compiler_prompt
    assert f"- seen: {thing}" in relabelled[1].output
    assert relabelled[0] == samples[start]


def test_samples_survive_the_file(played, tmp_path):
    path = tmp_path / "own.jsonl.gz"
    write_samples(path, played[2])
    assert read_samples(path) == played[2]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


class Stubborn:
    """Stands in for an executor: it repeats one command and notes the prompts that it reads."""

    def __init__(self, command: str):
        self.command, self.prompts = command, []

    def act(self, prompts, keys):
        self.prompts += prompts
        return Turn([self.command] * len(prompts), [], [])


def test_an_executors_loop_gives_one_sample_with_the_teachers_command(played, tmp_path):
    config = dataclasses.replace(
        load("grpo_cpu"), executor_correction=CorrectionConfig(num_games=6, max_steps=12, sft=SFTConfig(steps=1))
    )
    stubborn = Stubborn("eat everything")
    games = Games(config, TrainingTasks(world_of(4), None, None, NUM_GAMES, 0, teacher_of, str), played[0])
    own = correction.own_commands(games, stubborn, 0, tmp_path)
    assert len(stubborn.prompts) == 6 * 12
    assert len(own) == 6 * 3, "the first step, the first answer, and twice the same answer"
    for sample in own:
        assert sample.action != stubborn.command
        assert all(turn == (stubborn.command, "Nothing happens.") for turn in sample.view[2])
    assert any("hint: " in prompt for prompt in stubborn.prompts)
    assert not all("hint: " in prompt for prompt in stubborn.prompts)
    assert correction.own_commands(games, stubborn, 0, tmp_path) == own
    assert len(stubborn.prompts) == 6 * 12, "a round that was stored is not played again"
    others = correction.own_commands(games, stubborn, 1, tmp_path)
    goals = [{(s.view[0], s.view[1]) for s in each if not s.view[2]} for each in (own, others)]
    assert goals[1] - goals[0], "another round plays other games first"


def test_a_state_that_a_compilers_episode_comes_back_to_gives_one_sample(played, monkeypatch, tmp_path):
    bank, episodes, _ = played
    config = dataclasses.replace(load("grpo_cpu"), correction=CorrectionConfig(num_games=1, sft=SFTConfig(steps=1)))
    idle = [Step(episodes[0].first_observation, "eat"), *[Step("Nothing happens.", "eat")] * 9]
    silent = trajectory_of(
        dataclasses.replace(episodes[0], steps=tuple(idle), final_observation="Nothing happens.", won=False),
        [CompilerOutput.make("", [], "")] * 10,
    )
    deliveries = []
    monkeypatch.setattr(correction, "play", lambda *given, **_: deliveries.append(given[2].name) or [silent])
    games = Games(config, TrainingTasks(world_of(1), None, None, 1, 0, teacher_of, str), bank)
    own = correction.own_episodes(games, types.SimpleNamespace(num_soft=0), None, 0, tmp_path)
    assert [s.compiler_prompt for s in own] == list(dict.fromkeys(s.compiler_prompt for s in own))
    assert len(own) == 2
    bare = dataclasses.replace(config, data=dataclasses.replace(config.data, no_brief=1.0))
    games = dataclasses.replace(games, config=bare)
    correction.own_episodes(games, types.SimpleNamespace(num_soft=0), None, 1, tmp_path)
    assert deliveries == ["compiled", "compiled_no_brief"], "a compiler without a Brief State plays without one"
