"""The lexicon of places and things: which rooms and furniture a phrase names, and how phrases compare.

words = PlaceWords(view)
words.find("to another table in the living room")     # [PlaceMention(relation="to", piece="table", ...)]
content("the teal vase")                               # ["teal", "vase"]
core_of("my gift lamp from my aunt")                   # "gift lamp"
kind_score("the picture frame", "picture frame")       # 3.0
same_thing("my teal vase", "the vase")                 # True
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from ..word_votes import lexicon_of
from .house import HouseView, kind_of

TABLES = lexicon_of(__package__)
_IRREGULAR = dict(line.split(": ") for line in TABLES["same"].splitlines())
_STOP = frozenset(TABLES["light words"].split())


def _words_by_kind(title: str) -> dict[str, list[str]]:
    rows = (line.partition(": ") for line in TABLES[title].splitlines())
    return {kind: words.split(", ") for kind, _, words in rows}


_PIECES, _ROOMS = _words_by_kind("furniture"), _words_by_kind("rooms")
NEAR = _words_by_kind("what stands near")


def listed(title: str) -> list[str]:
    """The phrases of a table, separated by commas there."""
    return re.split(r",\s+", TABLES[title].strip())


def alternatives(title: str) -> str:
    """The same as alternatives of a regular expression."""
    return "|".join(listed(title))


_SETS = frozenset(("set", "collection", "pair"))
_CORE_END = re.compile(
    r"(?<!\s)\s*(?:,|\b(?:with|from|of|which|that|who|called|titled|named|featuring|on|in|by|for|as"
    r"|(?:gifted|given|used)(?=\s*\Z|\s+(?:to|by|for|from|as|in|on|at|with|me|us|during|when|every|daily)\b))\b).*\Z",
    re.IGNORECASE | re.DOTALL,
)
_AFTER = rf"(?=\s*(?:\Z|[.,;:?!)]|(?:{alternatives('behind a place')})\b))"


@dataclasses.dataclass(frozen=True)
class PlaceMention:
    """A place that a text names.

    Attributes:
        relation: the preposition before it, e.g. "to", "from", "next to".
        piece: type of furniture ("table", "floor"), empty for a room alone.
        room: type of room, empty if none is named.
        other: whether another one than now is meant ("a different table").
        hint: how it was called where that says more than its type ("dining").
        start: offset of the preposition in the text.
        end: offset behind it.
    """

    relation: str
    piece: str
    room: str
    other: bool = False
    hint: str = ""
    start: int = 0
    end: int = 0

    @property
    def name(self) -> tuple[str, str, str]:
        """How it is called, whatever stands before it."""
        return self.hint, self.piece, self.room


def stem(word: str) -> str:
    """A word without its ending, so that "moving" and "moves" meet."""
    word = _IRREGULAR.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            word = word[: -len(ending)]
            word = word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sle" else word
            return _IRREGULAR.get(word, word).rstrip("e")
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return _IRREGULAR.get(word, word).rstrip("e") if len(word) > 3 else _IRREGULAR.get(word, word)


def content(text: str) -> list[str]:
    """Stems of the words that carry meaning, in order."""
    words = re.findall(r"[a-z0-9]+", text.lower().replace("'s", " ").replace("_", " "))
    return [stem(word) for word in words if word not in _STOP]


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(set(words), key=lambda w: (-len(w), w)))


class PlaceWords:
    """Finds mentions of places, in the words of one house."""

    def __init__(self, view: HouseView):
        self.view = view
        present = {kind_of(name) for name in view.furniture} - {"unknown"} | {"floor"}
        self._pieces: dict[str, str] = {}
        for kind in [*sorted(present), *(k for k in _PIECES if k not in present)]:
            for word in (kind, *_PIECES.get(kind, ())):
                self._pieces.setdefault(word, kind)
                self._pieces.setdefault(word + ("es" if word.endswith(("ch", "sh", "s")) else "s"), kind)
        self._pieces.setdefault("chests of drawers", "chest of drawers")
        rooms = {kind_of(room) for room in view.rooms} - {"unknown room", "toilet"}
        for room in rooms - present:
            self._pieces.pop(room, None)
        self._rooms: dict[str, str] = {}
        for kind in sorted(rooms):
            self._rooms[kind] = kind
            self._rooms[f"{kind.removesuffix('room').strip()} room"] = kind
        for kind in [*sorted(rooms), *_ROOMS]:
            for word in _ROOMS.get(kind, ()):
                self._rooms.setdefault(word, kind)
        for kind in ("kitchen", "garage", "closet", "porch", "dining room", "living room", "office", "laundryroom"):
            if kind not in self._pieces:
                self._rooms.setdefault(kind, kind)
        for word in list(self._rooms):
            self._rooms.setdefault(f"{word}s", self._rooms[word])
        room, piece = _alternatives(self._rooms), _alternatives(self._pieces)
        modifiers = rf"(?P<mod{{0}}>(?:(?:{alternatives('modifiers')})\s+)*)"
        determiner = rf"(?:(?:{alternatives('determiners')})\s+)?"
        preposition = rf"\b(?P<prep>{alternatives('before a place')})\s+"
        self._mention = re.compile(
            rf"{preposition}(?:"
            rf"{determiner}{modifiers.format(1)}(?:(?P<room1>{room}|family|laundry)(?:'s)?\s+)?{modifiers.format(2)}(?P<piece>{piece})"
            rf"(?:\s+(?:in|inside|of|at|from|within)\s+{determiner}{modifiers.format(3)}(?P<room2>{room}))?"
            rf"|{determiner}{modifiers.format(4)}(?P<room3>{room})(?:\s+room)?){_AFTER}",
            re.IGNORECASE,
        )
        self._bare = re.compile(self._mention.pattern.replace(preposition, r"\b(?P<prep>)", 1), re.IGNORECASE)

    def find(self, text: str, bare: bool = False) -> list[PlaceMention]:
        """The places a text names behind a preposition, in order; with `bare` those without one too."""
        found = []
        for match in (self._bare if bare else self._mention).finditer(text):
            modifiers = " ".join(match[f"mod{i}"] or "" for i in (1, 2, 4)).lower().split()
            piece = self._pieces.get(" ".join((match["piece"] or "").lower().split()), "")
            room = " ".join((match["room1"] or match["room2"] or match["room3"] or "").lower().split())
            other = any(word in ("another", "different", "new", "other") for word in modifiers)
            hint = next((word for word in modifiers if word in ("dining", "coffee", "side", "bedside")), "")
            kind = self._rooms.get(room, self._rooms.get(f"{room} room", ""))
            if hint == "dining" and not kind and "dining room" in {kind_of(r) for r in self.view.rooms}:
                kind = "dining room"
            relation = " ".join(match["prep"].lower().split())
            found.append(PlaceMention(relation, piece, kind, other, hint, match.start(), match.end()))
        return found

    def rooms(self, mention: PlaceMention) -> list[str]:
        """Rooms that a mention may mean; all where it names none."""
        if not mention.room:
            return list(self.view.rooms)
        return [room for room in self.view.rooms if kind_of(room) == mention.room]

    def pieces(self, mention: PlaceMention) -> list[str]:
        """Furniture and floors that a mention may mean, best guess first."""
        if mention.piece == "floor":
            return [self.view.floors[room] for room in self.rooms(mention) if room in self.view.floors]
        rooms = self.rooms(mention) or list(self.view.rooms)
        names = [n for room in rooms for n in self.view.rooms[room] if kind_of(n) == mention.piece]
        if not names and mention.room:  # the room has none: any of the house
            names = [n for n in self.view.furniture if kind_of(n) == mention.piece]
        if mention.hint in ("dining", "coffee") and not mention.room:
            order = {"dining": ("dining room", "living room", "kitchen"), "coffee": ("living room", "tv", "lounge")}
            rank = {kind: i for i, kind in enumerate(order[mention.hint])}
            names.sort(key=lambda n: rank.get(kind_of(self.view.furniture[n]), 9))
        return names


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
