"""What may be looked at in a running episode, and the texts that are made of it for the compiler. No jax.

view = View(goal, room, experiences, state=start_state(goal, room))
text = compile_prompt(view)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from embodied_mem.compiler.brief_state import BriefState, Create, apply_all
from embodied_mem.envs.alfworld_text import parse_observation
from embodied_mem.language.prompts import action_history, compiler_prompt, plain_goal
from embodied_mem.memory import Experience


@dataclasses.dataclass
class View:
    """What a delivery may look at in one running episode.

    Attributes:
        goal: the instruction.
        room: `compact_room` of the first observation.
        experiences: what was retrieved at the start.
        turns: (action, answer) pairs so far.
        state: the delivery's own per-episode state; anything.
    """

    goal: str
    room: str
    experiences: Sequence[Experience]
    turns: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    state: Any = None


def start_state(goal: str, room: str) -> BriefState:
    """The Brief State before the first step."""
    items = [Create("room", item) for item in room.split("; ") if item]
    return apply_all(items, BriefState.start(plain_goal(goal)))[0]


def render_experiences(experiences: Sequence[Experience]) -> str:
    """The pool M as text, one experience a line, the same for every delivery."""
    return "\n".join(experience.brief() for experience in experiences) or "nothing"


def place_of(turns: Sequence[tuple[str, str]]) -> str:
    """The receptacle reached last, as the answers of ALFWorld tell; empty if none was."""
    return next((place for _, answer in reversed(turns) if (place := parse_observation(answer).arrived_at)), "")


def compile_prompt(view: View, brief: bool = True) -> str:
    """What the compiler reads at this step of an episode; without `brief`, the action history for the Brief State."""
    action, observation = view.turns[-1] if view.turns else ("", "")
    actions = [action for action, _ in view.turns]
    state = view.state.render() if brief else action_history(view.goal, view.room, actions)
    aim = (brief and view.state.current) or plain_goal(view.goal)
    return compiler_prompt(render_experiences(view.experiences), state, action, observation, aim)
