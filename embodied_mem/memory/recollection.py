"""Results of a memory's calls: recollections, receipts; and references, where one is told again.

    recollection = pack(items, budget_tokens=60)
    recollection.render()          # the texts, one a line
    recollection.explain()         # why each item was found, and what was left out for the budget

    receipt = memory.tell("I don't like oat milk anymore, I prefer soy.")
    receipt.notes[0].id                        # "notes:7": the text itself
    [old.text for old in receipt.ended]        # ["I like oat milk. (no longer, since time 9)"]
    print(receipt.render())

An agent that reads what it recalls often hands it in again. Such a text is no news: it becomes a reference of the
entry that it came from, never a copy, and never a way to be trusted more. A note has it among its own sources.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .events import check
from .observation import Status
from .record import Record
from .trust import QUOTED, Trust
from .words import same_text

EARLIER = " (earlier)"
"""Mark of what its speaker said something newer about."""
_SAID = -1
"""Instead of what was left of the budget: another item says the same."""


class LeftOut(NamedTuple):
    """An item that was found and not given.

    Attributes:
        item: as found.
        cost: its tokens; None if another item says the same.
        left: tokens that were left of the budget.
    """

    item: Record
    cost: int | None
    left: float

    @property
    def reason(self) -> str:
        """Why it is not given."""
        if self.cost is None:
            return "another item says the same"
        return f"needs {self.cost} tokens, {self.left} were left"


@dataclasses.dataclass(frozen=True)
class Recollection:
    """The items found for a query.

    Attributes:
        query: as asked.
        items: what is given, best first.
        tokens: size of `items`, as counted.
        budget_tokens: limit that was set; None for none.
        as_of: the time that was looked back to; None for now.
    """

    query: str
    items: tuple[Record, ...]
    tokens: int
    budget_tokens: int | None
    _left: tuple[Any, ...] = ()  # item, cost and tokens that were left, of one after the other: a tuple each costs more
    as_of: int | None = None

    @functools.cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Records found but not given, best first."""
        return tuple([LeftOut(*self._left[i : i + 3]) for i in range(0, len(self._left), 3)])

    def render(self) -> str:
        """Return the texts of the items, one a line."""
        return "\n".join(item.text for item in self.items)

    def explain(self) -> str:
        """Write a line for each found item: its fate, source and reason."""
        limit = "no limit" if self.budget_tokens is None else f"limit {self.budget_tokens}"
        time = "" if self.as_of is None else f" (as of {self.as_of})"
        lines = [f"query: {self.query}{time}", f"given: {len(self.items)} items, {self.tokens} tokens ({limit})"]
        lines += [f"  {_line(item)}" for item in self.items]
        lines.append(f"left out: {len(self.left_out)} items")
        lines += [f"  {_line(left.item)}; {left.reason}" for left in self.left_out]
        return "\n".join(lines)


def record_json(item: Record) -> dict[str, Any]:
    """Return what a trace shows of a record."""
    names = ("text", "module", "score", "why", "episode", "step", "id", "trust")
    return {name: getattr(item, name) for name in names}


def _line(item: Record) -> str:
    where = "" if item.episode is None else f", episode {item.episode}"
    where += "" if item.step is None else f" step {item.step}"
    return f"[{item.id}, {item.trust}{where}, score {item.score:.2f}] {item.text}: {item.why}"


def count_tokens(text: str) -> int:
    """Estimate a text's tokens: one per four characters, at least one."""
    return len(text) // 4 + 1


def pack(
    items: Iterable[Record],
    budget_tokens: int | None = None,
    *,
    query: str = "",
    as_of: int | None = None,
    counter: Callable[[str], int] = count_tokens,
) -> Recollection:
    """Return what fits the budget: each module's best, then by score.

    A text that a chosen item has already is left out, whatever mark it ends in. What a source of little trust says
    becomes a quotation. Items and what was left out come best first.

    Args:
        items: what was found; ties keep this order.
        budget_tokens: limit of the sum of `counter` over the texts; None for none.
        query, as_of: for the record.
        counter: tokens of one text.
    """
    ranked = sorted(items, key=operator.attrgetter("score"), reverse=True)
    heads: dict[str, int] = {}
    for position, item in enumerate(ranked):
        if item.module not in heads:
            heads[item.module] = position
        if item.trust in QUOTED:
            ranked[position] = item.quoted()
    limit = math.inf if budget_tokens is None else budget_tokens
    texts = [item.text for item in ranked]
    sizes = [len(text) // 4 + 1 for text in texts] if counter is count_tokens else [*map(counter, texts)]
    rests: list[float | None] = [None] * len(ranked)  # what was left of the budget, of what is left out
    said: set[str] = set()
    used = 0
    for position in dict.fromkeys(itertools.chain(heads.values(), range(len(ranked)))):
        text = texts[position].rstrip(".! ")
        if text in said:
            rests[position] = _SAID
        elif used + sizes[position] > limit:
            rests[position] = limit - used
        else:
            used += sizes[position]
            said.add(text)
    chosen, left = [], list[Any]()
    for item, size, rest in zip(ranked, sizes, rests):
        if rest is None:
            chosen.append(item)
        else:
            left += (item, None, 0) if rest == _SAID else (item, size, rest)
    return Recollection(query, tuple(chosen), used, budget_tokens, tuple(left), as_of)


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
        """Write one line for each entry."""
        rows = [("removed", one) for one in self.removed] + [("looks like it", one) for one in self.similar]
        return "\n".join(f"{do} {one.id}: {one.text}" for do, one in rows) or "nothing was removed"


@dataclasses.dataclass(frozen=True)
class WriteReceipt:
    """The changes of one `tell` or `observe`.

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
        """Structure that rules or a model made of the text; none: it is a plain note."""
        return tuple(record for record in self.stored + self.merged if record.module != "notes")

    def joined(self, later: WriteReceipt) -> WriteReceipt:
        """Join a later receipt to this one."""
        both = (getattr(self, do) + getattr(later, do) for do in ("stored", "merged", "ended"))
        stored, merged, ended = map(once_each, both)
        return dataclasses.replace(self, stored=stored, merged=merged, ended=ended)

    def render(self) -> str:
        """Write one line for each entry."""
        rows = [(do, record) for do in ("stored", "merged", "ended") for record in getattr(self, do)]
        lines = [f"{do} {record.id}: {record.text}" for do, record in rows]
        return "\n".join([*lines, *(f"refused: {text}" for text in self.refused)])


def once_each(records: Iterable[Record]) -> tuple[Record, ...]:
    """Keep the last of each id, in the order of the first."""
    return tuple({record.id: record for record in records}.values())


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
        # Whoever retrieves adds, beside other threads: both `append` and `tuple` are one step for them.
        self._given: collections.deque[tuple[Record, ...]] = collections.deque(maxlen=_RECENT)
        self._forms: tuple[object, dict[str, Record]] = ((), {})  # what they were made of, when something is told

    def add(self, found: Recollection) -> None:
        self._given.append(found.items)

    def item_of(self, text: str) -> Record | None:
        """Return the item recalled in these words, in any spelling, or None."""
        recent, forms = tuple(self._given), self._forms
        if forms[0] != recent:
            items = itertools.chain.from_iterable(recent)
            self._forms = forms = (recent, {same_text(item.text): item for item in items if item.module != _PASSING})
        return forms[1].get(same_text(text))

    def clear(self) -> None:
        self._given.clear()
        self._forms = ((), {})


class References:
    """The references of all entries but notes."""

    def __init__(self, rows: Mapping[str, list[Reference]] | None = None) -> None:
        self._rows = {entry: list(its) for entry, its in (rows or {}).items()}

    def add(self, entry: str, reference: Reference) -> None:
        self._rows.setdefault(entry, []).append(reference)

    def of(self, entry: str) -> tuple[Reference, ...]:
        return tuple(self._rows.get(entry, ()))

    def remove(self, episode: int | None, is_there: Callable[[str], bool]) -> int:
        """Forget an episode's references and dangling ones; return the count."""
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
        """Write it for a state."""
        return {entry: [list(row) for row in rows] for entry, rows in self._rows.items()}

    @classmethod
    def of_rows(cls, rows: Any) -> References:
        """Return what `rows` gave. Raises InvalidInputError for anything else."""
        check(dict[str, list[Reference]], "state: references", rows)
        return cls({entry: [Reference(*row) for row in its] for entry, its in rows.items()})
