"""Decides whether a text names a thing, in any Unicode form and case, singular or plural.

    names("kitchen knife").search(normal("two Kitchen_Knives"))     # found
    normal("STRASSE") == normal("Straße")                           # True

Forgetting goes by it, so in doubt a text names a thing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

_INVISIBLE = re.compile(r"[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_IRREGULAR_WORDS = """
    axis:axes cactus:cacti child:children die:dice foot:feet fungus:fungi goose:geese index:indices louse:lice
    man:men matrix:matrices medium:media mouse:mice ox:oxen penny:pence person:people tooth:teeth vertex:vertices
"""
_IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR_WORDS.split())
_LONGEST_FIRST = sorted(_IRREGULAR.items(), key=lambda pair: -len(pair[1]))
_HISSING = ("s", "x", "z", "ch", "sh", "o")
_ONE_OF = {many: one for one, many in _IRREGULAR.items()}
_IN_F = re.compile(r"(kni|wi|li)ves\Z|(shel|hal|cal|loa|thie|wol|lea|scar|hoo|el)ves\Z")
_IN_O = ("potatoes", "tomatoes", "mangoes", "heroes", "echoes")
_NO_PLURAL = ("ss", "us", "is", "news", "lens", "gas", "series", "species")


_OWN = r"(?:[Mm]y|[Oo]ur|[Yy]our|[Hh]is|[Hh]er|[Tt]heir)"
_NOUN = r"(?:(?:\w+e[sr]t?|best|little|big|old|good|dear|young|new|late|twin) )?[a-z][\w-]*(?<!s)(?<!ed)(?<!ing)"
_NAME = r"[A-Z][a-z][\w-]*"
_INTRODUCED = re.compile(rf"\b(?P<own>{_OWN}) (?P<role>{_NOUN})(?P<comma>,)? (?P<name>{_NAME})(?(comma),)")
_EXPLAINED = re.compile(rf"\b(?P<name>{_NAME}), (?P<own>{_OWN}) (?P<role>{_NOUN}),")


def without_appositions(text: str) -> str:
    """The text with "my daughter Lily" for "Lily, my daughter," and "my daughter, Lily,"."""
    return _INTRODUCED.sub(r"\g<own> \g<role> \g<name>", _EXPLAINED.sub(r"\g<own> \g<role> \g<name>", text))


def introduced(text: str) -> list[tuple[str, str]]:
    """(role, name) of whom a text calls by both, as "daughter" and "Lily", where capitals tell names."""
    return [(found["role"], found["name"]) for found in _INTRODUCED.finditer(text)]


def called_by_name(text: str, roles: Container[str]) -> str:
    """The text with "Lily" for "my daughter Lily", for roles of these last words."""
    text = without_appositions(text)
    return _INTRODUCED.sub(lambda found: found["name"] if found["role"].split()[-1] in roles else found[0], text)


def normal(text: str) -> str:
    """The text without differences of Unicode form, case and invisible characters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text).casefold()
    folded = unicodedata.normalize("NFKD", decomposed).casefold()
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", folded))


def forms(word: str) -> set[str]:
    """The singular and plural forms that a normal word can have, itself included; too many rather than too few."""
    if not word[-1:].isalpha():
        return {word}
    found: set[str] = set()
    for one in {word, *_singulars(word)}:
        found |= {one, *_plurals(one)}
    return found


def singular(word: str) -> str:
    """One of what a normal word in plural names; any other word as it is."""
    if word in _ONE_OF or len(word) < 3 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return _ONE_OF.get(word, word)
    if (found := _IN_F.search(word)) is not None:
        return word[:-3] + ("fe" if found[1] else "f")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "zes", *_IN_O)) else word[:-1]


def names(thing: str) -> re.Pattern[str]:
    """What finds a thing in a normal text: its words, between spaces or underscores, the last in any number.

    Digits that go on, as in "mug 10" for "mug 1", are another thing.
    """
    words = [word for word in re.split(r"[\s_]+", normal(thing)) if word]
    ends = "|".join(re.escape(form) for form in sorted(forms(words[-1]), key=lambda form: (-len(form), form)))
    before = "".join(re.escape(word) + r"[\s_]+" for word in words[:-1])
    return re.compile(rf"(?<!\w){before}(?:{ends})(?![^\W\d_])(?![\d\u0300-\u036f])")


def _singulars(word: str) -> set[str]:
    found = {word[: -len(many)] + one for one, many in _LONGEST_FIRST if word.endswith(many)}
    if len(word) < 3 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return found
    found.add(word[:-1])
    if word.endswith("es") and word[:-2].endswith(_HISSING):
        found.add(word[:-2])
        if word[-3] == word[-4:-3]:
            found.add(word[:-3])  # quizzes
    if word.endswith("ies"):
        found.add(word[:-3] + "y")
    if word.endswith("ves"):
        found |= {word[:-3] + "f", word[:-3] + "fe"}
    return found


def _plurals(word: str) -> set[str]:
    found = {word[: -len(one)] + many for one, many in _LONGEST_FIRST if word.endswith(one)}
    found |= {word + "s", word + "es"}
    if word.endswith("y"):
        found.add(word[:-1] + "ies")
    if word.endswith("f"):
        found.add(word[:-1] + "ves")
    if word.endswith("fe"):
        found.add(word[:-2] + "ves")
    if word.endswith(("s", "z")):
        found.add(word + word[-1] + "es")
    return found
