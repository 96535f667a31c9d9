"""A kitchen of our own in EB-ALFRED's file formats, so that rules can be tested without the data."""

from __future__ import annotations

import copy
import json

from embodied_mem.worlds.eb_alfred.env import Catalog, Env, Task

TRIAL = "pick_and_place_simple-Apple-None-GarbageCan-1/trial_1"
_FLAGS = ("pickupable", "receptacle", "movable_receptacle", "openable", "toggleable", "sliceable")
_TYPES = {
    "Apple": "pickupable sliceable",
    "AppleSliced": "pickupable",
    "ButterKnife": "pickupable",
    "Cabinet": "receptacle openable",
    "CellPhone": "pickupable",
    "CounterTop": "receptacle",
    "DeskLamp": "toggleable",
    "Faucet": "toggleable",
    "Fridge": "receptacle openable",
    "GarbageCan": "receptacle",
    "Microwave": "receptacle openable toggleable",
    "Mug": "pickupable receptacle movable_receptacle",
    "Plate": "pickupable receptacle movable_receptacle",
    "Sink": "",
    "SinkBasin": "receptacle",
    "Spoon": "pickupable",
    "ToiletPaper": "pickupable",
    "ToiletPaperHanger": "receptacle",
}
_PLACES = [  # type, x, z, group
    ("Cabinet", 0.0, 2.0, 0),
    ("Cabinet", 1.0, 2.0, 1),
    ("CounterTop", 2.0, 2.0, 2),
    ("Fridge", 4.0, 2.0, 3),
    ("GarbageCan", 6.0, 2.0, 4),
    ("Microwave", 8.0, 2.0, 5),
    ("SinkBasin", 10.0, 2.0, 6),
    ("ToiletPaperHanger", 12.0, 2.0, 7),
]
_OBJECTS = [  # type, x, holder (index of a place) or None
    ("Apple", 2.1, 2),
    ("Apple", 4.1, 3),
    ("CellPhone", 2.2, 2),
    ("ButterKnife", 2.3, 2),
    ("Mug", 2.4, 2),
    ("Plate", 0.0, 0),
    ("Spoon", 6.5, None),
    ("ToiletPaper", 2.5, 2),
]


def _id(kind: str, x: float, z: float = 2.0, end: str = "") -> str:
    return f"{kind}|+{x:05.2f}|+01.00|+{z:05.2f}{end}"


def place_id(index: int) -> str:
    """Return the id of one place."""
    kind, x, z, _ = _PLACES[index]
    return _id("Sink", x, z, "|SinkBasin") if kind == "SinkBasin" else _id(kind, x, z)


def catalog_json() -> dict:
    """Return the content of a floorplans.json with the kitchen and its one trial."""
    types = {name: {flag: flag in flags.split() for flag in _FLAGS} for name, flags in _TYPES.items()}
    receptacles = [
        {
            "id": place_id(i),
            "type": kind,
            "pos": [x, 1.0, z],
            "openable": "openable" in _TYPES[kind],
            "toggleable": "toggleable" in _TYPES[kind],
            "group": group,
        }
        for i, (kind, x, z, group) in enumerate(_PLACES)
    ]
    fixtures = [
        {"id": _id("Sink", 10.0), "type": "Sink", "pos": [10, 1, 2], "toggleable": False, "group": 6},
        {"id": _id("Faucet", 10.0, 2.2), "type": "Faucet", "pos": [10, 1, 2.2], "toggleable": True},
        {"id": _id("DeskLamp", 2.0, 2.1), "type": "DeskLamp", "pos": [2, 1, 2.1], "toggleable": True},
    ]
    for fixture in fixtures[:2]:
        fixture["basin"] = place_id(6)
    fixtures[2]["on"] = [place_id(2)]
    objects = []
    for kind, x, holder in _OBJECTS:
        entry = {"id": _id(kind, x), "type": kind, "pos": [x, 1, 2], "in": [], "src": "plan"}
        if holder is None:
            entry["near"] = place_id(4)
        else:
            entry["in"] = [place_id(holder)]
        objects.append(entry)
    names = {
        "find": [name for name in _TYPES if name not in ("AppleSliced", "SinkBasin")],
        "pick_up": ["Apple", "ButterKnife", "CellPhone", "Mug", "Plate", "Spoon", "ToiletPaper"],
        "open_close": ["Fridge", "Microwave", "Cabinet"],
        "turn_on_off": ["Microwave", "DeskLamp", "Faucet"],
        "slice": ["Apple"],
    }
    standing = [[float(x), 1.0] for x in range(13)]
    return {
        "types": types,
        "can_contain": {},
        "action_names": names,
        "floorplans": {"FloorPlan1": {"receptacles": receptacles, "fixtures": fixtures, "standing": standing}},
        "trials": {TRIAL: {"floor_plan": "FloorPlan1", "agent": [12, 1, 180, 30], "objects": objects}},
    }


def annotation_json(task_type: str = "pick_and_place_simple", **goal) -> dict:
    """Return the content of an annotation file of the trial."""
    targets = {"object_target": "Apple", "parent_target": "GarbageCan", "mrecep_target": "", "toggle_target": ""}
    poses = [
        {"objectName": f"{kind}_{i:08x}", "position": {}, "rotation": {}} for i, (kind, _, _) in enumerate(_OBJECTS)
    ]
    return {
        "task_type": task_type,
        "repeat_idx": 0,
        "pddl_params": targets | {"object_sliced": False} | goal,
        "scene": {
            "object_poses": poses,
            "object_toggles": [{"objectType": "DeskLamp", "isOn": False}],
            "dirty_and_empty": False,
            "init_action": {"x": 12.0, "y": 0.9, "z": 1.0, "rotation": 180, "horizon": 30},
        },
        "turk_annotations": {"anns": [{"task_desc": "Throw an apple away.", "high_descs": []}]},
    }


def make_task(task_type: str = "pick_and_place_simple", change=None, **goal) -> Task:
    """Return a task of the kitchen; `change(catalog, annotation)` alters the files first."""
    files = copy.deepcopy(catalog_json()), annotation_json(task_type, **goal)
    if change:
        change(*files)
    catalog = Catalog.from_text(json.dumps(files[0]).encode(), "floorplans.json")
    return Task.from_text(json.dumps(files[1]).encode(), "ann_0.json", catalog, TRIAL, "kitchen")


def told(text: str, task_type: str, **goal):
    """Return a task of the kitchen with this instruction."""

    def change(catalog, annotation):
        annotation["turk_annotations"]["anns"][0]["task_desc"] = text

    return make_task(task_type, change, **goal)


TASKS = {
    "place": ("Throw a phone away.", "pick_and_place_simple", {"object_target": "CellPhone"}),
    "hidden": ("Put a plate in the trash.", "pick_and_place_simple", {"object_target": "Plate"}),
    "two": ("Put two apples in the trash.", "pick_two_obj_and_place", {}),
    "light": ("Look at the phone by the lamp.", "look_at_obj_in_light", {"object_target": "CellPhone"}),
    "clean": ("Put a clean apple in the trash.", "pick_clean_then_place_in_recep", {}),
    "heat": ("Put a hot apple in the trash.", "pick_heat_then_place_in_recep", {}),
    "cool": ("Put a cold slice of apple in the trash.", "pick_cool_then_place_in_recep", {"object_sliced": True}),
    "carrier": ("Put a mug with a spoon in it in the fridge.", "pick_and_place_with_movable_recep", {}),
}


def kitchen_task(name: str):
    """Return one of `TASKS`."""
    text, kind, goal = TASKS[name]
    goal = dict(goal)
    if name == "light":
        goal |= {"parent_target": "", "toggle_target": "DeskLamp"}
    if name == "carrier":
        goal |= {"object_target": "Spoon", "mrecep_target": "Mug", "parent_target": "Fridge"}
    return told(text, kind, **goal)


def play(task: Task, *actions: str, **options) -> Env:
    """Return the env after valid actions; the last one may be invalid."""
    env = Env(task, **options)
    for action in actions:
        assert env.action_valid, f"before {action!r}: {env.feedback}"
        env.step(action)
    return env
