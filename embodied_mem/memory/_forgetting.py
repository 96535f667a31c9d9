"""Removes what was remembered from all memories of a `LifelongMemory`, and from its files.

receipt = memory.forget(object="mug 1")           # or user="ann", or episode=3, or everything=True
receipt["notes.notes"], receipt.removed           # counts, and the entries that are gone
receipt.similar                                   # entries that may name it in another form: delete what is meant
memory.delete("notes:12")
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..errors import InvalidInputError
from ._parts import MemoryParts
from .arguments import shown
from .readers.once import ReadOnce
from .receipts import ForgetReceipt
from .recollection import Recollection
from .record import Kept, all_kept, kept, module_and_number, written_as
from .references import Recent, References
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
    reader: ReadOnce
    _turns: list[tuple[str, str]]
    _outcomes: dict[int, bool]
    _task_ids: list[str]
    _cache: dict[tuple[Any, ...], Any]
    _last: Recollection | None
    _recent: Recent
    _references: References

    def forget(
        self,
        *,
        user: str | None = None,
        object: str | None = None,
        episode: int | None = None,
        everything: bool | None = None,
    ) -> ForgetReceipt:
        """Remove a user, an object, an episode or everything, files included; what was removed, and what looks like it.

        `memory.store.forget(...)` does the same and says which files are gone.

        Args:
            user: who said it; a name, in any case. Of the user of the scope ("user" where it has no name) the profile
                goes too. What sensors saw stays, and so do the goals of tasks, with their episodes.
            object: a thing or a class; all that names it goes.
            episode: number of a task; -1 for what was told before the first one.
            everything: True for all that is kept in this scope.

        Raises:
            InvalidInputError: not exactly one of them, or a user or episode that is not known; nothing was removed.
        """
        return self._forget(self._known(Selector(user, object, episode, everything=everything)))

    def _known(self, selector: Selector) -> Selector:
        """The selector, if there is such a user or episode. Raises InvalidInputError that names the known ones."""
        with self._turns_taken.reading:
            notes = list(self.notes.notes.values()) if self.notes is not None else []
            if selector.user is not None and not selector.is_user_of(self.scope):
                speakers = dict.fromkeys([self.scope.user or "user", *(note.speaker for note in notes if note.speaker)])
                if not any(map(selector.is_name, speakers)):
                    raise InvalidInputError(f"user: expected one of {', '.join(speakers)}, got {shown(selector.user)}")
            number, count = selector.episode, len(self._task_ids)
            told = (source.episode for note in notes for source in note.sources)
            if number is not None and not 0 <= number < count and number not in told:
                tasks = f"0 to {count - 1}" if count else "the number of a task, of which there is none yet"
                raise InvalidInputError(f"episode: expected {tasks}, got {number}")
        return selector

    def _forget(self, selector: Selector) -> ForgetReceipt:
        with self._turns_taken.turn:
            if self.store is None:
                return self.remove(selector)
            removed = self.store.forget(**dataclasses.asdict(selector)).removed[STORED_AS]
            assert isinstance(removed, ForgetReceipt)
            return removed

    def remove(self, selector: Selector) -> ForgetReceipt:
        """Remove what the selector names from this object, see `forget`.

        What the running task has seen of an object goes too; where the goal, the place or a task's id names it, it is
        emptied, and so they are where the running episode is forgotten.
        """
        with self._turns_taken.reading:
            return self._remove(selector)

    def _entries(self) -> dict[str, Kept]:
        return {one.id: one for name, module in self._modules.items() for one in all_kept(name, module)}

    def _remove(self, selector: Selector) -> ForgetReceipt:
        before = self._entries()
        self.reader.clear()
        told = self.profile.told_by(selector) if self.profile is not None else {}
        known = [notes for i, notes in told.items() if self.profile is not None and self.profile.is_known(i)]
        receipt: dict[str, int] = {}
        for one in (selector, *(Selector(entry=f"profile:{i}") for i in told)):
            for name in self._modules:
                for what, count in self._own(name).remove(one).items():
                    receipt[f"{name}.{what}"] = receipt.get(f"{name}.{what}", 0) + count
        if others := sorted({number for notes in known for number in notes}):
            self._read_again(others)
        everything = bool(selector.everything)
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
        if everything:
            self._references = References()
        receipt["references"] = self._references.remove(selector.episode, self._is_there)
        self._cache.clear()
        self._recent.clear()
        self._last = None
        left = self._entries()
        mentions = selector if selector.user is None else Selector(object=selector.user)
        removed = [one for id, one in before.items() if id not in left]
        similar = [one for one in left.values() if mentions.in_text(one.text) or mentions.is_like(one.text)]
        return ForgetReceipt(receipt, written_as(removed), written_as(similar))

    def _read_again(self, numbers: list[int]) -> None:
        """Give the profile what notes tell of which the knowledge went with another note that told it, too."""
        notes = [self.notes.notes[i] for i in numbers if i in self.notes.notes] if self.notes is not None else []
        last = [(note, note.sources[-1]) for note in notes if note.ended is None and self._is_user(note.speaker)]
        where = [{"episode": source.episode, "step": source.step, "time": source.time} for _, source in last]
        rows = sorted(zip(last, where), key=lambda row: row[1]["time"])
        self._own("profile").read_again((note.id, note.text, at) for (note, _), at in rows)

    def _is_there(self, entry: str) -> bool:
        name, number = module_and_number(entry, self._modules)
        return kept(name, self._modules[name], number) is not None
