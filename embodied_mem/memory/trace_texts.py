"""The texts of a household trace, read: calls, answers, object lines, descriptions.

parse_action("Pick[cup_0]")                                    # ("Pick", ["cup_0"])
parse_objects("Result: ...\\nObjects: cup_0: table_4 in kitchen_1")   # {"cup_0": ("table_4", "kitchen_1")}
"""

from __future__ import annotations

import re

HELD = "held"
"""The place of what is in the hand."""

_ACTION = re.compile(r"(\w+)\s*\[(.*)\]\s*\Z", re.DOTALL)
_OBJECT_LINE = re.compile(r"([^:]+): (?:(?P<place>\w+) in (?P<room>\w+)|held by the agent)\Z")
_DESCRIPTION = re.compile(r"The description of the object '(?P<name>[^'\n]+)' is:\s*\n(?P<text>.*)", re.DOTALL)


def parse_action(action: str) -> tuple[str, list[str]]:
    """Name and arguments of a call's last line; the name is empty if it is none."""
    found = _ACTION.match(action.strip().rpartition("\n")[2].strip())
    if not found:
        return "", []
    return found[1], [part.strip() for part in found[2].split(",")] if found[2].strip() else []


def succeeded(observation: str) -> bool:
    """Whether an observation says that the action was carried out."""
    return parse_result(observation).startswith("Successful")


def parse_objects(observation: str) -> dict[str, tuple[str, str]]:
    """Object lines of an observation: {name: (place, room)}, (`HELD`, "") for the one in the hand."""
    found = {}
    _, _, text = observation.rpartition("Objects:")
    for line in text.splitlines():
        if match := _OBJECT_LINE.match(line.strip()):
            found[match[1]] = (match["place"] or HELD, match["room"] or "")
    return found


def parse_result(observation: str) -> str:
    """The answer in an observation, without the object lines."""
    text = observation.partition("Result:")[2] or observation
    return text.rpartition("\nObjects:")[0].strip() if "\nObjects:" in text else text.strip()


def parse_description(observation: str) -> tuple[str, str] | None:
    """(name, caption) where an observation describes an object that has a caption."""
    found = _DESCRIPTION.search(parse_result(observation))
    text = found["text"].strip() if found else ""
    return (found["name"], text) if text and text.lower() not in ("nan", "none") else None
