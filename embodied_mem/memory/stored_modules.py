"""Memory modules whose changes are events, and the bytes of their states.

A module is a deterministic state machine (`MemoryModule`): the same events give the same state. `store.MemoryStore`
writes each event to the disk and applies it; `Selector` names the thing to forget.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from ..errors import InvalidInputError
from .arguments import checked_call, checked_number, checked_text, shown
from .graph import Scope, checked_scope
from .people import ROLES
from .words import folded, looks_like, names, normal

_STATE_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Selector:
    """The thing to forget: exactly one of a user, an object, an episode, an entry and everything.

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
        fields = {name: value for name, value in vars(self).items() if value is not None}
        if len(fields) != 1:
            got = shown(fields) if fields else "none"
            expected = "expected one of user, object and episode, or an entry, or everything"
            raise InvalidInputError(f"selector: {expected}, got {got}")
        ((kind, value),) = fields.items()
        if kind == "episode":
            value = checked_number("selector: episode", value)
        elif kind == "everything":
            if value is not True:
                raise InvalidInputError(f"selector: everything: expected True, got {shown(value)}")
        elif not normal(checked_text(f"selector: {kind}", value)).strip(" _\t\n\r"):
            raise InvalidInputError(f"selector: {kind}: expected a name, got {shown(value)}")
        object.__setattr__(self, kind, value)

    @property
    def kind(self) -> str:
        """The name of the field that is given."""
        return next(field.name for field in dataclasses.fields(self) if getattr(self, field.name) is not None)

    @property
    def value(self) -> Any:
        return getattr(self, self.kind)

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        return names(self.object or "")

    def with_names(self, other_names: Iterable[str]) -> Selector:
        """Return this selector with other names of its object."""
        wide, pieces = copy.copy(self), [names(name).pattern for name in (self.object or "", *other_names)]
        vars(wide)["_pattern"] = re.compile("|".join(f"(?:{piece})" for piece in pieces))
        return wide

    def in_text(self, text: str) -> bool:
        """Test a text for the object's name."""
        return self.object is not None and self._pattern.search(folded(text)) is not None

    def is_like(self, text: str) -> bool:
        """Test for a form of the object's name that `in_text` misses."""
        return self.object is not None and looks_like(self.object, text)

    def is_name(self, name: str) -> bool:
        """Test for the selector's name in any Unicode form and case."""
        meant = self.user or self.object
        return meant is not None and folded(name).split() == folded(meant).split()

    def is_entry(self, module: str, number: int | str) -> bool:
        """Test for the entry of a module under a number."""
        return self.entry == f"{module}:{number}"

    def number_in(self, module: str) -> str:
        """Return the entry's number in this module; else ""."""
        name, _, number = (self.entry or "").partition(":")
        return number if name == module else ""

    def is_user_of(self, scope: Scope) -> bool:
        """Test for the user of a scope, by default called "user"."""
        return self.user is not None and self.is_name(scope.user or "user")

    def is_speaker(self, name: str, scope: Scope) -> bool:
        """Test for the user's name; a scope's user has chat roles too."""
        return self.user is not None and (self.is_name(name) or (normal(name) in ROLES and self.is_user_of(scope)))


class MemoryModule(Protocol):
    """A memory as its keeper sees it. The same events in the same order give the same `state()`."""

    def check(self, event: dict[str, Any]) -> None:
        """Raise InvalidInputError for an event that no state can apply."""

    def apply(self, event: dict[str, Any]) -> Any:
        """Apply the event; return what `MemoryStore.record` returns.

        Raises InvalidInputError, having changed nothing; whatever else it raises closes the store.
        """

    def state(self) -> bytes:
        """Return everything that `restore` needs."""

    def restore(self, data: bytes) -> None:
        """Take a state in place of the present one."""

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names from the state; return counts by kind."""


def restoring(restore: Callable[..., None]) -> Callable[..., None]:
    """Return a `restore` that raises InvalidInputError for whatever it cannot read."""

    @functools.wraps(restore)
    def guard(*arguments: Any, **options: Any) -> None:
        try:
            restore(*arguments, **options)
        except InvalidInputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"state: expected what state() returned, got other bytes ({shown(error)})"
            ) from error

    return guard


def write_state(format_name: str, data: Mapping[str, Any], *parts: bytes) -> bytes:
    """Return the bytes of a state."""
    whole = {"format": format_name, "version": _STATE_VERSION, **data, "parts": [len(part) for part in parts]}
    line = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return b"".join((line, b"\n", *parts))


def read_state(format_name: str, data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the data and the parts that `write_state` wrote.

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
    if found != (format_name, _STATE_VERSION):
        raise InvalidInputError(
            f"state: expected {format_name} version {_STATE_VERSION}, got {found[0]} version {found[1]}"
        )
    parts, offset = [], end + 1
    for length in lengths:
        parts.append(data[offset : offset + length])
        offset += length
    if offset != len(data):
        raise InvalidInputError(f"state: expected {offset} bytes of {format_name}, got {len(data)}; it is damaged")
    return state, parts


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
        """Apply an event; for an impossible one raise InvalidInputError and change nothing."""
        self.check(event)
        self.apply_checked(event)

    def state(self) -> bytes:
        """Return all that is remembered, as bytes; vectors are made anew."""
        data, *parts = self._state()
        return write_state(self.format_name, {"scope": dataclasses.asdict(self.scope), **data}, *parts)

    @restoring
    def restore(self, data: bytes) -> None:
        """Restore what `state` returned; for other bytes raise InvalidInputError and change nothing."""
        state, parts = read_state(self.format_name, data)
        if state["scope"] != dataclasses.asdict(self.scope):
            raise InvalidInputError(f"state: expected the scope {self.scope}, got {state['scope']}")
        self._restore(state, parts)

    @abc.abstractmethod
    def _state(self) -> tuple[Any, ...]:
        """Return the JSON fields beside the scope, then the byte parts."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        """Restore what `_state` returned, or raise and stay as before."""

    @abc.abstractmethod
    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names; return counts by kind of record."""

    def fork(self) -> Self:
        """Return an independent copy that records nowhere."""
        other = copy.copy(self)
        other._record = other.apply
        return other
