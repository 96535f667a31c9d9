"""All that a memory holds as lines of JSON, and back: ids, history, times, sources and trust included.

    text = exported(memory.state())
    state = imported(text)                   # the same bytes

The first line names the format. Every other one is a value, a row of a list, or a row of a part: {"module": "notes",
"field": "notes", "row": {...}}. The module of what is no module's is "lifelong".
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from . import entries, temporal
from .arguments import MAX_DEPTH, check_depth, shown
from .events import check
from .graph import Scope, bytes_of, rows_of
from .notes import note_of
from .profile import KnownRow
from .stored_modules import read_state, write_state

_FORMAT, _VERSION = "embodied_mem.export", 2
_OWN = "lifelong"
_STATE = "embodied_mem.lifelong_memory"
_PARTS: dict[str, tuple[tuple[str, int], ...]] = {
    "spatial": (("graph", 0), ("node_rows", 4), ("fact_rows", 4), ("confidence_rows", 1)),
    "views": (("rows", 11),),
}
"""Module -> its parts: names, and numbers in a row; 0 for a knowledge graph."""

_ROWS: dict[tuple[str, str], type] = {
    ("profile", "known"): KnownRow, ("episodic", "entries"): entries.Entry,
    ("semantic", "entries"): entries.Entry, ("temporal", "entries"): temporal.Entry,
}  # fmt: skip


def exported(state: bytes) -> str:
    """Return the lines of what `LifelongMemory.state` returned."""
    own, parts = read_state(_STATE, state)
    lines: list[dict[str, Any]] = [{"format": _FORMAT, "version": _VERSION}]
    lines += ({"module": _OWN, **line} for line in _fields(own))
    for name, part in zip(own["modules"], parts):
        data, pieces = read_state(json.loads(part[: part.index(b"\n")])["format"], part)
        lines += ({"module": name, **line} for line in _fields(data))
        for piece, (kind, width) in zip(pieces, _PARTS.get(name, ()), strict=False):
            lines += ({"module": name, "part": kind, **line} for line in _piece(piece, width))
        if len(pieces) > len(_PARTS.get(name, ())):
            raise InvalidInputError(f"export: expected {_PARTS.get(name, ())} as parts of {name}, got {len(pieces)}")
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def exported_scope(text: str) -> Scope:
    """Return the scope of what `exported` returned. Raises InvalidInputError where none stands."""
    for number, line in enumerate(text.split("\n"), 1):
        row = _line(number, line) if line.strip() else {}
        if (row.get("module"), row.get("field")) == (_OWN, "scope"):
            try:
                return Scope(**row["value"])
            except (KeyError, TypeError) as error:
                raise _problem(number, "scope", "user, robot and environment", line) from error
    raise InvalidInputError("export: expected a line with the scope, got none")


def _fields(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in data.items():
        if isinstance(value, list) and value:
            yield from ({"field": name, "row": row} for row in value)
        else:
            yield {"field": name, "value": value}


def _piece(data: bytes, width: int) -> Iterator[dict[str, Any]]:
    if not width:
        yield from ({"field": kind, "row": row} for kind, row in rows_of(data))
    elif data:
        yield from ({"row": row} for row in np.frombuffer(data, "<i8").reshape(-1, width).tolist())
    else:
        yield {"value": []}


def imported(text: str) -> bytes:
    """Return the exported state. Raises InvalidInputError with line and field."""
    fields: dict[str, dict[str, Any]] = {}
    parts: dict[str, dict[str, list[Any]]] = {}
    lines = text.splitlines() if "\n" not in text else text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip() and number > 1:
            continue
        row = _line(number, line)
        if number == 1:
            if (row.get("format"), row.get("version")) != (_FORMAT, _VERSION):
                raise _problem(1, "format", f"{_FORMAT} version {_VERSION}", line)
            continue
        module, field, part = (row.get(name) for name in ("module", "field", "part"))
        if not isinstance(module, str):
            raise _problem(number, "module", "the name of one", module)
        if ("row" in row) == ("value" in row):
            raise _problem(number, "row", "either a row or a value", line)
        if part is not None:
            if part not in dict(_PARTS.get(module, ())):
                raise _problem(number, "part", f"one of {list(dict(_PARTS.get(module, ())))}", part)
            rows = parts.setdefault(module, {}).setdefault(part, [])
            rows += [_part_row(number, dict(_PARTS[module])[part], field, row["row"])] if "row" in row else []
            continue
        if not isinstance(field, str):
            raise _problem(number, "field", "the name of one", field)
        of_module = fields.setdefault(module, {})
        if "value" in row:
            of_module[field] = row["value"]
            continue
        if (module, field) == ("notes", "notes"):
            _check(number, note_of, row["row"])
        elif (kind := _ROWS.get((module, field))) is not None:
            _check(number, functools.partial(check, kind, field), row["row"])
        if not isinstance(of_module.setdefault(field, []), list):
            raise _problem(number, "field", f"one {field} of {module}, or rows of it", line)
        of_module[field].append(row["row"])
    return _state(fields, parts)


def _state(fields: dict[str, dict[str, Any]], parts: dict[str, dict[str, list[Any]]]) -> bytes:
    own = fields.pop(_OWN, {})
    modules = own.get("modules")
    if not isinstance(modules, list) or set(modules) != set(fields):
        raise InvalidInputError(f"export: expected lines of the modules {shown(modules)}, got {sorted(fields)}")
    states = []
    for name in modules:
        pieces = []
        for kind, width in _PARTS.get(name, ()):
            if kind in parts.get(name, {}):
                pieces.append(_packed(f"{name}: {kind}", width, parts[name][kind]))
        states.append(_written(name, fields[name], pieces))
    return _written(_OWN, own, states)


def _written(name: str, data: dict[str, Any], pieces: list[bytes]) -> bytes:
    if not isinstance(data.get("format"), str) or "version" not in data:
        raise InvalidInputError(f"export: expected the fields format and version of {name}, got {sorted(data)}")
    return write_state(data["format"], data, *pieces)


def _packed(where: str, width: int, rows: list[Any]) -> bytes:
    try:
        return np.array(rows, "<i8").tobytes() if width else bytes_of(rows)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, struct.error) as error:
        raise InvalidInputError(f"export: {where}: expected what export wrote, got {shown(error)}") from error


def _part_row(number: int, width: int, field: Any, row: Any) -> Any:
    if width:
        if not isinstance(row, list) or len(row) != width or not all(type(value) is int for value in row):
            raise _problem(number, "row", f"{width} whole numbers", row)
        return row
    try:
        bytes_of([("scope", ""), (field, row)] if field != "scope" else [(field, row)])
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, struct.error) as error:
        raise _problem(number, str(field), f"a row of a graph ({shown(error)})", row) from error
    return field, row


def _line(number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        check_depth("export", row, line)
    except (ValueError, RecursionError) as error:
        raise _problem(number, "JSON", f"an object, at most {MAX_DEPTH} deep", line) from error
    if not isinstance(row, dict):
        raise _problem(number, "JSON", "an object", line)
    return row


def _check(number: int, check_row: Callable[[Any], Any], row: Any) -> None:
    try:
        check_row(row)
    except (InvalidInputError, TypeError, ValueError) as error:
        raise _problem(number, "row", f"a row as export wrote it ({error})", row) from error


def _problem(number: int, field: str, expected: str, got: Any) -> InvalidInputError:
    return InvalidInputError(
        f"expected lines of export: line {number}, field {field!r}: expected {expected}, got {shown(got)}"
    )
