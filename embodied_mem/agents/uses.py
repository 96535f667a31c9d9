"""Guesses which kind is meant by what a text says of its use: "something to tell the time with" is a watch.

    guess(("tell", "the", "time"), table)       # ("Watch", "AlarmClock")

A table maps words to the kinds that they speak for, the likeliest first. Words vote; a word that speaks for many kinds
says less about each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

Table = Mapping[str, tuple[str, ...]]


def table_of(text: str, separator: str = " ") -> Table:
    """Reads lines `word word ...: Kind Kind`.

    Args:
        text: the lines.
        separator: between kinds.
    """
    table: dict[str, tuple[str, ...]] = {}
    for line in text.strip().splitlines():
        words, _, kinds = line.partition(":")
        for word in words.split():
            table[word] = (*table.get(word, ()), *kinds.strip().split(separator))
    return table


def guess(words: Iterable[str], table: Table, limit: int = 6) -> tuple[str, ...]:
    """Kinds that the words speak for, the likeliest first; none if no word is known."""
    votes: Counter = Counter()
    for word in dict.fromkeys(words):
        kinds = table.get(word, ())
        for rank, kind in enumerate(kinds):
            votes[kind] += 1 / (rank + 1) / math.sqrt(len(kinds))
    return tuple(kind for kind, _ in votes.most_common(limit))
