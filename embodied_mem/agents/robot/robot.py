"""The interface to a body, a robot's or a simulated one.

    class Mine(Robot):
        skills = (Skill("navigate_to", ("place",), "Drives to a place."), ...)
        def observe(self): return Outcome("success", "You are at the door.", (camera(),))
        def execute(self, skill, arguments): ...      # blocks until it is done, or `cancel` was called
        def cancel(self): ...

A robot does what it is asked and says how it went: an `Outcome` has a status ("success", "failure", or "unknown" where
the robot cannot tell), a message of what was done and is perceived now, empty if nothing is, and the cameras' images as
`language.images` takes them. When to wait no longer, try again, or stop is the `runner`'s matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from embodied_mem.agents.robot.skills import Skill
from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory.observation import Outcome

__all__ = ["Outcome", "Robot", "RobotError"]


class RobotError(EmbodiedMemError, RuntimeError):
    """The robot could not be asked, as far as it knows: nothing was done, and the same may be asked again."""


class Robot(Protocol):
    """A body.

    Attributes:
        skills: what `execute` knows, and `TASK_COMPLETE` if agents end their tasks themselves.
    """

    skills: Sequence[Skill]

    def observe(self) -> Outcome:
        """Return what is perceived now, without doing anything."""
        ...

    def execute(self, skill: str, arguments: Mapping[str, str]) -> Outcome:
        """Do it, and return once it is over.

        Args:
            skill: name of one of `skills`.
            arguments: its arguments by name.

        Raises:
            RobotError: nothing was done, and trying again makes sense.
        """
        ...

    def cancel(self) -> None:
        """Stop what is being done, so that `execute` returns soon.

        Called from another thread; does nothing if nothing is done.
        """
        ...
