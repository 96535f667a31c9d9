"""Phrases that name things: their nouns, and how they fit a category or each other.

core_of("my gift lamp from my aunt"), kind_score("the picture frame", "picture frame")     # "gift lamp", 3.0
same_thing("my teal vase", "the vase")                                                      # True
"""

from __future__ import annotations

import re

from .lexicon import content, stem

_SETS = frozenset(("set", "collection", "pair"))
_CORE_END = re.compile(
    r"\s*(?:,|\b(?:with|from|of|which|that|who|called|titled|named|featuring|on|in|by|for|as"
    r"|(?:gifted|given|used)(?=\s*\Z|\s+(?:to|by|for|from|as|in|on|at|with|me|us|during|when|every|daily)\b))\b).*\Z",
    re.IGNORECASE | re.DOTALL,
)


def core_of(phrase: str) -> str:
    """A phrase without article and what follows its noun: "my gift lamp from my aunt" -> gift lamp."""
    phrase = re.sub(
        r"\A(?:(?:the|a|an|my|our|both|one|two|some|all|this|that|another)\s+)+", "", phrase.strip().lower()
    )
    return _CORE_END.sub("", phrase).strip() or phrase


def kind_score(phrase: str, kind: str) -> float:
    """How well a category fits a phrase: 3 if it is the phrase's noun, less for a part of it, 0 for neither."""
    core, words = [stem(w) for w in re.findall(r"\w+", core_of(phrase))], [stem(w) for w in kind.split()]
    if not core or not words:
        return 0.0
    if core[-len(words) :] == words or "".join(words) in ("".join(core[i:]) for i in range(len(core))):
        return 3.0
    if words[-1] == core[-1] or words == core[: len(words)]:
        return 1.5 if words[-1] == core[-1] and len(words) > 1 else 1.0
    joined = " ".join(core)
    if any(" ".join(words) == joined[i : i + len(" ".join(words))] for i in range(len(joined))):
        return 0.8
    return 0.6 if set(core) & set(words) else 0.0


def same_thing(a: str, b: str) -> bool:
    """Whether two phrases of one text mean the same thing: equal nouns, or one the end of the other."""
    x, y = (" ".join(stem(w) for w in re.findall(r"\w+", core_of(p))) for p in (a, b))
    return bool(x) and bool(y) and (x == y or x.endswith(f" {y}") or y.endswith(f" {x}"))


def called(name: str, thing: str) -> bool:
    """Whether a description's name is that of a thing."""
    return same_thing(name, thing) or content(name)[-1:] == content(core_of(thing))[-1:]


def is_plural(phrase: str) -> bool:
    """Whether a phrase means several things ("my toys", "my tea set"), by its noun."""
    noun = core_of(phrase).split()[-1:]
    return any(word in _SETS or (word.endswith("s") and not word.endswith(("ss", "us"))) for word in noun)
