"""Text adapters: rewrite another world's texts in ALFWorld's wording, so that its models and teachers work there.

    class MyRow(AdapterRow): ...                # how commands become actions, and views ALFWorld's texts
    class MyTextAdapter(AlfworldTextAdapter):
        row = MyRow

What all adapters share: a command becomes one or more of the world's own actions, all of which count for its limits; a
command that makes no sense counts as an invalid action, as an unusable answer does there. The first text lists the
fixed places, as ALFWorld's does. The instruction becomes a task sentence by its words: nothing of the episode's goal is
read.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem import envs
from embodied_mem.worlds.alfworld.wording.text import CHANGERS, Command, parse_command

Flags = np.ndarray[Any, Any]
"""One number or bool per env."""
NOTHING = "Nothing happens."
SUCCESS = "Last action executed successfully"
"""First words of an EmbodiedBench world's answer to an action that was done."""

_CHANGE = "You {verb} the {held} using the {place}."
_ANSWERS = {
    "go": "You arrive at {place}. {view}",
    "open": "You open the {place}. {view}",
    "close": "You close the {place}.",
    "take": "You pick up the {taken} from the {place}.",
    "put": "You move the {held} to the {place}.",
    "use": "You turn on the {thing}.",
    **dict.fromkeys(CHANGERS, _CHANGE),
}
"""Verb of a command -> ALFWorld's text about it; for others, what is seen."""


class AdapterRow(abc.ABC):
    """One env and the state of its translation. Places: name in ALFWorld's wording -> what the world's actions need.

    A subclass sets `_places` and `goal` in `_prepare` and reads views in `_see`.
    """

    world: str
    """Id of the environment."""
    goal: str
    _places: dict[str, Any]

    def __init__(self, tasks: Sequence[Any], max_actions: int):
        self._env = envs.make(self.world, tasks=list(tasks), num_envs=1, max_steps=max_actions)

    def begin(self, index: int) -> str:
        """Starts a task and returns the first text."""
        observations, info = self._env.reset(options={"task_indices": [index]})
        self.steps, self.over, self.truncated = 0, False, False
        self.goal_text, self.task_id = info["goal"][0], info["task_id"][0]
        self._at, self._last = "", ""
        self._note(observations[0], info)
        self._places = {}
        self._prepare(self._env.load(index))
        return (
            "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, "
            f"you see {listing(self._listed())}.\n\nYour task is to: {self.goal}"
        )

    def do(self, command: str) -> str:
        """Plays a command and returns ALFWorld's text for what came of it."""
        parsed = parse_command(command)
        actions = self._actions(parsed)
        held = self._held()
        if actions is None:
            self._act(f"unusable: {command}")
            return NOTHING
        if not self._act(*actions):
            self._refused(parsed, actions)
            return NOTHING
        place = parsed.receptacle
        if parsed.verb == "go":
            self._at = place
        answer = _ANSWERS.get(parsed.verb, "{view}")
        view = self._describe() if "{view}" in answer else ""  # to look gives things their names in some worlds
        return answer.format(
            verb=parsed.verb, thing=parsed.object, place=place, held=held, taken=self._held(), view=view
        )

    def commands(self) -> list[str]:
        """Commands that make sense here and now."""
        found = [f"go to {place}" for place in self._places if place != self._at]
        if not self._at:
            return found
        here, held = self._at, self._held()
        found.append(f"examine {here}")
        if self._has_door(here):
            found += [f"open {here}", f"close {here}"]
        if not held:
            return found + [f"take {thing} from {here}" for thing in self._contents()]
        return [*found, f"move {held} to {here}", *self._treatments(held)]

    def _note(self, observation: str, info: dict[str, Any]) -> None:
        self.won, self.progress = bool(info["won"][0]), float(info["progress"][0])
        self._see(observation)

    def _act(self, *actions: str) -> bool:
        """Do these actions in turn until one fails; return whether all succeeded."""
        for action in actions:
            if self.over:
                return False
            observations, _, ended, cut, info = self._env.step([action])
            self.steps += self._is_known(action)
            self._note(observations[0], info)
            self.over, self.truncated = bool(ended[0] or cut[0]), bool(cut[0])
            self._last = action
            if not observations[0].startswith(SUCCESS):
                return False
        return True

    def _actions(self, command: Command) -> list[str] | None:
        """Return the world's actions for a command.

        It is None for a command that makes no sense here and now.
        """
        place = command.receptacle
        if command.verb == "go":
            return [self._walk(place)] if place in self._places and place != self._at else None
        if not self._at or (place and place != self._at):
            return None
        if command.verb in ("examine", "look"):
            return [self._walk(self._at)]
        return self._actions_here(command)

    def _describe(self) -> str:
        """ALFWorld's text about the place where the agent stands."""
        state = self._state()
        if state == "closed":
            return f"The {self._at} is closed."
        where = f"The {self._at} is open. In it" if state == "open" else f"On the {self._at}"
        return f"{where}, you see {listing(self._contents())}."

    @abc.abstractmethod
    def _prepare(self, task: Any) -> None:
        """Set `goal`, `_places` and other facts known at an episode's start."""

    @abc.abstractmethod
    def _see(self, observation: str) -> None:
        """Keeps what an answer shows."""

    @abc.abstractmethod
    def _is_known(self, action: str) -> bool:
        """Decide whether this action exists in the world and takes a step."""

    @abc.abstractmethod
    def _walk(self, place: str) -> str:
        """Return the action that leads to a place, or shows it again."""

    @abc.abstractmethod
    def _actions_here(self, command: Command) -> list[str] | None:
        """Do `_actions` for a command about the place where the agent stands."""

    @abc.abstractmethod
    def _held(self) -> str:
        """Return the ALFWorld name of the object in hand; empty for nothing."""

    @abc.abstractmethod
    def _state(self) -> str:
        """Return the door state of the agent's place: `open` or `closed`.

        It is something else if the place has no door.
        """

    @abc.abstractmethod
    def _contents(self) -> list[str]:
        """List the things in view at the agent's place, by ALFWorld's names."""

    def _listed(self) -> list[str]:
        """Places in the order of the first text."""
        return list(self._places)

    def _has_door(self, place: str) -> bool:
        """Tell whether opening a place is worth a try."""
        return True

    def _treatments(self, held: str) -> list[str]:
        """Commands that change what is held, here."""
        return []

    def _refused(self, command: Command, actions: Sequence[str]) -> None:  # noqa: B027 (nothing to learn is a default)
        """Learn from a command that was not carried out completely."""


def listing(names: Sequence[str]) -> str:
    """Return a list as ALFWorld writes it."""
    if len(names) < 2:
        return f"a {names[0]}" if names else "nothing"
    return ", ".join(f"a {name}" for name in names[:-1]) + f", and a {names[-1]}"


class AlfworldTextAdapter:
    """A world's tasks side by side, in ALFWorld's wording; see the module."""

    row: type[AdapterRow]
    max_steps: int
    """The world's own limit."""

    def __init__(self, tasks: Sequence[Any], num_envs: int = 1, max_steps: int | None = None):
        """Make the envs.

        Args:
            tasks: the world's.
            num_envs: rows.
            max_steps: of the world's actions per episode, so that there are no more commands than that; a teacher on
                training tasks may have more than the original's limit, which None takes.
        """
        self.num_envs, self.num_tasks = num_envs, len(tasks)
        self.max_steps = max_steps or self.max_steps
        self._rows = [self.row(tasks, self.max_steps) for _ in range(num_envs)]

    def reset(self, *, options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        """Start episodes in all rows, or in those of `options["reset_mask"]`."""
        mask = options.get("reset_mask", [True] * self.num_envs)
        rows = zip(self._rows, options["task_indices"], mask, strict=True)
        return [row.begin(int(index)) if begins else NOTHING for row, index, begins in rows], self._info()

    def step(self, commands: Sequence[str]) -> tuple[list[str], Flags, Flags, Flags, dict[str, Any]]:
        """Step each row by one command; rows with an ended episode rest.

        The interface is that of `gymnasium.vector.VectorEnv.step`.
        """
        texts = [NOTHING if row.over else row.do(command) for row, command in zip(self._rows, commands, strict=True)]
        truncations = np.array([row.truncated for row in self._rows])
        ended = np.array([row.over for row in self._rows]) & ~truncations
        return texts, np.array([float(row.won) for row in self._rows]), ended, truncations, self._info()

    def outcomes(self) -> list[tuple[bool, float, int]]:
        """(won, progress, the world's steps) of each row's episode as it stands."""
        return [(row.won, row.progress, row.steps) for row in self._rows]

    def _info(self) -> dict[str, Any]:
        return {
            "goal": [row.goal for row in self._rows],
            "task_id": [row.task_id for row in self._rows],
            "steps": np.array([row.steps for row in self._rows]),
            "won": np.array([row.won for row in self._rows]),
            "progress": np.array([row.progress for row in self._rows]),
            "admissible_commands": [row.commands() for row in self._rows],
        }
