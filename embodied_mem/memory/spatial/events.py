"""Checks events of a `SpatialMemory` and names of places. An incomplete event is never recorded.

check_event({"op": "begin", "episode": 0, "time": 1, "place": "kitchen 7"})
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...errors import InvalidInputError
from ..arguments import (
    WHEN,
    Fields,
    check_given,
    checked_event,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_real,
    checked_rows,
    checked_text,
    shown,
)
from ..trust import checked_trust
from ..vectors import decoded_vector, unit_vector

EVENT = "spatial event"
_FIELDS = {"begin": Fields(("episode", "time")), "observe": Fields(WHEN), "correct": Fields(WHEN)}
_MAX_PLACE_BYTES, _MAX_NAME_BYTES = 2048, 2047
"""Of UTF-8: a node's name is both with a slash between them, and the graph takes 4,096."""


def checked_place(place: Any) -> str:
    """The name of a place. Raises InvalidInputError for what is none, or too long."""
    text = checked_text("place", place)
    if len(text.encode()) > _MAX_PLACE_BYTES:
        raise InvalidInputError(f"place: expected at most {_MAX_PLACE_BYTES} bytes, got {len(text.encode())}")
    return text


def _unusable(name: str) -> bool:
    return not name or (4 * len(name) > _MAX_NAME_BYTES and len(name.encode()) > _MAX_NAME_BYTES)


def drop_what_is_no_name(event: dict[str, Any], length: int) -> None:
    """Take away what rules read from a text of this length and no thing can be called: nothing, or half a page."""
    facts, complete = event["facts"], event["complete"]
    are_long = False
    if 4 * length > _MAX_NAME_BYTES:
        rows = (*facts, *([name, *held] for name, held in complete))
        are_long = 4 * max(map(len, itertools.chain.from_iterable(rows)), default=0) > _MAX_NAME_BYTES
    if are_long or not (all(map(all, facts)) and all(name and all(held) for name, held in complete)):
        event["facts"] = [fact for fact in facts if not any(map(_unusable, fact[:3]))]
        event["complete"] = [[name, held] for name, held in complete if not any(map(_unusable, [name, *held]))]


def _are_plain(facts: Sequence[Any]) -> bool:
    """Whether they are lists of three names of ASCII, as nearly always; looks at all of them at once."""
    if not all([type(fact) is list and len(fact) == 3 for fact in facts]):
        return False
    names = [*itertools.chain.from_iterable(facts)]
    try:
        text = "".join(names)
    except TypeError:
        return False
    return len(text) <= _MAX_NAME_BYTES and text.isascii() and all(names)


def _check_names(names: Sequence[Any]) -> None:
    try:
        text = "".join(names)
    except TypeError:
        text = ""
    if 0 < len(text) <= _MAX_NAME_BYTES and text.isascii() and all(names):
        return  # as nearly always
    for name in names:
        if _unusable(checked_text(f"{EVENT}: name", name)):
            raise InvalidInputError(f"{EVENT}: expected names of 1 to {_MAX_NAME_BYTES} bytes, got {shown(name)}")


def check_event(event: Any) -> None:
    """Raise InvalidInputError for an event that cannot be applied."""
    op = checked_event(EVENT, event, _FIELDS)
    if op == "begin":
        checked_place(event.get("place"))
        check_given(EVENT, event, room=checked_flag)
        return
    if op == "correct":
        _check_correction(event)
        return
    check_given(EVENT, event, trust=checked_trust)
    facts = checked_rows(EVENT, event.get("facts"))
    for fact in () if _are_plain(facts) else facts:
        if type(fact) is not list or len(fact) not in (3, 4):
            raise InvalidInputError(f"{EVENT}: expected subject, relation and object of a fact, got {shown(fact)}")
        if len(fact) == 4 and not 0 <= checked_real(f"{EVENT}: confidence", fact[3]) <= 1:
            raise InvalidInputError(f"{EVENT}: expected a confidence from 0 to 1, got {shown(fact)}")
        _check_names(fact[:3])
    for refused in checked_rows(EVENT, event.get("refused", ())):
        if type(refused) is not list or len(refused) != 5:
            raise InvalidInputError(f"{EVENT}: expected a fact, its confidence and a reason, got {shown(refused)}")
        _check_names([*refused[:3], refused[4]])
        if refused[3] is not None and not 0 <= checked_real(f"{EVENT}: confidence", refused[3]) <= 1:
            raise InvalidInputError(f"{EVENT}: expected a confidence from 0 to 1, got {shown(refused)}")
    for name, look in checked_mapping(f"{EVENT}: vectors", event.get("vectors", {})).items():
        _check_names([name])
        unit_vector(name, decoded_vector(look))
    for container in checked_rows(EVENT, event.get("complete")):
        if type(container) is not list or len(container) != 2:
            raise InvalidInputError(f"{EVENT}: expected a container and its contents, got {shown(container)}")
        _check_names([container[0], *checked_rows(EVENT, container[1])])


def _check_correction(event: Any) -> None:
    for row, width in [(row, 2) for row in checked_rows(EVENT, event.get("invalidate"))] + [
        (row, 5) for row in checked_rows(EVENT, event.get("add"))
    ]:
        if len(checked_rows(EVENT, row)) != width:
            raise InvalidInputError(f"{EVENT}: expected {width} fields of a correction, got {shown(row)}")
        for i, value in enumerate(row):
            if width == 5 and i == 1:
                _check_names([value])
            elif value is not None or i != width - 1:
                checked_number(f"{EVENT}: correction", value)
