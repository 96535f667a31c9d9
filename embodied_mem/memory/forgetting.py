"""Removes what was remembered from all memories of a `LifelongMemory`, and from its files.

memory.forget(object="mug 1")           # or user="ann", or episode=3
memory.delete("notes:12")
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .parts import MemoryParts
from .readers.once import ReadOnce
from .recollection import Recollection
from .store.module import Selector
from .store.store import MemoryStore

STORED_AS = "lifelong"
"""Name of the memory in its store."""


class Forgetting(MemoryParts):
    """The part of `LifelongMemory` that forgets."""

    goal: str
    place: str
    episode: int
    store: MemoryStore | None
    _reader: ReadOnce
    _turns: list[tuple[str, str]]
    _outcomes: dict[int, bool]
    _task_ids: list[str]
    _cache: dict[tuple[Any, ...], Any]
    _last: Recollection | None

    def forget(
        self, *, user: str | None = None, object: str | None = None, episode: int | None = None
    ) -> dict[str, int]:
        """Remove a user, an object or an episode from everything, files included; how much of what was removed.

        `memory.store.forget(...)` does the same and says which files are gone.
        """
        return self._forget(Selector(user, object, episode))

    def _forget(self, selector: Selector) -> dict[str, int]:
        with self._turns_taken.turn:
            if self.store is None:
                return self.remove(selector)
            return self.store.forget(**dataclasses.asdict(selector)).removed[STORED_AS]

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names from this object, see `forget`.

        What the running task has seen of an object goes too; where the goal, the place or a task's id names it, it is
        emptied, and so they are where the running episode is forgotten.
        """
        with self._turns_taken.reading:
            return self._remove(selector)

    def _remove(self, selector: Selector) -> dict[str, int]:
        self._reader.clear()
        also = self.profile.only_from(selector) if self.profile is not None else []
        receipt: dict[str, int] = {}
        for one in (selector, *also):
            for name in self._modules:
                for what, count in self._own(name).remove(one).items():
                    receipt[f"{name}.{what}"] = receipt.get(f"{name}.{what}", 0) + count
        everything = selector.is_all_of(self.scope)
        turns = [turn for turn in self._turns if not any(map(selector.in_text, turn))]
        if everything or selector.episode == self.episode:
            turns = []
        receipt["turns"] = len(self._turns) - len(turns)
        if len(turns) != len(self._turns):
            self._outcomes = {}  # their steps are others now
        self._turns = turns
        if everything or selector.in_text(self.goal) or selector.episode == self.episode:
            self.goal = ""
        if everything or selector.in_text(self.place) or selector.episode == self.episode:
            self.place = ""
        kept = [
            "" if everything or selector.in_text(task_id.replace("_", " ")) or selector.episode == number else task_id
            for number, task_id in enumerate(self._task_ids)
        ]
        receipt["task_ids"] = sum(a != b for a, b in zip(kept, self._task_ids))
        self._task_ids = kept
        self._cache.clear()
        self._last = None
        return receipt
