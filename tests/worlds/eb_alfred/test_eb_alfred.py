"""EB-ALFRED's rules: the list of actions, feedback, side effects, goals, limits, views, and malformed files."""

from __future__ import annotations

import json
import random

import eb_alfred_scene as scene
import pytest
from mutations import mutated

import embodied_mem
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError
from embodied_mem.worlds.eb_alfred.env import Catalog, Env, Task, load_tasks
from embodied_mem.worlds.eb_alfred.expert import expert_actions

NUM_MUTATED_FILES = 3000
OK = "Last action executed successfully."
NO = "Last action is invalid. "
PUT_FAILED = (
    "Putting the object on {} failed. First check whether the receptacle is open or not. "
    "Also try other instances of the receptacle"
)
TAKE = ("find a Apple", "pick up the Apple")
PUT = "put down the object in hand"


def test_the_list_numbers_instances_of_receptacles_and_pickupables():
    actions = scene.make_task().actions
    first = [name for name in actions if name.startswith("find a ")][:3]
    assert first == ["find a Apple", "find a ButterKnife", "find a Cabinet"]
    assert actions[-4:] == ("find a Cabinet_2", "open the Cabinet_2", "close the Cabinet_2", "find a Apple_2")


@pytest.mark.parametrize(
    ("actions", "feedback"),
    [
        (("find a Apple",), OK),
        (("0",), OK),
        (
            ("pick up the Apple",),
            NO + "Apple is not visible because it is in CounterTop. Go there to pick the object instead.",
        ),
        (("find a Apple_2", "pick up the Spoon"), NO + "Robot is not holding any object"),
        (("find a CellPhone", "pick up the CellPhone"), OK),
        ((*TAKE, "find a CellPhone", "pick up the CellPhone"), NO + "Robot is currently holding Apple"),
        (
            (*TAKE, "pick up the Plate"),
            NO + "Plate is not visible because it is in Cabinet. Go there to pick the object instead.",
        ),
        ((PUT,), NO + "Robot is not holding any object"),
        (("drop the object in hand",), NO + "Robot is not holding any object"),
        ((*TAKE, "drop the object in hand"), OK),
        ((*TAKE, PUT), OK),
        ((*TAKE, "find a Fridge", PUT), NO + PUT_FAILED.format("Fridge")),
        ((*TAKE, "find a Fridge", "open the Fridge", PUT), OK),
        ((*TAKE, "find a Spoon", PUT), NO + PUT_FAILED.format("Spoon")),
        ((*TAKE, "find a ToiletPaperHanger", PUT), NO + PUT_FAILED.format("Toiletpaperhanger")),
        (
            ("find a Mug", "pick up the Mug", "find a Fridge", "open the Fridge", "find a Mug", PUT),
            NO + PUT_FAILED.format("Mug"),
        ),
        (("find a ToiletPaper", "pick up the ToiletPaper", "find a ToiletPaperHanger", PUT), OK),
        ((*TAKE, "find a Sink", PUT), OK),
        (("open the Fridge",), NO + "Cannot find Fridge to open. Find the object before opening it"),
        (("open the Cabinet_2",), NO + "Open action failed."),
        (
            ("find a Fridge", "open the Fridge", "open the Fridge"),
            NO + "Open action failed. The Fridge is already open",
        ),
        (("close the Microwave",), NO + "Cannot find Microwave to close"),
        (("close the Cabinet_2",), NO + "Close action failed. The Cabinet_2 is already closed"),
        (("find a Cabinet", "close the Cabinet"), NO + "Close action failed. The Cabinet is already closed"),
        (("turn on the DeskLamp",), NO + "Turn on action failed"),
        (("find a DeskLamp", "turn off the DeskLamp"), NO + "Turn off action failed"),
        (("find a DeskLamp", "turn on the DeskLamp", "turn off the DeskLamp"), OK),
        (("find a Faucet", "turn on the Faucet"), OK),
        (("find a Microwave", "open the Microwave", "turn on the Microwave"), NO + "Turn on action failed"),
        (("find a Microwave", "turn on the Microwave", "open the Microwave"), NO + "Open action failed."),
        (("find a Apple", "slice the Apple"), OK),
        (("find a Spoon", "slice the Apple"), NO + "Slice action failed"),
        ((*TAKE, "slice the Apple"), NO + "Slice action failed"),
        (("dance",), NO + "The answer is no action of the list"),
        (("9999",), NO + "The answer is no action of the list"),
    ],
)
def test_feedback(actions, feedback):
    env = scene.play(scene.make_task(), *actions)
    assert env.feedback == feedback
    assert env.action_valid == (feedback == OK)


@pytest.mark.parametrize(
    ("type_name", "word", "feedback"),
    [
        (
            "Mug",
            "find a Mug",
            "Cannot find Mug. This object may not exist in this scene. Try to explore other instances instead.",
        ),
        (
            "CellPhone",
            "pick up the CellPhone",
            "Cannot find Cellphone to pick up. Find the object before picking up it",
        ),
    ],
)
def test_what_is_not_there_cannot_be_found(type_name, word, feedback):
    def without(catalog, annotation):
        objects = catalog["trials"][scene.TRIAL]["objects"]
        index = [entry["type"] for entry in objects].index(type_name)
        del objects[index], annotation["scene"]["object_poses"][index]

    assert scene.play(scene.make_task(change=without), word).feedback == NO + feedback


def test_only_put_down_and_open_keep_the_current_receptacle():
    kept = scene.play(scene.make_task(), *TAKE, "find a Fridge", "open the Fridge", PUT)
    assert scene.place_id(3) in kept.state()["things"]["Apple|+02.10|+01.00|+02.00"]["in"]
    cleared = scene.play(scene.make_task(), *TAKE, "find a Fridge", "open the Fridge", "close the Fridge", PUT)
    assert cleared.feedback == OK  # dropped
    assert cleared.state()["things"]["Apple|+02.10|+01.00|+02.00"]["in"] == []


def test_the_third_failed_put_down_onto_one_name_drops_the_object():
    env = scene.play(scene.make_task(), *TAKE, "find a Microwave")
    for attempt in range(3):
        env.step(PUT)
        dropped = ". The robot dropped the object instead." if attempt == 2 else ""
        assert env.feedback == NO + PUT_FAILED.format("Microwave") + dropped
        assert (env.state()["holding"] == "") == (attempt == 2)


def test_a_movable_receptacle_takes_its_content_along():
    env = scene.play(scene.make_task(), *TAKE, "find a Mug", PUT, "pick up the Mug", "find a GarbageCan", PUT)
    things = env.state()["things"]
    assert things["Apple|+02.10|+01.00|+02.00"]["in"] == ["Mug|+02.40|+01.00|+02.00"]
    assert things["Mug|+02.40|+01.00|+02.00"]["in"] == [scene.place_id(4)]
    assert env.won, "what is in a thing in the can is in the can"
    assert "GarbageCan with Mug with Apple" in env.observation


def test_sink_microwave_and_fridge_mark_what_is_in_them():
    apple = "Apple|+02.10|+01.00|+02.00"

    def marks(*actions):
        entry = scene.play(scene.make_task(), *TAKE, *actions).state()["things"][apple]
        return entry["clean"], entry["hot"], entry["cold"]

    assert marks("find a Sink", PUT, "turn on the Faucet") == (True, False, False)
    microwave = ("find a Microwave", "open the Microwave", PUT, "close the Microwave")
    assert marks(*microwave) == (False, False, False)
    assert marks(*microwave, "turn on the Microwave") == (False, True, False)
    fridge = ("find a Fridge", "open the Fridge", PUT)
    assert marks(*fridge) == (False, False, False)
    assert marks(*fridge, "close the Fridge") == (False, False, True)
    closed = scene.play(scene.make_task(), "find a Fridge", "open the Fridge", "close the Fridge")
    assert closed.state()["things"]["Apple|+04.10|+01.00|+02.00"]["cold"], "also what was there from the start"


def test_slices_are_things_of_their_own():
    env = scene.play(scene.make_task(), "find a Apple", "slice the Apple")
    assert "Apple|+02.10|+01.00|+02.00" not in env.state()["things"]
    assert "AppleSliced, AppleSliced" in env.observation
    env.step("pick up the Apple")
    assert env.state()["holding"].endswith("|AppleSliced_1")
    env.step("find a GarbageCan")
    env.step(PUT)
    assert env.won, "a slice fits its whole"
    env = scene.play(scene.make_task(), "find a Apple", "slice the Apple", "find a Fridge", "find a Apple")
    assert env.state()["found"].endswith("|AppleSliced_1"), "a cut instance is found as its slice"
    needs = scene.play(scene.make_task(), "find a Apple", "slice the Apple", needs_knife=True)
    assert needs.feedback == NO + "Slice action failed"
    knife = ("find a ButterKnife", "pick up the ButterKnife", "find a Apple", "slice the Apple")
    assert scene.play(scene.make_task(), *knife, needs_knife=True).feedback == OK


@pytest.mark.parametrize(
    ("task_type", "goal", "script"),
    [  # after each action the progress, where it changes
        ("pick_and_place_simple", {}, [*TAKE, "find a GarbageCan", (PUT, 1)]),
        (
            "pick_two_obj_and_place",
            {},
            [
                *TAKE,
                "find a GarbageCan",
                (PUT, 0.5),
                "find a Apple_2",
                "find a Fridge",
                "open the Fridge",
                "find a Apple_2",
                "pick up the Apple",
                "find a GarbageCan",
                (PUT, 1),
            ],
        ),
        (
            "look_at_obj_in_light",
            {"toggle_target": "DeskLamp", "parent_target": ""},
            ["find a Apple", ("pick up the Apple", 0.5), "find a DeskLamp", ("turn on the DeskLamp", 1)],
        ),
        (
            "pick_clean_then_place_in_recep",
            {},
            [
                *TAKE,
                "find a Sink",
                PUT,
                ("turn on the Faucet", 1 / 3),
                "pick up the Apple",
                "find a GarbageCan",
                (PUT, 1),
            ],
        ),
        (
            "pick_cool_then_place_in_recep",
            {},
            ["find a Fridge", "open the Fridge", ("close the Fridge", 1 / 3), *TAKE, "find a GarbageCan", (PUT, 2 / 3)],
        ),
        (
            "pick_and_place_with_movable_recep",
            {"mrecep_target": "Mug"},
            [*TAKE, "find a Mug", (PUT, 1 / 3), "pick up the Mug", "find a GarbageCan", (PUT, 1)],
        ),
        (
            "pick_and_place_simple",
            {"object_sliced": True},
            ["find a Apple", ("slice the Apple", 0.5), "pick up the Apple", "find a GarbageCan", (PUT, 1)],
        ),
        (
            "pick_two_obj_and_place",
            {"object_sliced": True},
            ["find a Apple", ("slice the Apple", 0.5), "pick up the Apple", "find a GarbageCan", (PUT, 0.75)],
        ),
    ],
)
def test_progress_counts_the_conditions_of_the_task_type(task_type, goal, script):
    env, expected = Env(scene.make_task(task_type, **goal)), 0
    for entry in script:
        action, expected = entry if isinstance(entry, tuple) else (entry, expected)
        env.step(action)
        assert env.feedback == OK, action
        assert env.progress == pytest.approx(expected), action
        assert env.won == (expected == 1)


def test_ten_invalid_actions_end_an_episode_and_an_unusable_answer_takes_the_progress():
    looking = {"task_type": "look_at_obj_in_light", "toggle_target": "DeskLamp"}
    for last, progress in (("drop the object", 0), ("open the Cabinet_2", 0.5)):
        env = scene.play(scene.make_task(**looking), *TAKE)
        for _ in range(9):
            env.step("close the Cabinet_2")
        assert not env.ended
        assert (env.num_steps, env.num_invalid) == (11, 9)
        env.step(last)
        assert env.ended
        assert not env.won
        assert env.progress == progress
        assert env.num_steps == 11 + (progress > 0), "an unusable answer costs no step"
        end = env.observation
        assert env.step("find a Apple") == end


def test_the_view_says_what_is_in_reach():
    env = scene.play(scene.make_task(), "find a CounterTop")
    assert env.observation == (
        f"{OK}\nIn view: CounterTop with Apple, CellPhone, ButterKnife, Mug, ToiletPaper; DeskLamp (off).\n"
        "In hand: nothing."
    )
    assert scene.play(scene.make_task(), "find a CounterTop", shows_view=False).observation == OK
    env = scene.play(scene.make_task(), "find a Plate")
    assert "In view: Cabinet (closed)." in env.observation
    assert scene.play(scene.make_task(), "find a Plate", "open the Cabinet").observation.count("Plate") == 1
    geometry = scene.play(scene.make_task(), "find a CounterTop", reach="geometry")
    assert "Cabinet_2 (closed)" in geometry.observation, "1.5 m and 45 degrees reach it"
    floor = scene.play(scene.make_task(), *TAKE, "drop the object in hand")
    assert "In view: " in floor.observation
    assert floor.state()["things"]["Apple|+02.10|+01.00|+02.00"]["visible"]


def test_the_nearest_rule_may_take_a_twin():
    """Section 3 goes by distance alone: from the fridge the open one's apple wins over the one just found."""
    actions = ("find a Fridge", "open the Fridge", "find a Apple_2", "pick up the Apple")
    assert scene.play(scene.make_task(), *actions).state()["holding"] == "Apple|+04.10|+01.00|+02.00"
    taken = scene.play(
        scene.make_task(), "find a Apple_2", "find a Fridge", "open the Fridge", "pick up the Apple", instance="nearest"
    )
    assert taken.state()["holding"] == "Apple|+04.10|+01.00|+02.00"


def _valid_by_the_rules(env):
    """What can be done in the kitchen now, from the rules and the hidden state, without trying."""
    state = env.state()
    things = {env.task.names[key]: thing for key, thing in state["things"].items()}
    yield from (action for action in env.admissible_commands if action.startswith("find a "))
    if state["holding"]:
        yield from ("put down the object in hand", "drop the object in hand")
    for action in env.admissible_commands:
        verb, _, name = action.rpartition(" ")
        alike = [thing for key, thing in things.items() if key.split("_")[0] == name.split("_")[0]]
        seen = [thing for thing in alike if thing["visible"] and not thing["held"]]
        named = [things[name]] if len(alike) > 1 and things[name]["visible"] else seen if len(alike) == 1 else []
        allowed = {
            "pick up the": not state["holding"] and seen,
            "open the": any(not thing["open"] and not thing["on"] for thing in named),
            "close the": any(thing["open"] for thing in named),
            "turn on the": any(not thing["on"] and not thing["open"] for thing in seen),
            "turn off the": any(thing["on"] for thing in seen),
            "slice the": seen,
        }
        if allowed.get(verb):
            yield action


@pytest.mark.parametrize(
    "actions",
    [
        ("find a Fridge",),
        ("find a Fridge", "open the Fridge"),
        ("find a Cabinet",),
        ("find a Cabinet_2", "open the Cabinet_2"),
        ("find a Apple",),
        TAKE,
        ("find a DeskLamp", "turn on the DeskLamp"),
        ("find a Microwave", "open the Microwave"),
        ("find a Microwave", "turn on the Microwave"),
        ("find a Faucet",),
    ],
)
def test_valid_commands_are_those_that_the_rules_allow(actions):
    env = scene.play(scene.make_task(), *actions)
    assert sorted(env.valid_commands) == sorted(_valid_by_the_rules(env))


def test_satisfied_at_the_start_is_flagged_and_left_out(tmp_path):
    def in_the_bin(catalog, annotation):
        catalog["trials"][scene.TRIAL]["objects"][0]["in"] = [scene.place_id(4)]

    assert not scene.make_task().satisfied_at_start
    assert scene.make_task(change=in_the_bin).satisfied_at_start
    assert not scene.make_task("pick_clean_then_place_in_recep", change=in_the_bin).satisfied_at_start
    catalog, annotation = scene.catalog_json(), scene.annotation_json()
    folder = tmp_path / "json_2.1.0" / scene.TRIAL / "pp"
    folder.mkdir(parents=True)
    (folder / "ann_0.json").write_text(json.dumps(annotation))
    (folder / "ann_1.json").write_text(json.dumps(scene.annotation_json("pick_clean_then_place_in_recep")))
    in_the_bin(catalog, annotation)
    (tmp_path / "floorplans.json").write_text(json.dumps(catalog))
    entries = [{"task": scene.TRIAL, "repeat_idx": i, "instruction": "Bin it."} for i in range(2)]
    (tmp_path / "splits.json").write_text(json.dumps({"base": entries, "common_sense": entries[:1]}))
    envs = embodied_mem.envs.make("eb_alfred", tasks="base", data=tmp_path)
    assert [envs.task_id(i) for i in range(envs.num_tasks)] == ["base/1"]
    assert [task.satisfied_at_start for task in load_tasks("base", tmp_path)] == [True, False]
    with pytest.raises(InvalidInputError, match="no task that is not satisfied"):
        embodied_mem.envs.make("eb_alfred", tasks="common_sense", data=tmp_path)


@pytest.mark.parametrize("limit", [0, 60_001, 2**16 + 1, 2**40])
def test_limits_that_a_count_cannot_hold_are_refused(limit):
    for make in (lambda: Env(scene.make_task(), max_invalid=limit), lambda: _vector(max_invalid=limit)):
        with pytest.raises(InvalidInputError, match=f"max_invalid: expected 1 to 60000, got {limit}"):
            make()


def _vector(**options):
    return embodied_mem.envs.make("eb_alfred", tasks=[scene.make_task()], **options)


def test_an_expert_plan_that_the_scene_cannot_serve_is_refused():
    plan = {
        "plan": {"low_actions": [{"api_action": {"action": "PickupObject", "objectId": "Vase|+00.00|+00.00|+00.00"}}]}
    }
    with pytest.raises(InvalidInputError, match="the scene does not hold"):
        expert_actions(scene.make_task(), plan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c, a: c["types"].pop("Apple"), r"floorplans\.json: line 1, column \d+: type: expected one of 'types'"),
        (lambda c, a: c["trials"].clear(), r"floorplans\.json: 'trials' has no entry for .* which ann_0\.json needs"),
        (lambda c, a: c["types"].pop("AppleSliced"), "no type 'AppleSliced'"),
        (lambda c, a: c["floorplans"]["FloorPlan1"].update(standing=[]), "expected at least one point"),
        (lambda c, a: c["floorplans"]["FloorPlan1"]["receptacles"][1].update(id=scene.place_id(0)), "comes twice"),
        (lambda c, a: c["floorplans"]["FloorPlan1"]["receptacles"][1].update(pos=[0, 1]), "three coordinates"),
        (lambda c, a: c["trials"][scene.TRIAL]["objects"][0].update(type="Fridge"), "expected a pickupable object"),
        (lambda c, a: a["scene"]["object_poses"].pop(), r"ann_0\.json: .*found none for 'ToiletPaper"),
        (lambda c, a: a["scene"]["object_poses"][1].update(objectName="Egg_1"), "found none for 'Apple"),
        (lambda c, a: a.update(task_type="dance"), "unknown type 'dance'"),
        (lambda c, a: a["pddl_params"].pop("object_target"), "'object_target' is missing"),
        (lambda c, a: a["pddl_params"].update(parent_target=""), "parent_target: expected a type, got none"),
        (lambda c, a: a["scene"]["init_action"].update(x="far"), "'x': expected a number"),
        (lambda c, a: a.update(repeat_idx=1), "repeat_idx"),
        (lambda c, a: a["turk_annotations"]["anns"][0].update(task_desc=""), "expected a sentence"),
    ],
)
def test_a_malformed_file_is_named_with_its_place(change, message):
    with pytest.raises(GameFileError, match=message):
        scene.make_task(change=change)


def test_mutated_files_are_refused_or_played():
    rng = random.Random(0)
    files = [json.dumps(part).encode() for part in (scene.catalog_json(), scene.annotation_json())]
    played = refused = 0
    for _ in range(NUM_MUTATED_FILES):
        which = rng.randrange(2)
        parts = [mutated(content, rng, longest=30) if i == which else content for i, content in enumerate(files)]
        try:
            task = Task.from_text(
                parts[1], "ann_0.json", Catalog.from_text(parts[0], "floorplans.json"), scene.TRIAL, "x"
            )
        except GameFileError as error:
            refused += ".json" in str(error)
            continue
        played += 1
        env = Env(task, max_invalid=1000)
        actions = task.actions
        for _ in range(20):
            env.step(rng.choice(actions))
        assert 0 <= env.progress <= 1
    assert played > 50
    assert refused > 1000


def test_missing_data_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match="EMBODIED_MEM_DATA/eb_alfred"):
        load_tasks("base")
    with pytest.raises(DataNotFoundError, match=r"floorplans\.json"):
        load_tasks("base", tmp_path)
    folder = tmp_path / "json_2.1.0" / scene.TRIAL / "pp"
    folder.mkdir(parents=True)
    (tmp_path / "floorplans.json").write_text(json.dumps(scene.catalog_json()))
    entry = {"task": scene.TRIAL, "repeat_idx": 0, "instruction": "Bin it."}
    (tmp_path / "splits.json").write_text(json.dumps({"base": [entry]}))
    with pytest.raises(DataNotFoundError, match=r"ann_0\.json"):
        load_tasks("base", tmp_path)
    (folder / "ann_0.json").write_text(json.dumps(scene.annotation_json()))
    assert [task.task for task in load_tasks("base", tmp_path)] == ["Bin it."]
    assert load_tasks("train", tmp_path) == []
    with pytest.raises(DataNotFoundError, match="expected one of base, common_sense, long_horizon, train"):
        load_tasks("spatial", tmp_path)
    for bad, message in (
        ([], "expected a JSON object, got list"),
        ({"base": [{"task": scene.TRIAL}]}, r"base\[0\]: expected 'repeat_idx'"),
        ({"base": [entry | {"task": "../.."}]}, "below json_2.1.0"),
    ):
        (tmp_path / "splits.json").write_text(json.dumps(bad))
        with pytest.raises(GameFileError, match=message):
            load_tasks("base", tmp_path)
