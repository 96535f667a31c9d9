"""What is one task in ALFWorld, however its id is spelled; a bank leaves it out."""

from __future__ import annotations

import pytest

from embodied_mem.memory import Experiences
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.env import trial_key


def episode(task_id: str, goal: str) -> Episode:
    return Episode(task_id, goal, (Step("you see a fridge 1.", "take apple 1 from fridge 1"),), True)


@pytest.mark.parametrize(
    "spelling",
    [
        "pick-Apple-2/trial_T20190909_1_2",
        "trial_T20190909_1_2",
        "/data/json_2.1.1/train/pick-Apple-2/trial_T20190909_1_2/game.tw-pddl",
        "C:\\data\\pick-Apple-2\\trial_T20190909_1_2\\game.tw-pddl",
    ],
)
def test_the_task_being_played_never_leaks_in(spelling):
    bank = Experiences(task_key=trial_key)
    goal = "put a clean apple in fridge."
    bank.add(episode("pick-Apple-2/trial_T20190909_1_2", goal))
    bank.add(episode("pick-Apple-2/trial_T20190909_1_3", goal))
    assert len(bank.retrieve(goal, 5)) == 2
    found = bank.retrieve(goal, 5, exclude_task_ids=[spelling])
    assert [e.episode.task_id for e in found] == ["pick-Apple-2/trial_T20190909_1_3"]


def test_task_ids_without_a_trial_name_are_compared_by_their_last_two_parts():
    assert trial_key("games/room-3/task-7/game.tw-pddl") == trial_key("room-3/task-7") == "room-3/task-7"
    assert trial_key("generated/room-3/seed-7") != trial_key("generated/room-3/seed-8")
