"""The one form of everything that is remembered: text, source, trust, times, place.

    record = memory.get("notes:12")
    record.text, record.recorded, record.ended, record.sources
    [old.text for old in memory.history("notes:12")]
    memory.retrieve("where is the mug?").items[0].score

An id is the name of a module and a number in it; it stays the same for as long as the record is there. Notes are what
was told, so notes can be given another text; all else follows from what was told and seen.
"""

from __future__ import annotations

import abc
import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from ..errors import InvalidInputError
from .arguments import checked_mapping, checked_number, checked_text, shown
from .stored_modules import RecordedModule
from .trust import QUOTED, Trust, checked_trust, marked

FIELDS = (
    "id", "module", "trust", "kind", "speaker", "when", "action", "subtype", "alias", "description", "notes", "fact",
    "goal", "place", "won", "actions", "origin", "steps", "why", "failures", "said", "terms", "command", "fix",
    "pose", "clock", "images", "things", "nodes",
)  # fmt: skip
"""Names that a filter may have besides labels: of a record, and of what is in its data."""
_OWN = ("id", "module", "trust", "kind", "speaker", "place", "fact", "pose", "images")
_MOST_DIGITS = 18
NOTHING: Mapping[str, Any] = types.MappingProxyType({})


class Source(NamedTuple):
    """Where something comes from: a task, its step where a single one is known, and when, where that is known."""

    episode: int
    step: int | None
    time: int | None = None


class Record(NamedTuple):
    """One thing remembered, as it is, was, or was found.

    Attributes:
        id: "notes:12".
        module: which module holds it: "notes".
        kind: "told" or "seen" of notes, "fact", "task", "found", "works", "lesson", "written", "step", "view",
            "object_semantics" or "user_pattern".
        text: one line; `get`, `get_all` and `history` have a note as it was said, `retrieve` and receipts as a prompt
            may have it: with speaker, date and end, and what others say as a quotation.
        speaker: who said it; empty for the user of the scope, or the world.
        place: the room; empty if none was given.
        recorded: time at which it came in.
        valid_from: time from which on it is so, in these words.
        ended: time from which on it is no longer so; None if it is.
        labels: the caller's own.
        fact: subject, relation and object.
        pose: from where it was seen: x, y, z in metres, and a quaternion x, y, z, w if one was given.
        images: what is kept of each.
        data: the rest as values, such as "when" and "action" of a note, "goal" and "actions" of a task.
        sources: what it comes from, oldest first; of one that was found, or is in a receipt, the newest alone if there
            are many.
        trust: of the source; of a fact, of its most trusted one.
        score: how well it fits what was asked, in [0, 1]; comparable between modules only roughly.
        why: how it was found.
        probability: how likely it answers what was asked; None where nobody asked, or it is not among the best eight.
    """

    id: str
    module: str
    kind: str
    text: str
    speaker: str = ""
    place: str = ""
    recorded: int = 0
    valid_from: int = 0
    ended: int | None = None
    labels: Mapping[str, Any] = NOTHING
    fact: tuple[str, str, str] | None = None
    pose: tuple[float, ...] = ()
    images: tuple[Mapping[str, Any], ...] = ()
    data: Mapping[str, Any] = NOTHING
    sources: tuple[Source, ...] = ()
    trust: Trust = "sensor"
    score: float = 0.0
    why: str = ""
    probability: float | None = None

    @property
    def number(self) -> str:
        """The number in its module, as the id ends in it."""
        return self.id[self.id.index(":") + 1 :]

    @property
    def episode(self) -> int | None:
        """The task that it was last learned from; None if there is no single one."""
        return self.sources[-1].episode if self.sources else None

    @property
    def step(self) -> int | None:
        """The step that it was last learned from; None if there is no single one."""
        return self.sources[-1].step if self.sources else None

    @property
    def is_quoted(self) -> bool:
        """True if its text is written as a quotation, and is not one by itself."""
        return self.trust in QUOTED and self.kind != "step"

    def fits(self, wanted: Mapping[str, Any]) -> bool:
        """Decide whether fields, data and labels have these values."""
        own = {**self.labels, **self.data}
        own |= {name: value for name in _OWN if (value := getattr(self, name))}
        if self.module == "notes":
            own["speaker"] = self.speaker
        return all(name in own and own[name] == value for name, value in wanted.items())

    def quoted(self) -> Record:
        """Quote what others say; a step's text is a quotation already."""
        return self._replace(text=marked(self.text, self.trust)) if self.is_quoted else self

    def until(self, time: int) -> Record:
        """Leave out an end that came after a time."""
        return self if self.ended is None or self.ended <= time else self._replace(ended=None)


new_record = functools.partial(tuple.__new__, Record)
"""Makes a record from all its fields in order; half the time of `Record(...)`, and a search makes one for each fact."""


class RecordMemory(RecordedModule):
    """A module of a `LifelongMemory`: what it holds are records.

    Attributes:
        module: its name, which ids begin with.
    """

    module: ClassVar[str]

    @abc.abstractmethod
    def numbers(self) -> Iterable[Any]:
        """List the numbers of all records, oldest first."""

    @abc.abstractmethod
    def record(self, number: Any) -> Record:
        """Make the record of a number of `numbers`."""

    def number_like(self, text: str) -> Any:
        """Find the number at an id's end; None without one."""
        return next((number for number in self.numbers() if str(number) == text), None)

    def records(self) -> list[Record]:
        """List all records, oldest first."""
        return [self.record(number) for number in self.numbers()]

    def past(self, number: Any) -> list[Record]:
        """List what a record was before, oldest first."""
        return []

    def record_at(self, number: Any, time: int) -> Record | None:
        """Make a record as of a time; None if absent then."""
        now = self.record(number)
        return now.until(time) if now.recorded <= time else None

    def done(self) -> list[tuple[str, Record]]:
        """List the last event's operations ("add", "repeat", "update", "end") with records."""
        return [(do, self.record(number).quoted()) for do, number in getattr(self, "changed", ())]


def row_of(record: Record) -> dict[str, Any]:
    """Make a record's JSON row without default values."""
    return {name: value for name, value in zip(Record._fields, record) if name not in _USUAL or value != _USUAL[name]}


def record_of(row: Any) -> Record:
    """Make a row's record. Raises InvalidInputError naming a bad field."""
    given = dict(checked_mapping("state: record", row))
    if unknown := given.keys() - _TYPES.keys():
        raise InvalidInputError(f"state: record: expected some of {', '.join(_TYPES)}, got {shown(min(unknown))}")
    for name, kinds in _TYPES.items():
        if name not in given and name not in _USUAL:
            raise InvalidInputError(f"state: record: {name}: expected it to be there, got {shown(sorted(given))}")
        if name in given and type(given[name]) not in kinds:
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise InvalidInputError(f"state: record: {name}: expected {expected}, got {shown(given[name])}")
    checked_trust("state: record: trust", given.get("trust", "sensor"))
    if "sources" in given:
        given["sources"] = tuple(_source_of(source) for source in given["sources"])
    for name in ("pose", "images", "fact"):
        if name in given and given[name] is not None:
            given[name] = tuple(given[name])
    return Record(**given)


def _source_of(row: Any) -> Source:
    if not isinstance(row, (list, tuple)) or not 1 < len(row) < 4:
        raise InvalidInputError(f"state: record: sources: expected episode, step and time, got {shown(row)}")
    episode, *rest = row
    more = (None if one is None else checked_number("state: record: sources", one) for one in rest)
    return Source(checked_number("state: record: sources", episode), *more)


_USUAL = Record._field_defaults
_LIST, _NUMBER, _TEXT = (list, tuple), (int,), (str,)
_TYPES: dict[str, tuple[type, ...]] = {
    "id": _TEXT, "module": _TEXT, "kind": _TEXT, "text": _TEXT, "speaker": _TEXT, "place": _TEXT, "recorded": _NUMBER,
    "valid_from": _NUMBER, "ended": (int, type(None)), "labels": (dict,), "fact": _LIST, "pose": _LIST, "images": _LIST,
    "data": (dict,), "sources": _LIST, "trust": _TEXT,
}  # fmt: skip


def whole_number(text: str) -> int | None:
    """Read the number at an id's end; None for other spellings."""
    if not text.isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS:
        return None
    return int(text) if str(int(text)) == text else None


def module_and_number(entry: Any, modules: Mapping[str, Any]) -> tuple[str, str]:
    """Split an id. Raises InvalidInputError for unknown modules and other texts."""
    name, mark, number = checked_text("id", entry).partition(":")
    if not mark or name not in modules:
        raise InvalidInputError(
            f"id: expected one like notes:12 of {', '.join(modules) or 'no memory'}, got {shown(entry)}"
        )
    return name, number
