"""What the user's profile adds to memories: routines that no memory at hand tells, and what the user calls things.

    told = told_of(instruction, words, profile, memories)
    told.patterns               # as remembered tasks without steps
    told.named(asked)           # the request, of the things that the user's names stand for

A routine is something to do; a name is not: it says which thing is meant by a request that says itself what to do. What
a memory at hand tells, the profile has from it, with less: no pieces, no looks, no order of search. So a routine from
the same task is left out.

Source: MEMENTO D.1 (knowledge of two types). Deviation: the profile stands behind the memories, not beside them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.memory.knowledge import OBJECT_SEMANTICS
from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.traces.trace import Trace

from .goals import Thing, fit, moves_of
from .instruction import Asked, read_instruction
from .lexicon import PlaceWords, content, core_of
from .trace_goals import Remembered

_MOST = 5
_BEHIND = -0.1
SURE = 1.2
"""How well a phrase fits the thing that it means, at least."""


@dataclasses.dataclass(frozen=True)
class Called:
    """Things under what the user calls them."""

    alias: str
    things: tuple[Thing, ...]


@dataclasses.dataclass(frozen=True)
class Told:
    """What the profile says about an instruction.

    Attributes:
        patterns: routines and arrangements, as remembered tasks without steps.
        called: the user's names for things.
    """

    patterns: tuple[Remembered, ...] = ()
    called: tuple[Called, ...] = ()

    def things(self) -> list[Thing]:
        """All things that have a name."""
        return [thing for one in self.called for thing in one.things]

    def named(self, asked: Asked) -> Asked:
        """The request with the things that one name of the user's stands for ("my tea set") in place of the name."""
        placements, looks = [], list(asked.descriptions)
        for placement in asked.placements:
            phrases: list[str] = []
            for phrase in placement.things:
                group = self._group(phrase)
                phrases += [thing.phrase for thing in group] or [phrase]
                looks += [(thing.phrase, text) for thing in group for text in thing.said]
            placements.append(dataclasses.replace(placement, things=tuple(phrases)))
        return dataclasses.replace(asked, placements=tuple(placements), descriptions=tuple(looks))

    def _group(self, phrase: str) -> tuple[Thing, ...]:
        """The things of a name that a phrase says, or says in part: "my tea set"; not "the cup" of "my best cup"."""
        said = set(content(core_of(phrase)))
        for one in self.called:
            kinds = set(content(" ".join(thing.phrase for thing in one.things)))
            if said - kinds and said <= set(content(one.alias)):
                return one.things
        return ()

    def look_up(self, thing: Thing) -> Thing | None:
        """The thing that a phrase names best; None if none is sure."""
        best = max(self.things(), key=lambda other: fit(thing, other), default=None)  # the first of equals
        return best if best is not None and fit(thing, best) >= SURE else None


def told_of(instruction: str, words: PlaceWords, profile: UserProfile | None, memories: Sequence[Trace]) -> Told:
    """What the profile says about an instruction, beside these memories."""
    patterns, called = [], []
    at_hand = {memory.episode_id for memory in memories}
    for item in profile.recall(instruction, _MOST) if profile is not None else ():
        alias, told_at_hand = item.data["alias"], at_hand & {str(source.episode) for source in item.sources}
        if item.data["subtype"] == OBJECT_SEMANTICS:
            called.append(Called(alias, tuple(_thing(name, alias) for name in item.data["things"])))
        elif not told_at_hand and (one := _pattern(item.data, words)) is not None:
            patterns.append(one)
    return Told(tuple(patterns), tuple(called))


def _thing(name: str, alias: str = "") -> Thing:
    bare, _, look = name.partition(" (")
    return Thing(bare, tuple(text for text in (look.removesuffix(")"), alias) if text))


def _pattern(data: Mapping[str, Any], words: PlaceWords) -> Remembered | None:
    """A routine as a remembered task; None if it does not say what to put where."""
    alias = data["alias"]
    sentences, looks = [], []
    for name, relation, location in data["steps"]:
        bare, _, look = name.partition(" (")
        article = "" if location.lower().startswith("another ") else "the "
        sentences.append(f"Place the {bare} {relation if relation in ('next to', 'in') else 'on'} {article}{location}.")
        looks += [f"The {bare} is {look.removesuffix(')')}."] if look else []
    asked = read_instruction(" ".join(dict.fromkeys([*sentences, *looks])), words)
    moves = moves_of(asked)
    if not moves:
        return None
    texts = (alias, data["description"])
    return Remembered(f"the user's {alias}", texts, moves, asked, prior=_BEHIND, has_steps=False)
