"""Entries of all memories under one form: what is kept, since when, until when, from which source.

    entry = memory.get("notes:12")
    entry.text, entry.created, entry.ended, entry.sources
    [old.text for old in memory.history("notes:12")]

An id is the name of the memory and the number of the entry in it; it stays the same for as long as the entry is there.
Entries of episodic, semantic and spatial memory and of the profile follow from what was told and seen; notes are what
was told, so notes are what can be given another text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidInputError
from .arguments import checked_text, shown
from .entries import EntryMemory
from .note import Note, Version, labels_at, note_data, rendered, text_at
from .notes import NoteMemory
from .profile import UserProfile
from .receipts import Written
from .spatial import SpatialMemory
from .temporal import TemporalMemory, number_of
from .trust import Trust, marked
from .views import ViewMemory

FIELDS = (
    "id", "module", "trust", "kind", "speaker", "when", "action", "subtype", "alias", "description", "notes", "fact",
    "goal", "place", "won", "actions", "origin", "steps", "why", "failures", "said", "terms", "command", "fix",
    "pose", "clock", "images",
)  # fmt: skip
"""Names that a filter may have besides labels: of an entry, and of what is in its data."""
_MOST_DIGITS = 18


@dataclasses.dataclass(frozen=True)
class Kept:
    """One entry of a memory, as it is or was.

    Attributes:
        id: "notes:12".
        module: which memory holds it.
        text: one line; of a note, the text as it was said.
        created, updated: times when it came in, and was changed or supported last.
        ended: time from which on it is no longer so; None if it is.
        sources: (episode, step) that it comes from, oldest first; the step is None where no single one is known.
        trust: of the source; of a fact, of its most trusted one.
        labels: the caller's own.
        data: the same as values; of a note, who said it, when, and after which action.
    """

    id: str
    module: str
    text: str
    created: int
    updated: int
    ended: int | None
    sources: tuple[tuple[int, int | None], ...]
    trust: Trust
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data: Any = None

    def fits(self, wanted: Mapping[str, Any]) -> bool:
        """Whether attributes, data and labels have these values; no label hides another field."""
        data = self.data if isinstance(self.data, Mapping) else {}
        own = {**self.labels, **data, "id": self.id, "module": self.module, "trust": self.trust}
        return all(name in own and own[name] == value for name, value in wanted.items())


def written(name: str, module: Any, done: Sequence[tuple[str, Any]]) -> list[tuple[str, Written]]:
    """The lines of a receipt about entries of a memory, each with what was done."""
    if not done:
        return []
    numbers = [number for _, number in done]
    if isinstance(module, NoteMemory):
        notes = [module.notes[number] for number in numbers]
        texts = [marked(rendered(note), note.trust) for note in notes]
    elif isinstance(module, SpatialMemory):
        texts = [marked(text, module.trust_of(fact)) for text, fact in zip(module.texts_of(numbers), numbers)]
    else:
        texts = [module.text_of(number) for number in numbers]
    return [(do, Written(f"{name}:{number}", name, text)) for (do, number), text in zip(done, texts)]


def written_as(entries: Iterable[Kept]) -> tuple[Written, ...]:
    """Make the lines of a receipt about entries; what others say is a quotation, which steps are by themselves."""
    lines = ((one, one.text if one.module == "temporal" else marked(one.text, one.trust)) for one in entries)
    return tuple(Written(one.id, one.module, text) for one, text in lines)


def all_kept(name: str, module: Any) -> Iterator[Kept]:
    """All entries of a memory, oldest first."""
    return (_READERS[_kind(module)](name, module, number) for number in _NUMBERS[_kind(module)](module))


def as_it_was(entry: Kept, module: Any, time: int) -> Kept | None:
    """An entry as it was at a time; None if it was not there yet. Notes and the profile keep their earlier texts."""
    if entry.created > time:
        return None
    then = _until(entry, time)
    if isinstance(module, UserProfile):
        was = module.version(number := entry.id.partition(":")[2], time)
        return _until(dataclasses.replace(_told(entry.module, module, number, was), created=entry.created), time)
    if not isinstance(module, NoteMemory):
        return then
    note = module.notes[int(entry.id.partition(":")[2])]
    sources = tuple((source.episode, source.step) for source in note.sources if source.time <= time)
    return dataclasses.replace(then, text=text_at(note, time), labels=labels_at(note, time), sources=sources)


def _until(entry: Kept, time: int) -> Kept:
    """An entry without what came after a time."""
    ended = entry.ended if entry.ended is not None and entry.ended <= time else None
    return dataclasses.replace(entry, updated=min(entry.updated, time), ended=ended)


def kept(name: str, module: Any, number: str) -> Kept | None:
    """The entry under a number, as an id ends in; None if there is none."""
    found = next((n for n in _numbers_like(module, number) if str(n) == number), None)
    return None if found is None else _READERS[_kind(module)](name, module, found)


def history_of(name: str, module: Any, number: str) -> list[Kept]:
    """What an entry was before, oldest first, and last what it is."""
    now = kept(name, module, number)
    if now is None:
        return []
    if isinstance(module, NoteMemory):
        return [_version(now, version, i, module) for i, version in enumerate(module.notes[int(number)].past)] + [now]
    if isinstance(module, SpatialMemory):
        return _places(name, module, int(number))
    if isinstance(module, UserProfile):
        return [_told(name, module, number, was) for was in module.versions(number)[:-1]] + [now]
    return [now]


def module_and_number(entry: Any, modules: Mapping[str, Any]) -> tuple[str, str]:
    """The parts of an id. Raises InvalidInputError for what is none, or of a memory that is not there."""
    name, mark, number = checked_text("id", entry).partition(":")
    if not mark or name not in modules:
        raise InvalidInputError(
            f"id: expected one like notes:12 of {', '.join(modules) or 'no memory'}, got {shown(entry)}"
        )
    return name, number


def _kind(module: Any) -> type:
    return next(kind for kind in _READERS if isinstance(module, kind))


def _numbers_like(module: Any, number: str) -> Any:
    """The numbers that a text can stand for: few where they are whole numbers."""
    if isinstance(module, (UserProfile, TemporalMemory)):
        return _NUMBERS[_kind(module)](module)
    if not number.isdecimal() or not number.isascii() or len(number) > _MOST_DIGITS:
        return ()
    if isinstance(module, SpatialMemory):
        with module.graph.snapshot() as now:
            return [int(number)] if int(number) < now.num_facts and now.has_fact(int(number)) else []
    if isinstance(module, ViewMemory):
        return [int(number)] if module.has(int(number)) else []
    held = module.notes if isinstance(module, NoteMemory) else module.entries
    return [int(number)] if int(number) in held else []


def _note(name: str, module: NoteMemory, number: int) -> Kept:
    note = module.notes[number]
    times = [source.time for source in note.sources] + [end.time for end in note.ends]
    times += [version.until for version in note.past]
    return Kept(
        f"{name}:{number}", name, note.text, note.created, max(times), note.ended, _sources(note), note.trust,
        note.labels, note_data(note),
    )  # fmt: skip


def _sources(note: Note) -> tuple[tuple[int, int | None], ...]:
    return tuple((source.episode, source.step) for source in note.sources)


def _version(now: Kept, version: Version, position: int, module: NoteMemory) -> Kept:
    past = module.notes[int(now.id.partition(":")[2])].past
    began = past[position - 1].until if position else now.created
    return dataclasses.replace(
        now, text=version.text, labels=version.labels, created=began, updated=began, ended=version.until
    )


def _knowledge(name: str, module: UserProfile, number: str) -> Kept:
    _, edges = module.knowledge(number)
    now = _told(name, module, number, module.version(number))
    rows = dict.fromkeys((episode, step) for edge in edges for episode, step in edge["sources"])
    return dataclasses.replace(now, created=edges[0]["valid_at"], updated=now.created, sources=tuple(rows))


def _told(name: str, module: UserProfile, number: str, was: Mapping[str, Any]) -> Kept:
    """A version of knowledge."""
    node, _ = module.knowledge(number)
    data = {"subtype": node["subtype"]} | {key: was[key] for key in ("alias", "description")}
    sources = tuple((episode, step) for episode, step in was["sources"])
    data["notes"] = tuple(was["notes"])
    times = was["since"], was["since"], was["until"]
    return Kept(f"{name}:{number}", name, was["text"], *times, sources, "user", {}, data)


def _entry(name: str, module: EntryMemory, number: int) -> Kept:
    entry = module.entries[number]
    rows = tuple((row.episode, row.step) for row in entry.support)
    data = dict(entry.data)
    return Kept(f"{name}:{number}", name, entry.text, entry.created, entry.updated, None, rows, "sensor", {}, data)


def _facts(module: SpatialMemory) -> list[int]:
    """The facts that were not forgotten, past ones too."""
    with module.graph.snapshot() as now:
        return [fact for fact in range(now.num_facts) if now.has_fact(fact)]


def _fact(name: str, module: SpatialMemory, number: int) -> Kept:
    with module.graph.snapshot() as now:
        fact = now.fact(number)
    seen = module.seen(number)
    sources = tuple((episode, seen.step if episode == seen.episode else None) for episode in fact.sources)
    (text,), data = module.texts_of([number]), {"fact": module.triple(number)}
    times = fact.valid_at, max(fact.valid_at, seen.time), fact.invalid_at
    return Kept(f"{name}:{number}", name, text, *times, sources, module.trust_of(number), {}, data)


def _places(name: str, module: SpatialMemory, number: int) -> list[Kept]:
    """Where the thing of a fact about a place was before, and the fact; of another fact, that alone."""
    subject, relation, object_ = module.triple(number)
    placing, holding = module.relations.placing, module.relations.holding
    thing = object_ if relation in holding else subject
    found = []
    for other in _facts(module) if relation in placing + holding else [number]:
        one, verb, two = module.triple(other)
        if other == number or (verb in placing and one == thing) or (verb in holding and two == thing):
            found.append(_fact(name, module, other))
    return sorted(
        (one for one in found if one.created <= _fact(name, module, number).created), key=lambda one: one.created
    )


def _view(name: str, module: ViewMemory, number: int) -> Kept:
    view = module.view(number)
    data = {"pose": view.pose, "clock": view.clock, "images": view.images}
    source = ((view.episode, view.step),)
    return Kept(f"{name}:{number}", name, view.text, view.time, view.time, None, source, "sensor", {}, data)


def _step(name: str, module: TemporalMemory, number: str) -> Kept:
    entry = next(entry for entry in module.entries if number_of(entry) == number)
    rows = ((entry.episode, entry.last_step),)
    return Kept(f"{name}:{number}", name, entry.text, entry.began, entry.time, None, rows, entry.trust)


_READERS: dict[type, Callable[..., Kept]] = {
    NoteMemory: _note,
    UserProfile: _knowledge,
    EntryMemory: _entry,
    SpatialMemory: _fact,
    TemporalMemory: _step,
    ViewMemory: _view,
}
_NUMBERS: dict[type, Callable[[Any], Any]] = {
    NoteMemory: lambda module: list(module.notes),
    UserProfile: lambda module: [node["id"] for node in module.nodes() if node["type"] == "knowledge"],
    EntryMemory: lambda module: list(module.entries),
    SpatialMemory: _facts,
    TemporalMemory: lambda module: [number_of(entry) for entry in module.entries],
    ViewMemory: ViewMemory.numbers,
}
