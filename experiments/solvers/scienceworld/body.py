"""What an agent of ScienceWorld sees and does with its own hands: rooms, doors, what was seen where, single commands.

    class Agent(Body): ...
    agent = Agent(memories)
    agent._begin(goal, first_text)            # at the start of an episode
    done = yield from agent._fetch("lead")    # walks where it was seen, in this episode or in memory

`PlannerCritic` is made of this, of `mixing` and of `heating`.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Generator, Sequence

from embodied_mem.agents.agent import CommandGenerator

from .evidence import Evidence
from .gold_paths import DOOR, FAILED, MOVED, ROOM, Memories

_CLOSED = re.compile(r"The ([a-z ]+) door is closed|(?<![a-z ])([a-z ]+) \(that is closed\)")
_PICKED = re.compile(r"You move the (.{1,80}) to the inventory")
FOCUSED = re.compile(r"You focus on the ([^.]+)\.")

MAX_ROOMS = 24
"""Times that it goes on to another room, or opens what is closed in one, in search of a thing."""

Saying = Generator[str, str, None]
Asking = Generator[str, str, str]
Doing = Generator[str, str, bool]


class Body(CommandGenerator):
    """Where the agent is, what it knows of the house, and what it did in this episode."""

    def __init__(self, memories: Memories):
        """Make one with these memories."""
        self._memories = memories

    def _begin(self, goal: str, text: str) -> None:
        """Begin an episode with its description and its first text."""
        self._goal = goal
        self._doors = {room: set(doors) for room, doors in self._memories.doors.items()}
        self._looks: dict[str, str] = {}
        self._room, self._picked, self._answer, self._focused = "", "", "", ""
        self._asked = ""
        self._passed: set[frozenset[str]] = set()  # two rooms whose door is open
        self._opened: set[tuple[str, str]] = set()
        self._done: list[str] = []
        self._mixtures = dict(self._memories.mixtures)
        self._evidence = Evidence(goal, self._memories.paths)
        self._see(text)

    def _fetch(self, thing: str) -> Doing:
        """Goes where a thing was seen, else through the rooms, opening what is closed.

        Rooms in which memory saw it come first, then the nearest.
        """
        tried: set[str] = set()
        likely = self._memories.rooms_of(thing)
        for _ in range(MAX_ROOMS):
            known = [room for room, look in self._looks.items() if thing.lower() in look.lower()]
            if known and (yield from self._walk(known[0])):
                return True
            ahead = likely - tried
            if self._room not in tried and (not ahead or self._room in ahead):
                tried.add(self._room)
                if (yield from self._open_all()):
                    continue
                ahead.discard(self._room)
            rooms = sorted(ahead or self._rooms() - tried, key=lambda room: (len(self._way(room)), room))
            if not rooms or not (yield from self._walk(rooms[0])):
                if not ahead:
                    break
                tried.add(rooms[0])
        return False

    def _rooms(self) -> set[str]:
        """Rooms that are known, also those behind doors that were only seen."""
        return set(self._doors).union(*self._doors.values())

    def _try(self, command: str) -> Doing:
        """Whether a command changed or showed something; of several meanings the first is taken."""
        answer = yield from self._ask(command)
        if answer.startswith("Ambiguous"):
            answer = yield from self._ask("0")
        self._answer = answer
        if FAILED.search(answer):
            return "already" in answer
        self._done.append(command)
        if picked := _PICKED.search(answer):
            self._picked = picked[1]
        if focused := FOCUSED.match(answer):
            self._focused = focused[1].lower()
        return True

    # Seeing and walking.

    def _ask(self, command: str) -> Asking:
        self._asked = command
        if command.startswith("close "):
            self._passed.clear()
        answer = yield command
        self._see(answer)
        self._evidence.see(command, answer)
        return answer

    def _see(self, text: str) -> None:
        if moved := MOVED.match(text):
            self._passed.add(frozenset((self._room, moved[1])))
            self._room = moved[1]
        elif found := ROOM.match(text):
            self._room = found[1]
            self._looks[self._room] = text
            for door, _ in DOOR.findall(text):
                self._doors.setdefault(self._room, set()).add(door)
                self._doors.setdefault(door, set()).add(self._room)

    def _look(self) -> str:
        """What was seen last in this room, in small letters."""
        return self._looks.get(self._room, "").lower()

    def _lacks_soil(self, pot: str) -> bool:
        """Whether a pot here is empty and one of this name had soil in memory."""
        return f"{pot} (containing nothing)" in self._look() and self._memories.showed(f"{pot} (containing soil")

    def _dig(self, pot: str) -> Saying:
        """Fills a pot with soil, which is dug from the ground with a shovel."""
        home = self._room
        if "pick up shovel" not in self._done:
            yield from self._fetch("shovel")
            if not (yield from self._try("pick up shovel")):
                return
        if (yield from self._fetch("the ground")) and (yield from self._try("use shovel in inventory on ground")):
            yield from self._try("pick up soil")
            yield from self._walk(home)
            yield from self._try(f"move soil in inventory to {pot}")

    def _open_all(self) -> Doing:
        """Opens everything that is closed here; whether anything was."""
        fresh = self._asked == "look around" and self._room in self._looks
        text = self._looks[self._room] if fresh else (yield from self._ask("look around"))
        names = [a or b for a, b in _CLOSED.findall(text.partition("You also see")[0])]
        opened = False
        for name in names:
            if (self._room, name) not in self._opened:
                self._opened.add((self._room, name))
                opened |= "now open" in (yield from self._ask(f"open {name.strip()}"))
        if opened:
            yield from self._ask("look around")
        return opened

    def _walk(self, room: str) -> Doing:
        """Whether the agent stands in this room now; it looks around in rooms that are new to it.

        Where no way is known it goes through the rooms that it has not seen, the nearest first.
        """
        for _ in range(MAX_ROOMS):
            if self._room == room:
                if room not in self._looks:
                    yield from self._ask("look around")
                return True
            way = self._way(room)
            if not way and self._room and self._room not in self._looks:
                yield from self._ask("look around")
                continue
            way = way or self._way_on()
            if not way:
                return False
            if frozenset((self._room, way[0])) not in self._passed:
                yield from self._ask(f"open door to {way[0]}")
            if not MOVED.match((yield from self._ask(f"go to {way[0]}"))):
                self._doors.get(self._room, set()).discard(way[0])
        return False

    def _way_on(self) -> Sequence[str]:
        """Rooms on the way to the nearest one that was not seen in this episode; empty where there is none."""
        ways = [way for room in sorted(self._rooms() - set(self._looks)) if (way := self._way(room))]
        return min(ways, key=len, default=())

    def _way(self, room: str) -> Sequence[str]:
        """Rooms on the shortest way; empty where none is known, or the agent is there."""
        before = {self._room: ""}
        queue = collections.deque([self._room])
        while queue:
            here = queue.popleft()
            for door in sorted(self._doors.get(here, ())):
                if door not in before:
                    before[door] = here
                    queue.append(door)
        if room not in before or room == self._room:
            return ()
        way = [room]
        while before[way[-1]] != self._room:
            way.append(before[way[-1]])
        return way[::-1]
