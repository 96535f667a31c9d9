"""An expert for ALFWorld that knows only what the texts have told; `shortest_plan` is one that sees the full state.

    expert = ObservingExpert()
    expert.reset(goal, first_observation, search_order=statistics_order)
    command = expert.act(first_observation)                               # then act(observation) after every step
    expert.observe("go to shelf 1", "You arrive at shelf 1. ...")         # a command that somebody else gave

The observing expert solves every game from any situation it has watched from the start: doors, objects seen in
passing, a wrong object in the hand, objects that already lie in the target, lamps.
"""

from __future__ import annotations

from collections.abc import Sequence

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.readers.reading import STATE_AFTER
from embodied_mem.worlds.alfworld.wording.search_orders import SearchOrder, households_put, statistics_order
from embodied_mem.worlds.alfworld.wording.text import (
    Command,
    Percept,
    Task,
    parse_command,
    parse_goal,
    parse_observation,
    parse_room,
    put_command,
    type_of,
)

_OPPOSITE = {"heat": "cool", "cool": "hot"}
"""Verb -> the mark that it takes away."""


class ObservingExpert:
    """Plays from observation texts alone: searches, fetches, prepares, places.

    Args:
        grammar: wording of the commands, "0.4" or "0.3"; both are understood.

    Attributes:
        task: what is asked, after `reset`.
        receptacles: all receptacles of the room, in the order of its text.
        at: the receptacle in front of the agent, "" in the middle of the room.
        together: receptacle -> all receptacles known to be reached from the same place ("go to" from one to another
            of them is refused), itself included.
        held: the object in the hand, "" for none.
        contents: receptacle -> objects known to be in it; a receptacle not looked into is missing.
        closed: receptacles last seen closed.
        marks: "clean", "hot", "cool", "toggled" -> objects known to be so.
        order: the receptacles in which the goal's object is searched, best first.
    """

    def __init__(self, grammar: str = "0.4") -> None:
        put_command("", "", grammar)  # refuses an unknown grammar
        self.grammar = grammar

    def reset(self, goal: str, first_observation: str, search_order: SearchOrder | Sequence[str] | None = None) -> None:
        """Start a game.

        Every answer should reach the expert: those to its own commands through the next `act`, or through `observe`
        where somebody else plays next; those to other commands through `observe`. What it missed it finds out when
        a command is refused.

        Args:
            goal: the task sentence.
            first_observation: the text that lists the room's receptacles.
            search_order: a callable (object type, receptacles) -> receptacles, or a list of receptacles for the
                goal's object; what it leaves out is searched afterwards in the default order, `statistics_order`.

        Raises:
            InvalidInputError: the goal is no ALFWorld task, or the text lists no receptacle.
        """
        self.task: Task = parse_goal(goal)
        self.receptacles = parse_room(first_observation)
        if not self.receptacles:
            raise InvalidInputError(f"first_observation: no list of receptacles in {first_observation[:120]!r}")
        self.at = ""
        self.held = ""
        self.contents: dict[str, list[str]] = {}
        self.closed: set[str] = set()
        self.marks: dict[str, set[str]] = {"clean": set(), "hot": set(), "cool": set(), "toggled": set()}
        self.together: dict[str, set[str]] = {}
        self._search_order = search_order
        self._refused: set[tuple[str, str, str]] = set()
        self._came_from: dict[str, str] = {}
        self._last, self._is_mine = "", False
        self._doubts_hand = False
        self._checked: set[str] = set()
        self.order = self._order_for(self.task.object_type)
        self._lamp_order: list[str] | None = None

    def _order_for(self, object_type: str) -> list[str]:
        """Order all receptacles for the search of an object type."""
        given = self._search_order
        if given is None or (not callable(given) and object_type != self.task.object_type):
            return statistics_order(object_type, self.receptacles)
        chosen = given(object_type, self.receptacles) if callable(given) else given
        known = set(self.receptacles)
        ranked = dict.fromkeys(receptacle for receptacle in chosen if receptacle in known)
        if len(ranked) < len(known):
            ranked.update(dict.fromkeys(statistics_order(object_type, self.receptacles)))
        return list(ranked)

    def observe(self, command: str, observation: str) -> None:
        """Take note of what a command, given by anybody, was answered."""
        self._last, self._is_mine = command, False
        self._note(parse_observation(observation), command)

    def act(self, observation: str) -> str:
        """Return the next command after `observation`, at first the room text.

        Seeing the same answer again, as after `observe`, does no harm.
        """
        self._note(parse_observation(observation), self._last)
        if self._doubts_hand:
            self._doubts_hand, command = False, "inventory"
        else:
            command = self._decide()
        self._last, self._is_mine = command, True
        return command

    # What is known.

    def _note(self, percept: Percept, command: str) -> None:
        """Update knowledge by a percept; a repeated one changes nothing."""
        kind, receptacle, name = percept.kind, percept.receptacle, percept.object
        if percept.is_open is not None:
            (self.closed.discard if percept.is_open else self.closed.add)(receptacle)
        if percept.contents is not None:
            self.contents[receptacle] = list(percept.contents)
            self._checked.add(receptacle)
        if kind in ("take", "put", "inventory"):
            self.held = percept.held or ""
            self._forget_place(name)
        match kind:
            case "nothing":
                self._note_refusal(parse_command(command))
            case "arrive":
                self.at = receptacle
            case "take":
                self._came_from[name] = receptacle
            case "put":
                self.contents.setdefault(receptacle, []).append(name)
            case "clean" | "heat" | "cool":
                self.held = name
                self.marks[STATE_AFTER[kind]].add(name)
                if kind in _OPPOSITE:
                    self.marks[_OPPOSITE[kind]].discard(name)
            case "turn_on" | "turn_off":
                self.marks["toggled"].add(name)
            case "facing":
                self._join(*percept.receptacles)
                if not self._is_here(percept.receptacles[0]):
                    self.at = percept.receptacles[0]

    def _join(self, *receptacles: str) -> None:
        """Take note that these receptacles are reached from one place."""
        group = set(receptacles).union(*(self.together.get(receptacle, ()) for receptacle in receptacles))
        for receptacle in group:
            self.together[receptacle] = group

    def _is_here(self, receptacle: str) -> bool:
        """Return whether the agent is known to reach this receptacle."""
        return receptacle == self.at or receptacle in self.together.get(self.at, ())

    def _forget_place(self, name: str) -> None:
        """Take an object off all places where it was known to be."""
        for receptacle in self.contents:
            self._forget(name, receptacle)

    def _note_refusal(self, command: Command) -> None:
        """Drop the belief behind a command answered by "Nothing happens."."""
        verb, name, receptacle = command.verb, command.object, command.receptacle
        self._doubts_hand = self._is_mine and verb in ("take", "put", *STATE_AFTER)
        if receptacle and not self._is_here(receptacle) and verb != "go":
            return  # somebody tried it from afar: no news
        match verb:
            case "take" if not self.held:
                self._forget(name, receptacle)
            case "open":
                if receptacle not in self.contents:
                    self._checked.add(receptacle)
                self.closed.discard(receptacle)
            case "go":
                if self.at and receptacle in self.receptacles:
                    self._join(self.at, receptacle)  # one cannot go where one is
            case _ if name and name == self.held:
                self._refused.add((verb, type_of(name), receptacle))
            case "use":
                self._forget(name, self.at)

    def _forget(self, name: str, receptacle: str) -> None:
        """Take an object off a place."""
        names = self.contents.get(receptacle, [])
        if name in names:
            names.remove(name)

    # What to do.

    def _decide(self) -> str:
        """Return the next command from what is known."""
        task, held = self.task, self.held
        if held and type_of(held) != task.object_type:
            return self._drop()
        if not held:
            found = self._choose_object()
            return self._use(found[1], f"take {found[0]} from {found[1]}") if found else self._search(self.order)
        if task.lamp_type:
            return self._look_under_lamp()
        if not self._is_prepared(held):
            changer = self._choose(task.changer_type, task.change)
            if changer:
                return self._reach(changer) or f"{task.change} {held} with {changer}"
        target = self._choose(task.receptacle_type, "put")
        return self._use(target, put_command(held, target, self.grammar)) if target else self._drop()

    def _is_prepared(self, name: str) -> bool:
        """Return whether an object is known to be as the task wants."""
        return not self.task.change or name in self.marks[STATE_AFTER[self.task.change]]

    def _reach(self, receptacle: str) -> str:
        """Return the command that goes there, or "" if already there."""
        return "" if self._is_here(receptacle) else f"go to {receptacle}"

    def _use(self, receptacle: str, command: str) -> str:
        """Return the next command towards putting or taking something there."""
        if receptacle in self.closed and self._is_here(receptacle):
            return f"open {receptacle}"
        return self._reach(receptacle) or command

    def _cost(self, receptacle: str) -> int:
        """Estimate the commands of looking into a receptacle and coming back."""
        return 2 * (not self._is_here(receptacle)) + (receptacle in self.closed)

    def _known(self, kind: str) -> list[tuple[str, str]]:
        """Return (object, receptacle) of the objects of a type that are known."""
        return [(name, place) for place, names in self.contents.items() for name in names if type_of(name) == kind]

    def _is_done(self, name: str, receptacle: str) -> bool:
        """Return whether an object there already fulfils part of the goal."""
        task = self.task
        if type_of(receptacle) != task.receptacle_type:
            return False
        if task.count == 2:
            return receptacle == self._choose(task.receptacle_type, "put")
        return self._is_prepared(name)

    def _choose_object(self) -> tuple[str, str] | None:
        """Return (object, receptacle) of the nearest object, prepared ones first, or None."""
        left = [found for found in self._known(self.task.object_type) if not self._is_done(*found)]
        return min(left, key=lambda f: self._cost(f[1]) + 4 * (not self._is_prepared(f[0])), default=None)

    def _choose(self, receptacle_type: str, verb: str) -> str:
        """Return the receptacle of a type to do something at.

        It is one that has such an object if two are wanted, then the nearest that needs no opening. "" if none is
        left.
        """
        wanted = self.task.object_type

        def cost(receptacle: str) -> int:
            walk = 2 * (not self._is_here(receptacle))
            if verb != "put":
                return walk
            there = sum(type_of(name) == wanted for name in self.contents.get(receptacle, ()))
            is_hidden = receptacle in self.closed or receptacle not in self.contents
            return walk + is_hidden - (10 * there if self.task.count == 2 else 0)

        of_type = [r for r in self.receptacles if type_of(r) == receptacle_type]
        return min((r for r in of_type if not self._is_refused(verb, wanted, r)), key=cost, default="")

    def _is_refused(self, verb: str, object_type: str, receptacle: str) -> bool:
        return (verb, object_type, receptacle) in self._refused

    def _drop(self) -> str:
        """Return the next command to empty the hand, here if it fits."""
        held, kind = self.held, type_of(self.held)
        origin = self._came_from.get(held, "")

        def cost(receptacle: str) -> int:
            fits = receptacle == origin or households_put(kind, type_of(receptacle))
            return self._cost(receptacle) + 20 * (not fits)

        best = min((r for r in self.receptacles if not self._is_refused("put", kind, r)), key=cost, default="")
        if not best:
            self._refused.clear()
            return "inventory"
        return self._use(best, put_command(held, best, self.grammar))

    def _search(self, order: Sequence[str]) -> str:
        """Return the next command of searching the unseen receptacles in order."""
        for receptacle in order:
            if receptacle not in self._checked:
                if not self._is_here(receptacle):
                    return f"go to {receptacle}"
                return f"open {receptacle}" if receptacle in self.closed else f"examine {receptacle}"
        self._checked.clear()
        self._refused.clear()
        return "inventory"

    def _look_under_lamp(self) -> str:
        """Return the next command towards a lamp and its switch."""
        lamp_type, toggled = self.task.lamp_type, self.marks["toggled"]

        def cost(found: tuple[str, str]) -> int:
            return 2 * (not self._is_here(found[1])) + (found[0] not in toggled)

        best = min(self._known(lamp_type), key=cost, default=None)
        if best is None:
            if self._lamp_order is None:
                self._lamp_order = self._order_for(lamp_type)
            return self._search(self._lamp_order)
        return self._reach(best[1]) or f"use {best[0]}"
