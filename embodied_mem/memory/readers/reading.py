"""Readers: a protocol that turns a world's texts into data; memory knows no wording beyond it.

reading = reader.read("You arrive at desk 1. On the desk 1, you see a pen 2, and a mug 1.")
reading.facts        # (("agent", "at", "desk 1"), ("pen 2", "on", "desk 1"), ("mug 1", "on", "desk 1"))
reading.complete     # (("desk 1", ("pen 2", "mug 1")),): what else was thought to be there is gone
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ...types import Episode

AGENT = "agent"
ROOM = "room"
PLACED = "placed"
"""Relation of something put down; whether it is "in" or "on" depends on what else is known of the receptacle."""

NOT = "not "
"""Before a relation: it is not so. ("mug", "not on", "table") ends what was known of it."""

MAX_READ = 4000
"""Characters of a text that rules of grammar read; a longer one is a document, not a report, and stays a text.

The longest instruction of MEMENTO has 439 and the longest turn of LoCoMo 710. Rules may be quadratic: this bounds them.
"""

STATE_AFTER = {"clean": "clean", "heat": "hot", "cool": "cool"}
"""What a thing is after it was cleaned, heated, cooled."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """One text as data.

    Attributes:
        facts: (subject, relation, object). Relations: "in", "on", `PLACED`, "holds", "at", "is", "in room", "next to",
            any other words; after `NOT`, what is not so.
        complete: (container, names): all that is in or on the container, or in the hand if it is `AGENT`.
        understood: whether a rule knew the text; a refusal ("Nothing happens.") is understood and tells nothing.
        refused: whether the text says that the command had no effect, in words that a rule knows or in others.
        examined: the thing that the text describes by itself, where it is no place that was gone to.
        unread: the lines that no rule knew; None where the reader did not go line by line.
    """

    facts: tuple[tuple[str, str, str], ...] = ()
    complete: tuple[tuple[str, tuple[str, ...]], ...] = ()
    understood: bool = True
    refused: bool = False
    examined: str = ""
    unread: tuple[str, ...] | None = dataclasses.field(default=None, compare=False)

    @property
    def arrived_at(self) -> str:
        """The place just reached; empty if none was."""
        return next((place for subject, relation, place in self.facts if (subject, relation) == (AGENT, "at")), "")

    @property
    def looked_into(self) -> str:
        """The place all of whose contents the text shows; empty if it shows none."""
        return next((place for place, _ in self.complete if place not in (AGENT, self.examined)), "")


class Event(NamedTuple):
    """An action that changed something.

    Attributes:
        step: index of the action.
        kind: `take`, `place`, `clean`, `heat`, `cool` or `use`.
        object: the thing.
        receptacle: from, to or at which; of `use`, where the agent stood.
    """

    step: int
    kind: str
    object: str
    receptacle: str


class Reader(Protocol):
    """Reads the texts of one kind of world. Pure functions; an unknown text is never an error.

    Attributes:
        name: under which memories note who read their texts.
    """

    name: str

    def read(self, text: str) -> Reading:
        """What one answer of the world says."""
        ...

    def room(self, first_observation: str) -> str:
        """The part of a first observation that describes the room, one line; empty if there is none."""
        ...

    def place(self, first_observation: str) -> str:
        """A name for the room, the same for the same furniture; empty if the text does not tell."""
        ...

    def goal_object(self, goal: str) -> str:
        """Kind of object that the goal is about; empty if that is not understood."""
        ...

    def events(self, episode: Episode) -> Sequence[Event]:
        """Actions that changed something, in order."""
        ...


def single_spaced(text: str) -> str:
    """Give a text's lines with single blanks."""
    return "\n".join([" ".join(line.split()) for line in text.splitlines()])


def legible(text: str) -> str:
    """Give a text's lines with single blanks; an empty text for one that is too long for rules of grammar."""
    short = single_spaced(text)
    return short if len(short) <= MAX_READ else ""


def of_lines(readings: Sequence[Reading], unread: tuple[str, ...] | None = None) -> Reading:
    """The reading of a text, given those of its lines: understood or refused if one of them is."""
    facts = tuple([fact for reading in readings for fact in reading.facts])
    complete = tuple([container for reading in readings for container in reading.complete])
    understood = any([reading.understood for reading in readings])
    refused = any([reading.refused for reading in readings])
    return Reading(facts, complete, understood, refused, unread=unread)


def refusals(reader: Reader, episode: Episode, outcomes: Mapping[int, bool] | None = None) -> list[bool]:
    """Of each step, whether it had no effect: as the world told (`outcomes`), else as its answer says."""
    known = outcomes or {}
    return [
        known[step] if step in known else reader.read(answer).refused for step, answer in enumerate(episode.answers)
    ]


def effects(reader: Reader, episode: Episode, outcomes: Mapping[int, bool] | None = None) -> list[Event]:
    """Actions that changed something, in order; none of those of which the world told that they failed."""
    events = map(Event._make, reader.events(episode))
    return [event for event in events if not (outcomes and outcomes.get(event.step))]


def unread_lines(reader: Reader, text: str, reading: Reading) -> list[str]:
    """The lines of a text that its reader does not understand; `reading` is of the whole text."""
    if reading.unread is not None:
        return list(reading.unread)
    if reading.understood and "\n" not in text:
        return []
    return [line for line in text.splitlines() if line.strip() and not reader.read(line).understood]


def class_of(name: str) -> str:
    """Kind of a numbered thing: "mug 2" -> "mug", "table_10" -> "table"; other names stay."""
    words = name.rstrip("0123456789")
    return words[:-1] if words != name and words[-1:] in (" ", "_") else name
