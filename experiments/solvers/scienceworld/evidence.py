"""Evidence observed in an episode of ScienceWorld, and which choice of the description it supports.

    evidence = Evidence(goal, memories)
    evidence.see("use thermometer in inventory on lead", "the thermometer measures a temperature of 20 degrees celsius")
    evidence.decide("focus on red box", look)              # "focus on green box", if the description says so

Kinds of choices: boxes by a temperature or a melting point, boxes by whether a lamp is on, one of two inclined planes
by how fast a block goes down, an animal by its life span as remembered tasks had it, a pot by what is seen in it.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence

from .gold_paths import GoldPath

_CONDITION = re.compile(
    r"If [^.]{,150}?(above|below|electrically conductive|electrically nonconductive)(?: (-?[\d.]+) degrees celsius)?, "
    r"(?:focus on|place it in) the (\w+ box)"
)
_TEMPERATURE = re.compile(r"measures a temperature of (-?[\d.]+) degrees")
_DOWN = re.compile(r"(?<!\d)(\d+)% down the plane|at the bottom of the plane")
_STATE = re.compile(r"(?:a substance called )?(solid|liquid) ")
_ANIMAL = re.compile(r"^\t(?:an? )?((?:baby |adult |juvenile |hatchling )?([a-z ]+?)(?: egg)?)$", re.MULTILINE)
_TREE = re.compile(r"\ba ((?:dead )?[a-z]+ (?:tree|plant))\b")
_FOCUSED = re.compile(r"You focus on the (?:baby |adult |juvenile |hatchling )?([a-z ]+?)(?: egg)?\.")
_IN_POT = re.compile(r"focus on (.{1,80}?) in the (\w+) stage in ([a-z ]{1,80}?) \d+$")
MAX_LOOKS = 20
"""Looks at one inclined plane; on a slow one the share of the way tells enough."""


def bare(name: str) -> str:
    """The shortest name of a thing, for looking it up in a text: without where it is and what holds it."""
    return re.split(r" in | on | containing ", name)[0].lower()


class Evidence:
    """What one episode has shown so far."""

    def __init__(self, goal: str, memories: Sequence[GoldPath]):
        """Read the description's conditions, and what memories of any tasks tell of life spans."""
        self._goal = goal
        self._boxes = {kind: (float(limit or 0), box) for kind, limit, box in _CONDITION.findall(goal)}
        self._melting = "melting point" in goal
        self._liquid = "liquid" in goal
        self._named = True  # whether its name tells that the substance is liquid
        self._readings: list[tuple[bool, float]] = []  # (is it liquid, temperature)
        self._looks: collections.Counter[str] = collections.Counter()
        self._down: dict[str, float] = {}
        self._at_bottom: set[str] = set()
        self._spans: collections.Counter[str] = collections.Counter()
        for memory in memories:
            if "life span" in goal and "life span" in memory.goal:
                self._remember_span(memory)

    def _remember_span(self, memory: GoldPath) -> None:
        named = [found[1] for answer in memory.answers if (found := _FOCUSED.match(answer))]
        longest, shortest = "longest" in memory.goal, "shortest" in memory.goal
        if named and longest:
            self._spans[named[0]] += 1
        if named and shortest:
            self._spans[named[-1]] -= 1

    @property
    def has_boxes(self) -> bool:
        """Whether the description has a choice of boxes, for which something is measured."""
        return bool(self._boxes)

    def see(self, command: str, answer: str) -> None:
        """Takes a command and the answer to it."""
        if "pick up a liquid" in answer:
            self._liquid, self._named = True, False
        measured = command.startswith(("examine", "use thermometer")) and not answer.startswith("No known")
        if measured and (state := _STATE.match(answer)):
            self._liquid = state[1] == "liquid"
        elif self._named and measured:
            if "liquid" in answer or "liquid" in command:
                self._liquid = True
            elif command.startswith("examine") or "solid" in command:
                self._liquid = False
        if found := _TEMPERATURE.search(answer):
            self._readings.append((self._liquid, float(found[1])))
        if command.startswith("look at inclined plane") and (found := _DOWN.search(answer)):
            plane = command.removeprefix("look at ")
            self._looks[plane] += 1
            if plane not in self._at_bottom:
                self._down[plane] = float(found[1] or 100) / self._looks[plane]
            if not found[1]:
                self._at_bottom.add(plane)

    def wants(self, command: str, again: bool) -> bool:
        """Whether a step is still of use: a plane is looked at until the block is down, a substance until it is known.

        Args:
            command: the step.
            again: whether the step before was the same.
        """
        if command.startswith("look at inclined plane"):
            plane = command.removeprefix("look at ")
            return not again or (plane not in self._at_bottom and self._looks[plane] < MAX_LOOKS)
        if self._melting and command.startswith(("examine", "use thermometer")):
            return self._verdict() == ""
        return True

    def _verdict(self) -> str:
        """`above` or `below` of the limit; empty while nothing tells."""
        if not self._readings or "above" not in self._boxes:
            return ""
        limit = self._boxes["above"][0]
        if not self._melting:
            return "above" if self._readings[-1][1] > limit else "below"
        for liquid, temperature in self._readings:
            if not liquid and temperature >= limit:
                return "above"
            if liquid and temperature <= limit:
                return "below"
        return ""

    @property
    def too_warm(self) -> bool:
        """Whether a substance whose melting point is asked for is liquid above the limit, which tells nothing."""
        return self._melting and not self._verdict() and bool(self._readings) and self._readings[-1][0]

    def _is_choice(self, command: str) -> bool:
        return any(box in command for _, box in self._boxes.values())

    def look_first(self, command: str) -> str:
        """The command that shows what a choice depends on, if it is a look."""
        if self._is_choice(command) and "electrically conductive" in self._boxes:
            return "look around"
        if _IN_POT.match(command):
            return "look around"
        return "look around" if "life span" in self._goal and command.startswith("focus") else ""

    def undecided(self, command: str) -> bool:
        """Whether this is a choice by a melting point that is not known yet."""
        return self._melting and self._is_choice(command) and bool(self._readings) and not self._verdict()

    def decide(self, command: str, look: str) -> str:
        """The command as what was observed has it: as the first rule of `CHOICES` that knows better says.

        Args:
            command: a step of the plan.
            look: what was seen last in this room.
        """
        return next((better for rule in CHOICES if (better := rule(self, command, look))), command)

    def box(self, command: str, look: str) -> str:
        """The box of the description that a measured temperature, a melting point or a lamp speaks for."""
        if self._is_choice(command):
            kind = self._verdict()
            if "electrically conductive" in self._boxes:
                kind = "electrically conductive" if "light bulb, which is on" in look else "electrically nonconductive"
            if not kind and self._readings:  # neither melted below the limit nor solid above it
                kind = "below" if self._readings[-1][0] else "above"
            if kind in self._boxes:
                return re.sub(r"\b\w+ box", self._boxes[kind][1], command)
        return ""

    def plane(self, command: str, look: str) -> str:
        """The inclined plane on which the block was fastest or slowest, as the description asks."""
        if not command.startswith("focus on inclined plane") or not self._down:
            return ""
        fast = "steepest" in self._goal or "least friction" in self._goal
        return f"focus on {(max if fast else min)(self._down, key=self._down.__getitem__)}"

    def life_span(self, command: str, look: str) -> str:
        """The animal here that lives longest or shortest, as remembered tasks had it."""
        if "life span" not in self._goal or not command.startswith("focus"):
            return ""
        named = _staged(look)
        if not named:
            return command
        first = "then" in self._goal.lower() and not self._looks["focused"]
        self._looks["focused"] += 1
        longest = first or ("longest" in self._goal and "shortest" not in self._goal)
        return f"focus on {named[(max if longest else min)(named, key=self._spans.__getitem__)]}"

    def animal(self, command: str, look: str) -> str:
        """An animal that is here, for one that is not."""
        if not re.search(r"find a\(n\) (?:living thing|animal)", self._goal) or not command.startswith("focus"):
            return ""
        named = _staged(look)
        return f"focus on {next(iter(named.values()))}" if named and not any(kind in command for kind in named) else ""

    def plant(self, command: str, look: str) -> str:
        """A tree that is here, for one that is not."""
        if "find a(n) plant" not in self._goal or not command.startswith("focus"):
            return ""
        trees = [tree for tree in _TREE.findall(look) if not tree.startswith("dead ")]
        return f"focus on {trees[0]}" if trees and not any(tree in command for tree in trees) else ""

    def pot(self, command: str, look: str) -> str:
        """The numbered pot in which the thing is seen now, for the one where memory had it."""
        named = _IN_POT.match(command)
        if not named:
            return ""
        thing, stage, pot = named.groups()
        shown = [f"{thing} in the {stage} stage", *([thing] if "seed" in stage.split() else [])]
        for name in shown:
            if found := re.search(rf"\t(?:an? )?({pot} \d+) \(containing (?:[^()]*, )?(?:an? )?{name}\b", look):
                return f"focus on {thing} in the {stage} stage in {found[1]}"
        return ""


CHOICES = (Evidence.pot, Evidence.box, Evidence.plane, Evidence.life_span, Evidence.animal, Evidence.plant)
"""What knows better than a plan what to choose, in order: (evidence, command, look) -> command, empty for nothing."""


def _staged(look: str) -> dict[str, str]:
    """Animals that are here: kind -> name. They are told from things by their stage of life ("baby", "egg")."""
    named = {kind: name for name, kind in _ANIMAL.findall(look.partition("You also see")[0])}
    return {kind: name for kind, name in named.items() if name != kind}
