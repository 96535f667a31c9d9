"""Long-term memory as entries with support counts: the shared part of episodic and semantic memory.

Extract from an episode, retrieve what is similar, decide what to add, update and delete, write back (RoboMemory 3.2.2).
An entry says something once; what says it again adds a row to its support:

    memory.learn(episode, number=3, time=120, place="kitchen 7")       # the event holds the changes, not the reasons
    memory.search("where is a mug", k=5)                                # [(entry, cosine)]
    memory.remove(Selector(episode=3))                                  # rows go; an entry without rows goes
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from ..errors import InvalidInputError
from ..types import Episode
from .arguments import checked_episode, checked_mapping, checked_number, checked_real, checked_text, shown
from .chat_writer import ChatWriter, checked_writer
from .embedders import Embedder
from .events import EntriesEvent, check
from .graph import Scope
from .readers import DEFAULT, Reader
from .record import NOTHING, Record, RecordMemory, Source, new_record, whole_number
from .search import QueryEmbedder, TextIndex
from .stored_modules import Selector

_ANY = -math.inf
_NO_STEP = itertools.repeat(None)
_new_source = functools.partial(tuple.__new__, Source)
MAX_SOURCES = 16
"""Episodes that an item names; all are in the entry's support."""


class Support(NamedTuple):
    """One time that something was seen: in which episode, at which step if at one, and what exactly."""

    episode: int
    step: int | None
    detail: str


@dataclasses.dataclass
class Entry:
    """One thing known.

    Attributes:
        id: never used again.
        key: names what the entry is about; no two entries share one.
        text: what is remembered.
        about: what queries are compared with.
        data: the same as values.
        support: when it was seen.
        created, updated: times.
    """

    id: int
    key: str
    text: str
    about: str
    data: dict[str, Any]
    support: list[Support]
    created: int
    updated: int


class EntryMemory(RecordMemory):
    """Entries of one scope. Subclasses say what is learned from an episode."""

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        embedder: Embedder | None = None,
        writer: ChatWriter | None = None,
        reader: Reader = DEFAULT,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty memory.

        Args:
            scope, record: as for `RecordedModule`.
            embedder: None for word vectors, or the lexical one where their table is not installed.
            writer: asked after each task; None for rules alone.
            reader: of the world's texts.
        """
        super().__init__(scope, record)
        self._writer = checked_writer(writer)
        self.embedder = QueryEmbedder.of(embedder)
        self._reader = reader
        self._clear()

    def _clear(self) -> None:
        self.entries: dict[int, Entry] = {}
        self._next = 0
        self._by_key: dict[str, int] = {}
        self._heads: dict[int, tuple[Any, ...]] = {}  # first fields of records that were asked for
        self._sources: dict[int, tuple[int, tuple[int, ...]]] = {}  # rows of support that were looked at, sources
        self._text_index = TextIndex(self.embedder)

    def __len__(self) -> int:
        return len(self.entries)

    # What subclasses say.

    @abc.abstractmethod
    def propose(
        self,
        episode: Episode,
        *,
        number: int,
        time: int,
        place: str = "",
        outcomes: Mapping[int, bool] | None = None,
    ) -> dict[str, Any]:
        """Make the event of an episode's changes; apply nothing.

        Args:
            episode: what was played.
            number, time, place: under which it is a source, when it ended, where it was played.
            outcomes: step -> whether it had no effect, where the world knows; else the answer says.
        """

    @abc.abstractmethod
    def check_data(self, data: Mapping[str, Any], new: bool) -> None:
        """Raise InvalidInputError for invalid data of an entry."""

    def rendered(self, entry: Entry) -> str:
        """Return the text of an entry, from its data and support."""
        return entry.text

    def derived_from(self, entry: Entry, episode: int) -> bool:
        """Return whether the entry's text comes from this episode."""
        return False

    # Changing.

    def learn(self, episode: Episode, *, number: int, time: int, place: str = "") -> None:
        """Learn from a finished episode in a place; `number` names the source."""
        self._record(self.propose(episode, number=number, time=time, place=place))

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply a change event that was checked.

        The event is {"op": "change", "time", "changes": [{"do": "add" | "update" | "delete", ...}]}.

        Raises InvalidInputError for an entry that is not there or is there already; nothing has changed then.
        """
        self._check_keys(event["changes"])
        touched: dict[int, None] = {}
        for change in event["changes"]:
            if change["do"] == "delete":
                self._remove(self._by_key[change["key"]])
                continue
            number = self._by_key.get(change["key"])
            if number is None:
                number = self._next
                self._next += 1
                self.entries[number] = Entry(number, change["key"], "", "", {}, [], event["time"], event["time"])
                self._by_key[change["key"]] = number
            entry = self.entries[number]
            self._heads.pop(number, None)
            entry.text = change.get("text", entry.text)
            entry.about = change.get("about", entry.about)
            entry.data.update(change.get("data", {}))
            entry.support += _new_rows(entry.support, change.get("support", ()))
            entry.updated = event["time"]
            entry.text = self.rendered(entry)
            self.sources_of(entry)  # while it learns, not when it is asked
            touched[number] = None
        self._index(number for number in touched if number in self.entries)

    def check(self, event: Mapping[str, Any]) -> None:
        where = f"{self.format_name} event"
        check(EntriesEvent, where, event)
        for change in event["changes"]:
            if change["do"] == "add" or "data" in change:
                data = checked_mapping(f"{where}: data", change.get("data"))
                self.check_data(data, new=change["do"] == "add")

    def _check_keys(self, changes: Iterable[Mapping[str, Any]]) -> None:
        there: dict[str, bool] = {}
        for change in changes:
            do, key = change["do"], change["key"]
            known = there.get(key, key in self._by_key)
            if known == (do == "add"):
                state = "is there already" if known else "is not there"
                raise InvalidInputError(f"{self.format_name}: cannot {do} {shown(key)}: it {state}")
            there[key] = do != "delete"

    def _index(self, numbers: Iterable[int]) -> None:
        self._text_index.add_many((number, self.entries[number].about) for number in numbers)

    def _remove(self, number: int) -> None:
        del self._by_key[self.entries.pop(number).key]
        self._sources.pop(number, None)
        self._heads.pop(number, None)
        self._text_index.remove(number)

    # Reading.

    def numbers(self) -> list[int]:
        return list(self.entries)

    def record(self, number: int) -> Record:
        entry = self.entries[number]
        sources = tuple(Source(row.episode, row.step) for row in entry.support)
        return new_record((*self._head(entry), sources, "sensor", 0.0, "", None))

    def number_like(self, text: str) -> int | None:
        number = whole_number(text)
        return number if number in self.entries else None

    def _head(self, entry: Entry) -> tuple[Any, ...]:
        """Return the leading fields of an entry's record, up to its data."""
        head = self._heads.get(entry.id)
        if head is None:
            data, when = dict(entry.data), entry.created
            kind, place = data.pop("kind", "task"), data.pop("place", "")
            head = self._heads[entry.id] = (
                f"{self.module}:{entry.id}", self.module, kind, entry.text, "", place, when, when, None, NOTHING, None,
                (), (), data,
            )  # fmt: skip
        return head

    def hit(self, entry: Entry, score: float, why: str) -> Record:
        """Make the record of a found entry with its newest sources."""
        last, others = entry.support[-1], zip(self.sources_of(entry)[:-1], _NO_STEP, _NO_STEP)
        sources = (*map(_new_source, others), Source(last.episode, last.step))
        return new_record((*self._head(entry), sources, "sensor", score, why, None))

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key."""
        number = self._by_key.get(checked_text("key", key))
        return None if number is None else self.entries[number]

    def known_at(self, entry: int, as_of: int | None) -> bool:
        """Return whether an entry was there at a time; None for now."""
        return as_of is None or self.entries[entry].created <= as_of

    def search(self, query: str, k: int = 5, above: float = _ANY) -> list[tuple[Entry, float]]:
        """Find the `k` most similar entries above a cosine, best first."""
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        above = above if above is _ANY else checked_real("above", above)
        return [(self.entries[number], score) for number, score in self._text_index.search(query, k, above)]

    def sources_of(self, entry: Entry) -> tuple[int, ...]:
        """Return an entry's newest `MAX_SOURCES` supporting episodes, oldest first."""
        done, sources = self._sources.get(entry.id, (0, ()))
        if done != len(entry.support):
            latest: dict[int, None] = {}  # the newest first
            for row in reversed(entry.support):
                latest[row.episode] = None
                if len(latest) == MAX_SOURCES:
                    break
            sources = tuple(reversed(latest))
            self._sources[entry.id] = len(entry.support), sources
        return sources

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        entries = [vars(entry) for entry in self.entries.values()]
        return ({"embedder": self.embedder.name, "next": self._next, "entries": entries},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        entries = [
            Entry(**{**entry, "support": [Support(*row) for row in entry["support"]]}) for entry in state["entries"]
        ]
        following = int(state["next"])
        for entry in entries:
            self.check_data(checked_mapping("data", entry.data), new=True)
        self._clear()
        self._next = following
        self.entries = {entry.id: entry for entry in entries}
        self._by_key = {entry.key: entry.id for entry in entries}
        self._after_restore()
        self._index(self.entries)

    def fork(self) -> Self:
        other = super().fork()
        other.entries = {
            number: dataclasses.replace(entry, data=dict(entry.data), support=list(entry.support))
            for number, entry in self.entries.items()
        }
        other._by_key, other._sources, other._heads = dict(self._by_key), dict(self._sources), {}
        other._text_index = self._text_index.fork()
        other._after_restore()
        return other

    def _after_restore(self) -> None:
        """Make what is derived from the entries anew."""

    def _rows_removed(self, entry: Entry) -> None:
        """Drop what was counted over the support of an entry."""

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove rows of support and the entries left without any.

        The rows are from an episode or about an object; entries that still name it go, too.

        An entry whose text comes from a forgotten episode goes whatever else supports it.
        """
        self.embedder.clear()
        self._heads.clear()
        removed_rows = 0
        doomed = []
        for entry in self.entries.values():
            rows = [
                row
                for row in entry.support
                if row.episode != selector.episode and not selector.in_text(str(row.detail))
            ]
            removed_rows += len(entry.support) - len(rows)
            emptied = bool(entry.support) and not rows
            if len(rows) != len(entry.support) and not emptied:
                entry.support = rows
                self._sources.pop(entry.id, None)
                self._rows_removed(entry)
                entry.text = self.rendered(entry)
            everything = selector.everything
            derived = selector.episode is not None and self.derived_from(entry, selector.episode)
            said = " ".join((entry.key, entry.text, entry.about, json.dumps(entry.data, ensure_ascii=False)))
            if everything or emptied or derived or selector.in_text(said) or selector.is_entry(self.module, entry.id):
                doomed.append(entry.id)
        for number in doomed:
            self._remove(number)
        self._after_restore()
        return {"entries": len(doomed), "references": removed_rows}


def _new_rows(support: Sequence[Support], rows: Iterable[Sequence[Any]]) -> list[Support]:
    """Return missing rows, grouped by episode, the newest last."""
    new: list[Support] = []
    for row in itertools.starmap(Support, rows):
        for other in itertools.chain(reversed(new), reversed(support)):
            if other == row:
                break
            if other.episode != row.episode:
                new.append(row)
                break
        else:
            new.append(row)
    return new


def learning(episode: Episode, number: int, time: int, place: str) -> tuple[Episode, int, int, str]:
    """Return what `propose` is given, checked."""
    numbers = checked_number("number", number), checked_number("time", time)
    return checked_episode(episode), *numbers, checked_text("place", place)


def check_fields(where: str, data: Mapping[str, Any], fields: Mapping[str, type], new: bool) -> None:
    """Raise InvalidInputError for wrong types; new data needs all fields."""
    for name, kind in fields.items():
        if (new or name in data) and type(data.get(name)) is not kind:
            raise InvalidInputError(f"{where}: {name}: expected {kind.__name__}, got {shown(data.get(name))}")
