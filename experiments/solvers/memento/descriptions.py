"""Says how alike two descriptions of things are, in whatever words: shared words, their meaning, colours.

    alike("A teal vase with a tall, slender neck.", "vase, turquoise, thin neck", "vase")       # near 1
    alike("A teal vase with a tall, slender neck.", "A brown vase with dots.", "vase")          # near 0

Words are compared one by one: equal stems, names of one family of colours, words for one look (the tables `colours` and
`looks` of `lexicon.txt`), or the vectors of both. What the shorter description says and the longer does not have weighs
most, since details may be left out of either. Names of unlike colours speak against each other.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from embodied_mem.memory.embedders import default_embedder

from .lexicon import TABLES, content, stem

_SHORTER = 0.7
"""Weight of the description that says less."""
_FAMILY, _SAME_LOOK = 0.9, 0.85
_FAR, _NEAR = 0.1, 0.4
"""Cosines of words from which, and up to which, they are taken to mean something of the same."""
_VAGUE, _SHADE = 0.3, 0.5
_SHADES = {"dark": {"black"}, "deep": {"black"}, "light": {"white"}, "pal": {"white"}}
"""How a colour may be called in passing, by stem."""
_OTHER_COLOUR = 0.4


def _families() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in TABLES["colours"].splitlines():
        name, _, others = line.partition(": ")
        for word in (name, *others.split()):
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


def _looks() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(TABLES["looks"].splitlines()):
        for word in line.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


_COLOURS, _LOOKS = _families(), _looks()
_LITTLE = frozenset(map(stem, TABLES["words about looks"].split()))


@functools.lru_cache(maxsize=1 << 13)
def _vector(word: str) -> np.ndarray:
    return np.asarray(default_embedder().embed([word])[0])


@functools.lru_cache(maxsize=1 << 16)
def _same(a: str, b: str) -> float:
    """How much two stems mean the same, in [0, 1]."""
    if a == b:
        return 1.0
    if a in _COLOURS and b in _COLOURS:
        x, y = _COLOURS[a], _COLOURS[b]
        return _FAMILY * len(x & y) / min(len(x), len(y))
    if _LOOKS.get(a, frozenset()) & _LOOKS.get(b, frozenset()):
        return _SAME_LOOK
    if a in _COLOURS or b in _COLOURS:
        colour, other = (a, b) if a in _COLOURS else (b, a)
        return _SHADE * bool(_COLOURS[colour] & _SHADES.get(other, set()))
    cosine = float(_vector(a) @ _vector(b))
    return min(max((cosine - _FAR) / (_NEAR - _FAR), 0.0), 1.0) * _SAME_LOOK


@functools.lru_cache(maxsize=1 << 12)
def _words(text: str, kind: str) -> tuple[str, ...]:
    kinds = set(content(kind))
    return tuple(dict.fromkeys(word for word in content(re.sub(r"\boff-white", "white", text)) if word not in kinds))


def _covered(some: tuple[str, ...], others: tuple[str, ...], kinds: list[str]) -> float:
    """Share of the words that others have, or mean."""
    weights = [_VAGUE if word in _LITTLE or any(_same(word, kind) > 0.5 for kind in kinds) else 1.0 for word in some]
    hits = sum(w * max(_same(word, other) for other in others) for word, w in zip(some, weights))
    return hits / sum(weights)


def alike(a: str, b: str, kind: str) -> float:
    """How alike two descriptions of things of a category are, in [0, 1]; 0 where one says nothing."""
    x, y = sorted((_words(a, kind), _words(b, kind)), key=len)
    if not x:
        return 0.0
    kinds = content(kind)
    ours, theirs = ([word for word in words if word in _COLOURS] for words in (x, y))
    score = _SHORTER * _covered(x, y, kinds) + (1 - _SHORTER) * _covered(y, x, kinds)
    if ours and theirs and not any(_same(one, other) for one in ours for other in theirs):
        score *= _OTHER_COLOUR
    return score
