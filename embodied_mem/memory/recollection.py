"""Results of retrieval: items with their sources, packed into a token budget, with reasons.

recollection = pack(items, budget_tokens=60)
recollection.render()          # the texts, one a line
recollection.explain()         # why each item was found, and what was left out for the budget
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .record import Record
from .trust import QUOTED

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
    """What was found for a query.

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
        """What was found and is not given, best first."""
        return tuple([LeftOut(*self._left[i : i + 3]) for i in range(0, len(self._left), 3)])

    @property
    def quotes(self) -> bool:
        """Whether something is given whose source is trusted little: `render` has it as a quotation."""
        return any(item.trust in QUOTED for item in self.items)

    def render(self) -> str:
        """The texts of the items, one a line."""
        return "\n".join(item.text for item in self.items)

    def explain(self) -> str:
        """One line for everything found: given or left out, from which module, source, episode and step, and why."""
        limit = "no limit" if self.budget_tokens is None else f"limit {self.budget_tokens}"
        time = "" if self.as_of is None else f" (as of {self.as_of})"
        lines = [f"query: {self.query}{time}", f"given: {len(self.items)} items, {self.tokens} tokens ({limit})"]
        lines += [f"  {_line(item)}" for item in self.items]
        lines.append(f"left out: {len(self.left_out)} items")
        lines += [f"  {_line(left.item)}; {left.reason}" for left in self.left_out]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The query, and the items that were `given` and `left_out`, as JSON data."""
        left = [_as_json(one.item) | {"reason": one.reason} for one in self.left_out]
        return {"query": self.query, "given": [_as_json(item) for item in self.items], "left_out": left}


def _as_json(item: Record) -> dict[str, Any]:
    names = ("text", "module", "score", "why", "episode", "step", "id", "trust")
    return {name: getattr(item, name) for name in names}


def _line(item: Record) -> str:
    where = "" if item.episode is None else f", episode {item.episode}"
    where += "" if item.step is None else f" step {item.step}"
    return f"[{item.id}, {item.trust}{where}, score {item.score:.2f}] {item.text}: {item.why}"


def count_tokens(text: str) -> int:
    """About how many tokens a text is: one per four characters, at least one; a line break is in it."""
    return len(text) // 4 + 1


def pack(
    items: Iterable[Record],
    budget_tokens: int | None = None,
    *,
    query: str = "",
    as_of: int | None = None,
    counter: Callable[[str], int] = count_tokens,
) -> Recollection:
    """What fits the budget: first the best item of each module, then the others by score, as long as they fit.

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
