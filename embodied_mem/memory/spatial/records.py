"""How nodes of a spatial graph are named, and what is known of a fact.

joined("home", "mug 1")              # "home/mug 1"
split("home/mug 1")                  # ("home", "mug 1")
Seen(time=3, episode=0, step=2)
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

HOLDS = "holds"
AT = "at"
STATE = "is"
"""Its objects are words like "open", which have neither place nor class."""

SEPARATOR = "/"


class Seen(NamedTuple):
    """When something was seen."""

    time: int
    episode: int
    step: int


@dataclasses.dataclass(slots=True)
class Known:
    """A fact with its names; text, data and id are filled when it is rendered; `sure` is None without a confidence."""

    subject: str
    relation: str
    object: str
    subject_id: int
    object_id: int
    seen: Seen
    sure: float | None = None
    text: str = ""
    data: tuple[str, str, str] | None = None
    id: str = ""


def split(node: str) -> tuple[str, str]:
    """(place, name) of a node."""
    place, _, name = node.rpartition(SEPARATOR)
    return place, name


def joined(place: str, name: str) -> str:
    """The node of a thing in a place."""
    return f"{place}{SEPARATOR}{name}" if place else name
