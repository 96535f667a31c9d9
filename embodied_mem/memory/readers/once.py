"""Reads the last texts once, however many memories ask what it says.

reader = ReadOnce(HOUSEHOLD)
reader.read(text) is reader.read(text)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from ...errors import InvalidInputError
from ...types import Episode
from ..arguments import shown
from .reading import Event, Reader, Reading

Value = TypeVar("Value")

_MAX_KEPT = 8  # a text and its lines
_UNREAD = Reading(understood=False)


class ReadOnce:
    """A reader that keeps the last texts and their readings. Any thread may ask.

    Whatever a reader raises is counted, and the text is one that it does not understand.

    Attributes:
        name: the reader's.
        failed: readings that raised something, or were none.
        last_error: the last reason; empty if there was none.
    """

    def __init__(self, reader: Reader):
        if not isinstance(getattr(reader, "name", None), str) or not callable(getattr(reader, "read", None)):
            raise InvalidInputError(f"reader: expected one with a name and read(text), got {shown(reader)}")
        self.name = reader.name
        self.failed, self.last_error = 0, ""
        self._reader = reader
        self._last: dict[str, Reading] = {}

    def read(self, text: str) -> Reading:
        """As `Reader.read`."""
        reading = self._last.get(text)
        if reading is None:
            reading = self._asked(_UNREAD, Reading, "read", text)
            self._last = self._last | {text: reading} if len(self._last) < _MAX_KEPT else {text: reading}
        return reading

    def _asked(self, otherwise: Value, kind: type, method: str, argument: Any) -> Value:
        """What the reader answers, or `otherwise` if it raises anything, or answers with another type."""
        try:
            answer = getattr(self._reader, method)(argument)
            if not isinstance(answer, kind):
                raise InvalidInputError(f"reader: {method}: expected a {kind.__name__}, got {shown(answer)}")
        except Exception as error:  # of the caller's reader: no list of types would have them all
            self.failed, self.last_error = self.failed + 1, shown(error)
            return otherwise
        return cast(Value, answer)

    def clear(self) -> None:
        """Keep no text."""
        self._last = {}

    def room(self, first_observation: str) -> str:
        """As `Reader.room`."""
        return self._asked(" ".join(first_observation.split()), str, "room", first_observation)

    def place(self, first_observation: str) -> str:
        """As `Reader.place`."""
        return self._asked("", str, "place", first_observation)

    def goal_object(self, goal: str) -> str:
        """As `Reader.goal_object`."""
        return self._asked("", str, "goal_object", goal)

    def events(self, episode: Episode) -> Sequence[Event]:
        """As `Reader.events`."""
        return self._asked((), Sequence, "events", episode)
