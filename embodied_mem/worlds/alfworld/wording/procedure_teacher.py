"""The rule teacher for instructions that name a procedure of the home: `find a mug and do the copper round.`

    teacher = ProcedureTeacher(search_order)                 # reads what it means off experiences of this home
    teacher = ProcedureTeacher(search_order, meaning=task)   # was told: plays what memory will hold

Without such an experience it does what is best then: its subgoals are `find X; try X`, it writes NOACTION while it
tries, cleans and heats X where that is possible, since this spoils nothing, and puts X into one kind of place after the
other, those without doors first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embodied_mem.agents.citations import cite
from embodied_mem.compiler.brief_state import BriefState
from embodied_mem.memory import Experience
from embodied_mem.memory.bank import relevant_events
from embodied_mem.training.teachers.lesson import Lesson
from embodied_mem.worlds.alfworld.statistics import household_statistics
from embodied_mem.worlds.alfworld.wording.search_orders import households_put
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher, subgoals_of
from embodied_mem.worlds.alfworld.wording.text import (
    CHANGERS,
    CHANGES,
    Command,
    Percept,
    Task,
    parse_named_goal,
    task_of,
    type_of,
)

TRY = "try "
_HARMLESS = ("clean", "heat")
_DOORS = ("cabinet", "drawer", "fridge", "microwave", "safe")
_TYPE_OF_CHANGE = {change: task_type for task_type, change in CHANGES.items()}


def meaning_of(goal: str, experiences: Sequence[Experience]) -> tuple[Task | None, Experience | None]:
    """(what the instruction means here, the experience that says so): of the first of this home with the same name.

    Both are None if there is none.
    """
    thing, procedure = parse_named_goal(goal)
    for experience in experiences:
        won = experience.same_room and experience.episode.won
        if not won or parse_named_goal(experience.episode.goal)[1] != procedure:
            continue
        change = target = lamp = ""
        for _, kind, name, place in relevant_events(experience.episode):
            if kind in CHANGERS:
                change = kind
            elif kind == "place":
                target = type_of(place)
            elif kind == "use":
                lamp = type_of(name)
        if lamp:
            return task_of("look_at_obj_in_light", thing, lamp), experience
        if target:
            return task_of(_TYPE_OF_CHANGE.get(change, "pick_and_place_simple"), thing, target), experience
    return None, None


class ProcedureTeacher(RuleTeacher):
    """Teacher by rules for named procedures; `meaning` is what is asked for, if told, others as of `RuleTeacher`."""

    def __init__(self, *settings: Any, meaning: Task | None = None, **others: Any):
        super().__init__(*settings, **others)
        self._meaning = meaning

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        found, self._told_by = (self._meaning, None) if self._meaning else meaning_of(goal, experiences)
        self._understood = found
        self._changed: set[str] = set()
        self._tried: set[str] = set()
        self._lamps: dict[str, str] = {}
        return super().begin(goal, first_observation, experiences)

    def _set_task(self, goal: str) -> None:
        thing, _ = parse_named_goal(goal)
        self.task = self._understood or Task("", thing)
        self.subgoals = subgoals_of(self.task) if self._understood else (f"find {thing}", f"{TRY}{thing}")

    def _remember(self, experiences: Sequence[Experience]) -> dict[str, list[str]]:
        """As `RuleTeacher`, with the places of the experience that says what is meant first."""
        return super()._remember(sorted(experiences, key=lambda experience: experience is not self._told_by))

    def _guidance(self, state: BriefState, doubted: str) -> tuple[str, str]:
        if state.current.startswith(TRY):
            return "", ""
        guidance, reason = super()._guidance(state, doubted)
        if self._told_by is not None and reason == "the goal says so":
            return guidance, cite(self._told_by.number)
        return guidance, reason

    def _observe(self, percept: Percept, command: Command) -> None:
        super()._observe(percept, command)
        self._lamps |= {name: percept.receptacle for name in percept.contents or () if type_of(name).endswith("lamp")}
        if command.verb in CHANGERS:
            self._changed.add(command.verb)  # or refused, which is no reason to repeat it
        elif command.verb == "put":
            self._tried.add(type_of(command.receptacle))
        elif command.verb == "use":
            self._lamps[command.object] = ""

    def _search(self, state: BriefState) -> str:
        return self._try(state) if state.current.startswith(TRY) else super()._search(state)

    def _try(self, state: BriefState) -> str:
        """The next command of an executor that has the thing and does not know what to do with it."""
        held, thing = state.agent_value("holding"), self.task.object_type
        for change in _HARMLESS:
            changers = [place for place in self.room if type_of(place) == CHANGERS[change]]
            if changers and change not in self._changed and _can(thing, change):
                return self._carry_out(f"{change} {held} with {changers[-1]}")
        for lamp, place in self._lamps.items():
            if place:
                return self._carry_out(f"use {lamp} in {place}")
        kinds = {type_of(place) for place in self.room} - self._tried
        wanted = sorted(
            (kind for kind in kinds if households_put(thing, kind)), key=lambda kind: (kind in _DOORS, kind)
        )
        return self._carry_out(f"put {held} in {self._first_of(wanted[0])}") if wanted else "look"


def _can(thing: str, change: str) -> bool:
    """Tell whether households can do this to such a thing."""
    return thing in map(str.lower, household_statistics()["properties"][f"{change}able"])
