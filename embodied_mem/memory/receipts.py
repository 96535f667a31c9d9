"""Receipts: what became of a text that a memory was given.

receipt = memory.tell("I don't like oat milk anymore, I prefer soy.")
receipt.notes[0].id                        # "notes:7": the text itself
[old.text for old in receipt.ended]        # ["I like oat milk. (no longer, since time 9)"]
print(receipt.render())
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from .observation import Status
from .record import Record


class ForgetReceipt(dict[str, int]):
    """Counts of what `forget` removed, by module and kind.

    Attributes:
        removed: the entries that are gone.
        similar: entries that are there and may name what was forgotten: in a form that rules do not decide, or, of a
            user, as somebody of whom others speak. Delete those that are meant.
    """

    def __init__(self, counts: Mapping[str, int], removed: tuple[Record, ...], similar: tuple[Record, ...]):
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

    stored: tuple[Record, ...] = ()
    merged: tuple[Record, ...] = ()
    ended: tuple[Record, ...] = ()
    outcome: Status = "unknown"
    refused: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[Record, ...]:
        """The texts that were kept as they are."""
        return tuple(record for record in self.stored if record.module == "notes")

    @property
    def structured(self) -> tuple[Record, ...]:
        """What rules or a model made of the text; none: it is a plain note."""
        return tuple(record for record in self.stored + self.merged if record.module != "notes")

    def joined(self, later: WriteReceipt) -> WriteReceipt:
        """Join a later receipt to this one."""
        both = (getattr(self, do) + getattr(later, do) for do in ("stored", "merged", "ended"))
        stored, merged, ended = map(once_each, both)
        return dataclasses.replace(self, stored=stored, merged=merged, ended=ended)

    def render(self) -> str:
        """One line for each entry."""
        rows = [(do, record) for do in ("stored", "merged", "ended") for record in getattr(self, do)]
        lines = [f"{do} {record.id}: {record.text}" for do, record in rows]
        return "\n".join([*lines, *(f"refused: {text}" for text in self.refused)])


def once_each(records: Iterable[Record]) -> tuple[Record, ...]:
    """Keep the last of each id, in the order of the first."""
    return tuple({record.id: record for record in records}.values())
