"""An agent's picture of a house: the text of the first observation, and what later ones add.

    view = HouseView(observation, instruction)
    view.furniture["table_4"], view.rooms           # "kitchen_1", {"kitchen_1": ["table_4", ...]}
    view.observe("Explore[kitchen_1]", observation)
    view.objects["cup_0"].place, view.objects["cup_0"].room

Names are `<type>_<number>`; nothing here is known that the texts do not say. Rooms, pieces and objects are kept in an
order drawn by hash, not in that of the texts, so that whoever takes the first of several takes any of them
(`traces/trace.py`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.memento.traces.trace import (
    HELD,
    drawn,
    parse_action,
    parse_description,
    parse_objects,
    parse_result,
)

_ROOM_LINE = re.compile(r"(\w+): ?([\w, ]*)\Z")


def kind_of(name: str) -> str:
    """The type in a name, in words: chest_of_drawers_12 -> chest of drawers."""
    return name.rpartition("_")[0].replace("_", " ") if name.rpartition("_")[2].isdigit() else name.replace("_", " ")


@dataclasses.dataclass
class SeenObject:
    """One object that was seen: its place (furniture, floor or `HELD`) and that one's room (empty while held), now and
    at first; its description, once asked for."""

    place: str
    room: str
    start: str
    start_room: str
    caption: str = ""
    described: bool = False


class HouseView:
    """House, objects seen, and where the agent stands, from texts."""

    def __init__(self, observation: str, instruction: str = ""):
        """Read a first observation.

        Args:
            observation: with the house text.
            instruction: decides, with the names, the order of everything here.

        Raises:
            InvalidInputError: it has no furniture list.
        """
        if "Furniture:" not in observation:
            raise InvalidInputError(
                f"observation: expected the house text ('Furniture:' ...), got {observation[:200]!r}"
            )
        self._instruction = instruction
        self.rooms: dict[str, list[str]] = {}
        self.floors: dict[str, str] = {}
        self.furniture: dict[str, str] = {}
        self.objects: dict[str, SeenObject] = {}
        self.explored: set[str] = set()
        self.at: str | None = None
        self.room = ""
        self.held: str | None = None
        lines = observation.partition("Furniture:")[2].partition("\n\n")[0].splitlines()
        told = {match[1]: match[2] for line in lines if (match := _ROOM_LINE.match(line.strip()))}
        for room in self._mixed(told):
            names = [name.strip() for name in told[room].split(",") if name.strip()]
            pieces = self._mixed(name for name in names if name != f"floor_{room}")
            if len(pieces) < len(names):
                self.floors[room] = f"floor_{room}"
            self.rooms[room] = pieces
            self.furniture.update(dict.fromkeys(pieces, room))

    def _mixed(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: drawn(self._instruction, name))

    def room_of(self, place: str) -> str:
        """The room of a piece of furniture, floor or room; empty if unknown."""
        if place in self.furniture:
            return self.furniture[place]
        room = place.removeprefix("floor_")
        return room if room in self.rooms else ""

    def observe(self, action: str, observation: str) -> str:
        """Take in what an action led to and return the answer's text."""
        name, arguments = parse_action(action)
        result = parse_result(observation)
        for thing, (place, room) in parse_objects(observation).items():
            seen = self.objects.setdefault(thing, SeenObject(place, room, place, room))
            seen.place, seen.room = place, room
        self.objects = {thing: self.objects[thing] for thing in self._mixed(self.objects)}
        held = [thing for thing, seen in self.objects.items() if seen.place == HELD]
        self.held = held[0] if held else None
        described = parse_description(observation)
        if described and described[0] in self.objects:
            self.objects[described[0]].caption = described[1]
        if name == "DescribeObjectTool" and arguments and arguments[0] in self.objects:
            self.objects[arguments[0]].described = True
        succeeded = result.startswith("Successful")
        if name == "Navigate" and succeeded and arguments:
            self._arrive(arguments[0])
        elif name == "Explore" and arguments:
            self.explored.add(arguments[0])
            self.room = arguments[0] if succeeded or "too long" in result else self.room
            self.at = None
        return result

    def _arrive(self, target: str) -> None:
        if target in self.objects:
            target = self.objects[target].place
        self.room = self.room_of(target)
        self.at = target if target in self.furniture or target.startswith("floor_") else None
