"""An agent: it gets goal and observations as text, and gives commands.

    class Looker(Agent):
        def reset(self, goal, observation, info): ...
        def act(self, observation, info): return "look"

    rollout(envs, [Looker()], [[0, 1, 2]])           # `agents.rollout` plays it

`info` holds only what an agent may know: `task_id` at the start, for records; `admissible_commands` where the world
gives agents a list of all actions; `images` of the cameras, where there are some; `status` of the last command, where a
robot says whether it worked. State and progress of the world, and its reward, stay with whoever plays.
"""

from __future__ import annotations

import abc
from collections.abc import Generator, Mapping
from typing import Any, Protocol


class Agent(Protocol):
    """A player of episodes, one after the other; it may remember earlier ones."""

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        """Start an episode.

        Args:
            goal: the instruction.
            observation: the first text.
            info: see above.
        """
        ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """Return the next command; None if there is nothing more to do.

        Args:
            observation: the first text at first, then the answer to the last command.
            info: see above.
        """
        ...

    def end(self, won: bool, observation: str) -> None:
        """End an episode, for agents that learn from it.

        `observation` answers the last command.
        """
        return None

    def explained(self) -> Mapping[str, Any]:
        """Return what led to the last command, for a trace.

        The fields are those of `agents.trace.Traced`; nothing by default.
        """
        return {}


class CommandGenerator(Agent):
    """An agent written as a generator of commands, each of which is sent the answer to it."""

    @abc.abstractmethod
    def play(self, goal: str, text: str) -> Generator[str, str, None]:
        """Yield the commands of an episode.

        `text` is the first text, without the goal at its end.
        """

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._commands = self.play(goal, observation.removesuffix(f"\n\n{goal}"))
        self._started = False

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        try:
            if self._started:
                return self._commands.send(observation)
            self._started = True
            return next(self._commands)
        except StopIteration:
            return None
