"""What every memory promises to whatever keeps it on disk: events in, bytes out, and removal of what must be forgotten.

    memory.apply(event)                         # all change; the same events give the same state
    data = memory.state()                       # the same state gives the same bytes
    memory.restore(data)
    memory.remove(Selector(object="mug 1"))     # {"facts": 3, ...}: how much of what was removed

A state is one line of JSON in UTF-8 without escapes, then the parts that are bytes already; the line has their lengths.
Texts stand in parts as UTF-8, too, so that a search of the bytes finds every text that is in them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from ..errors import InvalidInputError
from .facts import Scope

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Selector:
    """What to forget: exactly one of a user, an object and an episode.

    Attributes:
        user: name of a scope's user; all that is kept for this user is meant.
        object: a thing ("mug 1") or a whole class ("mug"). Whatever names it is meant, so "desk" goes for
            "desk lamp 1" too; upper and lower case are the same.
        episode: its number.
    """

    user: str | None = None
    object: str | None = None
    episode: int | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        if len(given) != 1:
            raise InvalidInputError(f"selector: expected one of user, object and episode, got {given or 'none'}")
        number = isinstance(self.value, int) and not isinstance(self.value, bool)
        name = isinstance(self.value, str) and bool(self.value.strip())
        if not (number if self.kind == "episode" else name):
            raise InvalidInputError(f"selector: expected a name, or a number for an episode, got {given}")

    @property
    def kind(self) -> Literal["user", "object", "episode"]:
        return "user" if self.user is not None else "object" if self.object is not None else "episode"

    @property
    def value(self) -> int | str:
        return getattr(self, self.kind)

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = r"[\s_]+".join(map(re.escape, (self.object or "").split()))
        return re.compile(rf"(?<!\w){words}(?:e?s)?(?![^\W\d_])(?!\d)", re.IGNORECASE)

    def in_text(self, text: str) -> bool:
        """Whether a text names the object."""
        return self.object is not None and self._pattern.search(text) is not None

    def is_all_of(self, scope: Scope) -> bool:
        """Whether everything of a scope is meant, because it is its user's."""
        return self.user is not None and self.user == scope.user


class MemoryModule(Protocol):
    """A memory as its keeper sees it. The same events in the same order give the same `state()`."""

    def apply(self, event: dict[str, Any]) -> Any:
        """Do what the event says, and return what the caller of `MemoryStore.record` shall get.

        Raises InvalidInputError, always for the same events in the same state, having changed nothing; whatever else
        it raises closes the store.
        """

    def state(self) -> bytes:
        """Return everything that `restore` needs."""

    def restore(self, data: bytes) -> None:
        """Take a state in place of the present one."""

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names from everything that `state` returns; return counts by kind of record."""


def write_state(format_name: str, data: Mapping[str, Any], *parts: bytes) -> bytes:
    """Bytes of a state."""
    whole = {"format": format_name, "version": VERSION, **data, "parts": [len(part) for part in parts]}
    line = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return b"".join((line, b"\n", *parts))


def read_state(format_name: str, data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The data and the parts that `write_state` wrote.

    Raises:
        InvalidInputError: other bytes, cut, or of another format or version.
    """
    end = data.find(b"\n")
    try:
        state = json.loads(data[: max(end, 0)].decode("utf-8", "surrogatepass"))
        found = state["format"], state["version"]
        lengths = [int(length) for length in state.pop("parts")]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"state: expected {format_name}, a line of JSON first, got {data[:60]!r}; it is damaged"
        ) from error
    if found != (format_name, VERSION):
        raise InvalidInputError(f"state: expected {format_name} version {VERSION}, got {found[0]} version {found[1]}")
    parts, offset = [], end + 1
    for length in lengths:
        parts.append(data[offset : offset + length])
        offset += length
    if offset != len(data):
        raise InvalidInputError(f"state: expected {offset} bytes of {format_name}, got {len(data)}; it is damaged")
    return state, parts


def check_scope(state: Mapping[str, Any], scope: Scope) -> None:
    """Raise InvalidInputError unless the state is of this scope."""
    if state["scope"] != dataclasses.asdict(scope):
        raise InvalidInputError(f"state: expected the scope {scope}, got {state['scope']}")
