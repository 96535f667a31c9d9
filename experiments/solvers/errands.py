"""Errands: tasks that ALFWorld's sentences lack, their rule teacher, and what worlds taught so share.

    parse_errands("put a plate in sofa from sink, then a cup in blacktable.").moves[1]   # Move("cup", "blacktable")
    parse_errands("put a plate in sofa.")                                                # None: ALFWorld has it itself
    teacher = ErrandTeacher(search_order)         # ALFWorld's own task sentences are taught as by `RuleTeacher`

Subgoals are `find X; put X in P` for every move that is left, the one whose thing is in the hand first, or the visit
itself. The fact `placed` says what is where it belongs: that, and not the order of the sentence, decides what is left.
A task for all things of a kind adds nothing to `placed`, since their number is unknown: the teacher finds and puts away
things of the kind, after everything else, until the world ends the task, and always has two more rounds pending.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from embodied_mem.compiler.brief_state import BriefState, Create, Delete, Edit, Fold
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory import Experience
from embodied_mem.memory.readers import DEFAULT
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.teachers.lesson import Lesson, Teacher
from embodied_mem.worlds.alfworld.wording.follower import Follower
from embodied_mem.worlds.alfworld.wording.search_orders import SearchOrder
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher, TeacherNoise, remembered_places
from embodied_mem.worlds.alfworld.wording.text import Percept, Task, parse_room, type_of

from .alfworld_adapter import AlfworldTextAdapter

_MOVE = re.compile(r"(?P<article>an?|all) (?P<thing>[a-z]+) in (?P<place>[a-z]+)(?: from (?P<source>[a-z]+))?")
_VISIT = re.compile(r"(?P<verb>go to|open|close) (?P<place>[a-z]+)")
_THEN = ", then "


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """A thing to bring; types of things and places as in ALFWorld's texts.

    Attributes:
        thing: what.
        place: where to.
        source: where it is said to be; empty if that is not said.
        all: whether all of the kind are meant.
    """

    thing: str
    place: str
    source: str = ""
    all: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Errands:
    """The request of a sentence: moves in order, or one visit.

    Attributes:
        moves: what is to be brought; empty if there is a visit.
        visit: "go to P", "open P" or "close P"; empty if there are moves.
    """

    moves: tuple[Move, ...] = ()
    visit: str = ""


def render_errands(errands: Errands) -> str:
    """Return the sentence, with its full stop."""
    if errands.visit:
        return f"{errands.visit}."
    parts = [
        f"{'all' if m.all else 'a'} {m.thing} in {m.place}" + (f" from {m.source}" if m.source else "")
        for m in errands.moves
    ]
    return f"put {_THEN.join(parts)}."


def parse_errands(goal: str) -> Errands | None:
    """Parse the errands of a sentence.

    It is None for a sentence of another form, or one that ALFWorld has itself.
    """
    text = " ".join(goal.lower().split()).removeprefix("your task is to: ").rstrip(".")
    if _VISIT.fullmatch(text):
        return Errands(visit=text)
    parts = text.removeprefix("put ").split(_THEN)
    found = [move for move in map(_MOVE.fullmatch, parts) if move]
    if not text.startswith("put ") or len(found) < len(parts):
        return None
    moves = tuple(Move(m["thing"], m["place"], m["source"] or "", m["article"] == "all") for m in found)
    return Errands(moves) if moves != (Move(moves[0].thing, moves[0].place),) else None


_VISITS = ("go", "open", "close")


class ErrandTeacher(TeacherNoise):
    """Teacher by rules for ALFWorld's texts with errands; arguments as of `RuleTeacher`."""

    def __init__(
        self, search_order: SearchOrder | None = None, grammar: str = "0.4", kinds: Sequence[str] | None = None
    ):
        super().__init__(kinds)
        self._order, self._grammar = search_order, grammar

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        errands = parse_errands(goal)
        settings = self._order, self._grammar, self.kinds
        self._rules = RuleTeacher(*settings) if errands is None else _ErrandRules(errands, *settings)
        return self._rules.begin(goal, first_observation, experiences)

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        return self._rules.next(action, observation, state)


class ErrandTasks:
    """`TaskSource` of a world in ALFWorld's sentences, where nothing is to be chosen and nothing is drawn."""

    adapter: ClassVar[type[AlfworldTextAdapter]]
    kinds: Sequence[str]
    order: ClassVar[SearchOrder]

    def __init__(self, world: WorldConfig, seed: int):
        """Make tasks as a card's `tasks`."""

    def follower(self) -> Follower:
        return Follower()

    def envs(self, tasks: Sequence[Any], num_envs: int, max_steps: int | None = None) -> AlfworldTextAdapter:
        return self.adapter(tasks, num_envs, max_steps)

    def teacher(self, kinds: Sequence[str] | None = None) -> ErrandTeacher:
        return ErrandTeacher(type(self).order, kinds=kinds or self.kinds)

    def commands(self) -> str:
        return prompt(type(self).__module__.rpartition(".")[0], "commands")

    def player(self) -> TaughtPlayer:
        return TaughtPlayer(lambda order: ErrandTeacher(order, kinds=self.kinds), type(self).order)

    def task_key(self, task_id: str) -> str:
        return task_id


def held_out(tasks: Iterable[Any], group: Callable[[Any], str], one_in: int) -> tuple[list[Any], list[Any]]:
    """Split tasks into (to train on, held out to choose by).

    One group in `one_in` is held out, by a hash of its name. Tasks that are satisfied at the start are in neither.
    """
    sides: tuple[list[Any], list[Any]] = ([], [])
    for task in tasks:
        if not task.satisfied_at_start:
            sides[zlib.crc32(group(task).encode()) % one_in == 0].append(task)
    return sides


class _ErrandRules(RuleTeacher):
    """The rules for a sentence that ALFWorld lacks."""

    def __init__(self, errands: Errands, search_order: SearchOrder | None, grammar: str, kinds: Sequence[str] | None):
        super().__init__(search_order, grammar, kinds)
        self._errands = errands

    def _set_task(self, goal: str) -> None:
        moves = self._errands.moves
        self.task = _task_of(moves[0]) if moves else Task("pick_and_place_simple", "")

    def _remember(self, experiences: Sequence[Experience]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"": [], "change": [], "put": []}
        for move in self._errands.moves:
            found[move.thing] = remembered_places(_task_of(move), experiences, self.room)[move.thing]
        return found

    def _moves_left(self, state: BriefState, held: str) -> list[Move]:
        """List the moves left in their order of execution.

        If nothing is left and the task goes on, it is the last move again.
        """
        moves = self._errands.moves
        left = [m for m in moves if _entry(m) not in state.fact("placed")] or list(moves[-1:])
        return sorted(left, key=lambda m: (m.thing != type_of(held), m.all))

    def _left(self, state: BriefState, held: str, treated: bool) -> tuple[str, ...]:
        if self._errands.visit:
            return (self._errands.visit,)
        pairs = [
            (f"find {m.thing}", f"put {m.thing} in {m.place}") * (1 + m.all) for m in self._moves_left(state, held)
        ]
        goals = [goal for pair in pairs for goal in pair]
        return tuple(goals[goals[0] == f"find {type_of(held)}" :])

    def _is_wanted(self, thing: str, place: str, state: BriefState) -> bool:
        kind, known = type_of(thing), {type_of(name) for name, _ in state.locations}
        return any(
            m.thing == kind and m.place != type_of(place) and (m.all or kind not in known)
            for m in self._moves_left(state, "")
        )

    def _deliveries(self, state: BriefState, percept: Percept, held: str, treated: bool) -> list[Edit]:
        thing, place = percept.object, percept.receptacle
        of_kind = [m for m in self._errands.moves if m.thing == type_of(thing)]
        moves = [m for m in of_kind if m.place == type_of(place)]
        if percept.took:
            return [Delete("placed", _entry(move)) for move in moves]
        if percept.put and of_kind and not moves:
            return [Create("seen", thing, place)]
        return [Create("placed", _entry(move)) for move in moves if percept.put and not move.all]

    def _continued(self, known: tuple[str, ...], left: tuple[str, ...]) -> list[Edit] | None:
        for done in range(min(2, len(known))):
            kept = len(known) - done
            if known[done:] == left[:kept]:
                return [*[Fold()] * done, *(Create("next", goal) for goal in left[kept:])]
        return None

    def _guidance(self, state: BriefState, doubted: str) -> tuple[str, str]:
        verb, _, rest = state.current.partition(" ")
        if verb in _VISITS:
            return f"{state.current} 1", "the goal says so"
        held = state.agent_value("holding")
        move = self._moves_left(state, held)[0]
        self.task = _task_of(move)
        seen = any(type_of(thing) == move.thing for thing, _ in state.locations)
        if move.source and verb == "find" and not (held or seen or doubted):
            source = self._first_of(move.source)
            if source not in state.fact("searched"):
                return f"find {rest} in {source}", "the goal says so"
        return super()._guidance(state, doubted)

    def _places_of(self, goal: str, state: BriefState) -> list[str]:
        verb, _, rest = goal.partition(" ")
        if verb != "find":
            return [self._first_of(goal.rpartition(" ")[2])]
        sources = {m.thing: self._first_of(m.source) for m in self._errands.moves if m.source}
        source = sources.get(rest, "")
        if source and source not in state.fact("searched"):
            return [source]
        return super()._places_of(goal, state)


def _task_of(move: Move) -> Task:
    return Task("pick_and_place_simple", move.thing, move.place)


def _entry(move: Move) -> str:
    """Return what the fact `placed` holds."""
    return f"{move.thing} in {move.place}"


class TaughtPlayer:
    """A `Player` of `experiments/baselines/player.py` that plays as a rule teacher without memory does.

    Args:
        make_teacher: gives a teacher that searches in this order.
        order: in which things are looked for where nothing else is said.
    """

    def __init__(self, make_teacher: Callable[[SearchOrder], Teacher], order: SearchOrder):
        self._make, self._default = make_teacher, order
        self.order: list[str] = []

    def reset(self, goal: str, first_observation: str, search_order: Sequence[str] | None = None) -> None:
        thing, first = DEFAULT.goal_object(goal), dict.fromkeys(search_order or ())

        def order(kind: str, places: Sequence[str]) -> list[str]:
            ranked = self._default(kind, places)
            ahead = [place for place in first if place in ranked] if kind == thing else []
            return list(dict.fromkeys([*ahead, *ranked]))

        self.order = order(thing, parse_room(first_observation))
        self._teacher, self._given = self._make(order), ""
        self._lesson = self._teacher.begin(goal, first_observation, ())

    def act(self, observation: str) -> str:
        if self._given:
            self.observe(self._given, observation)
        self._given = self._lesson.action
        return self._given

    def observe(self, command: str, observation: str) -> None:
        self._lesson, self._given = self._teacher.next(command, observation, self._lesson.state), ""
