"""Mixing in ScienceWorld: of a plan that mixes, only its way of doing it is taken. A part of `PlannerCritic`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from .body import Asking, Body, Doing
from .evidence import bare
from .gold_paths import Step, mixture

_HELD_IN = re.compile(r"(?:\t|: |, )(?:an? )?([a-z]+(?: [a-z]+)*(?: \d+)?) \(containing (?:an? )?([^()]+)\)")
_EMPTY = re.compile(r"(?:\t|: |, )(?:an? )?([a-z]+(?: [a-z]+)*) \(containing nothing\)")
_RECIPE = re.compile(r"To make .{1,80}?, you need to mix (.{1,200})\.")


class Mixer(Body):
    """Mixes what a recipe, a name or tries say."""

    _plan: str

    def _begin(self, goal: str, text: str) -> None:
        """Begin an episode, with empty hands."""
        super()._begin(goal, text)
        self._carried: dict[str, str] = {}  # what the bowl that is carried holds -> its name

    # Mixing: what a plan mixed may be something else than what is wanted, so that only its way of doing it is taken.

    def _mix(self, steps: Sequence[Step]) -> Doing:
        """Whether what the plan ends with was made: by the recipe that it reads, in the room where it mixed."""
        target = bare(steps[-1].command.removeprefix("focus on "))
        recipe: list[str] = []
        for step in steps:
            if "recipe" in step.command and (not step.room or (yield from self._walk(step.room))):
                if not (yield from self._try(step.command)) and step.command.startswith("pick up"):
                    yield from self._fetch("recipe")
                    yield from self._try(step.command)
                if found := _RECIPE.search(self._answer):
                    recipe = found[1].split(", ")
        if room := next(step.room for step in steps if step.command.startswith("mix ")):
            yield from self._walk(room)
        twice = sum(step.command.startswith("mix ") for step in steps) > 1
        if recipe:
            made = yield from self._mix_fetched(recipe)
        else:
            yield from self._open_all()
            made = yield from self._mix_here(target, shows_parts=twice)
        return made and (yield from self._try(f"focus on {target}"))

    def _holders(self) -> dict[str, str]:
        """What is here that holds something or nothing, by name; of several with one name the first."""
        look = self._looks.get(self._room, "").partition("You also see")[0].lower()
        return {content: name for name, content in reversed(_HELD_IN.findall(look))} | self._carried

    def _mix_here(self, target: str, *, shows_parts: bool = False) -> Doing:
        """Whether a mixture was made of what stands here in cups; what came of each try tells what to try next.

        The parts of a name ("yellow-orange paint") are what to mix, and made first if they are not here, else a pair
        that is known to give it, else any pair of which it is not known what it gives.
        """
        colour, _, stuff = target.partition(" ")
        parts = [f"{part} {stuff}" for part in colour.split("-")]
        if len(parts) == 2:
            for part in parts:
                if part not in self._holders() and (yield from self._mix_here(part)) and shows_parts:
                    yield from self._try(f"focus on {part}")
            pairs = [tuple(parts)]
        else:
            here = sorted(content for content in self._holders() if content.endswith(f" {stuff}"))
            pairs = list(itertools.combinations(here, 2))
            pairs.sort(key=lambda pair: self._mixtures.get(frozenset(pair)) != target)
        for pair in pairs:
            if self._mixtures.get(frozenset(pair), target) != target:
                continue
            holder = yield from self._mixing_bowl(pair)
            if not holder:
                return False
            held = self._holders()
            for part in pair:
                if held.get(part) != holder:
                    yield from self._try(f"pour cup containing {part} in {holder}")
            yield from self._try(f"mix {holder}")
            if made := mixture(self._answer):
                self._mixtures[made[0]] = made[1]
                self._carried = {made[1]: holder} if self._carried else {}
            yield from self._ask("look around")
            if target in self._holders():
                return True
        return False

    def _mixing_bowl(self, pair: Sequence[str]) -> Asking:
        """The one thing of its name here that holds one of a pair or nothing, or is emptied; "" without one."""
        for held, holder in self._carried.items():
            if held not in (*pair, "nothing"):
                yield from self._try(f"pour {holder} in {self._room}")
            return holder
        look = self._looks.get(self._room, "").partition("You also see")[0].lower()
        named = _HELD_IN.findall(look)
        alone = {name: held for name, held in named if [other for other, _ in named].count(name) == 1}
        for wanted in (*pair, "nothing"):
            if found := next((name for name, held in alone.items() if held == wanted), ""):
                return found
        holder = next((name for name, held in alone.items() if held.endswith(pair[0].rpartition(" ")[2])), "")
        if not holder:  # all have names of several; the one that is carried is told from the others
            empty = next((name for name, held in named if held == "nothing"), "")
            if not empty or not (yield from self._try(f"pick up {empty}")):
                return ""
            self._carried = {"nothing": f"{empty} in inventory"}
            return f"{empty} in inventory"
        return holder if (yield from self._try(f"pour {holder} in {self._room}")) else ""

    def _mix_fetched(self, parts: Sequence[str]) -> Doing:
        """Whether the parts of a recipe were fetched into something that can be carried, and mixed there."""
        yield from self._open_all()
        held = yield from self._take_empty()
        planned = re.findall(r"mix ([a-z ]+)", self._plan)
        for name in planned if not held else ():
            held = held or ((yield from self._fetch(name)) and (yield from self._take_empty()))
        if not held:
            return False
        holder = self._picked
        # What is poured comes last, so that the holder can be set down under a tap.
        for part in sorted(parts, key=lambda part: part == "water"):
            if part == "water":
                yield from self._fill(holder)
            elif (yield from self._fetch(part)):
                name = next((n for n, held in _HELD_IN.findall(self._looks[self._room].lower()) if part in held), "")
                yield from self._try(f"pick up {part}")
                if not (yield from self._try(f"move {part} to {holder}")) and name:
                    yield from self._try(f"pour {name} into {holder}")
        return (yield from self._try(f"mix {holder}"))

    def _take_empty(self) -> Doing:
        """Whether something that holds nothing was picked up here, what the plan mixed in first."""
        empty = re.findall(_EMPTY, self._looks.get(self._room, "").lower())
        for name in sorted(empty, key=lambda name: name not in self._plan):
            if (yield from self._try(f"pick up {name}")):
                return True
        return False

    def _fill(self, holder: str) -> Doing:
        """Whether water was let into what is carried, at the first tap that works."""
        for room in sorted((r for r, look in self._looks.items() if "a sink" in look), key=lambda r: len(self._way(r))):
            if (yield from self._walk(room)) and (yield from self._try(f"move {holder} to sink")):
                filled = yield from self._try("activate sink")
                yield from self._try("deactivate sink")
                yield from self._try(f"pick up {holder}")
                if filled:
                    return True
        return False
