"""Reads the last text once, however many memories ask what it says.

reader = ReadOnce(HOUSEHOLD)
reader.read(text) is reader.read(text)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...types import Episode
from .reading import Event, Reader, Reading


class ReadOnce:
    """A reader that keeps the last text and its reading. Any thread may ask."""

    def __init__(self, reader: Reader):
        self.name = reader.name
        self._reader = reader
        self._last: tuple[str, Reading | None] = ("", None)

    def read(self, text: str) -> Reading:
        """As `Reader.read`."""
        last, reading = self._last
        if reading is None or last != text:
            reading = self._reader.read(text)
            self._last = text, reading
        return reading

    def clear(self) -> None:
        """Keep no text."""
        self._last = ("", None)

    def room(self, first_observation: str) -> str:
        """As `Reader.room`."""
        return self._reader.room(first_observation)

    def place(self, first_observation: str) -> str:
        """As `Reader.place`."""
        return self._reader.place(first_observation)

    def goal_object(self, goal: str) -> str:
        """As `Reader.goal_object`."""
        return self._reader.goal_object(goal)

    def events(self, episode: Episode) -> Sequence[Event]:
        """As `Reader.events`."""
        return self._reader.events(episode)
