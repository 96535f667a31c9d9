"""Single entries of all memories of a `LifelongMemory`: by id, by label, changed, deleted, exported.

receipt = memory.tell("I like my tea in the blue mug.", labels={"room": "kitchen"})
memory.get(receipt.notes[0].id).text
memory.get_all(where={"room": "kitchen"})
memory.update(receipt.notes[0].id, "I like my tea in the green cup.")
memory.delete(receipt.notes[0].id)
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import InvalidInputError
from .arguments import checked_mapping, checked_text, shown
from .forgetting import Forgetting
from .kept import Kept, all_kept, as_json, history_of, kept, module_and_number, read_notes
from .modules.note import Value
from .parts import PER_STEP
from .receipts import WriteReceipt
from .store.module import Selector


class SingleEntries(Forgetting):
    """The part of `LifelongMemory` that is about one entry at a time."""

    step: int
    time: int
    tell: Callable[..., WriteReceipt]

    @abc.abstractmethod
    def _receipt(self, given: Iterable[str]) -> WriteReceipt:
        """What the last event did in these modules."""

    def get(self, id: str) -> Kept | None:
        """The entry of an id, past or current; None if there is none."""
        with self._turns_taken.reading:
            name, number = module_and_number(id, self._modules)
            return kept(name, self._modules[name], number)

    def get_all(self, module: str | None = None, where: Mapping[str, Any] | None = None) -> list[Kept]:
        """All entries, past ones too, by module and oldest first.

        Args:
            module: one of `MODULES`; None for all.
            where: values that an entry must have: labels, or "speaker", "when", "kind" and what else is in its `data`.
        """
        wanted = checked_mapping("where", {} if where is None else where)
        if module is not None and checked_text("module", module) not in self._modules:
            raise InvalidInputError(f"module: expected one of {', '.join(self._modules)}, got {shown(module)}")
        with self._turns_taken.reading:
            chosen = {name: one for name, one in self._modules.items() if module in (None, name)}
            return [entry for name, one in chosen.items() for entry in all_kept(name, one) if entry.fits(wanted)]

    def history(self, id: str) -> list[Kept]:
        """What an entry was before, with its times, and last what it is; of a place of a thing, its places before."""
        with self._turns_taken.reading:
            name, number = module_and_number(id, self._modules)
            return history_of(name, self._modules[name], number)

    def update(self, id: str, text: str | None = None, labels: Mapping[str, Value] | None = None) -> WriteReceipt:
        """Give a note another text or other labels; what the profile had from the old text has an end.

        Raises:
            InvalidInputError: there is no such note. What is not a note follows from what was told and seen: tell or
                observe what is so.
        """
        with self._turns_taken.turn:
            name, number = module_and_number(id, self._modules)
            if name != "notes" or self.notes is None or self.get(id) is None:
                raise InvalidInputError(
                    f"id: expected one of a note, got {shown(id)}; tell or observe what is so instead"
                )
            where = {"episode": self.episode, "step": self.step, "time": self.time + 1}
            events = {"notes": self.notes.edited(int(number), where["time"], text, labels)}
            if text is not None and self.profile is not None:
                said = self.profile.propose(checked_text("text", text), **where, note=int(number))
                before = [selector.entry for selector in self.profile.only_from(Selector(entry=id))]
                ended = [{"target": str(one).partition(":")[2], "ended": True} for one in before]
                known = {change["target"] for change in said["changes"]}
                said["changes"] = [one for one in ended if one["target"] not in known] + said["changes"]
                events |= {"profile": said} if said["changes"] else {}
            self._record({"op": "edit", "time": where["time"], "events": events})
            return self._receipt(events)

    def delete(self, id: str) -> dict[str, int]:
        """Remove a note, an entry of episodic or semantic memory or of the profile, from files, too; as `forget`.

        What the profile has from a note alone goes with it.

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
        """All entries as JSON, one a line; for other programs, and for `import_json`."""
        return as_json(iter(self.get_all()))

    def import_json(self, text: str) -> int:
        """Tell this memory the notes of an export, with speakers, dates and labels; how many were new.

        Entries of other modules follow from tasks and are not taken over: copy the folder, or `restore` a state.

        Raises:
            InvalidInputError: a line that is no entry; nothing has changed.
        """
        rows = read_notes(checked_text("text", text))
        return sum(bool(self.tell(**row).notes) for row in rows)
