"""What is trained on, what is held out to choose by, and what memory holds of homes that are held out."""

import dataclasses

from embodied_mem.training.config import WorldConfig
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
