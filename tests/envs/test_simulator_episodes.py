"""Real simulators play the right episodes and say what is wrong, on stand-ins that err where the programs do."""

from __future__ import annotations

import gzip
import json
import os
import signal
import warnings

import pytest
from simulator_checkouts import POINTER, ROBOT, SPOT, embodiedbench

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.rollout import rollout
from embodied_mem.envs import make
from embodied_mem.envs.process_env import CRASHED
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError, MissingDependencyError

GOALS = [f"Move cup {place}." for place in range(6)]


@pytest.fixture
def opened(checkouts):
    """Makes a world's envs in its checkout, and closes them."""
    made = []

    def open_(world, **options):
        backend = "habitat" if world == "memento" else "embodiedbench"
        given = {"tasks": "val.json.gz"} if world == "memento" else {}
        made.append(make(world, backend=backend, folder=getattr(checkouts, world), **given | options))
        return made[-1]

    yield open_
    for envs in made:
        envs.close()


def test_every_place_of_eb_habitat_is_its_place_in_the_file(opened):
    """The program's list is shuffled in place, so its own places name other episodes."""
    envs = opened("eb_habitat", resolution=5)
    played = [envs.reset(options={"task_indices": [place]})[1]["goal"][0] for place in range(6)]
    assert played == GOALS
    assert [envs.load(place).task for place in range(6)] == GOALS


def test_what_the_camera_shows_reaches_the_agent(opened):
    """The same pixels as the env's own `images` for the same actions; none is kept for the next task."""

    class Watcher(Agent):
        def __init__(self):
            self.seen, self.first = [], []

        def reset(self, goal, observation, info):
            self.first.append(info["images"][0])

        def act(self, observation, info):
            self.seen.append(info["images"][0])
            return "navigate to the sofa" if len(self.seen) % 3 else None

    agent = Watcher()
    rollout(opened("eb_habitat", resolution=5), [agent], [[2, 0]])
    envs, expected = opened("eb_habitat", resolution=5), []
    for task in (2, 0):
        expected.append(envs.reset(options={"task_indices": [task]})[1]["images"][0])
        expected += [envs.step(["navigate to the sofa"])[4]["images"][0] for _ in range(2)]
    assert [image.tobytes() for image in agent.seen] == [image.tobytes() for image in expected]
    assert [image.tobytes() for image in agent.first] == [image.tobytes() for image in expected[::3]]
    assert len({image.tobytes() for image in expected}) > 2


def test_eb_habitats_instructions_are_held_against_the_native_worlds(opened, tmp_path, monkeypatch):
    data = tmp_path / "data/eb_habitat"
    data.mkdir(parents=True)
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(data.parent))
    (data / "base.json").write_text(json.dumps({"episodes": [{"instruction": goal} for goal in GOALS]}))
    opened("eb_habitat")
    other = [*GOALS[:4], "Move the plate.", GOALS[5]]
    (data / "base.json").write_text(json.dumps({"episodes": [{"instruction": goal} for goal in other]}))
    with pytest.raises(GameFileError, match=r"base/4: the program's file says 'Move cup 4\.', .*'Move the plate\.'"):
        opened("eb_habitat")
    opened("eb_habitat", tasks=["base/3"])


def test_memento_plays_episodes_with_mementos_fields(opened, checkouts):
    envs = opened("memento")
    assert envs.reset(options={"task_indices": [1]})[1]["goal"][0] == "Tidy room 1."
    path = checkouts.memento / "val.json.gz"
    content = json.loads(gzip.decompress(path.read_bytes()))
    content["episodes"][0]["mood"] = "gay"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    with pytest.raises(DataNotFoundError, match=r"val\.json\.gz: not in the form of PARTNR's episodes: .*'mood'"):
        opened("memento")


def test_mementos_robot_explores_unless_it_is_told_otherwise(opened):
    envs = opened("memento")
    envs.reset()
    assert envs.step(["Explore[kitchen_1]"])[4]["action_valid"][0]
    assert envs.step(["Clean[cup_1]"])[4]["action_valid"][0]
    chosen = "agent@evaluation.agents.agent_0.config=oracle_rearrange_agent_no_explore"
    envs = opened("memento", overrides=[chosen])
    envs.reset()
    assert not envs.step(["Explore[kitchen_1]"])[4]["action_valid"][0]


def test_a_find_that_moves_nothing_is_refused(opened, monkeypatch):
    opened("eb_alfred")
    monkeypatch.setenv("STAND_IN_FIND", "fc59f55")
    with pytest.raises(MissingDependencyError, match=r"find reports success and moves nothing.*git checkout b247936"):
        opened("eb_alfred")


def test_another_commit_is_said(checkouts, tmp_path):
    folder = embodiedbench(tmp_path / "other", commit="5fdee37")
    with pytest.warns(UserWarning, match=r"eb_alfred: EmbodiedBench: tested with b247936, found 5fdee37"):
        make("eb_alfred", backend="embodiedbench", folder=folder).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make("eb_alfred", backend="embodiedbench", folder=checkouts.eb_alfred).close()


def test_a_crash_says_why(opened):
    envs = opened("eb_alfred", num_envs=2)
    envs.reset()
    assert list(envs.answers()[1]["crash_reason"]) == ["", ""]
    os.kill(envs.simulators[0].process.pid, signal.SIGKILL)
    envs.simulators[1].ask(do="reset", task=0, seed=0)
    observations, *_, info = envs.step(["0", "0"])
    assert "process failed at step" in info["crash_reason"][0]
    assert "it was ended by SIGKILL" in info["crash_reason"][0]
    assert "loading base" in info["crash_reason"][0]  # what the program printed last
    assert observations[0].startswith(f"{CRASHED} ")
    assert len(observations[0].splitlines()) == 1
    assert info["crash_reason"][1] == ""


def test_an_error_inside_is_the_reason_of_the_crash(opened):
    envs = opened("eb_habitat", resolution=5, max_steps=50)
    envs.reset()
    core_over = [envs.simulators[0].ask(do="step", action="0") for _ in range(30)]
    assert core_over[-1]["cut"]
    observations, *_, info = envs.step(["0"])
    assert observations[0] == f"{CRASHED} AssertionError: Episode over, call reset before calling step"
    assert "Traceback" in info["crash_reason"][0]


@pytest.mark.parametrize(
    ("world", "path", "message"),
    [
        ("eb_habitat", "embodiedbench/envs/eb_habitat/datasets/base.pickle", r"pointer of Git LFS.*lfs pull"),
        ("eb_habitat", "embodiedbench/envs/eb_habitat/data/objects/ycb/ycb.json", r"ReplicaCAD data is a pointer"),
        ("eb_alfred", "embodiedbench/envs/eb_alfred/data/json_2.1.0/trial/ann_0.json", r"pointer of Git LFS.*lfs pull"),
        ("memento", "val.json.gz", r"the episode file is a pointer of Git LFS.*lfs pull"),
        ("memento", "data/hssd-hab/hssd.json", r"HSSD is a pointer of Git LFS.*lfs pull"),
    ],
)
def test_pointers_of_git_lfs_are_named(opened, checkouts, world, path, message):
    (getattr(checkouts, world) / path).write_bytes(POINTER)
    with pytest.raises(DataNotFoundError, match=message):
        opened(world)


@pytest.mark.parametrize(
    ("world", "path", "message"),
    [
        ("eb_habitat", f"embodiedbench/envs/eb_habitat/{ROBOT}", r"the robot is not installed.*--uids hab_fetch"),
        (
            "eb_habitat",
            "embodiedbench/envs/eb_habitat/data/replica_cad/replicaCAD.scene_dataset_config.json",
            r"ReplicaCAD is not installed.*--uids replica_cad_dataset",
        ),
        ("memento", SPOT, r"a robot or a person is not installed.*--uids rearrange_task_assets hab_spot_arm"),
        ("memento", "data/objects_ovmm/configs/cup.json", r"what its episodes name, data/objects_ovmm/configs is not"),
    ],
)
def test_what_the_first_reset_needs_is_looked_for_before(opened, checkouts, world, path, message):
    (getattr(checkouts, world) / path).unlink()
    with pytest.raises(DataNotFoundError, match=message):
        opened(world)


def test_the_programs_reward_is_that_of_its_step(opened):
    envs = opened("eb_alfred")
    envs.reset()
    rewards = [envs.step([action])[4]["program_reward"][0] for action in ("0", "1", "0", "dance")]
    assert rewards == [0.25, 0.25, 0, 0]  # won at the second


@pytest.mark.parametrize("world", ["eb_habitat", "memento"])
def test_a_task_starts_from_the_same_pose_each_time(opened, world):
    def poses(envs):
        places = [0, 1, 0, 0]
        images = [envs.reset(options={"task_indices": [place]})[1]["images"][0] for place in places]
        return [int(image[0, 0].max()) for image in images]

    options = {} if world == "memento" else {"resolution": 5}
    first, other = poses(opened(world, **options)), poses(opened(world, seed=1, **options))
    assert first[0] == first[2] == first[3] != first[1]
    assert poses(opened(world, **options)) == first
    assert other != first


def test_the_font_of_older_commits_is_looked_for(opened, monkeypatch):
    monkeypatch.setenv("STAND_IN_FONT", "UbuntuMono-B.ttf")
    if os.path.exists("/usr/share/fonts/truetype/ubuntu/UbuntuMono-B.ttf"):
        opened("eb_alfred")
        return
    with pytest.raises(DataNotFoundError, match=r"UbuntuMono-B\.ttf; apt-get install fonts-ubuntu"):
        opened("eb_alfred")


def test_no_link_is_left_where_the_program_runs(opened, checkouts):
    before = sorted(os.listdir(checkouts.eb_habitat))
    envs = opened("eb_habitat", resolution=5, num_envs=2)
    envs.reset()
    assert sorted(os.listdir(checkouts.eb_habitat)) == before
    envs.close()
    assert sorted(os.listdir(checkouts.eb_habitat)) == before


@pytest.mark.parametrize("gpu", [3, -1])
def test_the_device_that_renders_is_chosen(opened, gpu):
    envs = opened("eb_habitat", resolution=5, gpu=gpu)
    assert f"gpu {gpu}\n" in envs.simulators[0]._end() + "\n"


def test_a_device_that_is_none_is_refused(opened):
    with pytest.raises(InvalidInputError, match="gpu: expected a device's number, or -1 for the CPU, got -2"):
        opened("eb_habitat", gpu=-2)


@pytest.mark.parametrize(
    ("world", "variable", "found"), [("eb_habitat", "LAB", "0.3.3"), ("eb_alfred", "THOR", "5.0.0")]
)
def test_another_version_of_a_package_is_refused(opened, monkeypatch, world, variable, found):
    monkeypatch.setenv(f"STAND_IN_{variable}", found)
    with pytest.raises(MissingDependencyError, match=rf"expected version .*, got {found}; pip install .*=="):
        opened(world)


def test_two_envs_do_not_download_unity_at_once(opened):
    envs = opened("eb_alfred", num_envs=3)
    assert not envs.reset()[1]["crashed"].any()


def test_a_cut_by_the_program_is_told_from_one_by_max_steps(opened):
    for limit, cut_by_program in ((50, True), (30, False)):
        envs = opened("eb_habitat", resolution=5, max_steps=limit)
        envs.reset()
        for step in range(1, 31):
            _, _, terminations, truncations, info = envs.step(["0"])
            assert truncations[0] == (step == 30)
        assert not terminations[0]
        assert info["cut_by_program"].tolist() == [cut_by_program]
