"""Asks all memories of a `LifelongMemory` at once and packs what they find.

memory.retrieve("where is the blue mug?", budget_tokens=200).render()
memory.retrieve("which milk do I like?", k=3, as_of=40, where={"speaker": "Ann"})
memory.explain()
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ._parts import PER_STEP, MemoryParts
from .answers import Question, answers, best_of, weighed
from .arguments import checked_number, checked_text
from .claims import Claim, claims_in
from .note import TOLD, Note
from .recollection import EARLIER, Item, Recollection, pack
from .references import Recent
from .trust import QUOTED, RANK
from .words import content_words

_MAX_CACHED = 256
_MORE = 4
"""Items beyond those asked for that may come first in place of duplicates."""


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
            if not asked.of_task:
                items = self._newer_first(items, asked)
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

    def _newer_first(self, items: list[Item], asked: Question) -> list[Item]:
        """Put the newest before what the same speaker said of the same before, and mark that as earlier."""
        if (notes := self.notes) is None:
            return items
        told = [(item, self._told_of(item)) for item in sorted(items, key=lambda item: -item.score)]
        having: dict[str, list[tuple[int, int, Claim]]] = {}  # stem -> time, position and claim of notes that have it
        ending: dict[str, list[tuple[int, int, Claim]]] = {}  # the same, of those that end in it
        voices: dict[str, str] = {note.speaker: notes.voice(note.speaker) for _, note in told if note is not None}
        for position, (item, note) in enumerate(told):
            if note is not None and item.module == "notes":
                time = _last_told(note, asked.as_of)
                for claim in notes.claims_of(note):
                    row = time, position, claim
                    for word in claim.content:
                        having.setdefault(word, []).append(row)
                    if claim.content:
                        ending.setdefault(claim.content[-1], []).append(row)
        words = set(content_words(asked.query))
        found: dict[int, Item] = {}
        for position, (item, note) in enumerate(told):
            latest = -1
            if note is not None and len(having) > 1 and (asked.k is None or position < asked.k + _MORE):
                time, who = _last_told(note, asked.as_of), voices[note.speaker]
                alone = item.module == "notes" or note.num_claims == 1
                for old in notes.claims_of(note) if alone else claims_in(_said(item)):
                    if words.isdisjoint(old.content):
                        continue
                    # One that follows has the last word of the older one, or ends in one of its words.
                    rows = itertools.chain(having.get(old.content[-1], ()), *(ending.get(w, ()) for w in old.content))
                    for after, other, new in rows:
                        if after > time and new.follows(old, words):
                            by = told[other][1]
                            if by is not None and voices[by.speaker] == who and RANK[by.trust] >= RANK[note.trust]:
                                time, latest = after, other
            if latest >= 0:
                newer = told[latest][0]
                found.setdefault(latest, newer._replace(score=max(item.score, newer.score)))
                if item.trust not in QUOTED:
                    item = item._replace(text=item.text.rstrip(".! ") + EARLIER, data={"said": item.text, **item.data})
                if position in found:
                    item = item._replace(score=found[position].score)
                found[position] = item
            found.setdefault(position, item)
        return list(found.values())

    def _told_of(self, item: Item) -> Note | None:
        """The note that an item of the notes or the profile says again; None if it is over, or was not told."""
        if self.notes is None or item.module not in ("notes", "profile"):
            return None
        numbers = [int(item.id.partition(":")[2])] if item.module == "notes" else item.data["notes"]
        note = self.notes.notes.get(max(numbers, default=-1))
        return None if note is None or note.kind != TOLD or note.ended is not None else note

    def explain(self) -> str:
        """Why each item of the last retrieval was found, and what was left out for the budget."""
        return "nothing was asked yet" if self._last is None else self._last.explain()


def _last_told(note: Note, as_of: int | None) -> int:
    times = [source.time for source in note.sources if as_of is None or source.time <= as_of]
    return times[-1] if times else note.created


def _said(item: Item) -> str:
    """The sentence that knowledge of the profile stands for."""
    alias, description = item.data["alias"], item.data["description"]
    return str(alias) if alias == description else f"{alias} is {description}"
