"""A household agent without a language model: parses the instruction, resolves it by memory, plans and acts.

    agent = MemoryPlanner()
    agent.begin(instruction, observation, memories, profile)
    agent.act(observation)             # Reply("The pen is not found yet. ...", "Explore[living_room_1]")

Goals are moves of things in order (`memory`). An object is recognised by category, by where a memory found it, and by
its description, which is asked for where several objects fit. Descriptions are compared word by word: equal stems,
names of one family of colours, words for one look (`lexicon.txt`), or the vectors of both. Failures are answered: too
far, go nearer; no room in a piece, take the next.

The texts say of no piece where in its room it stands, only whether it is within reach of where the agent is. So to
find the dining table it stands at a chair with the thing in its hand and tries the tables of that room, one after the
other. A walk that a memory shows to be needless is left out.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embodied_mem.memory.embedders import Embedder, default_embedder
from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.agent.react import Reply
from embodied_mem.worlds.memento.traces.trace import HELD, Trace, parse_action, parse_objects, parse_result

from .memory import Move, Part, Thing, recall, unified, with_carries
from .reading import (
    NEAR,
    TABLES,
    HouseView,
    PlaceMention,
    PlaceWords,
    content,
    core_of,
    kind_of,
    kind_score,
    listed,
    read_instruction,
    stem,
)

_SHORTER = 0.7
"""Weight of the description that says less."""
_FAMILY, _SAME_LOOK = 0.9, 0.85
_FAR, _NEAR = 0.1, 0.4
"""Cosines of words from which, and up to which, they are taken to mean something of the same."""
_VAGUE, _SHADE = 0.3, 0.5
_SHADES = {"dark": {"black"}, "deep": {"black"}, "light": {"white"}, "pal": {"white"}}
"""Casual names of colours, by stem."""
_OTHER_COLOUR = 0.4


def _families() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in TABLES["colours"].splitlines():
        name, _, others = line.partition(": ")
        for word in (name, *others.split()):
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


def _looks() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(TABLES["looks"].splitlines()):
        for word in line.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


_COLOURS, _LOOKS = _families(), _looks()
_LITTLE = frozenset(map(stem, TABLES["words about looks"].split()))


@functools.lru_cache(maxsize=1 << 13)
def _vector(word: str) -> np.ndarray:
    return np.asarray(default_embedder().embed([word])[0])


@functools.lru_cache(maxsize=1 << 16)
def _same(a: str, b: str) -> float:
    """Return how much two stems mean the same, in [0, 1]."""
    if a == b:
        return 1.0
    if a in _COLOURS and b in _COLOURS:
        x, y = _COLOURS[a], _COLOURS[b]
        return _FAMILY * len(x & y) / min(len(x), len(y))
    if _LOOKS.get(a, frozenset()) & _LOOKS.get(b, frozenset()):
        return _SAME_LOOK
    if a in _COLOURS or b in _COLOURS:
        colour, other = (a, b) if a in _COLOURS else (b, a)
        return _SHADE * bool(_COLOURS[colour] & _SHADES.get(other, set()))
    cosine = float(_vector(a) @ _vector(b))
    return min(max((cosine - _FAR) / (_NEAR - _FAR), 0.0), 1.0) * _SAME_LOOK


@functools.lru_cache(maxsize=1 << 12)
def _words(text: str, kind: str) -> tuple[str, ...]:
    kinds = set(content(kind))
    return tuple(dict.fromkeys(word for word in content(re.sub(r"\boff-white", "white", text)) if word not in kinds))


def _covered(some: tuple[str, ...], others: tuple[str, ...], kinds: list[str]) -> float:
    """Share of the words that others have, or mean."""
    weights = [_VAGUE if word in _LITTLE or any(_same(word, kind) > 0.5 for kind in kinds) else 1.0 for word in some]
    hits = sum(w * max(_same(word, other) for other in others) for word, w in zip(some, weights))
    return hits / sum(weights)


def alike(a: str, b: str, kind: str) -> float:
    """Score the likeness of two things' descriptions, in [0, 1]."""
    x, y = sorted((_words(a, kind), _words(b, kind)), key=len)
    if not x:
        return 0.0
    kinds = content(kind)
    ours, theirs = ([word for word in words if word in _COLOURS] for words in (x, y))
    score = _SHORTER * _covered(x, y, kinds) + (1 - _SHORTER) * _covered(y, x, kinds)
    if ours and theirs and not any(_same(one, other) for one in ours for other in theirs):
        score *= _OTHER_COLOUR
    return score


_KITCHEN = frozenset(TABLES["kitchen"].split())
_LIKELY = listed("likely rooms")
_CERTAIN, _SURE, _FAIR, _UNLIKE = 0.9, 0.6, 0.45, 0.3
_LEAD = 0.15
_AT_HOME = 0.1
"""Likenesses: of one that spares a look at the others, of one that is enough once they were looked at, of one that
leads them by `_LEAD`, of one that is none; what it counts for to be where memory found it."""
_THOROUGH = 3
"""Actions to spare from which on every object that fits is looked at before one is chosen."""


def _pairs(text: str) -> set[tuple[str, str]]:
    """Return word pairs: "black with white dots" is not "black and white"."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return set(itertools.pairwise(words))


class Search:
    """Looks for things in one house."""

    def __init__(self, view: HouseView, words: PlaceWords):
        self.view = view
        self.words = words

    def look_for(self, move: Move, taken: set[str], spare: int) -> Reply | None:
        """Return the next action to find a move's thing, or None.

        Args:
            move: its thing is looked for, first where its source is.
            taken: names of objects that are other things of the task.
            spare: actions left over; descriptions are asked for while there are some.
        """
        thing, view = move.thing, self.view
        expected = self._expected(move)
        fits = self._fitting(thing, taken)
        unseen = [room for room in expected if room not in view.explored]
        near = [name for name in fits if view.objects[name].start_room in expected] if expected else fits
        home = [name for name in fits if view.objects[name].start == thing.start]
        if thing.start_room in unseen and not home:
            pool, unseen = [], [thing.start_room]
        else:
            pool = near or ([] if unseen else fits)
        if pool:
            reply = self._choose(thing, move, pool, taken, spare)
            if reply is not None or thing.name:
                return reply
        room = next(iter(unseen), None) or (self._next_room(thing, taken) if thing.sought else None)
        if room is not None:
            return self.explore(thing, room, "is not found yet" if not fits else "may not be what I have seen")
        rest = fits or (self._fitting(thing, taken, 0.5) if thing.sought else [])
        if rest:
            thing.name = self._best(thing, move, rest)
            thing.known = False
        return None

    @staticmethod
    def explore(thing: Thing, room: str, why: str) -> Reply:
        """Return the answer that looks for a thing in a room."""
        return Reply(f"{thing.phrase[0].upper()}{thing.phrase[1:]} {why}; I explore {room}.", f"Explore[{room}]")

    def unseen_home(self, thing: Thing, taken: Collection[str] = ()) -> str:
        """Return a thing's remembered room if still unexplored, else empty.

        Objects that are `taken` by other things of the task are not it.
        """
        view, room = self.view, thing.start_room
        free = [name for name in view.objects if kind_of(name) == thing.kind and name not in taken]
        seen = any(view.objects[name].start == thing.start for name in free)
        return room if room in view.floors and room not in view.explored and not thing.name and not seen else ""

    def missing(self, thing: Thing, taken: Collection[str] = ()) -> bool:
        """Tell whether a thing's remembered room was explored in vain."""
        view = self.view
        if thing.start_room not in view.explored or thing.name:
            return False
        same = [name for name in view.objects if kind_of(name) == thing.kind and name not in taken]
        if not thing.captions:
            return not same
        return all(view.objects[name].described and self.likeness(thing, name) < _UNLIKE for name in same)

    @staticmethod
    def described(thing: Thing, kind: str) -> bool:
        """Return whether a thing is described beyond its category."""
        return bool(set(content(" ".join((thing.phrase, *thing.said)))) - set(content(kind)))

    def _expected(self, move: Move) -> list[str]:
        """List rooms where words and memory expect the thing."""
        rooms = []
        if move.thing.start_room in self.view.rooms:
            rooms.append(move.thing.start_room)
        if move.source is not None and (move.source.room or move.source.piece):
            known = self.words.rooms(move.source)
            if not move.source.room:
                known = list(dict.fromkeys(self.view.room_of(p) for p in self.words.pieces(move.source)))
            rooms += [room for room in known if room not in rooms] if move.source.room or len(known) < 4 else []
        return rooms

    def _fitting(self, thing: Thing, taken: set[str], least: float = 2.0) -> list[str]:
        found = []
        for name in self.view.objects:
            if name in taken:
                continue
            score = 3.0 * (kind_of(name) == thing.kind) if thing.kind else kind_score(thing.phrase, kind_of(name))
            if score >= least:
                found.append((-score, name))
        best = min((score for score, _ in found), default=0.0)
        return [name for score, name in found if score == best or least >= 2.0]

    def likeness(self, thing: Thing, name: str) -> float:
        """Compare a phrase with the object's description, in [0, 1]."""
        caption = self.view.objects[name].caption
        if not caption:
            return 0.0
        if caption.rstrip(".") in (known.rstrip(".") for known in thing.captions):
            return 1.0
        return 0.99 * max(alike(text, caption, kind_of(name)) for text in (*thing.captions, *thing.said, thing.phrase))

    def _choose(self, thing: Thing, move: Move, pool: list[str], taken: set[str], spare: int) -> Reply | None:
        """Choose an object, or look closer at one or its room."""
        view = self.view
        told = self.described(thing, kind_of(pool[0]))
        rooms = [view.objects[name].start_room for name in pool]
        part = [room for room in rooms if room not in view.explored and room in view.floors]
        alone = len(pool) == 1 and not any(kind_of(name) == kind_of(pool[0]) for name in taken)
        settled = alone and (not thing.captions or view.objects[pool[0]].start == thing.start)
        home = [name for name in pool if thing.start and view.objects[name].start == thing.start]
        if len(home) == 1 and not view.objects[home[0]].described and not told:  # but its place nothing was ever said
            thing.name = home[0]
            return None
        if not (told or thing.captions) or (settled and not part):
            thing.known = len(pool) == 1 or spare <= 0
            thing.name = self._best(thing, move, pool)
            return None
        likeness = {name: self.likeness(thing, name) for name in pool}
        top = self._best(thing, move, pool)
        open_ = [name for name in pool if not view.objects[name].described]
        thorough = spare >= _THOROUGH
        seen = not part and set(open_) <= set(home)  # all that may be it, and what is left stands where it was
        least = _SURE if not thorough else _UNLIKE if seen else 0.0  # below it is another one, the only one left
        if likeness[top] >= (_SURE if not open_ else 1.0 if thorough else _CERTAIN):
            thing.name = top
        elif len(open_) == 1 and len(pool) > 1 and likeness[top] < least:
            thing.name = open_[0]
            thing.known = all(view.objects[name].caption for name in pool if name != thing.name)  # else it is a guess
        elif open_:
            name = self._best(thing, move, open_)
            return Reply(f"{name} may be {thing.phrase}; I look at it closely.", f"DescribeObjectTool[{name}]")
        elif part and not self._leads(top, likeness):
            return Reply(f"None that I saw is sure to be {thing.phrase}; I explore {part[0]}.", f"Explore[{part[0]}]")
        elif likeness[top] >= _UNLIKE or spare < 1:
            thing.name = top
        elif self._at_source(move, top):
            thing.name, thing.known = top, False
        return None

    def _at_source(self, move: Move, name: str) -> bool:
        """Decide whether an object stands in the place that the words name."""
        source, seen = move.source, self.view.objects[name]
        if source is None:
            return False
        return seen.start in self.words.pieces(source) if source.piece else seen.start_room in self.words.rooms(source)

    @staticmethod
    def _leads(top: str, likeness: Mapping[str, float]) -> bool:
        """Return whether a candidate is alike enough and the best seen."""
        others = [value for name, value in likeness.items() if name != top]
        second = max(others, default=1.0)
        return likeness[top] >= _FAIR and likeness[top] - second >= _LEAD

    def _best(self, thing: Thing, move: Move, names: list[str]) -> str:
        """Return the likeliest object by likeness, word order, place, source."""
        pieces = set(self.words.pieces(move.source)) if move.source is not None and move.source.piece else set()

        told = {pair for text in thing.captions or (*thing.said, thing.phrase) for pair in _pairs(text)}

        def rank(name: str) -> tuple[float, int, bool, bool]:
            seen = self.view.objects[name]
            return (
                -self.likeness(thing, name) - _AT_HOME * (seen.start == thing.start),
                -len(_pairs(seen.caption) & told),
                seen.start != thing.start,
                seen.start not in pieces,
            )

        return min(names, key=rank)

    def _next_room(self, thing: Thing, taken: set[str]) -> str | None:
        """Return the thing's likeliest unexplored room, or None."""
        view = self.view
        kitchen = bool(_KITCHEN & set((thing.kind or core_of(thing.phrase)).split()))
        order = ("kitchen", "dining room", *_LIKELY) if kitchen else _LIKELY
        rank = {kind: i for i, kind in reversed(list(enumerate(order)))}
        rooms = [room for room in view.rooms if room not in view.explored and room in view.floors and view.rooms[room]]
        mates = {self.view.objects[name].start_room for name in taken if name in self.view.objects}
        return min(rooms, key=lambda room: (room not in mates, rank.get(kind_of(room), 50)), default=None)


_STANDS, _MORE_STANDS = 2, 4
"""Chairs at which it is tried (the first may be an armchair), and where one is to be confirmed."""
_CONFIRM = 10
"""Actions to spare from which a second chair is asked, since from one in a corner two tables are within reach."""


class Stand(NamedTuple):
    """Where the agent stands.

    Attributes:
        at: a piece, or a room of which it has just made the tour (which ends at the same piece each time); empty if
            neither.
        came: the stand before; the agent stops on that one's side of a piece.
    """

    at: str = ""
    came: str = ""


class Fact(NamedTuple):
    """From a stand something can be picked up from a piece, or put on it, as `tool` says.

    Attributes:
        toward: whether the agent came to the stand straight from that piece, so that it is on the piece's side.
    """

    tool: str
    at: str
    toward: bool
    piece: str


class Reach:
    """Places within reach of one another, by answers of this run and of remembered ones.

    Attributes:
        stand: where the agent stands now.
    """

    def __init__(self, view: HouseView):
        self._view = view
        self._known: dict[Fact, bool] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self.stand = Stand()

    def remember(self, trace: Trace) -> None:
        """Learn from a remembered run, except about pieces missing here."""
        for step in trace.steps:
            self.take(step.action, step.observation)
        self._places, self.stand = {}, Stand()

    def take(self, action: str, observation: str) -> None:
        """Take in what an action led to."""
        name, arguments = parse_action(action)
        result = parse_result(observation)
        succeeded = result.startswith("Successful")
        if name in ("Pick", "Place") and (piece := self._piece(name, arguments)):
            fact = self.fact(name, piece, self.stand)
            if succeeded or "Not close enough" in result:
                self._known[fact] = succeeded
        elif name == "Navigate" and succeeded:
            self.stand = self.moved(self._places.get(arguments[0], (arguments[0], ""))[0], self.stand)
        elif name == "Explore" and arguments:
            self.stand = Stand(arguments[0])
        self._places = parse_objects(observation) or self._places

    def _piece(self, tool: str, arguments: Sequence[str]) -> str:
        """Return the piece in this room that an action reaches for."""
        if tool == "Pick" and arguments:
            piece, room = self._places.get(arguments[0], ("", ""))
            piece = piece if self._view.furniture.get(piece) == room else ""
        else:
            piece = arguments[2] if len(arguments) == 5 else ""
        return piece if piece != HELD and self._near(piece, self.stand) else ""

    def _near(self, piece: str, stand: Stand) -> bool:
        room = self._view.room_of(stand.at)
        return bool(room) and self._view.furniture.get(piece) == room

    def moved(self, place: str, stand: Stand) -> Stand:
        """Return the agent's stand after walking to a piece, perhaps unknown."""
        return Stand(place if place in self._view.furniture else "", stand.at)

    @staticmethod
    def fact(tool: str, piece: str, stand: Stand) -> Fact:
        """Return the statement that a piece is within reach of a stand."""
        return Fact(tool, stand.at, stand.came == piece, piece)

    def within(self, tool: str, piece: str, stand: Stand, assumed: Collection[Fact] = ()) -> bool | None:
        """Return whether a tool reaches a piece; None if unknown.

        What is within reach from a stand is so, too, where the agent came to it straight from the piece.
        """
        if piece == stand.at:
            return True
        if not self._near(piece, stand):
            return False
        fact = self.fact(tool, piece, stand)
        other = fact._replace(toward=not fact.toward)
        if fact in assumed or (fact.toward and other in assumed):
            return True
        if fact in self._known:
            return self._known[fact]
        known = self._known.get(other)
        return known if known is fact.toward else None

    def needed(
        self, moves: Sequence[Move], goal_of: Callable[[Move], str], goal: str = "", assumed: Collection[Fact] = ()
    ) -> int:
        """Count moves' actions: pick, place, walks to what is out of reach.

        The first thing is put on `goal`, or else where `goal_of` says; `assumed` is taken to be within reach.
        """
        stand = self.stand
        held = next((m.thing for m in moves if m.thing.name and m.thing.name == self._view.held), None)
        places: dict[int, str] = {}
        count = 0
        for move in moves:
            thing, goal = move.thing, goal or goal_of(move)
            steps = [("Place", goal)]
            if thing is not held:
                seen = self._view.objects.get(thing.name)
                source = places.get(id(thing), "") or (seen.place if seen is not None else thing.start)
                steps.insert(0, ("Pick", source))
            for tool, place in steps:
                if move.carry and tool == "Place":
                    stand = self.moved(place, stand)
                elif not (place and self.within(tool, place, stand, assumed)):
                    stand, count = self.moved(place, stand), count + 1
                count += 1
            held, goal = (thing, "") if move.carry else (None, "")
            if not move.carry:
                places[id(thing)] = steps[-1][1]
        return count


class Nearby:
    """Trials and finds in one house: each stand votes for the first piece that was within its reach."""

    def __init__(self, view: HouseView):
        self._view = view
        self._far: set[tuple[str, str]] = set()
        self._votes: dict[tuple[str, str, str], dict[str, str]] = {}
        self._asked: tuple[tuple[str, str, str], str] | None = None

    def _ranked(self, place: PlaceMention) -> list[tuple[str, int]]:
        """Pieces with their votes, most first; of equals the first."""
        return Counter(self._votes.get(place.name, {}).values()).most_common()

    def found(self, place: PlaceMention) -> str:
        """Return the piece proved to have this name, or empty."""
        return next((piece for piece, _ in self._ranked(place)), "")

    def settled(self, place: PlaceMention) -> bool:
        """Return whether two stands agree."""
        return any(votes > 1 for _, votes in self._ranked(place))

    def disputed(self, place: PlaceMention) -> bool:
        """Return whether two stands disagree, so that a third one decides."""
        return len(self._votes.get(place.name, {})) == len(self._ranked(place)) == 2

    def next(
        self, held: str, place: PlaceMention, targets: Sequence[str], spare: int, beside: tuple[str, str] = ("", "")
    ) -> Reply | None:
        """Return the next action that distinguishes targets, or None.

        Args:
            held: name of the thing in the hand, which is put on the first piece that is near enough.
            place: how the piece was called.
            targets: pieces that may be meant, best first; those of the first one's room are tried.
            spare: actions left over.
            beside: name of the thing that it is to be next to, and the piece that this one is on.
        """
        view, room = self._view, self._view.room_of(targets[0])
        pieces = [name for name in targets if view.room_of(name) == room and kind_of(name) == place.piece]
        votes = self._votes.get(place.name, {})
        if place.hint not in NEAR or len(pieces) < 2 or self.settled(place) or spare < (_CONFIRM if votes else 0):
            return None
        pieces.sort(key=lambda piece: piece not in votes.values())
        kinds = {kind: [name for name in view.rooms[room] if kind_of(name) == kind] for kind in NEAR[place.hint]}
        stands = next((names for names in kinds.values() if names), [])[: _MORE_STANDS if votes else _STANDS]
        for stand in stands:
            untried = [piece for piece in pieces if (stand, piece) not in self._far]
            if not untried or stand in votes:
                continue
            if view.at != stand:
                return Reply(f"Which is the {place.hint} {place.piece}? One stands at {stand}.", f"Navigate[{stand}]")
            self._asked = place.name, untried[0]
            mate = f"next_to, {beside[0]}" if beside[1] == untried[0] else "None, None"
            return Reply(
                f"I try whether {untried[0]} is within reach of {stand}.",
                f"Place[{held}, on, {untried[0]}, {mate}]",
            )
        return None

    def learn(self, action: str, piece: str, succeeded: bool) -> bool:
        """Learn from an action's outcome; return whether it was such a trial.

        Args:
            action: its tool.
            piece: what the thing was to be put on.
            succeeded: whether it was put there.
        """
        asked, self._asked = self._asked, None
        if asked is None or action != "Place" or asked[1] != piece:
            return False
        if succeeded and self._view.at:
            self._votes.setdefault(asked[0], {})[self._view.at] = piece
        elif self._view.at:
            self._far.add((self._view.at, piece))
        return True


_ROOM_PIECES = ("table", "counter", "shelves", "stand", "bench", "couch", "bed", "cabinet", "chest of drawers", "chair")
_PATIENCE = 6
_TRY_NEXT = 6
_OTHERS = 4
_NEARNESS = 0.4
"""Actions to spare from which, and pieces up to which, another is tried where nothing can be put on the first; share of
walks within a room that turn out to be needless."""


class Verdict(enum.Enum):
    """A rule's verdict on a move that gives no action."""

    NEXT = "the next rule decides"
    DONE = "the move is done, or cannot be done"


class MemoryPlanner:
    """The agent; compares what users say by words alone where it has no embedder.

    When the actions of a run, `max_actions`, run short, what is only for later memory is left out.
    """

    def __init__(self, embedder: Embedder | None = None, *, max_actions: int = 40):
        self._embedder = embedder
        self._max_actions = max_actions

    def begin(
        self, instruction: str, observation: str, memories: Sequence[Trace] = (), profile: UserProfile | None = None
    ) -> None:
        self.view = HouseView(observation, instruction)
        self.words = PlaceWords(self.view)
        asked = read_instruction(instruction, self.words)
        self._parts = recall(instruction, asked, self.words, memories, profile, self._embedder)
        self._notes = [note for part in self._parts for note in part.notes]
        self.moves = self._joined()
        self._told = bool(asked.descriptions or asked.preferences)
        self._search = Search(self.view, self.words)
        self._nearby = Nearby(self.view)
        self._reach = Reach(self.view)
        for memory in reversed(memories):  # the best has the last word
            self._reach.remember(memory)
        self._current = 0
        self._action = ""
        self._used = 0
        self._failures = 0
        self._bad: set[tuple[str, ...]] = set()

    def _joined(self) -> list[Move]:
        """Return the moves of all parts, in order."""
        moves = []
        for number, part in enumerate(self._parts):
            for move in part.moves:
                move.part = number
                moves.append(move)
        return with_carries(unified(moves))

    def act(self, observation: str) -> Reply:
        if self._action:
            self._reach.take(self._action, observation)
            self._learn(self.view.observe(self._action, observation))
        reply = self._next()
        thought = " ".join([*self._notes, reply.thought])
        self._notes = []
        self._action = reply.action
        self._used += 1
        return Reply(thought, reply.action)

    def _next(self) -> Reply:
        while self._current < len(self.moves):
            move = self.moves[self._current]
            reply = None if self._failures > _PATIENCE else self._step(move)
            if reply is not None:
                return reply
            self._current += 1
            self._failures = 0
        return self._finish()

    def _spare(self) -> int:
        """Actions left over, if what is left of the moves goes well."""
        left = self.moves[self._current :]
        rooms = {room for move in left if (room := self._search.unseen_home(move.thing, self._taken(move.thing)))}
        sought = {move.thing for move in left if not move.thing.name}
        looks = sum(self._search.described(thing, thing.kind) for thing in sought)
        return self._max_actions - self._used - 1 - self._reach.needed(left, self._goal) - len(rooms) - looks

    def _reaches(self, tool: str, piece: str, goal: str = "") -> bool:
        """Return whether to reach for a piece without a walk.

        A try wins with the odds of `_NEARNESS`. Where the user tells something that is to be remembered, and actions
        are left, it is tried for later's sake.
        """
        reach, moves = self._reach, self.moves[self._current :]
        known = reach.within(tool, piece, reach.stand)
        if known is not None:
            return known
        fact = reach.fact(tool, piece, reach.stand)
        saved = reach.needed(moves, self._goal, goal) - reach.needed(moves, self._goal, goal, {fact})
        return saved * _NEARNESS > 1 - _NEARNESS or (self._told and self._spare() > _TRY_NEXT)

    def _goal(self, move: Move) -> str:
        """Return the likely piece for a thing; empty if unknown."""
        if move.piece:
            return move.piece
        beside = self.view.objects.get(move.beside.name) if move.beside is not None else None
        return beside.place if beside is not None and beside.place != HELD else ""

    def _taken(self, thing: Thing) -> set[str]:
        """Names of the objects that are other things of the task."""
        return {move.thing.name for move in self.moves if move.thing is not thing and move.thing.name}

    def _step(self, move: Move) -> Reply | None:
        """Choose a move's next action by `RULES`; None if done or impossible."""
        for rule in RULES:
            answer = rule(self, move)
            if answer is not Verdict.NEXT:
                return None if isinstance(answer, Verdict) else answer
        return None

    def unsaid(self, move: Move) -> Reply | Verdict:
        """Neither words nor memory say where."""
        if move.place is not None or move.beside is not None or move.piece:
            return Verdict.NEXT
        self._notes.append(f"I do not know what to do about '{move.thing.phrase}': neither words nor memory say where.")
        return Verdict.DONE

    def find(self, move: Move) -> Reply | Verdict:
        """Find the object of a move if it is not known yet."""
        thing = move.thing
        if thing.name:
            return Verdict.NEXT
        if self._doubtful(move):
            others = self.moves[self._current :]
            return (self._step(others[0]) if others else None) or Verdict.DONE
        part = self._parts[move.part]
        if part.others and not self._started(part):  # all of it is looked for first: it may be another memory's
            for other in part.moves:
                if room := self._search.unseen_home(other.thing, self._taken(other.thing)):
                    return self._search.explore(other.thing, room, "is not found yet")
        reply = self._search.look_for(move, self._taken(thing), self._spare())
        if reply is not None or not thing.name:
            return reply or Verdict.DONE
        if not thing.known:
            self._notes.append(f"I do not know which {core_of(thing.phrase)} is meant; my best guess is {thing.name}.")
        return Verdict.NEXT

    def find_neighbour(self, move: Move) -> Reply | Verdict:
        """Find the neighbour's object if unknown; without it, go alone."""
        beside = move.beside
        if beside is None or beside.name:
            return Verdict.NEXT
        reply = self._search.look_for(Move(beside, None, source=move.place), {move.thing.name}, self._spare())
        if reply is None and not beside.name:
            self._notes.append(f"I do not find {beside.phrase}.")
            move.beside = None
        return reply or self._step(move) or Verdict.DONE

    def gather(self, move: Move) -> Reply | Verdict:
        """Bring a neighbour to the common place first, if it is elsewhere."""
        beside, place = move.beside, move.place
        if beside is None or not beside.name or place is None or not place.piece:
            return Verdict.NEXT
        seen = self.view.objects[beside.name]
        there = seen.place == HELD or seen.place in (*self.words.pieces(place), move.piece)
        if there or seen.place != seen.start or any(m.thing is beside for m in self.moves[: self._current]):
            return Verdict.NEXT
        self.moves.insert(self._current, dataclasses.replace(move, thing=beside, beside=None, source=None, carry=False))
        return self._step(self.moves[self._current]) or Verdict.DONE

    def bring(self, move: Move) -> Reply | Verdict:
        """It is in the hand."""
        return (self._bring(move) or Verdict.DONE) if self.view.held == move.thing.name else Verdict.NEXT

    def free_hand(self, move: Move) -> Reply | Verdict:
        """Something else is in the hand."""
        return self._put_away() if self.view.held is not None else Verdict.NEXT

    def there(self, move: Move) -> Reply | Verdict:
        """It is where it shall be."""
        return Verdict.DONE if self._there(move) else Verdict.NEXT

    def nowhere(self, move: Move) -> Reply | Verdict:
        """There is no place for it."""
        if self._targets(move):
            return Verdict.NEXT
        self._notes.append(f"I do not know where {move.thing.phrase} should go, so I leave it.")
        return Verdict.DONE

    def pick(self, move: Move) -> Reply | Verdict:
        """It is within reach."""
        name, place = move.thing.name, self.view.objects[move.thing.name].place
        if ("far", name) in self._bad:
            return Verdict.NEXT
        if self.view.at == place:
            return Reply(f"I am at {place}, so I pick up {name}.", f"Pick[{name}]")
        if self._reaches("Pick", place):
            return Reply(f"{name} on {place} may be within reach, so I try to pick it up.", f"Pick[{name}]")
        return Verdict.NEXT

    def approach(self, move: Move) -> Reply | Verdict:
        """It is elsewhere, or was too far away."""
        name, seen = move.thing.name, self.view.objects[move.thing.name]
        near = ("far", name) in self._bad or seen.place.startswith("floor_")
        self._bad.discard(("far", name))
        if near:
            self.view.at = seen.place
        return Reply(
            f"{name} is on {seen.place} in {seen.room}; I go there.", f"Navigate[{name if near else seen.place}]"
        )

    def _started(self, part: Part) -> bool:
        """Return whether a move of a part was done, or given up."""
        return any(self._parts[move.part] is part for move in self.moves[: self._current])

    def _doubtful(self, move: Move) -> bool:
        """Tell whether memory was wrong: object gone, another memory possible.

        The part's moves are then another memory's, best of those whose objects may be there.
        """
        part = self._parts[move.part]
        gone = [m.thing for m in part.moves if self._search.missing(m.thing, self._taken(m.thing))]
        if self._started(part) or not gone:
            return False
        used = {other.source for other in self._parts}
        while part.others:
            other = part.others.pop(0)()
            if other.source in used:
                continue
            if other.moves and not any(self._search.missing(m.thing, self._taken(m.thing)) for m in other.moves):
                self._notes += [f"{gone[0].phrase} is not where I remember it, so something else may be meant."]
                self._notes += other.notes
                other.others = part.others
                self._parts[move.part] = other
                self.moves = self.moves[: self._current] + [m for m in self._joined() if m.part >= move.part]
                return True
        return False

    def _there(self, move: Move) -> bool:
        """Return whether the thing is where it shall be, without any move."""
        seen = self.view.objects[move.thing.name]
        if move.beside is not None:  # on the same piece is not next to each other
            return False
        if move.place is None:
            return True
        if move.place.other or move.inside or move.beside_place is not None or self._nearby.disputed(move.place):
            return False
        if any(other.thing is move.thing for other in self.moves[: self._current]):
            return False
        if move.place.piece:
            return seen.place in self.words.pieces(move.place)
        return seen.room in self.words.rooms(move.place)

    def _targets(self, move: Move) -> list[str]:
        """Return pieces and floors for the thing, best first, without failed ones.

        First that of its neighbour, that of memory, what turned out to be called so, those of things of the same
        request, those of the room it was in.
        """
        view, place, thing = self.view, move.place, move.thing
        beside = view.objects[move.beside.name].place if move.beside is not None and move.beside.name else ""
        beside = beside if beside != HELD else ""
        if place is None:
            return [name for name in (beside, move.piece) if name and self._usable(name)]
        names = [name for name in self._candidates(move, place) if self._usable(name)]
        mates = [
            view.objects[m.thing.name].place
            for m in self.moves[: self._current]
            if m.group == move.group and m.thing.name and m.thing is not thing
        ]
        here = view.room_of(view.at) if view.at else view.room
        source = view.objects[thing.name].start_room
        context = [name for name in names if view.room_of(name) == source] if not place.room else []
        order = [beside, move.piece, self._nearby.found(place), *reversed(mates), *context]
        first = [name for name in dict.fromkeys(order) if name in names]
        rest = [name for name in names if name not in first]
        rest.sort(key=lambda name: 0 if not place.room or place.hint else view.room_of(name) != here)
        return first + rest

    def _candidates(self, move: Move, place: PlaceMention) -> list[str]:
        """Return a place's candidates: pieces of its type, or a room's surfaces."""
        view = self.view
        if place.piece:
            names = self.words.pieces(place)
            if not names and move.piece in view.furniture:
                names = [move.piece]
        else:
            rooms = self.words.rooms(place)
            later = [m.place.piece for m in self.moves[self._current + 1 :] if m.place is not None]
            rank = {kind: i for i, kind in enumerate(_ROOM_PIECES)}
            pieces = [p for room in rooms for p in view.rooms[room] if kind_of(p) in rank and kind_of(p) not in later]
            names = sorted(pieces, key=lambda p: rank[kind_of(p)])
            names += [view.floors[room] for room in rooms if room in view.floors]
        if place.other:
            names = [name for name in names if name != view.objects[move.thing.name].start]
        if place.piece == "floor" and move.beside_place is not None:
            near = {view.room_of(piece) for piece in self.words.pieces(move.beside_place)}
            names = [name for name in names if view.room_of(name) in near] or names
        return names

    def _usable(self, name: str) -> bool:
        return (name, "on") not in self._bad or (name, "within") not in self._bad

    def _takes(self, name: str) -> bool:
        """Return whether a thing may go on a piece, as known."""
        return (name, "on") not in self._bad

    def _first(self, targets: list[str], move: Move) -> str:
        """Choose the best piece, or another of its type if nothing fits."""
        others = [name for name in targets if self._takes(name) and kind_of(name) == kind_of(targets[0])]
        tried = sum(not self._takes(name) for name in targets)
        if move.inside or self._takes(targets[0]) or not others or tried > _OTHERS or self._spare() < _TRY_NEXT:
            return targets[0]
        return others[0]

    def _relation(self, name: str, move: Move, targets: list[str]) -> str:
        if move.inside:
            others = any((other, "within") not in self._bad for other in targets)
            return "within" if (name, "within") not in self._bad or others else "on"
        return "on" if (name, "on") not in self._bad else "within"

    def _bring(self, move: Move) -> Reply | None:
        """Carry the held thing to its place and put it down."""
        thing, view = move.thing, self.view
        if move.carry and move.place is not None:
            rooms = self.words.rooms(move.place)
            if view.room in rooms or not rooms:
                return None
            return Reply(f"I carry {thing.name} through {rooms[0]} first.", f"Navigate[{rooms[0]}]")
        targets = self._targets(move)
        if move.inside:
            targets.sort(key=lambda name: (name, "within") in self._bad)
        if not targets:
            self._notes.append(f"No place for {thing.phrase} is left that I could use.")
            return self._put_away()
        target = self._first(targets, move)
        mate = view.objects.get(move.beside.name) if move.beside is not None else None
        if move.place is not None and not move.piece and (mate is None or self._nearby.found(move.place)):
            beside = (move.beside.name, mate.place) if move.beside is not None and mate is not None else ("", "")
            trial = self._nearby.next(thing.name, move.place, targets, self._spare(), beside)
            if trial is not None:
                return trial
        near = self.words.pieces(move.beside_place) if move.beside_place is not None else []
        if target.startswith("floor_"):
            return self._put_on_floor(thing.name, target, near)
        if ("far", target) in self._bad or not self._reaches("Place", target, target):
            self._bad.discard(("far", target))
            room = view.room_of(target)
            return Reply(f"I hold {thing.name} and carry it to {target} in {room}.", f"Navigate[{target}]")
        return self._put(move, target, targets, near)

    def _put_on_floor(self, name: str, floor: str, near: list[str]) -> Reply:
        """Put the held thing on the floor here, beside a `near` piece."""
        view, room = self.view, self.view.room_of(floor)
        near = [piece for piece in near if view.room_of(piece) == room]
        stand = near[0] if near else floor
        if view.at != stand and (near or view.room != room):
            return Reply(f"I carry {name} to {stand}.", f"Navigate[{stand}]")
        return Reply(f"I put {name} on the floor here.", f"Place[{name}, on, {floor}, None, None]")

    def _put(self, move: Move, target: str, targets: list[str], near: list[str]) -> Reply | None:
        """Put the held thing on the piece here, beside neighbour or `near`."""
        reference = ""
        if move.beside is not None and move.beside.name and self.view.objects[move.beside.name].place == target:
            reference = move.beside.name if (target, "next_to", move.beside.name) not in self._bad else ""
        elif near:
            open_ = [p for p in near if (target, "next_to", p) not in self._bad]
            others = [t for t in targets[1:] if any((t, "next_to", p) not in self._bad for p in near)]
            if not open_ and others and self._spare() > 0:
                self._bad |= {(target, "on"), (target, "within")}
                return self._bring(move)
            reference = open_[0] if open_ else ""
        name, relation = move.thing.name, self._relation(target, move, targets)
        beside = f"next_to, {reference}" if reference else "None, None"
        return Reply(
            f"I put {name} {relation} {target}{f' next to {reference}' if reference else ''}.",
            f"Place[{name}, {relation}, {target}, {beside}]",
        )

    def _put_away(self) -> Reply:
        """Free the hand: put the thing on the piece or floor here."""
        view = self.view
        if view.at in view.furniture and (view.at, "on") not in self._bad:
            place = view.at
        else:
            place = view.floors.get(view.room) or next(iter(view.floors.values()))
        return Reply(f"I put {view.held} down to free my hand.", f"Place[{view.held}, on, {place}, None, None]")

    def _learn(self, result: str) -> None:
        """Draw conclusions from an answer."""
        name, parts = parse_action(self._action)
        succeeded = result.startswith("Successful")
        tried = self._nearby.learn(name, parts[2] if name == "Place" else "", succeeded)
        if succeeded:
            if name == "Place" and self._current < len(self.moves) and parts[0] == self.moves[self._current].thing.name:
                self._placed(self.moves[self._current], tried)
            return
        if tried or name not in ("Pick", "Place", "Navigate"):
            return
        if "Not close enough" in result and self._afar(name, parts):  # `Reach` has learned it
            return
        self._failures += 1
        if name == "Pick":
            self._bad.add(("far", parts[0]))
        elif name == "Navigate":
            self.view.at = None
            self._bad |= {(parts[0], "on"), (parts[0], "within")}
        elif "next_to is not feasible" in result:
            self._bad.add((parts[2], "next_to", parts[4]))
        elif "Not close enough" in result:
            self._bad.add(("far", parts[2]))
        else:
            self._bad.add((parts[2], parts[1]))

    def _placed(self, move: Move, tried: bool) -> None:
        """Go on after a finished move, unless its trial stayed undecided.

        Where the trial showed that things put down before are on another one, they are moved next.
        """
        if tried and move.place is not None and self._nearby.disputed(move.place):
            return
        self._current += 1
        self._failures = 0
        if not tried or move.place is None or not self._nearby.settled(move.place):
            return
        piece = self._nearby.found(move.place)
        for other in self.moves[: self._current - 1]:
            same = other.place is not None and other.place.name == move.place.name and other.thing is not move.thing
            if same and other.thing.name and self.view.objects[other.thing.name].place != piece:
                beside = move.thing if move.beside is other.thing else other.beside
                self.moves.insert(self._current, dataclasses.replace(other, beside=beside))

    def _afar(self, tool: str, parts: Sequence[str]) -> bool:
        """Return whether an action reached for a piece away from the agent."""
        piece = self.view.objects[parts[0]].place if tool == "Pick" else parts[2]
        return piece in self.view.furniture and piece != self.view.at

    def _finish(self) -> Reply:
        if self.view.held is not None:
            return self._put_away()
        if self._told and self._spare() > 0:  # the user told something about himself: memory is to keep its looks
            for thing in [move.thing for move in self.moves]:
                seen = self.view.objects.get(thing.name)
                if seen is not None and not seen.described and not thing.captions:
                    thought = f"I look at {thing.name} closely, to know it again."
                    return Reply(thought, f"DescribeObjectTool[{thing.name}]")
        done = "All that I could do is done." if self.moves else "I do not know what is wanted, so I stop."
        return Reply(done, "Done[]")


RULES = (
    MemoryPlanner.unsaid, MemoryPlanner.find, MemoryPlanner.find_neighbour, MemoryPlanner.gather, MemoryPlanner.bring,
    MemoryPlanner.free_hand, MemoryPlanner.there, MemoryPlanner.nowhere, MemoryPlanner.pick, MemoryPlanner.approach,
)  # fmt: skip
"""Rules that decide about a move, in order: (agent, move) -> the next action, or `Verdict`."""
