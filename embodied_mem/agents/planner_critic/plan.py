"""Plans (steps in order) and the base of planners by rules.

plan = Plan((PlanStep("go to desk 1"), PlanStep("take mug 1 from desk 1", (("at", "desk 1"),))))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from embodied_mem.agents.robot.skills import TASK_COMPLETE


@dataclasses.dataclass(frozen=True)
class PlanStep:
    """One command of a plan.

    Attributes:
        command: as the world reads it.
        needs: preconditions, as `SymbolicCritic` reads them; empty if the planner does not say.
        why: for people and for the chat critic.
        effect: what memory notes if the command is not refused and its answer does not tell.
        again: whether it is tried once more on purpose, though it had no effect before.
    """

    command: str
    needs: tuple[tuple[str, ...], ...] = ()
    why: str = ""
    effect: str = ""
    again: bool = False


COMPLETE = PlanStep(TASK_COMPLETE.command({}), (), "all that the goal asks for is done")
"""The step by which an agent ends a task itself. It is never carried out."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Steps in order; at least one.

    Attributes:
        steps: the steps.
        why: what the plan as a whole rests on.
        progress: which parts of the task are done and which are left, in the planner's words; empty if it does not say.
    """

    steps: tuple[PlanStep, ...]
    why: str = ""
    progress: str = ""


def foreseen(next_steps: Callable[[], Sequence[PlanStep]], max_steps: int = 8) -> list[PlanStep]:
    """Collect steps of `next_steps` until none or about `max_steps`."""
    steps: list[PlanStep] = []
    while len(steps) < max_steps and (more := next_steps()):
        steps += more
    return steps


def plan_untried(
    readings: Sequence[Any],
    tried: set[Any],
    steps_of: Callable[[Any], Sequence[PlanStep] | None],
    *,
    retries: bool = True,
) -> Plan | None:
    """Return the plan of the likeliest untried reading, else the likeliest.

    Args:
        readings: of the goal, the likeliest first.
        tried: those that were carried out, or cannot be; added to.
        steps_of: what is left to do for a reading; nothing where all of it holds, None where it cannot be carried out.
        retries: whether another reading is tried where all of one holds, since the task goes on; without, the task is
            complete.
    """
    for _ in range(2):
        for reading in readings:
            if reading not in tried:
                if steps := steps_of(reading):
                    return Plan(tuple(steps), str(reading))
                if steps is not None and not retries:
                    return Plan((COMPLETE,), str(reading))
                tried.add(reading)
        tried.clear()
    return None
