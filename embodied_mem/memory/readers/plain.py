"""A reader without rules: every text stays a text. For worlds that no rule reads."""

from __future__ import annotations

from ...types import Episode
from .reading import Event, Reading

_UNKNOWN = Reading(understood=False)


class PlainReader:
    """As `reading.Reader`, and understands nothing."""

    name = "plain"

    def read(self, text: str) -> Reading:
        return _UNKNOWN

    def room(self, first_observation: str) -> str:
        return " ".join(first_observation.split())

    def place(self, first_observation: str) -> str:
        return ""

    def goal_object(self, goal: str) -> str:
        return ""

    def events(self, episode: Episode) -> list[Event]:
        return []


PLAIN = PlainReader()
