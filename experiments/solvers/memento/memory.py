"""Goals of MEMENTO's tasks: what instruction, memories and the user's profile say is to be moved where.

    moves = moves_of(read_instruction(text, words))
    moves[0].thing.phrase, moves[0].place
    parts = recall(instruction, read_instruction(instruction, words), words, memories, profile, embedder)

A `Thing` is what words and memory say of one object; which object of the house it is, the agent finds out. An
instruction that says all by itself is taken at its word. Otherwise each of its sentences is compared with the
memories, neighbouring sentences preferring the same one. What the sentence leaves open comes from the memory: things
("my lucky pen"), their looks, places, order. What it says itself (another place, fewer things) holds. Whether a
remembered task was fulfilled is not known: what was moved is believed to be what was meant.

A routine of the user's profile is something to do; a name is not: it says which thing is meant by a request that says
itself what to do. A routine from a task whose memory is at hand is left out: the profile has it from there, with less.

Source: MEMENTO D.1 (knowledge of two types). Deviation: the profile stands behind the memories, not beside them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from embodied_mem.memory.embedders import Embedder
from embodied_mem.memory.knowledge import OBJECT_SEMANTICS
from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.traces.trace import (
    HELD,
    Trace,
    parse_action,
    parse_description,
    parse_objects,
    succeeded,
)

from .reading import (
    CONNECTED,
    Asked,
    PlaceMention,
    PlaceWords,
    content,
    core_of,
    is_plural,
    kind_of,
    kind_score,
    read_instruction,
    same_thing,
    says_more,
    sentences,
    stem,
)


@dataclasses.dataclass(eq=False)
class Thing:
    """One object that is meant.

    Attributes:
        phrase: how it is called.
        said: sentences about it, descriptions and personal facts.
        captions: how the world described it in a memory.
        kind: its category, where a memory tells.
        start: piece it was found on in a memory.
        start_room: room it was found in in a memory.
        name: its name here, once the agent has decided.
        known: whether what is meant is clear from words or memory.
        sought: whether rooms are explored for it of which neither words nor memory speak.
    """

    phrase: str
    said: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    kind: str = ""
    start: str = ""
    start_room: str = ""
    name: str = ""
    known: bool = True
    sought: bool = True

    def text(self) -> str:
        """Return all words about it."""
        return " ".join((self.phrase, *self.said, *self.captions, self.kind))


@dataclasses.dataclass(eq=False)
class Move:
    """One thing to be put somewhere.

    Attributes:
        place, inside, beside_place, source, arrange: as of `Placement`.
        beside: thing it is to be next to.
        carry: enough to carry it there, since it goes on from there.
        piece: the piece a memory used.
        group: number of the request; things of one request go to one piece.
        part: number of the part of the instruction that it belongs to.
    """

    thing: Thing
    place: PlaceMention | None
    inside: bool = False
    beside: Thing | None = None
    beside_place: PlaceMention | None = None
    source: PlaceMention | None = None
    carry: bool = False
    piece: str = ""
    group: int = 0
    arrange: bool = False
    part: int = 0


def fit(thing: Thing, other: Thing) -> float:
    """Score a phrase by a thing's category and words, in [0, 2]."""
    kind = max(kind_score(thing.phrase, other.kind or core_of(other.phrase)), 0.0) / 3
    own = set(content(thing.phrase)) - set(content(other.kind or core_of(other.phrase)))
    has = set(content(other.text()))
    return kind + (len(own & has) / len(own) if own else 0.0)


def moves_of(asked: Asked) -> list[Move]:
    """Return the moves that an instruction asks for, in order."""
    things: list[Thing] = []

    def thing(phrase: str) -> Thing:
        core = core_of(phrase)
        for known in things:
            if core_of(known.phrase) == core or phrase == known.phrase:
                return known
        said = [what for name, what in asked.descriptions if core_of(name) == core or same_thing(name, phrase)]
        if not said:
            last = content(core)[-1:]
            said = [what for name, what in asked.descriptions if content(name)[-1:] == last]
        things.append(Thing(phrase, tuple(dict.fromkeys(said))))
        return things[-1]

    moves: list[Move] = []
    for number, asked_for in enumerate(asked.placements):
        previous: Thing | None = None
        for phrase in asked_for.things:
            one = thing(phrase)
            beside = thing(asked_for.beside) if asked_for.beside and asked_for.beside_place is None else None
            if asked_for.together and previous is not None:
                beside = previous
            same = {name: getattr(asked_for, name) for name in ("place", "inside", "beside_place", "source", "arrange")}
            moves.append(Move(one, beside=beside if beside is not one else None, group=number, **same))
            previous = one
    return with_carries(moves)


def with_carries(moves: list[Move]) -> list[Move]:
    """Mark moves to a room that the same thing leaves at once."""
    for i, move in enumerate(moves):
        alone = sum(other.group == move.group for other in moves) == 1
        onward = i + 1 < len(moves) and moves[i + 1].thing is move.thing
        move.carry = bool(alone and onward and move.place is not None and not move.place.piece)
    return moves


@dataclasses.dataclass(eq=False)
class Remembered:
    """One memory, understood.

    Attributes:
        label: what it was about, in short.
        parts: its sentences.
        moves: what was to be done, with what the steps tell.
        asked: the instruction, read.
        kinds: categories of the objects that were seen.
        prior: added to its likeness with a request.
        has_steps: whether it was done once; what the user's profile says was only told.
    """

    label: str
    parts: tuple[str, ...]
    moves: list[Move]
    asked: Asked
    kinds: frozenset[str] = frozenset()
    prior: float = 0.0
    has_steps: bool = True

    def words(self) -> list[str]:
        """Stems of all its words."""
        return content(" ".join(self.parts))

    def things(self) -> list[Thing]:
        """List its things, each once, in order."""
        return list(dict.fromkeys(move.thing for move in self.moves))


_MOVED = re.compile(
    r"\b(?:moved|put|placed|took|brought)\s+(?P<name>\w[\w -]{,60}?_\d+)"
    r"(?:\s*\((?P<caption>[^()]*(?:\([^()]*\)[^()]*)*)\))?"
    r"(?:\s+from\s+(?P<start>\w+_\d+))?\s+(?P<relation>onto|into|on|in|to)\s+(?P<piece>\w+_\d+)"
    r"(?:\s+next\s+to\s+(?P<beside>\w[\w -]{,60}?_\d+))?",
    re.IGNORECASE,
)
"""A move in a summary with exact names: moved vase_2 (a white vase) from table_1 onto shelves_4 next to lamp_0."""


class _Placed(NamedTuple):
    name: str
    relation: str
    piece: str
    beside: str


@dataclasses.dataclass
class _Steps:
    """The content of a trace's turns."""

    captions: dict[str, str] = dataclasses.field(default_factory=dict)
    starts: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    picked: list[str] = dataclasses.field(default_factory=list)
    placed: list[_Placed] = dataclasses.field(default_factory=list)


def _read_steps(trace: Trace, words: PlaceWords) -> _Steps:
    found = _Steps()
    view = words.view
    seen: dict[str, dict[str, str]] = {}
    for step in trace.steps:
        for name, (place, room) in parse_objects(step.observation).items():
            if place != HELD and view.room_of(place) == room:
                seen.setdefault(name, {}).setdefault(place, room)
        if described := parse_description(step.observation):
            found.captions[described[0]] = described[1]
        action, arguments = parse_action(step.action)
        if not succeeded(step.observation):
            continue
        if action == "Pick":
            found.picked.append(arguments[0])
        elif action == "Place" and len(arguments) == 5 and view.room_of(arguments[2]):
            found.placed.append(_Placed(arguments[0], arguments[1], arguments[2], arguments[4]))
    ends = {(one.name, one.piece) for one in found.placed}
    for name, places in seen.items():  # the steps may be out of order: where it was not put, it was before
        start = next((place for place in places if (name, place) not in ends), next(iter(places)))
        found.starts[name] = (start, places[start])
    for said in _MOVED.finditer(trace.note):
        if said["caption"]:
            found.captions[said["name"]] = said["caption"]
        if said["start"] and view.room_of(said["start"]) and said["name"] not in found.picked:
            found.starts[said["name"]] = (said["start"], view.room_of(said["start"]))
        found.picked.append(said["name"])
        relation = "within" if said["relation"].lower() in ("in", "into") else "on"
        if view.room_of(said["piece"]):
            found.placed.append(_Placed(said["name"], relation, said["piece"], said["beside"] or "None"))
    return found


def remembered(trace: Trace, words: PlaceWords) -> Remembered:
    """Return a memory as goals, read from words or else from steps."""
    asked = read_instruction(trace.instruction, words)
    note = read_instruction(trace.note, words) if trace.note else None
    if note is not None:
        asked = dataclasses.replace(
            asked,
            placements=asked.placements or note.placements,
            descriptions=asked.descriptions + note.descriptions,
            preferences=asked.preferences + note.preferences,
        )
    steps = _read_steps(trace, words)
    moves = moves_of(asked) or _moves_from(steps, words)
    _ground(moves, steps)
    parts = (*sentences(trace.instruction), *sentences(trace.note))
    kinds = {kind_of(name) for name in steps.starts} | {core_of(move.thing.phrase) for move in moves}
    return Remembered(trace.instruction[:90], parts, moves, asked, frozenset(kinds))


def _moves_from(steps: _Steps, words: PlaceWords) -> list[Move]:
    things: dict[str, Thing] = {}
    moves: list[Move] = []
    for name, relation, piece, beside in steps.placed:
        thing = things.setdefault(name, Thing(kind_of(name)))
        kind = "floor" if piece.startswith("floor_") else kind_of(piece)
        place = PlaceMention(relation, kind, kind_of(words.view.room_of(piece)))
        moves.append(Move(thing, place, relation == "within", things.get(beside), group=len(moves)))
    return with_carries(moves)


def _ground(moves: list[Move], steps: _Steps) -> None:
    """Add each thing's remembered object, places and look."""
    used: set[str] = set()
    names = list(dict.fromkeys([*(one.name for one in steps.placed), *steps.picked]))

    def fitting(thing: Thing, names: Iterable[str], least: float) -> list[str]:
        return [name for name in names if name not in used and kind_score(thing.phrase, kind_of(name)) >= least]

    for thing in dict.fromkeys(move.thing for move in moves):
        fits = fitting(thing, names, 2) or fitting(thing, names, 1)
        if not fits and len(seen := fitting(thing, steps.starts, 2)) == 1:
            fits = seen
        if not fits:
            continue
        name = fits[0]
        used.add(name)
        thing.kind = kind_of(name)
        thing.start, thing.start_room = steps.starts.get(name, ("", ""))
        if name in steps.captions:
            thing.captions = (steps.captions[name],)
        spots = [one.piece for one in steps.placed if one.name == name]
        inside = {one.piece for one in steps.placed if one.relation == "within"}
        mine = [move for move in moves if move.thing is thing and not move.carry]
        for move in mine:
            kind = move.place.piece if move.place is not None else ""
            right = [spot for spot in spots if not kind or kind == kind_of(spot) or spot.startswith(f"{kind}_")]
            if right and (kind or len(mine) == 1):
                move.piece = right[0] if len(mine) > 1 else right[-1]  # it may have been put somewhere else first
                move.inside = move.inside or move.piece in inside
                spots.remove(move.piece)


_MOST = 5
_BEHIND = -0.1
SURE = 1.2
"""Least fit of a phrase to the thing that it means."""


@dataclasses.dataclass(frozen=True)
class Called:
    """Things under what the user calls them."""

    alias: str
    things: tuple[Thing, ...]


@dataclasses.dataclass(frozen=True)
class Told:
    """The profile's knowledge about an instruction.

    Attributes:
        patterns: routines and arrangements, as remembered tasks without steps.
        called: the user's names for things.
    """

    patterns: tuple[Remembered, ...] = ()
    called: tuple[Called, ...] = ()

    def things(self) -> list[Thing]:
        """Return all things that have a name."""
        return [thing for one in self.called for thing in one.things]

    def named(self, asked: Asked) -> Asked:
        """Replace a user's name ("my tea set") by its things."""
        placements, looks = [], list(asked.descriptions)
        for placement in asked.placements:
            phrases: list[str] = []
            for phrase in placement.things:
                group = self._group(phrase)
                phrases += [thing.phrase for thing in group] or [phrase]
                looks += [(thing.phrase, text) for thing in group for text in thing.said]
            placements.append(dataclasses.replace(placement, things=tuple(phrases)))
        return dataclasses.replace(asked, placements=tuple(placements), descriptions=tuple(looks))

    def _group(self, phrase: str) -> tuple[Thing, ...]:
        """Find the things of a name in a phrase, even in part."""
        said = set(content(core_of(phrase)))
        for one in self.called:
            kinds = set(content(" ".join(thing.phrase for thing in one.things)))
            if said - kinds and said <= set(content(one.alias)):
                return one.things
        return ()

    def look_up(self, thing: Thing) -> Thing | None:
        """Return the thing named best by a phrase; None if unsure."""
        best = max(self.things(), key=lambda other: fit(thing, other), default=None)  # the first of equals
        return best if best is not None and fit(thing, best) >= SURE else None


def told_of(instruction: str, words: PlaceWords, profile: UserProfile | None, memories: Sequence[Trace]) -> Told:
    """Return what the profile says about an instruction, beside these memories."""
    patterns, called = [], []
    at_hand = {memory.episode_id for memory in memories}
    for item in profile.recall(instruction, _MOST) if profile is not None else ():
        alias, told_at_hand = item.data["alias"], at_hand & {str(source.episode) for source in item.sources}
        if item.data["subtype"] == OBJECT_SEMANTICS:
            called.append(Called(alias, tuple(_thing(name, alias) for name in item.data["things"])))
        elif not told_at_hand and (one := _pattern(item.data, words)) is not None:
            patterns.append(one)
    return Told(tuple(patterns), tuple(called))


def _thing(name: str, alias: str = "") -> Thing:
    bare, _, look = name.partition(" (")
    return Thing(bare, tuple(text for text in (look.removesuffix(")"), alias) if text))


def _pattern(data: Mapping[str, Any], words: PlaceWords) -> Remembered | None:
    """Return a routine as a remembered task; None without a placement."""
    alias = data["alias"]
    sentences, looks = [], []
    for name, relation, location in data["steps"]:
        bare, _, look = name.partition(" (")
        article = "" if location.lower().startswith("another ") else "the "
        sentences.append(f"Place the {bare} {relation if relation in ('next to', 'in') else 'on'} {article}{location}.")
        looks += [f"The {bare} is {look.removesuffix(')')}."] if look else []
    asked = read_instruction(" ".join(dict.fromkeys([*sentences, *looks])), words)
    moves = moves_of(asked)
    if not moves:
        return None
    texts = (alias, data["description"])
    return Remembered(f"the user's {alias}", texts, moves, asked, prior=_BEHIND, has_steps=False)


_OPEN = re.compile(
    r"\b(?:usual(?:ly)?|as I (?:like|prefer|do|always)|where I|how I|like I|the way I"
    r"|my (?:favou?rite )?\w+(?: \w+)? (?:setup|routine|spot|area))\b",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"\b(?:my|mine|gift|gifted|favou?rite|souvenir|heirloom|family|keepsake|lucky|special)\b", re.IGNORECASE
)
_LIGHT = frozenset(stem(w) for w in ("arrange", "organize", "setup", "prepare", "decorate", "enhance", "tidy", "room"))
_MAX_UNKNOWN = 2
_SWITCH, _TAKEN, _CUE, _PLACE = 0.12, 0.3, 0.08, 0.08


@dataclasses.dataclass
class Part:
    """Some sentences of an instruction that are about one thing.

    Attributes:
        moves: what is wanted, as far as is known.
        notes: what is to be said about it.
        others: other memories that may be meant, best first.
        source: the memory that says what is wanted; None for words alone.
    """

    moves: list[Move]
    notes: list[str]
    others: list[Callable[[], Part]] = dataclasses.field(default_factory=list)
    source: Remembered | None = None


def recall(
    instruction: str,
    asked: Asked,
    words: PlaceWords,
    memories: Sequence[Trace],
    profile: UserProfile | None,
    embedder: Embedder | None,
) -> list[Part]:
    """List an instruction's wanted moves, part by part; memories come best first.

    Without an embedder sentences are compared by words alone.
    """
    plain = moves_of(asked)
    told = bool(asked.descriptions or asked.preferences)
    if told and any(move.place is not None or move.beside is not None for move in plain):
        return [Part(plain, [])]
    known = [remembered(trace, words) for trace in memories]
    for rank, one in enumerate(known):
        one.prior = -0.01 * rank
    user = told_of(instruction, words, profile, memories)
    known = [one for one in [*known, *user.patterns] if one.moves]
    names = _names(known)
    for one in known:
        _call(one.moves, names)
    if not known or not asked.commands:
        return [_Request(asked, range(len(asked.commands)), words, [], user, names).by_words()]
    scores = _likeness(asked.requests, known, words, embedder)
    chosen = _assign(scores, asked.commands)
    parts = []
    for best, group in itertools.groupby(range(len(chosen)), key=chosen.__getitem__):
        numbers = list(group)
        request = _Request(asked, numbers, words, known, user, names)
        total = [sum(scores[i][j] for i in numbers) / len(numbers) for j in range(len(known))]
        first, *others = sorted(range(len(known)), key=lambda j: (j != best, -total[j]))
        part = request.resolve(known[first])
        part.others = [functools.partial(request.resolve, known[j]) for j in others]
        parts.append(part)
    return parts


def _names(known: Sequence[Remembered]) -> dict[tuple[str, str, str], Counter[str]]:
    """Return memories' pieces for a qualified place ("the dining table")."""
    names: dict[tuple[str, str, str], Counter[str]] = {}
    for one in known:
        for move in one.moves:
            if move.place is not None and move.place.hint and move.piece:
                names.setdefault(move.place.name, Counter())[move.piece] += 1
    return names


def _call(moves: Sequence[Move], names: dict[tuple[str, str, str], Counter[str]]) -> None:
    """Take the piece that most memories took for a place, if unique."""
    for move in moves:
        if move.place is not None and (votes := names.get(move.place.name)):
            most = [piece for piece, count in votes.items() if count == max(votes.values())]
            move.piece = most[0] if len(most) == 1 else ""


def _unknown(thing: Thing) -> str:
    thing.known = False
    return f"I do not know which object '{thing.phrase}' is: nothing that I remember says it. I take the best guess."


def _assign(scores: list[list[float]], commands: Sequence[str]) -> list[int]:
    """Choose each sentence's memory; an unannounced change has a price.

    So has a request that is announced as another one, for a memory that one before it has taken. A sentence that only
    says more of what was named before ("place them next to each other") is about the same memory.
    """
    rows: dict[tuple[int, frozenset[int]], tuple[float, list[int]]] = {
        (j, frozenset([j])): (score, [j]) for j, score in enumerate(scores[0])
    }
    for row, sentence in zip(scores[1:], commands[1:]):
        announced, more = bool(CONNECTED.match(sentence)), says_more(sentence)
        longer: dict[tuple[int, frozenset[int]], tuple[float, list[int]]] = {}
        for (last, taken), (total, path) in rows.items():
            for j, score in enumerate(row):
                if more and j != last:
                    continue
                price = (_TAKEN if j in taken else 0.0) if announced else (_SWITCH if j != last else 0.0)
                key, value = (j, taken | {j}), total if more else total + score - price
                if key not in longer or value > longer[key][0]:
                    longer[key] = value, [*path, j]
        rows = longer
    return max(rows.values(), key=lambda found: found[0])[1]


def _likeness(
    commands: Sequence[str], known: list[Remembered], words: PlaceWords, embedder: Embedder | None
) -> list[list[float]]:
    """Compare sentences with memories: rare words, meaning, places, kind of request."""
    bags = [set(one.words()) for one in known]
    counts = Counter(word for bag in bags for word in bag)
    rarity = {word: math.log((len(bags) + 1) / (count + 0.3)) for word, count in counts.items()}
    cosines = _cosines(commands, known, embedder)
    rows = []
    for i, sentence in enumerate(commands):
        said = list(dict.fromkeys(content(sentence)))
        described = len(said) > 9
        mentions = [m for m in words.find(sentence) if m.relation != "from"]
        weights = [rarity.get(w, math.log(len(bags) + 1) * 0.7) * (0.2 if w in _LIGHT else 1.0) for w in said]
        row = []
        for j, (one, bag) in enumerate(zip(known, bags)):
            hits = sum(w * _match(word, bag) for word, w in zip(said, weights))
            score = hits / sum(weights) if sum(weights) > 0 else 0.0
            cue = _CUE if described == bool(one.asked.descriptions) else 0.0
            place = _PLACE * _agreement(mentions, one, words)
            row.append(score + cosines[i][j] + cue + place + one.prior)
        rows.append(row)
    return rows


def _agreement(mentions: Sequence[PlaceMention], one: Remembered, words: PlaceWords) -> float:
    """Score the fit of named places with a memory's, in [-1, 1]."""
    if not mentions:
        return 0.0
    agree = [[agrees(m, move, words) for move in one.moves] for m in mentions]
    return sum(any(row) + sum(row) / len(row) - 1 for row in agree) / len(agree)


def _match(word: str, bag: set[str]) -> float:
    if word in bag:
        return 1.0
    near = any(len(other) >= 4 and (word.startswith(other) or other.startswith(word)) for other in bag)
    return 0.5 if near and len(word) >= 4 else 0.0


def _cosines(commands: Sequence[str], known: list[Remembered], embedder: Embedder | None) -> list[list[float]]:
    if embedder is None:
        return [[0.0] * len(known) for _ in commands]
    parts = [list(dict.fromkeys([" ".join(one.parts), *one.parts])) for one in known]
    texts = [text for group in parts for text in group]
    vectors = embedder.embed([*commands, *texts])
    cosines = vectors[: len(commands)] @ vectors[len(commands) :].T
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    rows: list[list[float]] = np.maximum.reduceat(cosines, starts, axis=1).tolist()
    return rows


def agrees(mention: PlaceMention, move: Move, words: PlaceWords) -> bool:
    """Return whether a named place may be a remembered move's."""
    place = move.beside_place if mention.relation == "next to" and move.beside_place else move.place
    if place is None:
        return True
    if mention.piece and mention.piece != place.piece:
        return False
    if not mention.room or not place.room or mention.room == place.room:
        return True
    return bool(set(words.pieces(mention)) & set(words.pieces(place))) if mention.piece else False


class _Request:
    """Some sentences of an instruction that are about one memory."""

    def __init__(
        self,
        asked: Asked,
        numbers: Sequence[int],
        words: PlaceWords,
        known: list[Remembered],
        user: Told,
        names: dict[tuple[str, str, str], Counter[str]],
    ):
        placements = tuple(p for p in asked.placements if p.sentence in numbers)
        self.text = " ".join(asked.requests[i] for i in numbers)
        self.words = words
        self.known = known
        self.user = user
        asked = dataclasses.replace(asked, placements=placements)
        self.moves = moves_of(asked)
        self.named = user.named(asked)
        self.names = names
        self.mentions = [m for m in words.find(self.text) if m.relation != "from" and self._exists(m)]

    def _exists(self, mention: PlaceMention) -> bool:
        return bool(self.words.pieces(mention) if mention.piece else self.words.rooms(mention))

    def resolve(self, one: Remembered) -> Part:
        """Moves and notes, with what one memory says."""
        if not one.has_steps and self._is_complete():
            return self.by_words()
        pairs = [(thing, _aligned(thing, one)) for thing in dict.fromkeys(move.thing for move in self.moves)]
        placed = [move for move in self.moves if move.place is not None]
        named = {move.thing for move in placed}
        strange = [thing for thing, found in pairs if not found and thing in named and self._concrete(thing, one)]
        if placed and strange and not any(found for _, found in pairs):
            if not _OPEN.search(self.text):
                return self.by_words()
            strange = []  # "my decorations, where I like them": what they are, memory says
        known = {thing for _, found in pairs for thing in found}
        if known:  # "my tea set, the jug and the cup" is no third thing, nor is what may be the one left
            rest = set(one.things()) - known
            strange = [thing for thing in strange if not is_plural(thing.phrase)]
            strange = [] if len(strange) == len(rest) else strange
        note = f"I remember the task '{one.label}...' and do it as then."
        if all(any(agrees(m, move, self.words) for move in one.moves) for m in self.mentions):
            return Part([*self._subset(one, pairs), *self._extra(strange)], [note], source=one)
        if placed and all(found for _, found in pairs) and all(len(found) == 1 for _, found in pairs):
            for thing, found in pairs:
                _enrich(thing, found[0])
            return Part(self.moves, [f"I remember the task '{one.label}...'; where things go is new."], source=one)
        note = f"I remember the task '{one.label}...'; this time in another place."
        return Part(self._elsewhere(one), [note], source=one)

    def _concrete(self, thing: Thing, one: Remembered) -> bool:
        """Tell an object's phrase from a remembered arrangement ("my reading setup")."""
        if any(kind_score(thing.phrase, kind) >= 2 for other in self.known for kind in other.kinds):
            return True
        arrange = any(move.thing is thing and move.arrange for move in self.moves)
        return not arrange and not set(content(core_of(thing.phrase))) & set(one.words())

    def _subset(self, one: Remembered, pairs: list[tuple[Thing, list[Thing]]]) -> list[Move]:
        """Return the remembered moves, only the named things' if all are named."""
        said = set(content(self.text))
        meant = {found for _, group in pairs for found in group}
        meant |= {thing for thing in one.things() if thing.kind and stem(thing.kind.split()[-1]) in said}
        named = bool(pairs) and all(len(group) == 1 and not is_plural(thing.phrase) for thing, group in pairs)
        placed = all(move.place is not None for move in self.moves)
        if named and placed and self.mentions and not _OPEN.search(self.text) and len(meant) < len(one.things()):
            return [move for move in one.moves if move.thing in meant]
        return list(one.moves)

    def _extra(self, strange: list[Thing]) -> list[Move]:
        """Return moves of things that the memory does not know."""
        extra = [move for move in self.moves if move.thing in strange and move.place is not None]
        for move in extra:
            move.thing.sought = self._look_up(move.thing)
        return extra

    def _look_up(self, thing: Thing) -> bool:
        """Add what memories, or else the user, say of a thing."""
        others = [other for one in self.known for other in one.things()]
        best = max(others, key=lambda other: fit(thing, other), default=None)  # the first of equals
        if best is None or fit(thing, best) < SURE:
            best = self.user.look_up(thing)
        if best is None:
            return False
        _enrich(thing, best)
        return True

    def by_words(self) -> Part:
        """Return the words' own moves with known facts of their things."""
        moves = moves_of(self.named)
        _call(moves, self.names)
        things = dict.fromkeys(move.thing for move in moves)
        lost = [thing for thing in things if not self._look_up(thing) and _PERSONAL.search(thing.phrase)]
        return Part(moves, [_unknown(thing) for thing in lost][:_MAX_UNKNOWN])

    def _is_complete(self) -> bool:
        """Return whether the words alone place each thing."""
        moves = moves_of(self.named)
        placed = all((move.place is not None or move.beside is not None) and not move.arrange for move in moves)
        return bool(moves) and placed and (bool(self.named.descriptions) or not _OPEN.search(self.text))

    def _elsewhere(self, one: Remembered) -> list[Move]:
        """Return the remembered moves with newly named places."""
        new = [m for m in self.mentions if not any(agrees(m, move, self.words) for move in one.moves)][-1]
        last = {move.thing: move for move in one.moves}
        moves = []
        for move in one.moves:
            if last[move.thing] is not move:
                continue
            place = new
            if not new.piece and move.place is not None:
                place = dataclasses.replace(move.place, room=new.room, other=False, hint="")
                place = place if self._exists(place) and self._in_room(place) else new
            moves.append(dataclasses.replace(move, place=place, piece="", inside=move.inside and not new.piece))
        return moves

    def _in_room(self, place: PlaceMention) -> bool:
        rooms = self.words.rooms(place)
        return any(self.words.view.room_of(piece) in rooms for piece in self.words.pieces(place))


def _aligned(thing: Thing, one: Remembered) -> list[Thing]:
    """Return the remembered things of a phrase: one, a group, none."""
    others = one.things()
    scores = {other: fit(thing, other) for other in others}
    exact = [other for other in others if kind_score(thing.phrase, other.kind or core_of(other.phrase)) >= 3]
    if exact:
        return [max(exact, key=lambda other: scores[other])]
    return [other for other in others if scores[other] >= 0.5 and scores[other] >= max(scores.values()) - 0.25]


def _enrich(thing: Thing, other: Thing) -> None:
    """Tell a thing what is known of the remembered one."""
    thing.kind, thing.captions = other.kind, other.captions
    thing.start, thing.start_room = other.start, other.start_room
    thing.said = (*thing.said, *other.said)
    if not other.kind and kind_score(thing.phrase, core_of(other.phrase)) < 3:
        thing.kind = core_of(other.phrase)


def unified(moves: list[Move]) -> list[Move]:
    """Merge equal things of moves: same category, same look."""
    seen: list[Thing] = []
    for move in moves:
        old, look = move.thing, (move.thing.captions, move.thing.kind)
        known = next((one for one in seen if one.captions and (one.captions, one.kind) == look), old)
        for other in moves:
            other.thing = known if other.thing is old else other.thing
            other.beside = known if other.beside is old else other.beside
        if known not in seen:
            seen.append(known)
    return moves
