"""Several worlds in one vector environment: each row is what it would be in its own."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from embodied_mem import envs
from embodied_mem.envs.mixed_env import MixedEnvs
from embodied_mem.errors import InvalidInputError
from embodied_mem.training.tasks import make_tasks
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.statistics import household_kinds
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher
from embodied_mem.worlds.eb_habitat.data import Scenes, read_tasks
from experiments.configs import load
from experiments.solvers.eb_habitat.places import KINDS
from experiments.solvers.eb_habitat.text_adapter import EbHabitatTextAdapter, apartment_order
from experiments.solvers.errands import ErrandTeacher
from tests.worlds.eb_habitat.eb_habitat_home import episode


def worlds(rows: int) -> list:
    content = json.dumps({"episodes": [episode()]}).encode()
    habitat = EbHabitatTextAdapter(list(read_tasks(content, "home.json", Scenes())), num_envs=rows)
    games = [game.load() for game in generate(2, seed=0, num_scenes=2, prove=False)]
    return [envs.make("alfworld", tasks=games, num_envs=rows, seed=0), habitat]


def test_rows_are_those_of_their_worlds():
    mixed = MixedEnvs(worlds(3), [2, 1])
    assert (mixed.num_tasks, mixed.num_envs, mixed.max_steps) == (3, 3, 50)
    alfworld, habitat = worlds(1)
    texts, info = mixed.reset(options={"task_indices": [1, 2, 2]})
    [text], own = alfworld.reset(options={"task_indices": np.array([1])})
    assert (texts[0], info["goal"][0], info["task_id"][0]) == (text, own["goal"][0], own["task_id"][0])
    [text], _ = habitat.reset(options={"task_indices": [0]})
    assert texts[1] == texts[2] == text
    place = next(c for c in info["admissible_commands"][0] if c.startswith("go to "))
    texts, _, ended, _, info = mixed.step([place, "go to blacktable 1", "go to sofa 1"])
    assert texts[0] == alfworld.step([place])[0][0]
    assert texts[1] == "You arrive at blacktable 1. On the blacktable 1, you see a cup 1."
    for command in ("take cup 1 from blacktable 1", "go to sofa 1", "move cup 1 to sofa 1"):
        texts, rewards, ended, _, info = mixed.step(["look", command, "look"])
    assert (list(info["won"]), list(ended), list(rewards)) == ([False, True, False], [False, True, False], [0, 1, 0])
    mask = np.array([False, True, False])
    texts, info = mixed.reset(options={"task_indices": [0, 0, 0], "reset_mask": mask})
    [text], own = alfworld.reset(options={"task_indices": np.array([0])})
    assert (texts[1], info["goal"][1], info["goal"][2]) == (text, own["goal"][0], "put a cup in sofa.")
    alfworld.reset(options={"task_indices": np.array([1])})
    for command in (place, "look", "look", "look"):
        [text] = alfworld.step([command])[0]
    assert mixed.step(["look", "look", "look"])[0][0] == text, "a row that did not begin goes on"


@pytest.fixture
def alfred_and_habitat(eb_alfred_data, eb_habitat_data, monkeypatch, tmp_path):
    for folder in (eb_alfred_data, eb_habitat_data):
        (tmp_path / folder.name).symlink_to(folder)
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))


def test_one_model_for_all_has_the_games_of_each_world_once(alfred_and_habitat):
    config = load("household")
    world = dataclasses.replace(config.world, train="generated", valid="generated", num_train=8, num_valid=2)
    tasks = make_tasks(dataclasses.replace(config, world=world))
    assert (tasks.num_train, tasks.num_valid) == (24, 6)
    _, info = tasks.train.reset(options={"task_indices": [*range(24), *[0] * 40]})
    ids = info["task_id"][:24]
    for mark in ("/trial_train_", "/trial_T", "train_validation/"):  # generated, EB-ALFRED's, EB-Habitat's
        assert sum(mark in name for name in ids) == 8
    teachers = [tasks.make_teacher(task) for task in range(24)]
    kinds = sorted({*household_kinds(), *KINDS})
    assert all(list(teacher.kinds) == kinds for teacher in teachers)
    assert [type(teacher) for teacher in teachers] == [RuleTeacher] * 8 + [ErrandTeacher] * 16
    orders = [teacher._order for teacher in teachers]
    assert orders == [statistics_order] * 16 + [apartment_order] * 8


def test_a_world_that_training_does_not_play_is_refused():
    with pytest.raises(InvalidInputError, match=r"\(alfworld, eb_alfred, eb_habitat, life\), got 'scienceworld'"):
        make_tasks(load("scienceworld"))
