"""Parses instructions of EB-Habitat: which kinds go where, what is to be closed, where to go.

    understand("Extract a plate from the brown table and move it to the right counter.")
    # Goal(moves=(Move(("plate",), ("right counter in the kitchen",), source="table 2"),))
    understand("If the fridge is open, close it.").condition        # State(("refrigerator",), (), True, True)

Kinds and places stand in the order in which they are to be tried, since people describe them ("something sweet"). Words
and rules were made on the training side's instructions, on the wording of the goals that the data's documentation
lists, and on general knowledge of what things are for; no evaluation instruction was read.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from ..words import (
    REQUESTS,
    Mention,
    State,
    goal_of,
    guess,
    lexicon_of,
    mentions_of,
    phrases_of,
    plain,
    resolved,
    table_of,
    wishes_of,
)
from ..words import described as by_looks
from .places import DOORS, KINDS, SOURCE, Layout, described

_TABLES = lexicon_of(__package__)
_KIND_WORDS, _PLACE_WORDS = phrases_of(_TABLES["things"], "|"), phrases_of(_TABLES["places"], "|")
_USE_OF, _LOOKS = table_of(_TABLES["uses of things"], "|"), table_of(_TABLES["looks of things"], "|")
_HEADS = frozenset(_TABLES["described things"].split())
_LONGEST = 4
_CAN_DO = re.compile(
    r"\bcan (you|i|we|be|he|she|they|it|someone|please)\b|\b(you|i|we|it|that|they|he|she|which) can\b"
)
_LIES = frozenset(_TABLES["between a thing and its place"].split())
"""Between a thing and the place where it is, if it is to go to another one."""
_SINGULAR = {"knives": "knife", "strawberries": "strawberry", "peaches": "peach", "boxes": "box"}


_NUMBERS = {"two": 2, "2": 2, "both": 2, "pair": 2, "couple": 2, "three": 3, "3": 3}
_DEFINITE = frozenset(("the", "these", "those", "my", "your", "our", "their"))
_EVERY = frozenset(("all", "every", "each"))
_ANOTHER = re.compile(r"\b(?:another|the other|a second|the second)(?: one)?(?= (?:in|on|to|onto|into|at|inside)\b)")
_GOING = frozenset(("go", "walk", "navigate", "head", "proceed", "drive", "travel"))


@dataclasses.dataclass(frozen=True)
class Move:
    """A thing to bring.

    Attributes:
        kinds: what, the likeliest first.
        places: where to, the likeliest first; empty if anywhere else than `source`.
        source: where it is said to be; empty if that is not said.
        all: whether all of the kind are meant.
        count: how many are meant.
        avoid: places from which none is to be taken.
    """

    kinds: tuple[str, ...]
    places: tuple[str, ...] = ()
    source: str = ""
    all: bool = False
    count: int = 1
    avoid: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Goal:
    """A parsed instruction.

    Attributes:
        moves: what is to be brought, in order.
        go: a place to go to, at the end; empty for none.
        close, open: a door to shut, after the moves, or to open; empty for none.
        shunned: places where nothing is to be looked for, doors that stay as they are.
        condition: a state that decides between `then` and `otherwise`, which are the goal; None where nothing decides.
    """

    moves: tuple[Move, ...] = ()
    go: str = ""
    close: str = ""
    open: str = ""
    shunned: tuple[str, ...] = ()
    condition: State | None = None
    then: Goal | None = None
    otherwise: Goal | None = None

    @property
    def branches(self) -> tuple[Goal, ...]:
        """The goals that it may turn out to be; itself without a condition."""
        if self.then is None or self.otherwise is None:
            return (self,)
        return (*self.then.branches, *self.otherwise.branches)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r"\b(left|right)-?most\b", r"\1", text.lower()))


def _singular(word: str) -> str:
    if word in _SINGULAR:
        return _SINGULAR[word]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and word != "scissors" else word


def understand(instruction: str, layout: Layout | None = None) -> Goal:
    """Read an instruction's goal; empty if nothing is understood.

    Args:
        instruction: as it is given.
        layout: how places stand, for those that are described by others; None where that was not told.
    """
    known = layout or Layout()
    return goal_of(
        _CAN_DO.sub(" ", plain(instruction)), lambda text: _Named(text, known), lambda text: _goal(text, known),
        lambda state, then, otherwise: Goal(condition=state, then=then, otherwise=otherwise),
    )  # fmt: skip


class _Named:
    """Names in a text.

    Attributes:
        words: of the text.
        single: in the singular.
        things: that it names or describes.
        places: that it names or describes.
    """

    def __init__(self, text: str, layout: Layout):
        self.words = _words(text)
        self.single = [_singular(word) for word in self.words]
        spellings = self.words, self.single
        places, kinds = (mentions_of(spellings, lexicon, _LONGEST) for lexicon in (_PLACE_WORDS, _KIND_WORDS))
        kinds = [k for k in kinds if not any(p.start < k.end and k.start < p.end for p in places)]
        votes = guess(self.words, _USE_OF, 40)
        order = [*votes, *(kind for kind in KINDS.values() if kind not in votes)]
        looks = by_looks(self.words, self.single, _HEADS, _LOOKS, order)
        kinds += [look for look in looks if not any(k.start < look.end and look.start < k.end for k in kinds)]
        self.things = sorted(kinds, key=lambda kind: kind.start)
        self.used = () if kinds else guess(self.words, _USE_OF)
        self.places = described(self.words, places, layout, moving=bool(kinds or self.used))

    def phrase(self, mentions: Sequence[Mention]) -> str:
        """Return the words of the last of these mentions; empty for none."""
        return " ".join(self.words[mentions[-1].start : mentions[-1].end]) if mentions else ""

    def is_plural(self, kind: Mention) -> bool:
        """Return whether a thing is in the plural."""
        heads = [i for i in range(kind.start, kind.end) if self.single[i] in _HEADS] or [kind.end - 1]
        is_word = tuple(self.words[kind.start : kind.end]) in _KIND_WORDS
        return not is_word and any(self.words[i] != self.single[i] for i in heads)

    def before(self, mention: Mention, count: int = 3) -> list[str]:
        """Return the last few words before a mention."""
        return self.words[max(0, mention.start - count) : mention.start]


def _goal(text: str, layout: Layout) -> Goal:
    """Return the goal of a text without conditions."""
    text = re.sub(r"\b(black|brown|wooden) one\b", r"\1 table", text)
    if another := _ANOTHER.search(text):
        first = _Named(text[: another.start()], layout)
        text = _ANOTHER.sub(f"a {first.phrase(first.things)}", text, count=1)
    wishes, forbidden = wishes_of(_without_background(text))
    bans = [_Named(clause, layout) for clause in forbidden]
    told = _Named(wishes, layout)
    thing = next((ban.phrase(ban.things) for ban in bans if ban.things), "")
    if thing and not told.things and not told.used:
        wishes = resolved(wishes, thing, "", names_thing=False, names_place=bool(told.places))
        told = _Named(wishes, layout)
    words, kinds, places = told.words, told.things, told.places
    door = next((p.kinds[0] for p in places if p.kinds[0] in DOORS), "")
    if not kinds:
        if door and {"close", "shut", "closed"} & set(words):
            return Goal(close=door)
        if door and {"open", "opened"} & set(words):
            return Goal(open=door)
        kinds = [Mention(0, 0, told.used)] if told.used else []
    if not kinds:
        return Goal(go=places[-1].kinds[0]) if places else Goal()
    go = ""
    if len(places) > 1 and places[-1].start > kinds[-1].end and _GOING & set(told.before(places[-1], 5)):
        go, places = places[-1].kinds[0], places[:-1]
    shut = re.search(r"\b(?:close|shut)\b (?:it|the|its|that|up)\b", wishes)
    goal = Goal(_moves(told, kinds, places), go=go, close=door if shut and door else "")
    return _spared(goal, bans)


def _without_background(text: str) -> str:
    """Return the sentences that request a named thing."""
    sentences = re.split(r"(?<=[.;!?])\s+", text)
    if len(sentences) == 1:
        return text
    things = [
        mentions_of((words, [_singular(w) for w in words]), _KIND_WORDS, _LONGEST) for words in map(_words, sentences)
    ]
    asks = [bool(re.search(rf"\b(?:{REQUESTS})\b", sentence)) for sentence in sentences]
    if not any(ask and named for ask, named in zip(asks, things)):
        return text
    return " ".join(s for s, ask, named in zip(sentences, asks, things) if ask or not named)


def _spared(goal: Goal, bans: Sequence[_Named]) -> Goal:
    """Return the goal without forbidden places, kinds and things."""
    shunned: list[str] = []
    moves = goal.moves
    for ban in bans:
        places = tuple(place.kinds[0] for place in ban.places)
        kinds = {kind.kinds[0] for kind in ban.things}
        told = set(ban.words)
        if told & {"open", "opened", "opening", "closed", "shut", "unopened", "search", "searching", "look", "looking"}:
            shunned += places
        elif told & {"take", "taking", "touch", "pick", "from", "one", "ones", "leave"} and places:
            moves = tuple(dataclasses.replace(move, avoid=move.avoid + places) for move in moves)
        elif places:
            moves = tuple(
                dataclasses.replace(move, places=tuple(p for p in move.places if p not in places) or move.places[:0])
                if set(move.places) & set(places) and set(move.places) - set(places)
                else dataclasses.replace(move, avoid=move.avoid + places)
                if not move.places
                else move
                for move in moves
            )
        if kinds:
            moves = tuple(
                dataclasses.replace(move, kinds=tuple(k for k in move.kinds if k not in kinds) or move.kinds)
                for move in moves
            )
    return dataclasses.replace(goal, moves=moves, shunned=tuple(shunned))


def _moves(told: _Named, kinds: list[Mention], places: list[Mention]) -> tuple[Move, ...]:
    """Send each thing to its next named target; neighbours may share one."""
    words = told.words

    def is_source(place: Mention) -> bool:
        return bool(SOURCE.search(" ".join(words[max(0, place.start - 5) : place.start]) + " ")) or lies_there(place)

    def lies_there(place: Mention) -> bool:
        """Cut off a thing's target, as in "the cup to the sink"."""
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
        aim = after[0] if after else targets[-1] if targets else None
        following = kinds[number + 1].start if number + 1 < len(kinds) else len(words)
        source = next((p.kinds[0] for p in sources if kind.end <= p.start < following), "")
        if not source and len(sources) == 1 and len(kinds) == 1:
            source = sources[0].kinds[0]
        before = told.before(kind, 4)
        plural = told.is_plural(kind)
        count = max((_NUMBERS[word] for word in before if word in _NUMBERS and plural), default=1)
        every = bool(_EVERY & set(before)) or (plural and count == 1 and bool(_DEFINITE & set(before[-1:])))
        every = every and "one" not in before
        near = words[max(kind.end, aim.start - 4) : aim.start] if aim else ()
        spread = aim is not None and len(aim.kinds) > 1 and not {"each", "every", "both"}.isdisjoint(near)
        for target in [(place,) for place in aim.kinds] if aim and spread else [aim.kinds if aim else ()]:
            if moves and moves[-1].kinds == kind.kinds and moves[-1].places == target:
                continue
            moves.append(Move(kind.kinds, target, source, every and not spread, count))
    return tuple(moves)
