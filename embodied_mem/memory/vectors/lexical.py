"""Embeds texts without a model: the embedder protocol and a deterministic lexical embedder.

    embedder = LexicalEmbedder()
    vectors = embedder.embed(["put a clean apple in fridge.", "heat some apple and put it in diningtable."])
    vectors @ vectors.T            # cosine similarities

Needs no download, no fitting and no random numbers; the same text gives the same bits in every process.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from ...errors import InvalidInputError
from ..arguments import checked_number, checked_texts

_WORD = re.compile(r"[^\W_]+")
_FREQUENT_WORDS = """
    a an the some it them and or of to in on at with under from into then is are be you your i this that there in
    see find put place move look examine take task middle room looking quickly around one two
"""
_FREQUENT = frozenset(_FREQUENT_WORDS.split())
_FREQUENT_WEIGHT = 0.2
_MAX_DIMENSION = 1 << 20


@runtime_checkable
class Embedder(Protocol):
    """Whatever turns texts into vectors.

    Attributes:
        name: identifies the embedder and its settings in files and reports.
    """

    name: str

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, d], one row per text; a row of zeros for a text without content."""
        ...


class LexicalEmbedder:
    """Hashed bag of words and neighbouring word pairs.

    Row of a text: for each lower-cased word and each pair of neighbours f with count c, `weight(f) * (1 + ln c)` is
    added, with a sign, at the position that a CRC-32 of f names; the row is then scaled to length 1. Instead of
    document frequencies, which would change with every text that is added, a fixed list of frequent words weighs 0.2
    and other words 1; a pair weighs half the product of its words. Two features share a position with probability
    1/dimension.

    Args:
        dimension: length of a row.
    """

    def __init__(self, dimension: int = 512):
        dimension = checked_number("dimension", dimension, least=1, most=_MAX_DIMENSION)
        self.dimension = dimension
        self.name = f"lexical-{dimension}-1"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, dimension], one row per text; a row of zeros for a text without words."""
        texts = texts_to_embed(texts)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts):
            cells: dict[int, float] = {}
            for feature, weight in _features(text):
                code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
                cell = (code >> 1) % self.dimension
                cells[cell] = cells.get(cell, 0.0) + (weight if code & 1 else -weight)
            if length := math.hypot(*cells.values()):
                row[list(cells)] = [value / length for value in cells.values()]
        return rows


def texts_to_embed(texts: Sequence[str]) -> Sequence[str]:
    """The texts, checked. Raises InvalidInputError for one text alone and for what is none."""
    if isinstance(texts, str):
        raise InvalidInputError("texts: expected a sequence of texts, got one text; pass [text]")
    if isinstance(texts, (list, tuple)) and all(type(text) is str for text in texts):
        return texts  # whatever is in them, also what UTF-8 cannot hold
    return checked_texts("texts", texts)


def _features(text: str) -> Iterator[tuple[str, float]]:
    """(feature, weight) of the words, then of the pairs, each once."""
    words = _WORD.findall(text.lower())
    weights = {word: _FREQUENT_WEIGHT if word in _FREQUENT else 1.0 for word in words}
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    for first, second in itertools.pairwise(words):
        pair = f"{first} {second}"
        weights[pair] = weights[first] * (weights[second] / 2)
        counts[pair] = counts.get(pair, 0) + 1
    for feature, count in counts.items():
        yield feature, weights[feature] * (1 + math.log(count)) if count > 1 else weights[feature]
