"""What every memory promises to whatever keeps it on disk: events in, bytes out, and forgetting that removes.

    memory.apply(event)                 # all change; the same events give the same state
    data = memory.state()               # the same state gives the same bytes
    memory.restore(data)
    memory.forget({"object": "mug 1"})  # {"facts": 3, ...}: how much of what was removed

States are JSON in UTF-8 without escapes, so that a search of the bytes finds every text that is in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from ..errors import InvalidInputError

VERSION = 1


class KindAndValue(Protocol):
    """A selector as an object: `kind` "user", "object" or "episode", and whose, which or what number."""

    @property
    def kind(self) -> str: ...

    @property
    def value(self) -> str | int: ...


AnySelector = Mapping[str, str | int] | KindAndValue


class StateMachine(Protocol):
    """A memory as its keeper sees it."""

    def apply(self, event: Mapping[str, Any]) -> None:
        """Do what an event says."""
        ...

    def state(self) -> bytes:
        """All that is remembered."""
        ...

    def restore(self, data: bytes) -> None:
        """Become what `state` returned."""
        ...

    def forget(self, selector: AnySelector) -> dict[str, int]:
        """Remove what a selector names and return how much of what."""
        ...


class Selector:
    """What to forget: one of `{"user": name}`, `{"object": name}`, `{"episode": number}`, or the same as an object.

    An object is a thing ("mug 1") or a whole class ("mug"). Whatever names it is meant, so "desk" goes for
    "desk lamp 1" too; upper and lower case are the same.
    """

    def __init__(self, selector: AnySelector):
        """Raises InvalidInputError for anything else."""
        given = selector if isinstance(selector, Mapping) else {selector.kind: selector.value}
        if len(given) != 1 or next(iter(given)) not in ("user", "object", "episode"):
            raise InvalidInputError(f"selector: expected one of user, object or episode, got {dict(given)!r}")
        ((self.kind, value),) = given.items()
        if self.kind == "episode" and isinstance(value, str) and value.isdecimal():
            value = int(value)
        number = isinstance(value, int) and not isinstance(value, bool)
        if number != (self.kind == "episode") or value == "":
            raise InvalidInputError(f"selector: expected a name, or a number for an episode, got {dict(given)!r}")
        self.user = str(value) if self.kind == "user" else None
        self.episode = int(value) if self.kind == "episode" else None
        self.object = " ".join(str(value).lower().split()) if self.kind == "object" else None
        words = r"[\s_]+".join(map(re.escape, (self.object or "").split()))
        self._pattern = re.compile(rf"(?<!\w){words}(?:e?s)?(?![^\W\d_])(?!\d)", re.IGNORECASE)

    def in_text(self, text: str) -> bool:
        """Whether a text names the object."""
        return self.object is not None and self._pattern.search(text) is not None


def write_state(format_name: str, data: Mapping[str, Any]) -> bytes:
    """Bytes of a state."""
    whole = {"format": format_name, "version": VERSION, **data}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def read_state(format_name: str, data: bytes) -> dict[str, Any]:
    """The state that `write_state` wrote.

    Raises:
        InvalidInputError: not JSON, or of another format or version.
    """
    try:
        state = json.loads(data.decode("utf-8", "surrogatepass"))
        found = state["format"], state["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"state: expected {format_name} as JSON, got {data[:60]!r}; it is damaged") from error
    if found != (format_name, VERSION):
        raise InvalidInputError(f"state: expected {format_name} version {VERSION}, got {found[0]} version {found[1]}")
    return state
