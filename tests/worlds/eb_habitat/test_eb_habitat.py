"""EB-Habitat's rules as its notes state them: actions, refusals, doors, limits, progress, snapshots, threads."""

from __future__ import annotations

import json
import threading

import pytest
from eb_habitat_home import EMPTY_HAND, FRIDGE, LEFT_DRAWER, PLACES, SINK, SOFA, TABLE, episode, placed, quantified

import embodied_mem
from embodied_mem.envs.data_files import installed, read_bytes
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError
from embodied_mem.worlds.eb_habitat.data import (
    ACTIONS,
    SUBSETS,
    Scenes,
    load_records,
    load_scenes,
    load_tasks,
    read_tasks,
)
from embodied_mem.worlds.eb_habitat.env import Env

DONE = "Last action executed successfully"
PICK_FULL = (
    "Last action is invalid. Robot cannot pick any object when holding something. Please place the object before "
    "picking something."
)
PICK_FAR = (
    "Last action is invalid. Robot cannot pick any object that is not near the robot. Navigate to other place to find "
    "the object."
)
PLACE_FAR = (
    "Last action is invalid. Robot cannot place any object that is not near the robot. Navigate to other place to find "
    "the object."
)
PLACE_EMPTY = (
    "Last action is invalid. Robot cannot place any object when not holding something. Please pick the object before "
    "place it."
)
OPEN_REFUSED = (
    "Last action is invalid. Check whether the receptacle is already open or the robot is not near the receptacle."
)
CLOSE_REFUSED = (
    "Last action is invalid. Check whether the receptacle is already closed or the robot is not near the receptacle."
)
NO_ACTION = "Last action is invalid. There is no such action."


def home(*episodes):
    return read_tasks(json.dumps({"episodes": list(episodes or [episode()])}).encode(), "home", Scenes())


def make(*episodes, **options):
    return embodied_mem.envs.make("eb_habitat", tasks=home(*episodes), **options)


def test_feedback_word_for_word():
    env = Env(home()[0])
    assert env.observation.startswith(
        "You are in an apartment. Its places are the chair 1, the table 1 (black table), "
    )
    assert env.observation.endswith("\n\nYour task is to: Move a cup to the sofa.")
    for action, feedback in (
        ("pick up the cup", PICK_FAR),  # nothing is near before the first walk
        ("place at the table 1", PLACE_EMPTY),
        ("open the refrigerator", OPEN_REFUSED),
        ("navigate to the table 1", f"{DONE}."),
        ("pick up the apple", PICK_FAR),
        ("pick up the cup", f"{DONE} and you are holding cup."),
        ("pick up the cup", PICK_FULL),
        ("place at the sofa", PLACE_FAR),
        ("navigate to the refrigerator", f"{DONE}."),
        ("close the refrigerator", CLOSE_REFUSED),
        ("open the refrigerator", f"{DONE} and now refrigerator is open."),
    ):
        assert env.step(action).split("\n")[0] == feedback, action
    assert (env.num_steps, env.num_invalid) == (11, 7)


def test_drawers_hide_and_hold_back_and_their_name_is_printed_as_push():
    env = Env(home()[0])
    for action in ("navigate to the table 1", "pick up the cup", "navigate to the cabinet 7"):
        env.step(action)
    text = env.step("place at the left drawer of the kitchen counter")  # placing into a closed drawer is allowed
    assert text == f"{DONE} and you are holding nothing.\nThe cabinet 7 is closed."
    assert env.step("pick up the cup").startswith(PICK_FAR)
    text = env.step("open the cabinet 7")
    assert text == f"{DONE} and now cabinet push is open.\nThe cabinet 7 is open. In it, you see a cup."
    assert env.step("open the cabinet 7").startswith(OPEN_REFUSED)
    assert env.step("pick up the cup").startswith(f"{DONE} and you are holding cup.")
    env.step("navigate to the refrigerator push point")
    assert env.step("place at the refrigerator").endswith("\nThe refrigerator is closed.")
    assert env.step("pick up the cup").startswith(f"{DONE} and you are holding cup.")  # its door does not matter
    assert env.step("close the cabinet 7").startswith(CLOSE_REFUSED)  # not near
    env.step("navigate to the left drawer of the kitchen counter")
    assert env.step("close the cabinet 7").startswith(f"{DONE} and now cabinet push is closed.")


def test_the_first_near_object_in_handle_order_is_taken():
    objects = {"cup_0": SINK, "cup_1": TABLE, "cup_2": TABLE}
    env = Env(home(episode(objects=objects))[0])
    env.step("6")
    env.step("pick up the cup")
    assert env.state()["holding"] == "cup_1"


def test_success_ends_at_once_and_any_object_of_the_kind_will_do():
    envs = make(num_envs=2, seed=0)
    envs.reset()
    for action in ("navigate to the sink in the kitchen", "pick up the cup", "navigate to the sofa"):
        _, rewards, terminations, _, info = envs.step([action] * 2)
        assert not rewards.any()
        assert not terminations.any()
    observations, rewards, terminations, truncations, info = envs.step(["place at the sofa", "place at the sink"])
    assert rewards.tolist() == [1, 0]
    assert terminations.tolist() == [True, False]
    assert not truncations.any()
    assert info["won"].tolist() == [True, False]
    assert info["progress"][0] == 1
    assert info["num_invalid"].tolist() == [0, 1]
    assert list(info["admissible_commands"]) == [ACTIONS] * 2
    after, *_, info = envs.step(["navigate to the sink in the kitchen"] * 2)
    assert after[0] == observations[0]
    assert after[1] != observations[1]
    assert envs.env(0).num_steps == 4
    assert envs.env(1).num_steps == 4


def test_holding_an_object_over_its_place_counts_as_nothing():
    """The original's two quirks: a pick would succeed at once, and a held object could lie on a counter."""
    moved = quantified("EXISTS", {"X": "apple"}, placed("X", SINK), op="NAND")
    off = {"op": "AND", "args": [EMPTY_HAND, moved]}
    env = Env(home(episode(off))[0])
    for action in ("navigate to the sink in the kitchen", "pick up the apple"):
        env.step(action)
    assert not env.won
    env.step("place at the sink in the kitchen")
    assert not env.won
    assert env.num_invalid == 0
    for action in ("pick up the apple", "navigate to the sofa", "place at the sofa"):
        env.step(action)
    assert env.won


def test_limits():
    envs = make(num_envs=3, seed=0)
    envs.reset()
    for step in range(30):
        answers = envs.step(["navigate to the sofa", "close the cabinet 4", "jump"])
        _, _, terminations, truncations, info = answers
        assert truncations.tolist() == [step == 29, False, False]
        assert terminations.tolist() == [False, step >= 9, step >= 9]
    assert info["num_invalid"].tolist() == [0, 10, 10]
    assert [envs.env(i).num_steps for i in range(3)] == [30, 10, 0]
    env = Env(home()[0])
    for action in ("", "70", "pick up", "Navigate to the sofa", "navigate to the sofa, pick up the cup", "\ud800"):
        assert env.step(action) == NO_ACTION
    assert (env.num_steps, env.num_invalid) == (0, 6)


def test_subgoals_count_for_good_and_only_when_all_their_literals_hold_together():
    subgoals = [[["robot_at", TABLE]], [["holding", "cup_0"], ["robot_at", SOFA]], [["on_top", "cup_1", SINK]]]
    env = Env(home(episode(subgoals_symbolic=subgoals))[0])
    assert env.state()["reached"] == [False, False, True]  # the third holds at the start
    for action, reached in (
        ("navigate to the table 1", [True, False, True]),
        ("pick up the cup", [True, False, True]),
        ("navigate to the sofa", [True, True, True]),
    ):
        env.step(action)
        assert env.state()["reached"] == reached
        assert env.progress == sum(reached) / 3
    env.step("place at the sofa")
    assert env.won
    assert env.progress == 1


def test_satisfied_at_the_start_is_flagged_and_left_out(tmp_path):
    lucky = episode(objects={"cup_0": SOFA}, id="home/001")
    assert [task.satisfied_at_start for task in home(lucky, episode())] == [True, False]
    (tmp_path / "base.json").write_text(json.dumps({"episodes": [lucky, episode()]}))
    envs = embodied_mem.envs.make("eb_habitat", tasks="base", data=tmp_path)
    assert [envs.task_id(i) for i in range(envs.num_tasks)] == ["home/000"]
    assert len(load_tasks("base", tmp_path)) == 2
    (tmp_path / "base.json").write_text(json.dumps({"episodes": [lucky]}))
    with pytest.raises(InvalidInputError, match="no task that is not satisfied"):
        embodied_mem.envs.make("eb_habitat", tasks="base", data=tmp_path)


def test_a_reset_that_is_refused_changes_no_env():
    boxes = {name: {"min": [x - 0.5, 0.7, z - 0.5], "max": [x + 0.5, 0.9, z + 0.5]} for name, (x, z) in PLACES.items()}
    known = {"scenes": {"flat": {"receptacle_boxes_from_objects": boxes}}}
    content = json.dumps({"episodes": [episode(), episode(id="home/001", scene="bare")]}).encode()
    tasks = read_tasks(content, "episodes", Scenes.from_text(json.dumps(known).encode(), "scenes"))
    envs = embodied_mem.envs.make("eb_habitat", tasks=tasks, num_envs=2, reach="geometry")
    envs.reset(options={"task_indices": [0, 0]})
    before, *_ = envs.step(["0", "1"])
    with pytest.raises(InvalidInputError, match="expected boxes for the scene 'bare'"):
        envs.reset(options={"task_indices": [0, 1]})
    observations, info = envs.answers()
    assert (observations, list(info["task_id"])) == (before, ["home/000", "home/000"])


def test_two_threads_at_once_are_refused_or_served():
    envs = make(episode(), num_envs=64)
    envs.reset()
    refused = []

    def play():
        for _ in range(100):
            try:
                envs.step(["0"] * 64)
            except InvalidInputError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=play) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all("in use by another thread" in text for text in refused)


def test_bad_files_and_arguments_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "base.json"

    def refusal(**changes):
        file.write_text(json.dumps({"episodes": [episode() | changes]}))
        with pytest.raises(GameFileError) as caught:
            load_tasks("base", tmp_path)
        message = str(caught.value)
        assert message.startswith(f"{file}: line 1, column "), message
        return message

    objects = episode()["objects"]
    assert "no receptacle is called 'bed'" in refusal(objects=[objects[0] | {"receptacle": "bed"}])
    assert "no category is called 'cat'" in refusal(objects=[objects[0] | {"category": "cat"}])
    assert "expected objects in the order of their handles" in refusal(objects=[*objects[1:], objects[0]])
    assert "expected open or closed, got 'ajar'" in refusal(initial_articulated={"fridge_push_point": "ajar"})
    assert "unknown predicate 'warm'" in refusal(goal={"pred": "warm", "args": []})
    assert "ranges over more objects" in refusal(goal=quantified("FORALL", {"X": "lemon"}, placed("X", SOFA)))
    many = quantified("EXISTS", {f"X{i}": "cup" for i in range(13)}, placed("X0", SOFA))
    cups = episode(objects={f"cup_{i:02}": TABLE for i in range(12)})["objects"]
    assert "more than 20000 choices" in refusal(goal=many, objects=cups)  # 12! of them
    assert "1 to 64 entries in 'subgoals_symbolic', got 0" in refusal(subgoals_symbolic=[])
    (tmp_path / "scenes.json").write_text('{"scenes": {"flat": {"receptacle_boxes_from_objects": {"bed": {}}}}}')
    with pytest.raises(GameFileError, match=r"scenes\.json: line 1, column 63: no receptacle is called 'bed'"):
        load_scenes(tmp_path)
    (tmp_path / "cut.json.xz").write_bytes(b"\xfd7zXZ\x00")
    with pytest.raises(GameFileError, match=r"cut\.json\.xz: cannot be unpacked"):
        read_bytes(tmp_path / "cut.json.xz")
    with pytest.raises(InvalidInputError, match="expected group or geometry, got 'far'"):
        make(reach="far")
    with pytest.raises(InvalidInputError, match="max_invalid: expected 1 to 2147483647, got 0"):
        make(max_invalid=0)
    with pytest.raises(InvalidInputError, match="expected boxes for the scene 'flat'"):
        make(reach="geometry").reset()
    for tasks, message in (([], "at least one"), ([3], r"tasks\[0\]")):
        with pytest.raises(InvalidInputError, match=message):
            embodied_mem.envs.make("eb_habitat", tasks=tasks)
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match="EMBODIED_MEM_DATA/eb_habitat"):
        load_tasks("base")
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path / "none"))
    assert installed("eb_habitat") is None
    with pytest.raises(DataNotFoundError, match="expected one of base, common_sense"):
        load_tasks("bases")
    with pytest.raises(DataNotFoundError, match="'long_horizon' is not installed"):
        load_tasks("long_horizon", tmp_path)


def test_our_constants_are_those_of_the_data(eb_habitat_data):
    """Actions, feedback, limits, categories, and what each target serves, against domain.json."""
    domain = json.loads(read_bytes(eb_habitat_data / "domain.json.xz"))
    assert [action["text"] for action in domain["actions"]] == list(ACTIONS)
    assert domain["limits"] == {"max_steps": 30, "max_invalid_actions": 10, "max_actions_per_plan_asked_of_agent": 20}
    feedback = {key: text for key, text in domain["feedback"].items() if "invalid" in key}
    assert set(feedback.values()) >= {PICK_FULL, PICK_FAR, PLACE_FAR, PLACE_EMPTY, OPEN_REFUSED, CLOSE_REFUSED}
    env = Env(home()[0])
    for action in domain["actions"][:16]:
        env.step(action["text"])
        assert sorted(env.state()["near"]) == sorted(domain["nav_serves"][action["target"]])
    for part in domain["articulated"]:
        env.step(f"navigate to the {part['nav_phrase']}")
        assert env.step(f"open the {part['action_phrase']}").startswith(DONE)
    assert {FRIDGE, LEFT_DRAWER} <= {entry["name"] for entry in domain["receptacles"]}


def test_every_episode_loads_and_the_flag_agrees(eb_habitat_data):
    flagged = []
    for subset in SUBSETS:
        if not (eb_habitat_data / f"{subset}.json.xz").is_file():
            continue
        records = load_records(subset, eb_habitat_data)
        for record, task in zip(records, load_tasks(subset, eb_habitat_data), strict=True):
            assert (task.name, task.task, task.scene) == (record["id"], record["instruction"], record["scene"])
            assert [[list(literal) for literal in subgoal] for subgoal in task.subgoals] == record["subgoals_symbolic"]
            assert task.satisfied_at_start == record["start_satisfies_goal"]
            flagged += [task.name] * task.satisfied_at_start
    assert flagged == ["train_validation/090"]
