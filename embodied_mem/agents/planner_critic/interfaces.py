"""Protocols of planner, critic, preprocessor and a world's rules. No jax, no simulator.

    plan = planner.plan(situation)                    # several steps, the first is for now
    objection = critic.review(plan.steps[1], situation)     # "" or why the step no longer makes sense

A situation holds what the agent read and what its memories know, nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from embodied_mem.agents.planner_critic.beliefs import Beliefs, Refusal, WorkingMemory
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep
from embodied_mem.errors import InternalError
from embodied_mem.language.images import Picture
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.pool import Pool

Known = TypeVar("Known", bound=Beliefs)


@dataclasses.dataclass(frozen=True)
class Situation:
    """The view of planner and critic.

    Attributes:
        goal: the instruction.
        room: text of the room as first seen.
        beliefs: what is the case now, as far as memory tells.
        pool: what memory knows for the query of this step; None where nobody asked (the symbolic critic).
        memory: to look further; of past and present tasks, never the world itself.
        summaries: of the last steps, oldest first; the last one is the newest.
        objection: why the critic refused the last plan; empty if it did not.
        action, observation: the last command and its answer, word by word; empty before the first.
        refusals: commands that had no effect in this task and did not work since.
        progress: of the last plan.
        next_steps: of the plan, after the one that is judged.
        images: what the cameras show now, where there are some.
        commands: the list of actions, where the world gives agents one.
    """

    goal: str
    room: str
    beliefs: Beliefs
    pool: Pool | None
    memory: LifelongMemory
    summaries: Sequence[str] = ()
    objection: str = ""
    images: Sequence[Picture] = ()
    commands: Sequence[str] = ()
    action: str = ""
    observation: str = ""
    refusals: Mapping[str, Refusal] = dataclasses.field(default_factory=dict)
    progress: str = ""
    next_steps: Sequence[PlanStep] = ()

    def beliefs_of(self, kind: type[Known]) -> Known:
        """Return the beliefs as those of a world's kind.

        Raises:
            InternalError: they are another world's.
        """
        if not isinstance(self.beliefs, kind):
            raise InternalError(f"beliefs: expected {kind.__name__}, got {type(self.beliefs).__name__}")
        return self.beliefs


class WorldRules(Protocol):
    """A world's rules, which make memories and beliefs of its texts."""

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> WorkingMemory:
        """Starts the task in the memories and returns its working memory."""
        ...

    def note(self, memory: LifelongMemory, working: WorkingMemory, step: PlanStep, observation: str) -> None:
        """Note a step's answer with `working.status` and `working.images`."""
        ...

    def beliefs(self, memory: LifelongMemory, working: WorkingMemory) -> Beliefs:
        """Return what is the case now."""
        ...


class Planner(Protocol):
    """Makes plans."""

    def plan(self, situation: Situation) -> Plan:
        """Make a plan of at least one step from here on."""
        ...


class Critic(Protocol):
    """Judges one step of a plan under the latest information."""

    needs_retrieval: bool

    def review(self, step: PlanStep, situation: Situation) -> str:
        """Say why the step should wait; empty if it should not."""
        ...


class Preprocessor(Protocol):
    """Turns what was seen into what memory stores and is asked."""

    def summarise(self, goal: str, action: str, observation: str, images: Sequence[Picture] = ()) -> str:
        """Return one line about the step just done."""
        ...

    def query(self, goal: str, action: str, observation: str, images: Sequence[Picture] = ()) -> str:
        """Return what to ask long-term memory now."""
        ...
