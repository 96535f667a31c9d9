"""Memories as goals: what a remembered task asked for, and what its steps tell of objects and places.

    known = remembered(trace, words)
    known.moves[0].thing.captions, known.moves[0].piece

Of the steps, names of pieces that this house does not have are left out (a noisy memory may hold steps of another one),
and descriptions are believed only of a task that was fulfilled.
"""

from __future__ import annotations

import dataclasses

from ..memory.traces import Trace
from .household_goals import Move, Thing, core_of, kind_score, moves_of, with_carries
from .household_grammar import sentences
from .household_instructions import Asked, read_instruction
from .household_view import HELD, kind_of, parse_action, parse_description, parse_objects, parse_result
from .household_words import PlaceMention, PlaceWords, content, room_type


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
    """

    label: str
    parts: tuple[str, ...]
    moves: list[Move]
    asked: Asked
    kinds: frozenset[str] = frozenset()
    prior: float = 0.0

    def words(self) -> list[str]:
        """Stems of all its words."""
        return content(" ".join(self.parts))

    def things(self) -> list[Thing]:
        """Its things, each once, in order."""
        return list(dict.fromkeys(move.thing for move in self.moves))


@dataclasses.dataclass
class _Steps:
    """What the turns of a trace tell."""

    captions: dict[str, str] = dataclasses.field(default_factory=dict)
    starts: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    picked: list[str] = dataclasses.field(default_factory=list)
    placed: list[tuple[str, str, str, str]] = dataclasses.field(default_factory=list)


def _read_steps(trace: Trace, words: PlaceWords) -> _Steps:
    found = _Steps()
    view = words.view
    for step in trace.steps:
        for name, (place, room) in parse_objects(step.observation).items():
            if place != HELD and name not in found.picked and view.room_of(place) == room:
                found.starts.setdefault(name, (place, room))
        if described := parse_description(step.observation):
            found.captions[described[0]] = described[1]
        action, arguments = parse_action(step.action)
        if not parse_result(step.observation).startswith("Successful"):
            continue
        if action == "Pick" and arguments[0] in found.starts:
            found.picked.append(arguments[0])
        elif action == "Place" and len(arguments) == 5 and view.room_of(arguments[2]):
            found.placed.append((arguments[0], arguments[1], arguments[2], arguments[4]))
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
    _ground(moves, steps, trace.won)
    parts = (*sentences(trace.instruction), *sentences(trace.note))
    kinds = {kind_of(name) for name in steps.starts} | {core_of(move.thing.phrase) for move in moves}
    return Remembered(trace.instruction[:90], parts, moves, asked, frozenset(kinds))


def _moves_from(steps: _Steps, words: PlaceWords) -> list[Move]:
    things: dict[str, Thing] = {}
    moves = []
    for name, relation, piece, beside in steps.placed:
        thing = things.setdefault(name, Thing(kind_of(name)))
        kind = "floor" if piece.startswith("floor_") else kind_of(piece)
        place = PlaceMention(relation, kind, room_type(words.view.room_of(piece)))
        moves.append(Move(thing, place, relation == "within", things.get(beside), group=len(moves)))
    return with_carries(moves)


def _ground(moves: list[Move], steps: _Steps, won: bool) -> None:
    """Say of each thing which object it was in the memory, where it was found and put, and how it looked."""
    used: set[str] = set()
    names = list(dict.fromkeys([*(p[0] for p in steps.placed), *steps.picked]))
    for thing in dict.fromkeys(move.thing for move in moves):
        fits = [name for name in names if name not in used and kind_score(thing.phrase, kind_of(name)) >= 2]
        fits = fits or [name for name in names if name not in used and kind_score(thing.phrase, kind_of(name)) >= 1]
        if not fits:
            seen = [n for n in steps.starts if n not in used and kind_score(thing.phrase, kind_of(n)) >= 2]
            fits = seen if len(seen) == 1 else []
        if not fits:
            continue
        name = fits[0]
        used.add(name)
        thing.kind, thing.before = kind_of(name), name
        thing.start, thing.start_room = steps.starts.get(name, ("", ""))
        if name in steps.captions and (won or not thing.said):
            thing.captions = (steps.captions[name],)
        spots = [piece for placed, _, piece, _ in steps.placed if placed == name]
        mine = [move for move in moves if move.thing is thing and not move.carry]
        for move, spot in zip(mine, spots if len(spots) == len(mine) else spots[-1:] if len(mine) == 1 else []):
            if move.place is None or not move.place.piece or move.place.piece in (kind_of(spot), "floor"):
                move.piece = spot
