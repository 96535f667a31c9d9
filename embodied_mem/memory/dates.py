"""Dates in a text, as words that are the same however the date was written.

    date_words(["8", "may", "2024"])           # ["2024-05-08", "may", "8"]
    date_words(["2024", "05", "08"])           # the same
    date_words(["5", "8", "2024"])             # those of both readings

Nothing is asserted: these words only find texts, so a date of two readings has the words of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_NAMES = (
    "january jan januar janvier enero gennaio janeiro januari", "february feb februar février fevrier febrero febbraio "
    "fevereiro februari", "march mar märz maerz mars marzo março maart", "april apr avril abril aprile",
    "may mai mayo maggio maio mei", "june jun juni juin junio giugno junho", "july jul juli juillet julio luglio julho",
    "august aug août aout agosto augustus", "september sep sept septembre septiembre settembre setembro",
    "october oct oktober octobre octubre ottobre outubro", "november nov novembre noviembre novembro",
    "december dec dezember décembre decembre diciembre dicembre dezembro",
)  # fmt: skip
_MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
_ENGLISH = ["", *(names.split()[0] for names in _NAMES)]
_OTHER_WORDS = frozenset(("may", "march", "mar", "mars", "mei", "jan", "jun", "sep", "dec", "nov"))
"""Months only beside a day, a year, or a word such as "in"."""
_BETWEEN = frozenset(("of", "de", "the", "del", "年", "년"))
_BEFORE_MONTHS = frozenset(
    ("in", "of", "since", "until", "last", "next", "this", "early", "late", "mid", "im", "en", "em")
)
_CJK_MONTHS = ("月", "월")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|t\d{1,2})?\Z")
_ORDINAL_WORDS = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINAL = {word: number for number, word in enumerate(_ORDINAL_WORDS.split(), 1)} | {"thirtieth": 30}


def date_words(words: Sequence[str]) -> list[str]:
    """List the words that stand for the dates in the normal words of a text, each once."""
    found: dict[str, None] = {}
    for year, month, day in _dates(words):
        if year and day:
            found[f"{year}-{month:02}-{day:02}"] = None
        found[_ENGLISH[month]] = None
        if day:
            found[str(day)] = None
    return list(found)


def _dates(words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Year, month and day; 0 for what is not said."""
    for at, word in enumerate(words):
        if (month := _MONTHS.get(word)) is not None:
            yield from _around(words, at, at, month, word in _OTHER_WORDS)
        elif word in _CJK_MONTHS and at and 1 <= (number := _day(words[at - 1])) <= 12:
            yield from _around(words, at - 1, at, number, False)
        elif word[0].isdecimal() and word.isdecimal():
            yield from _in_digits(words, at, word)


def _around(words: Sequence[str], first: int, last: int, month: int, unsure: bool) -> Iterator[tuple[int, int, int]]:
    """The dates of a month that stands from `first` to `last`: two if there is a day on both sides."""
    left, right = _near(words, first, -1), _near(words, last, 1)
    before, after = _day(left[0]), _day(words[last + 1]) if last + 1 < len(words) else 0
    if left[0] in _ORDINAL and left[1] in ("twenty", "thirty"):
        before += 20 if left[1] == "twenty" else 30
    beside = (right[0], right[1] if after else "", left[0])
    year = next((int(one) for one in beside if _is_year(one)), 0)
    days = [day for day in (before if last == first else 0, after) if 0 < day <= 31]
    if not days and (year or not unsure or (first and words[first - 1] in _BEFORE_MONTHS)):
        days = [0]
    for day in days:
        yield year, month, day


def _near(words: Sequence[str], at: int, step: int) -> tuple[str, str]:
    """The two words before or after one, without such as "of"."""
    beside = words[at + 1 : at + 5] if step > 0 else words[max(at - 4, 0) : at][::-1]
    found = [word for word in beside if word not in _BETWEEN]
    return found[0] if found else "", found[1] if len(found) > 1 else ""


def _in_digits(words: Sequence[str], at: int, word: str) -> Iterator[tuple[int, int, int]]:
    """The dates that a number is the year of, or all of."""
    if len(word) == 8 and _is_year(word[:4]):
        yield from _checked(int(word[:4]), int(word[4:6]), _day(word[6:]))
    if not _is_year(word):
        return
    after, before = words[at + 1 : at + 3], words[max(at - 2, 0) : at]
    if len(after) == 2 and after[0].isdecimal() and _day(after[1]):
        yield from _checked(int(word), _day(after[0]), _day(after[1]))
    elif after and len(after[0]) == 2 and after[0].isdecimal():
        yield from _checked(int(word), _day(after[0]), 0)
    if len(before) == 2 and all(one.isdecimal() for one in before):
        yield from _checked(int(word), _day(before[0]), _day(before[1]))
        yield from _checked(int(word), _day(before[1]), _day(before[0]))
    elif before and len(before[-1]) == 2 and before[-1].isdecimal():
        yield from _checked(int(word), _day(before[-1]), 0)


def _checked(year: int, month: int, day: int) -> Iterator[tuple[int, int, int]]:
    if 1 <= month <= 12 and day <= 31:
        yield year, month, day


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdecimal() and 1900 <= int(word) <= 2100


def _day(word: str) -> int:
    """A day of a month, in digits or as a word; 0 for none."""
    found = _DAY.match(word)
    day = int(found[1]) if found else _ORDINAL.get(word, 0)
    return day if day <= 31 else 0
