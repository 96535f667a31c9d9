"""One floor plan put together from the planning problems that ALFWorld's games publish for ALFRED's trials.

plan = FloorPlan(problems, experts, objects_of_ai2thor, types)
entry = plan.file(layout)                                        # of `floorplans.json`
trial = trial_entry(annotation, problem, plan, Neighbours(problems))
"""

from __future__ import annotations

import collections
import decimal
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Facts = Mapping[str, Sequence[tuple[str, ...]]]
"""{predicate: [arguments]} of a planning problem's start."""

BASINS = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin", "Faucet": "SinkBasin"}
"""Fixture -> the type of the basin that it gets, the nearest one."""

_NUM_NEIGHBOURS = 9
_HEIGHT_WEIGHT = 2.0
_SAME_PLACE_M = 0.5
_OTHER_TYPE_M = 0.1
"""Distance added to a neighbour of another type."""


def type_of(thing: str) -> str:
    """Return the type in an id.

    It is that of the last part where this is a basin or a slice, else of the first.
    """
    parts = thing.split("|")
    return parts[-1].rpartition("_")[0] or parts[-1] if len(parts) > 4 else parts[0]


def _position(thing: str) -> list[float]:
    return [float(part) for part in thing.split("|")[1:4]]


def _id(kind: str, position: Sequence[float]) -> str:
    """Compose ALFRED's id of an object, type and position.

    The engine rounds seven digits of the position half away from zero.
    """

    def written(x: float) -> str:
        rounded = abs(decimal.Decimal(f"{x:.7g}")).quantize(decimal.Decimal("0.01"), decimal.ROUND_HALF_UP)
        sign = "-" if x < 0 and rounded else "" if x < 0 else "+"
        return f"{sign}{rounded:05.2f}"

    return "|".join([kind, *map(written, position)])


class FloorPlan:
    """Receptacles and fixtures of one floor plan, put together from all its problems."""

    def __init__(
        self,
        problems: Mapping[str, Facts],
        experts: Iterable[Mapping[str, Any]],
        metadata: Sequence[Mapping[str, Any]],
        types: Mapping[str, Mapping[str, bool]],
    ):
        poses: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self._starts: set[tuple[float, float]] = set()
        self._opened: set[str] = set()
        self._on: dict[str, set[str]] = collections.defaultdict(set)
        receptacles: set[str] = set()
        fixtures: set[str] = set()
        for facts in problems.values():
            receptacles.update(thing for thing, _ in facts.get("receptacleType", ()))
            held = {thing for (thing,) in facts.get("pickupable", ())}
            fixtures.update(thing for thing, _ in facts.get("objectType", ()) if "|" in thing and thing not in held)
            self._opened.update(thing for (thing,) in facts.get("openable", ()))
            for thing, pose in (*facts.get("receptacleAtLocation", ()), *facts.get("objectAtLocation", ())):
                poses[thing][pose] += 1
            for _, pose in facts.get("atLocation", ()):
                self._starts.add((_pose(pose)[0], _pose(pose)[1]))
        for facts in problems.values():
            for thing, holder in facts.get("inReceptacle", ()):
                if thing in fixtures:
                    self._on[thing].add(holder)
        for expert in experts:
            for step in expert["plan"]["low_actions"]:
                thing = str(step.get("api_action", {}).get("objectId", ""))
                fixtures.update([thing] if type_of(thing) == "Faucet" else [])
            start = expert["scene"]["init_action"]
            self._starts.add((float(start["x"]), float(start["z"])))
        for entry in metadata:
            thing = str(entry["objectId"])
            if (
                not entry.get("pickupable")
                and type_of(thing) in types
                and not any(thing in known for known in (receptacles, fixtures))
            ):
                fixtures.add(thing)
        fixtures -= receptacles
        self.receptacles, self.positions = sorted(receptacles), {t: _position(t) for t in receptacles | fixtures}
        basins = {kind: [t for t in self.receptacles if type_of(t) == kind] for kind in set(BASINS.values())}
        taps = [thing for thing in fixtures if type_of(thing) == "Faucet"]
        dry = [
            basin
            for basin in basins["SinkBasin"]
            if not any(self._nearest(tap, basins["SinkBasin"]) == basin for tap in taps)
        ]
        self.num_assumed = len(dry)
        for basin in dry:
            thing = _id("Faucet", _position(basin))
            fixtures.add(thing)
            self.positions[thing] = _position(basin)
        self.fixtures = sorted(fixtures)
        self._poses = {thing: _pose(counts.most_common(1)[0][0]) for thing, counts in poses.items()}
        self._basins = {
            thing: self._nearest(thing, basins[BASINS[type_of(thing)]])
            for thing in self.fixtures
            if type_of(thing) in BASINS and basins[BASINS[type_of(thing)]]
        }
        for thing, basin in self._basins.items():
            if basin in self._poses:  # one stands at the basin to reach what belongs to it
                self._poses.setdefault(thing, self._poses[basin])
        self._types = types

    def _nearest(self, thing: str, others: Sequence[str]) -> str:
        return min(others, key=lambda other: (math.dist(self.positions[thing], self.positions[other]), other))

    def file(self, layout: Sequence[Sequence[float]] | None) -> dict[str, Any]:
        """Return the entry of `floorplans.json`."""
        groups: dict[tuple[float, ...], int] = {}

        def place(thing: str) -> dict[str, Any]:
            entry: dict[str, Any] = {"id": thing, "type": type_of(thing), "pos": self.positions[thing]}
            pose = self._poses.get(thing)
            if pose is not None:
                entry |= {"loc": list(pose), "group": groups.setdefault(pose[:3], len(groups))}
            return entry | {"toggleable": self._types[type_of(thing)]["toggleable"]}

        receptacles = []
        for thing in self.receptacles:
            opens = self._types[type_of(thing)]["openable"]
            receptacles.append(place(thing) | {"openable": opens})
            if opens:
                receptacles[-1]["planner_openable"] = thing in self._opened
        fixtures = []
        for thing in self.fixtures:
            fixtures.append(place(thing))
            if thing in self._basins:
                fixtures[-1]["basin"] = self._basins[thing]
            on = sorted(self._on[thing] & set(self.receptacles)) if thing in self._on else []
            if on and self._types[type_of(thing)]["toggleable"]:
                fixtures[-1]["on"] = on
        points = {(pose[0], pose[1]) for pose in self._poses.values()} | self._starts
        points |= {(float(x), float(z)) for x, z in layout or ()}
        return {"receptacles": receptacles, "fixtures": fixtures, "standing": [list(point) for point in sorted(points)]}

    def near(self, position: Sequence[float]) -> str:
        """Return the receptacle nearest to a point."""
        return min(self.receptacles, key=lambda other: (math.dist(position, self.positions[other]), other))


def _pose(location: str) -> tuple[float, float, int, int]:
    """Parse a planner's location into (x, z, rotation, horizon).

    The location has quarter metres, quarter turns, degrees.
    """
    _, x, z, turn, horizon = location.split("|")
    return int(x) / 4, int(z) / 4, int(turn) * 90, int(horizon)


class Neighbours:
    """Known objects of a floor plan: which receptacles an object at a place starts in is voted by the nearest nine."""

    def __init__(self, problems: Mapping[str, Facts]):
        known: list[tuple[str, tuple[str, ...]]] = []
        for facts in problems.values():
            holders: dict[str, list[str]] = collections.defaultdict(list)
            for thing, holder in facts.get("inReceptacle", ()):
                holders[thing].append(holder)
            known += [(thing, tuple(sorted(holders.get(thing, ())))) for (thing,) in facts.get("pickupable", ())]
        self.positions = np.asarray([_position(thing) for thing, _ in known])
        self.types = np.asarray([type_of(thing) for thing, _ in known])
        self.holders = [holders for _, holders in known]

    def vote(self, kind: str, position: Sequence[float]) -> tuple[str, ...]:
        """Return the receptacles, by the nearest objects; the nearer count more."""
        offsets = (self.positions - np.asarray(position)) * (1.0, _HEIGHT_WEIGHT, 1.0)
        distances = np.sqrt((offsets**2).sum(axis=1)) + _OTHER_TYPE_M * (self.types != kind)
        votes: collections.Counter[tuple[str, ...]] = collections.Counter()
        for i in np.argsort(distances, kind="stable")[:_NUM_NEIGHBOURS].tolist():
            votes[self.holders[i]] += 1.0 / (0.02 + float(distances[i]))  # type: ignore[assignment]
        return max(votes, key=lambda holders: (votes[holders], holders)) if votes else ()


def trial_entry(
    annotation: Mapping[str, Any], facts: Facts | None, plan: FloorPlan, neighbours: Neighbours
) -> dict[str, Any]:
    """Return the entry of a trial.

    It says where the agent and each object of `object_poses` start.
    """
    scene = annotation["scene"]
    start = scene["init_action"]
    published: dict[str, list[str]] = {}
    inside: dict[str, str] = {}
    if facts is not None:
        published = {thing: [] for (thing,) in facts.get("pickupable", ())}
        for thing, holder in facts.get("inReceptacle", ()):
            published.setdefault(thing, []).append(holder)
        inside = dict(facts.get("inReceptacleObject", ()))  # type: ignore[arg-type]
    objects: list[dict[str, Any]] = []
    for pose in scene["object_poses"]:
        kind = str(pose["objectName"]).rpartition("_")[0]
        position = [float(pose["position"][axis]) for axis in "xyz"]
        objects.append({"id": _id(kind, position), "type": kind, "pos": [round(x, 3) for x in position]})
    taken = _taken_from(annotation["plan"]["high_pddl"], plan, objects)
    for entry in objects:
        holder, is_movable = taken.get(entry["id"], ("", False))
        if entry["id"] in published and (published[entry["id"]] or not holder or is_movable):
            entry |= {"in": sorted(published[entry["id"]]), "src": "pddl"}
            if entry["id"] in inside:
                entry["in_object"] = inside[entry["id"]]
        elif holder and is_movable:
            entry |= {"in": [], "in_object": holder, "src": "plan"}
        elif holder:
            entry |= {"in": [holder], "src": "plan"}
        else:
            entry |= {"in": list(neighbours.vote(entry["type"], entry["pos"])), "src": "inferred"}
        if not entry["in"]:
            entry["near"] = plan.near(entry["pos"])
    here = {entry["id"] for entry in objects}
    for entry in objects:
        if entry.get("in_object") not in here:
            entry.pop("in_object", None)
    agent = [float(start["x"]), float(start["z"]), int(start["rotation"]), int(start["horizon"])]
    return {"floor_plan": scene["floor_plan"], "agent": agent, "objects": objects}


def _taken_from(
    steps: Sequence[Mapping[str, Any]], plan: FloorPlan, objects: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[str, bool]]:
    """Map each object to the receptacle of the expert's first pick-up.

    With it stands whether that receptacle is movable.
    """
    fixed = [(thing, plan.positions[thing]) for thing in plan.receptacles]
    movable = [(str(entry["id"]), entry["pos"]) for entry in objects]
    moved: set[str] = set()
    taken: dict[str, tuple[str, bool]] = {}
    for step in steps:
        action = step.get("planner_action", {})
        thing, place = str(action.get("objectId", "")), action.get("coordinateReceptacleObjectId")
        if action.get("action") != "PickupObject" or not place or thing in moved:
            continue
        moved.add(thing)
        kind, (x, _, z, _, y, _) = place  # quarter metres
        at = (x / 4, y / 4, z / 4)
        for things in (fixed, movable):
            same = [(math.dist(position, at), other) for other, position in things if type_of(other) == kind]
            if same and min(same)[0] < _SAME_PLACE_M:
                taken[thing] = min(same)[1], things is movable
                break
    return taken
