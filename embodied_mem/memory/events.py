"""Checks events of a `LifelongMemory`. An incomplete event is never recorded.

    check_event({"op": "tell", "events": {"profile": {...}}}, modules)

A begin and a step say where they are in time and what was seen; each event has those of its modules in "events".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInputError
from .arguments import WHEN, Fields, check_given, checked_event, checked_flag, checked_mapping, checked_number, shown
from .record import module_and_number
from .spatial import checked_place
from .store import MemoryModule
from .trust import checked_trust

EVENT = "lifelong event"
_FIELDS = {
    "begin": Fields(WHEN, ("task_id", "goal", "observation", "place")),
    "step": Fields(WHEN, ("action", "observation")),
    "tell": Fields(),
    "edit": Fields(),
    "end": Fields(),
    "import": Fields((), ("text",)),
}
_MAX_GAP = 1 << 16
"""Tasks in a row whose beginning was set aside, at most."""


def check_event(event: Any, modules: Mapping[str, MemoryModule]) -> None:
    """Raise InvalidInputError for an event that cannot be applied, or that is for others than these modules."""
    op = checked_event(EVENT, event, _FIELDS)
    events = checked_mapping(f"{EVENT}: events", event.get("events"))
    if unknown := events.keys() - modules.keys():
        raise InvalidInputError(f"{EVENT}: expected modules {list(modules)}, got {shown(unknown)}")
    if op == "begin":
        checked_place(event["place"])
    check_given(EVENT, event, time=checked_number, failed=checked_flag, room=checked_flag, trust=checked_trust)
    if "again" in event:
        module_and_number(event["again"], modules)
        checked_trust(f"{EVENT}: trust", event.get("trust"))
        for name in WHEN:
            checked_number(f"{EVENT}: {name}", event.get(name))
    for name, change in events.items():
        modules[name].check(change)


def check_begin(event: Mapping[str, Any], count: int) -> None:
    """Raise InvalidInputError unless a task's number follows those of `count` tasks, some of them set aside."""
    if not count <= event["episode"] <= count + _MAX_GAP:
        raise InvalidInputError(f"{EVENT}: expected {count} as number of the episode, got {event['episode']}")
