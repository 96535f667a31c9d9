"""Checks events of the user's profile. An incomplete event is never recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import InvalidInputError
from ..arguments import (
    WHEN,
    Fields,
    checked_event,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_rows,
    checked_text,
    shown,
)
from .text import SUBTYPES, Action, Knowledge, Thing

EVENT = "profile event"


def check_texts(value: Any, kind: type, texts: Iterable[str], others: Iterable[str]) -> None:
    """Raise InvalidInputError unless a mapping has these texts and no fields but these."""
    where = f"{EVENT}: {kind.__name__.lower()}"
    for name in texts:
        checked_text(f"{where}: {name}", checked_mapping(where, value).get(name))
    if unknown := set(value) - {*texts, *others}:
        raise InvalidInputError(f"{where}: expected {', '.join((*texts, *others))}, got {shown(unknown)}")


def check_told(event: Mapping[str, Any]) -> None:
    """Raise InvalidInputError for an event that no profile records."""
    checked_event(EVENT, event, {"tell": Fields(WHEN)})
    if event.get("note") is not None:
        checked_number(f"{EVENT}: note", event["note"], 0)
    for change in checked_rows(f"{EVENT}: changes", event.get("changes")):
        if checked_mapping(f"{EVENT}: change", change).get("target") is not None:
            checked_text(f"{EVENT}: target", change["target"])
        if checked_flag(f"{EVENT}: ended", change.get("ended", False)):
            continue
        checked_flag(f"{EVENT}: untold", change.get("untold", False))
        said = checked_mapping(f"{EVENT}: knowledge", change.get("knowledge"))
        check_texts(said, Knowledge, ("subtype", "alias", "description"), ("things", "actions", "extends"))
        checked_flag(f"{EVENT}: extends", said.get("extends", False))
        if said["subtype"] not in SUBTYPES:
            raise InvalidInputError(f"{EVENT}: expected {' or '.join(SUBTYPES)}, got {shown(said['subtype'])}")
        actions = checked_rows(f"{EVENT}: actions", said.get("actions", ()))
        for action in actions:
            check_texts(action, Action, ("relation", "location"), ("thing", "name"))
            checked_text(f"{EVENT}: name", action.get("name", ""))
        things = [
            *checked_rows(f"{EVENT}: things", said.get("things", ())),
            *(one.get("thing") for one in actions),
        ]
        for thing in things:
            check_texts(thing, Thing, ("name",), ("description",))
            checked_text(f"{EVENT}: description", thing.get("description", ""))
