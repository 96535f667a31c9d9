"""Envs that are processes of someone else's program: asked side by side, each one's failure kept to itself.

class Simulators(Processes):
    told = ("goal", "crashed")

    def launch(self):
        return Simulator()

    def start(self, simulator, task, seed):
        return Episode(text=simulator.reset(task, seed), goal=task.name)

    def play(self, simulator, episode, action):
        episode.text, episode.won = simulator.step(action)
        return True
"""

from __future__ import annotations

import abc
import concurrent.futures
import dataclasses
import functools
import os
import subprocess
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import InvalidInputError, SimulatorError

CRASHED = "The simulator failed; this episode is lost."
"""First line of an episode whose process died; the last line of the cause follows."""

NO_EPISODE = "There is no episode here: the last reset failed. Reset this env."
"""The text of an env whose reset failed."""


_owned: weakref.WeakKeyDictionary[Any, tuple[weakref.finalize[..., Any], subprocess.Popen[bytes]]]
_owned = weakref.WeakKeyDictionary()


def own(
    owner: Any, process: subprocess.Popen[bytes], stop: Callable[..., None], *arguments: Any
) -> weakref.finalize[..., Any]:
    """Have a process stopped when its owner goes or the program ends.

    Then `stop(process, *arguments)` is called; returns a handle that calls it earlier.

    The process must end when its standard input closes: that is how it ends when the program is killed. A fork of the
    program neither ends it nor keeps it alive.
    """
    stopper = weakref.finalize(owner, stop, process, *arguments)
    _owned[owner] = stopper, process
    return stopper


def _let_go() -> None:
    for stopper, process in _owned.values():
        stopper.detach()
        if process.stdin is not None:
            process.stdin.close()


os.register_at_fork(after_in_child=_let_go)


class Process(Protocol):
    """The process of one env, which can be ended, also twice."""

    def close(self) -> None:
        """End the process."""


@dataclasses.dataclass
class Episode:
    """The episode of one env, beside its process."""

    text: str = ""
    goal: str = ""
    reward: float = 0.0
    won: bool = False
    progress: float = 0.0
    num_steps: int = 0
    ended: bool = False
    """The program says that the task is over."""
    cut: bool = False
    """The program ended the episode for its length."""
    crashed: bool = False
    crash_reason: str = ""
    """Last line of the program."""
    commands: Sequence[str] = dataclasses.field(default_factory=list)

    @property
    def over(self) -> bool:
        """True if nothing can be played any more."""
        return self.ended or self.cut or self.crashed

    def begin_step(self) -> None:
        """Forget what belongs to the last step alone."""
        self.reward = 0.0


class Processes(abc.ABC):
    """The counterpart of the native worlds' C++ (`NativeVectorEnv` calls it): a process and a thread per env.

    Calls wait for every env before they raise. A process that dies while playing marks its episode; the env's next
    reset replaces it. An env whose reset failed has no episode, says so, and refuses steps until it is reset.
    """

    no_episode: Episode = Episode(NO_EPISODE, crashed=True)
    told: tuple[str, ...] = ()
    """Fields of an episode that are answered after progress, one entry per env each."""

    def __init__(self, num_envs: int, max_steps: int, num_threads: int):
        """Launch the processes; if one fails, all are ended again.

        Args:
            num_envs: number of envs, B.
            max_steps: steps after which an episode is truncated; 0 for no limit.
            num_threads: processes that are asked at a time.

        Raises:
            EmbodiedMemError: what `launch` raises.
        """
        self._max_steps = max_steps
        self._process = os.getpid()
        self._closed = False
        self._pool = concurrent.futures.ThreadPoolExecutor(num_threads, thread_name_prefix="simulator")
        self._episodes: list[Any] = [None] * num_envs
        futures = [self._pool.submit(self.launch) for _ in range(num_envs)]
        concurrent.futures.wait(futures)
        self.simulators: list[Any] = [future.result() for future in futures if future.exception() is None]
        try:
            for future in futures:
                future.result()
        except BaseException:
            self.close()
            raise

    @abc.abstractmethod
    def launch(self) -> Process:
        """Return a new process."""

    @abc.abstractmethod
    def start(self, simulator: Any, task: Any, seed: int) -> Episode:
        """Start an episode; SimulatorError if the process is dead or fails."""

    @abc.abstractmethod
    def play(self, simulator: Any, episode: Any, action: str) -> bool:
        """Play one action and return whether it counts as a step.

        What came of it is written to the episode.

        Raises:
            SimulatorError: the process died or failed.
        """

    def snapshot(self, index: int) -> Any:
        """Refuse. Raises InvalidInputError, where no subclass copies an episode."""
        raise InvalidInputError("a real simulator cannot be copied; reset with the same task and play again")

    def restore(self, index: int, snapshot: Any) -> None:
        """Refuse, as `snapshot`."""
        self.snapshot(index)

    def close(self) -> None:
        """End all processes and threads.

        In a forked child, which has neither, it does nothing.
        """
        if os.getpid() != self._process:
            return
        self._closed = True
        for simulator in self.simulators:
            simulator.close()
        self._pool.shutdown()

    def reset(self, indices: Sequence[int], tasks: Sequence[Any], seeds: Sequence[int]) -> None:
        """Start tasks[k] with seeds[k] in env indices[k].

        An env that cannot start has no episode.
        """
        for i in indices:
            self._episodes[i] = None
        self._all(self._start, indices, tasks, seeds)

    def step(self, actions: Sequence[str]) -> tuple[Any, ...]:
        """Play one action per env; returns the same as `answers`."""
        if isinstance(actions, str):
            raise InvalidInputError("actions: expected a sequence of str, one per env, got one str")
        if len(actions) != len(self.simulators):
            raise InvalidInputError(
                f"actions: expected one action for each of {len(self.simulators)} envs, got {len(actions)}"
            )
        for i, action in enumerate(actions):
            if not isinstance(action, str):
                raise InvalidInputError(f"actions[{i}]: expected a str, got {type(action).__name__}")
            if self._episodes[i] is None:
                raise InvalidInputError(f"env {i} was never reset, or its reset failed; call reset() before step()")
        self._all(self._play, range(len(actions)), actions)
        return self.answers()

    def answers(self) -> tuple[Any, ...]:
        """Return (observations, rewards, terminations, truncations, won, progress, extras...)."""
        episodes = [episode or self.no_episode for episode in self._episodes]
        limit = [bool(self._max_steps) and episode.num_steps >= self._max_steps for episode in episodes]
        cut = np.array([episode.cut or episode.crashed for episode in episodes]) | np.array(limit)
        terminated = np.array([episode.ended for episode in episodes])
        column = functools.partial(_column, episodes)
        told = map(column, ("won", "progress", *self.told))
        return column("text"), column("reward"), terminated, cut & ~terminated, *told

    def _all(self, function: Callable[..., None], *columns: Sequence[Any]) -> None:
        """Call side by side, then raise the first error, if any.

        Every call is waited for.

        Raises:
            SimulatorError: in a forked child, or after `close`.
        """
        if self._closed:
            raise SimulatorError("these envs were closed; make envs anew")
        if os.getpid() != self._process:
            raise SimulatorError(
                f"these envs belong to process {self._process} and not to its child {os.getpid()}; make envs here"
            )
        futures = [self._pool.submit(function, *row) for row in zip(*columns)]
        concurrent.futures.wait(futures)
        for future in futures:
            future.result()

    def _start(self, index: int, task: Any, seed: int) -> None:
        try:
            self._episodes[index] = self.start(self.simulators[index], task, seed)
        except SimulatorError:  # it died in the last episode or since; a second failure is told
            self.simulators[index].close()
            self.simulators[index] = self.launch()
            self._episodes[index] = self.start(self.simulators[index], task, seed)

    def _play(self, index: int, action: str) -> None:
        episode = self._episodes[index]
        episode.begin_step()
        if episode.over:
            return
        try:
            played = self.play(self.simulators[index], episode, action.encode("utf-8", "replace").decode())
            episode.num_steps += played
        except SimulatorError as error:
            episode.commands, episode.crashed, episode.crash_reason = [], True, str(error)
            episode.text = f"{CRASHED} {_last_line(episode.crash_reason)}"
            self.simulators[index].close()


def _last_line(text: str) -> str:
    """Return the end of a program's output, where an exception names itself."""
    return text.strip().rpartition("\n")[2]


def _column(episodes: Sequence[Any], field: str) -> Sequence[Any] | np.ndarray:
    """Return one field of all episodes.

    It is an array of its type if that is a number's, else a list.
    """
    values = [getattr(episode, field) for episode in episodes]
    kind = type(getattr(type(episodes[0]), field, None))
    return np.array(values, dtype=kind) if kind in (bool, int, float) else values


class ProcessVectorEnv(NativeVectorEnv):
    """Tasks that other programs play, each env in a process of its own."""

    @property
    def simulators(self) -> list[Any]:
        """The processes as they are now, one per env."""
        return list(self._native.simulators)

    def close_extras(self, **_: Any) -> None:
        """End the processes; `close` calls this once."""
        if hasattr(self, "_native"):
            self._native.close()
