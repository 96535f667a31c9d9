"""One scale for how well a text answers a query, for all memories.

asked = Asked("where is the blue mug?", weight)
asked.share("mug 1 is on desk 1")            # 0.4: of the weight of the query's words, what the text has
relevance(asked.share(text), cosine)         # in [0, 1]
"""

from __future__ import annotations

from collections.abc import Callable

from .words import content_words

SIMILAR = 0.1
"""Cosine from which on two texts may have something to do with each other.

Of unrelated pairs among twenty sentences nine of ten are below 0.112 with static vectors and 0.174 with lexical ones.
"""

_OF_WORDS = 0.7


def relevance(share: float, cosine: float) -> float:
    """0.7 * share + 0.3 * cosine, in [0, 1].

    Args:
        share: of the weight of the query's words, what the text has, in [0, 1].
        cosine: of query and text; below 0 counts as 0.
    """
    return _OF_WORDS * share + (1 - _OF_WORDS) * (0.0 if cosine < 0 else 1.0 if cosine > 1 else cosine)


def squashed(score: float) -> float:
    """A sum of scores as one in [0, 1): the same up to a half, beyond it 1 - 1 / (4 score), so that none are equal."""
    return score if score <= 0.5 else 1 - 0.25 / score


class Asked:
    """The words of a query, each with its weight."""

    def __init__(self, query: str, weight: Callable[[str], float]):
        """Take a query; `weight` says how much a stem tells."""
        self.weights = {word: weight(word) for word in dict.fromkeys(content_words(query))}
        self._whole = sum(self.weights.values())

    def share(self, text: str) -> float:
        """Of the weight of the query's words, what a text has; 0 for a query without words that tell anything."""
        if not self._whole:
            return 0.0
        words = set(content_words(text))
        return sum(weight for word, weight in self.weights.items() if word in words) / self._whole
