"""MEMENTO's household world (PARTNR episodes in HSSD houses), natively and without a 3-D simulator.

    envs = embodied_mem.envs.make("memento", tasks="acquisition", num_envs=16, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["Explore[kitchen_1]"] * 16)

What is exact, what is fitted, and on how many recorded steps, is in docs/envs.md.
"""

from __future__ import annotations

import collections
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from embodied_mem.envs.checks import checked_indices, checked_mask, checked_seed
from embodied_mem.envs.memento_data import Task, find_episodes, load_tasks
from embodied_mem.errors import InvalidInputError
from embodied_mem.native import part

_native = part("partnr")
Env = _native.Env

MAX_ACTIONS = 40
"""Actions of a run in the paper: its 41st answer is not played any more."""

FORMS = (
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
"""What an action looks like: there is no list of admissible ones, as names are part of them."""

Finder = Callable[[str, str, str], str]
"""Answers a finding tool: (tool, query, list of candidates) to text."""

_FIND = re.compile(r"(FindReceptacleTool|FindObjectTool|FindRoomTool)\s*\[(.*)\]\s*\Z", re.DOTALL)

Tasks = str | os.PathLike | Sequence[Task]


class MementoVectorEnv(gymnasium.vector.VectorEnv):
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

    metadata = {"autoreset_mode": AutoresetMode.DISABLED, "render_modes": []}  # noqa: RUF012 (gymnasium's own name)

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
        if num_envs < 1:
            raise InvalidInputError(f"num_envs: expected >= 1, got {num_envs}")
        if max_steps is not None and max_steps < 1:
            raise InvalidInputError(f"max_steps: expected >= 1 or None, got {max_steps}")
        if num_threads is None:
            num_threads = max(1, min(os.cpu_count() or 1, num_envs // 64))
        if num_threads < 1:
            raise InvalidInputError(f"num_threads: expected >= 1 or None, got {num_threads}")
        self._seed = checked_seed(seed)
        self._tasks = _task_list(tasks, data)
        self._native = _native.VectorEnv(num_envs, max_steps or 0, num_threads)
        self.num_envs = num_envs
        self.max_steps = max_steps
        self._finder = finder
        text = gymnasium.spaces.Text(max_length=1 << 16)
        self.single_observation_space = self.single_action_space = text
        self.observation_space = self.action_space = gymnasium.spaces.Tuple([text] * num_envs)
        self._episodes = np.zeros(num_envs, dtype=np.int64)
        self._order: tuple[tuple[int, int], np.ndarray] | None = None
        self._goals = [""] * num_envs
        self._task_ids = [""] * num_envs
        self._started = np.zeros(num_envs, dtype=bool)

    @property
    def num_tasks(self) -> int:
        """Number of tasks to draw from."""
        return len(self._tasks)

    def task_id(self, task_index: int) -> str:
        """Return the episode id of one task."""
        return self.load(task_index).name

    def load(self, task_index: int) -> Task:
        """Return one task.

        Raises:
            InvalidInputError: no task has this index.
        """
        if not 0 <= task_index < len(self._tasks):
            raise InvalidInputError(f"task index: expected 0 to {len(self._tasks) - 1}, got {task_index}")
        return self._tasks[task_index]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start episodes and return `(observations, info)` of all envs.

        Args:
            seed: a new seed; every env's episode count starts again at 0. None goes on with the present one.
            options: `reset_mask` bool[num_envs]: only these envs start anew, default all. `task_indices` int[num_envs]:
                the tasks they get (entries of other envs are not read), default the seeded order: env i's episode e
                plays task number `e * num_envs + i` of an endless row of shuffles of all tasks.

        Raises:
            InvalidInputError: an option is unknown or has another shape or range.
        """
        options = dict(options or {})
        mask = checked_mask(options.pop("reset_mask", None), self.num_envs)
        indices = options.pop("task_indices", None)
        if options:
            raise InvalidInputError(
                f"options: expected reset_mask and task_indices, got also {', '.join(map(str, options))}"
            )
        if not mask.all() and not (self._started | mask).all():
            missing = int(np.flatnonzero(~(self._started | mask))[0])
            raise InvalidInputError(f"reset_mask: env {missing} was never reset and is left out; reset all envs first")
        if indices is not None:
            indices = checked_indices(indices, mask, self.num_envs, len(self._tasks))
        new_seed = self._seed if seed is None else checked_seed(seed)
        episodes = self._episodes if seed is None else np.zeros_like(self._episodes)
        chosen = np.flatnonzero(mask).tolist()
        if indices is None:
            drawn = [self._draw(new_seed, i, int(episodes[i])) for i in chosen]
        else:
            drawn = [int(indices[i]) for i in chosen]
        tasks = [self._tasks[index] for index in drawn]
        seeds = [_episode_seed(new_seed, i, int(episodes[i])) for i in chosen]
        self._native.reset(chosen, tasks, seeds)
        self._seed = new_seed
        self._episodes = episodes + mask
        self._started |= mask
        for i, task in zip(chosen, tasks):
            self._goals[i] = task.task
            self._task_ids[i] = task.name
        return self.answers()

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
        observations, rewards, terminations, truncations, *rest = self._native.step(actions, recorded)
        return observations, rewards, terminations, truncations, self._info(*rest)

    def answers(self):
        """Return `(observations, info)` as they stand, e.g. after `restore`."""
        observations, _, _, _, *rest = self._native.answers()
        return observations, self._info(*rest)

    def snapshot(self, index: int) -> tuple:
        """Return env `index` as it stands; the handle stays valid whatever the env does afterwards."""
        index = self._checked_env(index)
        return self._native.snapshot(index), self._goals[index], self._task_ids[index]

    def restore(self, index: int, snapshot: tuple) -> None:
        """Put env `index` where `snapshot` (of any MEMENTO env) is, its task and step count included."""
        index = self._checked_env(index, started=False)
        state, goal, task_id = snapshot
        self._native.restore(index, state)
        self._goals[index], self._task_ids[index] = goal, task_id
        self._started[index] = True

    def env(self, index: int) -> Env:
        """Return a copy of one env, with its hidden state (`.state()`), to look ahead or to label data."""
        return self._native.snapshot(self._checked_env(index))

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

    def _info(self, won: np.ndarray, progress: np.ndarray, sim_steps: np.ndarray) -> dict[str, Any]:
        return {
            "goal": self._goals.copy(),
            "task_id": self._task_ids.copy(),
            "won": won,
            "progress": progress,
            "sim_steps": sim_steps,
        }

    def _checked_env(self, index: int, started: bool = True) -> int:
        index = operator.index(index)
        if not 0 <= index < self.num_envs:
            raise InvalidInputError(f"env index: expected 0 to {self.num_envs - 1}, got {index}")
        if started and not self._started[index]:
            raise InvalidInputError(f"env {index} was never reset; call reset() first")
        return index

    def _draw(self, seed: int, env: int, episode: int) -> int:
        """Return the task of one episode: its place in an endless row of shuffles, one shuffle per pass."""
        number, place = divmod(episode * self.num_envs + env, len(self._tasks))
        if self._order is None or self._order[0] != (seed, number):
            self._order = ((seed, number), np.random.default_rng([seed, number]).permutation(len(self._tasks)))
        return int(self._order[1][place])


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


def _episode_seed(seed: int, env: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, env, episode]).generate_state(1, np.uint64)[0])


def _task_list(tasks: Tasks, data: str | os.PathLike | None) -> list[Task]:
    if isinstance(tasks, str | os.PathLike):
        loaded = load_tasks(tasks, data)
        if not loaded:
            raise InvalidInputError(f"tasks: no episode in {find_episodes(tasks, data)[0]}")
        return loaded
    for i, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise InvalidInputError(f"tasks[{i}]: expected a Task, got {type(task).__name__}")
    if not tasks:
        raise InvalidInputError("tasks: expected at least one task, got none")
    return list(tasks)
