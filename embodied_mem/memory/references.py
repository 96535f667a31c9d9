"""References: times at which somebody told the memory again what it had recalled.

    references.add("spatial:12", Reference(episode=0, step=3, time=9, trust="agent"))
    references.of("spatial:12")

An agent that reads what it recalls often hands it in again. Such a text is no news: it becomes a reference of the
entry that it came from, never a copy, and never a way to be trusted more. A note has it among its own sources.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .events import check
from .recollection import Recollection
from .record import Record
from .trust import Trust
from .words import same_text

_RECENT = 16
_PASSING = "temporal"
"""Its entries are folded away within a few steps, so what is told of them is kept as any other text."""


class Reference(NamedTuple):
    """When something was told again, and by whom."""

    episode: int
    step: int
    time: int
    trust: Trust


class Recent:
    """The texts that were recalled last, to know them when they come back; none of what was left out."""

    def __init__(self) -> None:
        self._given: collections.deque[tuple[Record, ...]] = collections.deque(maxlen=_RECENT)
        self._forms: dict[str, Record] | None = None  # made when something is told

    def add(self, found: Recollection) -> None:
        self._given.append(found.items)
        self._forms = None

    def item_of(self, text: str) -> Record | None:
        """What was recalled in these words, however they are written; None for any other text."""
        if self._forms is None:
            items = itertools.chain.from_iterable(self._given)
            self._forms = {same_text(item.text): item for item in items if item.module != _PASSING}
        return self._forms.get(same_text(text))

    def clear(self) -> None:
        self._given.clear()
        self._forms = None


class References:
    """The references of all entries but notes."""

    def __init__(self, rows: Mapping[str, list[Reference]] | None = None) -> None:
        self._rows = {entry: list(its) for entry, its in (rows or {}).items()}

    def add(self, entry: str, reference: Reference) -> None:
        self._rows.setdefault(entry, []).append(reference)

    def of(self, entry: str) -> tuple[Reference, ...]:
        return tuple(self._rows.get(entry, ()))

    def remove(self, episode: int | None, is_there: Callable[[str], bool]) -> int:
        """Forget those of an episode and those of entries that are not there any more; how many."""
        before = sum(map(len, self._rows.values()))
        kept = {
            entry: [row for row in rows if row.episode != episode]
            for entry, rows in self._rows.items()
            if is_there(entry)
        }
        self._rows = {entry: rows for entry, rows in kept.items() if rows}
        return before - sum(map(len, self._rows.values()))

    def fork(self) -> References:
        return References(self._rows)

    def rows(self) -> dict[str, list[list[Any]]]:
        """For a state."""
        return {entry: [list(row) for row in rows] for entry, rows in self._rows.items()}

    @classmethod
    def of_rows(cls, rows: Any) -> References:
        """What `rows` gave. Raises InvalidInputError for anything else."""
        check(dict[str, list[Reference]], "state: references", rows)
        return cls({entry: [Reference(*row) for row in its] for entry, its in rows.items()})
