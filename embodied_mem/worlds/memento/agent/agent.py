"""The protocol of a household agent: an instruction and memories first, then observations in, actions out.

    agent.begin(instruction, observation, memories)
    reply = agent.act(observation)                       # Reply(thought, "Explore[kitchen_1]")
    observations, *_ = envs.step([reply.action])

The agent sees text only, never the env.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from embodied_mem.memory.profile import UserProfile

from ..traces.trace import Trace


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
        self, instruction: str, observation: str, memories: Sequence[Trace] = (), profile: UserProfile | None = None
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
