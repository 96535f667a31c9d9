"""Task sentences that ALFWorld lacks: several things with a place each, all things of a kind, doors, a place to go to.

    parse_errands("put a plate in sofa from sink, then a cup in blacktable.").moves[1]   # Move("cup", "blacktable")
    parse_errands("put a plate in sofa.")                                                # None: ALFWorld has it itself

One thing with one place and nothing else is said in ALFWorld's own sentence, `alfworld_text.parse_goal`.
"""

from __future__ import annotations

import dataclasses
import re

_MOVE = re.compile(r"(?P<article>an?|all) (?P<thing>[a-z]+) in (?P<place>[a-z]+)(?: from (?P<source>[a-z]+))?")
_VISIT = re.compile(r"(?P<verb>go to|open|close) (?P<place>[a-z]+)")
_THEN = ", then "


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """A thing to bring; types of things and places as in ALFWorld's texts.

    Attributes:
        thing: what.
        place: where to.
        source: where it is said to be; empty if that is not said.
        all: whether all of the kind are meant.
    """

    thing: str
    place: str
    source: str = ""
    all: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Errands:
    """What a sentence asks for: moves in order, or one visit.

    Attributes:
        moves: what is to be brought; empty if there is a visit.
        visit: "go to P", "open P" or "close P"; empty if there are moves.
    """

    moves: tuple[Move, ...] = ()
    visit: str = ""


def render_errands(errands: Errands) -> str:
    """The sentence, with its full stop."""
    if errands.visit:
        return f"{errands.visit}."
    parts = [
        f"{'all' if m.all else 'a'} {m.thing} in {m.place}" + (f" from {m.source}" if m.source else "")
        for m in errands.moves
    ]
    return f"put {_THEN.join(parts)}."


def parse_errands(goal: str) -> Errands | None:
    """What a sentence asks for; None if it is none of these, or one that ALFWorld has itself."""
    text = " ".join(goal.lower().split()).removeprefix("your task is to: ").rstrip(".")
    if _VISIT.fullmatch(text):
        return Errands(visit=text)
    parts = text.removeprefix("put ").split(_THEN)
    found = [move for move in map(_MOVE.fullmatch, parts) if move]
    if not text.startswith("put ") or len(found) < len(parts):
        return None
    moves = tuple(Move(m["thing"], m["place"], m["source"] or "", m["article"] == "all") for m in found)
    return Errands(moves) if moves != (Move(moves[0].thing, moves[0].place),) else None
