"""Receipts: what became of a text that a memory was given.

receipt = memory.tell("I don't like oat milk anymore, I prefer soy.")
receipt.notes[0].id                        # "notes:7": the text itself
[old.text for old in receipt.ended]        # ["I like oat milk. (no longer, since time 9)"]
print(receipt.render())
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from .observation import Status


class Written(NamedTuple):
    """One entry as it is after the call.

    Attributes:
        id: for `LifelongMemory.get`.
        module: which memory holds it.
        text: one line.
    """

    id: str
    module: str
    text: str


class ForgetReceipt(dict[str, int]):
    """Counts of what `forget` removed, by module and kind.

    Attributes:
        removed: the entries that are gone.
        similar: entries that are there and may name what was forgotten: in a form that rules do not decide, or, of a
            user, as somebody of whom others speak. Delete those that are meant.
    """

    def __init__(self, counts: Mapping[str, int], removed: tuple[Written, ...], similar: tuple[Written, ...]):
        super().__init__(counts)
        self.removed, self.similar = removed, similar

    def render(self) -> str:
        """One line for each entry."""
        rows = [("removed", one) for one in self.removed] + [("looks like it", one) for one in self.similar]
        return "\n".join(f"{do} {one.id}: {one.text}" for do, one in rows) or "nothing was removed"


@dataclasses.dataclass(frozen=True)
class WriteReceipt:
    """What one `tell` or `observe` changed.

    Attributes:
        stored: new entries, notes among them.
        merged: entries that say the same already and have one more source, or another value of the same thing.
        ended: entries that are no longer so.
        refused: facts that were not believed, each with the reason; they are kept as notes.
        outcome: of an action: as the world gave it, or "failure" if the text says so; else "unknown".
    """

    stored: tuple[Written, ...] = ()
    merged: tuple[Written, ...] = ()
    ended: tuple[Written, ...] = ()
    outcome: Status = "unknown"
    refused: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[Written, ...]:
        """The texts that were kept as they are."""
        return tuple(written for written in self.stored if written.module == "notes")

    @property
    def structured(self) -> tuple[Written, ...]:
        """What rules or a model made of the text; none: it is a plain note."""
        return tuple(written for written in self.stored + self.merged if written.module != "notes")

    def joined(self, later: WriteReceipt) -> WriteReceipt:
        """Both, of which the other one came later."""
        both = (getattr(self, do) + getattr(later, do) for do in ("stored", "merged", "ended"))
        stored, merged, ended = (tuple(dict.fromkeys(rows)) for rows in both)
        return dataclasses.replace(self, stored=stored, merged=merged, ended=ended)

    def render(self) -> str:
        """One line for each entry."""
        rows = [(do, written) for do in ("stored", "merged", "ended") for written in getattr(self, do)]
        lines = [f"{do} {written.id}: {written.text}" for do, written in rows]
        return "\n".join([*lines, *(f"refused: {text}" for text in self.refused)])
