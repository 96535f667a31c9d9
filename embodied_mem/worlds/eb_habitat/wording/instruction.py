"""Parses instructions of EB-Habitat: which kinds go where, what is to be closed, where to go.

    understand("Extract a plate from the brown table and move it to the right counter.")
    # Goal(moves=(Move(("plate",), ("right counter in the kitchen",), source="table 2"),))

Kinds and places stand in the order in which they are to be tried, since people describe them ("something sweet"). Words
and rules were made on the training side's instructions, on the wording of the goals that the data's documentation
lists, and on general knowledge of what things are for; no evaluation instruction was read.
"""

from __future__ import annotations

import dataclasses
import re

from embodied_mem.language.word_votes import Mention, guess, lexicon_of, mentions_of, phrases_of, table_of
from embodied_mem.worlds.eb_habitat.layout import Layout
from embodied_mem.worlds.eb_habitat.wording.description import SOURCE, described

_TABLES = lexicon_of(__package__)
_KIND_WORDS, _PLACE_WORDS = phrases_of(_TABLES["things"], "|"), phrases_of(_TABLES["places"], "|")
_USE_OF = table_of(_TABLES["uses of things"], "|")
_LONGEST = 4
_CAN_DO = re.compile(
    r"\bcan (you|i|we|be|he|she|they|it|someone|please)\b|\b(you|i|we|it|that|they|he|she|which) can\b"
)
_LIES = frozenset(_TABLES["between a thing and its place"].split())
"""Between a thing and the place where it is, if it is to go to another one."""
_SINGULAR = {"knives": "knife", "strawberries": "strawberry", "peaches": "peach", "boxes": "box"}


@dataclasses.dataclass(frozen=True)
class Move:
    """A thing to bring.

    Attributes:
        kinds: what, the likeliest first.
        places: where to, the likeliest first; empty if anywhere else than `source`.
        source: where it is said to be; empty if that is not said.
        all: whether all of the kind are meant.
    """

    kinds: tuple[str, ...]
    places: tuple[str, ...] = ()
    source: str = ""
    all: bool = False


@dataclasses.dataclass(frozen=True)
class Goal:
    """A parsed instruction.

    Attributes:
        moves: what is to be brought, in order.
        go: a place to go to; empty for none.
        close, open: a door to shut or to open; empty for none.
    """

    moves: tuple[Move, ...] = ()
    go: str = ""
    close: str = ""
    open: str = ""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r"\b(left|right)-?most\b", r"\1", text.lower()))


def _singular(word: str) -> str:
    if word in _SINGULAR:
        return _SINGULAR[word]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and word != "scissors" else word


def understand(instruction: str, layout: Layout | None = None) -> Goal:
    """What an instruction asks for; an empty goal if nothing in it is understood.

    Args:
        instruction: as it is given.
        layout: how places stand, for those that are described by others; None where that was not told.
    """
    words = _words(_CAN_DO.sub(" ", instruction.lower()))
    spellings = words, [_singular(word) for word in words]
    places, kinds = (mentions_of(spellings, lexicon, _LONGEST) for lexicon in (_PLACE_WORDS, _KIND_WORDS))
    kinds = [k for k in kinds if not any(p.start < k.end and k.start < p.end for p in places)]
    meant = () if kinds else guess(words, _USE_OF)
    places = described(words, places, layout or Layout(), moving=bool(kinds or meant))
    if not kinds:
        door = next((p.kinds[0] for p in places if p.kinds[0] == "refrigerator" or "drawer" in p.kinds[0]), "")
        if door and {"close", "shut", "closed"} & set(words):
            return Goal(close=door)
        if door and {"open", "opened"} & set(words):
            return Goal(open=door)
        kinds = [Mention(0, 0, meant)] if meant else []
    if not kinds:
        return Goal(go=places[-1].kinds[0]) if places else Goal()
    return Goal(_moves(words, kinds, places))


def _moves(words: list[str], kinds: list[Mention], places: list[Mention]) -> tuple[Move, ...]:
    """Each thing goes to the first target named after it; "an X and a Y on Z" shares Z."""

    def is_source(place: Mention) -> bool:
        return bool(SOURCE.search(" ".join(words[max(0, place.start - 5) : place.start]) + " ")) or lies_there(place)

    def lies_there(place: Mention) -> bool:
        """ "the cup on the sofa to the sink": not where it is to go."""
        thing = next((kind for kind in reversed(kinds) if kind.end <= place.start), None)
        if thing is None or not _LIES.issuperset(words[thing.end : place.start]):
            return False
        following = next((kind.start for kind in kinds if kind.start > place.start), len(words))
        later = [p.start for p in places if place.end <= p.start < following]
        return any(
            {"to", "onto", "into"} & set(words[max(0, start - 2) : start])
            or {"it", "them"} & set(words[place.end : start])
            for start in later
        )

    targets = [p for p in places if not is_source(p)]
    sources = [p for p in places if is_source(p)]
    moves: list[Move] = []
    for number, kind in enumerate(kinds):
        after = [p for p in targets if p.start >= kind.end]
        # "On the sofa, put the ball" names the place first.
        target = (after[0] if after else targets[-1]).kinds if targets else ()
        following = kinds[number + 1].start if number + 1 < len(kinds) else len(words)
        source = next((p.kinds[0] for p in sources if kind.end <= p.start < following), "")
        if not source and len(sources) == 1 and len(kinds) == 1:
            source = sources[0].kinds[0]
        before = set(words[max(0, kind.start - 4) : kind.start])
        every = bool({"all", "every", "each"} & before)
        options = kind.kinds
        if moves and moves[-1].kinds == options and moves[-1].places == target:
            continue
        moves.append(Move(options, target, source, every))
    return tuple(moves)
