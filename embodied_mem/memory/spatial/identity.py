"""Scores whether a mention and a known thing are one thing, by name, place and appearance.

    mug, red = name_of("mug"), name_of("the red mug")
    same_name(mug, red)                                     # 1.0: a red mug is a mug
    score(same_name(mug, red), place=1.0, look=None)        # 1.0: seen in the same place
    score(same_name(mug, red), place=0.0, look=None)        # 0.0: a name alone is not enough
    score(0.0, place=1.0, look=0.97)                        # 0.97: a cup that looks like the mug that stood there

With n, p, a in [0, 1] for a mention m and a thing v:

    n(m, v) = 1 if the words of one name end with those of the other, 0 if both have a number and these differ, else
              Dice's coefficient of pairs of letters, of what is before the last word if that is the same
    p(m, v) = 1 if v is known to be now where m is said to be, else 0
    a(m, v) = cosine of the two appearance vectors; 0 where there are not two
    s(m, v) = median(n, p, a)          two of three have to agree; 0 if a is known and not above theta

m is linked to argmax_v s(m, v) if that is above theta, else it is a new thing. Since at least p or a must be high, only
what is in the place that is stated and what the index of appearances finds need be looked at: the local subgraph of
RoboMemory's Algorithm 1, at a cost that does not grow with the graph.

Source: RoboMemory, Algorithm 1, step 1. Deviation: similarity there is of embeddings alone; here the place counts too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..words import stem

THETA = 0.75
"""How similar two things must be at least to be one."""

_PART = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ARTICLES = frozenset(("a", "an", "the", "some", "my", "your", "our", "their", "this", "that", "another"))


class Name(NamedTuple):
    """Words of a name without article and number, as stems; the number at its end, or an empty text."""

    words: tuple[str, ...]
    number: str


def name_of(text: str) -> Name:
    """The parts of a name: "the Red_Mug-2" is ("red", "mug") and "2"."""
    parts = _PART.findall(_CAMEL.sub(" ", text).lower())
    number = parts.pop().lstrip("0") or "0" if len(parts) > 1 and parts[-1].isdigit() else ""
    first = next((i for i, part in enumerate(parts) if part not in _ARTICLES), 0)
    return Name(tuple(stem(part) for part in parts[first:]), number)


def same_name(one: Name, two: Name) -> float:
    """How well two names fit one thing, from 0 to 1."""
    if not one.words or not two.words or (one.number and two.number and one.number != two.number):
        return 0.0
    codes, others = ({word for word in name.words if not word.isalpha()} for name in (one, two))
    if codes and others and codes != others:
        return 0.0  # tags such as "w0n1" and "w1n1" are made to tell things apart
    short, long = sorted((one.words, two.words), key=len)
    if long[-len(short) :] == short:
        return 1.0
    if short[-1] == long[-1]:
        return _dice(" ".join(short[:-1]), " ".join(long[:-1]))
    return _dice(" ".join(short), " ".join(long))


def score(name: float, place: float, look: float | None, theta: float = THETA) -> float:
    """How sure it is that a mention is a thing: the median of the three; `look` is None if it is not known."""
    if look is None:
        return min(name, place)
    return sorted((name, place, look))[1] if look > theta else 0.0


def _dice(one: str, two: str) -> float:
    """Dice's coefficient of the pairs of neighbouring letters."""
    first, second = ({text[i : i + 2] for i in range(len(text) - 1)} for text in (one, two))
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0
