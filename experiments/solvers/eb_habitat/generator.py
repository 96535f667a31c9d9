"""More tasks for EB-Habitat's training side: other errands in the layouts of its training episodes.

    records = training_records()
    tasks = generate(records, per_layout=8)          # the episodes themselves and 8 more in the layout of each

The episodes are few (89) and ask for two things at the most, while the goals that EB-Habitat's documentation lists have
up to three and all of a kind. What is made here takes things and where they lie from a training episode, draws kinds,
places and wording by a seed, and asks for what cannot hold at the start. Nothing is taken from an evaluation subset.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem.worlds.eb_habitat.data import load_records
from embodied_mem.worlds.eb_habitat.engine import Scenes, Task, read_tasks

PER_LAYOUT = 8
_FORMS = ("one", "one from", "two", "two together", "three", "all")
"""Forms of a wish; the tasks of a layout take them in turn."""
_NUMBER = {"one": 1, "one from": 1, "two": 2, "two together": 2, "three": 3}
_OPEN = {
    "receptacle_aabb_Tbl1_Top1_frl_apartment_table_01": "black table",
    "receptacle_aabb_Tbl2_Top1_frl_apartment_table_02": "brown table",
    "receptacle_aabb_TvStnd1_Top1_frl_apartment_tvstand": "TV stand",
    "receptacle_aabb_sink_kitchen_counter": "sink",
    "receptacle_aabb_counter_right_kitchen_counter": "right counter",
    "receptacle_aabb_counter_left_kitchen_counter": "left counter",
    "receptacle_aabb_Sofa_frl_apartment_sofa": "sofa",
}
_OTHERS = {
    "receptacle_aabb_Chr1_Top1_frl_apartment_chair_01": "chair",
    "receptacle_aabb_middle_topfrl_apartment_refrigerator": "fridge",
    "receptacle_aabb_drawer_left_top_frl_apartment_kitchen_counter": "left drawer",
    "receptacle_aabb_drawer_right_top_frl_apartment_kitchen_counter": "right drawer",
}
_NAMES = _OPEN | _OTHERS
_OTHER = 0.15
"""Share of targets that are the chair or behind a door."""


def training_records() -> list[dict[str, Any]]:
    """Return unsolved training episodes outside all evaluation subsets.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    records = load_records("train_validation")
    return [r for r in records if not r.get("same_layout_as") and not r.get("start_satisfies_goal")]


def generate(records: Sequence[dict[str, Any]], per_layout: int, seed: int = 0) -> list[Task]:
    """Return `records`' tasks, each with `per_layout` more, named `<id>+1` onwards."""
    episodes = episodes_of(records, per_layout, seed)
    return list(read_tasks(json.dumps({"episodes": episodes}).encode(), "eb_habitat_generator", Scenes()))


def episodes_of(records: Sequence[dict[str, Any]], per_layout: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return the episodes behind `generate`, in the converted form."""
    episodes = []
    for record in records:
        random = np.random.default_rng((seed, zlib.crc32(record["id"].encode())))
        episodes.append(record)
        episodes += [_episode(record, number, random) for number in range(1, per_layout + 1)]
    return episodes


@dataclasses.dataclass(frozen=True)
class _Move:
    """A kind of thing, the id of one such thing, where it lies and where it goes."""

    kind: str
    handle: str
    source: str
    target: str


def _episode(record: dict[str, Any], number: int, random: np.random.Generator) -> dict[str, Any]:
    form = _FORMS[(number - 1 + zlib.crc32(record["id"].encode())) % len(_FORMS)]
    counts = Counter(thing["category"] for thing in record["objects"])
    several = sorted(kind for kind, count in counts.items() if count > 1)
    if form == "all" and not several:
        form = "one"
    moves = _moves(record, form, several, sorted(kind for kind, count in counts.items() if count == 1), random)
    subgoals: list[list[list[str]]] = []
    placed: list[list[str]] = []
    for move in moves:
        subgoals.append([*placed, ["holding", move.handle]])
        placed.append(["on_top", move.handle, move.target])
        subgoals.append(list(placed))
    return {key: copy.deepcopy(record[key]) for key in ("scene", "objects")} | {
        "id": f"{record['id']}+{number}",
        "instruction": f"Move {', then '.join(_asked(move, form) for move in moves)}.",
        "initial_articulated": dict.fromkeys(record["initial_articulated"], "closed"),
        "goal": _goal(moves, form),
        "subgoals_symbolic": subgoals,
    }


def _moves(
    record: dict[str, Any], form: str, several: list[str], single: list[str], random: np.random.Generator
) -> list[_Move]:
    """Draw what to move: single things, or all of a kind."""
    if form == "all":
        kinds = [several[int(random.integers(len(several)))]]
    else:
        kinds = [single[i] for i in random.choice(len(single), _NUMBER[form], replace=False)]
    things = {thing["category"]: thing for thing in record["objects"]}
    taken = {things[kind]["receptacle"] for kind in kinds} if form != "all" else set()
    targets = [_target(random, taken) for _ in kinds]
    if form == "two together":
        targets[1] = targets[0]
    return [_Move(k, things[k]["handle"], things[k]["receptacle"], place) for k, place in zip(kinds, targets)]


def _asked(move: _Move, form: str) -> str:
    source = f" from the {_NAMES[move.source]}" if form == "one from" else ""
    return f"{'every' if form == 'all' else 'the'} {move.kind}{source} to the {_NAMES[move.target]}"


def _goal(moves: Sequence[_Move], form: str) -> dict[str, Any]:
    empty_hand = [] if form == "all" else [{"pred": "not_holding", "args": []}]
    return {
        "op": "AND",
        "quantifier": "FORALL" if form == "all" else "EXISTS",
        "vars": [{"name": name, "category": move.kind} for name, move in zip("XYZ", moves)],
        "args": [{"pred": "on_top", "args": [name, m.target]} for name, m in zip("XYZ", moves)] + empty_hand,
    }


def _target(random: np.random.Generator, taken: set[str]) -> str:
    """Draw a place without any wanted thing, mostly an open one."""
    places = [place for place in (_OTHERS if random.random() < _OTHER else _OPEN) if place not in taken]
    return places[int(random.integers(len(places)))]
