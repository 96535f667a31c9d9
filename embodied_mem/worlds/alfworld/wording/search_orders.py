"""The order in which to search the receptacles of a room for an object, by where households keep such things.

A search order is a callable (object type, receptacles of the room as listed) -> the same receptacles, best first.

statistics_order("mug", receptacles)                    # measured on the train split
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from embodied_mem.worlds.alfworld.statistics import household_statistics
from embodied_mem.worlds.alfworld.wording.text import type_of

SearchOrder = Callable[[str, Sequence[str]], list[str]]
"""(object type, receptacles) -> receptacles, the most promising first."""

_ROOM_MARKS = {"kitchen": "stoveburner", "bathroom": "toilet", "bedroom": "bed", "living_room": "sofa"}


@functools.lru_cache(maxsize=1)
def _rates() -> dict[str, dict[str, dict[str, float]]]:
    """Return room -> object -> receptacle -> finds per receptacle and command.

    A receptacle with a door costs two commands (go, open), one without costs one. Room "" is the mean over rooms.
    """
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for room, statistics in household_statistics()["rooms"].items():
        totals, openable = statistics["receptacles_total"], statistics["openable"]
        for name, had in statistics["objects"].items():
            for place, count in had["places"].items():
                if place in totals:
                    rate = count / totals[place] / (1 + openable[place] / totals[place])
                    for key in (room, ""):
                        per_type = rates.setdefault(key, {}).setdefault(name.lower(), {})
                        per_type[place.lower()] = per_type.get(place.lower(), 0.0) + rate
    return rates


def kind_of_room(receptacles: Iterable[str]) -> str:
    """Return "kitchen", "bathroom", "bedroom", "living_room", or "" without any sign."""
    types = {type_of(receptacle) for receptacle in receptacles}
    return next((room for room, mark in _ROOM_MARKS.items() if mark in types), "")


def statistics_order(object_type: str, receptacles: Sequence[str]) -> list[str]:
    """Order receptacles by expected finds per command of looking.

    Ties keep the order of the room text; a place that is itself what is looked for (a floor lamp) comes first. Uses
    `household_statistics` (train split) and nothing of the present game.
    """
    rates = _rates()
    known = rates.get(kind_of_room(receptacles), {}).get(object_type) or rates[""].get(object_type, {})
    return sorted(receptacles, key=lambda p: (type_of(p) != object_type, -known.get(type_of(p), 0.0)))


@functools.lru_cache(maxsize=1)
def _accepted() -> dict[str, frozenset[str]]:
    contain = household_statistics()["can_contain"]
    return {place.lower(): frozenset(name.lower() for name in names) for place, names in contain.items()}


def households_put(object_type: str, receptacle_type: str) -> bool:
    """Return whether measured games allow an object type there."""
    return object_type in _accepted().get(receptacle_type, ())
