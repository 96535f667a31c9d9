"""Tasks whose places are described by other places, in words of somebody who never saw what reads them.

    lines = wordings()                 # ("Put the {thing} on the {a} left of the {b}.", meaning) and 119 more
    tasks = drawn(lines, per_line=3, seed=0)

What is described is found here by geometry that shares nothing with the world's own: from the boxes in `scenes.json`,
in the frame of who stands in front of a place. Only clear cases are drawn: one place fits, the others do not by far.
Of each scene one layout of objects is used; no instruction of the benchmark is read.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embodied_mem.envs.data_files import read_object
from embodied_mem.worlds.eb_habitat.data import find_episodes, load_records, load_scenes
from embodied_mem.worlds.eb_habitat.engine import Task, read_tasks

_PLACES = {
    "black table": "receptacle_aabb_Tbl1_Top1_frl_apartment_table_01",
    "brown table": "receptacle_aabb_Tbl2_Top1_frl_apartment_table_02",
    "TV stand": "receptacle_aabb_TvStnd1_Top1_frl_apartment_tvstand",
    "sink": "receptacle_aabb_sink_kitchen_counter",
    "right counter": "receptacle_aabb_counter_right_kitchen_counter",
    "left counter": "receptacle_aabb_counter_left_kitchen_counter",
    "sofa": "receptacle_aabb_Sofa_frl_apartment_sofa",
}
_KITCHEN = ("sink", "right counter", "left counter")
_NOUNS = {
    "table": ("black table", "brown table"),
    "counter": ("right counter", "left counter"),
    "receptacle": tuple(_PLACES),
    "piece of furniture": tuple(_PLACES),
}
_NEXT_M, _NOT_NEXT_M, _CLEARLY_M = 1.0, 1.5, 0.5
_TRIES = 300
"""Draws of slots in a scene."""
_SUBSETS = ("train_validation", "base", "common_sense", "long_horizon")
_PART = re.compile(r"\b(\w+)\(([^()]*)\)")


@dataclasses.dataclass(frozen=True)
class Described:
    """A place of an instruction: the slot of its noun, and (relation, slots of the places that tell which)."""

    slot: str
    told: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclasses.dataclass(frozen=True)
class Wording:
    """An instruction with slots, and what it means; no `source` if that is not said."""

    text: str
    target: Described
    source: Described | None = None


def wordings(name: str = "blind") -> tuple[Wording, ...]:
    """Return the wordings of a file beside this one."""
    lines = Path(__file__).with_name(f"relations_{name}.txt").read_text("utf-8").splitlines()
    return tuple(_wording(*line.split("\t")) for line in lines if line.strip() and not line.startswith("#"))


def _wording(text: str, meaning: str) -> Wording:
    found = re.fullmatch(r"(?s)move \{thing\} from=(.+?) to=(.+)", meaning.strip())
    if found is None:
        raise ValueError(f"expected 'move {{thing}} from=... to=...', got {meaning!r}")
    source = None if found[1].strip() == "-" else _described(found[1])
    return Wording(text, _described(found[2]), source)


def _described(text: str) -> Described:
    slot, _, rest = text.strip().partition(" ")
    told = [(name, tuple(re.findall(r"\w+", slots))) for name, slots in _PART.findall(rest)]
    return Described(slot.strip("{}"), tuple(told))


@dataclasses.dataclass(frozen=True)
class _Box:
    low: tuple[float, float]
    high: tuple[float, float]
    front: tuple[float, float]  # from the place towards who stands in front of it

    @property
    def centre(self) -> tuple[float, float]:
        return (self.low[0] + self.high[0]) / 2, (self.low[1] + self.high[1]) / 2


class Geometry:
    """Clear relations in one scene."""

    def __init__(self, entry: Mapping[str, Any]):
        boxes = entry["receptacle_boxes_from_objects"]
        known = {name: boxes[r] for name, r in _PLACES.items() if r in boxes}
        lows = {name: (box["min"][0], box["min"][2]) for name, box in known.items()}
        highs = {name: (box["max"][0], box["max"][2]) for name, box in known.items()}
        centres = {name: [(lows[name][i] + highs[name][i]) / 2 for i in (0, 1)] for name in known}
        middle = [sum(centre[i] for centre in centres.values()) / len(centres) for i in (0, 1)]
        self.boxes: dict[str, _Box] = {}
        for name in known:
            short = min((0, 1), key=lambda i: highs[name][i] - lows[name][i])
            sign = 1.0 if middle[short] > centres[name][short] else -1.0
            front = (sign, 0.0) if short == 0 else (0.0, sign)
            if name in _KITCHEN:
                # Who looks along -front has right = (front z, -front x), and the right counter lies there.
                front = max(
                    [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)],
                    key=lambda f: sum(
                        r * (centres["right counter"][i] - centres["left counter"][i])
                        for i, r in enumerate((f[1], -f[0]))
                    ),
                )
            self.boxes[name] = _Box(lows[name], highs[name], front)

    def gap_m(self, one: str, other: str) -> float:
        """Measure from edge to edge."""
        a, b = self.boxes[one], self.boxes[other]
        return math.hypot(*(max(a.low[i] - b.high[i], b.low[i] - a.high[i], 0.0) for i in (0, 1)))

    def _seen(self, place: str, anchor: str) -> float:
        """Return degrees: anchor's right 0, behind it 90, left 180, front -90."""
        box, other = self.boxes[anchor], self.boxes[place]
        dx, dz = other.centre[0] - box.centre[0], other.centre[1] - box.centre[1]
        right = dx * box.front[1] - dz * box.front[0]
        ahead = -(dx * box.front[0] + dz * box.front[1])
        return math.degrees(math.atan2(ahead, right))

    def _toward(self, place: str, anchor: str, degrees: float) -> bool | None:
        """Return whether a place lies in a direction; None if arguable."""
        off = abs((self._seen(place, anchor) - degrees + 180) % 360 - 180)
        return True if off <= 30 else False if off >= 60 else None

    def holds(self, relation: str, place: str, anchors: Sequence[str], others: Sequence[str]) -> bool | None:
        """Return whether a relation holds, None if arguable; `others`: other meanings."""
        anchor = anchors[0]
        if relation in ("left_of", "right_of", "behind", "in_front_of"):
            degrees = {"left_of": 180, "right_of": 0, "behind": 90, "in_front_of": -90}[relation]
            return self._toward(place, anchor, degrees)
        if relation == "opposite":
            faces = sum(a * b for a, b in zip(self.boxes[place].front, self.boxes[anchor].front, strict=True))
            there = self._toward(place, anchor, -90)
            return there if faces < 0 or there is False else None
        gap = self.gap_m(place, anchor)
        if relation == "next_to":
            between = any(
                max(self.gap_m(place, r), self.gap_m(anchor, r)) < gap for r in self.boxes if r not in (place, anchor)
            )
            return None if between and gap <= _NEXT_M else gap <= _NEXT_M or (None if gap < _NOT_NEXT_M else False)
        if relation in ("nearest_to", "farthest_from"):
            gaps = [self.gap_m(other, anchor) for other in others if other not in (place, anchor)]
            if not gaps:
                return None
            ahead = (min(gaps) - gap) if relation == "nearest_to" else (gap - max(gaps))
            return True if ahead >= _CLEARLY_M else False if ahead <= -_CLEARLY_M else None
        if relation == "between":
            far = self.gap_m(anchors[0], anchors[1])
            detour = self.gap_m(place, anchors[0]) + self.gap_m(place, anchors[1]) - far
            return True if detour <= 0.3 and far > 0 else False if detour >= 1.0 else None
        raise ValueError(f"relation: expected one that the wordings use, got {relation!r}")

    @functools.cache  # noqa: B019 (a geometry lives as long as what is drawn)
    def only(self, noun: str, told: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
        """Return a noun's only fitting place; empty if unclear."""
        anchors = {anchor for _, names in told for anchor in names}
        candidates = [place for place in _NOUNS[noun] if place in self.boxes and place not in anchors]
        fits = {p: [self.holds(relation, p, names, candidates) for relation, names in told] for p in candidates}
        good = [place for place, answers in fits.items() if all(answer is True for answer in answers)]
        clear = all(False in answers for place, answers in fits.items() if place not in good)
        return good[0] if len(good) == 1 and clear and len(candidates) > 1 else ""


def _filled(wording: Wording, geometry: Geometry, rng: random.Random) -> tuple[dict[str, str], str, str] | None:
    """Draw a clear (slots, target, source) of a wording; None after `_TRIES`."""
    slots = sorted(set(re.findall(r"\{(\w+)\}", wording.text)) - {"thing"})
    described = [d for d in (wording.target, wording.source) if d is not None]
    nouns = {d.slot for d in described if d.told}
    names, kinds = sorted(geometry.boxes), sorted(_NOUNS)
    for _ in range(_TRIES):
        named = {slot: rng.choice(kinds if slot in nouns else names) for slot in slots}
        places = [value for slot, value in named.items() if slot not in nouns]
        if len(set(places)) < len(places):
            continue
        found = []
        for one in described:
            where = tuple((relation, tuple(named[slot] for slot in of)) for relation, of in one.told)
            found.append(geometry.only(named[one.slot], where) if where else named[one.slot])
        source = found[1] if wording.source else ""
        if all(found) and found[0] != source:
            return named, found[0], source
    return None


def drawn(lines: Sequence[Wording], per_line: int, seed: int) -> list[tuple[int, Task, str]]:
    """Return (line, task, meant place), `per_line` a wording, in different scenes.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    root = find_episodes("train_validation")[1]
    file = next(root / name for name in ("scenes.json", "scenes.json.xz") if (root / name).is_file())
    geometries = {scene: Geometry(entry) for scene, entry in read_object(file)["scenes"].items()}
    records: dict[str, dict[str, Any]] = {}
    for subset in _SUBSETS:
        for record in load_records(subset):
            records.setdefault(record["scene"], record)
    episodes: list[dict[str, Any]] = []
    meant: list[tuple[int, str]] = []
    for number, wording in enumerate(lines):
        rng, left = random.Random(f"{seed}/{number}"), per_line
        for scene in rng.sample(sorted(records), len(records)):
            way = _filled(wording, geometries[scene], rng) if left else None
            if way is None:
                continue
            named, target, source = way
            record = records[scene]
            kinds = [thing["category"] for thing in record["objects"]]
            things = [
                thing for thing in record["objects"]
                if kinds.count(thing["category"]) == 1 and thing["receptacle"] != _PLACES[target]
                and (not source or thing["receptacle"] == _PLACES[source])
            ]  # fmt: skip
            if not things:
                continue
            thing = rng.choice(things)
            text = wording.text.format(thing=thing["category"], **named)
            episodes.append(_episode(record, f"relations/{number:03}-{left}", text, thing, target))
            meant.append((number, target))
            left -= 1
    tasks = read_tasks(json.dumps({"episodes": episodes}).encode(), "relations", load_scenes(root))
    return [(number, task, target) for (number, target), task in zip(meant, tasks, strict=True)]


def _episode(record: Mapping[str, Any], name: str, text: str, thing: Mapping[str, Any], target: str) -> dict[str, Any]:
    placed = ["on_top", thing["handle"], _PLACES[target]]
    goal = [{"pred": "on_top", "args": ["X", _PLACES[target]]}, {"pred": "not_holding", "args": []}]
    return {key: copy.deepcopy(record[key]) for key in ("scene", "objects")} | {
        "id": name,
        "instruction": text,
        "initial_articulated": dict.fromkeys(record["initial_articulated"], "closed"),
        "goal": {
            "op": "AND", "quantifier": "EXISTS", "vars": [{"name": "X", "category": thing["category"]}], "args": goal,
        },
        "subgoals_symbolic": [[["holding", thing["handle"]]], [placed]],
    }  # fmt: skip
