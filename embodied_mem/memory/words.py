"""Words of a text as memories compare them: normal form, without ending, without those that say nothing.

    words_of("Ann's C++ book, 猫が")                      # ["ann", "c", "+", "+", "book", "猫", "が"]
    content_words("Where did my sister's mugs go?")      # ["sister", "mug"]
    same_text(" I LIKE tea.") == same_text("i like tea")

A word is a run of letters, marks and digits. Scripts without spaces between words (Han, kana, Hangul, Thai, ...) give
one word for each character with its marks, and signs (emoji, "+", "%", "€") are words, too. Punctuation is none.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable

from .dates import date_words
from .mentions import normal

_ENDING = r"(?:['’](?:s|t|ll|ve|re|d|m)(?![^\W_]))?"
_SIGN = "[#$%&*+<=>@^|~]"
_BEFORE_DIGIT = r"[-.,:/](?=\d)"
_ASCII_WORD = re.compile(rf"([a-z0-9]+|{_SIGN}){_ENDING}")
_ASCII_SAID = re.compile(rf"[a-z0-9]+|{_SIGN}|{_BEFORE_DIGIT}")
_BLANK = re.compile(r"(?<!\d) | (?!\d)")
_UNSPACED = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3040-\u30fa"
    "\u30fc-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
"""Ranges of the scripts without spaces between words; Hangul, which has them, writes particles without one."""
_ANY_WORD = re.compile(r"[\w']+")
_LIGHT_WORDS = """
    a an the this that these those some any each every all both such same other another than then so too very just also
    my we us our ours you your yours he him his she her hers it its they them their theirs one ones
    am is are was were be been being do does did doing done have has had having will would shall should can could may
    might must ll ve re d s t m of in on at to from by with about into onto over under for as and or but if because
    while until not no nor don doesn didn isn aren wasn weren won wouldn shouldn couldn hasn haven hadn ain
    what which who whom whose when where why how there here again ever much many more most lot user person tell told
    say said please know get got go
"""
LIGHT = frozenset(_LIGHT_WORDS.split())
_KEPT = {"us", "is", "as", "gas", "bus", "yes", "news", "lens", "series", "species", "always", "perhaps", "during"}
_IRREGULAR_WORDS = """
    went:go gone:go gave:give given:give took:take taken:take made:make bought:buy brought:bring thought:think
    found:find left:leave lost:lose kept:keep met:meet ran:run saw:see seen:see told:tell wrote:write written:write
    ate:eat eaten:eat drank:drink drunk:drink slept:sleep felt:feel held:hold began:begin begun:begin became:become
    came:come knew:know known:know grew:grow grown:grow taught:teach spent:spend sent:send built:build broke:break
    broken:break chose:choose chosen:choose won:win wore:wear worn:wear drove:drive driven:drive spoke:speak
    spoken:speak sang:sing sung:sing swam:swim stood:stand sold:sell paid:pay heard:hear read:read children:child
    people:person men:man women:woman feet:foot teeth:tooth mice:mouse knives:knife shelves:shelf lives:live
    leaves:leave wives:wife lying:lie lay:lie tried:try died:die dying:die me:i mine:i myself:i
"""
IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR_WORDS.split())


@functools.lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A normal word without its English ending, so that "moving", "moved" and "moves" meet."""
    word = IRREGULAR.get(word, word)
    if len(word) < 4 or word in _KEPT or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        short = word.removesuffix(ending)
        if short != word and len(short) > 2 and any(vowel in short for vowel in "aeiouy"):
            double = len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lse"
            word = short[:-1] if double else short
            break
    if word.endswith("i") and len(word) > 3:
        word = word[:-1] + "y"  # "carried", "happily"
    return word.removesuffix("e") if len(word) > 3 else word


_TIMES_WORDS = """
    yesterday today tonight tomorrow ago last next recently just since soon week weekend month year monday tuesday
    wednesday thursday friday saturday sunday january february march april may june july august september october
    november december
"""
_TIMES = frozenset(_TIMES_WORDS.split())
_OF_TIMES = re.compile(r"\W*(?:when|since when|(?:for )?how long|how often|(?:in |on )?(?:what|which) "
                       r"(?:day|date|week|weekend|month|year|time|season))\b")  # fmt: skip


def asks_when(text: str) -> bool:
    """Whether a question asks for a time."""
    return _OF_TIMES.match(normal(text)) is not None


def tells_when(words: Iterable[str]) -> bool:
    """Whether one of the words of a text tells a time, as "yesterday" or "2023" do."""
    return any(word in _TIMES or (len(word) == 4 and word.isdecimal()) for word in words)


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of a word, of a character that is one by itself, and of what tells texts apart.

    They are made when the first text needs them.
    """
    kinds: dict[str, list[str]] = {"M": [], "S": []}
    for kind, same in itertools.groupby(range(0x80, 0x1FC00), lambda code: unicodedata.category(chr(code))[0]):
        if kind in kinds:
            codes = list(same)
            kinds[kind].append(f"{chr(codes[0])}-{chr(codes[-1])}")
    marks, signs = map("".join, kinds.values())
    single, letter = rf"[{_UNSPACED}{signs}]", rf"[^\W_{_UNSPACED}]"
    word = rf"{letter}(?:{letter}|[{marks}])*|{single}[{marks}]*|{_SIGN}"
    return re.compile(rf"({word}){_ENDING}"), re.compile(single), re.compile(rf"{word}|[{marks}]|{_BEFORE_DIGIT}")


def words_of(text: str) -> list[str]:
    """List all words, in normal form and whole; an ending like "'s" is off."""
    text = normal(text)
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _patterns()[0].findall(text.replace("ʼ", "'"))


def same_text(text: str) -> str:
    """Give a form that is equal for texts that differ in blanks, punctuation, case and Unicode form alone."""
    text = normal(text)
    pattern = _ASCII_SAID if text.isascii() else _patterns()[2]
    return _BLANK.sub("", " ".join(pattern.findall(text)))


def content_words(text: str) -> list[str]:
    """Stems of the words that carry meaning, in order, with repetitions, then what their dates and pairs stand for.

    The dates are those of `date_words`; the pairs, of neighbours in scripts without spaces.
    """
    words = words_of(text)
    found = [stem(word) for word in words if word not in LIGHT]
    if not text.isascii():
        single = _patterns()[1]
        found += [one + two for one, two in itertools.pairwise(words) if single.match(one) and single.match(two)]
    return found + [word for word in map(stem, date_words(words)) if word not in found]


def phrases(query: str) -> list[tuple[str, str]]:
    """(phrase, class it may name) for every one to three words of a query, the longest first."""
    words = _ANY_WORD.findall(query.lower().replace("_", " "))
    pairs = [f"{one} {two}" for one, two in itertools.pairwise(words)]
    phrases = [(f"{pair} {word}", pair if word.isdigit() else "") for pair, word in zip(pairs, words[2:])]
    phrases += [(pair, word if number.isdigit() else "") for pair, word, number in zip(pairs, words, words[1:])]
    phrases += [(word, "") for word in words]
    return [(phrase, kind or phrase) for phrase, kind in phrases]
