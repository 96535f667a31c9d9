"""Where guidance comes from, and whether its source says so. No jax.

cite(2)                                   # "memory 2", the reason of guidance that the second experience gives
is_supported(output, view)                # True, False, or None for guidance that claims no experience
"""

from __future__ import annotations

import re

from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.compiler.prompts import plain_goal
from embodied_mem.compiler.view import View
from embodied_mem.memory import Experience

FOUND_BEFORE = "found there before"
"""Reason of guidance from an experience where experiences have no numbers."""

_GUIDANCE = re.compile(r"(?P<verb>\w+) (?P<thing>.+) (?:in|with) (?P<place>.+)", re.DOTALL)
_DONE = {"put": "placed in", "clean": "cleaned at", "heat": "heated in", "cool": "cooled in"}
_CITED = re.compile(r"memory (\d+)")


def cite(number: int) -> str:
    """Return the reason of guidance that experience `number` gives.

    `number` is 0 where experiences have no numbers.
    """
    return f"memory {number}" if number else FOUND_BEFORE


def is_from_memory(text: str) -> bool:
    """Decide whether the reason of an output's text is an experience."""
    reason = text.rpartition("\nwhy: ")[2]
    return reason == FOUND_BEFORE or bool(_CITED.fullmatch(reason))


def is_supported(output: CompilerOutput, view: View, by_any: bool = False) -> bool | None:
    """Tell whether the experience that the reason names supports the guidance.

    Guidance reads `find X in P`. Without a number any experience of the episode will do. An experience of this room has
    to name the very place, one from elsewhere a place of its kind. Guidance to put, clean, heat or cool something says
    it of any thing, if the goal of the experience is this one but for the thing. None if the reason names no
    experience. `by_any` asks whether any experience of the episode says it, whichever is named: then the source is
    wrong, and the guidance is not made up.
    """
    cited = _CITED.fullmatch(output.reason)
    if not cited and output.reason != FOUND_BEFORE:
        return None
    named = [e for e in view.experiences if by_any or not cited or e.number == int(cited[1])]
    said = _GUIDANCE.fullmatch(output.guidance)
    if not said:
        return False
    if said["verb"] in _DONE:
        asked = _but_thing(view.goal, view)
        alike = (e for e in named if _but_thing(e.episode.goal, view) == asked)
        return any(_says(e, _DONE[said["verb"]], said["place"]) for e in alike)
    return any(_says(e, rf"\b{re.escape(said['thing'])}\b.* in", said["place"]) for e in named)


def _but_thing(goal: str, view: View) -> str:
    """Return the goal without the thing that it is about."""
    return plain_goal(goal).lower().replace(f" {view.reader.goal_object(goal)} ", " ")


def _says(experience: Experience, said: str, place: str) -> bool:
    kind = place.rstrip("0123456789 ")
    where = re.escape(place) if experience.same_room else rf"{re.escape(kind)} \d+"
    clause = re.compile(rf"{said} {where}\Z")
    return bool(kind) and any(clause.search(part) for part in experience.brief().split("; "))
