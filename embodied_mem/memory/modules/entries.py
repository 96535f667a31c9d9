"""Long-term memory as entries with support: what episodic and semantic memory have in common.

Extract from an episode, retrieve what is similar, decide what to add, update and delete, write back (RoboMemory 3.2.2).
An entry says something once; what says it again adds a row to its support:

    memory.learn(episode, number=3, time=120, place="kitchen 7")       # the event holds the changes, not the reasons
    memory.search("where is a mug", k=5)                                # [(entry, cosine)]
    memory.remove(Selector(episode=3))                                  # rows go; an entry without rows goes
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ..errors import InvalidInputError
from ..types import Episode
from .durable import Selector, check_scope, read_state, write_state
from .facts import Scope
from .lexical import Embedder, LexicalEmbedder
from .similarity import QueryEmbedder, Similarity

MAX_SOURCES = 16
"""Episodes that an item names; all are in the entry's support."""

Support = list[Any]
"""[episode, step or None, detail]: one time that this was seen."""


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


class EntryMemory(abc.ABC):
    """Entries of one scope. Subclasses say what is learned from an episode."""

    format_name = "embodied_mem.entries"

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        embedder: Embedder | None = None,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty memory.

        Args:
            scope: whose it is.
            embedder: None for the lexical one.
            record: gets every event and must have `apply` called with it; None for `apply` itself.
        """
        self.scope = Scope() if scope is None else scope
        self.embedder = QueryEmbedder.of(LexicalEmbedder() if embedder is None else embedder)
        self._record = self.apply if record is None else record
        self._clear()

    def _clear(self) -> None:
        self.entries: dict[int, Entry] = {}
        self._next = 0
        self._by_key: dict[str, int] = {}
        self._similarity = Similarity(self.embedder)

    def __len__(self) -> int:
        return len(self.entries)

    # What subclasses say.

    @abc.abstractmethod
    def propose(self, episode: Episode, *, number: int, time: int, place: str = "") -> dict[str, Any]:
        """The event with all changes that an episode leads to; nothing changes yet."""

    def rendered(self, entry: Entry) -> str:
        """The text of an entry, from its data and support."""
        return entry.text

    def derived_from(self, entry: Entry, episode: int) -> bool:
        """Whether what the entry says comes from this episode, whatever else supports it."""
        return False

    # Changing.

    def learn(self, episode: Episode, *, number: int, time: int, place: str = "") -> None:
        """Learn from a finished episode.

        Args:
            episode: as played.
            number: under which it is a source.
            time: on the memories' clock.
            place: where it was played.
        """
        self._record(self.propose(episode, number=number, time=time, place=place))

    def apply(self, event: Mapping[str, Any]) -> None:
        """Do what an event says: {"op": "change", "time", "changes": [{"do": "add" | "update" | "delete", ...}]}.

        Raises:
            InvalidInputError: an unknown event, entry or change; nothing has changed.
        """
        if event.get("op") != "change":
            raise InvalidInputError(f"{self.format_name}: expected op change, got {event.get('op')!r}")
        for change in event["changes"]:
            self._check(change)
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
            entry.text = change.get("text", entry.text)
            entry.about = change.get("about", entry.about)
            entry.data.update(change.get("data", {}))
            entry.support += _new_rows(entry.support, change.get("support", ()))
            entry.updated = event["time"]
            entry.text = self.rendered(entry)
            touched[number] = None
        self._index(number for number in touched if number in self.entries)

    def _check(self, change: Mapping[str, Any]) -> None:
        known = change["key"] in self._by_key
        if change["do"] not in ("add", "update", "delete"):
            raise InvalidInputError(f"{self.format_name}: expected add, update or delete, got {change['do']!r}")
        if known == (change["do"] == "add"):
            state = "is there already" if known else "is not there"
            raise InvalidInputError(f"{self.format_name}: cannot {change['do']} {change['key']!r}: it {state}")

    def _index(self, numbers: Iterable[int]) -> None:
        self._similarity.add_many((number, self.entries[number].about) for number in numbers)

    def _remove(self, number: int) -> None:
        del self._by_key[self.entries.pop(number).key]
        self._similarity.remove(number)

    # Reading.

    def get(self, key: str) -> Entry | None:
        """The entry of a key."""
        number = self._by_key.get(key)
        return None if number is None else self.entries[number]

    def search(self, query: str, k: int = 5, above: float = -math.inf) -> list[tuple[Entry, float]]:
        """The `k` entries most similar to a text, with their cosines, best first; only those with a cosine above."""
        return [(self.entries[number], score) for number, score in self._similarity.search(query, k, above)]

    # Keeping.

    def state(self) -> bytes:
        """All that is remembered, as bytes; vectors are made anew."""
        entries = [vars(entry) for entry in self.entries.values()]
        scope = dataclasses.asdict(self.scope)
        return write_state(
            self.format_name, {"scope": scope, "embedder": self.embedder.name, "next": self._next, "entries": entries}
        )

    def restore(self, data: bytes) -> None:
        """Become what `state` returned. Raises InvalidInputError for other bytes; nothing has changed then."""
        state, _ = read_state(self.format_name, data)
        check_scope(state, self.scope)
        if state["embedder"] != self.embedder.name:
            raise InvalidInputError(
                f"state: expected embedder {self.embedder.name!r}, got {state['embedder']!r}; pass that embedder"
            )
        entries = [Entry(**entry) for entry in state["entries"]]
        self._clear()
        self._next = state["next"]
        self.entries = {entry.id: entry for entry in entries}
        self._by_key = {entry.key: entry.id for entry in entries}
        self._after_restore()
        self._index(self.entries)

    def fork(self) -> Self:
        """An independent copy."""
        other = copy.copy(self)
        other._record = other.apply
        other.entries = {
            number: dataclasses.replace(entry, data=dict(entry.data), support=list(entry.support))
            for number, entry in self.entries.items()
        }
        other._by_key = dict(self._by_key)
        other._similarity = self._similarity.fork()
        other._after_restore()
        return other

    def _after_restore(self) -> None:  # noqa: B027 (a hook, by default nothing)
        """Make what is derived from the entries anew."""

    def _rows_removed(self, entry: Entry) -> None:  # noqa: B027 (a hook, by default nothing)
        """Drop what was counted over the support of an entry."""

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove rows of support from an episode or about an object, and entries that have none left or still name it.

        An entry whose text comes from a forgotten episode goes whatever else supports it.
        """
        self.embedder.clear()
        removed_rows = 0
        doomed = []
        for entry in self.entries.values():
            rows = [row for row in entry.support if row[0] != selector.episode and not selector.in_text(str(row[2]))]
            removed_rows += len(entry.support) - len(rows)
            emptied = bool(entry.support) and not rows
            if len(rows) != len(entry.support) and not emptied:
                entry.support = rows
                self._rows_removed(entry)
                entry.text = self.rendered(entry)
            everything = selector.is_all_of(self.scope)
            derived = selector.episode is not None and self.derived_from(entry, selector.episode)
            said = " ".join((entry.key, entry.text, entry.about, json.dumps(entry.data, ensure_ascii=False)))
            if everything or emptied or derived or selector.in_text(said):
                doomed.append(entry.id)
        for number in doomed:
            self._remove(number)
        self._after_restore()
        return {"entries": len(doomed), "references": removed_rows}


def _new_rows(support: Sequence[Support], rows: Iterable[Sequence[Any]]) -> list[Support]:
    """The rows that are not there yet. An episode's rows lie together, the newest episode's last."""
    new: list[Support] = []
    for row in map(list, rows):
        known = itertools.takewhile(
            lambda other, episode=row[0]: other[0] == episode, itertools.chain(reversed(new), reversed(support))
        )
        if row not in known:
            new.append(row)
    return new


def sources_of(entry: Entry) -> tuple[int, ...]:
    """The newest episodes that support an entry, at most `MAX_SOURCES`, each once, oldest first."""
    found: dict[int, None] = {}
    for row in reversed(entry.support):
        if row[0] not in found and len(found) == MAX_SOURCES:
            break
        found[row[0]] = None
    return tuple(reversed(found))


def answers_of(episode: Episode) -> Sequence[str]:
    """What each action of an episode was answered."""
    return [step.observation for step in episode.steps[1:]] + [episode.final_observation]
