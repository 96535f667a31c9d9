"""Finding the object that is meant: which room to explore, which objects fit, and which of several it is."""

from __future__ import annotations

import re

from .household import Reply
from .household_goals import Move, Thing, core_of, kind_score
from .household_view import HouseView, kind_of
from .household_words import PlaceWords, content, overlap, room_type

_KITCHEN = frozenset(
    """cup mug plate bowl jug kettle teapot pan pot knife fork spoon ladle spatula bread egg potato tomato apple can bottle
    food fruit spicemill tray glass pitcher teacup electric cooker basket lettuce sponge""".split()
)
_LIKELY = ("living room", "tv", "lounge", "family room", "bedroom", "office", "kitchen", "dining room", "hallway", "entryway", "bathroom")
_SURE, _UNLIKE = 0.6, 0.25


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
        pool = near or ([] if unseen else fits)
        if pool:
            reply = self._choose(thing, move, pool, bool(unseen), spare)
            if reply is not None or thing.name:
                return reply
        room = next(iter(unseen), None) or self._next_room(thing)
        if room is not None:
            why = f"{thing.phrase} is not found yet" if not fits else f"I am not sure that I have seen {thing.phrase}"
            return Reply(f"{why[0].upper()}{why[1:]}; I explore {room}.", f"Explore[{room}]")
        rest = fits or self._fitting(thing, taken, 0.5)
        if rest:
            thing.name = self._best(thing, move, rest)
            return None
        return None

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
        """Share of what is known of a thing that an object's description has, in [0, 1]; 0 before it was described."""
        caption = self.view.objects[name].caption
        if not caption:
            return 0.0
        if caption in thing.captions:
            return 1.0
        kind = set(content(kind_of(name)))
        said = thing.captions or (f"{thing.phrase} {thing.said}",)
        texts = [" ".join(w for w in content(text) if w not in kind) for text in said]
        return max(overlap_stems(text, caption) for text in texts)

    def _choose(self, thing: Thing, move: Move, pool: list[str], unseen: bool, spare: int) -> Reply | None:
        view = self.view
        evidence = bool(thing.said or thing.captions or set(content(thing.phrase)) - set(content(kind_of(pool[0]))))
        if not evidence or (len(pool) == 1 and not unseen) or spare <= 0:
            if len(pool) > 1 and not evidence and len({view.objects[n].start for n in pool}) >= 1:
                thing.known = False
            thing.name = self._best(thing, move, pool)
            return None
        ranked = sorted(pool, key=lambda name: -self.likeness(thing, name))
        if self.likeness(thing, ranked[0]) >= _SURE:
            thing.name = ranked[0]
            return None
        open_ = [name for name in pool if not view.objects[name].described]
        if open_ and not (len(open_) == 1 and len(pool) == 2 and 0 < self.likeness(thing, ranked[0]) >= 0.45):
            name = self._best(thing, move, open_)
            return Reply(f"{name} may be {thing.phrase}; I look at it closely.", f"DescribeObjectTool[{name}]")
        if unseen and self.likeness(thing, ranked[0]) < _UNLIKE:
            return None
        thing.name = ranked[0]
        return None

    def _best(self, thing: Thing, move: Move, names: list[str]) -> str:
        """The most likely object before anything is described: by likeness, place in memory, source, then order."""
        pieces = set(self.words.pieces(move.source)) if move.source is not None and move.source.piece else set()

        def rank(name: str) -> tuple:
            seen = self.view.objects[name]
            return (
                -self.likeness(thing, name),
                seen.start != thing.start,
                seen.start not in pieces,
                name != thing.before,
                int(re.sub(r"\D", "", name.rpartition("_")[2]) or 0),
            )

        return min(names, key=rank)

    def _next_room(self, thing: Thing) -> str | None:
        """The unexplored room that the thing is most likely in; None if all are explored."""
        view = self.view
        kitchen = bool(_KITCHEN & set((thing.kind or core_of(thing.phrase)).split()))
        order = ("kitchen", "dining room", *_LIKELY) if kitchen else _LIKELY
        rank = {kind: i for i, kind in reversed(list(enumerate(order)))}
        rooms = [room for room in view.rooms if room not in view.explored and room in view.floors and view.rooms[room]]
        return min(rooms, key=lambda room: rank.get(room_type(room), 50), default=None)


def overlap_stems(said: str, caption: str) -> float:
    """As `overlap`, for words that are stems already."""
    words, known = set(said.split()), set(content(caption))
    return len(words & known) / max(1, min(len(words), len(known)))


__all__ = ["Search", "overlap"]
