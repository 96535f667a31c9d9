"""A household agent without a language model: parses the instruction, resolves it by memory, plans and acts.

    agent = MemoryPlanner()
    agent.begin(instruction, observation, memories, profile)
    agent.act(observation)             # Reply("The pen is not found yet. ...", "Explore[living_room_1]")

Goals are moves of things in order (`household_goals`), from the instruction alone or with what memories say
(`household_memory`). An object is recognised by category, by where a memory found it, and by its description, which is
asked for where several objects fit. Failures are answered: too far, go nearer; no room in a piece, take the next.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from embodied_mem.memory.embedders import Embedder
from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.agent.agent import Reply
from embodied_mem.worlds.memento.traces.trace import HELD, Trace, parse_action

from .goals import Move, Thing, with_carries
from .house import HouseView, kind_of
from .instruction import read_instruction
from .lexicon import PlaceMention, PlaceWords, core_of
from .nearby import Nearby, Reach
from .recall import Part, recall, unified
from .search import Search

_ROOM_PIECES = ("table", "counter", "shelves", "stand", "bench", "couch", "bed", "cabinet", "chest of drawers", "chair")
_PATIENCE = 6
_TRY_NEXT = 6
_OTHERS = 4
_NEAR = 0.4
"""Actions to spare from which, and pieces up to which, another is tried where nothing can be put on the first; share of
walks within a room that turn out to be needless."""


class Verdict(enum.Enum):
    """What a rule says of a move that gives no action."""

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
        """The moves of all parts, in order."""
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
        """Whether to reach for a piece without a walk: it is known to be near, or a try is worth an action.

        A try wins with the odds of `_NEAR`. Where the user tells something that is to be remembered, and actions are
        left, it is tried for later's sake.
        """
        reach, moves = self._reach, self.moves[self._current :]
        known = reach.within(tool, piece, reach.stand)
        if known is not None:
            return known
        fact = reach.fact(tool, piece, reach.stand)
        saved = reach.needed(moves, self._goal, goal) - reach.needed(moves, self._goal, goal, {fact})
        return saved * _NEAR > 1 - _NEAR or (self._told and self._spare() > _TRY_NEXT)

    def _goal(self, move: Move) -> str:
        """The piece that a thing is likely to be put on, as far as is known; empty where it is not."""
        if move.piece:
            return move.piece
        beside = self.view.objects.get(move.beside.name) if move.beside is not None else None
        return beside.place if beside is not None and beside.place != HELD else ""

    def _taken(self, thing: Thing) -> set[str]:
        """Names of the objects that are other things of the task."""
        return {move.thing.name for move in self.moves if move.thing is not thing and move.thing.name}

    def _step(self, move: Move) -> Reply | None:
        """The next action for a move, by the first of `RULES` that knows; None if it is done or cannot be done."""
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
        """Which object it is, is not known yet."""
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
        """Which object it goes beside, is not known yet; where it is not found, it goes without."""
        beside = move.beside
        if beside is None or beside.name:
            return Verdict.NEXT
        reply = self._search.look_for(Move(beside, None, source=move.place), {move.thing.name}, self._spare())
        if reply is None and not beside.name:
            self._notes.append(f"I do not find {beside.phrase}.")
            move.beside = None
        return reply or self._step(move) or Verdict.DONE

    def gather(self, move: Move) -> Reply | Verdict:
        """What it goes beside is not where both shall be: that is brought there first."""
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
        """Whether a move of a part was done, or given up."""
        return any(self._parts[move.part] is part for move in self.moves[: self._current])

    def _doubtful(self, move: Move) -> bool:
        """Whether what memory says turned out wrong: its object is not where it was, and another memory may be meant.

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
        """Whether the thing is where it shall be, without any move."""
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
        """Pieces and floors to put the thing on, best first; those that did not work left out.

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
        """What a place may mean: pieces of its type, or in a room what things stand on and the floor."""
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
        """Carry the held thing to its place and put it there; None where it is only carried, and is there."""
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
        """Put the held thing on a floor, where the agent stands: at a piece of that room that is `near`, if any is."""
        view, room = self.view, self.view.room_of(floor)
        near = [piece for piece in near if view.room_of(piece) == room]
        stand = near[0] if near else floor
        if view.at != stand and (near or view.room != room):
            return Reply(f"I carry {name} to {stand}.", f"Navigate[{stand}]")
        return Reply(f"I put {name} on the floor here.", f"Place[{name}, on, {floor}, None, None]")

    def _put(self, move: Move, target: str, targets: list[str], near: list[str]) -> Reply | None:
        """Put the held thing on the piece at hand, next to its neighbour or to furniture that is `near`."""
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
        """Go on behind a move that was carried out, unless it was a trial that leaves open which piece is meant.

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
        """Whether an action reached for a piece at which the agent does not stand."""
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
"""What decides about a move, in order: (agent, move) -> the next action, or `Verdict`."""
