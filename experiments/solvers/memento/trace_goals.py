"""Goals of remembered tasks, and what their steps tell of objects and places.

    known = remembered(trace, words)
    known.moves[0].thing.captions, known.moves[0].piece

Of the steps, names of pieces that this house does not have are left out (a noisy memory may hold steps of another one).
Whether a remembered task was fulfilled is not known: what was moved is believed to be what was meant.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import NamedTuple

from embodied_mem.worlds.memento.traces.trace import (
    HELD,
    Trace,
    parse_action,
    parse_description,
    parse_objects,
    succeeded,
)

from .goals import Move, Thing, moves_of, with_carries
from .grammar import sentences
from .house import kind_of
from .instruction import Asked, read_instruction
from .lexicon import PlaceMention, PlaceWords, content, core_of, kind_score


@dataclasses.dataclass(eq=False)
class Remembered:
    """One memory, understood.

    Attributes:
        label: what it was about, in short.
        parts: its sentences.
        moves: what was to be done, with what the steps tell.
        asked: the instruction, read.
        kinds: categories of the objects that were seen.
        prior: added to its likeness with a request.
        has_steps: whether it was done once; what the user's profile says was only told.
    """

    label: str
    parts: tuple[str, ...]
    moves: list[Move]
    asked: Asked
    kinds: frozenset[str] = frozenset()
    prior: float = 0.0
    has_steps: bool = True

    def words(self) -> list[str]:
        """Stems of all its words."""
        return content(" ".join(self.parts))

    def things(self) -> list[Thing]:
        """Its things, each once, in order."""
        return list(dict.fromkeys(move.thing for move in self.moves))


_MOVED = re.compile(
    r"\b(?:moved|put|placed|took|brought)\s+(?P<name>\w[\w -]{,60}?_\d+)"
    r"(?:\s*\((?P<caption>[^()]*(?:\([^()]*\)[^()]*)*)\))?"
    r"(?:\s+from\s+(?P<start>\w+_\d+))?\s+(?P<relation>onto|into|on|in|to)\s+(?P<piece>\w+_\d+)"
    r"(?:\s+next\s+to\s+(?P<beside>\w[\w -]{,60}?_\d+))?",
    re.IGNORECASE,
)
"""What a summary says in exact names: moved vase_2 (a white vase) from table_1 onto shelves_4 next to lamp_0."""


class _Placed(NamedTuple):
    name: str
    relation: str
    piece: str
    beside: str


@dataclasses.dataclass
class _Steps:
    """What the turns of a trace tell."""

    captions: dict[str, str] = dataclasses.field(default_factory=dict)
    starts: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    picked: list[str] = dataclasses.field(default_factory=list)
    placed: list[_Placed] = dataclasses.field(default_factory=list)


def _read_steps(trace: Trace, words: PlaceWords) -> _Steps:
    found = _Steps()
    view = words.view
    seen: dict[str, dict[str, str]] = {}
    for step in trace.steps:
        for name, (place, room) in parse_objects(step.observation).items():
            if place != HELD and view.room_of(place) == room:
                seen.setdefault(name, {}).setdefault(place, room)
        if described := parse_description(step.observation):
            found.captions[described[0]] = described[1]
        action, arguments = parse_action(step.action)
        if not succeeded(step.observation):
            continue
        if action == "Pick":
            found.picked.append(arguments[0])
        elif action == "Place" and len(arguments) == 5 and view.room_of(arguments[2]):
            found.placed.append(_Placed(arguments[0], arguments[1], arguments[2], arguments[4]))
    ends = {(one.name, one.piece) for one in found.placed}
    for name, places in seen.items():  # the steps may be out of order: where it was not put, it was before
        start = next((place for place in places if (name, place) not in ends), next(iter(places)))
        found.starts[name] = (start, places[start])
    for said in _MOVED.finditer(trace.note):
        if said["caption"]:
            found.captions[said["name"]] = said["caption"]
        if said["start"] and view.room_of(said["start"]) and said["name"] not in found.picked:
            found.starts[said["name"]] = (said["start"], view.room_of(said["start"]))
        found.picked.append(said["name"])
        relation = "within" if said["relation"].lower() in ("in", "into") else "on"
        if view.room_of(said["piece"]):
            found.placed.append(_Placed(said["name"], relation, said["piece"], said["beside"] or "None"))
    return found


def remembered(trace: Trace, words: PlaceWords) -> Remembered:
    """A memory as goals. Where its words ask for nothing that is understood, the steps tell what was done."""
    asked = read_instruction(trace.instruction, words)
    note = read_instruction(trace.note, words) if trace.note else None
    if note is not None:
        asked = dataclasses.replace(
            asked,
            placements=asked.placements or note.placements,
            descriptions=asked.descriptions + note.descriptions,
            preferences=asked.preferences + note.preferences,
        )
    steps = _read_steps(trace, words)
    moves = moves_of(asked) or _moves_from(steps, words)
    _ground(moves, steps)
    parts = (*sentences(trace.instruction), *sentences(trace.note))
    kinds = {kind_of(name) for name in steps.starts} | {core_of(move.thing.phrase) for move in moves}
    return Remembered(trace.instruction[:90], parts, moves, asked, frozenset(kinds))


def _moves_from(steps: _Steps, words: PlaceWords) -> list[Move]:
    things: dict[str, Thing] = {}
    moves: list[Move] = []
    for name, relation, piece, beside in steps.placed:
        thing = things.setdefault(name, Thing(kind_of(name)))
        kind = "floor" if piece.startswith("floor_") else kind_of(piece)
        place = PlaceMention(relation, kind, kind_of(words.view.room_of(piece)))
        moves.append(Move(thing, place, relation == "within", things.get(beside), group=len(moves)))
    return with_carries(moves)


def _ground(moves: list[Move], steps: _Steps) -> None:
    """Say of each thing which object it was in the memory, where it was found and put, and how it looked."""
    used: set[str] = set()
    names = list(dict.fromkeys([*(one.name for one in steps.placed), *steps.picked]))

    def fitting(thing: Thing, names: Iterable[str], least: float) -> list[str]:
        return [name for name in names if name not in used and kind_score(thing.phrase, kind_of(name)) >= least]

    for thing in dict.fromkeys(move.thing for move in moves):
        fits = fitting(thing, names, 2) or fitting(thing, names, 1)
        if not fits and len(seen := fitting(thing, steps.starts, 2)) == 1:
            fits = seen
        if not fits:
            continue
        name = fits[0]
        used.add(name)
        thing.kind = kind_of(name)
        thing.start, thing.start_room = steps.starts.get(name, ("", ""))
        if name in steps.captions:
            thing.captions = (steps.captions[name],)
        spots = [one.piece for one in steps.placed if one.name == name]
        inside = {one.piece for one in steps.placed if one.relation == "within"}
        mine = [move for move in moves if move.thing is thing and not move.carry]
        for move in mine:
            kind = move.place.piece if move.place is not None else ""
            right = [spot for spot in spots if not kind or kind == kind_of(spot) or spot.startswith(f"{kind}_")]
            if right and (kind or len(mine) == 1):
                move.piece = right[0] if len(mine) > 1 else right[-1]  # it may have been put somewhere else first
                move.inside = move.inside or move.piece in inside
                spots.remove(move.piece)
