"""Orders in which to search the receptacles of a room for an object: three, of increasing knowledge.

A search order is a callable (object type, receptacles of the room as listed) -> the same receptacles, best first.

    room_order("mug", ["shelf 2", "shelf 1"])              # as the room lists them
    statistics_order("mug", receptacles)                    # where households keep mugs, measured on the train split
    found = FoundOrder()                                   # where things were found before, in rooms like this one
    found.add(receptacles, "mug", "cabinet 3"); found("mug", receptacles)
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Sequence

from embodied_mem.worlds.alfworld.statistics import household_statistics
from embodied_mem.worlds.alfworld.wording.text import type_of

SearchOrder = Callable[[str, Sequence[str]], list[str]]
"""(object type, receptacles) -> receptacles, the most promising first."""

_ROOM_MARKS = {"kitchen": "stoveburner", "bathroom": "toilet", "bedroom": "bed", "living_room": "sofa"}


def room_order(object_type: str, receptacles: Sequence[str]) -> list[str]:
    """Return the receptacles in the order in which the room text lists them."""
    return list(receptacles)


@functools.lru_cache(maxsize=1)
def _rates() -> dict[str, dict[str, dict[str, float]]]:
    """Return room -> object type -> receptacle type -> objects found per receptacle and per command spent there.

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


@functools.lru_cache(maxsize=1)
def _looking_costs() -> dict[str, float]:
    """Return receptacle type -> commands that looking into one takes on average: 1, or 2 with a door."""
    totals, doors = collections.Counter[str](), collections.Counter[str]()
    for statistics in household_statistics()["rooms"].values():
        for name, total in statistics["receptacles_total"].items():
            totals[name.lower()] += total
            doors[name.lower()] += statistics["openable"][name]
    return {name: 1 + doors[name] / total for name, total in totals.items() if total}


def kind_of_room(receptacles: Iterable[str]) -> str:
    """Return "kitchen", "bathroom", "bedroom", "living_room", or "" if no mark of any is there."""
    types = {type_of(receptacle) for receptacle in receptacles}
    return next((room for room, mark in _ROOM_MARKS.items() if mark in types), "")


def statistics_order(object_type: str, receptacles: Sequence[str]) -> list[str]:
    """Return the receptacles by how often households keep such an object there, per command that looking costs.

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
    """Return whether an object of this type may be put there in the games that were measured."""
    return object_type in _accepted().get(receptacle_type, ())


class FoundOrder:
    """A search order from experience: where objects of a type were found, first in this very room, then anywhere.

    Rooms are told apart by their list of receptacles, which is all that an agent sees of their identity.

    Args:
        prior: how many finds in this very room what is known from all other rooms is worth.
    """

    def __init__(self, prior: float = 5.0) -> None:
        self.prior = prior
        self._here: dict[tuple[tuple[str, ...], str], collections.Counter[str]] = {}
        self._anywhere: dict[str, collections.Counter[str]] = {}

    def add(self, receptacles: Iterable[str], object_type: str, receptacle: str, count: int = 1) -> None:
        """Remember that an object of this type was found in `receptacle` of the room with these receptacles.

        `count` -1 takes one such memory back (to leave the game that is played out of what is remembered).
        """
        key = (tuple(sorted(receptacles)), object_type)
        self._here.setdefault(key, collections.Counter())[receptacle] += count
        self._anywhere.setdefault(object_type, collections.Counter())[type_of(receptacle)] += count

    def __call__(self, object_type: str, receptacles: Sequence[str]) -> list[str]:
        """Return the receptacles by expected finds per command spent on looking; ties go by `statistics_order`.

        Finds are those in this room plus `prior` finds spread as they were over receptacles of each type anywhere.
        """
        here = self._here.get((tuple(sorted(receptacles)), object_type), collections.Counter())
        anywhere = self._anywhere.get(object_type, collections.Counter())
        per_find = self.prior / max(sum(anywhere.values()), 1)
        number = collections.Counter(map(type_of, receptacles))

        def worth(receptacle: str) -> float:
            kind = type_of(receptacle)
            finds = here[receptacle] + per_find * anywhere[kind] / number[kind]
            return finds / _looking_costs().get(kind, 1.0)

        return sorted(statistics_order(object_type, receptacles), key=worth, reverse=True)
