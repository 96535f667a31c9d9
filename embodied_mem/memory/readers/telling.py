"""Reads what people say of where a thing is now, or that it left its place; all else asserts nothing.

    read_telling("I left the scissors in the drawer of the desk.").places     # scissors, "in", "drawer of desk"
    read_telling("You know the blue mug? Someone took it.").departures        # ("blue mug",)

A clause says what somebody did with a thing ("I put the keys in the bowl"), where a thing is ("is", "went", "has been
moved to"), or where to find it. Places have a head such as "drawer" or "kitchen", or are known on the map; so idioms
and events assert nothing. Whoever moves, takes or loses a thing without a place that can be read ends its place. What
asks, wishes, plans, guesses, quotes, or tells of habits or of the past says nothing. "It" is the one thing that the
same sentence or the one before names. "Should be" and "look in" are hints, and `HINT` is their confidence.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..words import normal, singular, spelling
from .english import KINDS, NO_NAME, PREPOSITIONS, SHORT_FORMS, TOKEN, kinds_of, located_in, name_in, names_in
from .reading import MAX_READ, PLACED, SENTENCE_END, Reader, Reading

HINT = 0.7
"""Confidence in a place of a hint."""
_MAX_WORDS = 60
_OF = kinds_of("""
    room: kitchen bedroom bathroom room office study hall hallway corridor garage basement cellar attic loft pantry
    room: laundry nursery porch balcony patio garden yard shed lounge den playroom workshop closet entrance foyer toilet
    room: restroom lab laboratory lobby stairwell staircase storeroom studio
    surface: table desk counter worktop countertop shelf rack nightstand bed sofa couch armchair chair stool bench stove
    surface: windowsill sill ledge floor rug carpet mat hook hanger stand piano island plate tray mantel mantelpiece
    surface: radiator heater doormat stairs steps printer ottoman futon cot sideboard dresser cushion pillow
    holder: bookshelf bookcase drawer cabinet cupboard wardrobe chest fridge refrigerator freezer oven microwave
    holder: dishwasher sink washbasin basin bathtub tub shower washer dryer machine box crate bin basket hamper bowl bag
    holder: backpack purse handbag suitcase pocket case jar tin cup mug pot bucket vase locker safe trunk car
    holder: fireplace toolbox envelope folder holder container trolley cart pile stack letterbox mailbox crib
    carried: plate tray cushion pillow box crate bin basket hamper bowl bag backpack purse handbag suitcase case jar tin
    carried: cup mug pot bucket vase toolbox envelope folder container trolley cart stool
    person: man woman girl boy kid team family couple guy lady
    abstract: heart mind life love trust faith hope attention effort energy focus name number job career exam test class
    abstract: lesson course school meeting appointment interview flight trip birthday wedding song game match answer
    abstract: truth secret memory thought feeling mood money weather place stuff matter pressure blame work
""")
ROOMS = _OF["room"]
_FURNITURE = ROOMS | _OF["surface"] | _OF["holder"]
_PLURAL_TOO = _FURNITURE | {f"{one}s" for one in _FURNITURE} | {"shelves", "boxes", "benches", "couches"}
_MEDIA = frozenset(("phone", "picture", "pictures", "photo", "photograph", "ball", "novel", "poster", "radio", "tv"))
_NO_THING = frozenset().union(*(KINDS[kind] for kind in ("role", "pronoun", "guess", "hour")), _OF["person"],
                              _OF["abstract"], KINDS["figure"] - _MEDIA)  # fmt: skip
_UNSURE = re.compile(
    r"\b(?:if|unless|would|could|may|might|maybe|perhaps|probably|possibly|likely|think|thinks|guess|believe|believes"
    r"|suppose|assume|wish|hope|hoping|wonder|pretend|imagine|dream|dreamt|dreamed|whenever|every|usually|normally"
    r"|always|often|sometimes|mostly|generally|typically|used to|belongs?|said|says|say|told|heard|reads?|wrote|claims?"
    r"|claimed|apparently|supposedly|allegedly|almost|nearly|instead of|rather than|whether|joke|yesterday|years?"
    r"|months?|weeks?|ages|last (?:night|week|month|year|time)|days ago|until|till|tomorrow|tonight|later|soon"
    r"|according to|everything|everyone|anything|is not it|are not they|by (?:noon|midnight|\d+)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b|[\"“”«»]"
)
"""Words of a sentence that asserts nothing."""
_UNDONE = re.compile(
    r"\b(?:had|will|shall|must|ought|needs?|wants?|wanted|going to|gonna|about to|plan|planned|planning|please|let"
    r"|never|before|like|try|trying|tried|once|why|how|when|remember|except|not|nobody|no|none|only)\b"
)
"""Words of a clause that asserts nothing except by forms of its own."""
_TAKEN_BACK = re.compile(
    r"(?:just kidding|(?:only )?joking|i (?:think|guess|believe|suppose)|not|no|or|wait|at least|was)\b"
)
"""First words of a sentence that may take back the one before it."""
_IDLE = re.compile(
    r"\b(?:just|already|now|currently|again|also|still|actually|simply|really|quickly|carefully|anyway|safely|then"
    r"|either|by (?:accident|mistake)|accidentally|for (?:now|the moment|you)|at the moment|right now|so far|earlier"
    r"|today|too|this (?:morning|afternoon|evening)|a (?:minute|moment|while) ago|(?:an|one|two|half an) hours? ago"
    r"|anymore|as well|any ?more|any longer|i am afraid|by the way|in the meantime|meanwhile|lying around)\b ?"
)
_TAIL = re.compile(
    r" (?:because|so that|since|where|which|that|who|as|while|to (?:be|keep|make|dry|cool|charge|get|have)|for|with"
    r"|after|by)\b.*"
)
_FROM = re.compile(r" (?:away )?from (?:its|their|the|my|our) .{1,60}?(?= (?:to|into|onto|in|on) |\Z)")
_AT = rf"(?P<at>(?:to|{'|'.join(sorted(PREPOSITIONS, key=len, reverse=True))}) .{{1,200}})"
_WHO = r"(?:i|we|he|she|they|a person|(?:my |our |the )?(?!you )[^\W\d_]+)"
_THING = r"(?P<thing>.{1,80}?)"
_DONE = (
    "(?:put|placed|set|laid|left|dropped|stuck|stored|stowed|hid|hidden|hung|stashed|tossed|threw|thrown|shoved|tucked"
    "|packed|parked|popped|dumped|leaned|leant|moved|brought|took|taken|carried|returned|transferred|relocated|forgot"
    "|forgotten|filed|locked|pushed|slid|stood|deposited)"
)
_WAY = r"(?: (?:back|away|down|off|over|up|out|in there|lying|standing|sitting|hanging)){0,3}?"
_PLACES = [(re.compile(form), sure) for form, sure in (
    (rf"{_THING} lives? {_AT}", None),
    (rf"{_WHO}(?: have| has)? {_DONE}{_WAY} {_THING}{_WAY} {_AT}", None),
    (rf"{_THING} (?:was|were|is|are|has been|have been|got) {_DONE}{_WAY} {_AT}", None),
    (rf"{_THING} (?:is|are|sits?|lies?|stands?|hangs?|rests?|went|ended up|landed|has gone|can be found){_WAY}"
     rf" {_AT}", None),
    (rf"(?:you|we) (?:find|can find|can see) {_THING} {_AT}", None),
    (rf"there (?:is|are) {_THING} {_AT}", None),
    (rf"{_AT} (?:is|are|you find|you can find|i put|we put|i left) {_THING}", None),
    (rf"{_THING} should be{_WAY} {_AT}", HINT),
    (rf"(?:for {_THING} )?(?:check|look|try) {_AT}", HINT),
    (rf"{_THING} {_AT}", None),
)]  # fmt: skip
_LIVES, _BARE = _PLACES[0][0], _PLACES[-1][0]
_PLACE_ALONE = re.compile(_AT)
_LOST = (
    "(?:moved|took|taken|lost|misplaced|mislaid|lent|loaned|gave|given|threw|thrown|tossed|sold|returned|donated"
    "|discarded|recycled|stole|stolen|borrowed|removed|carried|relocated|transferred|hid|hidden|packed|brought|put|binned"
    "|trashed|swiped|grabbed|snatched|picked up|got rid of|cleared|sent|shipped|knocked|ate|eaten|taking|carrying)"
)
_AWAY = "(?:away|out|back|off|up|down|to|from|with|into|onto|in|on|for|under|at|behind|somewhere|elsewhere|over)"
_GONE = [re.compile(form) for form in (
    rf"{_THING} (?:(?:is|are|has|have|was|were|got|went|seems to (?:be|have)|has been|have been) )?"
    rf"(?:gone|missing|vanished|disappeared|fell|fallen|lost|stolen|taken|nowhere)(?: .*)?",
    rf"{_THING} (?:was|were|is|are|has been|have been|got) {_LOST}(?: .*)?",
    rf"{_WHO}(?: am| are| is| have| has)? {_LOST}(?: away| out| back| off| up| down)? {_THING}(?: {_AWAY}(?: .*)?)?",
    rf"{_WHO} (?:have|has|got|have got|has got) {_THING}(?: (?:with|on) (?:me|us|him|her|them))?",
)]  # fmt: skip
_NOT_THERE = [re.compile(form) for form in (
    rf"{_THING} (?:is|are) not (?:there|here|where .{{1,80}}|in (?:its|their|the usual) (?:place|spot)|around)",
    rf"{_THING} (?:is|are) not {_AT}",
    rf"(?:i|we|you) (?:can|could) not (?:find|locate) {_THING}",
    rf"(?:i|we) (?:do|did|can|could) not see {_THING}(?: {_AT})",
    rf"(?:i|we) (?:do not know|have no idea|have no clue) (?:where|who has|who took) {_THING}"
    r"(?: (?:is|are|went|has gone))?",
    rf"(?:no idea|no clue) (?:where|who has|who took) {_THING}(?: (?:is|are|went|has gone))?",
)]  # fmt: skip
_WANTED = re.compile(
    r"(?:if|in case|should|when|whenever) you (?:are |ever )?(?:look|looking|search|searching|need|want|miss|ask)"
    r"(?: for| about)? (?P<thing>[^,]{1,60}?)(?:, ?|(?= (?:check|look|try|it is|they are) ))"
)
_ABOUT = re.compile(r"(?:about|regarding|as for|concerning|(?:do )?you (?:know|remember)) (?P<thing>.{1,80})")
_NAMED = re.compile(r"\b(?:the|my|our|your) ((?:(?!(?:the|my|our|your) )[\w'-]++ ?){1,5})")
_PIECE_END = re.compile(
    r" ?(?:[,;:()]|(?<= )[-–—](?= )|\b(?:but|so)\b|\band (?=(?:i|we|it|they|he|she|the|my|our|you|a person) )) ?"
)
_FROM_NOW = re.compile(r"\bfrom (?:now|today) on(?:wards?)?\b ?")
_FULL_FORMS = (
    ("can't", "can not"),
    ("can’t", "can not"),
    *SHORT_FORMS,
    ("you'll", "you will"),
    ("'s ", " is "),
    ("’s ", " is "),
)
_WORD = re.compile(r"[^\W\d_]+")
_IT = frozenset(("it", "them", "they", "that", "this", "these", "those", "both"))
_MEANT = _IT | {"check", "look", "try"}
_DEFINITE = KINDS["definite"]


class Names(frozenset[str]):
    """Names on a map, and the last words of them.

    Attributes:
        heads: the last words.
    """

    def __init__(self, names: Iterable[str] = ()):
        self.heads = frozenset(name.rpartition(" ")[2] for name in self)


NO_NAMES = Names()


class ToldPlace(NamedTuple):
    """The place of a thing: its relation to it, a confidence for a hint, and what the place is in."""

    thing: str
    relation: str
    place: str
    sure: float | None
    within: tuple[str, ...]


class Telling(NamedTuple):
    """Places that a text tells.

    Attributes:
        places: where things are now.
        departures: things that are no longer where they were.
    """

    places: tuple[ToldPlace, ...] = ()
    departures: tuple[str, ...] = ()


def read_telling(text: str, names: Names = NO_NAMES) -> Telling:
    """Return current places that a text tells, and things that left theirs.

    Args:
        text: what somebody says.
        names: of things and places on the map, as `words.spelling` writes them.
    """
    places: dict[str, ToldPlace] = {}
    departures: dict[str, None] = {}
    last: _Sentence | None = None
    if len(text) > MAX_READ or _is_elsewhere(_WORD.findall(normal(text)), names):
        return Telling()
    for sentence in SENTENCE_END.split(text):
        its_words = _WORD.findall(normal(sentence))
        has_pronoun = not _MEANT.isdisjoint(its_words)
        reader = _Sentence(sentence, last.topic if last and has_pronoun else None, names)
        if has_pronoun or not _is_elsewhere(its_words, names):
            reader.read()
        if last is not None and not (reader.departures or reader.places) and _TAKEN_BACK.match(reader.plain):
            for thing in last.places:
                places.pop(thing, None)
        for thing in reader.departures:
            places.pop(thing, None)
        departures |= reader.departures
        for thing in reader.places:
            departures.pop(thing, None)
        places |= reader.places
        last = reader
    return Telling(tuple(places.values()), tuple(departures))


def _is_elsewhere(words: list[str], names: Names) -> bool:
    """Return whether a text names no furniture and nothing on the map."""
    return _PLURAL_TOO.isdisjoint(words) and names.heads.isdisjoint(words)


class _Sentence:
    """One sentence: what it tells, and the one thing that it names."""

    def __init__(self, sentence: str, before: str | None, names: Names):
        self._map = names
        self.places: dict[str, ToldPlace] = {}
        self.departures: dict[str, None] = {}
        plain = f"{' '.join(normal(sentence).split())} "
        self._asks = plain.endswith("? ")
        for short, full in _FULL_FORMS:
            plain = plain.replace(short, full)
        self.plain = plain.rstrip(" .!?;")
        self._is_definite = not _DEFINITE.isdisjoint(TOKEN.findall(plain))
        self._it = before
        self._is_denied = False

    def read(self) -> None:
        """Read the clauses."""
        plain = self.plain
        if (request := _WANTED.search(plain)) is not None:
            self._it = self._thing(request["thing"])
            plain = f"{plain[: request.start()]} {plain[request.end() :]}".strip()
        if self._asks or _UNSURE.search(plain) or plain.count(" ") > _MAX_WORDS:
            return
        from_now = _FROM_NOW.search(plain) is not None
        for clause in filter(None, _PIECE_END.split(_FROM_NOW.sub("", plain))):
            size = len(self.places) + len(self.departures)
            self._read_clause(" ".join(_IDLE.sub("", clause).split()), from_now)
            if len(self.places) + len(self.departures) == size and (mentions := self._mentions(clause)):
                self._it = mentions[0] if len(mentions) == 1 else None

    @property
    def topic(self) -> str | None:
        """The one thing that "it" would mean in the next sentence."""
        things = [*self.places, *self.departures]
        if not things and (about := _ABOUT.fullmatch(self.plain)) is not None:
            return self._thing(about["thing"])
        things = things or self._mentions(self.plain)
        return things[0] if len(things) == 1 else None

    def _read_clause(self, clause: str, from_now: bool) -> None:
        """Read a clause; the first form with a thing counts."""
        if (about := _ABOUT.fullmatch(clause)) is not None:
            self._it = self._thing(about["thing"]) or self._it
            return
        for form in _NOT_THERE:
            if (match := form.fullmatch(clause)) is not None and (
                things := self._things(match["thing"], articles=("a", "an", "any"))
            ):
                self._leave(things)
                self._is_denied = True
                return
        clause = clause.replace("you will find", "you find")
        if self._is_denied and _PLACE_ALONE.fullmatch(clause):
            clause = f"it is {clause}"
        self._is_denied = False
        if _UNDONE.search(clause):
            return
        text = _FROM.sub("", clause)
        for form, sure in _PLACES:
            if (match := form.fullmatch(text)) is None or (form is _LIVES and not from_now):
                continue
            things = self._things(match["thing"] or "it", needs_known=form is _BARE)
            if things and (places := self._places(match["at"])):
                (relation, place), *outer = places
                within = tuple(name for _, name in outer)
                for thing in things:
                    self.places[thing] = ToldPlace(thing, relation, place, sure, within)
                    self.departures.pop(thing, None)
                self._it = things[0] if len(things) == 1 else None
                return
        for form in _GONE:
            if (match := form.fullmatch(clause)) is not None and (things := self._things(match["thing"])):
                self._leave(things)
                return

    def _leave(self, things: list[str]) -> None:
        self.departures |= dict.fromkeys(thing for thing in things if thing not in self.places)
        self._it = things[0] if len(things) == 1 else None

    def _things(self, text: str, needs_known: bool = False, articles: tuple[str, ...] = ()) -> list[str]:
        """Return the things that a text names, if all are things."""
        if text in _IT:
            return [self._it] if self._it else []
        first, _, rest = text.partition(" ")
        is_definite = first in _DEFINITE
        if (whole := rest if is_definite else text) in self._map:
            return [whole]
        things = names_in(text) or []
        is_new = (is_definite or first in articles) and not needs_known
        are_meant = all(one in self._map or (is_new and _is_thing(one)) for one in things)
        return things if are_meant else []

    def _thing(self, text: str) -> str | None:
        things = self._things(text)
        return things[0] if len(things) == 1 else None

    def _places(self, text: str) -> list[tuple[str, str]]:
        """Return (relation, place) of "in the drawer in the kitchen"; none elsewhere."""
        text = _TAIL.sub("", text.replace(" of the ", " of ").replace(" of my ", " of "))
        chain = located_in(f"thing {f'at {text[3:]}' if text[:3] == 'to ' else text}", self._is_definite)
        if chain is None or not chain[1]:
            return []
        rows = chain[1]
        first = max(i for i, row in enumerate(rows) if row[0] == "thing")  # "on the table and then on the shelf"
        places = [(relation, place) for _, relation, place in rows[first:]]
        if text[:3] == "to ":
            head = _head(places[0][1])
            relation = "on" if head in _OF["surface"] else "in" if head in _FURNITURE else PLACED
            places[0] = relation, places[0][1]
        if _head(places[0][1]) in ROOMS:  # "in the kitchen, on the counter"
            places.sort(key=lambda place: _head(place[1]) in ROOMS)
        return places if all(_head(place) in _FURNITURE or place in self._map for _, place in places) else []

    def _mentions(self, plain: str) -> list[str]:
        """Return the things with an article, without furniture beside others."""
        things: dict[str, None] = {}
        for one in _NAMED.finditer(plain):
            names = one[1].split()
            starts = [" ".join(names[:count]) for count in range(len(names), 0, -1)]
            name = next((start for start in starts if start in self._map), None)
            if name is None:  # a new name ends before a word of another kind, or with a sentence that began before it
                size = next((i for i, word in enumerate(names) if word in NO_NAME), len(names) if one.start() else 0)
                name = " ".join(names[:size]) if name_in(names[:size]) else None
            if name is not None and (name in self._map or _is_thing(name)):
                things[name] = None
        return [one for one in things if _head(one) not in ROOMS | _OF["surface"]] or [*things]


def _head(name: str) -> str:
    """Return the noun of a name, in singular."""
    words = name.partition(" of ")[0].rstrip("0123456789 ").split()
    return singular(words[-1]) if words else ""


@functools.lru_cache(maxsize=4096)
def is_portable(name: str, is_placed: bool) -> bool:
    """Return whether a thing may go to another room with its contents.

    Of a name that is neither furniture nor a container, whether it was placed anywhere decides.
    """
    head = _head(spelling(name))
    return head in _OF["carried"] or (is_placed and head not in _FURNITURE)


def _is_thing(name: str) -> bool:
    return _head(name) not in _NO_THING and name not in _NO_THING


class TellingReader(Reader):
    """Reports of what was done with things, as people tell them; hints are left out."""

    name = "telling"

    def read(self, text: str) -> Reading:
        telling = read_telling(text)
        facts = tuple(place[:3] for place in telling.places if place.sure is None)
        return Reading(facts, understood=False, departures=telling.departures)


TELLING = TellingReader()
