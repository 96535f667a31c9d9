"""Shared vocabulary of the library: what one step and one episode are, as data. Numpy only.

Both are immutable and compare by value:

    step = Step(observation="You are in ...", action="go to fridge 1")
    episode = Episode(task_id="...", goal="put a clean apple in fridge.", steps=(step,), won=True)
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Observation(NamedTuple):
    """A world's answer.

    Attributes:
        text: in words.
        images: what its cameras show, as the bytes of PNG or JPEG files: two are the same where their bytes are.
    """

    text: str
    images: tuple[bytes, ...] = ()


@dataclasses.dataclass(frozen=True)
class Step:
    """One decision: what the agent saw, then did.

    Attributes:
        observation: text the agent saw before acting.
        action: the command it gave.
        images: that it saw with the text, see `Observation`.
    """

    observation: str
    action: str
    images: tuple[bytes, ...] = ()


@dataclasses.dataclass(frozen=True)
class Episode:
    """One played task, kept raw.

    Attributes:
        task_id: identifies the task in its world, e.g. `pick_...-Apple-None-Fridge-2/trial_T2019...`.
        goal: the instruction without its prefix, e.g. `put a clean apple in fridge.`
        steps: the decisions in order; `steps[0].observation` describes the room.
        won: whether the goal was reached.
        final_observation: what the last action answered.
        final_images: with it.
    """

    task_id: str
    goal: str
    steps: tuple[Step, ...]
    won: bool
    final_observation: str = ""
    final_images: tuple[bytes, ...] = ()

    @property
    def first_observation(self) -> str:
        """Text of the room as first seen; empty for an episode without steps."""
        return self.steps[0].observation if self.steps else ""

    @property
    def has_images(self) -> bool:
        """True if anything was seen besides texts."""
        return bool(self.final_images) or any(step.images for step in self.steps)

    @property
    def answers(self) -> list[str]:
        """The answer to each action."""
        return [*[step.observation for step in self.steps[1:]], self.final_observation]
