"""The rule teacher: labels what the compiler should write at a step and what the executor should do then.

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
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem.agents.citations import cite
from embodied_mem.compiler.brief_state import BriefState, Create, Delete, Edit, Fold, Update, apply_all, is_object_name
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.compiler.prompts import compact_room
from embodied_mem.compiler.view import start_state
from embodied_mem.memory import Experience
from embodied_mem.memory.bank import relevant_events
from embodied_mem.training.teachers.lesson import Lesson
from embodied_mem.worlds.alfworld.statistics import household_kinds, household_statistics
from embodied_mem.worlds.alfworld.wording.search_orders import SearchOrder, households_put
from embodied_mem.worlds.alfworld.wording.text import (
    CHANGERS,
    CHANGES,
    Command,
    Percept,
    Task,
    parse_command,
    parse_goal,
    parse_named_goal,
    parse_observation,
    parse_room,
    put_command,
    task_of,
    type_of,
)

_TREATED = {"clean": "cleaned", "heat": "heated", "cool": "cooled"}
"""Fact of the Brief State that names objects to which the task's change was made and which were put down since."""
TRY = "try "
_HARMLESS = ("clean", "heat")
_DOORS = ("cabinet", "drawer", "fridge", "microwave", "safe")
_TYPE_OF_CHANGE = {change: task_type for task_type, change in CHANGES.items()}


def subgoals_of(task: Task) -> tuple[str, ...]:
    """Return the subgoals of a task in order (module docstring)."""
    thing = task.object_type
    if task.lamp_type:
        return (f"find {thing}", f"find {task.lamp_type}", f"use {task.lamp_type}")
    put = f"put {thing} in {task.receptacle_type}"
    if task.count == 2:
        return (f"find {thing}", put) * 2
    if task.change:
        return (f"find {thing}", f"{task.change} {thing}", put)
    return (f"find {thing}", put)


class _Draft:
    """Edits of one step, and the Brief State after them."""

    def __init__(self, state: BriefState) -> None:
        self.state = state
        self.edits: list[Edit] = []

    def write(self, *edits: Edit) -> None:
        """Adds those edits that the state admits."""
        for edit in edits:
            after, refused = apply_all((edit,), self.state)
            if not refused:
                self.edits.append(edit)
                self.state = after


class TeacherNoise:
    """`training.teachers.lesson.Noise` of teachers of ALFWorld's sentences.

    Args:
        kinds: of things in imagined answers; None for those of households.
    """

    def __init__(self, kinds: Sequence[str] | None = None):
        self.kinds = tuple(kinds or household_kinds())

    def mislead(
        self, lesson: Lesson, action: str, observation: str, room: str, random: np.random.Generator
    ) -> tuple[Lesson, str]:
        """Plant a false belief during a search; return lesson and command.

        Either some place of the room is believed to hold the object while none is known, or the newest observation is
        misread: the object is believed to be in the place that it describes, or to have another number than it has,
        and an attempt is made to take it.
        """
        verb, _, thing = lesson.state.current.partition(" ")
        kinds = [item.rpartition(" ") for item in room.split("; ") if item]
        if verb != "find" or not kinds:
            return lesson, action
        believed = next(((name, place) for name, place in lesson.state.locations if type_of(name) == thing), None)
        here = parse_observation(observation)
        number = 1 + int(random.integers(3))
        if here.contents is None and believed is None:
            kind, _, count = kinds[int(random.integers(len(kinds)))]
            false = Create("seen", f"{thing} {number}", f"{kind} {1 + int(random.integers(int(count)))}")
            return dataclasses.replace(lesson, state=apply_all([false], lesson.state)[0]), action
        place = believed[1] if believed else here.receptacle
        name = f"{thing} {number}"
        if place != here.receptacle or name in (here.contents or ()):
            return lesson, action
        gone = [Delete("seen", believed[0])] if believed else []
        state = apply_all([*gone, Create("seen", name, place)], lesson.state)[0]
        return dataclasses.replace(lesson, state=state), f"take {name} from {place}"

    def imagined_answer(self, observation: str, thing: str, random: np.random.Generator) -> str:
        """Return `observation` with other contents; empty if it shows none.

        `thing` is there half of the time and its number is uniform, while everything else is drawn from all types of
        objects. In the world's own answers it is mostly there where experiences found it, and mostly number 1, so a
        model learns to write that without a look at the answer.
        """
        if parse_observation(observation).contents is None:
            return ""
        others = [kind for kind in self.kinds if kind != thing]
        drawn = [others[i] for i in random.choice(len(others), int(random.integers(8)))]
        if random.random() < 0.5:
            drawn += [thing] * (1 + int(random.random() < 0.15))
        names = []
        for kind in sorted(set(drawn)):
            numbers = 1 + random.choice(3 + drawn.count(kind), drawn.count(kind), replace=False)
            names += [f"a {kind} {number}" for number in sorted(numbers, reverse=True)]
        contents = ", ".join([*names[:-1], f"and {names[-1]}"]) if len(names) > 1 else "".join(names) or "nothing"
        before, mark, seen = observation.partition(" you see ")
        _, stop, behind = seen.rpartition(".")
        return f"{before}{mark}{contents}{stop}{behind}" if stop else observation

    def renamable(self, room: str) -> list[str]:
        """Return kinds of places that change nothing."""
        kinds = (item.rpartition(" ")[0] for item in room.split("; "))
        return [kind for kind in kinds if kind and kind not in CHANGERS.values()]


class RuleTeacher(TeacherNoise):
    """Teacher by rules for ALFWorld's texts.

    Args:
        search_order: (type of thing, receptacles not looked into) -> the order in which an executor without guidance
            tries them; None takes the order of the room's text.
        grammar: wording of commands, see `embodied_mem.envs`.
        kinds: of things in the world, for imagined answers; None for those of households.
        here_only: experiences from other rooms are passed over; for worlds in which they tell nothing about this one.
    """

    def __init__(
        self,
        search_order: SearchOrder | None = None,
        grammar: str = "0.4",
        kinds: Sequence[str] | None = None,
        *,
        here_only: bool = False,
    ):
        super().__init__(kinds)
        self._here_only = here_only
        self._order = search_order or (lambda kind, places: list(places))
        self._grammar = grammar

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        """Return the lesson of the first step."""
        if self._here_only:
            experiences = [experience for experience in experiences if experience.same_room is not False]
        self.room = tuple(parse_room(first_observation))
        self._set_task(goal)
        self._remembered = self._remember(experiences)
        self._sources = self._sources_of(experiences)
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

    def _sources_of(self, experiences: Sequence[Experience]) -> dict[tuple[str, str], int]:
        """Return (kind, place) -> number of the best experience that found it."""
        numbered = sorted((e for e in experiences if e.number), key=lambda e: not e.same_room)
        sources: dict[tuple[str, str], int] = {}
        for experience in numbered:
            for key, places in self._remember([experience]).items():
                for place in places:
                    sources.setdefault((key, place), experience.number)
        return sources

    def _source(self, thing: str, place: str) -> str:
        return cite(self._sources.get((thing, place), 0))

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        """Return the lesson after `action` was answered with `observation`.

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
        """Return the command in place of a refused one: examine its place."""
        command = parse_command(refused)
        place = command.receptacle if command.verb != "go" else ""
        if place:
            return f"examine {place}" if place in self._here else f"go to {place}"
        return f"examine {next(iter(self._here))}" if self._here else "look"

    def _observe(self, percept: Percept, command: Command) -> None:
        """Track the whole episode's facts, for the executor's action only."""
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
        # A refused `take` of what the Brief State has in that place, `doubted`, ends the belief and the search there.
        before = state.agent_value("holding")
        held = before if percept.held is None else percept.held
        treated = self._is_treated(state, percept, held or before)
        draft = _Draft(state)
        self._write_seen(draft, percept)
        if doubted:
            draft.write(Delete("seen", doubted.object), Delete("searched", doubted.receptacle))
        self._write_held(draft, before, held)
        self._write_gone(draft, percept, held)
        draft.write(*self._deliveries(draft.state, percept, held, treated))
        draft.write(*self._progress(draft.state, held, treated))
        self._write_searched(draft, percept)
        return draft.edits

    def _write_seen(self, draft: _Draft, percept: Percept) -> None:
        place = percept.receptacle
        for thing in percept.contents or ():
            known = draft.state.place_of(thing)
            if self._is_wanted(thing, place, draft.state) and known != place:
                draft.write((Update if known else Create)("seen", thing, place))

    def _write_held(self, draft: _Draft, before: str, held: str) -> None:
        if before != held:
            draft.write((Update if before else Create)("holding", held) if held else Delete("holding"))
        if held and is_object_name(held):  # a model writes anything as what it holds
            draft.write(Delete("seen", held))

    def _write_gone(self, draft: _Draft, percept: Percept, held: str) -> None:
        for thing, where in draft.state.locations if percept.contents is not None else ():
            if where == percept.receptacle and thing not in (*(percept.contents or ()), held):
                draft.write(Delete("seen", thing))

    def _write_searched(self, draft: _Draft, percept: Percept) -> None:
        goals = draft.state.current, *draft.state.pending
        if percept.contents is not None and any(goal.startswith("find ") for goal in goals):
            draft.write(Create("searched", percept.receptacle))

    def _is_wanted(self, thing: str, place: str, state: BriefState) -> bool:
        """Tell whether it is worth noting that `thing` is at `place`."""
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
        """Decide whether the task's change was made to `thing`."""
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
        """Edits that make the subgoals that are left current and pending."""
        left = self._left(state, held, treated)
        later = [Create("next", goal) for goal in left[1:]]
        if not state.current:
            return [Create("now", left[0]), *later]
        known = self._continued((state.current, *state.pending), left)
        return [Update("now", left[0]), Delete("next"), *later] if known is None else known

    def _left(self, state: BriefState, held: str, treated: bool) -> tuple[str, ...]:
        """Return the subgoals left, from what is held, treated and placed."""
        task = self.task
        stage = int(type_of(held) == task.object_type)
        if task.lamp_type:
            stage += bool(stage) and any(type_of(thing) == task.lamp_type for thing, _ in state.locations)
        elif task.count == 2:
            stage += 2 * bool(state.fact("used"))
        elif task.change:
            stage += bool(stage) and treated
        return self.subgoals[stage:]

    def _continued(self, known: tuple[str, ...], left: tuple[str, ...]) -> list[Edit] | None:
        """Return edits from known to remaining subgoals; None if otherwise different."""
        done = len(known) - len(left)
        return [Fold()] * done if done >= 0 and known == self.subgoals[-len(known) :] else None

    def _guidance(self, state: BriefState, doubted: str) -> tuple[str, str]:
        """Return the first rule's (guidance, reason); `doubted` is to be re-checked."""
        verb, _, thing = state.current.partition(" ")
        held = state.agent_value("holding")
        if held and type_of(held) != self.task.object_type:
            return f"put down {held}", f"not {self.task.object_type}"
        match verb:
            case "find":
                return self._where_to_find(thing, state, doubted)
            case "use":
                lamp, place = next((o, p) for o, p in state.locations if type_of(o) == self.task.lamp_type)
                return f"use {lamp} in {place}", "seen there"
            case "put":
                why = "the first is there" if state.fact("used") else "the goal says so"
                return f"put {held} in {self._place_for(state)}", why
        return f"{verb} {held} with {self._changer()}", "the goal says so"

    def _where_to_find(self, thing: str, state: BriefState, doubted: str) -> tuple[str, str]:
        seen = [(o, p) for o, p in state.locations if type_of(o) == thing]
        if seen and thing == self.task.object_type:
            return f"take {seen[0][0]} from {seen[0][1]}", "seen there"
        if doubted:
            return f"find {thing} in {doubted}", "look again"
        if remembered := self._remembered_left(thing, state):
            return f"find {thing} in {remembered[0]}", self._source(thing, remembered[0])
        if unsearched := self._unsearched(thing, state):
            return f"find {thing} in {unsearched[0]}", "not searched yet"
        return "", ""

    def _place_for(self, state: BriefState) -> str:
        """Choose the target: the first object's, a remembered one, the first."""
        return next(iter(state.fact("used") or self._remembered["put"]), self._first_of(self.task.receptacle_type))

    def _changer(self) -> str:
        """Return the receptacle that changes the object, a remembered one first."""
        return next(iter(self._remembered["change"]), self._first_of(self.task.changer_type))

    def _first_of(self, kind: str) -> str:
        return min((p for p in self.room if type_of(p) == kind), key=_number, default=f"{kind} 1")

    def _remembered_left(self, thing: str, state: BriefState) -> list[str]:
        """Return unsearched places where experiences found such a thing."""
        searched = set(state.fact("searched"))
        return [p for p in self._remembered[thing] if p not in searched]

    def _unsearched(self, thing: str, state: BriefState) -> list[str]:
        """Return the places left in search order; none before a search."""
        searched = set(state.fact("searched"))
        places = sorted(self.room, key=lambda place: (type_of(place), _number(place)))
        return [p for p in self._order(thing, places) if p not in searched] if searched else []

    def _reference(self, state: BriefState) -> str:
        places = [place for goal in (state.current, *state.pending) for place in self._places_of(goal, state)]
        return "; ".join(dict.fromkeys(places))

    def _places_of(self, goal: str, state: BriefState) -> list[str]:
        """Places that a subgoal leads to, as far as memory tells."""
        verb, _, rest = goal.partition(" ")
        match verb:
            case "find":
                return (self._remembered_left(rest, state) or self._unsearched(rest, state))[:2]
            case "put":
                return [self._place_for(state)]
            case "use":
                return []
        return [self._changer()]

    def _carry_out(self, guidance: str) -> str:
        """Return the next command towards what the guidance says."""
        verb, *words = guidance.split(" ")
        if verb == "put" and words[0] == "down":
            return self._put_down(" ".join(words[1:]))
        thing, place = " ".join(words[:2]), " ".join(words[-2:])
        if place not in self._here:
            return f"go to {place}"
        if verb in ("find", "take", "put") and place in self._closed:
            return f"open {place}"
        match verb:
            case "put":
                return put_command(thing, place, self._grammar)
            case "use":
                return f"use {thing}"
            case "find":
                return f"examine {place}"
        return guidance

    def _put_down(self, thing: str) -> str:
        """Return a command that frees the hand, here if possible."""
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
        """Return the next command of an executor that searches on its own."""
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
    """Return places named by experiences, best first, by finding, `change`, `put`.

    Only what their rationales tell counts, since that is what the compiler reads of them.

    Experiences of this room come first and name the place itself. One from elsewhere speaks for the same place if this
    room has it, else for the first place of its kind: numbers differ between rooms.
    """
    found: dict[str, dict[str, None]] = {task.object_type: {}, task.lamp_type: {}, "change": {}, "put": {}}
    slots = {  # (kind of event, type of the thing or of the place that it is about) -> what it tells the place of
        ("take", task.object_type): task.object_type,
        ("use", task.lamp_type): task.lamp_type,
        ("place", task.receptacle_type): "put",
        (task.change, task.changer_type): "change",
    }
    near_first = sorted(experiences, key=lambda experience: not experience.same_room)
    for _, kind, thing, told in (event for e in near_first for event in relevant_events(e.episode)):
        alike = (p for p in sorted(room, key=_number) if type_of(p) == type_of(told))
        place = told if told in room else next(alike, "")
        slot = slots.get((kind, type_of(thing if kind in ("take", "use") else place)))
        if place and slot is not None:
            found[slot].setdefault(place)
    if task.receptacle_type and not task.change:
        for place in [p for p in found[task.object_type] if type_of(p) == task.receptacle_type]:
            del found[task.object_type][place]
    return {key: list(value) for key, value in found.items()}


def meaning_of(goal: str, experiences: Sequence[Experience]) -> tuple[Task | None, Experience | None]:
    """Find this home's procedure of a name: (its meaning, its experience).

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
    """Teacher by rules for instructions that name a procedure of the home: `find a mug and do the copper round.`

    It reads what the name means off experiences of this home. Without such an experience it does what is best then: its
    subgoals are `find X; try X`, it writes NOACTION while it tries, cleans and heats X where that is possible, since
    this spoils nothing, and puts X into one kind of place after the other, those without doors first.

    Args:
        meaning: what is asked for, if that is told; other arguments as of `RuleTeacher`.
    """

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
        """Order places like `RuleTeacher`, those of the telling experience first."""
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
        """Return a trial command for a held thing of unknown purpose."""
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
