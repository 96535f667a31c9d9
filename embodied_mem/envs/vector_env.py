"""The common part of the native worlds' vector envs: order of tasks, reset, step, answers, snapshots, checks.

class MyWorldVectorEnv(NativeVectorEnv):
    extra_info = ("admissible_commands",)

    def __init__(self, tasks, num_envs=1, seed=0, max_steps=50, num_threads=None):
        super().__init__(_native.VectorEnv, read(tasks), num_envs, seed, max_steps, num_threads)

envs = make("alfworld", tasks="train", num_envs=16, seed=0)      # any world, by name
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from embodied_mem.envs.checks import (
    MAX_ENVS,
    MAX_STEPS,
    MAX_THREADS,
    checked_actions,
    checked_count,
    checked_index,
    checked_indices,
    checked_mask,
    checked_seed,
    checked_seeds,
)
from embodied_mem.envs.text_space import AnyText
from embodied_mem.errors import InvalidInputError
from embodied_mem.registry import load

Texts = Sequence[str]
Reset = tuple[Texts, dict[str, Any]]
"""Observations and info."""

Answers = tuple[Texts, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
"""Observations, rewards, terminations, truncations and info."""


class NativeVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Tasks of one native world stepped together; autoreset is disabled, results do not depend on the threads.

    Observations and actions are lists of str; any str is in the spaces (`AnyText`). `info` holds arrays with one entry
    per env, of dtype object where an entry is a text or a list: `goal` (the task's sentence), `task_id`, `won`
    (bool[B]), `progress` (float64[B] in [0, 1]) and what `extra_info` names. `rewards` (float64[B]) is 1.0 after each
    step at which the task is won, else 0.0; `truncations` is true where `max_steps` steps were taken without an end.

    A subclass gives the tasks: native handles with `name` and `task` (the sentence), or, with its own `load` and
    `task_id`, what these make handles of.
    """

    metadata = {"autoreset_mode": AutoresetMode.DISABLED, "render_modes": ["ansi"]}  # noqa: RUF012 (gymnasium's own name)
    extra_info: tuple[str, ...] = ()
    """Names in `info` of what the native side answers after `progress`."""
    default_tasks = ""
    """Tasks where none are named; no test split where there is another."""
    action_forms: tuple[str, ...] = ()
    """Forms of actions where `info` has no `admissible_commands`, since names are part of it."""
    has_chance = False
    """True if the seed decides more than the order of tasks."""
    made_by: Callable[[], NativeVectorEnv] | None = None
    """Makes such envs again, set by `make`."""

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
            num_envs: number of tasks played side by side, B, up to 65536.
            seed: decides, with env and episode number, which task is drawn, and all chance in it.
            max_steps: steps after which an episode is truncated; None for no limit.
            num_threads: threads that step the envs; None picks 1 per 64 envs, at most one per core.
            options: further arguments of `native`.

        Raises:
            InvalidInputError: an argument is out of range.
        """
        num_envs = checked_count("num_envs", num_envs, MAX_ENVS)
        if max_steps is not None:
            max_steps = checked_count("max_steps", max_steps, MAX_STEPS)
        if num_threads is None:
            num_threads = max(1, min(os.cpu_count() or 1, num_envs // 64))
        num_threads = checked_count("num_threads", num_threads, MAX_THREADS)
        if not tasks:
            raise InvalidInputError("tasks: expected at least one, got none")
        seed = checked_seed(seed)
        self._tasks = tasks
        self._native = native(num_envs, max_steps or 0, num_threads, *options)
        self.num_envs = num_envs
        self.max_steps = max_steps
        self.single_observation_space, self.single_action_space = AnyText(), AnyText()
        self.observation_space, self.action_space = AnyText().batch(num_envs), AnyText().batch(num_envs)
        super().reset(seed=seed)  # gymnasium's own generator; no world draws from it
        self._streams = [Stream(seed, i, num_envs) for i in range(num_envs)]
        self._episodes = np.zeros(num_envs, dtype=np.int64)
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
        return self._tasks[checked_index("task index", task_index, len(self._tasks))]

    def task_id(self, task_index: int) -> str:
        """Return the id of one task."""
        return str(self.load(task_index).name)

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Start episodes and return `(observations, info)` of all envs.

        Args:
            seed: a new seed; every env's episode count starts again at 0. One per env: env i, if it starts anew, plays
                from now on what a single env (`num_envs=1`) of seed `seed[i]` plays. None goes on with the present one.
            options: `reset_mask` bool[num_envs]: only these envs start anew, default all. `task_indices` int[num_envs]:
                the tasks they get (entries of other envs are not read), default the seeded order: env i's episode e
                plays task number `e * num_envs + i` of an endless row of shuffles of all tasks.

        Raises:
            InvalidInputError: an option is unknown or has another shape or range.
            GameFileError: a task's file cannot be played; no env has changed then.
        """
        if not isinstance(options, Mapping | None):
            raise InvalidInputError(f"options: expected a dict, got {type(options).__name__}")
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
        streams, episodes = self._streams.copy(), self._episodes.copy()
        if isinstance(seed, Iterable):
            for i, own in checked_seeds(seed, mask).items():
                streams[i], episodes[i] = Stream(own, 0, 1), 0
        elif seed is not None:
            seed = checked_seed(seed)
            streams, episodes = [Stream(seed, i, self.num_envs) for i in range(self.num_envs)], np.zeros_like(episodes)
        chosen = np.flatnonzero(mask).tolist()
        if indices is None:
            drawn = [self._draw(streams[i], int(episodes[i])) for i in chosen]
        else:
            drawn = [int(indices[i]) for i in chosen]
        tasks = [self.load(index) for index in drawn]
        seeds = [
            self.chance_seed(streams[i], int(episodes[i]), index) if self.has_chance else 0
            for i, index in zip(chosen, drawn)
        ]
        self._native.reset(chosen, tasks, seeds)
        if isinstance(seed, int):
            super().reset(seed=seed)
        self._streams = streams
        self._episodes = episodes + mask
        self._started |= mask
        for i, index, task in zip(chosen, drawn, tasks):
            self._goals[i] = task.task
            self._task_ids[i] = self.task_id(index)
        return self.answers()

    def step(self, actions: Sequence[str]) -> Answers:
        """Play one action in every env.

        Returns `(observations, rewards, terminations, truncations, info)`.

        Args:
            actions: a list, tuple or array with one action per env; any string at all.

        Raises:
            InvalidInputError: not one `str` per env, or `reset` was never called. No env has moved then.
        """
        return self._answered(self._native.step(checked_actions(actions)))

    def answers(self) -> Reset:
        """Return `(observations, info)` as they stand, e.g. after `restore`."""
        observations, _, _, _, info = self._answered(self._native.answers())
        return observations, info

    def snapshot(self, index: int) -> tuple[Any, ...]:
        """Return env `index` as it stands.

        The handle stays valid whatever the env does afterwards.
        """
        index = self._checked_env(index)
        return self._native.snapshot(index), self._goals[index], self._task_ids[index]

    def restore(self, index: int, snapshot: tuple[Any, ...]) -> None:
        """Put env `index` where `snapshot` is, its task and step count included.

        Raises:
            InvalidInputError: the snapshot is of envs with other options.
        """
        index = self._checked_env(index, started=False)
        try:
            state, goal, task_id = snapshot
            if not isinstance(goal, str) or not isinstance(task_id, str):
                raise TypeError("its goal and task id are no texts")
            self._native.restore(index, state)
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"snapshot: expected what `snapshot` of such envs returned: {error}") from error
        self._goals[index], self._task_ids[index] = goal, task_id
        self._started[index] = True

    def env(self, index: int) -> Any:
        """Return a copy of one env, to look ahead or label data.

        It has its hidden state (`.state()`).
        """
        return self._native.snapshot(self._checked_env(index))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return an attribute of each env, or what its method answers.

        `call("render")` is `render`; an attribute of the vector env, such as `max_steps`, is the same for all; any
        other, such as `state`, is that of what `env` returns.

        Raises:
            InvalidInputError: it is a method of all envs together.
        """
        if name == "render":
            return self.render() or (None,) * self.num_envs
        if hasattr(self, name):
            if callable(shared := getattr(self, name)):
                raise InvalidInputError(
                    f"call: expected what each env has, got {name!r}, which is of all envs together"
                )
            return (shared,) * self.num_envs
        each = [getattr(self.env(i), name) for i in range(self.num_envs)]
        return tuple(one(*args, **kwargs) if callable(one) else one for one in each)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each env, as `call` does."""
        return self.call(name)

    def render(self) -> tuple[str, ...] | None:
        """Return the last text of each env, if `render_mode` is "ansi"."""
        return tuple(self.answers()[0]) if self.render_mode == "ansi" else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the env as a call that makes it anew.

        It then has to be reset. Tasks that are native objects cannot be pickled.
        """
        if self.made_by is None:
            raise TypeError(f"{type(self).__name__} is pickled only if embodied_mem.envs.make or gymnasium made it")
        return self.made_by, (), {"spec": self.spec, "render_mode": self.render_mode}

    def chance_seed(self, stream: Stream, episode: int, task_index: int) -> int:
        """Return what decides the chance in an env's episode."""
        return int(np.random.SeedSequence([stream.seed, stream.env, episode]).generate_state(1, np.uint64)[0])

    def _answered(self, answers: tuple[Any, ...]) -> Answers:
        observations, rewards, terminations, truncations, won, progress, *extra = answers
        info = {"goal": self._goals, "task_id": self._task_ids, "won": won, "progress": progress}
        info.update(zip(self.extra_info, extra))
        arrays = {name: per_env(values) for name, values in info.items()}
        return observations, rewards, terminations, truncations, arrays

    def _checked_env(self, index: int, started: bool = True) -> int:
        index = checked_index("env index", index, self.num_envs)
        if started and not self._started[index]:
            raise InvalidInputError(f"env {index} was never reset; call reset() first")
        return index

    def _draw(self, stream: Stream, episode: int) -> int:
        """Return the task of one episode.

        It is its place in an endless row of shuffles, one shuffle per pass.
        """
        number, place = divmod(episode * stream.num_envs + stream.env, len(self._tasks))
        return int(_shuffled(stream.seed, number, len(self._tasks))[place])


@functools.lru_cache(maxsize=64)
def _shuffled(seed: int, number: int, count: int) -> np.ndarray:
    return np.random.default_rng((seed, number)).permutation(count)


class Stream(NamedTuple):
    """A stream of episodes: a seed, and which of how many envs share it."""

    seed: int
    env: int
    num_envs: int


def per_env(values: Sequence[Any]) -> np.ndarray:
    """Return an array with one entry per env.

    An array stays as it is; a list's entries become objects, lists among them too.
    """
    return values if isinstance(values, np.ndarray) else np.fromiter(values, dtype=object, count=len(values))


def make(world: str, backend: str | None = None, **options: Any) -> NativeVectorEnv:
    """Return the vector env of a world.

    Args:
        world: its name, one of `embodied_mem.registry.names()`.
        backend: None for the world itself; the name of a real simulator, to have that play it.
        **options: arguments of its class; all worlds know `tasks`, `num_envs`, `seed`, `max_steps`.

    Raises:
        InvalidInputError: the world or its backend is unknown, an option is, or the tasks are missing.
    """
    cls = load(world, "env", backend)
    known = inspect.signature(cls).parameters
    for name in options:
        if name not in known:
            raise InvalidInputError(f"{world}: expected options among {', '.join(known)}, got {name!r}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            such = f", such as {cls.default_tasks!r}" if name == "tasks" and hasattr(cls, "default_tasks") else ""
            raise InvalidInputError(f"{world}: expected the option {name}{such}, got none")
    envs: NativeVectorEnv = cls(**options)
    envs.made_by = functools.partial(make, world, backend, **options)
    return envs
