"""MEMENTO's household world (PARTNR episodes in HSSD houses), natively and without a 3-D simulator.

    envs = embodied_mem.envs.make("memento", tasks="acquisition", num_envs=16, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["Explore[kitchen_1]"] * 16)

What is exact, what is fitted, and on how many recorded steps, is in docs/envs.md.
"""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem.envs.memento_data import Task, find_episodes, load_tasks
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import InvalidInputError
from embodied_mem.native import part

_native = part("partnr")
Env = _native.Env

MAX_ACTIONS = 40
"""Actions of a run in the paper: its 41st answer is not played any more."""

Finder = Callable[[str, str, str], str]
"""Answers a finding tool: (tool, query, list of candidates) to text."""

_FIND = re.compile(r"(FindReceptacleTool|FindObjectTool|FindRoomTool)\s*\[(.*)\]\s*\Z", re.DOTALL)

Tasks = str | os.PathLike | Sequence[Task]


class MementoVectorEnv(NativeVectorEnv):
    """Household tasks stepped together; autoreset is disabled, results do not depend on the number of threads.

    The first observation is `Task: <instruction>`, a blank line and the house text of the original's prompt; later
    ones are `Result: <answer>` and `Objects: <one line per object seen so far>`. After its end (Done[], or five answers
    in a row that are no action) an env changes nothing and repeats its last observation until it is reset.

    `info` holds, each with one entry per env: `goal` (the instruction), `task_id`, `won` (bool[B], success as of now),
    `progress` (float64[B], PARTNR's percent complete as of now), `sim_steps` (int64[B], simulator steps spent).
    Actions have names as arguments, so there is no list of admissible ones. `rewards` is 1.0 after each step at which
    the task stands fulfilled, else 0.0; `terminations` is true at the end described above; `truncations` where
    `max_steps` actions were played without one.
    """

    default_tasks = "acquisition"
    action_forms = (
        "Navigate[room, floor, furniture or object]",
        "Explore[room]",
        "Pick[object]",
        "Place[object, on or within, furniture or floor, next_to or None, object, furniture or None]",
        "Open[furniture]",
        "Close[furniture]",
        "FindReceptacleTool[what]",
        "FindObjectTool[what]",
        "FindRoomTool[what]",
        "DescribeObjectTool[object]",
        "Wait[]",
        "Done[]",
    )
    extra_info = ("sim_steps",)
    has_chance = True

    def __init__(
        self,
        tasks: Tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_ACTIONS,
        data: str | os.PathLike | None = None,
        finder: Finder | None = None,
        num_threads: int | None = None,
    ):
        """Read the tasks and make the envs.

        Args:
            tasks: a stage (`acquisition`, `single`, `joint`), an episode file, or `Task` objects.
            num_envs: number of tasks played side by side, B.
            seed: decides, with env and episode number, the task drawn and all chance of its episode.
            max_steps: actions after which an episode is truncated; None for no limit.
            data: folder with `scenes.json`, `captions.json`, `episodes/`; None takes `$EMBODIED_MEM_DATA/memento`.
            finder: answers the three finding tools, e.g. with a chat model; None answers by rule.
            num_threads: threads that step the envs; None picks 1 per 64 envs, at most one per core.

        Raises:
            DataNotFoundError: the data is not installed.
            GameFileError: a data file is malformed.
            InvalidInputError: any other argument is out of range.
        """
        super().__init__(_native.VectorEnv, _task_list(tasks, data), num_envs, seed, max_steps, num_threads)
        self._finder = finder

    def step(self, actions: Sequence[str], recorded: Sequence[Mapping[str, Any] | None] | None = None):
        """Play one action in every env and return `(observations, rewards, terminations, truncations, info)`.

        Args:
            actions: one action per env, `Name[arguments]`; any string at all, of which the last line is read.
            recorded: per env None or what a recorded run says of the step, to be believed: `response`, `room` and
                `position` (of the agent, afterwards), `revealed` (names of objects newly shown).

        Raises:
            InvalidInputError: not one `str` per env, or `reset` was never called. No env has moved then.
        """
        if recorded is not None:
            recorded = [None if entry is None else dict(entry) for entry in recorded]
        elif self._finder is not None:
            recorded = self._found(actions)
        return self._answered(self._native.step(actions, recorded))

    def _found(self, actions: Sequence[str]) -> list[dict[str, str] | None] | None:
        answers: list[dict[str, str] | None] = [None] * self.num_envs
        if isinstance(actions, str) or len(actions) != self.num_envs or not self._started.all():
            return None  # the native step refuses these
        for i, action in enumerate(actions):
            line = action.strip().rpartition("\n")[2] if isinstance(action, str) else ""
            if match := _FIND.search(line):
                tool, query = match.groups()
                env = self._native.snapshot(i)
                answers[i] = (
                    None if env.ended else {"response": self._finder(tool, query.strip(), candidates(env, tool))}
                )
        return answers if any(answers) else None


def candidates(env: Env, tool: str) -> str:
    """Return the list that a finding tool's model reads: furniture by type, objects seen so far, or rooms.

    Rooms of furniture are named by type alone, as in the original: bedroom_1 cannot be told from bedroom_2.
    """
    house = env.task.house
    types = {room["name"]: room["type"] for room in house["rooms"]}
    if tool == "FindRoomTool":
        return "\n".join(room["name"] for room in house["rooms"] if room["has_floor"])
    if tool == "FindReceptacleTool":
        by_type: dict[str, list[str]] = collections.defaultdict(list)
        for piece in house["furniture"]:
            faucet = " with components: faucet" if piece["faucet"] else ""
            by_type[piece["type"]].append(f"{piece['name']} in {types[piece['room']]}{faucet}")
        return "\n".join(f"{kind.capitalize()} : {', '.join(names)}" for kind, names in by_type.items())
    state = env.state()
    lines = []
    for name, entry in state["objects"].items():
        if entry["known"]:
            where = "held by the agent" if entry["held"] else f"in/on {entry['place']} in {entry['room']}"
            away = np.hypot(*(entry["position"][k] - state["position"][k] for k in (0, 2)))
            lines.append(f"{name} is {where} and {away:.1f} meters away from the agent")
    return "\n".join(lines)


def _task_list(tasks: Tasks, data: str | os.PathLike | None) -> list[Task]:
    if isinstance(tasks, str | os.PathLike):
        loaded = load_tasks(tasks, data)
        if not loaded:
            raise InvalidInputError(f"tasks: no episode in {find_episodes(tasks, data)[0]}")
        return loaded
    for i, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise InvalidInputError(f"tasks[{i}]: expected a Task, got {type(task).__name__}")
    return list(tasks)
