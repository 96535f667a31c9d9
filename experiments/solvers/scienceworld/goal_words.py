"""Plays a task of ScienceWorld of which no memory was won, by the words of its description and by trying.

    player = GoalPlayer(Memories(own_paths)).play(goal, first_text)

What is won so becomes the memory of its kind, and what is lost tells what not to choose again. It fetches and focuses
on what the description names, in its order, measures what is to be measured, and lets `Evidence` choose. What the
description does not name ("find a(n) animal") it guesses among the things that it sees.
"""

from __future__ import annotations

import re

from .body import MAX_ROOMS, Doing, Saying
from .gold_paths import Device
from .planner import THINGS, PlannerCritic

_FOCUS = re.compile(r"focus on (?:the |a )?([A-Za-z' -]{1,100}?)(?= and\b|[.,]|$)", re.IGNORECASE)
_STATE = re.compile(r"to (?:boil|melt|freeze|change the state of matter of) ([a-z ]{1,80})\.")
_FIND = re.compile(r"find a\(n\) ([a-z-]+(?: thing)?)\.")
_CREATE = re.compile(r"create (?:the substance ')?([a-z -]+?)'?\. ")
_STAGES = re.compile(r"focus on the (?:\d+ )?life stages of the ([a-z -]+),")
_MOVE_TO_BOX = re.compile(r"(?:move|place) it (?:to|in) the ([a-z]+ box)")
_PLANE = re.compile(r"\b(inclined plane (?:with an? [a-z ]{1,80}? surface|[a-z]))(?=,|$)", re.MULTILINE)
_SOURCE = re.compile(r"\ba ([a-z]+ (?:generator|panel)|battery)\b")
_WIRE = re.compile(r"\b([a-z]+ wire)\b")
_SWITCH = re.compile(r"\ta(?:n)? ([a-z ]+), which is turned off")
_DOORED = re.compile(r"The ([a-z ]+) door is (?:open|closed)")
_NOT_NAMES = {"substance", "thing", "seed", "life stages of the", "the agent", "agent", "air", "nothing"}
MAX_GUESSED_WAITS = 60
"""Steps for which it waits for the next stage of a life."""


class GoalPlayer(PlannerCritic):
    """A planner-critic that does what a description says where no memory of the kind was won."""

    def play(self, goal: str, text: str) -> Saying:
        if self._memories.retrieve(goal):
            yield from super().play(goal, text)
            return
        self._begin(goal, text)
        self.plans = self.repairs = 0
        self._kin, self._parts, self._other_sort = {}, {}, False
        self._plan = self._following = self._repairing = ""
        if found := _FIND.search(goal):
            yield from self._guess(found[1])
        elif found := _STAGES.search(goal):
            yield from self._stages(found[1])
        elif "inclined plane" in goal:
            yield from self._planes()
        elif "life span" in goal:
            yield from self._spans()
        elif "chemistry" in goal and (found := _CREATE.search(goal)):
            yield from self._create(found[1])
        elif found := _STATE.search(goal):
            yield from self._change(found[1])
        elif "electrical circuit" in goal:
            yield from self._circuit()
        else:
            yield from self._named_things()

    def _tried(self) -> set[str]:
        """What was focused on last in lost episodes that began with the same sentence."""
        first = self._goal.partition(". ")[0]
        lost = [path for path in self._memories.paths if not path.won and path.goal.startswith(first)]
        chosen = [[c for c in path.commands if c.startswith("focus on ")] for path in lost]
        return {commands[-1].removeprefix("focus on ") for commands in chosen if commands}

    def _put_in_box(self, name: str) -> Saying:
        """Moves a thing to the box that the description, or the evidence, names."""
        box = _MOVE_TO_BOX.search(self._goal)
        if box and (yield from self._try(f"pick up {name}")):
            held = self._picked
            wanted = self._evidence.decide(f"move {held} in inventory to {box[1]}", self._look())
            yield from self._fetch(wanted.rpartition(" to ")[2])
            yield from self._try(wanted)

    def _named_things(self) -> Saying:
        """Focuses on what is named, in this order; a thermometer is used on the next."""
        names = [name for name in _FOCUS.findall(self._goal) if name.lower() not in _NOT_NAMES]
        measured = [name for name in names if not name.endswith("box")]
        for name in measured:
            if not (yield from self._fetch(name)):
                continue
            if name == "thermometer":
                yield from self._try("pick up thermometer")
                yield from self._try("focus on thermometer in inventory")
                continue
            yield from self._try(f"focus on {name}")
            if "thermometer" in measured:
                yield from self._try(f"examine {name}")
                yield from self._try(f"use thermometer in inventory on {name}")
        if boxes := [name for name in names if name.endswith("box")]:
            chosen = self._evidence.decide(f"focus on {boxes[0]}", self._look())
            if (yield from self._fetch(chosen.removeprefix("focus on "))):
                yield from self._try(chosen)
        elif measured:
            yield from self._put_in_box(measured[-1])

    def _planes(self) -> Saying:
        """Lets a block go down each inclined plane and focuses on the one that the evidence speaks for."""
        yield from self._fetch("inclined plane")
        yield from self._ask("look around")
        planes = list(dict.fromkeys(_PLANE.findall(self._look())))
        block = "block" if (yield from self._try("pick up block")) else "brick"
        for plane in planes:
            if not (yield from self._try(f"move {block} to {plane}")):
                break
            while self._evidence.wants(f"look at {plane}", True):
                if not (yield from self._try(f"look at {plane}")):
                    break
        if planes:
            yield from self._try(self._evidence.decide(f"focus on {planes[0]}", self._look()))

    def _related(self, kind: str) -> set[str]:
        """Words for what was focused on in episodes that were won and whose description has this word."""
        won = [path for path in self._memories.paths if path.won and kind in path.goal]
        chosen = [c.removeprefix("focus on ") for path in won for c in path.commands if c.startswith("focus on ")]
        return {word for name in chosen for word in name.split() if len(word) > 2} - {"box", "outside"}

    def _guess(self, kind: str) -> Saying:
        """Focuses on something that was not chosen in vain before, and boxes it.

        What shares a word with what other tasks on such things were about is looked for in all rooms first.
        """
        tried, related = self._tried(), self._related(kind.rpartition(" ")[2] if " " not in kind else kind)
        for _ in range(MAX_ROOMS if related else 0):
            if self._asked != "look around":
                yield from self._ask("look around")
            if named := [name for name in self._here(tried) if related & set(name.split())]:
                yield from self._choose(named[0])
                return
            rooms = sorted(self._rooms() - set(self._looks), key=lambda room: (len(self._way(room)), room))
            if not rooms or not (yield from self._walk(rooms[0])):
                break
        yield from self._ask("look around")
        for name in self._here(tried):
            if (yield from self._choose(name)):
                return

    def _here(self, tried: set[str]) -> list[str]:
        names = dict.fromkeys(THINGS.findall(self._look().partition("you also see")[0]))
        return [name for name in names if name not in tried | _NOT_NAMES]

    def _choose(self, name: str) -> Doing:
        if not (yield from self._try(f"focus on {name}")):
            return False
        yield from self._put_in_box(self._same_kind("pick up").removeprefix("pick up "))
        return True

    def _stages(self, animal: str) -> Saying:
        """Focuses on what is named after the animal and was not focused on before, and waits for more."""
        kind = animal.partition(" ")[0]
        yield from self._fetch(kind)
        seen: set[str] = set()
        for _ in range(MAX_GUESSED_WAITS):
            yield from self._ask("look around")
            here = [name for name in THINGS.findall(self._look()) if kind in name.split() and name not in seen]
            for name in here[:1]:
                seen.add(name)
                yield from self._try(f"focus on {name}")
            if not here:
                yield from self._ask("wait1")

    def _spans(self) -> Saying:
        """Focuses on animals outside, those first that were not chosen in vain."""
        yield from self._walk("outside")
        yield from self._ask("look around")
        tried = self._tried()
        wanted = "focus on animal"
        for _ in range(2 if "then" in self._goal.lower() else 1):
            names = [name for name in THINGS.findall(self._look()) if name.split()[0] in ("baby", "adult", "juvenile")]
            names += [name for name in THINGS.findall(self._look()) if name.endswith(" egg")]
            names = [name for name in names if name not in tried] or names
            if names:
                tried.add(names[0])
                yield from self._try(f"{wanted.removesuffix('animal')}{names[0]}")

    def _create(self, target: str) -> Saying:
        """Mixes by a recipe, else what stands in cups."""
        if "recipe" in self._goal and (yield from self._fetch("recipe")):
            yield from self._try("pick up recipe")
            yield from self._try("read recipe in inventory")
            if recipe := self._recipe():
                yield from self._mix_fetched(recipe)
        elif (yield from self._fetch(target.rpartition(" ")[2])):
            yield from self._open_all()
            yield from self._mix_here(target, shows_parts="intermediate" in self._goal)
        yield from self._try(f"focus on {target}")

    def _change(self, thing: str) -> Saying:
        """Puts a thing into whatever is known to warm or cool, else into whatever has a switch or a door."""
        if (yield from self._fetch("thermometer")):
            yield from self._try("pick up thermometer")
        if not (yield from self._fetch(thing)) or not (yield from self._try(f"focus on {thing}")):
            return
        yield from self._try(f"pick up {thing}")
        yield from self._open_all()
        for device in [*self._memories.devices.values(), *self._guessed_devices()]:
            if (yield from self._put(thing, device)):
                while (yield from self._changes(thing)):
                    pass

    def _guessed_devices(self) -> list[Device]:
        """What has a switch, and freezers, the nearest first."""
        found: list[Device] = []
        for room in sorted(self._looks, key=lambda room: len(self._way(room))):
            look = self._looks[room].lower()
            found += [
                Device(name, room, True, True) for name in _SWITCH.findall(look) if name not in ("sink", "bathtub")
            ]
            found += [Device(name, room, False, False) for name in _DOORED.findall(look) if "freezer" in name]
        return list(dict.fromkeys(found))

    def _circuit(self) -> Saying:
        """Connects a source, two wires and what is to be turned on in a ring."""
        names = [name for name in _FOCUS.findall(self._goal) if name.lower() not in _NOT_NAMES]
        if not names or not (yield from self._fetch(names[0])):
            return
        yield from self._try(f"focus on {names[0]}")
        yield from self._ask("look around")
        look, tried = self._look(), " ".join(" ".join(p.commands) for p in self._memories.paths if not p.won)
        sources = sorted(dict.fromkeys(_SOURCE.findall(look)), key=lambda name: (f"connect {name}" in tried, name))
        wires = list(dict.fromkeys(_WIRE.findall(look)))
        if len(wires) < 2 or not sources:
            return
        one, other = wires[:2]
        for a, b in (
            (f"{sources[0]} anode", f"{one} terminal 1"),
            (f"{one} terminal 2", f"{names[0]} cathode"),
            (f"{names[0]} anode", f"{other} terminal 2"),
            (f"{other} terminal 1", f"{sources[0]} cathode"),
        ):
            yield from self._try(f"connect {a} to {b}")
        yield from self._try(f"activate {sources[0]}")
        for _ in range(3):
            yield from self._ask("wait1")

    def _recipe(self) -> list[str]:
        found = re.search(r"To make .{1,80}?, you need to mix (.{1,200})\.", self._answer)
        return found[1].split(", ") if found else []
