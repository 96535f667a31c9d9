"""Decides whether a text names a thing, in any Unicode form and case, singular or plural.

    names("kitchen knife").search(normal("two Kitchen_Knives"))     # found
    normal("STRASSE") == normal("Straße")                           # True

Forgetting goes by it, so in doubt a text names a thing.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Container

_INVISIBLE = re.compile(r"[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_MARKS_OF_WRITING = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u02bc\u02b9\u00b4\u2032\uff07", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-")
)
_MARKS = "".join(chr(code) for code in range(0x300, 0x3000) if unicodedata.category(chr(code))[0] == "M")
_KANA = "\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff"
_NO_SPACES = (
    f"\u0e00-\u109f\u1780-\u17ff{_KANA}\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_NO_SPACES}]")
"""Letters of Han, Kana, Thai, Lao, Tibetan, Burmese and Khmer."""
_HANGUL = re.compile("[\uac00-\ud7a3]")
_LETTER = rf"[^\W_{_NO_SPACES}\uac00-\ud7a3]"
_PIECE = re.compile(
    rf"[{_NO_SPACES}]+|[\uac00-\ud7a3]+|(?:[^\W\d_{_NO_SPACES}\uac00-\ud7a3]|[{_MARKS}])+|\d+|[^\w\s'\"-]"
)
_BETWEEN = r"[\s_'\"#-]"
_ARTICLE = re.compile(r"\A(?:the|an?)\s+(?=\w)")
_LONGEST_NAME = 2000
_OWNER = re.compile(r"(\w)'s?\Z")
_PARTICLES = """
    은 는 이 가 을 를 의 에 와 과 도 로 으로 만 랑 이랑 나 이나 야 아 께 께서 한테 에게 에게서 에서 부터 까지 처럼
    보다 마다 조차 밖에 하고 요 예요 이에요 입니다 이다 였어요 이었어요 라고 이라고
"""
"""Endings of a Korean noun of one syllable; longer nouns may have any."""
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
_UNUSUAL = re.compile(r"_|\s\s| 0\d|\A(?:the|an?) ")
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
_EXPLAINED = re.compile(rf"(?<![\w-])(?P<name>{_NAME}), (?P<own>{_OWN}) (?P<role>{_NOUN}),")


def without_appositions(text: str) -> str:
    """The text with "my daughter Lily" for "Lily, my daughter," and "my daughter, Lily,"."""
    return _INTRODUCED.sub(r"\g<own> \g<role> \g<name>", _EXPLAINED.sub(r"\g<own> \g<role> \g<name>", text))


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


@functools.lru_cache(4096)
def spelling(name: str) -> str:
    """Give the one form in which the spellings of a name are compared: "Mug_01", "the  mug 1" and "mug 1" are one."""
    if name.isascii() and name.islower() and _UNUSUAL.search(name) is None:
        return name
    words = normal(_CAMEL.sub(" ", name)).replace("_", " ").split()
    words = words[1:] if len(words) > 1 and words[0] in ("a", "an", "the") else words
    if len(words) > 1 and words[-1].isdecimal():
        words[-1] = words[-1].lstrip("0") or "0"
    return " ".join(words)


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


def folded(text: str) -> str:
    """The normal text with one form of each quotation mark, apostrophe and hyphen."""
    if text.isascii():
        return text.lower()
    return normal(text.translate(_MARKS_OF_WRITING)).translate(_MARKS_OF_WRITING)


def names(thing: str) -> re.Pattern[str]:
    """Make the pattern of a thing in a `folded` text: its words, the last in any number or as an owner.

    Between words stand blanks, line breaks, underscores, quotation marks, hyphens, or nothing. Digits that go on, as in
    "mug 10" for "mug 1", are another thing. In scripts without spaces any place in a text counts, and a Korean word may
    have any ending. A thing of more than 2,000 characters is sought as it is written.
    """
    asked = " ".join(folded(thing).replace("_", " ").split())
    asked = _OWNER.sub(r"\g<1>", _ARTICLE.sub("", asked))
    if len(asked) > _LONGEST_NAME:
        return re.compile(r"\s+".join(map(re.escape, asked.split())))
    found = list(_PIECE.finditer(asked))
    if not found:
        return re.compile(re.escape(asked))
    first, last = found[0][0], found[-1][0]
    pattern = _no_letter_before(first) + _spelled(first, last=len(found) == 1)
    for one, two in itertools.pairwise(found):
        blank, digits = " " in asked[one.end() : two.start()], one[0].isdigit() and two[0].isdigit()
        short = blank and two[0].isalpha() and min(len(one[0]), len(two[0])) < 3 and not _UNSPACED.match(two[0])
        pattern += _BETWEEN + ("+" if digits or short else "*") + _spelled(two[0], last=two is found[-1])
    return re.compile(pattern + _no_letter_after(last))


def _spelled(word: str, last: bool) -> str:
    if _UNSPACED.match(word):
        return r"\s*".join(map(re.escape, word))
    if not word[:1].isalpha() or _HANGUL.match(word):
        return re.escape(word)
    ends = sorted(forms(word) if last else {word}, key=lambda form: (-len(form), form))
    return f"(?:{'|'.join('-?'.join(map(re.escape, end[:-1])) + _end(end) for end in ends)})"


def _end(form: str) -> str:
    """The last letter; before an "s" may stand an apostrophe, as in "Ann's"."""
    between = "" if len(form) == 1 else "['-]?" if form[-1] == "s" else "-?"
    return between + re.escape(form[-1])


def _no_letter_before(word: str) -> str:
    if _UNSPACED.match(word):
        return rf"(?<![{_KANA}])" if re.fullmatch(f"[{_KANA}]", word) else ""
    if _HANGUL.match(word):
        return rf"(?<!{_HANGUL.pattern})"
    return rf"(?<!{_LETTER})" if word[0].isalnum() else ""


def _no_letter_after(word: str) -> str:
    if _UNSPACED.match(word[-1]):
        return rf"(?![{_KANA}])" if re.fullmatch(f"[{_KANA}]", word) else ""
    if _HANGUL.match(word[-1]):
        return "" if len(word) > 1 else rf"들?(?:{'|'.join(_PARTICLES.split())})?(?!{_HANGUL.pattern})"
    return rf"(?!{_LETTER})(?![{_MARKS}])" if word[-1].isalnum() or word[-1] in _MARKS else ""


def looks_like(thing: str, text: str) -> bool:
    """Whether a text may name a thing in a form that `names` does not decide: other endings, compounds, other order."""
    asked = _PIECE.findall(_without_marks(_ARTICLE.sub("", folded(thing))))
    written = _PIECE.findall(_without_marks(folded(text)))
    whole = "".join(asked)
    if len(asked) > 1 and any(whole in word for word in written):
        return True
    return bool(asked) and all(any(_is_like(one, word) for word in written) for one in asked)


def _is_like(asked: str, word: str) -> bool:
    if asked == word or not asked[0].isalpha():
        return asked == word
    if _UNSPACED.match(asked) or _HANGUL.match(asked):
        return asked in word
    if len(asked) < 3:
        return False
    least = max(4 if asked.isascii() else 3, len(asked) - 2)
    return asked in word or (word.startswith(asked[:least]) and len(word) <= len(asked) + 4)


def _without_marks(text: str) -> str:
    if text.isascii():
        return text
    letters = (one for one in unicodedata.normalize("NFD", text) if not "\u0300" <= one <= "\u036f")
    return unicodedata.normalize("NFC", "".join(letters))


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
