"""Worlds by gymnasium's ids: single and vector envs, autoreset against a loop that resets by hand, pickling."""

from __future__ import annotations

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList

import embodied_mem.envs
from embodied_mem import registry
from embodied_mem.errors import InvalidInputError

ID = "embodied_mem/alfworld-v0"


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))


@pytest.fixture(scope="module")
def games():
    return registry.load("alfworld", "generated")(4, 1)["tasks"]


def test_every_world_has_an_id_and_importing_again_changes_nothing():
    embodied_mem.envs.single_env.register()
    ids = {name for name in gymnasium.registry if name.startswith("embodied_mem/")}
    assert ids == {f"embodied_mem/{world}-v0" for world in registry.names("env")}


def test_a_single_env_is_a_row_of_the_vector_env(games):
    env = gymnasium.make(ID, render_mode="ansi", tasks=games, max_steps=3)
    envs = gymnasium.make_vec(ID, num_envs=1, tasks=games, max_steps=3)
    assert env.spec.id == envs.spec.id == ID
    text, info = env.reset(seed=3)
    texts, infos = envs.reset(seed=3)
    assert (text, info["task_id"]) == (texts[0], infos["task_id"][0])
    for _ in range(3):
        command = info["admissible_commands"][-1]
        text, reward, terminated, truncated, info = env.step(command)
        texts, rewards, *_ = envs.step([command])
        assert (text, reward) == (texts[0], rewards[0])
        assert env.render() == text
    assert truncated
    assert not terminated
    home = gymnasium.make(ID, seed=3)
    again = pickle.loads(pickle.dumps(home))
    assert again.reset(seed=3)[0] == home.reset(seed=3)[0]
    check_env(gymnasium.make(ID).unwrapped, skip_render_check=True)


def test_by_the_id_alone_a_new_home_is_played():
    code = (
        "import gymnasium; envs = gymnasium.make_vec('embodied_mem.envs:embodied_mem/alfworld-v0', num_envs=2);"
        "print(envs.reset(seed=0)[1]['goal'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("['")


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_autoreset_is_what_resetting_by_hand_gives(games, mode):
    options = {"num_envs": 2, "tasks": games, "max_steps": 2, "seed": 5}
    envs = gymnasium.make_vec(ID, autoreset_mode=mode.value, **options)
    by_hand = gymnasium.make_vec(ID, **options)
    assert envs.metadata["autoreset_mode"] is mode
    assert by_hand.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert list(envs.reset(seed=5)[0]) == list(by_hand.reset(seed=5)[0])
    for one in (envs, by_hand):  # out of step with each other
        one.step(["look", "look"])
        one.reset(options={"reset_mask": np.array([True, False])})
    ended, num_ends = np.zeros(2, bool), 0
    for _ in range(7):
        texts, rewards, terminated, truncated, info = envs.step(["look", "inventory"])
        expected, _, over, cut, _ = by_hand.step(["look", "inventory"])
        if mode is AutoresetMode.NEXT_STEP:
            if ended.any():
                expected, _ = by_hand.reset(options={"reset_mask": ended})
            ended = (over | cut) & ~ended
        else:
            ended = over | cut
            if ended.any():
                last, (expected, new) = expected, by_hand.reset(options={"reset_mask": ended})
                assert list(info["final_obs"]) == [text if end else None for text, end in zip(last, ended)]
                assert list(info["task_id"]) == list(new["task_id"])
        assert list(texts) == list(expected)
        assert ((terminated | truncated) == ended).all()
        assert not rewards.any()
        num_ends += ended.sum()
        assert not ended.all()
    assert num_ends >= 4


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_envs_are_pickled_rendered_and_asked(mode):
    envs = gymnasium.make_vec(ID, num_envs=2, autoreset_mode=mode, render_mode="ansi", max_steps=7, seed=4)
    texts, _ = envs.reset(seed=4)
    assert envs.render() == tuple(texts)
    texts, *_ = envs.step(["look", "inventory"])
    assert envs.render() == envs.call("render") == envs.call("observation") == tuple(texts)
    assert envs.call("max_steps") == envs.get_attr("max_steps") == (7, 7)
    places = [state["location"] for state in envs.call("state")]
    assert len(places) == 2
    with pytest.raises(InvalidInputError, match="got 'snapshot', which is of all envs together"):
        envs.call("snapshot", 0)
    again = pickle.loads(pickle.dumps(envs))
    assert again.spec == envs.spec
    assert again.metadata == envs.metadata
    with pytest.raises(InvalidInputError, match="never reset"):
        again.step(["look", "look"])
    for one in (envs, again):
        one.reset(seed=9)
        one.step(["look", "inventory"])
    assert again.render() == envs.render()
    silent = gymnasium.make_vec(ID, num_envs=2, seed=4)
    silent.reset()
    assert silent.render() is None
    assert silent.call("render") == (None, None)


def test_envs_that_nobody_can_make_again_are_not_pickled(games):
    kind = registry.load("alfworld", "env")
    with pytest.raises(TypeError, match=r"only if embodied_mem\.envs\.make or gymnasium made it"):
        pickle.dumps(kind(games))


def test_envs_in_gymnasiums_own_vector_envs():
    in_turn = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", render_mode="ansi")
    in_processes = gymnasium.make_vec(
        ID, num_envs=2, vectorization_mode="async", vector_kwargs={"shared_memory": False}, render_mode="ansi"
    )
    for envs in (in_turn, in_processes):
        envs.reset(seed=3)
        envs.step(["look", "inventory"])
    assert in_turn.render() == in_processes.render() == in_processes.call("render")
    in_processes.close()
    with pytest.raises(ValueError, match="shared_memory=False"):
        gymnasium.make_vec(ID, num_envs=2, vectorization_mode="async")


def test_lists_of_info_and_wrong_options(games):
    envs = DictInfoToList(gymnasium.make_vec(ID, num_envs=2, tasks=games))
    assert [row["won"] for row in envs.reset()[1]] == [False, False]
    with pytest.raises(InvalidInputError, match="autoreset_mode: expected one of NextStep, SameStep, Disabled"):
        gymnasium.make_vec(ID, num_envs=2, tasks=games, autoreset_mode="never")
    with pytest.raises(InvalidInputError, match="render_mode"):
        embodied_mem.envs.single_env.TextEnv("alfworld", "human", tasks=games)
