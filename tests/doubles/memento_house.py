"""A two-room house with four pieces of furniture and an episode in it, for tests that need no data."""

from __future__ import annotations

import copy
import json
import pathlib

SCENES = {
    "small": {
        "scene_id": "small",
        "rooms": [
            {"name": "kitchen_1", "type": "kitchen", "floor_points": [[0.0, 0.0, 0.0]]},
            {"name": "bedroom_1", "type": "bedroom", "floor_points": [[10.0, 0.0, 0.0]]},
            {"name": "porch_1", "type": "porch", "floor_points": [[20.0, 0.0, 0.0]]},
            {"name": "unknown_room", "type": "unknown", "floor_points": []},
        ],
        "floors": [
            {"name": "floor_kitchen_1", "room": "kitchen_1"},
            {"name": "floor_bedroom_1", "room": "bedroom_1"},
            {"name": "floor_porch_1", "room": "porch_1"},
        ],
        "furniture": [
            {
                "name": name,
                "type": name.rpartition("_")[0],
                "sim_handle": f"{name}_handle",
                "room": room,
                "translation": position,
                "is_articulated": "within" in relations,
                "components": components,
                "states": {},
                "receptacles": [
                    {"name": f"rec_{name}_{relation}", "relation": relation, "sim_handle": f"{name}_handle|{relation}"}
                    for relation in relations
                ],
            }
            for name, room, position, relations, components in (
                ("table_4", "kitchen_1", [3.0, 0.5, 4.0], ["on"], []),
                ("cabinet_5", "kitchen_1", [0.0, 0.5, 5.0], ["within"], ["faucet"]),
                ("bed_6", "bedroom_1", [12.0, 0.5, 0.0], ["on"], []),
                ("chest_of_drawers_7", "bedroom_1", [12.0, 0.5, 8.0], ["on", "within"], []),
            )
        ],
    }
}
CAPTIONS = {
    "Cup": {"category": "cup", "caption": "A red cup."},
    "Book": {"category": "book", "caption": None},
    "Vase": {"category": "vase", "caption": "A vase."},
}


def _next_to(a: str, b: str) -> dict:
    args = {"entity_handles_a": [a], "entity_handles_b": [b], "number": 1, "is_same_b": False, "l2_threshold": 1.0}
    return {"function_name": "is_next_to", "args": args}


def on_top(handle: str, *pieces: str) -> dict:
    args = {
        "object_handles": [handle],
        "receptacle_handles": [f"{piece}_handle" for piece in pieces],
        "number": 1,
        "is_same_receptacle": False,
    }
    return {"function_name": "is_on_top", "args": args}


EPISODE = {
    "episode_id": "1",
    "scene_id": "small",
    "instruction": "Put the cup and the book on the bed, next to each other.",
    "rigid_objs": [
        [name, [[1, 0, 0, x], [0, 1, 0, 0.5], [0, 0, 1, z], [0, 0, 0, 1]]]
        for name, x, z in (("Cup", 3.0, 4.2), ("Book", 3.1, 4.0), ("Vase", 12.0, 8.0))
    ],
    "name_to_receptacle": {
        "Cup_:0000": "table_4_handle|on",
        "Book_:0000": "table_4_handle|on",
        "Vase_:0000": "chest_of_drawers_7_handle|within",
    },
    "evaluation_propositions": [
        on_top("Cup_:0000", "bed_6"),
        on_top("Book_:0000", "bed_6"),
        _next_to("Cup_:0000", "Book_:0000"),
    ],
    "evaluation_proposition_dependencies": [
        {"proposition_indices": [2], "depends_on": [0, 1], "relation_type": "while_satisfied", "dependency_mode": "any"}
    ],
    "evaluation_constraints": [
        {"type": "TemporalConstraint", "args": {"dag_edges": [], "n_propositions": 3}},
        {"type": "TerminalSatisfactionConstraint", "args": {"proposition_indices": [0, 1, 2], "n_propositions": None}},
    ],
}


def episode(**changes) -> dict:
    return {**copy.deepcopy(EPISODE), **changes}


def write_data(folder: pathlib.Path, *episodes: dict) -> pathlib.Path:
    """Write a data folder in the official layout and return it."""
    (folder / "episodes").mkdir(parents=True, exist_ok=True)
    (folder / "scenes.json").write_text(json.dumps(SCENES))
    (folder / "captions.json").write_text(json.dumps(CAPTIONS))
    file = folder / "episodes" / "memory_acquisition_stage.json"
    file.write_text(json.dumps({"config": None, "episodes": list(episodes) or [EPISODE]}))
    return folder


_CATEGORIES = (
    "cup", "book", "vase", "lamp", "plate", "clock", "bowl", "candle",
    "jug", "hat", "pen", "shoe", "laptop", "basket", "kettle", "tray",
)  # fmt: skip


def write_household(folder: pathlib.Path) -> pathlib.Path:
    """Write the house with captions of sixteen categories, four objects each, for generated episodes."""
    write_data(folder)
    colours = ("red", "blue", "green", "grey")
    captions = {
        f"{category.capitalize()}{i}": {"category": category, "caption": f"A {colour} {category} with a mark."}
        for category in _CATEGORIES
        for i, colour in enumerate(colours)
    }
    (folder / "captions.json").write_text(json.dumps(captions))
    return folder
