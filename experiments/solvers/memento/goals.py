"""Goals of a household agent: moves of things, in order, as an instruction or a memory gives them.

    moves = moves_of(read_instruction(text, words))
    moves[0].thing.phrase, moves[0].place

A `Thing` is what words and memory say of one object; which object of the house it is, the agent finds out.
"""

from __future__ import annotations

import dataclasses

from .instruction import Asked
from .lexicon import PlaceMention, content, core_of, kind_score, same_thing


@dataclasses.dataclass(eq=False)
class Thing:
    """One object that is meant.

    Attributes:
        phrase: how it is called.
        said: sentences about it, descriptions and personal facts.
        captions: how the world described it in a memory.
        kind: its category, where a memory tells.
        start: piece it was found on in a memory.
        start_room: room it was found in in a memory.
        name: its name here, once the agent has decided.
        known: whether what is meant is clear from words or memory.
        sought: whether rooms are explored for it of which neither words nor memory speak.
    """

    phrase: str
    said: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    kind: str = ""
    start: str = ""
    start_room: str = ""
    name: str = ""
    known: bool = True
    sought: bool = True

    def text(self) -> str:
        """All words about it."""
        return " ".join((self.phrase, *self.said, *self.captions, self.kind))


@dataclasses.dataclass(eq=False)
class Move:
    """One thing to be put somewhere.

    Attributes:
        place, inside, beside_place, source, arrange: as of `Placement`.
        beside: thing it is to be next to.
        carry: enough to carry it there, since it goes on from there.
        piece: the piece a memory used.
        group: number of the request; things of one request go to one piece.
        part: number of the part of the instruction that it belongs to.
    """

    thing: Thing
    place: PlaceMention | None
    inside: bool = False
    beside: Thing | None = None
    beside_place: PlaceMention | None = None
    source: PlaceMention | None = None
    carry: bool = False
    piece: str = ""
    group: int = 0
    arrange: bool = False
    part: int = 0


def fit(thing: Thing, other: Thing) -> float:
    """How well a phrase fits a known thing, in [0, 2]: its category, and its words among what is known of the thing."""
    kind = max(kind_score(thing.phrase, other.kind or core_of(other.phrase)), 0.0) / 3
    own = set(content(thing.phrase)) - set(content(other.kind or core_of(other.phrase)))
    has = set(content(other.text()))
    return kind + (len(own & has) / len(own) if own else 0.0)


def moves_of(asked: Asked) -> list[Move]:
    """The moves that an instruction asks for, in order."""
    things: list[Thing] = []

    def thing(phrase: str) -> Thing:
        core = core_of(phrase)
        for known in things:
            if core_of(known.phrase) == core or phrase == known.phrase:
                return known
        said = [what for name, what in asked.descriptions if core_of(name) == core or same_thing(name, phrase)]
        if not said:
            last = content(core)[-1:]
            said = [what for name, what in asked.descriptions if content(name)[-1:] == last]
        things.append(Thing(phrase, tuple(dict.fromkeys(said))))
        return things[-1]

    moves: list[Move] = []
    for number, asked_for in enumerate(asked.placements):
        previous: Thing | None = None
        for phrase in asked_for.things:
            one = thing(phrase)
            beside = thing(asked_for.beside) if asked_for.beside and asked_for.beside_place is None else None
            if asked_for.together and previous is not None:
                beside = previous
            same = {name: getattr(asked_for, name) for name in ("place", "inside", "beside_place", "source", "arrange")}
            moves.append(Move(one, beside=beside if beside is not one else None, group=number, **same))
            previous = one
    return with_carries(moves)


def with_carries(moves: list[Move]) -> list[Move]:
    """Mark the moves to a room from which the same thing alone goes on at once."""
    for i, move in enumerate(moves):
        alone = sum(other.group == move.group for other in moves) == 1
        onward = i + 1 < len(moves) and moves[i + 1].thing is move.thing
        move.carry = bool(alone and onward and move.place is not None and not move.place.piece)
    return moves
