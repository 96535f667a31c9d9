"""Reads MEMENTO's instructions and houses: places and things, requests, placements in order, what is said of things.

    view = HouseView(observation, instruction)       # house, objects seen, where the agent stands, from texts
    words = PlaceWords(view)
    words.find("to another table in the living room")     # [PlaceMention(relation="to", piece="table", ...)]
    request_in("I have guests tonight, so could you move the jug to the table?")     # "move the jug to the table"
    asked = read_instruction("Move the pen to the shelves. Then, place it on the floor. It is my lucky pen.", words)
    asked.placements      # the pen to the shelves; the pen to the floor
    asked.descriptions    # (("the pen", "It is my lucky pen"),)

A sentence is a command, a description of the things asked for, a preference of the user, or none of these and passed
over. A clause asks for something by its structure: its verb is an imperative, or is governed by "you" or "we" ("could
you move", "would you mind moving"), or is an infinitive or a gerund that no first person governs ("your task is to
move"). A command is cut at its verbs, each part at the places it names, and what stands before a place is a list of
things. Rooms, pieces and objects are kept in an order drawn by hash, not in that of the texts, so that whoever takes
the first of several takes any of them (`traces/trace.py`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.readers.reading import legible
from embodied_mem.worlds.memento.traces.trace import (
    HELD,
    drawn,
    parse_action,
    parse_description,
    parse_objects,
    parse_result,
)

from ..words import lexicon_of

_ROOM_LINE = re.compile(r"(\w+): ?([\w, ]*)\Z")


def kind_of(name: str) -> str:
    """Return a name's type in words: chest_of_drawers_12 -> chest of drawers."""
    return name.rpartition("_")[0].replace("_", " ") if name.rpartition("_")[2].isdigit() else name.replace("_", " ")


@dataclasses.dataclass
class SeenObject:
    """One object that was seen: its place (furniture, floor or `HELD`) and that one's room (empty while held), now and
    at first; its description, once asked for."""

    place: str
    room: str
    start: str
    start_room: str
    caption: str = ""
    described: bool = False


class HouseView:
    """House, objects seen, and where the agent stands, from texts."""

    def __init__(self, observation: str, instruction: str = ""):
        """Read a first observation.

        Args:
            observation: with the house text.
            instruction: decides, with the names, the order of everything here.

        Raises:
            InvalidInputError: it has no furniture list.
        """
        if "Furniture:" not in observation:
            raise InvalidInputError(
                f"observation: expected the house text ('Furniture:' ...), got {observation[:200]!r}"
            )
        self._instruction = instruction
        self.rooms: dict[str, list[str]] = {}
        self.floors: dict[str, str] = {}
        self.furniture: dict[str, str] = {}
        self.objects: dict[str, SeenObject] = {}
        self.explored: set[str] = set()
        self.at: str | None = None
        self.room = ""
        self.held: str | None = None
        lines = observation.partition("Furniture:")[2].partition("\n\n")[0].splitlines()
        told = {match[1]: match[2] for line in lines if (match := _ROOM_LINE.match(line.strip()))}
        for room in self._mixed(told):
            names = [name.strip() for name in told[room].split(",") if name.strip()]
            pieces = self._mixed(name for name in names if name != f"floor_{room}")
            if len(pieces) < len(names):
                self.floors[room] = f"floor_{room}"
            self.rooms[room] = pieces
            self.furniture.update(dict.fromkeys(pieces, room))

    def _mixed(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: drawn(self._instruction, name))

    def room_of(self, place: str) -> str:
        """Return the room of furniture, floor or room; empty if unknown."""
        if place in self.furniture:
            return self.furniture[place]
        room = place.removeprefix("floor_")
        return room if room in self.rooms else ""

    def observe(self, action: str, observation: str) -> str:
        """Take in what an action led to and return the answer's text."""
        name, arguments = parse_action(action)
        result = parse_result(observation)
        for thing, (place, room) in parse_objects(observation).items():
            seen = self.objects.setdefault(thing, SeenObject(place, room, place, room))
            seen.place, seen.room = place, room
        self.objects = {thing: self.objects[thing] for thing in self._mixed(self.objects)}
        held = [thing for thing, seen in self.objects.items() if seen.place == HELD]
        self.held = held[0] if held else None
        described = parse_description(observation)
        if described and described[0] in self.objects:
            self.objects[described[0]].caption = described[1]
        if name == "DescribeObjectTool" and arguments and arguments[0] in self.objects:
            self.objects[arguments[0]].described = True
        succeeded = result.startswith("Successful")
        if name == "Navigate" and succeeded and arguments:
            self._arrive(arguments[0])
        elif name == "Explore" and arguments:
            self.explored.add(arguments[0])
            self.room = arguments[0] if succeeded or "too long" in result else self.room
            self.at = None
        return result

    def _arrive(self, target: str) -> None:
        if target in self.objects:
            target = self.objects[target].place
        self.room = self.room_of(target)
        self.at = target if target in self.furniture or target.startswith("floor_") else None


TABLES = lexicon_of(__package__)
_IRREGULAR = dict(line.split(": ") for line in TABLES["same"].splitlines())
_STOP = frozenset(TABLES["light words"].split())


def _words_by_kind(title: str) -> dict[str, list[str]]:
    rows = (line.partition(": ") for line in TABLES[title].splitlines())
    return {kind: words.split(", ") for kind, _, words in rows}


_PIECES, _ROOMS = _words_by_kind("furniture"), _words_by_kind("rooms")
NEAR = _words_by_kind("what stands near")


def listed(title: str) -> list[str]:
    """Return the phrases of a table, separated by commas there."""
    return re.split(r",\s+", TABLES[title].strip())


def alternatives(title: str) -> str:
    """Return the same as alternatives of a regular expression."""
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
        """Its name, whatever stands before it."""
        return self.hint, self.piece, self.room


def stem(word: str) -> str:
    """Return a word without its ending, so that "moving" and "moves" meet."""
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
        """Return the places named behind a preposition in a text, in order.

        With `bare` those without one count, too.
        """
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
    """Return a phrase without its article and what follows its noun.

    "my gift lamp from my aunt" gives "gift lamp".
    """
    phrase = re.sub(
        r"\A(?:(?:the|a|an|my|our|both|one|two|some|all|this|that|another)\s+)+", "", phrase.strip().lower()
    )
    return _CORE_END.sub("", phrase).strip() or phrase


def kind_score(phrase: str, kind: str) -> float:
    """Rate how well a category fits a phrase, from 0 to 3.

    It is 3 for the phrase's noun, less for a part of it, 0 for neither.
    """
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
    """Return whether two phrases of one text mean the same thing.

    Their nouns are equal then, or one is the end of the other.
    """
    x, y = (" ".join(stem(w) for w in re.findall(r"\w+", core_of(p))) for p in (a, b))
    return bool(x) and bool(y) and (x == y or x.endswith(f" {y}") or y.endswith(f" {x}"))


def called(name: str, thing: str) -> bool:
    """Return whether a description's name is that of a thing."""
    return same_thing(name, thing) or content(name)[-1:] == content(core_of(thing))[-1:]


def is_plural(phrase: str) -> bool:
    """Return whether a phrase's noun means several things ("toys", "tea set")."""
    noun = core_of(phrase).split()[-1:]
    return any(word in _SETS or (word.endswith("s") and not word.endswith(("ss", "us"))) for word in noun)


HABIT = re.compile(
    r"\b(?:like|prefer|usual(?:ly)?|always|often|typically|normally|enjoy|love|every\w*|routine|habit|tend|whenever)\b",
    re.IGNORECASE,
)
"""Words of a taste or a habit."""

_MODALS, _ADVERBS, _NOT, _LISTENERS, _OTHERS, _DETERMINERS, _BOUNDARIES, _GOVERNORS = (
    frozenset(TABLES[title].split())
    for title in (
        "modals",
        "adverbs of requests",
        "negations",
        "who is asked",
        "who is not asked",
        "before a noun",
        "before an imperative",
        "before a gerund",
    )
)
_FUNCTION_WORDS = (
    _MODALS | _ADVERBS | _NOT | _LISTENERS | _OTHERS | _DETERMINERS | _BOUNDARIES | _GOVERNORS
    | frozenset(TABLES["function words"].split())
)  # fmt: skip
_PURPOSE = re.compile(r"\s*(?:in order\s+|so as\s+)?to\s+\Z", re.IGNORECASE)
_WISH = re.compile(r"(?:\b(?:would|will)|'d|'ll)\b", re.IGNORECASE)
_HELP = frozenset(("help", "assist", "hand", "need"))
_GOES_ON = re.compile(r",|\b(?:please|(?:can|could|would|will|need|want)\s+you)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|once|after|before|as|while|until|unless|because|since)\b", re.IGNORECASE
)
_OBJECT = (
    r"(?:\s+(?:up|away|out|down|over|aside|off|back|in))?\s+"
    r"(?!(?:your|sure|to|and|or|by|for(?!\s+(?:my|our|the)\b)|as|is|are|was|were|has|have|had|i|we|be|been|late|early|home|ready|done|in|on|at|of|with|from|into)\b)[\w'\"(-]"
)


def gerund(verb: str) -> str:
    """Return the -ing form of a verb, by the rules of spelling.

    >>> [gerund(verb) for verb in ("move", "put", "tidy up", "bring")]
    ['moving', 'putting', 'tidying up', 'bringing']
    """
    head, _, rest = verb.partition(" ")
    if head.endswith("e") and not head.endswith("ee"):
        head = head[:-1]
    elif re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", head):
        head += head[-1]
    return f"{head}ing {rest}".strip()


_BASE = sorted({verb for verb in listed("verbs") if not verb.endswith("ing") or verb == "bring"}, key=len, reverse=True)
_FORMS = [*_BASE, *map(gerund, _BASE)]
_VERB = re.compile(rf"(?<![\w'-])(?:{'|'.join(map(re.escape, _FORMS))})(?=\b{_OBJECT})", re.IGNORECASE)
_UNKNOWN = re.compile(
    rf"(?<![\w'-])(?!(?:{'|'.join(sorted(_FUNCTION_WORDS))})\b)[a-z]+(?=\s+(?:the|my|our|a|an|these|those|some)\b)",
    re.IGNORECASE,
)
"""A word before a determiner: perhaps a verb that no table has."""
_CONNECTIVE = re.compile(
    r"\s*(?:(?:first|then|also|and|after that|next|finally|now|(?>once[^,]*)|afterwards|lastly|additionally)\b,?\s+)*",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?<![\s,;-])[\s,;-]*(?:"
    r"\b(?:if|when|whenever|once|as \w+ as|unless)\s+(?:you|it|that|this|possible|convenient|at all)\b[^.]{,200}+"
    r"|\b(?:would|will|could|can|won't|shall|should)\s+(?:you|we)"
    r"|\b(?:please|pl[sz]+|thanks?|thank you|okay|ok|alright|cheers|for me|for us"
    r"|right now|right away|now|asap|soon|already|immediately|at your (?:\w+ )?convenience)"
    r"(?:\s+(?:so much|a lot|very much|again|in advance|a million|so))?"
    r")\s*+[?!.,]*+\s*\Z",
    re.IGNORECASE,
)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+|[,;:\u2013\u2014-]", text.lower())


def _asks(before: str, after: str, is_gerund: bool) -> bool:
    """Return whether a verb between these words asks for something."""
    words = _words(before)
    own = [word for word in words if word.isalpha() or "'" in word]
    if words[-2:] == ["why", "not"]:
        return True
    while words and words[-1] in _ADVERBS and words[-1] not in ("please", "kindly", "then", "now"):
        if words.pop() in _NOT:
            return False
    if not words or words[-1] in ",;:\u2013\u2014-":
        return not is_gerund or not own
    last = words[-1]
    if last in _NOT or last in _DETERMINERS:
        return last in ("your",) and is_gerund
    told = any(word.partition("'")[0] in _LISTENERS or word == "your" for word in own)
    first_person = any(word in ("i", "i'm", "i've", "i'd", "i'll") for word in own)
    if first_person and not told and HABIT.search(before):
        return False
    if is_gerund:
        clause = re.split(r"[,;:]", before.lower())[-1]
        helping = bool(_HELP & set(own))
        governed = last in _GOVERNORS or last == "hand" or (last == "in" and helping)
        return governed and (told or helping or not re.search(r"\bi\b", clause))
    if last in ("to", "and", "or"):
        return told or not first_person
    if last in _BOUNDARIES:
        return True
    modal = False
    while words and words[-1] in _MODALS | _ADVERBS:
        modal = words.pop() in _MODALS or modal
    subject = words[-1] if words else ""
    if subject.endswith(("'d", "'ll")):
        subject, modal = subject.partition("'")[0], True
    if subject in _LISTENERS:
        inverted = len(words) > 1 and words[-2] in _MODALS | {"don't", "do"}
        plain = subject == "you" and not (modal or inverted)
        return not (plain and _CONDITION.search(before) and not _WISH.search(before) and _GOES_ON.search(after))
    if subject in _OTHERS or subject.startswith("i'"):
        return False
    if subject == "me":
        return True
    return not modal and (not first_person or not re.search(r"[,;:]", before))


def _start(sentence: str) -> int | None:
    """Find where a sentence's request begins, at its verb; None without one."""
    verbs = list(_VERB.finditer(sentence))
    for match in verbs:
        behind_comma = any(sentence[: later.start()].rstrip().endswith(",") for later in verbs if later is not match)
        if behind_comma and _PURPOSE.match(sentence[: match.start()]):
            continue
        verb = match[0].lower().split()[0]
        is_gerund = verb.endswith("ing") and verb != "bring"
        if verb == "have" and re.search(r"\b(?:you|we|i|they)\s*\Z", sentence[: match.start()], re.IGNORECASE):
            continue
        if _asks(sentence[: match.start()], sentence[match.end() :], is_gerund):
            return match.start()
    for match in _UNKNOWN.finditer(sentence):
        before = _words(sentence[: match.start()])
        is_governed = not before or before[-1] in _BOUNDARIES | _LISTENERS | _GOVERNORS | _ADVERBS | frozenset(",;:-")
        if is_governed and _asks(sentence[: match.start()], sentence[match.end() :], match[0].lower().endswith("ing")):
            return match.start()
    return None


def request_in(sentence: str) -> str:
    """Return a sentence's request, from its verb on.

    Before it stands what connects it to the last sentence. Without a request it is empty.
    """
    start = _start(sentence)
    if start is None:
        return ""
    text = sentence[start:]
    while (cut := _TAIL.sub("", text)) != text and cut.strip():
        text = cut
    match = _CONNECTIVE.match(sentence)
    connective = match[0].strip() if match and match.end() <= start else ""
    return f"{connective} {text.strip()}".strip()


_BE = "is|are|was|were|has|have"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PREFERENCE = re.compile(
    r"(?:I\b(?!'d like you|\s+(?:want|need|would like) you)"
    r"|(?:when|while|during|every|almost|each|usually|after|before|in the|on)\b[^?]*?\bI\b)",
    re.IGNORECASE,
)
_TELLING = alternatives("telling verbs")
_DESCRIPTION = re.compile(
    r"(?P<thing>(?:the|this|these|those|that|my|it|they|both|each|all|one)\b[^,]*?)"
    rf"(?:'s|'re| (?:{_BE}|{_TELLING}))\b ?(?P<what>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_DESCRIBED_PART = re.compile(
    r"(?:, ?(?:and|while|but)?|;| and| while) "
    rf"(?=(?:the|my|it|this) (?:[\w'-]+ ){{0,5}}?(?:{_BE}|features?|holds?|belongs?|resembles?|contains?)\b)",
    re.IGNORECASE,
)
_VERBS = alternatives("verbs")
VERB = re.compile(
    r"(?:\A|[,;:] ?|\b(?:and|then|by|to|you|please|me|also|first|finally|next|we|let's|lets|that|now|afterwards|can|,)"
    rf" ,? ?|\b(?=(?:{_VERBS}) (?:them|it|both)\b))"
    rf"(?P<verb>(?:{_VERBS})\b(?: (?:up|away|out|down|over|aside|off|together)\b(?! (?:to|on) each))*)"
    r"(?P<change> (?:the )?positions? of)?",
    re.IGNORECASE,
)
"""A verb that asks for something, where a clause may begin."""

HEADERS = frozenset(form for verb in TABLES["headers"].strip().split("; ") for form in (verb, gerund(verb)))
"""Verbs that announce a task rather than name a move."""

ARRANGE = HEADERS | {"arrange", "arranging", "set", "setting", "stage", "gather", "organizing", "rearrange", "get"}
"""Verbs whose object may be the name of an arrangement ("set my tea time")."""

LEAVE = frozenset(("leave", "stay", "keep", "leaving", "keeping"))
TOWARDS = frozenset(("to", "onto", "into", "over to", "back to"))
TOGETHER = re.compile(
    r"\b(?:right\s+)?(?:next\s+to|beside|near|close\s+to|alongside|close\s+by|by)\s+(?:the\s+)?(?:each|one)\s+"
    r"(?:other|another)\b|\bside[\s-]by[\s-]side\b|\btogether\b|\bclose\s+together\b",
    re.IGNORECASE,
)
BESIDE = re.compile(
    r"\b(?:right\s+)?(?:next\s+to|beside|alongside|close\s+to|near|next)\s+(?=(?:the|a|an|my|it|them)\b)", re.IGNORECASE
)
BY_PRONOUN = re.compile(r"(?:it|this|that|they|these|those|both|all)(?:'s|'re|\s+(?:is|are|was|were)\b)", re.IGNORECASE)
_VAGUE_NOUN = r"(?:items|objects|things|belongings|stuff)"
AND_ANOTHER = re.compile(r"(?:,\s*(?:and\s+)?|(?<!\s)\s+and\s+)(?:then\s+)?(?=(?:the|a|an|my|our)\b)", re.IGNORECASE)
FIRST_BESIDE = re.compile(
    r"(?:(?!\b(?:and|on|onto|to|in|into|from|at)\b)[\w'-]+\s+)+?(?:right\s+)?(?:next\s+to|beside|close\s+to)\s+"
    r"(?:the|a|an|my|our|it)\b",
    re.IGNORECASE,
)
"""Another thing that is to go somewhere else, and one that goes next to something."""
PRONOUN = re.compile(
    r"\s*+(?:and\s++)?(?:both|all|each)?\s*+(?:of\s++)?(?:it|them|both|these|those|they|all|everything|each|"
    rf"(?:(?:these|the|both|all)\s+)+{_VAGUE_NOUN})\s*+(?:all|both|back|neatly|there)?\s*\Z",
    re.IGNORECASE,
)
ALL_OF_THEM = re.compile(rf"\s*all\s+(?:of\s+)?(?:these|those|the)\s+{_VAGUE_NOUN}\b", re.IGNORECASE)
_NAMED_BEFORE = re.compile(r"\s*(?:(?:both|all|each|any)\s+(?:of\s+)?)?(?:it|them)\b", re.IGNORECASE)
REASON = re.compile(
    r"(?<!\s)\s+(?:so(?:\s+that)?\s+(?:we|i|it|they|you)|because|since)\b.*\Z", re.IGNORECASE | re.DOTALL
)
_PLURAL = re.compile(rf"\s*(?:they|both|these|those|all|{_VAGUE_NOUN})\b", re.IGNORECASE)
NOUN = re.compile(
    r"\A(?:(?:the|a|an|my|our|some|and)\s+)*(?!(?:the|a|an|my|our|some|and|then|it|them)\b)\w", re.IGNORECASE
)
VAGUE = re.compile(
    rf"(?:(?:some|a few|things|items|something)\b|(?:the|these|those|my|our|all|\s)*\b(?:\w+\s+)?{_VAGUE_NOUN}\b)",
    re.IGNORECASE,
)
"""A phrase that names no thing; later words do."""
_ASSURED = re.compile(
    r"\b(?:make|making|be)\s+sure\s+(?:that\s+)?(?P<what>(?:the|my|our|a|an|they|it|both)\b[^.?!]{,150}?)\s(?:is|are)\s"
    r"(?:placed\s+|put\s+)?(?=(?:next|close|beside|on|in|at|by|together|side)\b)",
    re.IGNORECASE,
)
_COMPOUND = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b", re.IGNORECASE)
AND_THEN = re.compile(r"\s*+,?\s*+(?:and\s+)?(?:then|finally)\s+((?:the|a|an|my)\s+.+)\Z", re.IGNORECASE | re.DOTALL)
CONNECTED = re.compile(
    r"(?:(?:after that|additionally|afterwards)\b|(?:then|next|finally),?\s+(?!\w+\s+(?:it|them|both|these|those)\b))",
    re.IGNORECASE,
)
"""A sentence that may begin another task: one that goes on with another thing than the last."""
_ADJECTIVES = frozenset(TABLES["adjectives"].split())
_LIST_COMMA = re.compile(r",\s*(?:and\s+|or\s+)?(?:then\s+|finally\s+|also\s+|lastly\s+)*", re.IGNORECASE)
_FUNCTION = frozenset(
    word
    for title in ("function words", "before a noun", "before a gerund", "before an imperative", "who is not asked")
    for word in TABLES[title].split()
)
_GAP = re.compile(
    r"\b([a-z]+)\s+(?=(?:the|my|our|a|an)\s+\w)(?!\w+\s+\w+\s+(?:gave|got|bought|made|brought|sent|left|found|\w+ed)\b)",
    re.IGNORECASE,
)
"""The place where a list without commas may go on: an article behind a noun."""
_LIST_AND = re.compile(r"(?<!\s)\s+(?:and|&)\s+(?:then\s+|finally\s+|also\s+)*", re.IGNORECASE)
_DETERMINED = re.compile(r"(?:the|my|our|his|her|two|both|another|one|some)\b", re.IGNORECASE)
_MODIFIED = re.compile(
    r"\b(?:with|of|featuring|that|which|who|from|in|on|called|titled|named|made|gifted|given|has)\b", re.IGNORECASE
)
_RELATIVE = re.compile(
    r"(?:which|that|who|from|with|named|called|featuring|a gift|given|gifted|part of)\b", re.IGNORECASE
)


def bare(phrase: str) -> str:
    """Return a phrase in small letters, without its article."""
    return re.sub(r"\A(?:(?:the|a|an|my|our|both)\s+)+", "", phrase.strip().lower())


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, assurances as plain requests.

    "make sure that the jug is on the table" becomes "place the jug on the table".
    """
    text = _ASSURED.sub(lambda match: f"place {match['what']} ", _COMPOUND.sub(lambda m: m[0].replace("_", " "), text))
    return [part.strip() for part in _SENTENCE.split(" ".join(text.split())) if part.strip()]


def is_description(sentence: str) -> bool:
    """Return whether a sentence without a request says what things are like.

    Else it speaks of the user.
    """
    told = _DESCRIPTION.match(sentence) and not _PREFERENCE.match(sentence)
    return bool(told) and not sentence.endswith("?")


def says_more(sentence: str) -> bool:
    """Return whether a sentence asks only about things named before it."""
    bodies = [sentence[verb.end() :] for verb in VERB.finditer(sentence)]
    return bool(bodies) and all(_NAMED_BEFORE.match(body) for body in bodies)


def described(sentence: str, last: list[str]) -> list[tuple[str, str]]:
    """List (thing, what is said of it) of a sentence's descriptions.

    "it" is the last of `last`, "they" are all of them.
    """
    found = []
    before = ""
    for piece in _DESCRIBED_PART.split(sentence.rstrip(".! ")):
        part = f"{before} and {piece.strip()}" if before else piece.strip()
        match = _DESCRIPTION.match(part)
        before = "" if match else part  # "the can | the egg are mine" is one part
        if not match:
            continue
        subject = re.sub(r"\A(?:the|this|that|my)\s+", "", match["thing"].strip(), flags=re.IGNORECASE)
        if not PRONOUN.match(subject):
            subject = re.sub(r"\A(?:these|those|both|all)\s+", "", subject, flags=re.IGNORECASE)
        named = [] if PRONOUN.match(subject) or subject.lower() in ("this", "that", "") else things_in(subject)
        meant = last if _PLURAL.match(subject) else last[-1:]
        found += [(name.lower(), part) for name in named or meant]
    return found


def things_in(text: str) -> list[str]:
    """Return the things of a list, each as a phrase.

    "the jug, the black and white cup, and then a plate" gives three.
    """
    parts: list[str] = []
    if "," not in text:
        text = _GAP.sub(lambda m: m[0] if m[1].lower() in _FUNCTION else f"{m[1]}, ", text)
    for chunk in _LIST_COMMA.split(text.strip(" ,;.")):
        chunk = re.sub(r"\A(?:and|then)\s+", "", chunk.strip(" ,;."), flags=re.IGNORECASE)
        if not chunk:
            continue
        adjectives = bool(content(chunk)) and all(word in _ADJECTIVES for word in chunk.lower().split())
        if parts and (adjectives or _RELATIVE.match(chunk)):
            parts[-1] += f", {chunk}"
        else:
            parts += _split_and(chunk)
    return [part for part in parts if NOUN.search(part)]


def _split_and(chunk: str) -> list[str]:
    """Split "A and B", but not "the black and white cup".

    "a box with a lid and a handle" stays whole, too.
    """
    pieces: list[str] = []
    start = 0
    for match in _LIST_AND.finditer(chunk):
        left, right = chunk[start : match.start()].strip(), chunk[match.end() :].strip()
        words = left.lower().split()
        if _MODIFIED.search(left):
            split = bool(_DETERMINED.match(right))
        else:
            split = bool(right) and not (words and words[-1] in _ADJECTIVES)
        if split and left:
            pieces.append(left)
            start = match.end()
    return [*pieces, chunk[start:].strip()]


_FIRST = re.compile(r"(?:first(?:ly)?|start)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Placement:
    """One request: put things somewhere, one after the other.

    Attributes:
        things: phrases for the things, in order.
        place: where; None where the words do not say.
        inside: whether it is to go into the piece, not on it.
        together: whether the things are to be next to each other.
        beside: phrase of the thing or furniture they are to be next to; empty for none.
        source: where they are now, as far as it is said.
        arrange: whether the verb asks for an arrangement ("set up", "prepare"), so that a thing may be the name of one.
        sentence: which of the commands asks for it.
    """

    things: tuple[str, ...]
    place: PlaceMention | None
    inside: bool = False
    together: bool = False
    beside: str = ""
    beside_place: PlaceMention | None = None
    source: PlaceMention | None = None
    arrange: bool = False
    sentence: int = 0


@dataclasses.dataclass(frozen=True)
class Asked:
    """The content of one instruction.

    Attributes:
        placements: what is to be done, in order.
        descriptions: what is said of things, by their names in the text.
        preferences: sentences that tell how the user likes things.
        commands: the sentences that ask for something.
        requests: the same, each with the other sentences that follow it.
    """

    placements: tuple[Placement, ...]
    descriptions: tuple[tuple[str, str], ...]
    preferences: tuple[str, ...]
    commands: tuple[str, ...]
    requests: tuple[str, ...] = ()


class _Reader:
    """Reads the commands of one instruction; knows what was said last."""

    def __init__(self, words: PlaceWords):
        self.words = words
        self.placements: list[Placement] = []
        self.last: list[str] = []
        self.context: PlaceMention | None = None
        self.source: PlaceMention | None = None
        self.then = False
        self.number = -1
        self.headers: dict[int, PlaceMention] = {}

    def names(self, phrase: str) -> bool:
        """Return whether a phrase shares a word with a thing asked for.

        It does if nothing was asked for yet.
        """
        if not self.placements:
            return True
        words = {bare(phrase), *content(phrase)}
        things = (thing for one in self.placements for thing in (*one.things, one.beside) if thing)
        return any(words & {bare(thing), *content(thing)} for thing in things)

    def sentence(self, text: str) -> None:
        matches = list(VERB.finditer(text))
        self.number += 1
        self.then = bool(re.match(r"(?:then|after that|next|afterwards|finally|once)\b", text, re.IGNORECASE))
        if not matches:
            self.context = next(iter(self.words.find(text, bare=True)), self.context)
        for k, match in enumerate(matches):
            end = matches[k + 1].start() if k + 1 < len(matches) else len(text)
            verb = " ".join(match["verb"].lower().split())
            body = text[match.end() : end].strip(" ,;.!?")
            before = text[(matches[k - 1].end() if k else 0) : match.start("verb")]
            self.then = self.then or (k > 0 and bool(re.search(r"\bthen\b", before, re.IGNORECASE)))
            for part in self._parts(body):
                self.clause(verb, part)
                self.then = False

    def _parts(self, body: str) -> list[str]:
        """Split a request into parts with a place each.

        An example is "the doll on the bed, and the bear next to the doll".
        """
        for match in AND_ANOTHER.finditer(body):
            left, right = body[: match.start()], body[match.end() :]
            if any(m.relation != "from" for m in self.words.find(left)) and FIRST_BESIDE.match(right):
                return [left, *self._parts(right)]
        return [body]

    def clause(self, verb: str, body: str) -> None:
        body = REASON.sub("", body)
        together = bool(TOGETHER.search(body))
        marked = TOGETHER.sub(lambda m: " " * len(m[0]), body)
        mentions = self.words.find(marked)
        if verb in HEADERS and not any(m.relation != "from" for m in mentions if m.relation):
            self.context = next(iter(self.words.find(body, bare=True)), self.context)
            if self.context is not None:
                self.headers[self.number] = self.context
            if verb.startswith(("clean", "tidy")):
                self.source = self.context
            if verb != "put away":
                return
        beside, beside_place, marked = self._beside(marked, mentions)
        mentions = self.words.find(marked)
        groups: list[tuple[str, list[PlaceMention]]] = []
        at, cut = 0, False
        for mention in mentions:
            text = marked[at : mention.start]
            real = self._things(text) if content(text) or PRONOUN.match(text) else []
            if not groups or (real and cut and self._starts_new(text)):
                groups.append((text, []))
            elif real and not cut and not groups[-1][1]:
                groups[-1] = (groups[-1][0] + text, [])
            groups[-1][1].append(mention)
            cut = mention.relation != "from"
            at = mention.end
        if not groups:
            groups.append((marked, []))
        elif found := AND_THEN.match(marked[at:]):
            groups[-1] = (f"{groups[-1][0].strip(' ,')}, {found[1].strip()}", groups[-1][1])
        for text, places in groups:
            self._placement(verb, text, places, together, beside, beside_place)

    @staticmethod
    def _starts_new(text: str) -> bool:
        return bool(re.match(r"\s*+,?\s*+(?:and\s+)?(?:then\s+)?(?:the|a|an|my|our)\b", text, re.IGNORECASE))

    def _things(self, text: str) -> list[str]:
        return [phrase for phrase in things_in(text) if not self._is_place(phrase)]

    def _is_place(self, phrase: str) -> bool:
        return any(m.start == 0 and m.end >= len(phrase.strip()) for m in self.words.find(phrase.strip(), bare=True))

    def _beside(self, text: str, mentions: list[PlaceMention]) -> tuple[str, PlaceMention | None, str]:
        """Find what things shall be beside, and the text without it."""
        for mention in mentions:
            if mention.relation in ("next to", "beside", "near", "close to", "alongside"):
                blank = text[: mention.start] + " " * (mention.end - mention.start) + text[mention.end :]
                return text[mention.start : mention.end], dataclasses.replace(mention, relation="next to"), blank
        if match := BESIDE.search(text):
            later = [m.start for m in self.words.find(text) if m.start > match.end()]
            comma = re.search(r"[,;]|(?<!\s)\s+and\s+(?=the\b)", text[match.end() :])
            ends = [*later, len(text), *([match.end() + comma.start()] if comma else [])]
            phrase = text[match.end() : min(ends)].strip(" ,.")
            if content(phrase) or PRONOUN.match(phrase):
                return phrase, None, text[: match.start()] + " " * (min(ends) - match.start()) + text[min(ends) :]
        return "", None, text

    def _placement(
        self,
        verb: str,
        text: str,
        places: list[PlaceMention],
        together: bool,
        beside: str,
        beside_place: PlaceMention | None,
    ) -> None:
        there = bool(re.search(r"\b(?:there|here)\b", text, re.IGNORECASE))
        text = re.sub(r"(?:,|(?<!\s))\s*\b(?:too|as well|also)\s*\Z", "", text.strip(" ,"), flags=re.IGNORECASE)
        text = re.sub(r"\b(?:back|neatly|over|there|here|up)\s*\Z", "", text.strip(" ,"), flags=re.IGNORECASE)
        text = text.strip(" ,")
        pronoun = not NOUN.search(text) or bool(PRONOUN.match(text))
        if verb.startswith(("swap", "switch", "exchange")):
            text = re.sub(r"(?<!\s)\s+with\s+(?=the\b|my\b)", " and ", text, count=1)
        text = re.sub(r"\b(?:there|here)\b|\Ame\b", "", text, flags=re.IGNORECASE)
        meant = self.last if pronoun else self._things(text)
        if ALL_OF_THEM.match(text):
            meant = list(dict.fromkeys(thing for one in self.placements for thing in one.things)) or meant
        things = [self._as_before(thing) for thing in meant]
        beside = self._as_before(beside)
        sources = [place for place in places if place.relation == "from"]
        goals = [place for place in places if place.relation != "from"]
        if len(goals) > 1 and goals[-1].relation in TOWARDS and goals[0].relation not in TOWARDS:
            sources, goals = goals[:1], goals[1:]  # "move the cup on the table to the bedroom"
        place = self._merged(goals) or (self.context if there else None)
        if verb in LEAVE and place is None:
            return
        if things and not (verb in HEADERS and VAGUE.match(text)):
            inside = any(goal.relation in ("in", "into", "inside", "within") and goal.piece for goal in goals)
            source = sources[0] if sources else self.source
            asked = Placement(
                tuple(things), place, inside=inside, together=together, beside=beside, beside_place=beside_place,
                source=source, arrange=verb in ARRANGE, sentence=self.number,
            )  # fmt: skip
            self._add(asked, pronoun)
            both = [beside] if beside and beside_place is None and not PRONOUN.match(beside) else []
            self.last = [*things, *(b for b in both if b not in things)]
        elif not things and place is not None:
            self.headers[self.number] = place
        self.context = place or self.context

    def _as_before(self, phrase: str) -> str:
        """Return earlier words for the same thing, apart from the article.

        After "my jug", "the jug" gives "my jug".
        """
        known = [one for placement in self.placements for one in placement.things]
        same = [one for one in known if bare(one) == bare(phrase)]
        return same[-1] if same else phrase

    @staticmethod
    def _merged(goals: list[PlaceMention]) -> PlaceMention | None:
        """Return the last furniture named, in the room named with it.

        An example is "to the bedroom, on the bed".
        """
        pieces = [goal for goal in goals if goal.piece]
        rooms = [goal for goal in goals if not goal.piece]
        if pieces:
            piece = pieces[-1]
            return dataclasses.replace(piece, room=rooms[-1].room) if rooms and not piece.room else piece
        return rooms[-1] if rooms else None

    def _add(self, asked: Placement, pronoun: bool) -> None:
        """Add a placement, or extend earlier ones if it means their things."""
        rooms = [i for i, one in enumerate(self.placements) if set(one.things) >= set(asked.things)]
        merging = rooms and rooms[-1] == len(self.placements) - 1 and self.placements[-1].things == asked.things
        if rooms and not merging and self._within(self.placements[rooms[-1]], asked):
            asked = self._narrowed(rooms[-1], asked)
        names, before = set(asked.things), self.placements[-1] if self.placements else None
        if before is None or not (names >= set(before.things) or (pronoun and set(before.things) & names)):
            self.placements.append(asked)
        elif asked.place is None:
            self._say_more(before, asked)
        elif before.place is None or self._refines(before.place, asked.place, len(asked.things)):
            self._refine(before, asked)
        else:
            self.placements.append(dataclasses.replace(asked, source=None))

    def _say_more(self, before: Placement, asked: Placement) -> None:
        """Add what the last things are to be next to.

        An example is "place them next to each other".
        """
        names = set(asked.things)
        reach = 1 if set(before.things) >= names else len(names)
        for i, one in enumerate(self.placements):
            if set(one.things) & names and i >= len(self.placements) - reach:
                self.placements[i] = dataclasses.replace(
                    one,
                    together=one.together or asked.together,
                    beside=one.beside or asked.beside,
                    beside_place=one.beside_place or asked.beside_place,
                )
        if asked.together and self.placements[-1].things != asked.things:
            self._gather(asked)

    def _refines(self, old: PlaceMention, place: PlaceMention, count: int) -> bool:
        """Return whether a place says more of the one before.

        It does as the same piece, or as a piece after its room.
        """
        if place.piece == old.piece and (not place.room or place.room == old.room) and not place.other:
            return True
        room_first = not old.piece and bool(place.piece) and place.room in ("", old.room)
        return room_first and not (self.then and count > 1)

    def _refine(self, before: Placement, asked: Placement) -> None:
        """Both as one placement."""
        place, old = asked.place, before.place
        if place is not None and old is not None:
            place = dataclasses.replace(
                place, room=place.room or old.room, other=place.other or old.other, hint=place.hint or old.hint
            )
        mutual = bool(before.beside) and before.beside in asked.things
        self.placements[-1] = dataclasses.replace(
            before,
            things=asked.things if set(asked.things) > set(before.things) else before.things,
            place=place,
            inside=asked.inside or before.inside,
            together=before.together or asked.together or mutual,
            beside=asked.beside or ("" if before.beside in asked.things else before.beside),
            beside_place=asked.beside_place or before.beside_place,
            source=before.source or asked.source,
        )

    @staticmethod
    def _within(before: Placement, asked: Placement) -> bool:
        """Return whether a place may lie in the room asked for before."""
        room, place = before.place, asked.place
        return bool(room and not room.piece and place and place.piece and place.room in ("", room.room))

    def _narrowed(self, number: int, asked: Placement) -> Placement:
        """Take things for a piece out of the move to its room.

        They stay if one move follows the other.
        """
        before = self.placements[number]
        assert asked.place is not None  # as `_within` says
        assert before.place is not None
        if not self.then:
            rest = tuple(thing for thing in before.things if thing not in asked.things)
            self.placements[number : number + 1] = [dataclasses.replace(before, things=rest)] if rest else []
        place = dataclasses.replace(asked.place, room=before.place.room)
        return dataclasses.replace(asked, place=place, source=asked.source or before.source)

    def _gather(self, asked: Placement) -> None:
        """Join placements of one thing each if their place is the same."""
        tail = [one for one in self.placements if set(one.things) <= set(asked.things)]
        if len(tail) > 1 and len({one.place and (one.place.piece, one.place.room) for one in tail}) == 1:
            kept = [one for one in self.placements if one not in tail]
            things = tuple(thing for one in tail for thing in one.things)
            self.placements = [*kept, dataclasses.replace(tail[0], things=things, together=True)]

    def assigned(self, descriptions: Sequence[tuple[str, str]], told: bool) -> list[tuple[str, str]]:
        """Descriptions, each with the name that its thing was asked for by.

        What is called otherwise ("the train" for a toy vehicle) is one of the things that no other description is of,
        where it shares a word with it, or where as many are left of both. It is passed over where the user tells
        nothing else (`told`), since it may be about something else altogether.
        """
        things = list(dict.fromkeys(thing for one in self.placements for thing in one.things))
        known = [(name, what) for name, what in descriptions if any(called(name, thing) for thing in things)]
        others = list(dict.fromkeys(name for name, what in descriptions if (name, what) not in known))
        others = [name for name in others if not self._is_place(name)]
        named = [name for name, what in known if not BY_PRONOUN.match(what)]
        left = [thing for thing in things if not any(called(name, thing) for name in named)]
        names: dict[str, str] = {}
        for name in others:
            alike = [thing for thing in left if set(content(name)) & set(content(thing))]
            if len(alike) == 1:
                names[name] = alike[0]
        rest = [name for name in others if name not in names]
        left = [thing for thing in left if thing not in names.values()]
        if (known or names or told) and len(left) == len(rest):
            names |= dict(zip(rest, left))
        told_of = [(names.get(name, name), what) for name, what in descriptions]
        return [(name, what) for name, what in told_of if self.names(name)]

    def in_detail(self, commands: Sequence[str]) -> tuple[Placement, ...]:
        """Drop placements that only announce what the next sentence says.

        An example is "set up a party in the hall". What is announced for a room happens in it.
        """
        said: list[Placement] = []
        for one in self.placements:
            number = one.sentence + 1
            told = any(other.sentence == number for other in self.placements)
            vague = VAGUE.match(one.things[0]) or (one.arrange and not (one.place and one.place.piece))
            if vague and told and not CONNECTED.match(commands[number]):
                if one.place is not None:
                    self.headers[one.sentence] = one.place
            else:
                said.append(one)
        return tuple(self._at_home(one, commands) for one in said)

    def _at_home(self, one: Placement, commands: Sequence[str]) -> Placement:
        """Return a placement with the announced room where its furniture names none."""
        number = one.sentence
        while number not in self.headers and number > 0:
            if CONNECTED.match(commands[number]) and not _FIRST.match(commands[number - 1]):
                return one
            number -= 1
        home, place = self.headers.get(number), one.place
        if home is None or not home.room or place is None or not place.piece or place.room:
            return one
        place = dataclasses.replace(place, room=home.room, hint=place.hint or home.hint * (home.piece == place.piece))
        rooms = self.words.rooms(place)
        there = any(self.words.view.room_of(piece) in rooms for piece in self.words.pieces(place))
        return dataclasses.replace(one, place=place) if there else one


def read_instruction(text: str, words: PlaceWords) -> Asked:
    """Read an instruction in the words of one house."""
    reader = _Reader(words)
    descriptions: list[tuple[str, str]] = []
    preferences: list[str] = []
    commands: list[str] = []
    requests: list[str] = []
    for sentence in sentences(legible(text)):
        if request := request_in(sentence):
            reader.sentence(request)
            commands.append(request)
            requests.append(request)
            continue
        found = described(sentence, reader.last) if is_description(sentence) else []
        descriptions += found
        if not found and HABIT.search(sentence):
            preferences.append(sentence)
        tells = any(reader.names(name) for name, _ in found) or HABIT.search(sentence)
        if requests and (tells or all(map(VAGUE.match, reader.last))):  # "get things ready": for what, is to come
            requests[-1] += f" {sentence}"
    descriptions = reader.assigned(descriptions, bool(preferences))
    return Asked(reader.in_detail(commands), tuple(descriptions), tuple(preferences), tuple(commands), tuple(requests))
