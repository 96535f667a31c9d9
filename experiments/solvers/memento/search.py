"""Finds the object that is meant: which room to explore, which objects fit, and which of several it is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping

from embodied_mem.worlds.memento.agent.agent import Reply

from .descriptions import alike
from .goals import Move, Thing
from .house import HouseView, kind_of
from .lexicon import TABLES, PlaceWords, content, core_of, kind_score, listed

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
    """Neighbouring words: they tell "black with white dots" from "black and white with dots"."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return set(itertools.pairwise(words))


class Search:
    """Looks for things in one house."""

    def __init__(self, view: HouseView, words: PlaceWords):
        self.view = view
        self.words = words

    def look_for(self, move: Move, taken: set[str], spare: int) -> Reply | None:
        """The next action that finds the thing of a move; None once `thing.name` is set, or if it is nowhere.

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
        """The answer that looks for a thing in a room."""
        return Reply(f"{thing.phrase[0].upper()}{thing.phrase[1:]} {why}; I explore {room}.", f"Explore[{room}]")

    def unseen_home(self, thing: Thing, taken: Collection[str] = ()) -> str:
        """The room in which memory found a thing, where it is still to be explored for it; else empty.

        Objects that are `taken` by other things of the task are not it.
        """
        view, room = self.view, thing.start_room
        free = [name for name in view.objects if kind_of(name) == thing.kind and name not in taken]
        seen = any(view.objects[name].start == thing.start for name in free)
        return room if room in view.floors and room not in view.explored and not thing.name and not seen else ""

    def missing(self, thing: Thing, taken: Collection[str] = ()) -> bool:
        """Whether memory says where a thing was, that room was explored, and nothing seen and not `taken` is it."""
        view = self.view
        if thing.start_room not in view.explored or thing.name:
            return False
        same = [name for name in view.objects if kind_of(name) == thing.kind and name not in taken]
        if not thing.captions:
            return not same
        return all(view.objects[name].described and self.likeness(thing, name) < _UNLIKE for name in same)

    @staticmethod
    def described(thing: Thing, kind: str) -> bool:
        """Whether more is said of a thing than its category, so that it must be told from others of it."""
        return bool(set(content(" ".join((thing.phrase, *thing.said)))) - set(content(kind)))

    def _expected(self, move: Move) -> list[str]:
        """Rooms in which the thing should be, as words and memory say."""
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
        """How alike what is said of a thing and the object's description are, in [0, 1]; 0 before it was described."""
        caption = self.view.objects[name].caption
        if not caption:
            return 0.0
        if caption.rstrip(".") in (known.rstrip(".") for known in thing.captions):
            return 1.0
        return 0.99 * max(alike(text, caption, kind_of(name)) for text in (*thing.captions, *thing.said, thing.phrase))

    def _choose(self, thing: Thing, move: Move, pool: list[str], taken: set[str], spare: int) -> Reply | None:
        """Decide for one of the objects, or look at one closely, or at its room."""
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
        """Whether an object stands where the words say that the thing is."""
        source, seen = move.source, self.view.objects[name]
        if source is None:
            return False
        return seen.start in self.words.pieces(source) if source.piece else seen.start_room in self.words.rooms(source)

    @staticmethod
    def _leads(top: str, likeness: Mapping[str, float]) -> bool:
        """Whether one is like enough what is meant, and more so than any other that was looked at."""
        others = [value for name, value in likeness.items() if name != top]
        second = max(others, default=1.0)
        return likeness[top] >= _FAIR and likeness[top] - second >= _LEAD

    def _best(self, thing: Thing, move: Move, names: list[str]) -> str:
        """The most likely object: by likeness, word order, place in memory, source; among equals any."""
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
        """The unexplored room that the thing is most likely in; None if all are explored."""
        view = self.view
        kitchen = bool(_KITCHEN & set((thing.kind or core_of(thing.phrase)).split()))
        order = ("kitchen", "dining room", *_LIKELY) if kitchen else _LIKELY
        rank = {kind: i for i, kind in reversed(list(enumerate(order)))}
        rooms = [room for room in view.rooms if room not in view.explored and room in view.floors and view.rooms[room]]
        mates = {self.view.objects[name].start_room for name in taken if name in self.view.objects}
        return min(rooms, key=lambda room: (room not in mates, rank.get(kind_of(room), 50)), default=None)
