"""Several readers as one: each line is for the first that understands it.

    reader = FirstOf("my world", MyReader(), HOUSEHOLD, ENGLISH)

Where none understands a line, what one understood most of counts, and the line stays one that nobody understands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...types import Episode
from .reading import Event, Reader, Reading, of_lines

_UNREAD = Reading(understood=False)


class FirstOf:
    """As `reading.Reader`."""

    def __init__(self, name: str, *readers: Reader):
        self.name = name
        self.readers = readers

    def read(self, text: str) -> Reading:
        """As `Reader.read`."""
        if "\n" not in text:
            return self._first(text)
        lines = [line for line in text.splitlines() if line.strip()]
        readings = [self._first(line) for line in lines]
        unread = tuple(line for line, reading in zip(lines, readings) if not reading.understood)
        return of_lines(readings, unread)

    def _first(self, line: str) -> Reading:
        """The reading of one line."""
        most = _UNREAD
        for reader in self.readers:
            reading = reader.read(line)
            if reading.understood:
                return reading
            refused = most.refused or reading.refused
            if len(reading.facts) + len(reading.complete) >= len(most.facts) + len(most.complete):
                most = reading
            most = dataclasses.replace(most, refused=refused)
        return most

    def room(self, first_observation: str) -> str:
        """As `Reader.room`."""
        return self._reads(first_observation).room(first_observation)

    def place(self, first_observation: str) -> str:
        """As `Reader.place`, of the first reader that names one."""
        return next((place for reader in self.readers if (place := reader.place(first_observation))), "")

    def _reads(self, text: str) -> Reader:
        """The first reader that understands a text, or the first of all."""
        return next((reader for reader in self.readers if reader.read(text).understood), self.readers[0])

    def goal_object(self, goal: str) -> str:
        """As `Reader.goal_object`."""
        return next((kind for reader in self.readers if (kind := reader.goal_object(goal))), "")

    def events(self, episode: Episode) -> Sequence[Event]:
        """As `Reader.events`, of the first reader that finds any."""
        return next((events for reader in self.readers if (events := reader.events(episode))), [])
