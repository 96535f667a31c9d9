"""Single entries of all memories of a `LifelongMemory`: by id, by label, changed, deleted, exported.

receipt = memory.tell("I like my tea in the blue mug.", labels={"room": "kitchen"})
memory.get(receipt.notes[0].id).text
memory.get_all(where={"room": "kitchen"})
memory.update(receipt.notes[0].id, "I like my tea in the green cup.")
memory.delete(receipt.notes[0].id)
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import InvalidInputError
from ._forgetting import Forgetting
from ._parts import PER_STEP
from .arguments import checked_number, checked_text, shown
from .export import exported, imported
from .note import Value, all_labels, new_labels
from .receipts import ForgetReceipt, WriteReceipt
from .record import Kept, all_kept, as_it_was, history_of, kept, module_and_number
from .store.module import Selector
from .trust import RANK, Trust, checked_trust, least_trust


class SingleEntries(Forgetting):
    """The part of `LifelongMemory` that is about one entry at a time."""

    step: int
    time: int
    tell: Callable[..., WriteReceipt]

    @abc.abstractmethod
    def _receipt(self, given: Iterable[str]) -> WriteReceipt:
        """What the last event did in these modules."""

    def get(self, id: str, *, as_of: int | None = None) -> Kept | None:
        """The entry of an id, past or current; None if there is none, or was none at a time."""
        as_of = None if as_of is None else checked_number("as_of", as_of)
        with self._turns_taken.reading:
            name, number = module_and_number(id, self._modules)
            entry = kept(name, self._modules[name], number)
            return None if entry is None else self._referred(entry, as_of)

    def _referred(self, entry: Kept, as_of: int | None = None) -> Kept | None:
        """An entry, as it was at a time, with the references to it among its sources; None if it was not there."""
        then = entry if as_of is None else as_it_was(entry, self._modules[entry.module], as_of)
        rows = [row for row in self._references.of(entry.id) if as_of is None or row.time <= as_of]
        if then is None or not rows:
            return then
        return dataclasses.replace(then, sources=then.sources + tuple((row.episode, row.step) for row in rows))

    def get_all(
        self, module: str | None = None, where: Mapping[str, Any] | None = None, *, as_of: int | None = None
    ) -> list[Kept]:
        """All entries, past ones too, by module and oldest first.

        Args:
            module: one of `MODULES`; None for all.
            where: values that an entry must have: labels, or "speaker", "when", "kind", "trust" and what else is in its
                `data`. A key that is no field, and no label of a note, is an error, but in an empty memory.
            as_of: None for now; what was there at this time, as it was then.
        """
        wanted = self._checked_filter(where)
        if module is not None and checked_text("module", module) not in self._modules:
            raise InvalidInputError(f"module: expected one of {', '.join(self._modules)}, got {shown(module)}")
        as_of = None if as_of is None else checked_number("as_of", as_of)
        with self._turns_taken.reading:
            chosen = {name: one for name, one in self._modules.items() if module in (None, name)}
            found = [self._referred(entry, as_of) for name, one in chosen.items() for entry in all_kept(name, one)]
            return [entry for entry in found if entry is not None and entry.fits(wanted)]

    def history(self, id: str) -> list[Kept]:
        """What an entry was before, with its times, and last what it is; of a place of a thing, its places before."""
        with self._turns_taken.reading:
            name, number = module_and_number(id, self._modules)
            found = map(self._referred, history_of(name, self._modules[name], number))
            return [entry for entry in found if entry is not None]

    def update(
        self,
        id: str,
        text: str | None = None,
        labels: Mapping[str, Value] | None = None,
        *,
        trust: Trust = "user",
    ) -> WriteReceipt:
        """Give a note another text or other labels; what the profile had from the old text has an end.

        Args:
            id: of the note.
            text, labels: None for what it has.
            trust: of who changes it; the note keeps its own. A text that is a quotation has that of its source.

        Raises:
            InvalidInputError: there is no such note, or its source is trusted more. What is not a note follows from
                what was told and seen: tell or observe what is so.
        """
        trust = least_trust("" if text is None else checked_text("text", text), checked_trust("trust", trust))
        with self._turns_taken.turn:
            name, number = module_and_number(id, self._modules)
            if name != "notes" or self.notes is None or self.get(id) is None:
                raise InvalidInputError(
                    f"id: expected one of a note, got {shown(id)}; tell or observe what is so instead"
                )
            if RANK[trust] < RANK[own := self.notes.notes[int(number)].trust]:
                raise InvalidInputError(
                    f"trust: expected that of {id}, {own}, or more, got {trust}; tell it, then both are kept"
                )
            if text is None and labels is None:
                raise InvalidInputError(f"update: expected another text or other labels of {id}, got neither")
            where = {"episode": self.episode, "step": self.step, "time": self.time + 1}
            events = {"notes": self.notes.edited(int(number), where["time"], text, labels)}
            if text is not None and self.profile is not None and own == "user":
                said: dict[str, Any] = {"op": "tell", **where, "changes": []}
                if self._is_user(self.notes.notes[int(number)].speaker):
                    said = self.profile.propose(checked_text("text", text), **where, note=int(number))
                known = {change["target"] for change in said["changes"]}
                told = self.profile.told_by(Selector(entry=id), before=False)
                left = {one: self._texts_of(others) for one, others in told.items() if one not in known}
                said["changes"] = self.profile.untold(left) + said["changes"]
                said["note"] = int(number)
                events |= {"profile": said} if said["changes"] else {}
            self._record({"op": "edit", "time": where["time"], "events": events})
            return self._receipt(events)

    def _texts_of(self, numbers: Iterable[int]) -> list[str]:
        """What notes say that is still so, the latest first."""
        notes = [self.notes.notes[number] for number in numbers if number in self.notes.notes] if self.notes else []
        return [note.text for note in sorted(notes, key=lambda note: -note.sources[-1].time) if note.ended is None]

    def delete(self, id: str) -> ForgetReceipt:
        """Remove a note, an entry of episodic or semantic memory or of the profile, from files, too; as `forget`.

        What the profile has from a note goes with it; what other notes told of the same is read from them again.

        Raises:
            InvalidInputError: there is no such entry, or it is a fact of the graph or a step: forget its object or
                episode.
        """
        with self._turns_taken.turn:
            name, _ = module_and_number(id, self._modules)
            if name in PER_STEP or self.get(id) is None:
                expected = "expected one of a note, an episode, a lesson or of the profile"
                raise InvalidInputError(f"id: {expected}, got {shown(id)}; forget an object or an episode instead")
            return self._forget(Selector(entry=id))

    def export_json(self) -> str:
        """All that is remembered as lines of JSON, with ids, history, times, sources and trust; for `import_json`."""
        return exported(self.state())

    def import_json(self, text: str) -> int:
        """Become what was exported, from an empty memory of the same scope and modules; the number of entries.

        Raises:
            InvalidInputError: a line that `export_json` did not write, with its number and field; another scope or
                other modules; a label with the name of a field; this memory is not empty. Nothing has changed.
        """
        text = checked_text("text", text)
        with self._turns_taken.turn:
            self._check_empty()
            other = self.fork()
            other.restore(imported(text))  # so that nothing is recorded that cannot be read
            for note in other.notes.notes.values() if other.notes is not None else ():
                for labels in all_labels(note):
                    new_labels(labels)
            self._record({"op": "import", "text": text, "events": {}})
            return len(self.get_all())

    def _check_empty(self) -> None:
        if self.time or self.episode >= 0:  # every change has a time
            raise InvalidInputError("import: expected an empty memory, got one with entries; import into a new one")
