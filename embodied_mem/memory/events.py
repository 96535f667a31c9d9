"""Events: all change of a memory, one type for each kind, and one check before an event is recorded.

    check(TemporalEvent, "temporal event", event)       # raises InvalidInputError: where, expected, got

An event of a `LifelongMemory` says what was done, in which task and when, and has those of its modules in "events". The
types of spatial memory's and the profile's stand with them.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin

from ..errors import InvalidInputError
from .arguments import (
    LEAST,
    MOST,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_real,
    checked_rows,
    checked_text,
    shown,
)
from .trust import Trust

Count = Annotated[int, 0]
"""A whole number from 0 on."""
Value = str | int | float | bool | None
Labels = dict[str, Value]


class When(TypedDict):
    """In which task, at which step and when."""

    episode: int
    step: int
    time: int


class Begin(When):
    """A task begins; with `room`, its place is a room of the home."""

    op: Literal["begin"]
    task_id: str
    goal: str
    observation: str
    place: str
    room: NotRequired[bool | None]
    events: dict[str, Any]


class Step(When):
    """An action and its answer; `failed` where the world knows it."""

    op: Literal["step"]
    action: str
    observation: str
    failed: NotRequired[bool | None]
    trust: NotRequired[Trust | None]
    events: dict[str, Any]


class Tell(TypedDict):
    """Something is said; `again`: a recalled text came back, as a reference to this record."""

    op: Literal["tell"]
    episode: NotRequired[int]
    step: NotRequired[int]
    time: NotRequired[int | None]
    again: NotRequired[str]
    trust: NotRequired[Trust | None]
    events: dict[str, Any]


class Edit(TypedDict):
    """A note gets another text, or a review corrects the graph."""

    op: Literal["edit"]
    time: NotRequired[int | None]
    events: dict[str, Any]


class End(TypedDict):
    """A task ends."""

    op: Literal["end"]
    time: NotRequired[int | None]
    events: dict[str, Any]


class Import(TypedDict):
    """An empty memory becomes what was exported."""

    op: Literal["import"]
    text: str
    events: dict[str, Any]


LifelongEvent = Begin | Step | Tell | Edit | End | Import


class AddNote(TypedDict):
    """A text is new."""

    do: Literal["add"]
    text: str
    kind: str
    speaker: str
    when: str
    action: str
    labels: Labels | None
    claims: Count
    denials: Count
    replaces: NotRequired[list[Count]]
    trust: NotRequired[Trust]


class RepeatNote(TypedDict):
    """A text is said again; it replaces what was said since."""

    do: Literal["repeat"]
    id: Count
    replaces: NotRequired[list[Count]]


class EndClaim(TypedDict):
    """One claim of a note is over, as another note says."""

    do: Literal["end"]
    id: Count
    claim: Count
    by: Count


class UpdateNote(TypedDict):
    """A note gets another text, with what that claims, or other labels."""

    do: Literal["update"]
    id: Count
    text: NotRequired[str]
    labels: NotRequired[Labels | None]
    claims: NotRequired[Count]
    denials: NotRequired[Count]
    replaces: NotRequired[list[Count]]


class NotesEvent(When):
    """Changes of notes."""

    op: Literal["change"]
    changes: list[AddNote | RepeatNote | EndClaim | UpdateNote]


class EntryChange(TypedDict):
    """One change of an entry of episodic or semantic memory; of a new one all data is there."""

    do: Literal["add", "update", "delete"]
    key: str
    text: NotRequired[str]
    about: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    support: NotRequired[list[tuple[int, int | None, str]]]


class Lived(TypedDict):
    """The episode that changes come from: why it ended so, and where its goal's things were taken."""

    number: Count
    why: str
    places: list[str]


class EntriesEvent(TypedDict):
    """Changes of entries."""

    op: Literal["change"]
    time: int
    changes: list[EntryChange]
    lived: NotRequired[Lived]


class BeginBuffer(TypedDict):
    """The temporal memory is emptied for a task."""

    op: Literal["begin"]
    episode: int
    time: int


class ObserveStep(When):
    """A step enters the temporal memory; `said` and `summary` are what a model wrote."""

    op: Literal["observe"]
    action: str
    text: str
    failed: NotRequired[bool | None]
    trust: NotRequired[Trust | None]
    said: NotRequired[str | None]
    summary: NotRequired[str | None]


TemporalEvent = BeginBuffer | ObserveStep


class ImageRow(TypedDict):
    """A stored image."""

    hash: str
    path: NotRequired[str]
    data: NotRequired[str]
    bytes: NotRequired[Count]
    shape: NotRequired[list[Count]]
    labels: NotRequired[Labels | None]


class ViewEvent(When):
    """A view enters; `shows` are texts about what is in its images."""

    op: Literal["see"]
    pose: NotRequired[list[float]]
    clock: NotRequired[float]
    images: NotRequired[list[ImageRow]]
    shows: NotRequired[list[str]]


Check = Callable[[str, Any], Any]


def check(kind: Any, where: str, value: Any) -> None:
    """Raise InvalidInputError naming the field of a mistyped value.

    Args:
        kind: int, str, bool, float, Any, Literal, Annotated[int, least], list, dict, tuple, TypedDict, a dataclass, a
            NamedTuple, or a union; TypedDicts of a union are told apart by "op" or "do".
        where: what the error begins with.
        value: as JSON reads it.
    """
    checker(kind)(where, value)


@functools.cache
def checker(kind: Any, field: str = "") -> Check:
    """Make a (where, value) type check; `field` is for errors."""
    origin, options = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda where, value: None
    if kind in _SIMPLE:
        return functools.partial(_SIMPLE[kind], field)
    if origin is Annotated:
        return functools.partial(_SIMPLE[options[0], len(options)], field, *options[1:])
    if origin is Literal:
        return functools.partial(_word, field, options)
    if origin in (Union, types.UnionType):
        return _union(field, options)
    if origin is list:
        return functools.partial(_list, field, checker(options[0], field))
    if origin is tuple and options[-1] is Ellipsis:
        return functools.partial(_list, field, checker(options[0], field))
    if origin is tuple:
        return functools.partial(_row, field, [checker(option, field) for option in options])
    if kind == dict[str, Any]:
        return functools.partial(_SIMPLE[dict], field)
    if origin is dict:
        return functools.partial(_dict, field, checker(options[1], field))
    hints = typing.get_type_hints(kind, include_extras=True)
    if hasattr(kind, "_fields"):  # a NamedTuple
        return functools.partial(_row, field, [checker(hints[name], f"{field}: {name}") for name in kind._fields])
    return _union(field, (kind,)) if "op" in hints else _fields_of(kind, hints, field)


def _fields_of(kind: Any, hints: Mapping[str, Any], field: str, told_by: str = "") -> Check:
    """Make the check of a TypedDict or dataclass without `told_by`."""
    if dataclasses.is_dataclass(kind):
        optional = {one.name for one in dataclasses.fields(kind) if one.default is not dataclasses.MISSING}
        names = set(hints)
    else:
        optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
        names = set()
    required = [name for name in hints if name not in optional and name != told_by]
    numbers = [(name, f"{field}: {name}") for name in required if hints[name] is int]
    texts = [(name, f"{field}: {name}") for name in required if hints[name] is str]
    rest = []
    for name, hint in hints.items():
        if name != told_by and (name in optional or hint not in (int, str)):
            bare = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
            rest.append((name, checker(bare, f"{field}: {name}"), name not in optional))
    return functools.partial(_fields, field, numbers, texts, rest, names)


def _integer(field: str, where: str, value: Any) -> None:
    if type(value) is not int or not LEAST <= value <= MOST:
        checked_number(where + field, value)


def _string(field: str, where: str, value: Any) -> None:
    if type(value) is not str or not value.isascii():
        checked_text(where + field, value)


def _flag(field: str, where: str, value: Any) -> None:
    if type(value) is not bool:
        checked_flag(where + field, value)


def _count(field: str, least: int, where: str, value: Any) -> None:
    checked_number(where + field, value, least)


_SIMPLE: dict[Any, Callable[..., Any]] = {
    int: _integer,
    str: _string,
    (int, 2): _count,
    bool: _flag,
    float: lambda field, where, value: checked_real(where + field, value),
    dict: lambda field, where, value: checked_mapping(where + field, value),
    list: lambda field, where, value: checked_rows(where + field, value),
}


def _word(field: str, words: tuple[Any, ...], where: str, value: Any) -> None:
    if type(value) is not str or value not in words:
        expected = f"one of {', '.join(words)}"
        if field.endswith((": op", ": do")):
            field, expected = field[:-4], f"{field[-2:]} {_words(words)}"
        raise InvalidInputError(f"{where}{field}: expected {expected}, got {shown(value)}")


def _list(field: str, check_row: Check, where: str, value: Any) -> None:
    for row in checked_rows(where + field, value):
        check_row(where, row)


def _row(field: str, checks: list[Check], where: str, value: Any) -> None:
    if len(checked_rows(where + field, value)) != len(checks):
        raise InvalidInputError(f"{where}{field}: expected {len(checks)} values, got {shown(value)}")
    for check_one, one in zip(checks, value):
        check_one(where, one)


def _dict(field: str, check_value: Check, where: str, value: Any) -> None:
    for name, one in checked_mapping(where + field, value).items():
        checked_text(f"{where}{field}: name", name)
        check_value(where, one)


def _fields(
    field: str,
    numbers: list[tuple[str, str]],
    texts: list[tuple[str, str]],
    rest: list[tuple[str, Check, bool]],
    names: set[str],
    where: str,
    value: Any,
) -> None:
    row = value if type(value) is dict else checked_mapping(where + field, value)
    for name, path in numbers:
        number = row.get(name)
        if type(number) is not int or not LEAST <= number <= MOST:
            checked_number(where + path, number)
    for name, path in texts:
        text = row.get(name)
        if type(text) is not str or not text.isascii():
            checked_text(where + path, text)
    for name, check_field, is_needed in rest:
        if name in row:
            check_field(where, row[name])
        elif is_needed:
            raise InvalidInputError(f"{where}{field}: expected {name}, got {shown(dict(row))}")
    if names and (unknown := row.keys() - names):
        raise InvalidInputError(f"{where}{field}: expected some of {', '.join(names)}, got {shown(min(unknown))}")


def _union(field: str, options: tuple[Any, ...]) -> Check:
    kinds = [option for option in options if option is not type(None)]
    if not all(map(typing.is_typeddict, kinds)):
        names = ["null" if option is type(None) else getattr(option, "__name__", str(option)) for option in options]
        checks = [checker(kind, field) for kind in kinds]
        return functools.partial(_any_of, field, checks, len(kinds) < len(options), names)
    hints = [typing.get_type_hints(kind, include_extras=True) for kind in kinds]
    name = "op" if "op" in hints[0] else "do"
    table: dict[str, Check] = {}
    for kind, its in zip(kinds, hints):
        table |= dict.fromkeys(get_args(its[name]), _fields_of(kind, its, field, name))
    return functools.partial(_one_of, field, name, table)


def _any_of(field: str, checks: list[Check], or_none: bool, names: list[str], where: str, value: Any) -> None:
    if value is None and or_none:
        return
    if len(checks) == 1:
        checks[0](where, value)
        return
    for check_one in checks:
        try:
            check_one(where, value)
        except InvalidInputError:
            continue
        return
    raise InvalidInputError(f"{where}{field}: expected {_words(names)}, got {shown(value)}")


def _one_of(field: str, name: str, table: Mapping[str, Check], where: str, value: Any) -> None:
    kind = value.get(name) if isinstance(value, Mapping) else None
    check_one = table.get(kind) if type(kind) is str else None
    if check_one is None:
        got = shown(value if kind is None else kind)
        raise InvalidInputError(f"{where}{field}: expected {name} {_words(list(table))}, got {got}")
    check_one(where, value)


def _words(options: Sequence[Any]) -> str:
    *most, last = map(str, options)
    return f"{', '.join(most)} or {last}" if most else last
