"""Measure how households in ALFWorld's TRAIN split are furnished, for the game generator to draw from.

Only counts leave the data: how many receptacles of each type a room has, which objects occur in how many copies,
in which types of receptacle they lie, which tasks are asked, and how strongly a scene keeps its things in the same
places. No scene, no object position and no sentence is copied. The valid and test splits are not opened.

    python experiments/package_data/measure_statistics.py --data $ALFWORLD_DATA/json_2.1.1/train
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re

from embodied_mem.atomic_file import write_text
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.worlds.alfworld.statistics import STATISTICS_FILE

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = {0: "kitchen", 2: "living_room", 3: "bedroom", 4: "bathroom"}
"""Scene number // 100 -> kind of room, as the simulator numbers its rooms."""

PROPERTIES = ("pickupable", "isReceptacleObject", "cleanable", "heatable", "coolable", "sliceable", "toggleable")

Counter = collections.Counter


def parse_problem(problem: str) -> dict[str, list[tuple[str, ...]]]:
    """Return the initial facts of a problem, predicate -> list of arguments."""
    facts = collections.defaultdict(list)
    for fact in re.findall(r"\(([^()]+)\)", problem.partition("(:init")[2].partition("(:goal")[0]):
        predicate, *arguments = fact.split()
        facts[predicate].append(tuple(arguments))
    return facts


def type_of(identifier: str) -> str:
    """Return the type in an id: `Sink_bar_..._bar_SinkBasin` -> `SinkBasin`."""
    last = identifier.rsplit("_bar_", 1)[-1]
    return last if last.endswith("Basin") else identifier.split("_bar_", 1)[0]


def histogram(values: list[int]) -> dict[str, int]:
    """Return how often each value occurs, keys as text in rising order."""
    return {str(value): count for value, count in sorted(Counter(values).items())}


def measure_room(games: dict[int, list[tuple[list[str], dict]]]) -> dict:
    """Return the statistics of one kind of room.

    `games` maps a scene to its (folder name parts, facts).
    """
    scenes = [facts[0][1] for facts in games.values()]
    receptacle_types = sorted({type_of(r) for facts in scenes for r, _ in facts["receptacleAtLocation"]})
    counts = [Counter(type_of(r) for r, _ in facts["receptacleAtLocation"]) for facts in scenes]
    locations = [len({place for _, place in facts["receptacleAtLocation"]}) for facts in scenes]
    openable = [Counter(type_of(r) for (r,) in facts["openable"]) for facts in scenes]
    holders, copies, places = (
        collections.defaultdict(set),
        collections.defaultdict(list),
        collections.defaultdict(Counter),
    )
    for scene in games:
        present = [Counter(type_of(o) for o, _ in facts["objectType"]) for _, facts in games[scene]]
        for name in set().union(*present):
            holders[name].add(scene)
            copies[name] += [count[name] for count in present]
        for (_, facts), count in zip(games[scene], present, strict=True):
            inside = {o: type_of(r) for o, r in facts["inReceptacle"]}
            for o, place in inside.items():
                places[type_of(o)][place] += 1
            for name, number in count.items():
                places[name][""] += number
            for o in inside:
                places[type_of(o)][""] -= 1
    objects = {
        name: {
            "scenes": len(holders[name]),
            "copies": histogram(copies[name]),
            "places": {place: count for place, count in sorted(places[name].items()) if count},
        }
        for name in sorted(holders)
    }
    goals = collections.defaultdict(Counter)
    for scene in games:
        for (task_type, object_type, _, target, _), _ in games[scene]:
            goals[task_type][f"{object_type} {target}"] += 1
    return {
        "scenes": len(scenes),
        "receptacles": {name: histogram([count[name] for count in counts]) for name in receptacle_types},
        "openable": {name: sum(o[name] for o in openable) for name in receptacle_types},
        "receptacles_total": {name: sum(c[name] for c in counts) for name in receptacle_types},
        "locations_per_receptacle": round(sum(locations) / sum(sum(count.values()) for count in counts), 3),
        "objects": objects,
        "goals": {task_type: dict(sorted(pairs.items())) for task_type, pairs in sorted(goals.items())},
    }


def measure_habits(scenes: dict[int, list[tuple[list[str], dict]]], min_objects: int = 10) -> dict[str, float]:
    """Return how concentrated an object type's places are within a scene.

    It is averaged over scenes and types. `top1` and `top3` are the shares of the most frequent one and three
    receptacles (single receptacles, not types); only pairs of scene and type with at least `min_objects` placements
    count.
    """
    top1, top3, used = [], [], []
    for games in scenes.values():
        places = collections.defaultdict(Counter)
        for _, facts in games:
            movable = {o for (o,) in facts["pickupable"]}
            for o, r in facts["inReceptacle"]:
                if o in movable:
                    places[type_of(o)][r] += 1
        for counts in places.values():
            total = sum(counts.values())
            if total >= min_objects:
                ranked = [count for _, count in counts.most_common()]
                top1.append(ranked[0] / total)
                top3.append(sum(ranked[:3]) / total)
                used.append(len(ranked))
    mean = {"top1": sum(top1) / len(top1), "top3": sum(top3) / len(top3), "receptacles": sum(used) / len(used)}
    return {name: round(value, 3) for name, value in mean.items()}


def measure(train: pathlib.Path) -> dict:
    """Return all statistics of the train split."""
    scenes = collections.defaultdict(list)
    files = sorted(train.glob("*/*/game.tw-pddl"))
    if not files:
        raise SystemExit(f"no game files under {train}; expected the train split of json_2.1.1")
    contain, having, types = (
        collections.defaultdict(set),
        collections.defaultdict(set),
        {"otype": set(), "rtype": set()},
    )
    for file in files:
        problem = json.loads(file.read_bytes())["pddl_problem"]
        facts = parse_problem(problem)
        parts = file.parts[-3].split("-")
        scenes[int(parts[-1])].append((parts, facts))
        for receptacle_type, object_type in facts["canContain"]:
            contain[receptacle_type.removesuffix("Type")].add(object_type.removesuffix("Type"))
        for name in PROPERTIES:
            having[name].update(type_of(o) for (o,) in facts[name])
        for line in problem.partition("(:init")[0].split("\n"):
            name, _, kind = line.strip().partition("Type - ")
            if kind in types:
                types[kind].add(name)
    rooms = {}
    for number, name in ROOMS.items():
        rooms[name] = measure_room({scene: games for scene, games in scenes.items() if scene // 100 == number})
    return {
        "split": "train",
        "games": len(files),
        "object_types": sorted(types["otype"]),
        "receptacle_types": sorted(types["rtype"]),
        "properties": {name: sorted(having[name]) for name in PROPERTIES},
        "can_contain": {name: sorted(names) for name, names in sorted(contain.items())},
        "habits": measure_habits(scenes),
        "rooms": rooms,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of the train split")
    parser.add_argument(
        "--out", type=output_file, default=ROOT / "runs" / STATISTICS_FILE.name,
        help="default: in runs/; the generator reads embodied_mem/worlds/alfworld/statistics.json",
    )  # fmt: skip
    arguments = parser.parse_args()
    statistics = measure(arguments.data)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(arguments.out, json.dumps(statistics, separators=(",", ":")) + "\n")
    print(f"{statistics['games']} games -> {arguments.out} ({arguments.out.stat().st_size / 1000:.0f} kB)")
    print(json.dumps({"games": statistics["games"], "habits": statistics["habits"]}))


if __name__ == "__main__":
    run(main)
