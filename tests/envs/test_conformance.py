"""One suite for every registered native world: API, masks, seeds, snapshots, threads, truncation, errors."""

from __future__ import annotations

import random

import gymnasium
import numpy as np
import pytest
from drives import DRIVES

from embodied_mem.envs import make
from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.registry import card, load, names

NATIVE = [name for name in names("env") if card(name).native]


class World:
    """One world with its data: makes its envs and draws actions."""

    def __init__(self, name: str, data):
        self.drive = DRIVES[name]
        self.name = name
        tasks = load(name, "env").default_tasks
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


@pytest.fixture(scope="module", params=NATIVE)
def world(request):
    return World(request.param, request.getfixturevalue(f"{request.param}_data"))


def test_every_world_can_be_driven():
    assert sorted(DRIVES) == NATIVE


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
    first = list(envs.reset()[1]["task_id"])
    second = list(envs.reset()[1]["task_id"])
    assert first != second
    assert list(envs.reset(seed=0)[1]["task_id"]) == first
    assert list(envs.reset()[1]["task_id"]) == second
    assert list(envs.reset(seed=1)[1]["task_id"]) != first
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


def test_envs_that_were_never_reset_refuse_to_play(world):
    envs = world.make(num_envs=2)
    for call in (lambda: envs.step(["", ""]), lambda: envs.snapshot(0), lambda: envs.env(1)):
        with pytest.raises(InvalidInputError, match="never reset"):
            call()
    with pytest.raises(InvalidInputError, match="env 1 was never reset"):
        envs.reset(options={"reset_mask": np.array([True, False])})


BAD_OPTIONS = {
    "num_envs": (0, -1, 65537, 2**63, 2**70, "4", None, 1.5),
    "num_threads": (0, -1, 1025, 2**63, 2**70, "4", 1.5),
    "max_steps": (0, -1, 2**63, 2**70, "4", 1.5),
    "seed": (-1, "4", None, 1.5),
    "tasks": (5, None, [5], [None], [], b"x", {5: 1}, len, ["\ud800"]),
}


OWN_BAD_OPTIONS = {
    "alfworld": {"grammar": (5, None, "\ud800", "0.5")},
    "eb_alfred": {"reach": (5, None), "instance": (5, None), "max_invalid": (0, 2**70, "x", None, 1.5)},
    "eb_habitat": {"reach": (5, None, "\ud800"), "max_invalid": (0, 2**70, "x", None, 1.5)},
    "memento": {"finder": (5, "x")},
}


def test_bad_options_are_refused_by_name(world):
    own = OWN_BAD_OPTIONS[world.name] | ({"data": (5, b"x", [1])} if "data" in world.options else {})
    for name, values in (BAD_OPTIONS | own).items():
        for value in values:
            with pytest.raises(InvalidInputError, match=name):
                print(name, value, world.make(**{name: value}))  # shown for one that raises nothing


def test_paths_that_cannot_be_are_not_found(world, tmp_path):
    (tmp_path / "folder.json").mkdir()
    for name in ("tasks", "data"):
        for value in ("", "x" * 5000, tmp_path / "folder.json", str(tmp_path / "none.json")):
            if name in world.options and (name, value) != ("data", ""):
                with pytest.raises(EmbodiedMemError):
                    world.make(**{name: value})


def test_files_that_cannot_be_read_are_said(world, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "closed.json").touch()
    (tmp_path / "closed.tw-pddl").touch()
    monkeypatch.setattr("os.stat", refused)  # as in a folder that may not be entered
    for tasks in (tmp_path / "closed.json", str(tmp_path / "closed.tw-pddl")):
        with pytest.raises(EmbodiedMemError):
            world.make(tasks=tasks)


BAD_CALLS = {
    "step(None)": lambda envs: envs.step(None),
    "step(5)": lambda envs: envs.step(5),
    "step(str)": lambda envs: envs.step("look"),
    "step([])": lambda envs: envs.step([]),
    "step of no text": lambda envs: envs.step([None, None]),
    "step(set)": lambda envs: envs.step({"look", "wait"}),
    "step(dict)": lambda envs: envs.step({"look": 1, "wait": 2}),
    "step(iterator)": lambda envs: envs.step(iter(["look", "look"])),
    "step(array without length)": lambda envs: envs.step(np.array("look")),
    "step of bytes": lambda envs: envs.step([b"look", b"look"]),
    **{
        f"reset(seed={seed!r})": lambda envs, seed=seed: envs.reset(seed=seed)
        for seed in ("x", -1, [1], [1, 2, 3], [1, -1], [1, 1.5], [1, "3"], [[1], [2, 3]], {1, 2}, b"ab", [])
    },
    "reset(options=5)": lambda envs: envs.reset(options=5),
    "reset(unknown)": lambda envs: envs.reset(options={"masks": 1}),
    "reset(mask of another length)": lambda envs: envs.reset(options={"reset_mask": np.ones(3, bool)}),
    "reset(ragged mask)": lambda envs: envs.reset(options={"reset_mask": [[True], [True, False]]}),
    "reset(mask of numbers)": lambda envs: envs.reset(options={"reset_mask": [1, 1]}),
    "reset(tasks of floats)": lambda envs: envs.reset(options={"task_indices": [0.5, 1.5]}),
    "reset(tasks out of range)": lambda envs: envs.reset(options={"task_indices": [0, 10**9]}),
    "reset(tasks too large)": lambda envs: envs.reset(options={"task_indices": [0, 2**70]}),
    "reset(ragged tasks)": lambda envs: envs.reset(options={"task_indices": [[0], [1, 2]]}),
    "snapshot(str)": lambda envs: envs.snapshot("0"),
    "snapshot(2)": lambda envs: envs.snapshot(2),
    "snapshot(2**70)": lambda envs: envs.snapshot(2**70),
    "restore(None)": lambda envs: envs.restore(0, None),
    "restore of something else": lambda envs: envs.restore(0, (5, "goal", "task")),
    "restore of no texts": lambda envs: envs.restore(0, (envs.env(0), 5, None)),
    "env(-1)": lambda envs: envs.env(-1),
    "load(str)": lambda envs: envs.load("0"),
    "load(2**70)": lambda envs: envs.load(2**70),
    "task_id(2**70)": lambda envs: envs.task_id(2**70),
    "task_id(None)": lambda envs: envs.task_id(None),
}


def test_bad_calls_are_refused_in_the_librarys_own_words_and_change_nothing(world):
    envs = world.make(num_envs=2, seed=3)
    before = envs.reset()
    for name, call in BAD_CALLS.items():
        with pytest.raises(InvalidInputError):
            print(name, call(envs))  # shown for one that raises nothing, or something else
        observations, info = envs.answers()
        assert (observations, _plain(info)) == (before[0], _plain(before[1])), name
