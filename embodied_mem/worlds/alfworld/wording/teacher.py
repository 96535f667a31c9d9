"""The built-in teacher: by rules, what the compiler should write at a step and what the executor should do then.

    teacher = RuleTeacher(search_order)
    lesson = teacher.begin(goal, first_observation, experiences)
    lesson.output, lesson.action            # CompilerOutput, "go to fridge 1"
    lesson = teacher.next(action_really_taken, observation, lesson.state)

What it says follows from the Brief State b_t, the newest observation o_t and the retrieved experiences M alone:
guidance names a place because the object was seen there, an experience found one there or it has not been searched
yet, a tool because the task needs it, and nothing (NOACTION, BRIEF) when memory has nothing to add. The executor's
action may use what was seen in the whole episode, which a good executor could remember. No simulator state is read.

Source: MemCompiler C.2; the rules are ours. Task progress is a list of subgoals per task type:
    place     find X; put X in R                     clean/heat/cool   find X; clean X; put X in R
    look      find X; find lamp; use lamp            two               find X; put X in R; find X; put X in R
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from embodied_mem.agents.views import start_state
from embodied_mem.compiler.brief_state import BriefState, Create, Delete, Edit, Fold, Update, apply_all
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.envs.alfworld_text import (
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
from embodied_mem.language.prompts import compact_room
from embodied_mem.memory import Experience
from embodied_mem.memory.rationale import relevant_events

SearchOrder = Callable[[str, Sequence[str]], Sequence[str]]

_TREATED = {"clean": "cleaned", "heat": "heated", "cool": "cooled"}
"""Fact of the Brief State that names objects to which the task's change was made and which were put down since."""


@dataclasses.dataclass(frozen=True)
class Lesson:
    """One step of teaching.

    Attributes:
        output: what the compiler should write, given the Brief State before it.
        state: the Brief State after its edits.
        action: what the executor should do.
        reference: what soft tokens should convey: the remembered places of the subgoals that are left, soonest first;
            a look ahead that the guidance, which names one place, does not hold. Empty without guidance.
    """

    output: CompilerOutput
    state: BriefState
    action: str
    reference: str


class Teacher(Protocol):
    """Labels the steps of one episode; a new object, or `begin`, per episode.

    Attributes:
        kinds: of things in its world; None for those of households.
    """

    kinds: Sequence[str] | None

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson: ...

    def next(self, action: str, observation: str, state: BriefState) -> Lesson: ...


def subgoals_of(task: Task) -> tuple[str, ...]:
    """The subgoals of a task in order (module docstring)."""
    thing = task.object_type
    if task.lamp_type:
        return (f"find {thing}", f"find {task.lamp_type}", f"use {task.lamp_type}")
    put = f"put {thing} in {task.receptacle_type}"
    if task.count == 2:
        return (f"find {thing}", put) * 2
    if task.change:
        return (f"find {thing}", f"{task.change} {thing}", put)
    return (f"find {thing}", put)


class RuleTeacher:
    """Teacher by rules for ALFWorld's texts.

    Args:
        search_order: (type of thing, receptacles not looked into) -> the order in which an executor without guidance
            tries them; None takes the order of the room's text.
        grammar: wording of commands, see `embodied_mem.envs`.
        kinds: of things in the world, as `Teacher`'s.
    """

    def __init__(
        self, search_order: SearchOrder | None = None, grammar: str = "0.4", kinds: Sequence[str] | None = None
    ):
        self.kinds = kinds
        self._order = search_order or (lambda thing, places: places)
        self._grammar = grammar

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        """The lesson of the first step."""
        self.room = tuple(parse_room(first_observation))
        self._set_task(goal)
        self._remembered = self._remember(experiences)
        self._here: dict[str, None] = {}
        self._closed: set[str] = set()
        self._looked: dict[str, None] = {}
        self._tried_down: list[str] = []
        room = compact_room(first_observation.partition("Your task is to:")[0])
        return self._lesson(start_state(goal, room), Percept("room"))

    def _set_task(self, goal: str) -> None:
        self.task = parse_goal(goal)
        self.subgoals = subgoals_of(self.task)

    def _remember(self, experiences: Sequence[Experience]) -> dict[str, list[str]]:
        """Places of this room where memory found things, best first; see `remembered_places`."""
        return remembered_places(self.task, experiences, self.room)

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        """The lesson after `action` was answered with `observation`.

        Args:
            action: the command really given, by whoever acts.
            observation: its answer.
            state: the Brief State as it stands, the last lesson's or a compiler's own.
        """
        percept = parse_observation(observation)
        command = parse_command(action)
        self._observe(percept, command)
        refused = command if percept.nothing_happens and command.verb == "take" else Command("")
        doubted = refused if refused.receptacle and state.place_of(refused.object) == refused.receptacle else None
        lesson = self._lesson(state, percept, doubted)
        if percept.nothing_happens and lesson.action == action:
            return dataclasses.replace(lesson, action=self._look_again(lesson.action))
        return lesson

    def _look_again(self, refused: str) -> str:
        """What an executor does rather than repeat a refused command: it looks at the place it is about."""
        command = parse_command(refused)
        if command.receptacle and command.verb != "go":
            return (
                f"examine {command.receptacle}" if command.receptacle in self._here else f"go to {command.receptacle}"
            )
        return f"examine {next(iter(self._here))}" if self._here else "look"

    def _observe(self, percept: Percept, command: Command) -> None:
        """Keeps what an attentive reader of the whole episode knows; only the executor's action depends on it."""
        place = percept.receptacle
        if percept.arrived_at:
            self._here = {place: None}
        elif percept.nothing_happens and command.verb == "go":
            self._here[command.receptacle] = None  # a place that is reached from where one stands is not gone to
        if percept.is_open is False:
            self._closed.add(place)
        elif percept.is_open:
            self._closed.discard(place)
        if percept.contents is not None:
            self._looked[place] = None
        if percept.took:
            self._tried_down = []

    def _lesson(self, state: BriefState, percept: Percept, doubted: Command | None = None) -> Lesson:
        edits = self._edits(state, percept, doubted)
        after, _ = apply_all(edits, state)
        guidance, reason = self._guidance(after, doubted.receptacle if doubted else "")
        output = CompilerOutput.make(guidance, edits, reason)
        action = self._carry_out(guidance) if guidance else self._search(after)
        return Lesson(output, after, action, self._reference(after) if guidance else "")

    def _edits(self, state: BriefState, percept: Percept, doubted: Command | None) -> list[Edit]:
        """What the newest observation changes in the Brief State; only edits that it admits.

        `doubted` is a refused `take` of what the Brief State has in that place: the belief goes, and the place counts
        as not searched, so that it is looked at again.
        """
        place, held = percept.receptacle, percept.held
        before = state.agent_value("holding")
        if held is None:
            held = before
        treated = self._is_treated(state, percept, held or before)
        edits: list[Edit] = []

        def write(*written: Edit) -> None:
            nonlocal state
            for edit in written:
                after, refused = apply_all((edit,), state)
                if not refused:
                    edits.append(edit)
                    state = after

        for thing in percept.contents or ():
            if self._is_wanted(thing, place, state) and state.place_of(thing) != place:
                write((Update if state.place_of(thing) else Create)("seen", thing, place))
        if doubted:
            write(Delete("seen", doubted.object), Delete("searched", doubted.receptacle))
        if before != held:
            write(Delete("holding") if not held else (Update if before else Create)("holding", held))
        if held:
            write(Delete("seen", held))
        for thing, where in state.locations:
            if percept.contents is not None and where == place and thing not in percept.contents and thing != held:
                write(Delete("seen", thing))
        write(*self._deliveries(state, percept, held, treated))
        write(*self._progress(state, held, treated))
        searching = any(goal.startswith("find ") for goal in (state.current, *state.pending))
        if percept.contents is not None and searching:
            write(Create("searched", place))
        return edits

    def _is_wanted(self, thing: str, place: str, state: BriefState) -> bool:
        """Whether it is worth noting that `thing` is at `place`."""
        task, kind = self.task, type_of(thing)
        return kind == task.lamp_type or (
            kind == task.object_type
            and place not in state.fact("used")
            and len([o for o, _ in state.locations if type_of(o) == kind]) < task.count
        )

    def _deliveries(self, state: BriefState, percept: Percept, held: str, treated: bool) -> list[Edit]:
        """Edits about what was put where it belongs, or taken from there."""
        task, place, thing = self.task, percept.receptacle, percept.object
        edits: list[Edit] = []
        if percept.took and task.count == 2 and type_of(thing) == task.object_type:
            edits.append(Delete("used", place))  # what was delivered is taken back
        if percept.put and type_of(thing) == task.object_type:
            if task.count == 2 and type_of(place) == task.receptacle_type and not state.fact("used"):
                edits.append(Create("used", place))
            else:
                edits.append(Create("seen", thing, place))
            if treated:
                edits.append(Create(_TREATED[task.change], thing))
        elif task.change and held and not treated:
            edits.append(Delete(_TREATED[task.change], held))
        return edits

    def _is_treated(self, state: BriefState, percept: Percept, thing: str) -> bool:
        """Whether the change that the task asks for has been made to `thing`, as far as Brief State and answer tell.

        The Brief State tells by its subgoal while the object is held, and by a fact once it was put down on the way.
        """
        change = self.task.change
        if not change or type_of(thing) != self.task.object_type:
            return False
        if percept.kind == change:
            return True
        if (percept.kind, change) in (("heat", "cool"), ("cool", "heat")):
            return False
        return thing in state.fact(_TREATED[change]) or (
            thing == state.agent_value("holding") and state.current.startswith("put ")
        )

    def _progress(self, state: BriefState, held: str, treated: bool) -> list[Edit]:
        """Edits that make the rest of `subgoals` current and pending, from what is held, treated and placed."""
        task = self.task
        stage = int(type_of(held) == task.object_type)
        if task.lamp_type:
            stage += bool(stage) and any(type_of(thing) == task.lamp_type for thing, _ in state.locations)
        elif task.count == 2:
            stage += 2 * bool(state.fact("used"))
        elif task.change:
            stage += bool(stage) and treated
        now, *later = self.subgoals[stage:]
        if not state.current:
            return [Create("now", now), *(Create("next", goal) for goal in later)]
        known = len(self.subgoals) - 1 - len(state.pending)
        if 0 <= known <= stage and (state.current, *state.pending) == self.subgoals[known:]:
            return [Fold()] * (stage - known)
        return [Update("now", now), Delete("next"), *(Create("next", goal) for goal in later)]

    def _guidance(self, state: BriefState, doubted: str) -> tuple[str, str]:
        """(guidance, reason) for the Brief State; both empty when memory has nothing to add.

        `doubted` is a place that is to be looked at again, or empty.
        """
        held = state.agent_value("holding")
        task = self.task
        if held and type_of(held) != task.object_type:
            return f"put down {held}", f"not {task.object_type}"
        verb, _, rest = state.current.partition(" ")
        if verb == "find":
            thing = rest
            seen = [(o, p) for o, p in state.locations if type_of(o) == thing]
            if seen and thing == task.object_type:
                return f"take {seen[0][0]} from {seen[0][1]}", "seen there"
            if doubted:
                return f"find {thing} in {doubted}", "look again"
            if remembered := self._remembered_left(thing, state):
                return f"find {thing} in {remembered[0]}", "found there before"
            if unsearched := self._unsearched(thing, state):
                return f"find {thing} in {unsearched[0]}", "not searched yet"
            return "", ""
        if verb == "use":
            lamp, place = next((o, p) for o, p in state.locations if type_of(o) == task.lamp_type)
            return f"use {lamp} in {place}", "seen there"
        if verb == "put":
            place = self._place_for(state)
            why = "the first is there" if state.fact("used") else "the goal says so"
            return f"put {held} in {place}", why
        place = next(iter(self._remembered["change"]), self._first_of(task.changer_type))
        return f"{verb} {held} with {place}", "the goal says so"

    def _place_for(self, state: BriefState) -> str:
        """The receptacle to put the object in: that of the first object, one remembered, or the first of its type."""
        return next(iter(state.fact("used") or self._remembered["put"]), self._first_of(self.task.receptacle_type))

    def _first_of(self, kind: str) -> str:
        return min((p for p in self.room if type_of(p) == kind), key=_number, default=f"{kind} 1")

    def _remembered_left(self, thing: str, state: BriefState) -> list[str]:
        """Places where experiences found such a thing and that have not been searched."""
        searched = set(state.fact("searched"))
        return [p for p in self._remembered[thing] if p not in searched]

    def _unsearched(self, thing: str, state: BriefState) -> list[str]:
        """The places left, in the search order; none while nothing was searched, since the Brief State has no news."""
        searched = set(state.fact("searched"))
        places = sorted(self.room, key=lambda place: (type_of(place), _number(place)))
        return [p for p in self._order(thing, places) if p not in searched] if searched else []

    def _reference(self, state: BriefState) -> str:
        places: list[str] = []
        for goal in (state.current, *state.pending):
            verb, _, rest = goal.partition(" ")
            if verb == "find":
                places += (self._remembered_left(rest, state) or self._unsearched(rest, state))[:2]
            elif verb == "put":
                places.append(self._place_for(state))
            elif verb != "use":
                places.append(next(iter(self._remembered["change"]), self._first_of(self.task.changer_type)))
        return "; ".join(dict.fromkeys(places))

    def _carry_out(self, guidance: str) -> str:
        """The next command towards what the guidance says."""
        words = guidance.split(" ")
        if words[0] == "put" and words[1] == "down":
            return self._put_down(" ".join(words[2:]))
        place = " ".join(words[-2:])
        if place not in self._here:
            return f"go to {place}"
        if words[0] in ("find", "take", "put") and place in self._closed:
            return f"open {place}"
        thing = " ".join(words[1:3])
        if words[0] == "put":
            return put_command(thing, place, self._grammar)
        if words[0] == "use":
            return f"use {thing}"
        return guidance if words[0] != "find" else f"examine {place}"

    def _put_down(self, thing: str) -> str:
        """A command that frees the hand: here if that is possible, else at the places that take most things."""
        for place in self._here:
            if place not in self._tried_down:
                if place in self._closed:
                    return f"open {place}"
                self._tried_down.append(place)
                return put_command(thing, place, self._grammar)
        kinds = ("countertop", "diningtable", "desk", "sidetable", "bed", "shelf", "drawer", "cabinet", "garbagecan")
        places = [p for kind in kinds for p in self.room if type_of(p) == kind and p not in self._tried_down]
        return f"go to {places[0]}" if places else "look"

    def _search(self, state: BriefState) -> str:
        """The next command of an executor that searches on its own."""
        for place in self._here:
            if place not in self._looked:
                return f"open {place}" if place in self._closed else f"examine {place}"
        left = [place for place in self.room if place not in self._looked]
        has = type_of(state.agent_value("holding")) == self.task.object_type
        order = self._order(self.task.lamp_type if has else self.task.object_type, left or self.room)
        return f"go to {order[0]}" if order else "look"


def _number(place: str) -> int:
    return int(place.rpartition(" ")[2])


def remembered_places(task: Task, experiences: Sequence[Experience], room: Sequence[str]) -> dict[str, list[str]]:
    """Places of this room that the experiences name, best first: by kind of thing found, `change` and `put`.

    Only what their rationales tell counts, since that is what the compiler reads of them.

    Experiences of this room come first and name the place itself. One from elsewhere speaks for the same place if this
    room has it, else for the first place of its kind: numbers differ between rooms.
    """
    found: dict[str, dict[str, None]] = {task.object_type: {}, task.lamp_type: {}, "change": {}, "put": {}}
    places = set(room)
    for here in (True, False):
        for experience in experiences:
            if bool(experience.same_room) is not here:
                continue
            for _, kind, thing, place in relevant_events(experience.episode):
                if place not in places:
                    place = next((p for p in sorted(room, key=_number) if type_of(p) == type_of(place)), "")
                if not place:
                    continue
                if kind == "take" and type_of(thing) == task.object_type:
                    found[task.object_type].setdefault(place)
                elif kind == "use" and type_of(thing) == task.lamp_type:
                    found[task.lamp_type].setdefault(place)
                elif kind == task.change and type_of(place) == task.changer_type:
                    found["change"].setdefault(place)
                elif kind == "place" and type_of(place) == task.receptacle_type:
                    found["put"].setdefault(place)
    if task.receptacle_type and not task.change:
        for place in [p for p in found[task.object_type] if type_of(p) == task.receptacle_type]:
            del found[task.object_type][place]
    return {key: list(value) for key, value in found.items()}
