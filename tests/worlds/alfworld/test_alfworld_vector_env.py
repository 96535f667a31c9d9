"""ALFWorld's vector env beside the conformance suite: single envs, hidden state, won games, files."""

from __future__ import annotations

import random

import numpy as np
import pytest

import embodied_mem
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError
from embodied_mem.worlds.alfworld.env import Env, Game, task_id_of


@pytest.fixture(scope="module")
def files(alfworld_data):
    return sorted(alfworld_data.glob("valid_seen/*/*/game.tw-pddl"))[::7]


def make(files, **options):
    return embodied_mem.envs.make("alfworld", tasks=files, **options)


def test_agrees_with_single_envs(files):
    envs = make(files, num_envs=len(files), max_steps=None)
    observations, info = envs.reset(options={"task_indices": np.arange(len(files))})
    singles = [Env(Game.load(str(path))) for path in files]
    rng = random.Random(2)
    for _ in range(40):
        assert list(observations) == [single.observation for single in singles]
        assert list(info["admissible_commands"]) == [single.admissible_commands for single in singles]
        assert info["progress"].tolist() == [single.progress for single in singles]
        actions = [rng.choice([*commands, "xyzzy"]) for commands in info["admissible_commands"]]
        observations, rewards, terminations, truncations, info = envs.step(actions)
        for single, action in zip(singles, actions):
            single.step(action)
        assert rewards.tolist() == [float(single.score) for single in singles]
        assert terminations.tolist() == info["won"].tolist() == [single.won for single in singles]
        assert not truncations.any()


def test_a_won_game_goes_on_and_only_masked_envs_start_anew(files):
    envs = make(files, num_envs=2, max_steps=3)
    _, info = envs.reset(options={"task_indices": [4, 5]})
    game = Game.load(str(files[4]))
    assert list(info["goal"]) == [game.task, Game.load(str(files[5])).task]
    for step, command in enumerate(game.walkthrough):
        observations, rewards, terminations, truncations, info = envs.step([command, "look"])
        last = step == len(game.walkthrough) - 1
        assert terminations.tolist() == [last, False]
        assert rewards.tolist() == [float(last), 0.0]
        assert truncations.tolist() == [not last and step >= 2, step >= 2]
    observations, _, terminations, _, _ = envs.step(["inventory", "look"])
    assert terminations[0]
    assert observations[0].startswith("You are ")
    before = observations[1]
    observations, info = envs.reset(options={"reset_mask": np.array([True, False]), "task_indices": [0, -99]})
    assert observations[0].startswith("-= Welcome to TextWorld, ALFRED! =-")
    assert observations[1] == before
    assert list(info["task_id"]) == [task_id_of(files[0]), task_id_of(files[5])]


def test_hidden_state_agrees_with_what_is_shown(files):
    envs = make(files, num_envs=3)
    _, info = envs.reset()
    rng = random.Random(4)
    for _ in range(60):
        _, _, _, _, info = envs.step([rng.choice(commands) for commands in info["admissible_commands"]])
        for i in range(3):
            state = envs.env(i).state()
            held = [
                command.split(" to ")[0].removeprefix("move ")
                for command in info["admissible_commands"][i]
                if command.startswith("move ")
            ]
            assert set(held) <= set(state["holding"])
            for place in state["at"]:
                shown = envs.env(i).step(f"examine {place}")
                if shown.endswith("is closed."):
                    assert state["receptacles"][place]["openable"]
                    assert not state["receptacles"][place]["open"]
                    continue
                inside = [name for name, thing in state["objects"].items() if place in thing["receptacles"]]
                listed = shown.split("you see ")[1].rstrip(".").replace(", and ", ", ").split(", ")
                assert listed == [f"a {name}" for name in inside] or (listed == ["nothing"] and not inside)


def test_a_snapshot_of_another_grammar_and_data_that_is_not_there_are_refused(files, tmp_path, monkeypatch):
    envs = make(files, num_envs=2)
    envs.reset()
    with pytest.raises(InvalidInputError, match="another grammar"):
        make(files, num_envs=1, grammar="0.3").restore(0, envs.snapshot(0))
    assert envs.step(["\ud800", "look"])[0][0] == "Nothing happens."
    with pytest.raises(InvalidInputError, match="expected one of alfworld"):
        embodied_mem.envs.make("alfwold")
    with pytest.raises(DataNotFoundError, match="no game file"):
        make(tmp_path)
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataNotFoundError, match="alfworld-download"):
        make("train")


def test_a_bad_file_leaves_the_envs_as_they_are(files, tmp_path):
    bad = tmp_path / "bad.tw-pddl"
    bad.write_text("{")
    envs = make([files[0], bad], num_envs=2)
    envs.reset(options={"task_indices": [0, 0]})
    envs.step(["look", "inventory"])
    before = envs.answers()
    with pytest.raises(GameFileError, match=r"bad\.tw-pddl: line 1, column 2"):
        envs.reset(options={"task_indices": [0, 1]})
    after = envs.answers()
    assert before[0] == after[0]
    assert list(before[1]["task_id"]) == list(after[1]["task_id"])


def test_split_names_find_installed_data(alfworld_data, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(alfworld_data.parent))
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    envs = embodied_mem.envs.make("alfworld", tasks="valid_seen", num_envs=2)
    assert envs.num_tasks == 140
