"""Finds texts by their words while they change: an inverted index with the weights of BM25.

    index = WordIndex()
    index.add(7, ["mug", "blue", "sister"])
    index.search(["mug"])                # {7: 0.62}: the share of the query's weight that the text has, in [0, 1)

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), equations 3.15 to 3.17;
divided by what a text of endless repetitions would get, so that scores of different queries can be compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

K1, B = 1.2, 0.75
COMMON = 1024
"""Texts that have a word, from which on it is common."""


class WordIndex:
    """Texts as words under ids."""

    def __init__(self) -> None:
        self._words: dict[int, Counter[str]] = {}
        self._lengths: dict[int, int] = {}
        self._having: dict[str, dict[int, int]] = {}  # word -> id -> how often
        self._total = 0

    def __len__(self) -> int:
        return len(self._words)

    def add(self, number: int, words: Iterable[str]) -> None:
        """Put words under an id, in place of those that it had."""
        if number in self._words:
            self.remove(number)
        self.extend(number, words)

    def extend(self, number: int, words: Iterable[str]) -> None:
        """Add words to those that an id has, if it has any."""
        counts = Counter(words)
        if (mine := self._words.get(number)) is None:
            self._words[number] = counts
        else:
            mine.update(counts)
        for word, count in counts.items():
            having = self._having.setdefault(word, {})
            having[number] = having.get(number, 0) + count
        length = sum(counts.values())
        self._lengths[number] = self._lengths.get(number, 0) + length
        self._total += length

    def reduce(self, number: int, words: Iterable[str]) -> None:
        """Take words away that were given to an id; without any it is gone."""
        counts = self._words[number] - Counter(words)
        self.remove(number)
        if counts:
            self.extend(number, counts.elements())

    def remove(self, number: int) -> None:
        """Take an id and its words away."""
        for word in self._words.pop(number):
            having = self._having[word]
            del having[number]
            if not having:
                del self._having[word]
        self._total -= self._lengths.pop(number)

    def with_all(self, words: Sequence[str]) -> set[int]:
        """Ids of the texts that have all of these words; none for no words."""
        rows = sorted((self._having.get(word, {}) for word in words), key=len)
        return set(rows[0]).intersection(*rows[1:]) if rows else set()

    def weight(self, word: str) -> float:
        """How much a word tells: ln(1 + (N - n + 0.5) / (n + 0.5)) of n texts among N."""
        having = len(self._having.get(word, ()))
        return math.log(1 + (len(self._words) - having + 0.5) / (having + 0.5))

    def search(self, query: Mapping[str, float] | Iterable[str]) -> dict[int, float]:
        """Id -> score in [0, 1) of the texts that share a word with the query, whose words may have weights.

        A word that more than `COMMON` texts have finds none that the query's rarer words have not found, if they found
        any: so what a question costs does not grow with all that was ever said.
        """
        asked = dict(query) if isinstance(query, Mapping) else dict.fromkeys(query, 1.0)
        weights = {word: given * self.weight(word) for word, given in asked.items()}
        whole = sum(weights.values())
        if not whole or not self._words:
            return {}
        mean = max(self._total / len(self._words), 1.0)
        scores: dict[int, float] = {}
        lengths = self._lengths
        rows = [(self._having[word], weight / whole) for word, weight in weights.items() if word in self._having]
        for having, share in sorted(rows, key=lambda row: len(row[0])):
            few = scores and len(having) > COMMON
            for number in list(scores) if few else having:
                if count := having.get(number, 0):
                    part = share * count / (count + K1 * (1 - B + B * lengths[number] / mean))
                    scores[number] = scores.get(number, 0.0) + part
        return scores

    def fork(self) -> WordIndex:
        """An independent copy."""
        other = WordIndex()
        other._words = {number: counts.copy() for number, counts in self._words.items()}
        other._lengths, other._total = dict(self._lengths), self._total
        other._having = {word: dict(having) for word, having in self._having.items()}
        return other
