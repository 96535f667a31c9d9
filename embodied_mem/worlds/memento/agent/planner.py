"""A household agent that needs no model server: it reads the instruction, asks memory what is meant, plans and acts.

    agent = MemoryPlanner()
    agent.begin(instruction, observation, memories, profile)
    agent.act(observation)             # Reply("The pen is not found yet. ...", "Explore[living_room_1]")

Goals are moves of things in order (`household_goals`), from the instruction alone or with what memories say
(`household_memory`). An object is recognised by category, by where a memory found it, and by its description, which is
asked for where several objects fit. Failures are answered: too far, go nearer; no room in a piece, take the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..memory.lexical import Embedder
from ..memory.profile import UserProfile
from ..memory.trace_texts import HELD, parse_action
from ..memory.traces import Trace
from .household import Reply
from .household_goals import Move, core_of, with_carries
from .household_instructions import read_instruction
from .household_memory import recall, unified
from .household_search import Search
from .household_view import HouseView, kind_of
from .household_words import PlaceWords

_ROOM_PIECES = ("table", "counter", "shelves", "stand", "bench", "couch", "bed", "cabinet", "chest of drawers", "chair")
_PATIENCE = 6
_TRY_NEXT = 6
_OTHERS = 4
"""Actions to spare from which, and pieces up to which, another is tried where nothing can be put on the first."""


class MemoryPlanner:
    """The agent.

    Args:
        embedder: compares what users say; None for words alone.
        max_actions: actions of a run; what is only for later memory is left out when they run short.
    """

    def __init__(self, embedder: Embedder | None = None, *, max_actions: int = 40):
        self._embedder = embedder
        self._max_actions = max_actions

    def begin(
        self,
        instruction: str,
        observation: str,
        memories: Sequence[Trace] = (),
        profile: UserProfile | None = None,
    ) -> None:
        """As `HouseholdAgent.begin`."""
        self.view = HouseView(observation, instruction)
        self.words = PlaceWords(self.view)
        asked = read_instruction(instruction, self.words)
        self._parts = recall(instruction, asked, self.words, memories, profile, self._embedder)
        self._notes = [note for part in self._parts for note in part.notes]
        self.moves = self._joined()
        self._told = bool(asked.descriptions or asked.preferences)
        self._search = Search(self.view, self.words)
        self._current = 0
        self._action = ""
        self._used = 0
        self._failures = 0
        self._bad: set[tuple[str, ...]] = set()

    def _joined(self) -> list[Move]:
        """The moves of all parts, in order."""
        moves = []
        for number, part in enumerate(self._parts):
            for move in part.moves:
                move.part = number
                moves.append(move)
        return with_carries(unified(moves))

    def act(self, observation: str) -> Reply:
        """As `HouseholdAgent.act`."""
        if self._action:
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
        return self._max_actions - self._used - 1 - 4 * (len(self.moves) - self._current)

    def _step(self, move: Move) -> Reply | None:
        """The next action for a move; None if it is done or cannot be done."""
        thing = move.thing
        if move.place is None and move.beside is None and not move.piece:
            self._notes.append(f"I do not know what to do about '{thing.phrase}': neither words nor memory say where.")
            return None
        if not thing.name:
            if self._doubtful(move):
                return self._step(self.moves[self._current]) if self._current < len(self.moves) else None
            taken = {other.thing.name for other in self.moves if other.thing is not thing}
            reply = self._search.look_for(move, taken, self._spare())
            if reply is not None or not thing.name:
                return reply
            if not thing.known:
                self._notes.append(
                    f"I do not know which {core_of(thing.phrase)} is meant; my best guess is {thing.name}."
                )
        if move.beside is not None and not move.beside.name:
            return self._search.look_for(
                Move(move.beside, None, source=move.place), {thing.name}, self._spare()
            ) or self._step_beside(move)
        seen = self.view.objects[thing.name]
        if self.view.held == thing.name:
            return self._bring(move)
        if self.view.held is not None:
            return self._put_away()
        if self._there(move):
            return None
        if self._targets(move) == []:
            self._notes.append(f"I do not know where {thing.phrase} should go, so I leave it.")
            return None
        if self.view.at == seen.place and ("far", thing.name) not in self._bad:
            return Reply(f"I am at {seen.place}, so I pick up {thing.name}.", f"Pick[{thing.name}]")
        target = thing.name if ("far", thing.name) in self._bad or seen.place.startswith("floor_") else seen.place
        self._bad.discard(("far", thing.name))
        if target == thing.name:
            self.view.at = seen.place
        return Reply(f"{thing.name} is on {seen.place} in {seen.room}; I go there.", f"Navigate[{target}]")

    def _doubtful(self, move: Move) -> bool:
        """Whether what memory says turned out wrong: its object is not where it was, and another memory may be meant.

        The part's moves are then another memory's, best of those whose objects may be there.
        """
        part = self._parts[move.part]
        started = any(m.part == move.part for m in self.moves[: self._current])
        gone = [m.thing for m in part.moves if self._search.missing(m.thing)]
        if started or not gone:
            return False
        used = {other.source for other in self._parts}
        while part.others:
            other = part.others.pop(0)()
            if other.source in used:
                continue
            if other.moves and not any(self._search.missing(m.thing) for m in other.moves):
                self._notes += [f"{gone[0].phrase} is not where I remember it, so something else may be meant."]
                self._notes += other.notes
                other.others = part.others
                self._parts[move.part] = other
                self.moves = self.moves[: self._current] + [m for m in self._joined() if m.part >= move.part]
                return True
        return False

    def _step_beside(self, move: Move) -> Reply | None:
        if not move.beside.name:
            self._notes.append(f"I do not find {move.beside.phrase}.")
            move.beside = None
        return self._step(move)

    def _there(self, move: Move) -> bool:
        """Whether the thing is where it shall be, without any move."""
        seen = self.view.objects[move.thing.name]
        if move.beside is not None:  # on the same piece is not next to each other
            return False
        if move.place is None:
            return True
        if move.place.other or move.inside or move.beside_place is not None:
            return False
        if any(other.thing is move.thing for other in self.moves[: self._current]):
            return False
        if move.place.piece:
            return seen.place in self.words.pieces(move.place)
        return seen.room in self.words.rooms(move.place)

    def _targets(self, move: Move) -> list[str]:
        """Pieces and floors to put the thing on, best first; those that did not work left out."""
        view, place, thing = self.view, move.place, move.thing
        beside = view.objects[move.beside.name].place if move.beside is not None and move.beside.name else ""
        beside = beside if beside != HELD else ""
        if place is None:
            return [name for name in (beside, move.piece) if name and self._usable(name, move)]
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
            names = [name for name in names if name != view.objects[thing.name].start]
        if place.piece == "floor" and move.beside_place is not None:
            near = {view.room_of(piece) for piece in self.words.pieces(move.beside_place)}
            names = [name for name in names if view.room_of(name) in near] or names
        names = [name for name in names if self._usable(name, move)]
        mates = [
            view.objects[m.thing.name].place
            for m in self.moves[: self._current]
            if m.group == move.group and m.thing.name and m.thing is not thing
        ]
        here = view.room_of(view.at) if view.at else view.room
        source = view.objects[thing.name].start_room
        context = [name for name in names if view.room_of(name) == source] if not place.room else []
        order = [beside, move.piece, *reversed(mates), *context]
        first = [name for name in dict.fromkeys(order) if name in names]
        rest = [name for name in names if name not in first]
        rest.sort(key=lambda name: 0 if not place.room or place.hint else view.room_of(name) != here)
        return first + rest

    def _usable(self, name: str, move: Move) -> bool:
        relations = ("within", "on") if move.inside else ("on", "within")
        return any((name, relation) not in self._bad for relation in relations)

    def _takes(self, name: str) -> bool:
        """Whether a thing may be put on a piece, as far as is known."""
        return (name, "on") not in self._bad

    def _first(self, targets: list[str], move: Move) -> str:
        """The piece to go to: the best, or where nothing can be put on it and actions are left, another of its type."""
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
        """Carry the held thing to its place and put it there."""
        thing, view = move.thing, self.view
        if move.carry:
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
        near = [p for p in self.words.pieces(move.beside_place)] if move.beside_place is not None else []
        if target.startswith("floor_"):
            near = [p for p in near if view.room_of(p) == view.room_of(target)]
            stand = near[0] if near else target
            if view.at != stand and not (view.room == view.room_of(target) and not near):
                return Reply(f"I carry {thing.name} to {stand}.", f"Navigate[{stand}]")
            return Reply(f"I put {thing.name} on the floor here.", f"Place[{thing.name}, on, {target}, None, None]")
        if view.at != target or ("far", target) in self._bad:
            self._bad.discard(("far", target))
            return Reply(
                f"I hold {thing.name} and carry it to {target} in {view.room_of(target)}.", f"Navigate[{target}]"
            )
        relation = self._relation(target, move, targets)
        reference = ""
        if move.beside is not None and move.beside.name and view.objects[move.beside.name].place == target:
            reference = move.beside.name if (target, "next_to", move.beside.name) not in self._bad else ""
        elif near:
            open_ = [p for p in near if (target, "next_to", p) not in self._bad]
            others = [t for t in targets[1:] if any((t, "next_to", p) not in self._bad for p in near)]
            if not open_ and others and self._spare() > 0:
                self._bad |= {(target, "on"), (target, "within")}
                return self._bring(move)
            reference = open_[0] if open_ else ""
        beside = f"next_to, {reference}" if reference else "None, None"
        return Reply(
            f"I put {thing.name} {relation} {target}{f' next to {reference}' if reference else ''}.",
            f"Place[{thing.name}, {relation}, {target}, {beside}]",
        )

    def _put_away(self) -> Reply:
        """Free the hand: the thing goes on the piece or floor at hand."""
        view = self.view
        if view.at in view.furniture and (view.at, "on") not in self._bad:
            place = view.at
        else:
            place = view.floors.get(view.room) or next(iter(view.floors.values()))
        return Reply(f"I put {view.held} down to free my hand.", f"Place[{view.held}, on, {place}, None, None]")

    def _learn(self, result: str) -> None:
        """Draw conclusions from an answer."""
        name, parts = parse_action(self._action)
        if result.startswith("Successful"):
            if name == "Place" and self._current < len(self.moves) and parts[0] == self.moves[self._current].thing.name:
                self._current += 1
                self._failures = 0
            return
        if name not in ("Pick", "Place", "Navigate"):
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

    def _finish(self) -> Reply:
        if self.view.held is not None:
            return self._put_away()
        if self._told and self._spare() > 0:  # the user told something about himself: memory is to keep its looks
            for move in self.moves:
                seen = self.view.objects.get(move.thing.name)
                if seen is not None and not seen.described and not move.thing.captions:
                    return Reply(
                        f"I look at {move.thing.name} closely, to know it again.",
                        f"DescribeObjectTool[{move.thing.name}]",
                    )
        if not self.moves:
            return Reply("I do not know what is wanted, so I stop.", "Done[]")
        return Reply("All that I could do is done.", "Done[]")
