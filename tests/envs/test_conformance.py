"""One suite for every registered native world: API, masks, seeds, snapshots, threads, truncation, errors."""

from __future__ import annotations

import random

import gymnasium
import numpy as np
import pytest

from embodied_mem.envs import WORLDS, make
from embodied_mem.envs.registry import world_class
from embodied_mem.errors import InvalidInputError
from experiments.bench_worlds import DRIVES


class World:
    """One world with its data: makes its envs and draws actions."""

    def __init__(self, name: str, data):
        self.drive = DRIVES[name]
        self.name = name
        tasks = world_class(name).default_tasks
        self.options = {"tasks": tasks, "data": data} if name != "alfworld" else {"tasks": data / tasks}

    def make(self, **options):
        return make(self.name, **self.options | options)

    def actions(self, rng, envs, info):
        """Return random actions, some of them no action at all."""
        drawn = [self.drive.action(rng, envs, info, i) for i in range(envs.num_envs)]
        return [rng.choice(("", "xyzzy", "\ud800", "12")) if rng.random() < 0.1 else action for action in drawn]

    def play(self, envs, steps, seed):
        """Return everything that `steps` random steps answer, with resets of finished envs."""
        rng = random.Random(seed)
        observations, info = envs.reset()
        record = [(observations, _plain(info))]
        for _ in range(steps):
            observations, rewards, terminations, truncations, info = envs.step(self.actions(rng, envs, info))
            ended = terminations | truncations
            record.append((observations, rewards.tolist(), terminations.tolist(), truncations.tolist(), _plain(info)))
            if ended.any():
                observations, info = envs.reset(options={"reset_mask": ended})
                record.append((observations, _plain(info)))
        return record


def _plain(info):
    return {key: value.tolist() if isinstance(value, np.ndarray) else list(value) for key, value in info.items()}


@pytest.fixture(scope="module", params=sorted(WORLDS))
def world(request):
    return World(request.param, request.getfixturevalue(f"{request.param}_data"))


def test_every_world_can_be_driven():
    assert sorted(DRIVES) == sorted(WORLDS)


def test_answers_have_the_shapes_and_types_of_the_api(world):
    envs = world.make(num_envs=3)
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.DISABLED
    observations, info = envs.reset()
    rng = random.Random(0)
    for _ in range(10):
        observations, rewards, terminations, truncations, info = envs.step(world.actions(rng, envs, info))
        assert len(observations) == 3
        assert all(isinstance(text, str) and text for text in observations)
        for array, kind in (
            (rewards, np.float64),
            (terminations, np.bool_),
            (truncations, np.bool_),
            (info["won"], np.bool_),
            (info["progress"], np.float64),
        ):
            assert array.shape == (3,)
            assert array.dtype == kind
        assert ((info["progress"] >= 0) & (info["progress"] <= 1)).all()
        assert (rewards == info["won"]).all()
        assert (info["progress"][info["won"]] == 1).all()
        for key, value in info.items():
            assert len(value) == 3, key
        assert set(info["task_id"]) <= {envs.task_id(i) for i in range(envs.num_tasks)}


def test_results_do_not_depend_on_threads_but_on_the_seed(world):
    records = [world.play(world.make(num_envs=7, seed=3, max_steps=12, num_threads=n), 30, 1) for n in (1, 2, 5)]
    assert records[0] == records[1] == records[2]
    assert world.play(world.make(num_envs=7, seed=4, max_steps=12), 30, 1) != records[0]


def test_seeds_draw_every_task_once_per_pass(world):
    envs = world.make(num_envs=8, seed=0)
    first = envs.reset()[1]["task_id"]
    second = envs.reset()[1]["task_id"]
    assert first != second
    assert envs.reset(seed=0)[1]["task_id"] == first
    assert envs.reset()[1]["task_id"] == second
    assert envs.reset(seed=1)[1]["task_id"] != first
    whole = world.make(num_envs=envs.num_tasks)
    assert sorted(whole.reset()[1]["task_id"]) == sorted(whole.task_id(i) for i in range(whole.num_tasks))


def test_a_mask_starts_only_its_envs_anew(world):
    envs = world.make(num_envs=3, seed=1)
    _, info = envs.reset()
    rng = random.Random(2)
    for _ in range(5):
        observations, _, _, _, info = envs.step(world.actions(rng, envs, info))
    mask = np.array([False, True, False])
    again, fresh = envs.reset(options={"reset_mask": mask, "task_indices": [-1, 0, 99999]})
    assert [again[0], again[2]] == [observations[0], observations[2]]
    assert again[1] != observations[1]
    assert fresh["task_id"][1] == envs.task_id(0)
    assert [fresh["task_id"][i] for i in (0, 2)] == [info["task_id"][i] for i in (0, 2)]
    same, _ = envs.reset(options={"reset_mask": mask, "task_indices": [0, 0, 0]})
    assert same[1] == again[1]


def test_a_snapshot_has_one_future_wherever_it_is_restored(world):
    envs = world.make(num_envs=2, max_steps=20, seed=1)
    _, info = envs.reset()
    rng = random.Random(3)
    for _ in range(4):
        _, _, _, _, info = envs.step(world.actions(rng, envs, info))
    snapshot = envs.snapshot(1)
    before = envs.answers()[0][1]
    other = world.make(num_envs=3, max_steps=20, seed=9)
    futures = []
    for target in (envs, other):
        for i in range(target.num_envs):
            target.restore(i, snapshot)
        observations, info = target.answers()
        assert {*observations} == {before}
        rng, future = random.Random(5), []
        for _ in range(17):
            action = world.drive.action(rng, target, info, 0)
            answers = target.step([action] * target.num_envs)
            info = answers[4]
            assert len({*answers[0]}) == 1
            future.append((answers[0][0], *(bool(answers[k][0]) for k in (1, 2, 3)), float(info["progress"][0])))
        futures.append(future)
    assert futures[0] == futures[1]
    assert futures[0][-1][2] or futures[0][-1][3], "the step count belongs to the snapshot"


def test_episodes_are_truncated_at_the_limit(world):
    envs = world.make(num_envs=2, max_steps=4, **world.drive.options)
    envs.reset()
    rng, info = random.Random(0), envs.answers()[1]
    for step in range(1, 6):
        actions = [world.drive.action(rng, envs, info, i) for i in range(2)]
        _, _, terminations, truncations, info = envs.step(actions)
        assert truncations.tolist() == [step >= 4 and not ended for ended in terminations]


def test_bad_input_is_refused_and_moves_nothing(world):
    envs = world.make(num_envs=2)
    for call in (lambda: envs.step(["", ""]), lambda: envs.snapshot(0), lambda: envs.env(1)):
        with pytest.raises(InvalidInputError, match="never reset"):
            call()
    with pytest.raises(InvalidInputError, match="env 1 was never reset"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset()
    before = envs.answers()[0]
    for actions, message in (
        ([""], "each of 2 envs, got 1"),
        ("go", "got one str"),
        (["", 3], r"actions\[1\]: expected a str, got int"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            envs.step(actions)
    for options, message in (
        ({"reset_mask": [1, 0]}, r"reset_mask: expected bool\[2\]"),
        ({"task_indices": [0, envs.num_tasks]}, rf"task_indices\[1\]: expected 0 to {envs.num_tasks - 1}"),
        ({"task_indices": [0.0, 1.0]}, r"expected int\[2\]"),
        ({"mask": None}, "got also mask"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            envs.reset(options=options)
    for index in (-1, 2):
        with pytest.raises(InvalidInputError, match="expected 0 to 1"):
            envs.snapshot(index)
    assert envs.answers()[0] == before
    for options in ({"num_envs": 0}, {"num_threads": 0}, {"max_steps": 0}, {"seed": -1}, {"tasks": []}, {"tasks": [3]}):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            world.make(**options)
