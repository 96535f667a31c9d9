"""What is trained on, what is held out to choose by, and what memory holds of homes that are held out."""

import dataclasses
import re

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import BankView
from embodied_mem.training.config import Config, GRPOConfig, MemoryConfig, WorldConfig
from embodied_mem.training.tasks import scoring_bank, sources_of
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.worlds.alfworld.generator import Generator
from embodied_mem.worlds.alfworld.tasks import AlfworldTasks


def test_homes_that_are_held_out_are_no_training_scenes_and_have_experiences_of_their_own():
    world = WorldConfig(num_train=30, num_valid=12, num_scenes=6, habit=1.0, own_habits=True, homes=4)
    source = AlfworldTasks(world, seed=2)
    (train, valid), known = source.sides(), source.experiences()
    rooms = [{game.name.split("/")[0].rpartition("-")[2] for game in games} for games in (train, valid, known)]
    assert rooms[0] <= {str(n) for n in range(6)}
    assert rooms[1] <= rooms[2] == {str(n) for n in range(6, 10)}
    assert len(known) == 100
    assert not {game.name for game in valid} & {game.name for game in known}
    assert AlfworldTasks(dataclasses.replace(world, homes=0), seed=2).experiences() == []


def test_own_habits_put_each_kind_into_one_place_that_households_do_not_tell():
    own, usual = Generator(5, 1.0, own_habits=True), Generator(5, 1.0)
    assert all(len(habit.preferred) == 1 for habit in own.scene(0).habits.values())
    assert any(len(habit.preferred) > 1 for habit in usual.scene(0).habits.values())
    places = [
        tuple(own.scene(n).receptacles[i].type for i in own.scene(n).habits["Apple"].preferred)
        for n in range(0, 80, 4) if "Apple" in own.scene(n).habits
    ]  # fmt: skip
    assert len(set(places)) > 4


def test_rooms_to_choose_by_are_not_trained_on(alfworld_data, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(alfworld_data.parent))
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    world = WorldConfig(train="train", valid="dev")
    train, dev = AlfworldTasks(world, seed=0).sides()
    rooms = [{game.parts[-3].rpartition("-")[2] for game in games} for games in (train, dev)]
    assert not rooms[0] & rooms[1]
    assert len(rooms[1]) == 12
    everything, _ = AlfworldTasks(dataclasses.replace(world, valid="train"), seed=0).sides()
    assert len(train) + len(dev) == len(everything)


CHANGED = WorldConfig(
    num_train=24, num_valid=24, num_scenes=2, habit=1.0, own_habits=True, changes=(0.5, 0.2), homes=3, max_steps=10
)


def usual_places(changes, number):
    scene = Generator(0, 1.0, True, changes).scene(number)
    return {name: habit.preferred[0] for name, habit in scene.habits.items()}


def test_a_change_moves_its_share_of_the_kinds_and_the_room_stays():
    moved = [0, 0]
    total = 0
    for number in range(40):
        eras = [usual_places(changes, number) for changes in ((), (0.5,), (0.5, 0.2))]
        total += len(eras[0])
        for change in (0, 1):
            moved[change] += sum(eras[change][name] != eras[change + 1][name] for name in eras[0])
    assert 0.42 < moved[0] / total < 0.53  # some kinds have one place only
    assert 0.14 < moved[1] / total < 0.24
    before, after = (Generator(0, 1.0, True, changes).scene(2) for changes in ((), (0.5,)))
    assert (before.receptacles, before.furnishings) == (after.receptacles, after.furnishings)


def test_old_places_are_empty_and_memory_has_both():
    """Of each kind that moved, no copy is where the older experiences have it; where it is cannot be banned there."""
    source = AlfworldTasks(CHANGED, seed=0)
    games, known = source.sides()[1], source.experiences()
    assert len(known) == 2 * 25 * 3
    assert len({game.name for game in (*games, *known)}) == len(games) + len(known)
    changed = Generator(0, 1.0, True, CHANGED.changes)
    checked = 0
    for trial in range(8):
        generated = changed.game(2 + trial % 3, trial, "valid")
        problem, asked = generated.problem, generated.folder.split("-")[1]
        scene = changed.scene(2 + trial % 3)
        before = usual_places((), 2 + trial % 3)
        for name, habit in scene.habits.items():
            old = scene.receptacles[before[name]].identifier
            if habit.preferred[0] != before[name] and name != asked:
                checked += 1
                assert f"(inReceptacle {name}_bar" in problem
                assert not re.search(rf"\(inReceptacle {name}_bar_\S+ {old}\)", problem)
    assert checked > 20


def test_the_newest_experience_stands_first_and_is_followed():
    [source] = sources_of(CHANGED, 0)
    config = Config(CHANGED, MemoryConfig(top_k=4, newest_first=True), grpo=GRPOConfig(num_tasks=4))
    bank, games = scoring_bank(config), source.sides()[1]
    envs = source.envs(games, len(games), CHANGED.max_steps)

    def won(view):
        played = play_teacher(envs, range(24), view, lambda _: source.teacher(), top_k=4, detour=0, seed=0)
        return len(played.episodes)

    newest, oldest = BankView(bank, newest_first=True), _Reversed(bank)
    text, info = envs.reset(options={"task_indices": range(24)})
    for goal, first in zip(info["goal"], text):
        indices = [one.index for one in newest.retrieve(goal, 4, first)]
        assert indices == sorted(indices, reverse=True)
    assert won(newest) > max(won(oldest), won(Experiences()))
    assert won(BankView(bank, ("other_rooms",))) == won(Experiences())


class _Reversed(BankView):
    """The oldest first."""

    def retrieve(self, *arguments, **keywords):
        return sorted(super().retrieve(*arguments, **keywords), key=lambda one: one.index)


def test_memory_of_training_homes_is_from_before_the_change():
    source = AlfworldTasks(CHANGED, seed=0)
    train, known = source.sides()[0], source.training_experiences()
    assert not {game.name for game in train} & {game.name for game in known}
    homes = [{game.name.split("/")[0].rpartition("-")[2] for game in games} for games in (train, known)]
    assert homes[0] <= homes[1] == {str(number) for number in range(2)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"changes": (0.5,)},
        {"changes": (1.5,), "own_habits": True},
        {"procedures": -1},
        {"procedures": 2, "valid": "dev"},
        {"procedures": 2, "changes": (0.5,), "own_habits": True},
    ],
)
def test_worlds_that_cannot_be_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="world"):
        WorldConfig(**{"num_train": 4, "num_valid": 4, **wrong})
