"""Plans and who makes and checks them: the words that planner, critic and agent share. No jax, no simulator.

    plan = planner.plan(situation)                    # several steps, the first is for now
    objection = critic.review(plan.steps[1], situation)     # "" or why the step no longer makes sense

A situation holds what the agent read and what its memories know, nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.recollection import Recollection

if TYPE_CHECKING:
    from embodied_mem.agents.beliefs import Beliefs, WorkingMemory


@dataclasses.dataclass(frozen=True)
class PlanStep:
    """One command of a plan.

    Attributes:
        command: as the world reads it.
        needs: preconditions, as `SymbolicCritic` reads them; empty if the planner does not say.
        why: for people and for the chat critic.
        effect: what memory notes if the command is not refused and its answer does not tell.
    """

    command: str
    needs: tuple[tuple[str, ...], ...] = ()
    why: str = ""
    effect: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Steps in order; at least one.

    Attributes:
        steps: the steps.
        why: what the plan as a whole rests on.
    """

    steps: tuple[PlanStep, ...]
    why: str = ""


def foreseen(next_steps: Callable[[], Sequence[PlanStep]], max_steps: int = 8) -> list[PlanStep]:
    """Steps until `next_steps` gives no more, or there are `max_steps`: the last few may go beyond."""
    steps: list[PlanStep] = []
    while len(steps) < max_steps and (more := next_steps()):
        steps += more
    return steps


def plan_untried(
    readings: Sequence[Any], tried: set[Any], steps_of: Callable[[Any], Sequence[PlanStep]]
) -> Plan | None:
    """The plan of the likeliest reading that was not carried out; of the likeliest of all when every one was.

    Args:
        readings: of the goal, the likeliest first.
        tried: those that were carried out. One without steps is added: all of it holds, and the task goes on.
        steps_of: what is left to do for a reading.
    """
    for _ in range(2):
        for reading in readings:
            if reading not in tried:
                if steps := steps_of(reading):
                    return Plan(tuple(steps), str(reading))
                tried.add(reading)
        tried.clear()
    return None


@dataclasses.dataclass(frozen=True)
class Situation:
    """What planner and critic may look at.

    Attributes:
        goal: the instruction.
        room: text of the room as first seen.
        beliefs: what is the case now, as far as memory tells.
        recollection: what was retrieved for the query of this step; None where nobody asked (the symbolic critic).
        memory: to look further; of past and present tasks, never the world itself.
        summaries: of the last steps, oldest first; the last one is the newest.
        objection: why the critic refused the last plan; empty if it did not.
    """

    goal: str
    room: str
    beliefs: Beliefs
    recollection: Recollection | None
    memory: LifelongMemory
    summaries: Sequence[str] = ()
    objection: str = ""


class WorldRules(Protocol):
    """How the texts of a world become memories and beliefs."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> WorkingMemory:
        """Starts the task in the memories and returns its working memory."""
        ...

    def note(self, memory: LifelongMemory, working: WorkingMemory, step: PlanStep, observation: str) -> None:
        """Takes note of the answer to a step."""
        ...

    def beliefs(self, memory: LifelongMemory, working: WorkingMemory) -> Beliefs:
        """What is the case now."""
        ...


class Planner(Protocol):
    """Makes plans."""

    def plan(self, situation: Situation) -> Plan:
        """A plan of at least one step from here on."""
        ...


class Critic(Protocol):
    """Judges one step of a plan under the latest information."""

    needs_retrieval: bool

    def review(self, step: PlanStep, situation: Situation) -> str:
        """Why the step should not be done now; empty if it should."""
        ...


class Preprocessor(Protocol):
    """Turns what was seen into what memory stores and is asked."""

    def summarise(self, goal: str, action: str, observation: str) -> str:
        """One line about the step just done."""
        ...

    def query(self, goal: str, action: str, observation: str) -> str:
        """What to ask long-term memory now."""
        ...
