"""Guesses a kind of thing from words about its use: "something to tell the time with" is a watch.

    tables = lexicon_of("experiments.solvers.eb_alfred")            # title -> lines of its lexicon.txt
    phrases_of(tables["things"])["wrist", "watch"]                  # ("Watch",)
    guess(("tell", "the", "time"), table_of(tables["uses of things"]))       # ("AlarmClock", "Watch")

A table maps words to the kinds that they speak for, the likeliest first. Words vote; a word that speaks for many kinds
says less about each.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

Table = Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Mention:
    """A phrase of a lexicon in a sentence: the words from `start` to before `end`, and the kinds that it may mean."""

    start: int
    end: int
    kinds: tuple[str, ...]


def lexicon_of(package: str) -> dict[str, str]:
    """The tables in the file `lexicon.txt` of a package, each under a line `[title]`; lines with # in front are left
    out."""
    tables: dict[str, str] = {}
    title = ""
    for line in importlib.resources.files(package).joinpath("lexicon.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
            tables[title] = ""
        elif line and not line.startswith("#"):
            tables[title] += f"{line}\n"
    return tables


def phrases_of(text: str, separator: str | None = None) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Reads lines `phrase, phrase: Kind Kind`.

    Args:
        text: the lines.
        separator: between kinds; None for blank space.
    """
    phrases = {}
    for line in text.splitlines():
        names, _, kinds = line.partition(":")
        for name in names.split(","):
            phrases[tuple(name.split())] = tuple(kinds.strip().split(separator))
    return phrases


def mentions_of(
    spellings: Sequence[Sequence[str]], lexicon: Mapping[tuple[str, ...], tuple[str, ...]], longest: int
) -> list[Mention]:
    """Phrases of a lexicon in a sentence, in order, the longest of those that begin at a word.

    Args:
        spellings: the words of the sentence, or several forms of each (as written, in the singular); the first known
            counts.
        lexicon: see `phrases_of`.
        longest: words of its longest phrase.
    """
    found, i, count = [], 0, len(spellings[0])
    while i < count:
        ends = range(min(i + longest, count), i, -1)
        known = ((end, lexicon.get(tuple(words[i:end]))) for end in ends for words in spellings)
        end, kinds = next(((end, kinds) for end, kinds in known if kinds), (i + 1, None))
        if kinds:
            found.append(Mention(i, end, kinds))
        i = end
    return found


def table_of(text: str, separator: str = " ") -> Table:
    """Reads lines `word word ...: Kind Kind`.

    Args:
        text: the lines.
        separator: between kinds.
    """
    table: dict[str, tuple[str, ...]] = {}
    for line in text.strip().splitlines():
        words, _, kinds = line.partition(":")
        for word in words.split():
            table[word] = (*table.get(word, ()), *kinds.strip().split(separator))
    return table


_BEFORE_HEAD = frozenset(("and", "colored", "coloured"))
_AFTER_HEAD = frozenset(("that", "which", "is", "are", "both", "and", "or", "in", "color", "colour"))


def described(
    words: Sequence[str], single: Sequence[str], heads: Collection[str], looks: Table, order: Sequence[str]
) -> Iterator[Mention]:
    """Yield things by how they look: "a small red fruit", "something round and sweet".

    Args:
        words, single: of the sentence, as written and in the singular.
        heads: words for any thing, or for many.
        looks: word -> the kinds of which it holds.
        order: all kinds, the likeliest first; those for which most of the words hold are meant.
    """
    for i, head in enumerate(single):
        if head not in heads:
            continue
        start, end = i, i + 1
        while start and (words[start - 1] in looks or words[start - 1] in _BEFORE_HEAD):
            start -= 1
        while end < len(words) and (words[end] in looks or words[end] in _AFTER_HEAD):
            end += 1
        while words[end - 1] in _AFTER_HEAD:
            end -= 1
        told = [set(looks[word]) for word in dict.fromkeys((*words[start:end], head)) if word in looks]
        hits = {kind: sum(kind in look for look in told) for kind in order}
        if told:
            most = max(hits.values())
            yield Mention(start, end, tuple(kind for kind in order if hits[kind] == most))


def guess(words: Iterable[str], table: Table, limit: int = 6) -> tuple[str, ...]:
    """Kinds that the words speak for, the likeliest first; none if no word is known."""
    votes: defaultdict[str, float] = defaultdict(float)
    for word in dict.fromkeys(words):
        kinds = table.get(word, ())
        for rank, kind in enumerate(kinds):
            votes[kind] += 1 / (rank + 1) / math.sqrt(len(kinds))
    return tuple(sorted(votes, key=votes.__getitem__, reverse=True)[:limit])
