"""Planner and critic by rules for ALFWorld's six task types, on the content of the memories alone.

    plan = SymbolicPlanner().plan(situation)
    [step.command for step in plan.steps]
    # ["go to desk 1", "take mug 1 from desk 1", "go to microwave 1", "heat mug 1 with microwave 1", ...]

The planner assumes that each step succeeds and plans on from there, up to `max_steps`. It uses, in this order: things
seen in this task; the place from which this very task was won in this room before; a search of places in the order of
`search_prior`. Each step names its preconditions, and the critic compares them with the beliefs at that time.

Needs: ("at", place), ("open", place), ("shut", place), ("there", thing, place), ("holding", thing), ("empty hand",),
("sought", kind): none is known yet, ("looked",): the place where the agent stands is not closed,
("unsearched", place), ("unmarked", thing, mark), ("marked", thing, mark).
"""

from __future__ import annotations

from typing import Any

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep, foreseen
from embodied_mem.agents.planner_critic.rules import RuleCritic
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.readers.reading import STATE_AFTER
from embodied_mem.worlds.alfworld.agent.rules import AlfworldBeliefs, AlfworldRules
from embodied_mem.worlds.alfworld.agent.search_prior import SearchPrior
from embodied_mem.worlds.alfworld.wording.text import Task, parse_command, parse_goal, put_command, type_of


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
        imagined = _Imagined(parse_goal(situation.goal), situation, self._grammar)
        steps = foreseen(imagined.next, self._max_steps)
        if not steps:  # by all that is known the task is done, and it is not: something known is wrong
            steps = [PlanStep("look", (), "nothing is left to do")]
        checks = _checks(situation.beliefs_of(AlfworldBeliefs).unseen)
        return Plan(tuple([*checks, *steps][: self._max_steps]), imagined.why)


def _checks(unseen: str) -> list[PlanStep]:
    """Return the command that reveals the outcome of an unobserved one."""
    command = parse_command(unseen)
    look = {"open": f"examine {command.receptacle}", "take": "inventory", "put": "inventory"}.get(command.verb)
    return [PlanStep(look, (), f"nobody saw what came of '{unseen}'")] if look else []


class _Imagined:
    """The state as it will be when the steps planned so far have worked."""

    def __init__(self, task: Task, situation: Situation, grammar: str):
        self.task, self.beliefs, self.grammar = task, situation.beliefs_of(AlfworldBeliefs).copy(), grammar
        self.prior = SearchPrior(situation)
        self.why = ""
        self._mark = STATE_AFTER.get(task.change, "")
        self._finished = False
        self._given_up: set[str] = set()

    def next(self) -> list[PlanStep]:
        """Return the next foreseeable steps; none once the goal is reached."""
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
        if not self._is_ready(held):
            changer = self._nearest_of(self.prior.tool(task.change, task.changer_type), task.change, held)
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
        return self._is_ready(thing)

    def _is_done(self) -> bool:
        things = self.beliefs.things.items()
        delivered = [t for t, p in things if type_of(t) == self.task.object_type and self._is_delivered(t, p)]
        return not self.task.lamp_type and len(delivered) >= self.task.count

    def _nearest(self, kind: str) -> tuple[str, str] | None:
        """Return (thing, place) of the cheapest known thing still needed."""
        beliefs, is_goal = self.beliefs, kind == self.task.object_type
        known = [(t, p) for t, p in beliefs.things.items() if type_of(t) == kind and p in beliefs.receptacles]
        left = [(t, p) for t, p in known if t not in self._given_up and not (is_goal and self._is_delivered(t, p))]
        left = [(t, p) for t, p in left if beliefs.times_refused(f"take {t} from {p}") < 2]
        return min(left, key=lambda pair: beliefs.cost(pair[1]) + 4 * (not self._is_ready(pair[0])), default=None)

    def _is_ready(self, thing: str) -> bool:
        """Tell whether a thing is as the goal wants it."""
        return not self._mark or self._mark in self.beliefs.marks.get(thing, ())

    def _nearest_of(self, kind: str, verb: str, held: str) -> str:
        """Return the nearest receptacle of a kind where this was not refused."""
        options = [r for r in self.beliefs.receptacles if type_of(r) == kind]
        options = [r for r in options if not self._is_refused(f"{verb} {held} with {r}")]
        return min(options, key=lambda r: not self.beliefs.is_here(r), default="")

    def _target(self, thing: str) -> str:
        """Return the goal's nearest place, for two things the first one's."""
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
        return [*steps, PlanStep(f"take {thing} from {place}", needs, why, again=bool(doubted))]

    def _put(self, thing: str, place: str, why: str) -> list[PlanStep]:
        beliefs = self.beliefs
        holding = ("holding", thing)
        needs: list[tuple[str, ...]] = [("at", place), ("open", place), holding]
        if self._mark and type_of(thing) == self.task.object_type and type_of(place) == self.task.receptacle_type:
            needs.append(("marked", thing, self._mark))
        steps = self._go(place, why, holding) + self._open(place, why, holding)
        beliefs.held = ""
        beliefs.things[thing] = place
        return [*steps, PlanStep(put_command(thing, place, self.grammar), tuple(needs), why)]

    def _put_away(self, thing: str) -> list[PlanStep]:
        """Free the hand at the nearest place that has not refused."""
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
        return self._switch_on(*found, f"{found[0]} was seen there", ("holding", held))

    def _switch_on(self, lamp: str, place: str, why: str, *needs: tuple[str, ...]) -> list[PlanStep]:
        self._finished = True
        use = PlanStep(f"use {lamp}", (("at", place), ("there", lamp, place), ("holding", self.beliefs.held)), why)
        return [*self._go(place, why, *needs), use]

    def _search(self, kind: str) -> list[PlanStep]:
        """Return the sure place of a thing, else places to search."""
        beliefs = self.beliefs
        for thing, place in self.prior.named(kind):
            is_left = place in beliefs.receptacles and place not in beliefs.searched and thing not in self._given_up
            if is_left and not beliefs.times_refused(f"take {thing} from {place}"):
                why = f"the task was won with {thing} from {place} before"
                is_lamp = kind == self.task.lamp_type
                return self._switch_on(thing, place, why) if is_lamp else self._take(thing, place, why)
        return self._look_through(kind)

    def _look_through(self, kind: str) -> list[PlanStep]:
        self._finished = True
        sought = ("sought", kind)
        places = self.prior.order(kind, self.beliefs)
        again = not places  # all was seen: things may have moved, or something was misread
        steps: list[PlanStep] = []
        for place in places or self.beliefs.receptacles:
            why = f"to look for a {kind} " + ("once more" if again else "there")
            unsearched = () if again else (("unsearched", place),)
            here = self._go(place, why, sought, ("looked",), *unsearched) + self._open(place, why, sought)
            if not here and not again:
                here = [PlanStep(f"examine {place}", (("at", place), sought, *unsearched), why)]
            steps += here
        self.why = self.why or f"no {kind} is known"
        return steps or [PlanStep("look", (), f"no {kind} is known")]


class SymbolicCritic(RuleCritic[AlfworldBeliefs]):
    """The critic of ALFWorld."""

    beliefs = AlfworldBeliefs

    def review(self, step: PlanStep, situation: Situation) -> str:
        """Review a step; nothing is done before the last effect was seen."""
        if unseen := situation.beliefs_of(AlfworldBeliefs).unseen:
            return f"nobody saw what came of '{unseen}'"
        return super().review(step, situation)

    def objection(self, need: tuple[str, ...], now: AlfworldBeliefs) -> str:
        match need:
            case ("holding", thing):
                return "" if now.held == thing else f"{thing} is not in the hand"
            case ("sought", kind):
                known = next((t for t in now.things if type_of(t) == kind), "")
                return f"{known} was seen at {now.things[known]}" if known else ""
            case ("looked",):
                return f"{now.at} is closed and was not looked into" if now.at in now.closed else ""
            case ("unmarked", thing, mark):
                return f"{thing} is {mark} already" if mark in now.marks.get(thing, ()) else ""
            case ("marked", thing, mark):
                return "" if mark in now.marks.get(thing, ()) else f"{thing} is not {mark}"
        return super().objection(need, now)


def agent_parts(config: PlannerCriticConfig) -> dict[str, Any]:
    """New parts of `PlannerCriticAgent` for ALFWorld, by rules."""
    planner = SymbolicPlanner(config.grammar, config.max_plan_steps)
    return {"planner": planner, "critic": SymbolicCritic(), "rules": AlfworldRules()}
