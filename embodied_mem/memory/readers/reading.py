"""Readers: a protocol that turns a world's texts into data; memory knows no wording beyond it.

reading = reader.read("You arrive at desk 1. On the desk 1, you see a pen 2, and a mug 1.")
reading.facts        # (("agent", "at", "desk 1"), ("pen 2", "on", "desk 1"), ("mug 1", "on", "desk 1"))
reading.complete     # (("desk 1", ("pen 2", "mug 1")),): what else was thought to be there is gone

says_failure("Grasp failed")                       # True
says_failure("Reached the stove without errors")   # False
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from ...errors import InvalidInputError
from ...types import Episode
from ..arguments import shown

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
"""State of a thing after it was cleaned, heated, cooled."""


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
        departures: things that are no longer where they were, wherever that was.
    """

    facts: tuple[tuple[str, str, str], ...] = ()
    complete: tuple[tuple[str, tuple[str, ...]], ...] = ()
    understood: bool = True
    refused: bool = False
    examined: str = ""
    unread: tuple[str, ...] | None = dataclasses.field(default=None, compare=False)
    departures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for fact in self.facts:
            if len(fact) != 3 or not all(isinstance(name, str) for name in fact):
                raise InvalidInputError(f"reading: facts: expected (subject, relation, object), got {shown(fact)}")

    @property
    def arrived_at(self) -> str:
        """The place just reached; empty if none was."""
        return next((place for subject, relation, place in self.facts if (subject, relation) == (AGENT, "at")), "")

    @property
    def looked_into(self) -> str:
        """The place with all contents shown by the text, or ""."""
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


_NOT_READ = Reading(understood=False)
Value = TypeVar("Value")
_MAX_KEPT = 8  # a text and its lines


class Reader:
    """Reads the texts of one kind of world; this one understands nothing.

    Pure functions; an unknown text is never an error.

    Attributes:
        name: under which memories note who read their texts.
    """

    name = "plain"

    def read(self, text: str) -> Reading:
        """Return what one answer of the world says."""
        return _NOT_READ

    def room(self, first_observation: str) -> str:
        """Return the text about the room in a first observation."""
        return " ".join(first_observation.split())

    def place(self, first_observation: str) -> str:
        """Return a name for the room by its furniture, or ""."""
        return ""

    def goal_object(self, goal: str) -> str:
        """Return the kind of object that the goal is about, or ""."""
        return ""

    def events(self, episode: Episode) -> Sequence[Event]:
        """Return actions that changed something, in order."""
        return []


PLAIN = Reader()


class FirstOf(Reader):
    """Several readers as one: each line is for the first that understands.

        reader = FirstOf("my world", MyReader(), HOUSEHOLD, ENGLISH)

    Where none understands a line, what one understood most of counts, and the line stays one that nobody understands.
    """

    def __init__(self, name: str, *readers: Reader):
        self.name = name
        self.readers = readers

    def read(self, text: str) -> Reading:
        if "\n" not in text:
            return self._first(text)
        lines = [line for line in text.splitlines() if line.strip()]
        readings = [self._first(line) for line in lines]
        unread = tuple(line for line, reading in zip(lines, readings) if not reading.understood)
        return of_lines(readings, unread)

    def _first(self, line: str) -> Reading:
        """Return the reading of one line."""
        most = _NOT_READ
        for reader in self.readers:
            reading = reader.read(line)
            if reading.understood:
                return reading
            refused = most.refused or reading.refused
            if _size(reading) >= _size(most):
                most = reading
            most = dataclasses.replace(most, refused=refused)
        return most

    def room(self, first_observation: str) -> str:
        known = (reader for reader in self.readers if reader.read(first_observation).understood)
        return next(known, self.readers[0]).room(first_observation)

    def place(self, first_observation: str) -> str:
        return next(filter(None, (reader.place(first_observation) for reader in self.readers)), "")

    def goal_object(self, goal: str) -> str:
        return next(filter(None, (reader.goal_object(goal) for reader in self.readers)), "")

    def events(self, episode: Episode) -> Sequence[Event]:
        return next(filter(None, (reader.events(episode) for reader in self.readers)), [])


class ReadOnce(Reader):
    """A reader that caches the last readings; any thread may ask.

    An exception of the caller's reader is counted, and the text is one that it does not understand.

    Attributes:
        failed: readings that raised something, or were none.
        last_error: the last reason; empty if there was none.
    """

    def __init__(self, reader: Reader):
        if not isinstance(getattr(reader, "name", None), str) or not callable(getattr(reader, "read", None)):
            raise InvalidInputError(f"reader: expected one with a name and read(text), got {shown(reader)}")
        self.name = reader.name
        self.failed, self.last_error = 0, ""
        self._reader = reader
        self._last: dict[str, Reading] = {}
        self._events: tuple[Episode | None, Sequence[Event]] = None, ()  # of the last episode

    def read(self, text: str) -> Reading:
        reading = self._last.get(text)
        if reading is None:
            reading = self._ask(_NOT_READ, Reading, "read", text)
            self._last = self._last | {text: reading} if len(self._last) < _MAX_KEPT else {text: reading}
        return reading

    def _ask(self, otherwise: Value, kind: type, method: str, argument: Any) -> Value:
        """Return the reader's answer; `otherwise` for an exception or another type."""
        try:
            answer = getattr(self._reader, method)(argument)
            if not isinstance(answer, kind):
                raise InvalidInputError(f"reader: {method}: expected a {kind.__name__}, got {shown(answer)}")
        except Exception as error:  # of the caller's reader: no list of types would have them all
            self.failed, self.last_error = self.failed + 1, shown(error)
            return otherwise
        return cast(Value, answer)

    def clear(self) -> None:
        """Drop all texts."""
        self._last, self._events = {}, (None, ())

    def room(self, first_observation: str) -> str:
        return self._ask(super().room(first_observation), str, "room", first_observation)

    def place(self, first_observation: str) -> str:
        return self._ask("", str, "place", first_observation)

    def goal_object(self, goal: str) -> str:
        return self._ask("", str, "goal_object", goal)

    def events(self, episode: Episode) -> Sequence[Event]:
        last = self._events
        if last[0] is not episode:
            self._events = last = episode, self._ask((), Sequence, "events", episode)
        return last[1]


def single_spaced(text: str) -> str:
    """Give a text's lines with single blanks."""
    return "\n".join([" ".join(line.split()) for line in text.splitlines()])


def legible(text: str) -> str:
    """Return lines with single blanks; "" for too long a text."""
    short = single_spaced(text)
    return short if len(short) <= MAX_READ else ""


def of_lines(readings: Sequence[Reading], unread: tuple[str, ...] | None = None) -> Reading:
    """Return the reading of a text from those of its lines."""
    facts = tuple([fact for reading in readings for fact in reading.facts])
    complete = tuple([container for reading in readings for container in reading.complete])
    understood = any([reading.understood for reading in readings])
    refused = any([reading.refused for reading in readings])
    departures = tuple([name for reading in readings for name in reading.departures])
    return Reading(facts, complete, understood, refused, unread=unread, departures=departures)


def _size(reading: Reading) -> int:
    return len(reading.facts) + len(reading.complete) + len(reading.departures)


def refusals(reader: Reader, episode: Episode, outcomes: Mapping[int, bool] | None = None) -> list[bool]:
    """Return whether each step had no effect, by outcome or answer."""
    known = outcomes or {}
    return [
        known[step] if step in known else reader.read(answer).refused for step, answer in enumerate(episode.answers)
    ]


def effects(reader: Reader, episode: Episode, outcomes: Mapping[int, bool] | None = None) -> list[Event]:
    """Return actions that changed something, without those known to have failed."""
    events = map(Event._make, reader.events(episode))
    return [event for event in events if not (outcomes and outcomes.get(event.step))]


def unread_lines(reader: Reader, text: str, reading: Reading) -> list[str]:
    """Return the lines of a text that its reader does not understand."""
    if reading.unread is not None:
        return list(reading.unread)
    if reading.understood and "\n" not in text:
        return []
    return [line for line in text.splitlines() if line.strip() and not reader.read(line).understood]


def class_of(name: str) -> str:
    """Return the kind of a numbered thing: "mug 2" -> "mug"."""
    words = name.rstrip("0123456789")
    return words[:-1] if words != name and words[-1:] in (" ", "_") else name


SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")
_DENIED = (
    r"(?:\b(?:no|not|never|without|zero|0)\s+(?:\w+\s+){0,2}?|n['’]t\s+(?:\w+\s+)?"
    r"|\b(?:avoid\w*|prevent\w*|instead\s+of|rather\s+than)\s+(?:\w+\s+)?)"
)
_FAILURE = re.compile(
    r"\b(?:fail(?:ed|s|ure|ures|ing)?|unable|impossible|unsuccessful(?:ly)?|unreachable|infeasible|invalid|illegal"
    r"|refused|rejected|denied|aborted|abort|cancell?ed|timed\s+out|time-?out|errors?|exception|stuck|jammed|collided"
    r"|collision|unknown\s+(?:action|command|object|skill)|out\s+of\s+(?:reach|range)|in\s+vain)\b"
)
_NOT_DONE = re.compile(
    r"\b(?:can\s*not|could\s+not|can['’]t|couldn['’]t|unable\s+to)\b"
    r"|\b(?:not|n['’]t|never|no\s+longer)\s+(?:\w+\s+)?(?:able|allowed|possible|permitted|succeed\w*|success\w*|work(?:ed|ing)?|found"
    r"|reach\w*|respon\w+|understand|recogni[sz]e\w*|complete[d]?|executed?|performed|available|exist\w*|valid|see\s+(?:that|any|a|the))\b"
    r"|\b(?:nothing\s+happen(?:s|ed)|no\s+(?:effect|such|path|plan|solution|response|change)|you\s+don['’]t)\b"
    r"|\bwithout\s+(?:success|effect|result)\b"
)
_NONE = re.compile(r"\b(?:errors?|failures?|exceptions?|collisions?)\s*[:=]\s*(?:none|no|0|false|null|\[\])(?!\s*\w)")
_NAMED = re.compile(r"[\"“‘][^\"“‘”’]*[\"”’]|\b(?:titled|called|named|labell?ed|reads?|says?)\b.*")
_DENIED_FAILURE = re.compile(_DENIED + _FAILURE.pattern)


def says_failure(text: str) -> bool:
    """Return whether a sentence of the text reports a failure."""
    for sentence in SENTENCE_END.split(single_spaced(text.lower())):
        sentence = _NONE.sub(" ", _NAMED.sub(" ", sentence))
        if _NOT_DONE.search(sentence) or _FAILURE.search(_DENIED_FAILURE.sub(" ", sentence)):
            return True
    return False
