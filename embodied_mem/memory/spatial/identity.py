"""Scores whether a mention and a known thing are one thing, by name, place and appearance.

    mug, red = name_of("mug"), name_of("the red mug")
    same_name(mug, red)                                     # 1.0: a red mug is a mug
    same_name(name_of("blue mug"), red)                     # 0.0: each has a word that the other one has not
    score(same_name(mug, red), place=1.0, look=None)        # 1.0: seen in the same place
    score(same_name(mug, red), place=0.0, look=None)        # 0.0: a name alone is not enough
    score(0.0, place=1.0, look=0.97)                        # 0.97: a cup that looks like the mug that stood there

With n, p, a in [0, 1] for a mention m and a thing v:

    n(m, v) = 1 if m has the kind of a name of v, and no name of v contradicts m: numbers, tags and owners are the
              same, and the words that describe one are among those that describe the other; where words differ,
              Dice's coefficient of their pairs of letters, if they begin alike: a slip of spelling
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
from collections.abc import Sequence
from typing import NamedTuple

from ..words import stem

THETA = 0.75
"""How similar two things must be at least to be one."""

_PART = re.compile(r"[^\W\d_]+['\u2019]s(?!\w)|[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ARTICLES = frozenset(("a", "an", "the", "some", "this", "that", "another"))
_OWNERS = frozenset(("my", "your", "our", "their", "his", "her", "its"))
_POSSESSIVE = ("'s", "\u2019s")
_BETWEEN = frozenset(("of", "from", "with", "for", "made"))
"""Before what describes a thing in a name: "cup of tea"."""


class Name(NamedTuple):
    """A name without its article, as stems.

    Attributes:
        kind: the noun.
        described: the words beside it, each once, in order.
        number: at its end, or a single letter; or an empty text.
        owner: who has it, if the name says so.
    """

    kind: str
    described: tuple[str, ...]
    number: str
    owner: str


def name_of(text: str) -> Name:
    """The parts of a name: "Ann's Red_Mug-2" is "mug", described by "ann's" and "red", "2", of "ann's"."""
    parts = _PART.findall(_CAMEL.sub(" ", text).lower())
    number = ""
    if len(parts) > 1 and (parts[-1].isdigit() or (len(parts[-1]) == 1 and parts[-1].isascii())):
        number = parts.pop().lstrip("0") or "0"
    while len(parts) > 1 and parts[0] in _ARTICLES:
        parts = parts[1:]
    owner = next((part for part in parts if part in _OWNERS or part.endswith(_POSSESSIVE)), "")
    words = [stem(part) for part in parts if part not in _OWNERS]
    if not words:
        return Name("", (), number, owner)
    head = next((i for i, part in enumerate(words[1:-1], 1) if part in _BETWEEN), len(words))
    described = dict.fromkeys(word for i, word in enumerate(words) if i != head - 1 and word not in _BETWEEN)
    return Name(words[head - 1], tuple(described), number, owner)


def same_name(one: Name, two: Name) -> float:
    """How well two names fit one thing, from 0 to 1."""
    if not one.kind or not two.kind:
        return 0.0
    if one.kind == two.kind:
        return agreement(one, two)
    left, right = _differences((one.kind, *one.described), (two.kind, *two.described))
    return min(agreement(one, two), _spelled_alike(left, right))


def agreement(one: Name, two: Name) -> float:
    """How well what two names say of a thing, besides its kind, can be so of one thing, from 0 to 1."""
    if _differ(one.number, two.number) or _differ(one.owner, two.owner):
        return 0.0
    codes, others = ({word for word in (name.kind, *name.described) if _is_code(word)} for name in (one, two))
    if codes and others and codes != others:
        return 0.0  # tags such as "w0n1" and "w1n1" are made to tell things apart
    left, right = _differences(one.described, two.described)
    return _spelled_alike(left, right) if left and right else 1.0


def fits(mention: Name, names: Sequence[Name]) -> float:
    """How well a mention fits a thing that goes by several names: like one of them, and in contradiction to none."""
    return min(max(same_name(mention, name) for name in names), min(agreement(mention, name) for name in names))


def is_meant(mention: Name, names: Sequence[Name]) -> bool:
    """Whether a mention as a class means a thing of these names: "mug" and "red mug" mean a big red mug."""
    described = {word for name in names for word in name.described}
    return fits(mention, names) == 1 and set(mention.described) <= described


def _is_code(word: str) -> bool:
    return not (word.isalpha() or word.endswith(_POSSESSIVE))


def _differences(one: Sequence[str], two: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of each that the other one has not."""
    return [word for word in one if word not in two], [word for word in two if word not in one]


def _spelled_alike(one: Sequence[str], two: Sequence[str]) -> float:
    return _dice(" ".join(one), " ".join(two)) if one and two and one[0][0] == two[0][0] else 0.0


def _differ(one: str, two: str) -> bool:
    return bool(one and two and one != two)


def score(name: float, place: float, look: float | None, theta: float = THETA) -> float:
    """How sure it is that a mention is a thing: the median of the three; `look` is None if it is not known."""
    if look is None:
        return min(name, place)
    return sorted((name, place, look))[1] if look > theta else 0.0


def _dice(one: str, two: str) -> float:
    """Dice's coefficient of the pairs of neighbouring letters."""
    first, second = ({text[i : i + 2] for i in range(len(text) - 1)} for text in (one, two))
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0
