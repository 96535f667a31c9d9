"""The rule teacher for `errands`: several things with a place each, all things of a kind, doors, a place to go to.

    teacher = ErrandTeacher(search_order)         # ALFWorld's own task sentences are taught as by `RuleTeacher`

Subgoals are `find X; put X in P` for every move that is left, the one whose thing is in the hand first, or the visit
itself. The fact `placed` says what is where it belongs: that, and not the order of the sentence, decides what is left.
Of a kind that is wanted as a whole nothing is noted there, since nobody knows how many there are: it is found and put
away again and again, after everything else, until the world says that all is done, and there are always two rounds of
it ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

from embodied_mem.agents.views import start_state
from embodied_mem.compiler.brief_state import BriefState, Create, Delete, Edit, Fold, Update
from embodied_mem.envs.alfworld_text import Percept, Task, type_of
from embodied_mem.envs.errands import Move, parse_errands
from embodied_mem.memory import Experience
from embodied_mem.training.teacher import Lesson, RuleTeacher, remembered_places

_VISITS = ("go", "open", "close")


class ErrandTeacher(RuleTeacher):
    """Teacher by rules for ALFWorld's texts with errands; see `RuleTeacher`."""

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        """As `RuleTeacher.begin`."""
        self.errands = parse_errands(goal)
        return super().begin(goal, first_observation, experiences)

    def _set_task(self, goal: str) -> None:
        if self.errands is None:
            return super()._set_task(goal)
        self.task = _task_of(self.errands.moves[0]) if self.errands.moves else Task("pick_and_place_simple", "")
        self.subgoals = self._left(start_state(goal, ""), "")

    def _remember(self, experiences: Sequence[Experience]) -> dict[str, list[str]]:
        if self.errands is None:
            return super()._remember(experiences)
        found = {"": [], "change": [], "put": []}
        for move in self.errands.moves:
            found[move.thing] = remembered_places(_task_of(move), experiences, self.room)[move.thing]
        return found

    def _moves_left(self, state: BriefState, held: str) -> list[Move]:
        """Moves in the order in which they are made; the last one again if nothing is left and the task goes on."""
        moves = self.errands.moves
        left = [m for m in moves if _entry(m) not in state.fact("placed")] or list(moves[-1:])
        return sorted(left, key=lambda m: (m.thing != type_of(held), m.all))

    def _left(self, state: BriefState, held: str) -> tuple[str, ...]:
        if self.errands.visit:
            return (self.errands.visit,)
        left = self._moves_left(state, held)
        pairs = [(f"find {m.thing}", f"put {m.thing} in {m.place}") * (1 + m.all) for m in left]
        goals = [goal for pair in pairs for goal in pair]
        return tuple(goals[goals[0] == f"find {type_of(held)}" :])

    def _is_wanted(self, thing: str, place: str, state: BriefState) -> bool:
        if self.errands is None:
            return super()._is_wanted(thing, place, state)
        kind, known = type_of(thing), {type_of(name) for name, _ in state.locations}
        return any(
            m.thing == kind and m.place != type_of(place) and (m.all or kind not in known)
            for m in self._moves_left(state, "")
        )

    def _deliveries(self, state: BriefState, percept: Percept, held: str, treated: bool) -> list[Edit]:
        if self.errands is None:
            return super()._deliveries(state, percept, held, treated)
        thing, place = percept.object, percept.receptacle
        if not (percept.took or percept.put):
            return []
        moves = [m for m in self.errands.moves if (m.thing, m.place) == (type_of(thing), type_of(place))]
        if percept.took:
            return [Delete("placed", _entry(move)) for move in moves]
        wanted = any(m.thing == type_of(thing) for m in self.errands.moves)
        if wanted and not moves:
            return [Create("seen", thing, place)]
        return [Create("placed", _entry(move)) for move in moves if not move.all]

    def _progress(self, state: BriefState, held: str, treated: bool) -> list[Edit]:
        if self.errands is None:
            return super()._progress(state, held, treated)
        left, known = self._left(state, held), (state.current, *state.pending)
        if not state.current:
            return [Create("now", left[0]), *(Create("next", goal) for goal in left[1:])]
        for done in range(min(2, len(known))):
            if known[done:] == left[: len(known) - done]:
                return [Fold()] * done + [Create("next", goal) for goal in left[len(known) - done :]]
        return [Update("now", left[0]), Delete("next"), *(Create("next", goal) for goal in left[1:])]

    def _guidance(self, state: BriefState, doubted: str) -> tuple[str, str]:
        if self.errands is None:
            return super()._guidance(state, doubted)
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

    def _reference(self, state: BriefState) -> str:
        if self.errands is None:
            return super()._reference(state)
        sources = {m.thing: self._first_of(m.source) for m in self.errands.moves if m.source}
        places: list[str] = []
        for goal in (state.current, *state.pending):
            verb, _, rest = goal.partition(" ")
            if verb != "find":
                places.append(self._first_of(goal.rpartition(" ")[2]))
            elif rest in sources and sources[rest] not in state.fact("searched"):
                places.append(sources[rest])
            else:
                places += (self._remembered_left(rest, state) or self._unsearched(rest, state))[:2]
        return "; ".join(dict.fromkeys(places))


def _task_of(move: Move) -> Task:
    return Task("pick_and_place_simple", move.thing, move.place)


def _entry(move: Move) -> str:
    """What the fact `placed` holds."""
    return f"{move.thing} in {move.place}"
