"""What EB-ALFRED's answers say of the view: `In view: Fridge (open) with Egg, Cup; Mug.` and `In hand: Pan.`"""

from __future__ import annotations

import re
from typing import NamedTuple

_VIEW = re.compile(r"^In view: (.*)\.\nIn hand: (.*)\.", re.MULTILINE)


class Item(NamedTuple):
    """A thing in view.

    Attributes:
        name: of it.
        states: "open", "closed, hot", ...; empty if none is told.
        things: in or on it, those in them behind them; none if none are told.
    """

    name: str
    states: str
    things: list[str]


class View(NamedTuple):
    """Things in view, and the name of what is in the hand or "nothing"."""

    items: list[Item]
    hand: str


def read_view(observation: str) -> View | None:
    """The view that an answer tells; None if it tells none."""
    found = _VIEW.search(observation)
    if not found:
        return None
    items = []
    for item in found[1].split("; "):
        head, _, contents = item.partition(" with ")
        name, _, states = head.partition(" (")
        if name != "nothing":
            things = [_bare(thing) for thing in re.split(r", | with ", contents)] if contents else []
            items.append(Item(name, states.rstrip(")"), things))
    return View(items, _bare(found[2].partition(" with ")[0]))


def _bare(name: str) -> str:
    return name.partition(" (")[0]
