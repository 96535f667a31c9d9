"""A planner and a critic by rules for ALFWorld's six kinds of tasks, on the content of the memories alone.

    plan = SymbolicPlanner().plan(situation)
    [step.command for step in plan.steps]
    # ["go to desk 1", "take mug 1 from desk 1", "go to microwave 1", "heat mug 1 with microwave 1", ...]

The planner imagines: it takes for granted that each step works and plans on from there, up to `max_steps`. What it
plans on is, in this order: things seen in this task; the place from which this very task was won in this room before;
looking through places, the most promising first (`hints`). Each step names what it needs, and the critic compares that
with what is known by then.

Needs: ("at", place), ("open", place), ("shut", place), ("there", thing, place), ("holding", thing), ("empty hand",),
("sought", kind): none is known yet, ("looked",): the place where the agent stands is not closed,
("unsearched", place), ("unmarked", thing, mark), ("marked", thing, mark).
"""

from __future__ import annotations

from embodied_mem.agents.beliefs import Beliefs
from embodied_mem.agents.hints import Hints
from embodied_mem.agents.plans import Plan, PlanStep, Situation, foreseen
from embodied_mem.envs.alfworld_text import Task, parse_goal, put_command, type_of
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.observations import STATE_AFTER


class SymbolicPlanner:
    """Plans by rules.

    Args:
        grammar: wording of commands, "0.4" or "0.3".
        max_steps: longest plan.
    """

    def __init__(self, grammar: str = "0.4", max_steps: int = 8):
        if max_steps < 1:
            raise InvalidInputError(f"max_steps: expected >= 1, got {max_steps}")
        put_command("", "", grammar)  # refuses an unknown grammar now and not in the middle of a task
        self._grammar, self._max_steps = grammar, max_steps

    def plan(self, situation: Situation) -> Plan:
        """As `Planner.plan`."""
        imagined = _Imagined(parse_goal(situation.goal), situation, self._grammar)
        steps = foreseen(imagined.next, self._max_steps)
        if not steps:  # by all that is known the task is done, and it is not: something known is wrong
            steps = [PlanStep("look", (), "nothing is left to do")]
        return Plan(tuple(steps[: self._max_steps]), imagined.why)


class _Imagined:
    """The state as it will be when the steps planned so far have worked."""

    def __init__(self, task: Task, situation: Situation, grammar: str):
        self.task, self.beliefs, self.grammar = task, situation.beliefs.copy(), grammar
        self.hints = Hints(situation)
        self.why = ""
        self._mark = STATE_AFTER.get(task.change, "")
        self._finished = False
        self._given_up: set[str] = set()

    def next(self) -> list[PlanStep]:
        """The next few steps; none when the goal is reached, or nothing can be foreseen any more."""
        if self._finished:
            return []
        task, beliefs = self.task, self.beliefs
        held = beliefs.held
        if held and type_of(held) != task.object_type:
            return self._put_away(held)
        if not held:
            if self._is_done():
                return []
            found = self._nearest(task.object_type)
            return self._take(*found) if found else self._search(task.object_type)
        if task.lamp_type:
            return self._light(held)
        if self._mark and self._mark not in beliefs.marks.get(held, ()):
            changer = self._nearest_of(self.hints.tool(task.change, task.changer_type), task.change, held)
            if changer:
                return self._change(held, changer)
        target = self._target(held)
        return self._put(held, target, f"the goal wants it there: {target}") if target else self._put_away(held)

    # What is known.

    def _is_delivered(self, thing: str, place: str) -> bool:
        if type_of(place) != self.task.receptacle_type:
            return False
        if self.task.count == 2:
            return place == self._target(thing)
        return not self._mark or self._mark in self.beliefs.marks.get(thing, ())

    def _is_done(self) -> bool:
        things = self.beliefs.things.items()
        delivered = [t for t, p in things if type_of(t) == self.task.object_type and self._is_delivered(t, p)]
        return not self.task.lamp_type and len(delivered) >= self.task.count

    def _nearest(self, kind: str) -> tuple[str, str] | None:
        """(thing, place) of a known thing of this kind that is still to be fetched or used, the cheapest one."""
        beliefs, best, best_cost = self.beliefs, None, 99
        for thing, place in beliefs.things.items():
            if type_of(thing) != kind or thing in self._given_up or place not in beliefs.receptacles:
                continue
            if kind == self.task.object_type and self._is_delivered(thing, place):
                continue
            if beliefs.times_refused(f"take {thing} from {place}") > 1:
                continue
            ready = not self._mark or self._mark in beliefs.marks.get(thing, ())
            cost = beliefs.cost(place) + 4 * (not ready)
            if cost < best_cost:
                best, best_cost = (thing, place), cost
        return best

    def _nearest_of(self, kind: str, verb: str, held: str) -> str:
        """The nearest receptacle of a kind where this was not refused."""
        options = [r for r in self.beliefs.receptacles if type_of(r) == kind]
        options = [r for r in options if not self._is_refused(f"{verb} {held} with {r}")]
        return min(options, key=lambda r: not self.beliefs.is_here(r), default="")

    def _target(self, thing: str) -> str:
        """Where the goal wants the thing: where such a thing already is if two are wanted, then the nearest."""
        beliefs, task = self.beliefs, self.task
        options = [r for r in beliefs.receptacles if type_of(r) == task.receptacle_type]
        options = [r for r in options if not self._is_refused(put_command(thing, r, self.grammar))]

        def cost(receptacle: str) -> float:
            there = sum(p == receptacle for t, p in beliefs.things.items() if type_of(t) == task.object_type)
            return beliefs.cost(receptacle) - (10 * there if task.count == 2 else 0)

        return min(options, key=cost, default="")

    def _is_refused(self, command: str) -> bool:
        return any(said == command for said, _, _ in self.beliefs.refused)

    # Pieces of plans. Each returns its steps and changes what is imagined.

    def _go(self, place: str, why: str, *needs: tuple[str, ...]) -> list[PlanStep]:
        if self.beliefs.is_here(place):
            return []
        self.beliefs.at = place
        return [PlanStep(f"go to {place}", needs, why)]

    def _open(self, place: str, why: str, *needs: tuple[str, ...]) -> list[PlanStep]:
        beliefs = self.beliefs
        if not beliefs.may_be_closed(place):
            return []
        beliefs.closed.discard(place)
        beliefs.opened.add(place)
        return [PlanStep(f"open {place}", (("at", place), ("shut", place), *needs), why)]

    def _take(self, thing: str, place: str, why: str = "") -> list[PlanStep]:
        beliefs, why = self.beliefs, why or f"{thing} was seen there"
        self.why = self.why or why
        doubted = beliefs.times_refused(f"take {thing} from {place}")
        steps = self._go(place, why, ("empty hand",)) + self._open(place, why)
        if doubted:
            steps.append(PlanStep(f"examine {place}", (("at", place),), f"{thing} could not be taken"))
        needs = (("at", place), ("open", place), ("there", thing, place), ("empty hand",))
        beliefs.things.pop(thing, None)
        beliefs.held = thing
        return [*steps, PlanStep(f"take {thing} from {place}", needs, why)]

    def _put(self, thing: str, place: str, why: str) -> list[PlanStep]:
        beliefs = self.beliefs
        holding = ("holding", thing)
        needs = [("at", place), ("open", place), holding]
        if self._mark and type_of(thing) == self.task.object_type and type_of(place) == self.task.receptacle_type:
            needs.append(("marked", thing, self._mark))
        steps = self._go(place, why, holding) + self._open(place, why, holding)
        beliefs.held = ""
        beliefs.things[thing] = place
        return [*steps, PlanStep(put_command(thing, place, self.grammar), tuple(needs), why)]

    def _put_away(self, thing: str) -> list[PlanStep]:
        """Frees the hand: at the nearest place that has not refused the thing."""
        beliefs = self.beliefs
        options = [r for r in beliefs.receptacles if not self._is_refused(put_command(thing, r, self.grammar))]
        place = min(options, key=beliefs.cost, default="")
        self._given_up.add(thing)
        if not place:
            self._finished = True
            return []
        return self._put(thing, place, f"{thing} is not needed now")

    def _change(self, held: str, changer: str) -> list[PlanStep]:
        verb, holding = self.task.change, ("holding", held)
        why = f"the goal wants it {self._mark}"
        steps = self._go(changer, why, holding)
        self.beliefs.marks.setdefault(held, set()).add(self._mark)
        needs = (("at", changer), holding, ("unmarked", held, self._mark))
        return [*steps, PlanStep(f"{verb} {held} with {changer}", needs, why)]

    def _light(self, held: str) -> list[PlanStep]:
        found = self._nearest(self.task.lamp_type)
        if found is None:
            return self._search(self.task.lamp_type)
        lamp, place = found
        self._finished = True
        needs = (("at", place), ("there", lamp, place), ("holding", held))
        why = f"{lamp} was seen there"
        return [*self._go(place, why, ("holding", held)), PlanStep(f"use {lamp}", needs, why)]

    def _search(self, kind: str) -> list[PlanStep]:
        """The place where memory is sure, else places to look through; planning goes on after the former only."""
        beliefs = self.beliefs
        sought = ("sought", kind)
        for thing, place in self.hints.named(kind):
            if place in beliefs.searched or place not in beliefs.receptacles or thing in self._given_up:
                continue
            if beliefs.times_refused(f"take {thing} from {place}"):
                continue
            why = f"the task was won with {thing} from {place} before"
            if kind != self.task.lamp_type:
                return self._take(thing, place, why)
            self._finished = True
            needs = (("at", place), ("there", thing, place), ("holding", beliefs.held))
            return [*self._go(place, why), PlanStep(f"use {thing}", needs, why)]
        self._finished = True
        places = self.hints.order(kind, beliefs)
        again = not places  # all was seen: things may have moved, or something was misread
        steps: list[PlanStep] = []
        for place in places or beliefs.receptacles:
            why = f"to look for a {kind} " + ("once more" if again else "there")
            unsearched = () if again else (("unsearched", place),)
            here = self._go(place, why, sought, ("looked",), *unsearched) + self._open(place, why, sought)
            if not here and not again:
                here = [PlanStep(f"examine {place}", (("at", place), sought, *unsearched), why)]
            steps += here
        self.why = self.why or f"no {kind} is known"
        return steps or [PlanStep("look", (), f"no {kind} is known")]


class SymbolicCritic:
    """Compares what a step needs with what is known now. What is not known is no objection."""

    needs_retrieval = False

    def review(self, step: PlanStep, situation: Situation) -> str:
        """As `Critic.review`."""
        beliefs = situation.beliefs
        if beliefs.times_refused(step.command):
            return f"'{step.command}' had no effect here before"
        return next(filter(None, (self._objection(need, beliefs) for need in step.needs)), "")

    def _objection(self, need: tuple[str, ...], beliefs: Beliefs) -> str:
        match need:
            case ("at", place):
                return "" if beliefs.is_here(place) else f"the agent is at {beliefs.at or 'no place'}, not at {place}"
            case ("open", place):
                return f"{place} is closed" if place in beliefs.closed else ""
            case ("shut", place):
                return f"{place} is open" if place in beliefs.opened else ""
            case ("there", thing, place):
                if beliefs.things.get(thing) == place or place not in beliefs.searched:
                    return ""
                return f"{thing} is not at {place}"
            case ("holding", thing):
                return "" if beliefs.held == thing else f"{thing} is not in the hand"
            case ("empty hand",):
                return f"{beliefs.held} is in the hand" if beliefs.held else ""
            case ("sought", kind):
                known = next((t for t in beliefs.things if type_of(t) == kind), "")
                return f"{known} was seen at {beliefs.things[known]}" if known else ""
            case ("looked",):
                return f"{beliefs.at} is closed and was not looked into" if beliefs.at in beliefs.closed else ""
            case ("unsearched", place):
                return f"{place} was searched" if place in beliefs.searched else ""
            case ("unmarked", thing, mark):
                return f"{thing} is {mark} already" if mark in beliefs.marks.get(thing, ()) else ""
            case ("marked", thing, mark):
                return "" if mark in beliefs.marks.get(thing, ()) else f"{thing} is not {mark}"
        raise InvalidInputError(f"needs: expected a need that the critic knows, got {need!r}")
