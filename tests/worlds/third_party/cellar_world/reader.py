"""What this world's sentences say, for memory."""

from __future__ import annotations

import re

from embodied_mem.memory.readers import Reading
from embodied_mem.memory.readers.reading import AGENT

_STAND = re.compile(r"You stand in the (\w+)\. Here: (\w+)\.")
_HOLD = re.compile(r"You hold the (\w+)\.")
_LIES = re.compile(r"The (\w+) is in the (\w+) now\.")


class CellarReader:
    name = "cellar"

    def read(self, text: str) -> Reading:
        if found := _STAND.match(text):
            room, thing = found.groups()
            names = () if thing == "nothing" else (thing,)
            return Reading(((AGENT, "at", room), *((n, "in", room) for n in names)), ((room, names),))
        if found := _HOLD.match(text):
            return Reading(((AGENT, "holds", found[1]),))
        if found := _LIES.match(text):
            return Reading(((found[1], "in", found[2]),), ((AGENT, ()),))
        return Reading(refused=text.startswith("That does not"), understood=text.startswith("That does not"))

    def room(self, first_observation: str) -> str:
        return first_observation.partition("Doors: ")[2].partition(".")[0]

    def place(self, first_observation: str) -> str:
        return "house"

    def goal_object(self, goal: str) -> str:
        found = re.match(r"bring the (\w+) to", goal)
        return found[1] if found else ""

    def events(self, episode):
        events, here = [], "hall"
        for number, step in enumerate(episode.steps):
            verb, _, name = step.action.partition(" ")
            here = name if verb == "enter" else here
            if verb in ("grab", "drop"):
                events.append((number, "take" if verb == "grab" else "place", name, here))
        return events


READER = CellarReader()
