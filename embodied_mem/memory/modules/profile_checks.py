"""Checks events, states and a chat model's answers of the user's profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import InvalidInputError
from ..arguments import checked_mapping, checked_number, checked_text, shown
from ..chat_writer import parse_text
from .profile_text import OBJECT_SEMANTICS, SUBTYPES, Action, Knowledge, Thing

EVENT = "profile event"
EXTRACT = (
    "You read what a user told a household robot and list what it tells about the user: names that things have for the "
    "user (object_semantics) and names of arrangements or routines (user_pattern). Answer with JSON only: a list of "
    '{"subtype": ..., "alias": ..., "description": ..., "objects": [{"name": ..., "description": ...}], "patterns": '
    '[{"name": "place", "args": [object, relation, location]}]}; an empty list if it tells nothing.'
)
"""Asks a chat model for what `parse_knowledge` reads."""


@dataclasses.dataclass
class Edge:
    """A row of MEMENTO's table 7, with the times between which it is true, and its sources as [episode, step]."""

    source: str
    target: str
    type: str
    relation: str
    valid_at: int
    invalid_at: int | None
    sources: list[list[int]]


def check_texts(value: Any, kind: type, texts: Iterable[str], others: Iterable[str]) -> None:
    """Raise InvalidInputError unless a mapping has these texts and no fields but these."""
    where = f"{EVENT}: {kind.__name__.lower()}"
    for name in texts:
        checked_text(f"{where}: {name}", checked_mapping(where, value).get(name))
    if unknown := set(value) - {*texts, *others}:
        raise InvalidInputError(f"{where}: expected {', '.join((*texts, *others))}, got {shown(unknown)}")


def parse_knowledge(value: Any) -> list[Knowledge]:
    """The knowledge in a chat answer. Raises ValueError, KeyError or TypeError for one that is malformed."""
    if not isinstance(value, list) or len(value) > 16:
        raise ValueError("expected a list of at most 16")
    found = []
    for one in value:
        if one["subtype"] not in SUBTYPES:
            raise ValueError(f"expected one of {', '.join(SUBTYPES)}, got {one['subtype']!r}")
        things = [Thing(parse_text(o["name"]), str(o.get("description") or "")[:400]) for o in one.get("objects", ())]
        described = {thing.name: thing for thing in things}
        actions = []
        for pattern in one.get("patterns", ()):
            name, relation, location = (parse_text(argument) for argument in pattern["args"])
            actions.append(Action(described.get(name, Thing(name)), relation, location, parse_text(pattern["name"])))
        composed = tuple(things) if one["subtype"] == OBJECT_SEMANTICS else ()
        alias, description = parse_text(one["alias"]), parse_text(one["description"])
        found.append(Knowledge(one["subtype"], alias, description, composed, tuple(actions)))
    return found


_TEXTS = {
    "user": ("name",), "knowledge": ("subtype", "alias", "description"), "object": ("name",), "location": ("name",),
    "pattern": ("name",),
}  # fmt: skip
"""Type of node -> what it has that is text."""


def check_graph(nodes: Mapping[str, Mapping[str, Any]], edges: Iterable[Edge]) -> None:
    """Raise InvalidInputError for nodes and edges of a state that no profile has."""
    for number, node in nodes.items():
        texts = [node[name] for name in _TEXTS[node["type"]]]
        if node["type"] == "pattern":
            thing, relation, location = node["args"]
            texts += [thing, relation, location]
        if not all(isinstance(text, str) for text in (number, *texts)):
            raise InvalidInputError(f"state: node {shown(number)}: expected texts, got {shown(texts)}")
    referred = {edge.target for edge in edges if edge.relation == "refers_to"}
    if missing := [i for i, node in nodes.items() if node["type"] == "knowledge" and i not in referred]:
        raise InvalidInputError(f"state: expected an edge refers_to to every knowledge node, got none to {missing[0]}")
    for edge in edges:
        if unknown := {edge.source, edge.target} - nodes.keys():
            raise InvalidInputError(f"state: expected edges between known nodes, got {shown(unknown)}")
        checked_number("state: valid_at", edge.valid_at)
        if edge.invalid_at is not None:
            checked_number("state: invalid_at", edge.invalid_at)
        if not edge.sources:
            raise InvalidInputError(f"state: expected a source of every edge, got none of {shown(edge)}")
        for episode, step in edge.sources:
            checked_number("state: episode", episode), checked_number("state: step", step)
