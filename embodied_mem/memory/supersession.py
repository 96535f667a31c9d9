"""Decides by learned weights which earlier statement of a speaker a new one replaces.

    old, other = statement("Wake me at 7:00."), statement("My bus leaves at 8:10.")
    chances(statement("Make it 6:30."), [old, other], [1, 2])      # how likely it replaces each

A pair has features x, see `features`: shared and differing words and their places in the sentence, kinds of values,
people, denial, cue words, distance, and all that relative to the other candidates. The chance is that of boosted trees,

    p = 1 / (1 + exp(-(b + sum over t of v[t, leaf of x in tree t]))),

made by `experiments/package_data/supersession.py` from generated statements and written ones. `should_be_first` also
asks for a shared topic. Where the encoder has a judge (`models/correction_judge.py`), the mean of both log odds decides
instead: both chances add up to at least 1, and statements that share a topic go before the last six.
"""

from __future__ import annotations

import functools
import itertools
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .. import _native
from .embedders import FILES, START, TABLE, _table
from .words import LIGHT, stem

FIRST, OF_DENIAL, OF_FRAGMENT = 0.6, 0.43, 0.5
"""Chance from which on the newer statement comes first: usually, where one of two denies, where it shares no topic.

Chosen on the half `dev` of natural corrections and on dev of `robot_week`.
"""
POSSIBLE = 0.05
"""Chance from which on an encoder's judge is asked. With 0.02 it was asked 1.6 times as often, and dev was the same."""
_NEAR = 6
"""Distance of a statement that a judge may let be replaced without a shared topic; chosen on the same."""
_MAX_FRAGMENT = 12
"""Words of a statement that may replace the last one without a shared topic."""
WEIGHTS = pathlib.Path(__file__).with_suffix(".json")
_WIDTH = 128
"""Numbers of a word vector that are compared: the table is made so that the first ones say most."""
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\d+(?:[:.]\d\d)+|\d+(?:st|nd|rd|th)?|[^\W\d_]+(?:['’][^\W\d_]+)?|\?")
_CLOCK = re.compile(r"\d{1,2}[:.]\d\d$")

CUES: dict[str, str] = {
    "correct": """actually correction correct sorry wait oops scratch scrap forget instead rather change changed
        changing switch switched switching swap swapped moved rescheduled reschedule postponed pushed push shift
        shifted turns turned second mind wrong mistaken mistake misread misspoke meant better make let's update ignore
        disregard replaced replace changes new decided thought hmm mixed doch lieber stattdessen mejor mieux plutôt
        invece equivoqué 改 还 umgestellt errata strike cancel meglio relocated transferred rebooked revised adjusted
        bumped opted settled ended brought delayed extended doubled halved renamed reset typo miscounted confused""",
    "now": """now anymore longer lately nowadays again currently become became started start starting since these days
        jetzt mehr maintenant plus ahora ya adesso più agora 现 grown began today's back finally meanwhile onwards""",
    "end": """gone quit stopped stop gave given away sold lost cancelled canceled off dropped ended over finished ran
        returned left died rid threw stolen through done retired used broke split divorced out single lifted healed
        ex former taboo déménagé umgezogen mudé trasferito passed outgrown outgrew cured cleared removed skip
        misdiagnosis negative false""",
    "add": "also too well another both either addition besides plus extra auch aussi también anche still more other",
    "once": """just once only tonight exception week last yesterday time usually temporarily visiting today night year
        weekend treat usual gestern hier ayer ieri heute aujourd'hui hoy ago""",
    "said": "said says told thinks according heard claims thought asked wants believes mentioned sagt dit dice",
    "may": "if would might could maybe perhaps wonder wish should unless wenn si quizás peut-être",
    "deny": """not no never don't doesn't didn't isn't aren't wasn't can't cannot won't haven't hasn't without none
        nothing nobody neither nor kein keine keinen nicht ne n pas nunca non não nie niente jamais hate hates hasse
        hasst déteste odio 不 没 讨 dislike refuse refuses avoid avoids stand sick""",
    "was": "was were had did used been went had came saw met bought",
    "it": "it that them those this there he she they him her one es das ça lo la",
    "i": "i my me i'm i've i'd i'll mine we our us we're ich mein mich je j'ai mon mi yo io",
    "please": "please can could let set put make tell keep buy take",
}
"""Cue words of a statement by what they may mean; the trees learn what they are worth."""
_CUES = [frozenset(words.split()) for words in CUES.values()]
_CUES_OF = {word: [i for i, its in enumerate(_CUES) if word in its] for word in frozenset().union(*_CUES)}
_DENY, _I = (list(CUES).index(name) for name in ("deny", "i"))
_CUE_WORDS = frozenset[str]().union(*_CUES[:_DENY]) - {"week", "today", "second", "left"}
_LISTS = {
    "breaks": """is are was were am be been being has have had will can at in on to for from with as under behind by
        next near until every when because of inside into than where""",
    "within": "in on under behind by next inside at near with into to from en à um bei",
    "before clock": "at until till by to before after around from um a las",
    "kin": """sister brother mother father mom mum dad wife husband daughter son aunt uncle cousin grandmother
        grandfather grandma grandpa roommate flatmate neighbour neighbor boss colleague friend girlfriend boyfriend
        partner niece nephew kids children parents guests doctor landlord manager teacher coworker twin""",
    "starts": """in on at under above below behind inside outside upstairs downstairs every for a an the one half just
        only better rather no not mine his hers ours theirs""",
    "subjects": """i you he she it we they this that there who is are was were am be been has have had will can could
        do does did don't doesn't isn't aren't can't won't""",
    "days": """monday tuesday wednesday thursday friday saturday sunday january february march april may june july
        august september october november december tomorrow montag dienstag mittwoch donnerstag freitag samstag
        sonntag""",
    "colors": """red blue green yellow purple grey gray white black orange beige pink brown navy turquoise violet
        teal""",
    "numbers": """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        twenty thirty forty fifty hundred half quarter noon midnight dozen""",
}
_BREAKS, _WITHIN, _BEFORE_CLOCK, _KIN, _STARTS, _SUBJECTS, _DAYS, _COLORS, _NUMBERS = (
    frozenset(one.split()) for one in _LISTS.values()
)
_UNITS = """second minute hour day week month year | gram kilo kilogram kg pound | litre liter cup spoon ml
    | euro dollar cent | degree | metre meter centimetre kilometre km lap | piece slice tablet pill dozen egg
    | twice once times daily weekly monthly every"""
_UNIT_OF = {word: group for group in _UNITS.split("|") for word in group.split()}
_IT = _CUES[list(CUES).index("it")]
_NO_TOPIC = LIGHT.union(_NUMBERS, _COLORS, {"?", "am", "pm"}, *_CUES) - {"week", "today", "second", "left"}
_KINDS = ("clock", "number", "day", "color", "name", "place")
_DIFFERING = (_DENY, list(CUES).index("was"), _I, len(CUES) + 3)
"""Counts of which the difference is a feature, too; the last one is whether denials are odd."""

_OF_CLOCK, _OF_KIN = len(_KINDS), len(_KINDS) + 1
"""Kinds of words that depend on what stands before, and of people."""

Statement: TypeAlias = Any


class _Word(NamedTuple):
    """Features of a word, wherever it stands.

    Attributes:
        kind: position in `_KINDS`, `_OF_CLOCK`, `_OF_KIN` or -1.
        is_content: whether it has a meaning of its own.
    """

    word: str
    stem: str
    rarity: float
    row: np.ndarray
    kind: int
    is_break: bool
    is_light: bool
    is_content: bool
    is_self: bool


@functools.lru_cache(1 << 14)
def _word(word: str) -> _Word:
    root, is_light = stem(word), word in LIGHT
    is_content, is_self = not is_light and word not in _CUE_WORDS, word in _CUES[_I]
    return _Word(word, root, _rarity(root), _row(root), _kind(word), word in _BREAKS, is_light, is_content, is_self)


def _kind(word: str) -> int:
    if _CLOCK.match(word):
        return 0
    if word in ("am", "pm", "o'clock"):
        return _OF_CLOCK
    if word[0].isdigit() or word in _NUMBERS:
        is_day = word[0].isdigit() and word.endswith(("st", "nd", "rd", "th"))
        return 2 if is_day else 0 if word in ("half", "quarter", "noon", "midnight") else 1
    one = word.removesuffix("s")
    if one in _DAYS:
        return 2
    return 3 if word in _COLORS else _OF_KIN if word in _KIN or one in _KIN else -1


def statement(text: str) -> Statement:
    """Read what is compared of a text.

    Of each word with meaning: its stem, how rare it is, whether it stands behind the last break, its vector. Of the
    whole: counts of cues, words and topics, whether it is a fragment ("At nine."), its values by kind, the people that
    it names, whose it is, and its kinds of units.
    """
    tokens = _TOKEN.findall(text if text.isascii() else text.replace("’", "'"))
    lower = [token.lower() for token in tokens]
    cues = [0] * len(_CUES)
    for word in lower:
        for i in _CUES_OF.get(word, ()):
            cues[i] += 1
    content: list[tuple[_Word, int]] = []
    values: list[list[str]] = [[] for _ in _KINDS]
    people: list[str] = []
    owners: list[str] = []
    last_break, is_place, before, last = -1, False, "", len(tokens) - 1
    for at, (token, full) in enumerate(zip(tokens, lower)):
        if full == "?":
            continue
        its = _word(full.removesuffix("'s"))
        word = its.word
        if at < last and (its.is_break or full.endswith(("'s", "'m", "'re"))):
            last_break = at
            is_place = is_place or word in _WITHIN
        kind = its.kind
        if kind == _OF_CLOCK:
            kind = 0 if before else -1
        elif kind == 1 and before in _BEFORE_CLOCK:
            kind = 0
        elif kind == _OF_KIN:
            kind = -1
            people.append(word)
            if last_break < 0:
                owners.append(word)
        if (
            kind == -1
            and its.kind != _OF_KIN
            and at
            and token[0].isupper()
            and not (its.is_light or word in ("i", "i'm"))
        ):
            kind = 4
            people.append(word)
        if not at and last and token[0].isupper() and not its.is_light and token.isalpha():
            following = lower[1]
            if (
                following in ("is", "has", "was", "will", "can", "can't", "and", "isn't")
                or (following.endswith("s") and following not in _DAYS and len(following) > 3)
                or following.endswith("ed")
            ):
                people.append(word)
                owners.append(word)
        if its.is_self and last_break < 0:
            owners.append("i")
        if kind >= 0:
            values[kind].append(word)
        if kind >= 0 or its.is_content:
            content.append((its, at))
        before = word
    if is_place:
        values[5] = [its.stem for its, at in content if at > last_break]
    if owners and any(one != "i" for one in owners):
        owners = [one for one in owners if one != "i"]
    units = [_UNIT_OF[unit] for word in lower if (unit := word if word in _UNIT_OF else word[:-1]) in _UNIT_OF]
    is_fragment = _SUBJECTS.isdisjoint(lower) and not any("'" in word for word in lower)
    num_topics = sum(its.is_content and its.kind < 0 and its.word not in _NO_TOPIC for its, _ in content)
    is_asked, lengths = text.rstrip().endswith("?"), (min(len(content), 12), min(len(lower), 25))
    counts = [min(count, 2) for count in cues]
    starts_late = bool(lower) and lower[0] in _STARTS
    return _native.supersession.Statement(
        own=[*counts, is_asked, *lengths, cues[_DENY] % 2, is_fragment, starts_late, min(num_topics, 6)],
        words=[hash(its.stem) for its, _ in content],
        weights=[its.rarity for its, _ in content],
        is_late=[at > last_break >= 0 for _, at in content],
        rows=[its.row for its, _ in content],
        values=[[hash(one) for one in dict.fromkeys(its)] for its in (*values, people, owners, units)],
    )


@functools.lru_cache(1 << 14)
def _row(word: str) -> np.ndarray:
    """Make the unit vector of a word; zeros without a table."""
    if not _has_table():
        return np.zeros(_WIDTH, np.float32)
    row = _table(TABLE).word(word)[:_WIDTH]
    return row / max(float(np.sqrt(row.dot(row))), 1e-9)


class RareWords:
    """Texts under ids as words, of which each is a unit vector times its `_rarity`.

    Attributes:
        numbers: int64[n], the ids.
    """

    def __init__(self, texts: Mapping[int, Sequence[str]]):
        codes = {"": 0}
        rows, starts = list[int](), list[int]()
        for words in texts.values():
            starts.append(len(rows))
            rows += [codes.setdefault(word, len(codes)) for word in words or ("",)]
        self.numbers = np.fromiter(texts, np.int64, len(texts))
        self._vectors, self._rows, self._starts = _rare(codes), np.array(rows, np.int64), np.array(starts, np.int64)

    def likeness(self, words: Sequence[str]) -> np.ndarray:
        """Give float64[n], how alike each text is to words.

        It is the largest product of one of its vectors with one of these, at least 0.
        """
        if not words or not len(self.numbers):
            return np.zeros(len(self.numbers))
        best = (_rare(words) @ self._vectors.T).max(axis=0)
        return np.maximum(np.maximum.reduceat(best[self._rows], self._starts), 0.0).astype(np.float64)


def _rare(words: Iterable[str]) -> np.ndarray:
    """Make float32[N, D]; zeros for the empty word."""
    return np.stack([_row(word) * (_rarity(word) if word else 0) for word in words])


@functools.lru_cache(1 << 14)
def _rarity(word: str) -> float:
    """Weigh a word by its rank in the table, in [0, 1].

    The most frequent piece has 0; a word of several pieces has 1.
    """
    rank = _table(TABLE).rank.get(START + word, 1 << 15) if _has_table() else 1 << 15
    return float(np.log2(rank + 2) / 15) ** 3


@functools.cache
def _has_table() -> bool:
    return all((TABLE / name).is_file() for name in FILES)


def features(new: Statement, olds: Sequence[Statement], distances: Sequence[float]) -> np.ndarray:
    """Make float32[N, F] of a new statement and N earlier ones.

    Args:
        new: the new statement.
        olds: earlier ones of the same speaker.
        distances: how many statements of anybody before the new one each was said; 1 for the last.
    """
    return np.asarray(_native.supersession.features(new, olds, distances, len(_KINDS), _DIFFERING))


def chances(new: Statement, olds: Sequence[Statement], distances: Sequence[float]) -> list[float]:
    """Give the chances that each older statement is replaced; arguments as `features`."""
    return list(_trees().chances(features(new, olds, distances))) if olds else []


def should_be_first(chance: float, new: str, old: str, distance: float = 1) -> bool:
    """Decide whether a newer text comes before an older one.

    It is likely enough to replace it, and shares a word beyond cues and values, or has none to share ("Make it 6:30."),
    or follows it and is short ("Cider, please.").

    Args:
        chance: of `chances`.
        new, old: the texts.
        distance: as for `features`.
    """
    if chance < min(FIRST, OF_DENIAL, OF_FRAGMENT):
        return False
    words, olds = _lower(new), _lower(old)
    topics, others = _topics(words), _topics(olds)
    if topics.isdisjoint(others) and len(topics) > (not _IT.isdisjoint(words)):
        return distance == 1 and len(words) <= _MAX_FRAGMENT and chance >= OF_FRAGMENT
    is_denied = _CUES[_DENY].isdisjoint(words) != _CUES[_DENY].isdisjoint(olds)
    return chance >= (OF_DENIAL if is_denied else FIRST)


def of_same_topic(new: str, olds: Mapping[int, str], distances: Mapping[int, float]) -> list[int]:
    """Return the statements on the same topics, or else near ones."""
    topics = _topics(_lower(new))
    same = [at for at, old in olds.items() if not topics.isdisjoint(_topics(_lower(old)))]
    return same or [at for at in olds if distances[at] <= _NEAR]


def is_about_another(new: str, old: str, things: Iterable[str]) -> bool:
    """Decide whether two texts name different things and none in common.

    Two things in one drawer are two topics.

    Args:
        new, old: the texts.
        things: words that name things.
    """
    topics, others, kinds = _topics(_lower(new)), _topics(_lower(old)), set(map(stem, things))
    common = topics & others
    return bool(common and kinds & topics and kinds & others and not kinds & common)


def _lower(text: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(text if text.isascii() else text.replace("’", "'"))]


def _topics(words: Iterable[str]) -> set[str]:
    """Give the stems of words that are no cue and no value."""
    bare = (word.removesuffix("'s") for word in words)
    return {
        stem(word) for word in bare
        if word not in _NO_TOPIC and not word[0].isdigit() and word.removesuffix("s") not in _DAYS
    }  # fmt: skip


@functools.cache
def _trees() -> Any:
    data = json.loads(WEIGHTS.read_text())
    flat = (list(itertools.chain.from_iterable(data[name])) for name in ("feature", "limit", "leaf"))
    return _native.supersession.BoostedTrees(data["bias"], data["depth"], *flat)
