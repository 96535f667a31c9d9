"""What is within reach of where the agent stands, and what that tells: the dining table is the one with chairs.

    reach = Reach(view)
    reach.remember(trace)                                 # what its answers tell
    reach.take("Pick[cup_0]", observation)                # and those of this run
    reach.within("Place", "table_38", reach.stand)        # True, False, or None where no answer told it

    nearby = Nearby(view)
    reply = nearby.next(held, place, targets, spare)      # Reply("...", "Navigate[chair_14]"), then Place on a table
    nearby.learn("Place", "table_38", False)              # it was too far from that chair
    nearby.found(place)                                   # "table_38" once that was near

The texts say of no piece where in its room it stands. What they say is whether a piece is within reach of where the
agent is. So it stands at a chair with the thing in its hand and tries the tables of that room, one after the other.
A walk that a memory shows to be needless is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from embodied_mem.worlds.memento.agent.agent import Reply
from embodied_mem.worlds.memento.traces.trace import HELD, Trace, parse_action, parse_objects, parse_result

from .goals import Move
from .house import HouseView, kind_of
from .lexicon import NEAR, PlaceMention

_STANDS, _MORE_STANDS = 2, 4
"""Chairs at which it is tried (the first may be an armchair), and where one is to be confirmed."""
_CONFIRM = 10
"""Actions to spare from which a second chair is asked, since from one in a corner two tables are within reach."""


class Stand(NamedTuple):
    """Where the agent stands.

    Attributes:
        at: a piece, or a room of which it has just made the tour (which ends at the same piece each time); empty if
            neither.
        came: the stand before; the agent stops on that one's side of a piece.
    """

    at: str = ""
    came: str = ""


class Fact(NamedTuple):
    """From a stand something can be picked up from a piece, or put on it, as `tool` says.

    Attributes:
        toward: whether the agent came to the stand straight from that piece, so that it is on the piece's side.
    """

    tool: str
    at: str
    toward: bool
    piece: str


class Reach:
    """What is within reach of where, by answers of this run and of remembered ones.

    Attributes:
        stand: where the agent stands now.
    """

    def __init__(self, view: HouseView):
        self._view = view
        self._known: dict[Fact, bool] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self.stand = Stand()

    def remember(self, trace: Trace) -> None:
        """Take in a remembered run; what it tells of pieces that this house lacks is left out."""
        for step in trace.steps:
            self.take(step.action, step.observation)
        self._places, self.stand = {}, Stand()

    def take(self, action: str, observation: str) -> None:
        """Take in what an action led to."""
        name, arguments = parse_action(action)
        result = parse_result(observation)
        succeeded = result.startswith("Successful")
        if name in ("Pick", "Place") and (piece := self._piece(name, arguments)):
            fact = self.fact(name, piece, self.stand)
            if succeeded or "Not close enough" in result:
                self._known[fact] = succeeded
        elif name == "Navigate" and succeeded:
            self.stand = self.moved(self._places.get(arguments[0], (arguments[0], ""))[0], self.stand)
        elif name == "Explore" and arguments:
            self.stand = Stand(arguments[0])
        self._places = parse_objects(observation) or self._places

    def _piece(self, tool: str, arguments: Sequence[str]) -> str:
        """The piece that an action reaches for, if it is in the room where the agent stands; else empty."""
        if tool == "Pick" and arguments:
            piece, room = self._places.get(arguments[0], ("", ""))
            piece = piece if self._view.furniture.get(piece) == room else ""
        else:
            piece = arguments[2] if len(arguments) == 5 else ""
        return piece if piece != HELD and self._near(piece, self.stand) else ""

    def _near(self, piece: str, stand: Stand) -> bool:
        room = self._view.room_of(stand.at)
        return bool(room) and self._view.furniture.get(piece) == room

    def moved(self, place: str, stand: Stand) -> Stand:
        """Where the agent stands once it has walked to a piece; unknown for a room or a floor."""
        return Stand(place if place in self._view.furniture else "", stand.at)

    @staticmethod
    def fact(tool: str, piece: str, stand: Stand) -> Fact:
        """The statement that a piece is within reach of a stand."""
        return Fact(tool, stand.at, stand.came == piece, piece)

    def within(self, tool: str, piece: str, stand: Stand, assumed: Collection[Fact] = ()) -> bool | None:
        """Whether a piece is within reach for a tool; None where no answer tells it.

        What is within reach from a stand is so, too, where the agent came to it straight from the piece.
        """
        if piece == stand.at:
            return True
        if not self._near(piece, stand):
            return False
        fact = self.fact(tool, piece, stand)
        other = fact._replace(toward=not fact.toward)
        if fact in assumed or (fact.toward and other in assumed):
            return True
        if fact in self._known:
            return self._known[fact]
        known = self._known.get(other)
        return known if known is fact.toward else None

    def needed(
        self, moves: Sequence[Move], goal_of: Callable[[Move], str], goal: str = "", assumed: Collection[Fact] = ()
    ) -> int:
        """Actions that moves need: pick and place, and a walk to each thing and place not known to be within reach.

        The first thing is put on `goal`, or else where `goal_of` says; `assumed` is taken to be within reach.
        """
        stand = self.stand
        held = next((m.thing for m in moves if m.thing.name and m.thing.name == self._view.held), None)
        places: dict[int, str] = {}
        count = 0
        for move in moves:
            thing, goal = move.thing, goal or goal_of(move)
            steps = [("Place", goal)]
            if thing is not held:
                seen = self._view.objects.get(thing.name)
                source = places.get(id(thing), "") or (seen.place if seen is not None else thing.start)
                steps.insert(0, ("Pick", source))
            for tool, place in steps:
                if move.carry and tool == "Place":
                    stand = self.moved(place, stand)
                elif not (place and self.within(tool, place, stand, assumed)):
                    stand, count = self.moved(place, stand), count + 1
                count += 1
            held, goal = (thing, "") if move.carry else (None, "")
            if not move.carry:
                places[id(thing)] = steps[-1][1]
        return count


class Nearby:
    """What was tried and found in one house: each stand votes for the first piece that was within its reach."""

    def __init__(self, view: HouseView):
        self._view = view
        self._far: set[tuple[str, str]] = set()
        self._votes: dict[tuple[str, str, str], dict[str, str]] = {}
        self._asked: tuple[tuple[str, str, str], str] | None = None

    def _ranked(self, place: PlaceMention) -> list[tuple[str, int]]:
        """Pieces with their votes, most first; of equals the first."""
        return Counter(self._votes.get(place.name, {}).values()).most_common()

    def found(self, place: PlaceMention) -> str:
        """The piece that turned out to be called so; empty as long as none has."""
        return next((piece for piece, _ in self._ranked(place)), "")

    def settled(self, place: PlaceMention) -> bool:
        """Whether two stands agree."""
        return any(votes > 1 for _, votes in self._ranked(place))

    def disputed(self, place: PlaceMention) -> bool:
        """Whether two stands disagree, so that a third one decides."""
        return len(self._votes.get(place.name, {})) == len(self._ranked(place)) == 2

    def next(
        self, held: str, place: PlaceMention, targets: Sequence[str], spare: int, beside: tuple[str, str] = ("", "")
    ) -> Reply | None:
        """The next action that tells which of the targets is meant; None where nothing around can tell it.

        Args:
            held: name of the thing in the hand, which is put on the first piece that is near enough.
            place: how the piece was called.
            targets: pieces that may be meant, best first; those of the first one's room are tried.
            spare: actions left over.
            beside: name of the thing that it is to be next to, and the piece that this one is on.
        """
        view, room = self._view, self._view.room_of(targets[0])
        pieces = [name for name in targets if view.room_of(name) == room and kind_of(name) == place.piece]
        votes = self._votes.get(place.name, {})
        if place.hint not in NEAR or len(pieces) < 2 or self.settled(place) or spare < (_CONFIRM if votes else 0):
            return None
        pieces.sort(key=lambda piece: piece not in votes.values())
        kinds = {kind: [name for name in view.rooms[room] if kind_of(name) == kind] for kind in NEAR[place.hint]}
        stands = next((names for names in kinds.values() if names), [])[: _MORE_STANDS if votes else _STANDS]
        for stand in stands:
            untried = [piece for piece in pieces if (stand, piece) not in self._far]
            if not untried or stand in votes:
                continue
            if view.at != stand:
                return Reply(f"Which is the {place.hint} {place.piece}? One stands at {stand}.", f"Navigate[{stand}]")
            self._asked = place.name, untried[0]
            mate = f"next_to, {beside[0]}" if beside[1] == untried[0] else "None, None"
            return Reply(
                f"I try whether {untried[0]} is within reach of {stand}.",
                f"Place[{held}, on, {untried[0]}, {mate}]",
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
        if succeeded and self._view.at:
            self._votes.setdefault(asked[0], {})[self._view.at] = piece
        elif self._view.at:
            self._far.add((self._view.at, piece))
        return True
