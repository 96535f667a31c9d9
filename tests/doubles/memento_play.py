"""One MEMENTO task played by an agent without a world: what is remembered of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.agent.react import HouseholdAgent
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep


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
