"""Learning over a life: what is remembered, what is forgotten, and that it helps."""

import functools
import re

import numpy as np
import pytest

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.compiler.prompts import Shown
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import BankView
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import sources_of
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.wording.follower import Follower
from experiments.analyses.online_bank import Lives, forgotten, learned_from, remember, windows

ROOM = "Looking quickly around you, you see a desk 1, a shelf 1, and a shelf 2.\n\nYour task is to: put a mug in desk."
LOST = Episode(
    "t1",
    "put a mug in desk.",
    (
        Step(ROOM, "go to shelf 1"),
        Step("You arrive at shelf 1. On the shelf 1, you see a pen 1.", "go to shelf 2"),
        Step("You arrive at shelf 2. On the shelf 2, you see a mug 1.", "take mug 1 from shelf 2"),
        Step("You pick up the mug 1 from the shelf 2.", "move mug 1 to shelf 1"),
    ),
    False,
    "You move the mug 1 to the shelf 1.",
)


def test_a_loss_says_where_the_thing_was_and_nothing_of_what_was_done(tmp_path):
    bank = Experiences(lost=True)
    remember(bank, LOST)
    [found] = bank.retrieve("put a mug in desk.", 1, ROOM)
    assert found.brief() == "here: mug was in shelf 2"
    bank.save(tmp_path / "bank.jsonl")
    [(again, rationale)] = Experiences.load(tmp_path / "bank.jsonl").records
    assert (again, rationale) == (LOST, "mug 1 was in shelf 2; 4 steps")
    with pytest.raises(InvalidInputError, match="won=False"):
        Experiences().add(LOST)


def test_a_loss_without_a_find_is_not_remembered():
    bank, searched = Experiences(lost=True), Episode("t2", LOST.goal, LOST.steps[:2], False, LOST.steps[2].observation)
    assert learned_from(searched) == ""
    remember(bank, searched)
    assert len(bank) == 0


def test_forgetting_leaves_a_share_drawn_by_the_seed():
    bank = Experiences(lost=True, object_weight=3.0)
    for number in range(10):
        remember(bank, Episode(f"t{number}", LOST.goal, LOST.steps, number % 2 == 0, LOST.final_observation))
    left = forgotten(bank, 0.5, seed=1)
    assert len(left) == 5
    assert left.object_weight == 3.0
    assert set(left.records) < set(bank.records)
    assert left.records == forgotten(bank, 0.5, seed=1).records != forgotten(bank, 0.5, seed=2).records
    assert len(forgotten(bank, 0.0, 0)) == len(bank) == 10


def test_windows_are_over_all_lives():
    won = np.array([[1, 0], [1, 1], [0, 0], [0, 1], [1, 1]], bool)
    assert [(row["tasks"], row["success"]) for row in windows(won, 2)] == [([1, 2], 0.75), ([3, 4], 0.25), ([5, 5], 1)]


class Beginner(Follower):
    """Does what the guidance says, and without any looks into the first place of the room."""

    def _command(self, prompt):
        told = super()._command(prompt)
        kind = re.search(r"^room: ([a-z]+)", prompt, re.MULTILINE)[1]
        if told != "look":
            return told
        return f"open {kind} 1" if f"The {kind} 1 is closed" in prompt else f"go to {kind} 1"


def test_lives_learn_from_what_they_lived_through_and_only_from_that():
    world = WorldConfig(num_train=1, num_valid=40, num_scenes=4, habit=1.0, own_habits=True, homes=1, max_steps=10)
    sources = [sources_of(world, seed)[0] for seed in (0, 3)]
    games = [game for source in sources for game in source.sides()[1]]
    orders, view = np.arange(80).reshape(2, 40).T, functools.partial(BankView, numbered=True)
    lives = Lives(sources[0].envs(games, 2), orders, 4, Shown(), view)
    teacher = make_delivery("teacher", teacher=sources[0].teacher)
    banks = lives.empty()
    won = lives.play(Beginner(), teacher, banks, first=0, last=40, seed=0)
    rooms = [{episode.first_observation.partition("Your task")[0] for episode, _ in bank.records} for bank in banks]
    assert [len(one) for one in rooms] == [1, 1]
    assert rooms[0] != rooms[1]
    assert sum(len(bank) for bank in banks) >= won.sum()
    blank = [lives.play(Beginner(), teacher, lives.empty(), first=t, last=t + 1, seed=0) for t in range(20, 40)]
    assert won[20:].sum() >= np.concatenate(blank).sum() + 4  # 22 against 16
