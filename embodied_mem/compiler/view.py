"""The visible part of a running episode, and the compiler's inputs made from it. No jax.

view = start_view(goal, first_observation, experiences)
text = compile_prompt(view)
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Sequence
from typing import Any

from embodied_mem.compiler.brief_state import BriefState, Create, apply_all
from embodied_mem.compiler.prompts import (
    Shown,
    action_history,
    compact_room,
    compiler_prompt,
    executor_prompt,
    plain_goal,
)
from embodied_mem.memory import Experience
from embodied_mem.memory.pool import Pool
from embodied_mem.memory.readers import DEFAULT, Reader

_FOUND_IN = re.compile(r"((?:was|\bused \w+) in )([a-z]+) (\d+)")
"""Place where an experience found something, as `Experience.brief` says it."""


@dataclasses.dataclass
class View:
    """The view that a delivery has of a running episode.

    Attributes:
        goal: the instruction.
        room: `compact_room` of the first observation.
        experiences: what was retrieved at the start.
        turns: (action, answer) pairs so far.
        state: the delivery's own per-episode state; anything.
        reader: of the world's texts.
        first: the first observation, whole.
        task_id: of the task that is played; only for who must not remember it.
        images: that came with the newest observation (`types.Observation`).
        pool: of a lifelong memory, in place of `experiences` alone; None without one.
    """

    goal: str
    room: str
    experiences: Sequence[Experience]
    turns: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    state: Any = None
    reader: Reader = DEFAULT
    first: str = ""
    task_id: str = ""
    images: tuple[bytes, ...] = ()
    pool: Pool | None = None

    @property
    def memories(self) -> Sequence[Experience]:
        """The pool, or the experiences where there is none."""
        return self.experiences if self.pool is None else self.pool

    @property
    def memory(self) -> str:
        """The pool M as text, a record after the other."""
        if self.pool is None:
            return render_experiences(self.experiences)
        return "\n".join(record.text for record in self.pool.records) or "nothing"

    @property
    def remembered(self) -> tuple[bytes, ...]:
        """Pictures out of the experiences, the best one's last: where each found what its goal was about."""
        return tuple(image for one in reversed(self.experiences) for image in one.images)


def start_state(goal: str, room: str) -> BriefState:
    """Return the Brief State before the first step."""
    items = [Create("room", item) for item in room.split("; ") if item]
    return apply_all(items, BriefState.start(plain_goal(goal)))[0]


def start_view(
    goal: str,
    observation: str,
    experiences: Sequence[Experience],
    task_id: str = "",
    images: tuple[bytes, ...] = (),
) -> View:
    """Return the view of an episode that starts with `observation`.

    The Brief State is included.
    """
    room = compact_room(observation.partition("Your task is to:")[0])
    return View(goal, room, experiences, [], start_state(goal, room), first=observation, task_id=task_id, images=images)


def render_experiences(experiences: Sequence[Experience]) -> str:
    """Write the pool M as text, one line per experience.

    An experience may have no line.
    """
    return "\n".join(line for experience in experiences if (line := experience.brief())) or "nothing"


def render_trajectories(experiences: Sequence[Experience], fits: Callable[[str], bool]) -> str:
    """Return whole trajectories, best first.

    As many whole ones as fit; of the first that does not, as many steps from its start as do.

    Args:
        experiences: best first.
        fits: whether there is room for a text.
    """
    lines: list[str] = []
    for experience in experiences:
        episode = experience.episode
        room = " ".join(episode.first_observation.partition("Your task is to:")[0].split())
        told = [f"past: {plain_goal(episode.goal)}\n{room}"]
        told += [f"> {step.action}\n{' '.join(a.split())}" for step, a in zip(episode.steps, episode.answers)]
        whole = len(told)
        while told and not fits("\n".join([*lines, *told])):
            told.pop()
        lines += told if len(told) > 1 else []
        if len(told) < whole:
            break
    return "\n".join(lines) or "nothing"


def place_of(turns: Sequence[tuple[str, str]], reader: Reader = DEFAULT) -> str:
    """Return the place reached last, by the answers; empty if none."""
    return next((place for _, answer in reversed(turns) if (place := reader.read(answer).arrived_at)), "")


def _counts(room: str) -> dict[str, int]:
    """Kinds of places in `compact_room` -> how many there are."""
    return {kind: int(count) for kind, _, count in (item.rpartition(" ") for item in room.split("; ") if item)}


def _left(room: str, searched: Container[str]) -> str:
    """Find the first unsearched place of every kind in `compact_room`."""
    numbered = ([f"{kind} {n + 1}" for n in range(count)] for kind, count in _counts(room).items())
    firsts = (next((place for place in places if place not in searched), "") for places in numbered)
    return "; ".join(filter(None, firsts))


def executor_text(
    goal: str,
    room: str,
    turns: Sequence[tuple[str, str]],
    shown: Shown,
    *,
    memory: str = "",
    hint: str = "",
    num_soft: int = 0,
) -> str:
    """Return what the executor reads at this step of an episode (`executor_prompt`)."""
    left = _left(room, {DEFAULT.read(answer).looked_into for _, answer in turns}) if shown.marks else ""
    return executor_prompt(
        goal, room, turns, here=place_of(turns), left=left, memory=memory, hint=hint, num_soft=num_soft,
        full_turns=shown.full_turns,
    )  # fmt: skip


def compile_prompt(view: View, brief: bool = True) -> str:
    """Write the prompt of a step.

    Without `brief`, the action history stands for the Brief State. A Brief State also tells which memories are used up:
    where one names a place that was searched, or that is not in this room, an `x` stands behind it (a number that the
    room does not have stands for the first of its kind), and `left` holds the first place of every kind that was not
    searched. That a place is missing from a list is hard to see for a small model; that it stands in one is easy.
    """
    action, observation = view.turns[-1] if view.turns else ("", "")
    memory = view.memory
    if not brief:
        history = action_history(view.goal, view.room, [action for action, _ in view.turns])
        return compiler_prompt(memory, history, action, observation, plain_goal(view.goal))
    searched = {*view.state.fact("searched"), view.reader.read(observation).looked_into}
    counts = _counts(view.room)

    def marked(found: re.Match[str]) -> str:
        kind, number = found[2], int(found[3])
        place = f"{kind} {number if number <= counts.get(kind, 0) else 1}"
        return f"{found[1]}{place}{' x' if kind not in counts or place in searched else ''}"

    return compiler_prompt(
        _FOUND_IN.sub(marked, memory), view.state.render(), action, observation,
        view.state.current or plain_goal(view.goal), left=_left(view.room, searched),
    )  # fmt: skip
