"""Files made from the originals: of small ones in their formats, and of those at hand beside the file at hand."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from embodied_mem import cli
from embodied_mem.envs.data_files import Originals, read_object
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.eb_alfred import env as eb_alfred
from embodied_mem.worlds.eb_alfred.conversion.convert import NAMES, action_names, convert
from embodied_mem.worlds.eb_alfred.expert import expert_actions

TRIAL = "pick_and_place_simple-Mug-None-Desk-303/trial_T1"
OTHER = "pick_and_place_simple-Mug-None-Desk-303/trial_T2"
NAME_LISTS = {
    "alfred_objs": ["Mug", "Pencil", "Desk", "Drawer", "Faucet", "SinkBasin", "Apple"],
    "alfred_pick_obj": ["Mug", "Pencil", "Apple"],
    "alfred_open_obj": ["Drawer"],
    "alfred_toggle_obj": ["DeskLamp", "Faucet"],
    "alfred_slice_obj": ["Apple"],
    "alfred_recep": ["Desk", "Drawer"],
}


def _plain(facts):
    """As ALFWorld writes ids in its problems."""
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_")):
        facts = facts.replace(sign, word)
    return facts


def _problem(mug_in):
    facts = [
        "(receptacleType Desk|-01.71|+00.00|-00.37 DeskType)",
        "(receptacleType Drawer|-01.79|+00.25|-01.15 DrawerType)",
        "(receptacleType Sink|+01.00|+00.80|+01.00|SinkBasin SinkBasinType)",
        "(objectType Mug|+00.08|+00.73|-02.53 MugType)",
        "(objectType DeskLamp|-01.85|+00.59|-00.79 DeskLampType)",
        "(canContain DeskType MugType)",
        "(pickupable Mug|+00.08|+00.73|-02.53)",
        "(isReceptacleObject Mug|+00.08|+00.73|-02.53)",
        "(heatable Mug|+00.08|+00.73|-02.53)",
        "(openable Drawer|-01.79|+00.25|-01.15)",
        "(atLocation agent1 loc|6|-1|0|30)",
        f"(inReceptacle Mug|+00.08|+00.73|-02.53 {mug_in})",
        "(inReceptacle DeskLamp|-01.85|+00.59|-00.79 Desk|-01.71|+00.00|-00.37)",
        "(receptacleAtLocation Desk|-01.71|+00.00|-00.37 loc|-3|-2|3|60)",
        "(receptacleAtLocation Drawer|-01.79|+00.25|-01.15 loc|-3|-2|3|45)",
        "(receptacleAtLocation Sink|+01.00|+00.80|+01.00|SinkBasin loc|3|3|0|45)",
        "(objectAtLocation DeskLamp|-01.85|+00.59|-00.79 loc|-3|-2|3|30)",
    ]
    text = "(define (problem p) (:init\n" + _plain("\n".join(facts)) + "\n) (:goal (and (exists (?o) (holds ?a ?o)))))"
    return json.dumps({"pddl_problem": text})


def _trajectory():
    poses = [("Mug_1", (0.0768, 0.7268, -2.5301)), ("Pencil_2", (-1.7, 0.1, -0.4)), ("Mug_3", (0.1, 0.73, -2.50))]
    pick = {"action": "PickupObject", "objectId": "Pencil|-01.70|+00.10|-00.40"}
    drawer = ["Drawer", [-7.16, -7.16, -4.6, -4.6, 1, 1]]  # quarter metres: x, x, z, z, y, y
    return {
        "task_id": "trial_T1",
        "task_type": "pick_and_place_simple",
        "pddl_params": {"object_target": "Mug", "parent_target": "Desk", "mrecep_target": "", "toggle_target": "",
                        "object_sliced": False},
        "images": [{"image_name": "0.png"}],
        "scene": {
            "floor_plan": "FloorPlan303", "scene_num": 303, "object_toggles": [], "dirty_and_empty": False,
            "random_seed": 1,
            "init_action": {"action": "TeleportFull", "horizon": 30, "rotation": 90, "x": 1.25, "y": 0.9, "z": -0.25},
            "object_poses": [
                {"objectName": name, "position": dict(zip("xyz", place)), "rotation": {}} for name, place in poses
            ],
        },
        "plan": {
            "high_pddl": [
                {"planner_action": pick | {"coordinateReceptacleObjectId": drawer}}
            ],
            "low_actions": [{"api_action": pick | {"forceVisible": True}, "high_idx": 0,
                             "discrete_action": {"action": "PickupObject", "args": {"mask": [1]}}}],
        },
        "turk_annotations": {"anns": [
            {"task_desc": "Put a mug on the desk.", "high_descs": ["a"], "assignment_id": "worker", "votes": [1]},
            {"task_desc": "Desk mug.", "high_descs": ["b"]},
        ]},
    }  # fmt: skip


@pytest.fixture
def folders(tmp_path):
    """Originals as they lie after the downloads: three folders."""
    bench = tmp_path / "EmbodiedBench/embodiedbench/envs/eb_alfred"
    entries = [{"task": TRIAL, "repeat_idx": 1, "instruction": "Move the cup to the desk."}]
    files = {
        bench / "utils.py": "import nowhere\n" + "".join(f"{name} = {words!r}\n" for name, words in NAME_LISTS.items()),
        bench / "data/splits/splits.json": json.dumps({"base": entries}),
        tmp_path / f"alfred/json_2.1.0/train/{TRIAL}/traj_data.json": json.dumps(_trajectory()),
        tmp_path / f"alfworld/json_2.1.1/train/{TRIAL}/game.tw-pddl": _problem("Desk|-01.71|+00.00|-00.37"),
        tmp_path / f"alfworld/json_2.1.1/train/{OTHER}/game.tw-pddl": _problem("Drawer|-01.79|+00.25|-01.15"),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    layouts = tmp_path / "alfred/gen/layouts"
    layouts.mkdir(parents=True)
    np.save(layouts / "FloorPlan303-layout.npy", np.array([[0.25, -2.0], [0.5, -2.0]]))
    return [tmp_path / name for name in ("EmbodiedBench", "alfred", "alfworld")]


def test_a_task_can_be_played_from_small_originals(folders, tmp_path, capsys):
    target = tmp_path / "made"
    assert cli.main(["data", "eb_alfred", "--from", *map(str, folders), "--to", str(target)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 floor plans and 1 trials" in said
    assert "33 % pddl, 33 % plan, 33 % inferred" in said
    assert "1 basins have no faucet" in said
    made = read_object(target / "floorplans.json")
    mug, pencil, other = made["trials"][TRIAL]["objects"]
    assert (mug["id"], mug["in"], mug["src"]) == ("Mug|+00.08|+00.73|-02.53", ["Desk|-01.71|+00.00|-00.37"], "pddl")
    assert (pencil["in"], pencil["src"]) == (["Drawer|-01.79|+00.25|-01.15"], "plan")
    assert other["src"] == "inferred"
    assert made["trials"][TRIAL]["agent"] == [1.25, -0.25, 90, 30]
    plan = made["floorplans"]["FloorPlan303"]
    assert [place["group"] for place in plan["receptacles"]] == [0, 0, 1]  # desk and drawer from one point
    lamp = next(entry for entry in plan["fixtures"] if entry["type"] == "DeskLamp")
    assert (lamp["toggleable"], lamp["on"]) == (True, ["Desk|-01.71|+00.00|-00.37"])
    assert [0.25, -2.0] in plan["standing"]
    kinds = made["types"]
    assert kinds["Mug"]["movable_receptacle"]
    assert kinds["Drawer"]["openable"]
    assert kinds["Apple"]["sliceable"]
    (task,) = eb_alfred.load_tasks("base", target)
    env = eb_alfred.Env(task)
    for action in ("find a Mug", "pick up the Mug", "find a Desk", "put down the object in hand"):
        env.step(action)
    assert env.progress == 1  # the mug stands on the desk at the start, too
    annotation = read_object(eb_alfred.annotation_file(target, TRIAL, 1))
    assert [note["task_desc"] for note in annotation["turk_annotations"]["anns"]] == ["", "Desk mug."]
    assert "worker" not in json.dumps(read_object(eb_alfred.annotation_file(target, TRIAL, 0)))


def test_the_metadata_of_ai2thor_brings_fixtures(folders, tmp_path):
    faucet = {"objectId": "Faucet|+01.05|+00.95|+01.20", "objectType": "Faucet", "pickupable": False}
    known = {"objectId": "Desk|-01.71|+00.00|-00.37", "objectType": "Desk", "pickupable": False}
    (tmp_path / "alfred/FloorPlan303.json").write_text(json.dumps({"metadata": {"objects": [faucet, known]}}))
    (tmp_path / "made").mkdir()
    said = " ".join(convert(Originals(folders), tmp_path / "made"))
    assert "no faucet" not in said
    fixtures = read_object(tmp_path / "made/floorplans.json")["floorplans"]["FloorPlan303"]["fixtures"]
    (entry,) = (entry for entry in fixtures if entry["type"] == "Faucet")
    assert (entry["id"], entry["basin"]) == (faucet["objectId"], "Sink|+01.00|+00.80|+01.00|SinkBasin")
    assert entry["loc"] == [0.75, 0.75, 0, 45]  # one stands at the basin


def test_what_is_missing_or_malformed_is_named(folders, tmp_path):
    bench, alfred, alfworld = folders
    (tmp_path / "made").mkdir()
    with pytest.raises(DataNotFoundError, match=r"no splits.json in .*alfred.*: the subsets, in EmbodiedBench's"):
        convert(Originals([alfred, alfworld]), tmp_path / "made")
    with pytest.raises(DataNotFoundError, match=r"no game.tw-pddl of ALFWorld's games"):
        convert(Originals([bench, alfred]), tmp_path / "made")
    with pytest.raises(DataNotFoundError, match=r"no ann_<r>.json or traj_data.json of ALFRED's trials"):
        convert(Originals([bench, alfworld]), tmp_path / "made")
    path = next(bench.rglob("utils.py"))
    path.write_text("alfred_objs = ['Mug']\n")
    with pytest.raises(GameFileError, match=r"utils.py: expected the lists of EmbodiedBench's .*, no alfred_pick_obj"):
        action_names(path)
    assert os.listdir(tmp_path / "made") == []


PLANS = ("303", "11", "416", "4", "207")


def test_of_the_files_at_hand_it_makes_what_is_at_hand(eb_alfred_data, alfworld_data, tmp_path):
    """Receptacles, groups and starts of five floor plans, from ALFWorld's games and the trials; experts win there."""
    theirs = read_object(eb_alfred_data / "floorplans.json")
    bench = tmp_path / "bench"
    (bench / "eb_alfred").mkdir(parents=True)
    lists = "".join(f"{name} = {theirs['action_names'][ours]!r}\n" for ours, name in NAMES.items())
    (bench / "eb_alfred/utils.py").write_text(lists)
    trials = [key for key in theirs["trials"] if key.split("/")[0].rsplit("-", 1)[1] in PLANS]
    splits = {"base": [{"task": key, "repeat_idx": 0, "instruction": "-"} for key in trials]}
    (bench / "eb_alfred/splits.json").write_text(json.dumps(splits))
    for source, name in ((eb_alfred_data / "json_2.1.0", "trials"), (alfworld_data / "train", "games")):
        (tmp_path / name).mkdir()
        for folder in source.iterdir():
            if folder.name.rsplit("-", 1)[1] in PLANS:
                (tmp_path / name / folder.name).symlink_to(folder)
    folders = [bench, *(folder for name in ("trials", "games") for folder in sorted((tmp_path / name).iterdir()))]
    (tmp_path / "made").mkdir()
    convert(Originals(folders), tmp_path / "made")
    mine = read_object(tmp_path / "made/floorplans.json")
    assert list(mine["trials"]) == trials
    for plan, made in mine["floorplans"].items():
        wanted = {place["id"]: place for place in theirs["floorplans"][plan]["receptacles"]}
        assert {place["id"] for place in made["receptacles"]} == wanted.keys()
        for place in made["receptacles"]:
            keys = wanted[place["id"]].keys() - {"group"}
            assert {key: place[key] for key in keys} == {key: wanted[place["id"]][key] for key in keys}
    pairs = [
        (x, y) for key in trials
        for x, y in zip(mine["trials"][key]["objects"], theirs["trials"][key]["objects"], strict=True)
    ]  # fmt: skip
    assert [x["id"] for x, _ in pairs] == [y["id"] for _, y in pairs]
    assert sum(sorted(x["in"]) == sorted(y["in"]) for x, y in pairs) >= 0.99 * len(pairs) > 400
    catalog = eb_alfred.load_catalog(tmp_path / "made")
    for key in trials:
        path = sorted((tmp_path / "made/json_2.1.0" / key / "pp").glob("ann_*.json"))[0]
        env = eb_alfred.Env(
            eb_alfred.Task.from_text(path.read_bytes(), str(path), catalog, key, key, "-"), max_invalid=1
        )
        for action in expert_actions(env.task, json.loads(path.read_bytes())):
            env.step(action)
        assert (key, env.won) == (key, True)
