"""A critic by rules, which a world adds its own needs to.

class MyCritic(RuleCritic[MyBeliefs]):
    beliefs = MyBeliefs

    def objection(self, need, now):
        match need:
            case ("dry", thing):
                return "" if thing in now.dry else f"{thing} is wet"
        return super().objection(need, now)
"""

from __future__ import annotations

from typing import Generic, TypeVar

from embodied_mem.agents.planner_critic.beliefs import Beliefs
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.errors import InvalidInputError

B = TypeVar("B", bound=Beliefs)


class RuleCritic(Generic[B]):
    """Compares what a step needs with what is known now. What is not known is no objection."""

    needs_retrieval = False
    beliefs: type[B]
    """Those of the world."""

    def review(self, step: PlanStep, situation: Situation) -> str:
        now = situation.beliefs_of(self.beliefs)
        if now.times_refused(step.command) and not step.again:
            return f"'{step.command}' had no effect here before"
        return next(filter(None, (self.objection(need, now) for need in step.needs)), "")

    def objection(self, need: tuple[str, ...], now: B) -> str:
        """Why a need does not hold; empty if it does.

        Raises:
            InvalidInputError: no such need is known.
        """
        match need:
            case ("at", place):
                return "" if now.is_here(place) else f"the agent is at {now.at or 'no place'}, not at {place}"
            case ("open", place):
                return f"{place} is closed" if place in now.closed else ""
            case ("shut", place):
                return f"{place} is open" if place in now.opened else ""
            case ("there", thing, place):
                known = now.things.get(thing) == place or place not in now.searched
                return "" if known else f"{thing} is not at {place}"
            case ("empty hand",):
                return f"{now.held} is in the hand" if now.held else ""
            case ("unsearched", place):
                return f"{place} was searched" if place in now.searched else ""
        raise InvalidInputError(f"needs: expected a need that the critic knows, got {need!r}")
