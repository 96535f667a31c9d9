"""What a household agent is: it gets an instruction and memories, then reads observations and says actions.

    agent.begin(instruction, observation, memories)
    reply = agent.act(observation)                       # Reply(thought, "Explore[kitchen_1]")
    observations, *_ = envs.step([reply.action])

The agent sees text only, never the env. `play` plays one task and returns what is remembered of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from ..memory.profile import UserProfile
from ..memory.traces import Trace, TraceStep


@dataclasses.dataclass(frozen=True)
class Reply:
    """One answer of an agent.

    Attributes:
        thought: why, for people and for memory; never read by the world.
        action: the call, e.g. `Place[cup_1, on, table_2, None, None]`.
    """

    thought: str
    action: str


class HouseholdAgent(Protocol):
    """Whatever plays household tasks."""

    def begin(
        self,
        instruction: str,
        observation: str,
        memories: Sequence[Trace] = (),
        profile: UserProfile | None = None,
    ) -> None:
        """Start a task.

        Args:
            instruction: what the user said.
            observation: the world's first observation, with the house text.
            memories: what was retrieved for the instruction, best first.
            profile: what is known of the user; None for nothing.
        """
        ...

    def act(self, observation: str) -> Reply:
        """The next action, after `observation`."""
        ...


def play(
    agent: HouseholdAgent,
    instruction: str,
    observation: str,
    step: Callable[[str], tuple[str, bool]],
    memories: Sequence[Trace] = (),
    profile: UserProfile | None = None,
) -> tuple[TraceStep, ...]:
    """Play one task to its end and return its turns.

    Args:
        agent: plays.
        instruction: what the user said.
        observation: the first observation.
        step: plays an action and returns the next observation and whether the task has ended.
        memories: for the agent, best first.
        profile: for the agent.
    """
    agent.begin(instruction, observation, memories, profile)
    turns: list[TraceStep] = []
    ended = False
    while not ended:
        reply = agent.act(observation)
        observation, ended = step(reply.action)
        turns.append(TraceStep(reply.thought, reply.action, observation))
    return tuple(turns)
