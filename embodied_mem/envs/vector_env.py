"""What the native worlds' vector envs share: the seeded order of tasks, reset, step, answers, snapshots, checks.

class MyWorldVectorEnv(NativeVectorEnv):
    extra_info = ("admissible_commands",)

    def __init__(self, tasks, num_envs=1, seed=0, max_steps=50, num_threads=None):
        super().__init__(_native.VectorEnv, read(tasks), num_envs, seed, max_steps, num_threads)
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from embodied_mem.envs.checks import checked_indices, checked_mask, checked_seed
from embodied_mem.errors import InvalidInputError


class NativeVectorEnv(gymnasium.vector.VectorEnv):
    """Tasks of one native world stepped together; autoreset is disabled, results do not depend on the threads.

    `info` holds, each with one entry per env: `goal` (the task's sentence), `task_id`, `won` (bool[B]), `progress`
    (float64[B] in [0, 1]) and what `extra_info` names. `rewards` (float64[B]) is 1.0 after each step at which the task
    is won, else 0.0; `truncations` is true where `max_steps` steps were taken without an end.

    A subclass gives the tasks: native handles with `name` and `task` (the sentence), or, with its own `load` and
    `task_id`, what these make handles of.
    """

    metadata = {"autoreset_mode": AutoresetMode.DISABLED, "render_modes": []}  # noqa: RUF012 (gymnasium's own name)
    extra_info: tuple[str, ...] = ()
    """Names in `info` of what the native side answers after `progress`."""
    default_tasks = ""
    """Tasks that a demonstration or a benchmark takes."""
    action_forms: tuple[str, ...] = ()
    """What an action looks like where `info` has no `admissible_commands`, since names are part of it."""
    has_chance = False
    """Whether the seed decides more than the order of tasks."""

    def __init__(
        self,
        native: Callable[..., Any],
        tasks: Sequence[Any],
        num_envs: int,
        seed: int,
        max_steps: int | None,
        num_threads: int | None,
        *options: Any,
    ):
        """Make the envs; nothing is played before `reset`.

        Args:
            native: the world's native VectorEnv class.
            tasks: what `load` loads, at least one.
            num_envs: number of tasks played side by side, B.
            seed: decides, with env and episode number, which task is drawn, and all chance in it.
            max_steps: steps after which an episode is truncated; None for no limit.
            num_threads: threads that step the envs; None picks 1 per 64 envs, at most one per core.
            options: further arguments of `native`.

        Raises:
            InvalidInputError: an argument is out of range.
        """
        if num_envs < 1:
            raise InvalidInputError(f"num_envs: expected >= 1, got {num_envs}")
        if max_steps is not None and max_steps < 1:
            raise InvalidInputError(f"max_steps: expected >= 1 or None, got {max_steps}")
        if num_threads is None:
            num_threads = max(1, min(os.cpu_count() or 1, num_envs // 64))
        if num_threads < 1:
            raise InvalidInputError(f"num_threads: expected >= 1 or None, got {num_threads}")
        if not tasks:
            raise InvalidInputError("tasks: expected at least one, got none")
        self._seed = checked_seed(seed)
        self._tasks = tasks
        self._native = native(num_envs, max_steps or 0, num_threads, *options)
        self.num_envs = num_envs
        self.max_steps = max_steps
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

    def load(self, task_index: int) -> Any:
        """Return one task as the native side plays it.

        Raises:
            InvalidInputError: no task has this index.
        """
        if not 0 <= task_index < len(self._tasks):
            raise InvalidInputError(f"task index: expected 0 to {len(self._tasks) - 1}, got {task_index}")
        return self._tasks[task_index]

    def task_id(self, task_index: int) -> str:
        """Return the id of one task."""
        return self.load(task_index).name

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start episodes and return `(observations, info)` of all envs.

        Args:
            seed: a new seed; every env's episode count starts again at 0. None goes on with the present one.
            options: `reset_mask` bool[num_envs]: only these envs start anew, default all. `task_indices` int[num_envs]:
                the tasks they get (entries of other envs are not read), default the seeded order: env i's episode e
                plays task number `e * num_envs + i` of an endless row of shuffles of all tasks.

        Raises:
            InvalidInputError: an option is unknown or has another shape or range.
            GameFileError: a task's file cannot be played; no env has changed then.
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
        tasks = [self.load(index) for index in drawn]
        seeds = [_episode_seed(new_seed, i, int(episodes[i])) if self.has_chance else 0 for i in chosen]
        self._native.reset(chosen, tasks, seeds)
        self._seed = new_seed
        self._episodes = episodes + mask
        self._started |= mask
        for i, index, task in zip(chosen, drawn, tasks):
            self._goals[i] = task.task
            self._task_ids[i] = self.task_id(index)
        return self.answers()

    def step(self, actions: Sequence[str]):
        """Play one action in every env and return `(observations, rewards, terminations, truncations, info)`.

        Args:
            actions: one action per env; any string at all.

        Raises:
            InvalidInputError: not one `str` per env, or `reset` was never called. No env has moved then.
        """
        return self._answered(self._native.step(actions))

    def answers(self):
        """Return `(observations, info)` as they stand, e.g. after `restore`."""
        observations, _, _, _, info = self._answered(self._native.answers())
        return observations, info

    def snapshot(self, index: int) -> tuple:
        """Return env `index` as it stands; the handle stays valid whatever the env does afterwards."""
        index = self._checked_env(index)
        return self._native.snapshot(index), self._goals[index], self._task_ids[index]

    def restore(self, index: int, snapshot: tuple) -> None:
        """Put env `index` where `snapshot` is, its task and step count included.

        Raises:
            InvalidInputError: the snapshot is of envs with other options.
        """
        index = self._checked_env(index, started=False)
        state, goal, task_id = snapshot
        self._native.restore(index, state)
        self._goals[index], self._task_ids[index] = goal, task_id
        self._started[index] = True

    def env(self, index: int) -> Any:
        """Return a copy of one env, with its hidden state (`.state()`), to look ahead or to label data."""
        return self._native.snapshot(self._checked_env(index))

    def _answered(self, answers: tuple):
        observations, rewards, terminations, truncations, won, progress, *extra = answers
        info = {"goal": self._goals.copy(), "task_id": self._task_ids.copy(), "won": won, "progress": progress}
        info.update(zip(self.extra_info, extra))
        return observations, rewards, terminations, truncations, info

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


def _episode_seed(seed: int, env: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, env, episode]).generate_state(1, np.uint64)[0])
