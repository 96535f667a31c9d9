"""Finds out which of several pieces is meant by what stands around it: the dining table is the one with chairs.

    nearby = Nearby(view)
    reply = nearby.next(held, place, targets, spare)      # Reply("...", "Navigate[chair_14]"), then Place on a table
    nearby.learn("Place", "table_38", False)              # it was too far from that chair
    nearby.found(place)                                   # "table_38" once that was near

The texts say of no piece where in its room it stands. What they say is whether a piece is within reach of where the
agent is. So it stands at a chair with the thing in its hand and tries the tables of that room, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from .agent import Reply
from .house import HouseView, kind_of
from .lexicon import NEAR, PlaceMention

_STANDS = 2
"""Chairs at which it is tried; the first may be an armchair."""


class Nearby:
    """What was tried and found in one house."""

    def __init__(self, view: HouseView):
        self._view = view
        self._far: set[tuple[str, str]] = set()
        self._found: dict[tuple[str, str, str], str] = {}
        self._asked: tuple[tuple[str, str, str], str] | None = None

    def found(self, place: PlaceMention) -> str:
        """The piece that turned out to be called so; empty as long as none has."""
        return self._found.get(place.name, "")

    def next(self, held: str, place: PlaceMention, targets: Sequence[str], spare: int) -> Reply | None:
        """The next action that tells which of the targets is meant; None where nothing around can tell it.

        Args:
            held: name of the thing in the hand, which is put on the first piece that is near enough.
            place: how the piece was called.
            targets: pieces that may be meant, best first; those of the first one's room are tried.
            spare: actions left over.
        """
        view, room = self._view, self._view.room_of(targets[0])
        pieces = [name for name in targets if view.room_of(name) == room and kind_of(name) == place.piece]
        if place.hint not in NEAR or len(pieces) < 2 or self.found(place) or spare < 0:
            return None
        kinds = {kind: [name for name in view.rooms[room] if kind_of(name) == kind] for kind in NEAR[place.hint]}
        stands = next((names for names in kinds.values() if names), [])[:_STANDS]
        for stand in stands:
            untried = [piece for piece in pieces if (stand, piece) not in self._far]
            if not untried:
                continue
            if view.at != stand:
                return Reply(f"Which is the {place.hint} {place.piece}? One stands at {stand}.", f"Navigate[{stand}]")
            self._asked = place.name, untried[0]
            return Reply(
                f"I try whether {untried[0]} is within reach of {stand}.",
                f"Place[{held}, on, {untried[0]}, None, None]",
            )
        return None

    def learn(self, action: str, piece: str, succeeded: bool) -> bool:
        """Take in what came of an action; whether it was such a trial.

        Args:
            action: its tool.
            piece: what the thing was to be put on.
            succeeded: whether it was put there.
        """
        asked, self._asked = self._asked, None
        if asked is None or action != "Place" or asked[1] != piece:
            return False
        if succeeded:
            self._found[asked[0]] = piece
        elif self._view.at:
            self._far.add((self._view.at, piece))
        return True
