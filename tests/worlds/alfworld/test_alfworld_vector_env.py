"""The vector env: determinism, masks, snapshots, truncation, threads, errors."""

from __future__ import annotations

import random

import gymnasium
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


def play(envs, steps, seed):
    """Return everything that `steps` random steps answer, with resets of finished envs."""
    rng = random.Random(seed)
    observations, info = envs.reset()
    record = [observations, info["goal"].tolist(), info["task_id"].tolist()]
    for _ in range(steps):
        actions = [rng.choice(commands) for commands in info["admissible_commands"]]
        observations, rewards, terminations, truncations, info = envs.step(actions)
        record.append((observations, rewards.tolist(), terminations.tolist(), truncations.tolist()))
        record.append({key: value.tolist() for key, value in info.items()})
        mask = terminations | truncations
        if mask.any():
            observations, info = envs.reset(options={"reset_mask": mask})
            record.append((observations, info["task_id"].tolist()))
    return record


def test_results_do_not_depend_on_the_number_of_threads(files):
    records = [play(make(files, num_envs=13, seed=3, max_steps=15, num_threads=n), 60, seed=1) for n in (1, 2, 5)]
    assert records[0] == records[1] == records[2]


def test_another_seed_gives_other_tasks_and_the_same_seed_the_same(files):
    envs = make(files, num_envs=8, seed=0)
    first = list(envs.reset()[1]["task_id"])
    second = list(envs.reset()[1]["task_id"])
    assert first != second
    assert list(envs.reset(seed=0)[1]["task_id"]) == first
    assert list(envs.reset()[1]["task_id"]) == second
    assert list(envs.reset(seed=1)[1]["task_id"]) != first


def test_every_task_is_drawn_once_per_pass(files):
    envs = make(files, num_envs=len(files), seed=5)
    for _ in range(2):
        assert sorted(envs.reset()[1]["task_id"]) == sorted(task_id_of(path) for path in files)
    assert envs.num_tasks == len(files)


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


def test_snapshots_are_independent_and_portable(files):
    envs = make(files, num_envs=4, max_steps=20, seed=1)
    _, info = envs.reset()
    for _ in range(3):
        info = envs.step([commands[0] for commands in info["admissible_commands"]])[4]
    snapshot = envs.snapshot(2)
    other = make(files, num_envs=3, max_steps=20, seed=9)
    futures = []
    for target in (envs, other, envs):
        if target is other:
            other.reset()
        for i in range(target.num_envs):
            target.restore(i, snapshot)
        observations, info = target.answers()
        assert len({*observations}) == 1
        assert {*info["goal"]} == {snapshot[1]}
        rng = random.Random(0)
        future = [observations[0]]
        for _ in range(18):
            action = rng.choice(info["admissible_commands"][1])
            observations, _, _, truncations, info = target.step([action] * target.num_envs)
            assert len({*observations}) == 1
            future.append((observations[0], bool(truncations[0])))
        futures.append(future)
    assert futures[0] == futures[1] == futures[2]
    assert futures[0][-1][1], "the step count belongs to the snapshot"


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


def test_spaces_and_metadata(files):
    envs = make(files, num_envs=2)
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.DISABLED
    observations, _ = envs.reset()
    assert len(observations) == envs.num_envs == 2


def test_errors_of_the_caller(files, tmp_path, monkeypatch):
    envs = make(files, num_envs=2)
    with pytest.raises(InvalidInputError, match="never reset"):
        envs.step(["look", "look"])
    with pytest.raises(InvalidInputError, match="never reset"):
        envs.snapshot(0)
    with pytest.raises(InvalidInputError, match="env 1 was never reset"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset()
    state = envs.env(0).state()
    for actions, message in (
        (["look"], "each of 2 envs, got 1"),
        ("look", "got one str"),
        (["look", 3], r"actions\[1\]: expected a str, got int"),
        ([None, "look"], r"actions\[0\]: expected a str, got NoneType"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            envs.step(actions)
    with pytest.raises(InvalidInputError, match="got one NoneType"):
        envs.step(None)
    assert envs.env(0).state() == state
    assert envs.step(["\ud800", "look"])[0][0] == "Nothing happens."
    for options, message in (
        ({"reset_mask": [1, 0]}, r"reset_mask: expected bool\[2\]"),
        ({"reset_mask": np.ones(3, dtype=bool)}, r"expected bool\[2\], got bool\[3\]"),
        ({"task_indices": [0, len(files)]}, rf"task_indices\[1\]: expected 0 to {len(files) - 1}, got {len(files)}"),
        ({"task_indices": [0.0, 1.0]}, r"expected int\[2\]"),
        ({"mask": None}, "got also mask"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            envs.reset(options=options)
    for index in (-1, 2):
        with pytest.raises(InvalidInputError, match="expected 0 to 1"):
            envs.snapshot(index)
    with pytest.raises(InvalidInputError, match="another grammar"):
        make(files, num_envs=1, grammar="0.3").restore(0, envs.snapshot(0))
    for options, message in (
        ({"num_envs": 0}, "num_envs"),
        ({"num_threads": 0}, "num_threads"),
        ({"max_steps": 0}, "max_steps"),
        ({"seed": -1}, "seed"),
        ({"grammar": "0.5"}, "grammar: expected"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            make(files, **options)
    with pytest.raises(InvalidInputError, match="expected one of alfworld"):
        embodied_mem.envs.make("alfwold")
    with pytest.raises(InvalidInputError, match=r"tasks\[0\]"):
        make([3])
    with pytest.raises(InvalidInputError, match="at least one"):
        make([])
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
