"""Measured household statistics, and the records that describe one generated room.

    household_statistics()["rooms"]["kitchen"]["receptacles"]["Fridge"]      # {"1": 27}: 27 kitchens have one fridge

`experiments/package_data/measure_statistics.py` measured the counts on ALFWorld's train split; nothing else was taken
from it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from typing import Any, NamedTuple

STATISTICS_FILE = pathlib.Path(__file__).with_name("statistics.json")
"""Statistics of households, measured on the train split."""

ROOMS = ("kitchen", "bedroom", "living_room", "bathroom")
"""Kinds of room; scene i is of kind i % 4."""


@functools.lru_cache(maxsize=1)
def household_statistics() -> dict[str, Any]:
    """Return the measured statistics (see `experiments/package_data/measure_statistics.py` for every field)."""
    statistics: dict[str, Any] = json.loads(STATISTICS_FILE.read_text())
    return statistics


def household_kinds() -> tuple[str, ...]:
    """Return the kinds of things that ALFWorld's households have."""
    return tuple(kind.lower() for kind in household_statistics()["object_types"])


class Thing(NamedTuple):
    """One thing of a room: its PDDL id, type, receptacle's id or "", location."""

    identifier: str
    type: str
    holder: str
    location: str


@dataclasses.dataclass(frozen=True)
class Receptacle:
    """One receptacle of a scene: its PDDL id, type, position in metres, where one stands to use it."""

    identifier: str
    type: str
    position: tuple[float, float, float]
    location: str
    openable: bool


@dataclasses.dataclass(frozen=True)
class Habit:
    """Where a type of object is found in a scene: receptacle indices and the running sums of their weights.

    `preferred` are the one to three usual places, most usual first.
    """

    preferred: tuple[int, ...]
    receptacles: tuple[int, ...]
    cumulative: tuple[float, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """One room that lasts over its trials.

    Attributes:
        number: its index in its generator.
        room: kind of room, one of `ROOMS`.
        receptacles: in the order of their ids.
        habits: object type -> where it is found.
        copies: object type -> histogram of how many there are in a trial.
        furnishings: what never moves: lamps, windows, chairs, ...
        floor: locations of the room away from receptacles, where agents start.
        goals: task type -> {"Object Target": weight}, only what this room can serve.
    """

    number: int
    room: str
    receptacles: tuple[Receptacle, ...]
    habits: dict[str, Habit]
    copies: dict[str, dict[str, int]]
    furnishings: tuple[Thing, ...]
    floor: tuple[str, ...]
    goals: dict[str, dict[str, float]]
