"""Asks all memories of a `LifelongMemory` at once and packs what they find.

memory.retrieve("where is the blue mug?", budget_tokens=200).render()
memory.retrieve("which milk do I like?", k=3, as_of=40, where={"speaker": "Ann"})
memory.explain()
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ..arguments import checked_number, checked_text
from ..recollection import Item, Recollection, pack
from ..trust import QUOTED
from .answers import Question, answers, best_of, weighed
from .parts import PER_STEP, MemoryParts
from .references import Recent

_MAX_CACHED = 256


class Recalling(MemoryParts):
    """The part of `LifelongMemory` that answers."""

    goal: str
    place: str
    _hops: int
    _counter: Callable[[str], int]
    _cache: dict[tuple[Any, ...], list[Item]]
    _last: Recollection | None
    _recent: Recent

    def retrieve(
        self,
        query: str | None = None,
        budget_tokens: int | None = None,
        *,
        k: int | None = None,
        as_of: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Recollection:
        """What all modules remember that fits a query, within a budget.

        For the goal of the running task, its last steps and what is around the agent fit by themselves. For any other
        query an item has to fit the query, on one scale for all modules (`relevance`).

        Args:
            query: None for the goal of the running task.
            budget_tokens: limit of the texts' tokens; None for none.
            k: at most so many items; None for as many as the modules find.
            as_of: None for now; what was so at this time, as far as it was known then or later.
            where: values that an item must have: labels, or "module", "speaker", "when", "kind", "id", "trust" and
                what else is in the `data` of an entry. A key that is no field, and no label of a note, is an error.
        """
        query = self.goal if query is None else checked_text("query", query)
        if budget_tokens is not None:
            budget_tokens = checked_number("budget_tokens", budget_tokens, least=0)
        asked = Question(
            query,
            k=None if k is None else checked_number("k", k, least=0),
            as_of=None if as_of is None else checked_number("as_of", as_of),
            where=self._checked_filter(where),
            of_task=query == self.goal,
            place=self.place,
            hops=self._hops,
        )
        with self._turns_taken.reading:
            weight = self.notes.word_weight if self.notes is not None else None
            found = self._run([functools.partial(self._found_by, name, asked, weight) for name in self._modules])
            items = [weighed(item) if item.trust in QUOTED else item for some in found for item in some]
            if k is not None:
                items = best_of(items, k)
            self._last = pack(items, budget_tokens, query=query, as_of=asked.as_of, counter=self._counter)
            self._recent.add(self._last)
            return self._last

    def _found_by(self, name: str, asked: Question, weight: Callable[[str], float] | None) -> list[Item]:
        """What a module finds; one that changes with tasks only is searched once for each query of a task."""
        if name in PER_STEP or asked.where:
            return answers(name, self._modules[name], asked, weight)
        key = (name, asked.query, asked.place, asked.k, asked.as_of, asked.of_task)
        found = self._cache.get(key)
        if found is None:
            found = answers(name, self._modules[name], asked, weight)
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = found
        return found

    def explain(self) -> str:
        """Why each item of the last retrieval was found, and what was left out for the budget."""
        return "nothing was asked yet" if self._last is None else self._last.explain()
