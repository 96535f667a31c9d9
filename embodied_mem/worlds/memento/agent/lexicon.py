"""Words for places and things: which of a house's rooms and furniture a phrase names, and how phrases are compared.

words = PlaceWords(view)
words.find("to another table in the living room")     # [PlaceMention(relation="to", piece="table", ...)]
content("the teal vase")                               # ["teal", "vase"]
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from .household_view import HouseView, kind_of

_PIECES = {
    "shelves": ("shelf", "bookshelf", "bookshelves", "bookcase", "shelving"),
    "couch": ("sofa", "settee", "loveseat"),
    "chest of drawers": ("dresser", "drawers", "drawer"),
    "table": ("desk", "coffee table", "bedside table"),
    "fridge": ("refrigerator", "freezer"),
    "cabinet": ("cupboard",),
    "wardrobe": ("closet", "armoire"),
    "washer dryer": ("washing machine", "washer", "dryer"),
    "stool": ("ottoman",),
    "stand": ("nightstand", "night stand"),
    "counter": ("countertop", "worktop"),
    "chair": ("armchair", "seat"),
    "filing cabinet": ("file cabinet",),
    "floor": ("ground",),
}
"""Other words for furniture, by type."""

_ROOMS = {
    "living room": ("living room", "livingroom", "family room", "familyroom", "lounge", "tv room", "sitting room"),
    "tv": ("tv room", "tv", "television room"),
    "family room": ("family room", "familyroom", "living room"),
    "lounge": ("lounge", "living room"),
    "bathroom": ("bathroom", "washroom", "restroom", "bath"),
    "laundryroom": ("laundry room", "laundryroom", "laundry"),
    "hallway": ("hallway", "hall", "corridor", "lobby"),
    "entryway": ("entryway", "entrance", "foyer", "lobby", "entry"),
    "office": ("office", "study", "home office"),
    "dining room": ("dining room", "dining area"),
    "utilityroom": ("utility room", "utilityroom"),
    "other room": ("other room",),
    "bedroom": ("bedroom", "kids room", "guest room"),
}
_MODIFIERS = (
    "same|different|another|other|new|nearby|next|empty|dining|coffee|side|bedside|main|large|small|big|top|"
    "available|one|specific|usual|favorite|favourite|whole"
)
_DETERMINERS = "the|a|an|my|our|your|any|one of the|some|each|both|this|that"
_PREPOSITIONS = (
    "from|to|on top of|onto|on|upon|into|inside|within|in|at|next to|beside|near|close to|by|alongside|over to|"
    "back on|back to|across|around|atop|off"
)
_AFTER = (
    r"(?=\s*(?:\Z|[.,;:?!)]|(?:and|then|next|together|side|so|for|as|where|when|to|from|on|onto|in|into|with|near|beside|"
    r"by|placing|putting|neatly|back|this|instead|again|please|before|after|while|it|them|during|alongside|just|like|"
    r"at|which|that|because|since|first|finally|also|using|using|today|tonight|now|or|but|is|are|if|until|close|"
    r"such|of|inside|within|there|ready)\b))"
)
_STOP_WORDS = """
    a an the my our your his her their its of in on at to for with and or is are was were be been as it this that
    these those them they i me we you from by into onto up can could would please help move put place set bring take
    like have has had do does so then also back part next other each together one usually always
"""
_STOP = frozenset(_STOP_WORDS.split())
_IRREGULAR = {"shelves": "shelf", "knives": "knife", "loaves": "loaf", "scarves": "scarf", "grey": "gray",
              "favourite": "favorite", "cosy": "cozy", "mug": "cup", "colour": "color", "gifted": "gift",
              "teddy": "bear", "cosily": "cozy"}  # fmt: skip


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

    def describe(self) -> str:
        """In words, e.g. `another table in a living room`."""
        name = f"{'another' if self.other else 'a'} {self.hint + ' ' if self.hint else ''}{self.piece}"
        return (f"{name} in a {self.room}" if self.room else name) if self.piece else f"the {self.room}"


def room_type(room: str) -> str:
    """living_room_1 -> living room."""
    return kind_of(room)


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
        rooms = {room_type(room) for room in view.rooms} - {"unknown room", "toilet"}
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
        modifiers = rf"(?P<mod{{0}}>(?:(?:{_MODIFIERS})\s+)*)"
        determiner = rf"(?:(?:{_DETERMINERS})\s+)?"
        self._mention = re.compile(
            rf"\b(?P<prep>{_PREPOSITIONS})\s+(?:"
            rf"{determiner}{modifiers.format(1)}(?:(?P<room1>{room}|family|laundry)(?:'s)?\s+)?{modifiers.format(2)}(?P<piece>{piece})"
            rf"(?:\s+(?:in|inside|of|at|from|within)\s+{determiner}{modifiers.format(3)}(?P<room2>{room}))?"
            rf"|{determiner}{modifiers.format(4)}(?P<room3>{room})(?:\s+room)?){_AFTER}",
            re.IGNORECASE,
        )
        self._bare = re.compile(
            self._mention.pattern.replace(rf"\b(?P<prep>{_PREPOSITIONS})\s+", r"\b(?P<prep>)", 1), re.IGNORECASE
        )

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
            if hint == "dining" and not kind and "dining room" in {room_type(r) for r in self.view.rooms}:
                kind = "dining room"
            relation = " ".join(match["prep"].lower().split())
            found.append(PlaceMention(relation, piece, kind, other, hint, match.start(), match.end()))
        return found

    def rooms(self, mention: PlaceMention) -> list[str]:
        """Rooms that a mention may mean; all where it names none."""
        if not mention.room:
            return list(self.view.rooms)
        return [room for room in self.view.rooms if room_type(room) == mention.room]

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
            names.sort(key=lambda n: rank.get(room_type(self.view.furniture[n]), 9))
        return names
