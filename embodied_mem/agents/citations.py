"""Where guidance comes from, and whether its source says so. No jax.

cite(2)                                   # "memory 2", the reason of guidance that the second experience gives
is_supported(output, view)                # True, False, or None for guidance that claims no experience
"""

from __future__ import annotations

import re

from embodied_mem.agents.view import View
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.memory import Experience

FOUND_BEFORE = "found there before"
"""Reason of guidance from an experience where experiences have no numbers."""

_CITED = re.compile(r"memory (\d+)")


def cite(number: int) -> str:
    """The reason of guidance that experience `number` gives; 0 where experiences have no numbers."""
    return f"memory {number}" if number else FOUND_BEFORE


def is_supported(output: CompilerOutput, view: View) -> bool | None:
    """Whether the experience that the reason names says what the guidance `find X in P` says.

    Without a number any experience of the episode will do. An experience of this room has to name the very place, one
    from elsewhere a place of its kind. None if the reason names no experience.
    """
    cited = _CITED.fullmatch(output.reason)
    if not cited and output.reason != FOUND_BEFORE:
        return None
    named = [e for e in view.experiences if not cited or e.number == int(cited[1])]
    action, _, place = output.guidance.rpartition(" in ")
    return any(_says(experience, action.partition(" ")[2], place) for experience in named)


def _says(experience: Experience, thing: str, place: str) -> bool:
    kind = place.rstrip("0123456789 ")
    where = re.escape(place) if experience.same_room else rf"{re.escape(kind)} \d+"
    clause = re.compile(rf"\b{re.escape(thing)}\b.* in {where}\Z")
    return bool(thing and kind) and any(clause.search(part) for part in experience.brief().split("; "))
