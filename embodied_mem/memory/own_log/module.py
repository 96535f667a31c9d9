"""The protocol of a memory in a store: events in, bytes out, and removal of what must be forgotten.

    memory.check(event)                         # raises for what can never be applied: before it is recorded
    memory.apply(event)                         # all change; the same events give the same state
    data = memory.state()                       # the same state gives the same bytes
    memory.restore(data)
    memory.remove(Selector(object="mug 1"))     # {"facts": 3, ...}: how much of what was removed

A state is one line of JSON in UTF-8 without escapes, then the parts that are bytes already; the line has their lengths.
Texts stand in parts as UTF-8, too, so that a search of the bytes finds every text that is in them.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, Self

from ...errors import InvalidInputError
from ..arguments import checked_call, checked_number, checked_text, shown
from ..graph import Scope, checked_scope
from ..mentions import folded, looks_like, names, normal

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Selector:
    """What to forget: exactly one of a user, an object, an episode, an entry and everything.

    Attributes:
        user: name of somebody who spoke, in any case and Unicode form: what this user said is meant, and, of the user
            of the scope, the profile; not what sensors saw.
        object: a thing ("mug 1") or a whole class ("mug"). Whatever names it is meant, so "desk" goes for
            "desk lamp 1" too; case, Unicode form, singular and plural make no difference.
        episode: its number.
        entry: its id, as `LifelongMemory.get` takes it: "notes:12".
        everything: True for all that a scope holds.

    Raises:
        InvalidInputError: not exactly one of them, or a value that names nothing.
    """

    user: str | None = None
    object: str | None = None
    episode: int | None = None
    entry: str | None = None
    everything: bool | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) != 1:
            got = shown(given) if given else "none"
            expected = "expected one of user, object and episode, or an entry, or everything"
            raise InvalidInputError(f"selector: {expected}, got {got}")
        ((kind, value),) = given.items()
        if kind == "episode":
            value = checked_number("selector: episode", value)
        elif kind == "everything":
            if value is not True:
                raise InvalidInputError(f"selector: everything: expected True, got {shown(value)}")
        elif not normal(checked_text(f"selector: {kind}", value)).strip(" _\t\n\r"):
            raise InvalidInputError(f"selector: {kind}: expected a name, got {shown(value)}")
        object.__setattr__(self, kind, value)

    @property
    def kind(self) -> Literal["user", "object", "episode", "entry", "everything"]:
        if self.everything is not None:
            return "everything"
        if self.entry is not None:
            return "entry"
        return "user" if self.user is not None else "object" if self.object is not None else "episode"

    @property
    def value(self) -> int | str:
        value: int | str = getattr(self, self.kind)
        return value

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        return names(self.object or "")

    def in_text(self, text: str) -> bool:
        """Whether a text names the object."""
        return self.object is not None and self._pattern.search(folded(text)) is not None

    def is_like(self, text: str) -> bool:
        """Whether a text may name the object in a form that `in_text` does not decide."""
        return self.object is not None and looks_like(self.object, text)

    def is_name(self, name: str) -> bool:
        """Whether this is the very name of the user or object, in whatever Unicode form and case."""
        return self.kind in ("user", "object") and folded(name).split() == folded(str(self.value)).split()

    def is_entry(self, module: str, number: int | str) -> bool:
        """Whether this is the entry of a module under a number."""
        return self.entry == f"{module}:{number}"

    def number_in(self, module: str) -> str:
        """The number of the entry, if it is one of this module; else empty."""
        name, _, number = (self.entry or "").partition(":")
        return number if name == module else ""

    def is_user_of(self, scope: Scope) -> bool:
        """Whether the user of a scope is meant, who is called "user" where the scope gives no name."""
        return self.user is not None and self.is_name(scope.user or "user")


class MemoryModule(Protocol):
    """A memory as its keeper sees it. The same events in the same order give the same `state()`."""

    def check(self, event: dict[str, Any]) -> None:
        """Raise InvalidInputError for an event that `apply` could not do in any state; nothing changes.

        The store asks before it records an event, so one that is malformed is never acknowledged.
        """

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


def restoring(restore: Callable[..., None]) -> Callable[..., None]:
    """A `restore` that raises InvalidInputError for whatever it cannot read."""

    @functools.wraps(restore)
    def checked(*arguments: Any, **named: Any) -> None:
        try:
            restore(*arguments, **named)
        except InvalidInputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"state: expected what state() returned, got other bytes ({shown(error)})"
            ) from error

    return checked


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
    if not isinstance(data, bytes):
        raise InvalidInputError(f"state: expected bytes, got {shown(data)}")
    end = data.find(b"\n")
    try:
        state = json.loads(data[: max(end, 0)].decode("utf-8", "surrogatepass"))
        found = state["format"], state["version"]
        lengths = [int(length) for length in state.pop("parts")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
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


class RecordedModule(abc.ABC):
    """A memory of one scope, all of whose changes are events.

    Args:
        scope: whose it is.
        record: gets every event and must have `apply` called with it; None for `apply` itself.
    """

    format_name: ClassVar[str]

    def __init__(self, scope: Scope | None, record: Callable[[dict[str, Any]], Any] | None):
        self.scope = checked_scope(scope)
        self._record = self.apply if record is None else checked_call("record", record)

    @abc.abstractmethod
    def check(self, event: Mapping[str, Any]) -> None:
        """Raise InvalidInputError for an event that cannot be applied."""

    @abc.abstractmethod
    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`."""

    def apply(self, event: Mapping[str, Any]) -> None:
        """Do what an event says. Raises InvalidInputError for one that cannot be applied; nothing has changed then."""
        self.check(event)
        self.apply_checked(event)

    def state(self) -> bytes:
        """All that is remembered, as bytes; vectors are made anew."""
        data, *parts = self._state()
        return write_state(self.format_name, {"scope": dataclasses.asdict(self.scope), **data}, *parts)

    @restoring
    def restore(self, data: bytes) -> None:
        """Become what `state` returned. Raises InvalidInputError for other bytes; nothing has changed then."""
        state, parts = read_state(self.format_name, data)
        check_scope(state, self.scope)
        self._restore(state, parts)

    @abc.abstractmethod
    def _state(self) -> tuple[Any, ...]:
        """What is written beside the scope, then the parts that are bytes."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        """Become what `_state` returned, or raise and be as before."""

    @abc.abstractmethod
    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names; counts by kind of record."""

    def fork(self) -> Self:
        """An independent copy that records nowhere."""
        other = copy.copy(self)
        other._record = other.apply
        return other
