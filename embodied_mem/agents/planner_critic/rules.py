"""Parts of an agent by rules: a critic that a world adds its own needs to, texts as they are, summaries, queries.

    class MyCritic(RuleCritic[MyBeliefs]):
        beliefs = MyBeliefs

        def objection(self, need, now):
            match need:
                case ("dry", thing):
                    return "" if thing in now.dry else f"{thing} is wet"
            return super().objection(need, now)

    agent = PlannerCriticAgent(planner=ChatPlanner(chat, robot.skills), critic=ChatCritic(chat))    # has `TextRules`

What no rule of memory reads stays a note and is found by its words; beliefs then say nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.images import Picture
from embodied_mem.memory.images import Image
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers import DEFAULT, Reader
from embodied_mem.memory.readers.reading import Reading

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
        """Say why a need does not hold; empty if it does.

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


class NoReader(Reader):
    """Reads nothing in the texts of a household, for a memory that knows only what a perceiver saw."""

    name = DEFAULT.name


class TextRules:
    """Texts go to memory as they are.

    Args:
        reader: of the texts, that of the memory.
        keep_images: whether memory keeps the pictures themselves, not only their hashes.
    """

    def __init__(self, reader: Reader = DEFAULT, *, keep_images: bool = False):
        self._reader, self._keep_images = reader, keep_images

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> WorkingMemory:
        memory.begin_task(task_id, goal, observation)
        return WorkingMemory(goal, observation, (), [], began=memory.time, recent=[observation])

    def note(self, memory: LifelongMemory, working: WorkingMemory, step: PlanStep, observation: str) -> None:
        images = [Image(one, keep=True) for one in working.images] if self._keep_images else working.images
        receipt = memory.observe(step.command, observation, outcome=working.status, images=images)
        is_seen_to_fail = memory.perceiver is not None and receipt.outcome == "failure"
        if is_seen_to_fail or working.failed(self._reader.read(observation).refused):
            working.refuse(step.command)
        working.keep(observation)

    def beliefs(self, memory: LifelongMemory, working: WorkingMemory) -> Beliefs:
        """Implement `WorldRules.beliefs` by last answers and spatial memory."""
        now = Beliefs(refused=working.refused)
        for text in working.recent:
            now.note(self._reader.read(text))
        if memory.perception is not None:
            now.note(Reading(tuple(fact[:3] for fact in memory.perception.facts)))
        if (spatial := memory.spatial) is not None:
            now.at, now.held = spatial.position(), next(iter(spatial.held()), "")
        return now


class RulePreprocessor:
    """Step summaries and queries by rules."""

    def summarise(self, goal: str, action: str, observation: str, images: Sequence[Picture] = ()) -> str:
        return f"{action}: {' '.join(observation.split())}"

    def query(self, goal: str, action: str, observation: str, images: Sequence[Picture] = ()) -> str:
        """Return the goal, a fixed query that keeps retrieval cheap."""
        return goal
