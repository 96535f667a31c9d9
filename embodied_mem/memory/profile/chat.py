"""What a chat model is asked for the user's profile: to read, to resolve, to find and to put into words.

    extracted(writer, "I keep the jug on the desk for my night drink.")       # [Knowledge(...)]
    resolved(writer, text, found, candidates)                                 # [("update", "k3")]
    referred(writer, "Could you set up my night drink?")                      # [("user_pattern", "night drink")]
    reformulated(writer, request, candidates)                                 # {"k3": "For your night drink ..."}

Each is one call with a strict schema. None is returned where there is no usable answer; then rules do.

Source: MEMENTO D.1, algorithms 1 and 2. Deviations: ExtractKnowledge and ExtractElements are one call, and so are all
LLMResolve of one instruction and all Reformulate of one request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..chat_writer import ChatWriter, parse_text
from .text import OBJECT_SEMANTICS, SUBTYPES, Action, Knowledge, Thing

Candidate = Mapping[str, Any]
"""Knowledge with all below it: id, subtype, alias, description, objects, patterns."""

_TEXT = {"type": "string", "minLength": 1, "maxLength": 400}
_MAX = 16


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _list(items: dict[str, Any], least: int = 0, most: int = _MAX) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


_SUBTYPE = {"type": "string", "enum": list(SUBTYPES)}
_THINGS = _list({**_object(name=_TEXT, description={"type": "string", "maxLength": 400}), "required": ["name"]})
_PATTERNS = _list(_object(name=_TEXT, args=_list(_TEXT, 3, 3)))
_KNOWLEDGE = _object(subtype=_SUBTYPE, alias=_TEXT, description=_TEXT, objects=_THINGS, patterns=_PATTERNS)
_KNOWLEDGE["required"] = ["subtype", "alias", "description"]
KNOWLEDGE = _object(knowledge=_list(_KNOWLEDGE))
_DO = ("add", "update", "extend")
CHANGES = _object(
    changes=_list(
        _object(new={"type": "integer"}, do={"type": "string", "enum": list(_DO)}, id={"type": ["string", "null"]})
    )
)
REFERENCES = _object(references=_list(_object(subtype=_SUBTYPE, alias=_TEXT)))
DESCRIPTIONS = _object(descriptions=_list(_object(id={"type": "string"}, text=_TEXT)))

_KINDS = "names that things have for the user (object_semantics) and names of arrangements or routines (user_pattern)"
_EXTRACT = (
    f"You read what a user told a household robot and list what it tells about the user: {_KINDS}. Answer with JSON "
    'only: {"knowledge": [{"subtype": ..., "alias": ..., "description": ..., "objects": [{"name": ..., "description": '
    '...}], "patterns": [{"name": "place", "args": [object, relation, location]}]}]}; an empty list if it tells '
    "nothing."
)
_RESOLVE = (
    "You keep what is known of a user. Given what the user said, what is new in it by number, and what is known by id, "
    "say for each new one whether to add it, to update a known one that it replaces, or to extend a known one by it. "
    'Answer with JSON only: {"changes": [{"new": number, "do": "add" | "update" | "extend", "id": id or null}]}.'
)
_REFER = (
    f"You read what a user asks of a household robot and list what of the user's own it refers to: {_KINDS}. Answer "
    'with JSON only: {"references": [{"subtype": ..., "alias": ...}]}; an empty list if it refers to nothing.'
)
_REFORMULATE = (
    "Say in plain words, for a household robot that shall do what the user asks, what each known entry tells: which "
    "things, where, in which order. Add nothing. Answer with JSON only: "
    '{"descriptions": [{"id": ..., "text": ...}]}, one for each entry.'
)


def extracted(writer: ChatWriter, text: str) -> list[Knowledge] | None:
    """ExtractKnowledge and ExtractElements: what a text tells about the user."""
    return writer.ask(_EXTRACT, text, lambda value: list(map(_knowledge, value["knowledge"])), KNOWLEDGE)


def _knowledge(one: Mapping[str, Any]) -> Knowledge:
    things = [Thing(parse_text(o["name"]), str(o.get("description") or "")) for o in one.get("objects", ())]
    described = {thing.name: thing for thing in things}
    actions = []
    for pattern in one.get("patterns", ()):
        name, relation, location = map(parse_text, pattern["args"])
        actions.append(Action(described.get(name, Thing(name)), relation, location, parse_text(pattern["name"])))
    composed = tuple(things) if one["subtype"] == OBJECT_SEMANTICS else ()
    alias, description = parse_text(one["alias"]), parse_text(one["description"])
    return Knowledge(one["subtype"], alias, description, composed, tuple(actions))


def resolved(
    writer: ChatWriter, text: str, found: Sequence[Knowledge], known: Sequence[Candidate]
) -> list[tuple[str, str | None]] | None:
    """LLMResolve: of each piece of knowledge, whether to add it, or which known one it updates or extends."""
    new = [
        {"new": i, "subtype": k.subtype, "alias": k.alias, "description": k.description} for i, k in enumerate(found)
    ]
    question = json.dumps({"said": text, "new": new, "known": list(known)}, ensure_ascii=False)
    return writer.ask(_RESOLVE, question, lambda value: _changes(value["changes"], found, known), CHANGES)


def _changes(
    changes: Sequence[Mapping[str, Any]], found: Sequence[Knowledge], known: Sequence[Candidate]
) -> list[tuple[str, str | None]]:
    if sorted(change["new"] for change in changes) != list(range(len(found))):
        raise ValueError(f"expected one change for each of {len(found)}")
    subtypes = {one["id"]: one["subtype"] for one in known}
    chosen: list[tuple[str, str | None]] = []
    for change in sorted(changes, key=lambda change: int(change["new"])):
        target = None if change["do"] == "add" else change["id"]
        if change["do"] != "add" and subtypes.get(target) != found[change["new"]].subtype:
            raise ValueError(f"expected an id of a known one of the same subtype, got {target!r}")
        chosen.append((change["do"], target))
    targets = [target for do, target in chosen if do == "update"]
    if len(targets) != len(set(targets)):
        raise ValueError("expected at most one update of each")
    return chosen


def referred(writer: ChatWriter, request: str) -> list[tuple[str, str]] | None:
    """ExtractKnowledge of algorithm 2: (subtype, alias) of what a request refers to."""
    return writer.ask(
        _REFER, request, lambda value: [(r["subtype"], parse_text(r["alias"])) for r in value["references"]], REFERENCES
    )


def reformulated(writer: ChatWriter, request: str, known: Sequence[Candidate]) -> dict[str, str] | None:
    """Reformulate: what each entry tells, in plain words, by id."""

    def read(value: Mapping[str, Any]) -> dict[str, str]:
        texts = {one["id"]: parse_text(one["text"]) for one in value["descriptions"]}
        if texts.keys() != {one["id"] for one in known}:
            raise ValueError("expected one description for each entry")
        return texts

    question = json.dumps({"request": request, "known": list(known)}, ensure_ascii=False)
    return writer.ask(_REFORMULATE, question, read, DESCRIPTIONS)
