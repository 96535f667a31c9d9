"""A player for agents by rules without a plan, and places that an episode told.

    player = ObservingExpert()                       # ALFWorld's; any `Player`
    player.reset(goal, first_observation, ["fridge 1", "shelf 2"])     # places to look at first
    command = player.act(first_observation)          # then act(answer), or observe(command, answer) of others' commands

A published agent has a model that explores and acts. Where there is none, the player does, the same for every agent, so
that agents differ by what they remember alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from embodied_mem.memory.readers import DEFAULT
from embodied_mem.memory.readers.reading import class_of


class Player(Protocol):
    """Plays a world from its texts.

    Attributes:
        order: places in which the goal's thing is looked for, best first, after `reset`.
    """

    order: list[str]

    def reset(self, goal: str, first_observation: str, search_order: Sequence[str] | None = None) -> None:
        """Starts an episode; what `search_order` leaves out is searched afterwards."""
        ...

    def act(self, observation: str) -> str:
        """Return the next command; `observation` answers the last one."""
        ...

    def observe(self, command: str, observation: str) -> None:
        """Takes note of what somebody else's command was answered."""
        ...


class Looked(NamedTuple):
    """Kind of the goal's thing, places where one was seen, places all of whose contents were seen without one."""

    thing: str
    found: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def looked_for(goal: str, answers: Iterable[str]) -> Looked:
    """Return what the answers of an episode tell."""
    thing, seen = DEFAULT.goal_object(goal), dict[str, bool]()
    for answer in answers:
        reading = DEFAULT.read(answer)
        if place := reading.looked_into:
            there = things_at(answer, place)
            seen[place] = seen.get(place, False) or any(class_of(name) == thing for name in there)
    return Looked(thing, tuple(p for p, has in seen.items() if has), tuple(p for p, has in seen.items() if not has))


def things_at(answer: str, place: str) -> tuple[str, ...]:
    """List all that an answer shows in or on a place."""
    return next((names for where, names in DEFAULT.read(answer).complete if where == place), ())
