"""Answers with other contents: what they leave as it was, what they change, and what the teacher says of them."""

import collections
import functools
import re

import numpy as np
import pytest

from embodied_mem import envs
from embodied_mem.memory import Experiences
from embodied_mem.training.teachers.episodes import play_teacher, replace_word
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher, TeacherNoise
from embodied_mem.worlds.alfworld.wording.text import CHANGERS, parse_observation, type_of

ANSWERS = (
    "You arrive at desk 1. On the desk 1, you see a pen 2, and a mug 1.",
    "You open the fridge 1. The fridge 1 is open. In it, you see nothing.",
    "On the shelf 3, you see a watch 1.",
)


@functools.cache
def drawn(answer):
    random = np.random.default_rng(0)
    return [TeacherNoise().imagined_answer(answer, "mug", random) for _ in range(2000)]


@pytest.mark.parametrize("answer", ANSWERS)
def test_only_the_contents_change(answer):
    before = parse_observation(answer)
    for imagined in drawn(answer):
        after = parse_observation(imagined)
        assert (after.kind, after.receptacle, after.is_open) == (before.kind, before.receptacle, before.is_open)
        assert after.contents is not None
        assert len(set(after.contents)) == len(after.contents)
        assert (" nothing." in imagined) == (after.contents == ())


def test_neither_presence_nor_number_can_be_guessed():
    """Half of 2,000 answers hold the object: 1,000 with a standard deviation of 22. Among those with one mug, each of
    the four numbers has a share of a quarter: about 212 with a deviation of 13."""
    contents = [parse_observation(text).contents for text in drawn(ANSWERS[0])]
    mugs = [[name for name in names if type_of(name) == "mug"] for names in contents]
    assert abs(sum(map(bool, mugs)) - 1000) < 90
    numbers = collections.Counter(names[0] for names in mugs if len(names) == 1)
    assert set(numbers) == {f"mug {n}" for n in range(1, 5)}
    assert max(numbers.values()) - min(numbers.values()) < 75


@pytest.mark.parametrize(
    "answer", ["", "Nothing happens.", "The fridge 1 is closed.", "You pick up the mug 1 from the desk 1."]
)
def test_answers_without_contents_give_none(answer):
    assert TeacherNoise().imagined_answer(answer, "mug", np.random.default_rng(0)) == ""


def test_samples_are_added_and_the_play_goes_on_as_it_was():
    games = [game.load() for game in generate(12, seed=0, num_scenes=4, prove=False)]
    worlds = envs.make("alfworld", tasks=games, num_envs=12)

    def play(imagined):
        return play_teacher(
            worlds, range(12), Experiences(), lambda task: RuleTeacher(statistics_order), top_k=1, detour=0.0, seed=0,
            imagined=imagined,
        )  # fmt: skip

    plain, more = play(0.0), play(1.0)
    assert more.episodes == plain.episodes
    added = collections.Counter(more.samples)
    added.subtract(plain.samples)
    assert min(added.values()) == 0
    added = list(added.elements())
    assert len(added) > 20
    for sample in added:
        answer = parse_observation(sample.view[2][-1][1])
        goal_object = sample.compiler_prompt.split("\n")[-2].removeprefix("find ")
        there = [name for name in answer.contents if type_of(name) == goal_object]
        said = [line.split(": ")[1].split(" in ")[0] for line in sample.output.split("\n") if line.startswith("+ seen")]
        assert set(said) <= set(there)
        assert bool(said) == bool(there)


def test_a_made_up_name_stands_in_all_texts_of_an_episode():
    games = [game.load() for game in generate(1, seed=0, num_scenes=1, prove=False)]
    worlds = envs.make("alfworld", tasks=games, num_envs=1, seed=0)
    plain, other = (
        play_teacher(
            worlds, [0], Experiences(), lambda task: RuleTeacher(statistics_order), top_k=1, detour=0.0, seed=0,
            new_names=share,
        ).samples
        for share in (0.0, 1.0)
    )  # fmt: skip
    words = [set(re.findall(r"[a-z]+", repr(some).replace("\\n", " ").lower())) for some in (plain, other)]
    [old], [new] = words[0] - words[1], words[1] - words[0]
    assert old not in CHANGERS.values()
    assert any(old in sample.action for sample in plain)
    assert [replace_word(sample, old, new) for sample in plain] == other


def test_made_up_names_have_many_patterns():
    games = [game.load() for game in generate(12, seed=0, num_scenes=4, prove=False)]
    worlds = envs.make("alfworld", tasks=games, num_envs=12, seed=0)

    def words(share):
        samples = play_teacher(
            worlds, range(12), Experiences(), lambda task: RuleTeacher(statistics_order), top_k=1, detour=0.0, seed=0,
            new_names=share,
        ).samples  # fmt: skip
        return set(re.findall(r"[a-z]+", repr(samples).replace("\\n", " ").lower()))

    patterns = {re.sub("[aeiou]", "a", re.sub("[^aeiou]", "b", name)) for name in words(1.0) - words(0.0)}
    assert len(patterns) >= 6
