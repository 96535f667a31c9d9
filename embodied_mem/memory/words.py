"""Words of a text as memories compare them: normal form, without ending, without those that say nothing.

    words_of("Ann's C++ book, 猫が")                      # ["ann", "c", "+", "+", "book", "猫", "が"]
    content_words("Where did my sister's mugs go?")      # ["sister", "mug"]
    same_text(" I LIKE tea.") == same_text("i like tea")
    names("kitchen knife").search(normal("two Kitchen_Knives"))     # found
    date_words(["8", "may", "2024"])                     # ["2024-05-08", "may", "8"]

A word is a run of letters, marks and digits. Scripts without spaces between words (Han, kana, Hangul, Thai, ...) give
one word for each character with its marks, and signs (emoji, "+", "%", "€") are words, too. Punctuation is none.
Forgetting goes by `names`, so in doubt a text names a thing. A date of two readings has the words of both.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence

_INVISIBLE = re.compile(r"[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_MARKS_OF_WRITING = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u02bc\u02b9\u00b4\u2032\uff07", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-")
)
_ACCENTS = "".join(chr(code) for code in range(0x300, 0x3000) if unicodedata.category(chr(code))[0] == "M")
_KANA = "\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff"
_NO_SPACES = (
    f"\u0e00-\u109f\u1780-\u17ff{_KANA}\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_LETTER = re.compile(f"[{_NO_SPACES}]")
"""Letters of Han, Kana, Thai, Lao, Tibetan, Burmese and Khmer."""
_HANGUL = re.compile("[\uac00-\ud7a3]")
_LETTER = rf"[^\W_{_NO_SPACES}\uac00-\ud7a3]"
_PIECE = re.compile(
    rf"[{_NO_SPACES}]+|[\uac00-\ud7a3]+|(?:[^\W\d_{_NO_SPACES}\uac00-\ud7a3]|[{_ACCENTS}])+|\d+|[^\w\s'\"-]"
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
_IRREGULAR_NOUNS = """
    axis:axes cactus:cacti child:children die:dice foot:feet fungus:fungi goose:geese index:indices louse:lice
    man:men matrix:matrices medium:media mouse:mice ox:oxen penny:pence person:people tooth:teeth vertex:vertices
"""
_PLURALS_OF = dict(pair.split(":") for pair in _IRREGULAR_NOUNS.split())
_LONGEST_FIRST = sorted(_PLURALS_OF.items(), key=lambda pair: -len(pair[1]))
_HISSING = ("s", "x", "z", "ch", "sh", "o")
_ONE_OF = {many: one for one, many in _PLURALS_OF.items()}
_IN_F = re.compile(r"(kni|wi|li)ves\Z|(shel|hal|cal|loa|thie|wol|lea|scar|hoo|el)ves\Z")
_IN_O = ("potatoes", "tomatoes", "mangoes", "heroes", "echoes")
_NO_PLURAL = ("ss", "us", "is", "news", "lens", "gas", "series", "species")


_OWN = r"(?:[Mm]y|[Oo]ur|[Yy]our|[Hh]is|[Hh]er|[Tt]heir)"
_NOUN = r"(?:(?:\w+e[sr]t?|best|little|big|old|good|dear|young|new|late|twin) )?[a-z][\w-]*(?<!s)(?<!ed)(?<!ing)"
_NAME = r"[A-Z][a-z][\w-]*"
_INTRODUCED = re.compile(rf"\b(?P<own>{_OWN}) (?P<role>{_NOUN})(?P<comma>,)? (?P<name>{_NAME})(?(comma),)")
_EXPLAINED = re.compile(rf"(?<![\w-])(?P<name>{_NAME}), (?P<own>{_OWN}) (?P<role>{_NOUN}),")


def without_appositions(text: str) -> str:
    """Rewrite "Lily, my daughter," and "my daughter, Lily," as "my daughter Lily"."""
    return _INTRODUCED.sub(r"\g<own> \g<role> \g<name>", _EXPLAINED.sub(r"\g<own> \g<role> \g<name>", text))


def called_by_name(text: str, roles: Container[str]) -> str:
    """Replace "my daughter Lily" by "Lily" for roles with these words."""
    text = without_appositions(text)
    return _INTRODUCED.sub(lambda found: found["name"] if found["role"].split()[-1] in roles else found[0], text)


def normal(text: str) -> str:
    """Return the text without differences of Unicode form, case and invisible characters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text).casefold()
    folded = unicodedata.normalize("NFKD", decomposed).casefold()
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", folded))


@functools.lru_cache(4096)
def spelling(name: str) -> str:
    """Give the common form of a name's spellings.

    They are compared in it: "Mug_01", "the  mug 1" and "mug 1" have one form.
    """
    if name.isascii() and name.islower() and _UNUSUAL.search(name) is None:
        return name
    words = normal(_CAMEL.sub(" ", name)).replace("_", " ").split()
    words = words[1:] if len(words) > 1 and words[0] in ("a", "an", "the") else words
    if len(words) > 1 and words[-1].isdecimal():
        words[-1] = words[-1].lstrip("0") or "0"
    return " ".join(words)


def forms(word: str) -> set[str]:
    """Return a word's possible singulars and plurals, rather too many."""
    if not word[-1:].isalpha():
        return {word}
    found: set[str] = set()
    for one in {word, *_singulars(word)}:
        found |= {one, *_plurals(one)}
    return found


def singular(word: str) -> str:
    """Return a plural's singular, any other normal word unchanged."""
    if word in _ONE_OF or len(word) < 3 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return _ONE_OF.get(word, word)
    if (found := _IN_F.search(word)) is not None:
        return word[:-3] + ("fe" if found[1] else "f")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "zes", *_IN_O)) else word[:-1]


def folded(text: str) -> str:
    """Normalize a text's quotation marks, apostrophes and hyphens."""
    if text.isascii():
        return text.lower()
    return normal(text.translate(_MARKS_OF_WRITING)).translate(_MARKS_OF_WRITING)


def names(thing: str) -> re.Pattern[str]:
    """Make a thing's pattern for `folded` text, in any number or possessive.

    Between words stand blanks, line breaks, underscores, quotation marks, hyphens, or nothing. Digits that go on, as in
    "mug 10" for "mug 1", are another thing; leading zeros make none. In scripts without spaces any place in a text
    counts, and a Korean word may have any ending. A thing of more than 2,000 characters is sought as it is written.
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
        short = blank and two[0].isalpha() and min(len(one[0]), len(two[0])) < 3 and not _UNSPACED_LETTER.match(two[0])
        pattern += _BETWEEN + ("+" if digits or short else "*") + _spelled(two[0], last=two is found[-1])
    return re.compile(pattern + _no_letter_after(last))


def _spelled(word: str, last: bool) -> str:
    if _UNSPACED_LETTER.match(word):
        return r"\s*".join(map(re.escape, word))
    if word.isdecimal():
        return "0*" + (word.lstrip("0") or "0")
    if not word[:1].isalpha() or _HANGUL.match(word):
        return re.escape(word)
    ends = sorted(forms(word) if last else {word}, key=lambda form: (-len(form), form))
    return f"(?:{'|'.join('-?'.join(map(re.escape, end[:-1])) + _end(end) for end in ends)})"


def _end(form: str) -> str:
    """Make the pattern of a name's last letter, "Ann's" or "Anns"."""
    between = "" if len(form) == 1 else "['-]?" if form[-1] == "s" else "-?"
    return between + re.escape(form[-1])


def _no_letter_before(word: str) -> str:
    if _UNSPACED_LETTER.match(word):
        return rf"(?<![{_KANA}])" if re.fullmatch(f"[{_KANA}]", word) else ""
    if _HANGUL.match(word):
        return rf"(?<!{_HANGUL.pattern})"
    return rf"(?<!{_LETTER})" if word[0].isalnum() else ""


def _no_letter_after(word: str) -> str:
    if _UNSPACED_LETTER.match(word[-1]):
        return rf"(?![{_KANA}])" if re.fullmatch(f"[{_KANA}]", word) else ""
    if _HANGUL.match(word[-1]):
        return "" if len(word) > 1 else rf"들?(?:{'|'.join(_PARTICLES.split())})?(?!{_HANGUL.pattern})"
    return rf"(?!{_LETTER})(?![{_ACCENTS}])" if word[-1].isalnum() or word[-1] in _ACCENTS else ""


def looks_like(thing: str, text: str) -> bool:
    """Tell whether a text may name a thing in forms `names` misses."""
    asked = _PIECE.findall(_without_marks(_ARTICLE.sub("", folded(thing))))
    written = _PIECE.findall(_without_marks(folded(text)))
    whole = "".join(asked)
    if len(asked) > 1 and any(whole in word for word in written):
        return True
    return bool(asked) and all(any(_is_like(one, word) for word in written) for one in asked)


def _is_like(asked: str, word: str) -> bool:
    if asked == word or not asked[0].isalpha():
        return asked == word
    if _UNSPACED_LETTER.match(asked) or _HANGUL.match(asked):
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
_BETWEEN_DATES = frozenset(("of", "de", "the", "del", "年", "년"))
_BEFORE_MONTHS = frozenset(
    ("in", "of", "since", "until", "last", "next", "this", "early", "late", "mid", "im", "en", "em")
)
_CJK_MONTHS = ("月", "월")
_OF_MONTHS = frozenset((*_MONTHS, *_CJK_MONTHS))
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|t\d{1,2})?\Z")
_ORDINAL_WORDS = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINAL = {word: number for number, word in enumerate(_ORDINAL_WORDS.split(), 1)} | {"thirtieth": 30}


def date_words(words: Sequence[str]) -> list[str]:
    """List the date words of a text's normal words, each once."""
    found: dict[str, None] = {}
    if _OF_MONTHS.isdisjoint(words) and not any(map(str.isdecimal, words)):
        return []  # as nearly always
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
    """Yield a month's dates; two if days stand on both sides."""
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
    """Return the two words before or after one, without such as "of"."""
    beside = words[at + 1 : at + 5] if step > 0 else words[max(at - 4, 0) : at][::-1]
    found = [word for word in beside if word not in _BETWEEN_DATES]
    return found[0] if found else "", found[1] if len(found) > 1 else ""


def _in_digits(words: Sequence[str], at: int, word: str) -> Iterator[tuple[int, int, int]]:
    """Find the dates that end in this year, or are this number."""
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
    """Read a day of a month, digits or word; 0 for none."""
    found = _DAY.match(word)
    day = int(found[1]) if found else _ORDINAL.get(word, 0)
    return day if day <= 31 else 0


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
    """Return a normal word without its English ending.

    So "moving", "moved" and "moves" meet.
    """
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
_OF_TIMES = re.compile(r"\W*(?:when|since when|(?:for )?how long|how often|(?:in |on |at )?(?:what|which) "
                       r"(?:day|date|week|weekend|month|year|time|season))\b")  # fmt: skip


def asks_when(text: str) -> bool:
    """Return whether a question asks for a time."""
    return _OF_TIMES.match(normal(text)) is not None


def tells_when(words: Iterable[str]) -> bool:
    """Return whether a text's word tells a time, as "yesterday", "2023"."""
    return any(word in _TIMES or (len(word) == 4 and word.isdecimal()) for word in words)


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compile patterns of words, single characters and what tells texts apart.

    A single character is a word by itself.

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
    """List all words in normal form without endings like "'s"."""
    text = normal(text)
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _patterns()[0].findall(text.replace("ʼ", "'"))


def same_text(text: str) -> str:
    """Normalize blanks, punctuation, case and Unicode form away."""
    text = normal(text)
    pattern = _ASCII_SAID if text.isascii() else _patterns()[2]
    return _BLANK.sub("", " ".join(pattern.findall(text)))


def content_words(text: str) -> list[str]:
    """List the stems of content words in order, then dates and pairs.

    The dates are those of `date_words`; the pairs, of neighbours in scripts without spaces.
    """
    words = words_of(text)
    found = [stem(word) for word in words if word not in LIGHT]
    if not text.isascii():
        single = _patterns()[1]
        found += [one + two for one, two in itertools.pairwise(words) if single.match(one) and single.match(two)]
    return found + [word for word in map(stem, date_words(words)) if word not in found]


def phrases(query: str) -> list[tuple[str, str]]:
    """List (phrase, its class) of one to three words, longest first."""
    words = _ANY_WORD.findall(query.lower().replace("_", " "))
    pairs = [f"{one} {two}" for one, two in itertools.pairwise(words)]
    phrases = [(f"{pair} {word}", pair if word.isdigit() else "") for pair, word in zip(pairs, words[2:])]
    phrases += [(pair, word if number.isdigit() else "") for pair, word, number in zip(pairs, words, words[1:])]
    phrases += [(word, "") for word in words]
    return [(phrase, kind or phrase) for phrase, kind in phrases]
