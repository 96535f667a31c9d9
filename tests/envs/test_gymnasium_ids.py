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
from embodied_mem.envs.single_env import TextEnv
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
    by_hand = gymnasium.make_vec(ID, autoreset_mode="Disabled", **options)
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


def _loop(envs, steps=30):
    """The loop of gymnasium's page about vector envs, with what it says of the answers."""
    observations, _ = envs.reset(seed=42)
    assert observations in envs.observation_space
    episodes = np.zeros(envs.num_envs, dtype=int)
    for _ in range(steps):
        actions = envs.action_space.sample()
        observations, rewards, terminations, truncations, _ = envs.step(actions)
        assert observations in envs.observation_space
        assert isinstance(observations, tuple)
        assert rewards.shape == terminations.shape == truncations.shape == (envs.num_envs,)
        episodes += terminations | truncations
    envs.close()
    return episodes


def _options(request, world):
    return {} if world == "alfworld" else {"data": request.getfixturevalue(f"{world}_data")}


@pytest.mark.parametrize("world", [name for name in registry.names("env") if name != "scienceworld"])  # it is below
def test_the_loop_of_gymnasiums_page_works_in_every_world(request, world):
    """Nothing but the id and where the data lies: episodes end and start again by themselves."""
    options = _options(request, world)
    envs = gymnasium.make_vec(f"embodied_mem/{world}-v0", num_envs=2, max_steps=4, **options)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP  # gymnasium's default, too
    assert (_loop(envs) >= 2).all()
    env = gymnasium.make(f"embodied_mem/{world}-v0", max_steps=4, **options)
    observation, _ = env.reset(seed=42)
    for _ in range(8):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        if terminated or truncated:
            observation, _ = env.reset()
    env.close()


def test_scienceworlds_id_plays_its_train_split():
    pytest.importorskip("py4j", reason="ScienceWorld is not installed")
    from embodied_mem.worlds.scienceworld.jvm import official_variations

    envs = gymnasium.make_vec("embodied_mem/scienceworld-v0", num_envs=2, max_steps=4, lists_commands=False)
    played = {task for seed in range(3) for task in envs.reset(seed=seed)[1]["task_id"]}
    assert (_loop(envs, steps=12) >= 2).all()
    assert len(played) > 2
    assert played <= {f"{game}/{variation}" for game, variation in official_variations("train")}


def test_every_text_ends_with_the_goal_if_asked():
    plain, told = (TextEnv("alfworld", goal_in_observations=shown) for shown in (False, True))
    first, info = plain.reset(seed=1)
    assert told.reset(seed=1)[0] == first
    assert first.endswith(info["goal"])
    text = plain.step("look")[0]
    assert info["goal"] not in text
    assert told.step("look")[0] == f"{text}\n\n{info['goal']}"
    envs = gymnasium.make_vec(ID, num_envs=2, goal_in_observations=True)
    envs.reset(seed=1)
    texts, _, _, _, infos = envs.step(["look", "look"])
    assert all(text.endswith(goal) for text, goal in zip(texts, infos["goal"]))
    assert pickle.loads(pickle.dumps(envs)).reset(seed=1)[0] == envs.reset(seed=1)[0]


def test_shaped_rewards_sum_to_progress_and_the_win():
    from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan

    for seed in range(4):
        plain, shaped = TextEnv("alfworld"), TextEnv("alfworld", shaping=0.5)
        _, info = shaped.reset(seed=seed)
        plain.reset(seed=seed)
        start, rewards, expected = info["progress"], [], []
        for command in shortest_plan(WorldState.from_env(plain._envs.env(0))):
            before = info["progress"]
            _, reward, _, _, info = shaped.step(command)
            rewards.append(reward)
            expected.append(plain.step(command)[1] + 0.5 * (info["progress"] - before))
        assert rewards == pytest.approx(expected)
        assert sum(rewards) == pytest.approx(1 + 0.5 * (1 - start))
    envs = gymnasium.make_vec(ID, num_envs=1, max_steps=1, shaping=1.0)
    envs.reset(seed=0)
    for _ in range(4):  # what an episode had reached is not paid or taken at the start of the next
        assert envs.step(["look"])[1] == [0.0]


@pytest.mark.parametrize(
    "wrong", [{"shaping": float("nan")}, {"shaping": "much"}, {"goal_in_observations": "yes"}, {"num_envs": 2}]
)
def test_wrong_options_of_all_worlds_are_refused(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        TextEnv("alfworld", **wrong)
