"""A small home for tests of EB-Habitat: episodes in the converted form, and the official pickle made from them."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np

from embodied_mem.worlds.eb_habitat.data import Scenes, read_tasks

TABLE = "receptacle_aabb_Tbl1_Top1_frl_apartment_table_01"
SOFA = "receptacle_aabb_Sofa_frl_apartment_sofa"
SINK = "receptacle_aabb_sink_kitchen_counter"
FRIDGE = "receptacle_aabb_middle_topfrl_apartment_refrigerator"
LEFT_DRAWER = "receptacle_aabb_drawer_left_top_frl_apartment_kitchen_counter"
PARTS = ("fridge_push_point", "cab_push_point_7", "cab_push_point_6", "cab_push_point_5", "cab_push_point_4")
PLACES = {TABLE: (0.0, 0.0), SOFA: (0.0, 6.0), SINK: (5.0, 3.0)}


def placed(variable: str, receptacle: str) -> dict[str, Any]:
    return {"pred": "on_top", "args": [variable, receptacle]}


def quantified(quantifier: str, categories: dict[str, str], *args: dict[str, Any], op: str = "AND") -> dict[str, Any]:
    names = [{"name": name, "category": category} for name, category in categories.items()]
    return {"op": op, "quantifier": quantifier, "vars": names, "args": list(args)}


EMPTY_HAND = {"pred": "not_holding", "args": []}
CUP_TO_SOFA = quantified("EXISTS", {"X": "cup"}, placed("X", SOFA), EMPTY_HAND)


def episode(
    goal: dict[str, Any] = CUP_TO_SOFA, objects: dict[str, str] | None = None, **changes: Any
) -> dict[str, Any]:
    """Return one episode; objects are {handle: receptacle}, the word before the first "_" is the category."""
    objects = objects or {"apple_0": SINK, "cup_0": TABLE, "cup_1": SINK}
    entries = []
    for i, (handle, receptacle) in enumerate(sorted(objects.items())):
        x, z = PLACES[receptacle]
        entry = {"handle": handle, "category": handle.split("_")[0], "receptacle": receptacle}
        entries.append(entry | {"pos": [x + 0.01 * i, 0.8, z]})
    subgoals = [[["robot_at", TABLE]], [["holding", entries[0]["handle"]]]]
    return {
        "id": "home/000",
        "scene": "flat",
        "instruction": "Move a cup to the sofa.",
        "initial_articulated": dict.fromkeys(PARTS, "closed"),
        "goal": goal,
        "subgoals_symbolic": subgoals,
        "objects": entries,
    } | changes


def source_goal(goal: dict[str, Any]) -> dict[str, Any] | str:
    """Return a goal as the official files write it."""
    if "pred" in goal:
        return f"{goal['pred']}({', '.join(goal['args'])})"
    inputs = [{"name": var["name"], "expr_type": var["category"]} for var in goal.get("vars", ())]
    parts = [source_goal(part) for part in goal["args"]]
    return {"expr_type": goal["op"], "quantifier": goal.get("quantifier"), "inputs": inputs, "sub_exprs": parts}


def official_pickle(episodes: list[dict[str, Any]], assets: dict[str, str], protocol: int = 4) -> bytes:
    """Return what the original's dataset class would write of converted episodes with original subgoals."""
    numbers: dict[str, int] = {}
    transforms, entries = [], []

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    for source in episodes:
        rigid, receptacles = [], []
        for entry in source["objects"]:
            transform = np.eye(4)
            transform[:3, 3] = entry["pos"]
            asset = entry["handle"].rpartition("_:")[0]
            assert asset in assets
            rigid.append([number(f"{asset}.object_config.json"), len(transforms)])
            transforms.append(transform)
            receptacles.append([number(entry["handle"]), number(entry["receptacle"])])
        markers = [
            [number(part), number("fridge"), np.array([0.1, -0.62, 0.2]), number("link"), number("object")]
            for part in source["initial_articulated"]
        ]
        entries.append(
            {
                "episode_id": source["source_episode_id"],
                "scene_id": source["scene_id"],
                "instruction": source["instruction"],
                "rigid_objs": np.array(rigid),
                "name_to_receptacle": np.array(receptacles),
                "ao_states": {number("fridge_:0000"): {2: 0.0}},
                "markers": markers,
                "start_preds": source["start_preds"],
                "goal_preds": source_goal(source["goal"]),
                "subgoals": source["subgoals"],
            }
        )
    names = {v: k for k, v in numbers.items()}
    content = {"all_transforms": np.array(transforms), "idx_to_name": names, "all_eps": entries}
    return pickle.dumps(content, protocol)


def homes() -> list[Any]:
    """Two apartments; the cups lie where nobody would look first, and not in the same place."""
    found = [
        episode(objects={"apple_0": SOFA, "cup_0": place}, id=f"home/{i}") for i, place in enumerate((SINK, TABLE))
    ]
    return list(read_tasks(json.dumps({"episodes": found}).encode(), "home.json", Scenes()))
