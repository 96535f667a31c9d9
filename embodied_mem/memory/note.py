"""A note: a text as it was said, with its sources, its ends and what it was before.

rendered(note)            # "[8 May] Ann: I like oat milk. (no longer, since time 9)"
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import InvalidInputError
from .arguments import checked_mapping, checked_number, checked_text, shown
from .mentions import normal
from .trust import Trust, checked_trust

TOLD, SEEN = "told", "seen"
"""Kinds of notes: what somebody said, and what the world answered."""

Value = str | int | float | bool | None

RESERVED = (
    "id", "module", "text", "created", "updated", "ended", "sources", "trust", "labels", "data", "kind", "speaker",
    "when", "action",
)  # fmt: skip
"""Fields of a note, which no label may be called."""


class Source(NamedTuple):
    """Where a note comes from."""

    episode: int
    step: int
    time: int


class End(NamedTuple):
    """One claim of a note that is no longer so: which of its claims, since when, and the note that says so."""

    claim: int
    time: int
    by: int


class Version(NamedTuple):
    """What a note was before: text, labels, and until when."""

    text: str
    labels: dict[str, Value]
    until: int


@dataclasses.dataclass
class Note:
    """One text.

    Attributes:
        id: never used again.
        text: as it was said.
        kind: `TOLD` or `SEEN`.
        speaker: who said it; empty for the user of the scope, or the world.
        when: a date, in whatever words; empty if none was given.
        action: what a seen text answers.
        labels: the caller's own, to filter by.
        sources: when it was said, oldest first.
        num_claims, num_denials: how many claims it makes, and how many of them deny something.
        ends: claims that are no longer so.
        past: earlier versions.
        trust: of who says it. The same text of a source of another level is another note.
    """

    id: int
    text: str
    kind: str
    speaker: str
    when: str
    action: str
    labels: dict[str, Value]
    sources: list[Source]
    num_claims: int
    num_denials: int
    ends: list[End]
    past: list[Version]
    trust: Trust

    @property
    def created(self) -> int:
        """Time at which it was said first."""
        return self.sources[0].time

    @property
    def ended(self) -> int | None:
        """Time from which on nothing that it claims is so; None if something is."""
        return max(end.time for end in self.ends) if self.ends and len(self.ends) >= self.num_claims else None

    @property
    def conversation(self) -> tuple[str, int] | None:
        """What is the same for texts of one conversation, the date or the task; None for a text outside of both."""
        episode = self.sources[0].episode
        return (self.when, episode) if self.when or episode >= 0 else None


def rendered(note: Note, as_of: int | None = None) -> str:
    """One line: date and speaker if they are known, the text, and since when it is no longer so."""
    text = " ".join((note.text if as_of is None else text_at(note, as_of)).split())
    lead = f"{note.speaker}: " if note.speaker else ""
    lead = f"[{note.when}] {lead}" if note.when else lead
    ends = [end for end in note.ends if as_of is None or end.time <= as_of]
    if not ends:
        return lead + text
    if len(ends) >= note.num_claims:
        return f"{lead}{text} (no longer, since time {max(end.time for end in ends)})"
    return f"{lead}{text} (in part no longer, since time {max(end.time for end in ends)})"


def text_at(note: Note, time: int) -> str:
    return next((version.text for version in note.past if time < version.until), note.text)


def labels_at(note: Note, time: int) -> dict[str, Value]:
    return next((version.labels for version in note.past if time < version.until), note.labels)


def note_data(note: Note) -> dict[str, str]:
    """What a note is as values, besides its text: who said it, when, and after which action."""
    return {"kind": note.kind, "speaker": note.speaker, "when": note.when, "action": note.action}


def about(note: Note) -> str:
    """What queries are compared with."""
    return " ".join(part for part in (note.speaker, note.text, note.when) if part)


def key(text: str, said: tuple[str, ...], labels: Mapping[str, Value]) -> tuple[Any, ...]:
    """What is equal for the same text said again; `said`: kind, speaker, when, action, trust."""
    return " ".join(text.split()).rstrip(".!"), said, tuple(sorted(labels.items()))


def key_of(note: Note) -> tuple[Any, ...]:
    return key(note.text, (note.kind, note.speaker, note.when, note.action, note.trust), note.labels)


def usual_trust(kind: str) -> Trust:
    """Whose a note is if nothing else is said."""
    return "user" if kind == TOLD else "sensor"


def new_labels(labels: Any) -> dict[str, Value]:
    """Check labels that a caller gives a note: those of `checked_labels` without the names in `RESERVED`."""
    found = checked_labels(labels)
    for name in found:
        if normal(name).strip() in RESERVED:
            raise InvalidInputError(
                f"labels: {shown(name)}: expected a name that is no field of an entry, got one of "
                f"{', '.join(sorted(RESERVED))}; choose another name"
            )
    return found


def checked_labels(labels: Any) -> dict[str, Value]:
    """The caller's labels: names to texts, numbers, flags or None."""
    found = {}
    for name, value in checked_mapping("labels", {} if labels is None else labels).items():
        if not (value is None or type(value) in (bool, int, float, str)):
            raise InvalidInputError(
                f"labels: {shown(name)}: expected text, a number, a flag or None, got {shown(value)}"
            )
        found[checked_text("labels: name", name)] = checked_text("labels", value) if isinstance(value, str) else value
    return found


def all_labels(note: Note) -> list[dict[str, Value]]:
    """The labels that a note has, and those that it had."""
    return [note.labels, *(version.labels for version in note.past)]


def label_texts(labels: Mapping[str, Value]) -> list[str]:
    return [f"{name} {value}" for name, value in labels.items()]


def words_of_version(version: Version) -> str:
    return " ".join([version.text, *label_texts(version.labels)])


def note_of(row: Mapping[str, Any]) -> Note:
    """The note of a row of a state; older versions kept no trust."""
    note = Note(**{"trust": usual_trust(row["kind"]), **row})
    checked_trust("state: trust", note.trust)
    texts = (note.text, note.kind, note.speaker, note.when, note.action)
    if not all(isinstance(text, str) for text in texts) or not note.sources:
        raise InvalidInputError(f"state: expected a note with texts and a source, got {shown(row)}")
    checked_number("state: id", note.id, 0)
    checked_number("state: claims", note.num_claims, 0)
    checked_number("state: denials", note.num_denials, 0)
    note.labels = checked_labels(note.labels)
    note.sources = [Source(*(checked_number("state: source", n) for n in source)) for source in note.sources]
    note.ends = [End(*(checked_number("state: end", n) for n in end)) for end in note.ends]
    note.past = [Version(text, labels, until) for text, labels, until in note.past]
    return note
