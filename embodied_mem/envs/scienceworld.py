"""ScienceWorld: the original simulator behind the vector API, one Java process per env.

    envs = embodied_mem.envs.make("scienceworld", tasks="test", num_envs=4, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["look around"] * 4)
    envs.close()

A process that dies marks its episode in `info["crashed"]`, and the next reset replaces it.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from embodied_mem.envs.scienceworld_jvm import SPLITS, Simulator, game_names, official_variations
from embodied_mem.envs.scienceworld_subgoals import SubgoalProgress, Subgoals, load_subgoals
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import InvalidInputError, SimulatorError

MAX_STEPS = 100
"""Steps of an episode in the original."""

CRASHED = "The simulator failed; this episode is lost."
"""The text of an episode whose process died."""

NO_EPISODE = "There is no episode here: the last reset failed. Reset this env."
"""The text of an env whose reset failed."""

_TASK_ID = re.compile(r"([a-z0-9-]+)/(\d+)\Z")


@dataclasses.dataclass(frozen=True)
class Task:
    """One variation of one of the 30 tasks."""

    game: str
    variation: int

    @property
    def name(self) -> str:
        """Its id, "boil/12"."""
        return f"{self.game}/{self.variation}"

    @property
    def task(self) -> str:
        """Nothing: only the simulator knows the sentence, once it has loaded the task."""
        return ""


Tasks = str | Sequence[str | Task]


class ScienceWorldVectorEnv(NativeVectorEnv):
    """Tasks of ScienceWorld stepped together, each in its own Java process; autoreset is disabled.

    The first observation is the simulator's first text, a blank line and the task's description; later ones are its
    answers. `info` holds, each with one entry per env: `goal` (the description), `task_id` ("boil/12"), `won` (bool[B],
    a score of 100), `progress` (float64[B]: share of the subgoals met, where a file gives them; else the score as a
    share, 0 where it is negative; 1 when won), `score` (int64[B], the original's, -100 to 100), `crashed` (bool[B]),
    and `admissible_commands` where they were asked for.

    `rewards` is the change of the score, as a share of 100. `terminations` is true when the simulator calls the task
    completed or the score is negative, which is how it says failed; `truncations` after `max_steps` steps, or where the
    process died. An env changes nothing after its end; the reset that follows a death starts a new process.

    A reset that fails (`SimulatorError`) waits for all envs first: those that it did start have their new episodes,
    the others have none, say so (`NO_EPISODE`, crashed, truncated), refuse steps, and can be reset.

    The simulator takes no seed and draws some decoration (the colour of paint in a cup) anew at each start. Close the
    envs when done; the processes end with the program in any case.
    """

    extra_info = ("goal", "score", "crashed", "admissible_commands")
    default_tasks = "test"

    def __init__(
        self,
        tasks: Tasks = "test",
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_STEPS,
        simplifications: str = "",
        subgoals: str | os.PathLike | None = None,
        lists_commands: bool = True,
        num_threads: int | None = None,
    ):
        """Start the processes.

        Args:
            tasks: an official split of all tasks (`train`, `dev`, `test`), of one ("boil/test"), or a list of ids
                ("boil/12") and `Task` objects.
            num_envs: number of tasks played side by side, B; each is a process of a few hundred MB.
            seed: decides, with env and episode number, which task is drawn.
            max_steps: steps after which an episode is truncated; None for no limit.
            simplifications: the original's, separated by commas ("easy", "openDoors", ...).
            subgoals: file of subgoals as `load_subgoals` reads it; every task must be in it.
            lists_commands: whether `admissible_commands` are asked for, which costs more time than the step.
            num_threads: threads that wait for the processes; None takes one per env.

        Raises:
            MissingDependencyError: Java or the package `scienceworld` is not installed.
            InvalidInputError: an argument is out of range, or `noElectricalAction` would make a task impossible.
            GameFileError: the file of subgoals is malformed.
            SimulatorError: a process does not start.
        """
        listed = _task_list(tasks)
        if "noElectricalAction" in simplifications.split(","):
            for task in listed:
                if "power-component" in task.game or "conductivity" in task.game:
                    raise InvalidInputError(
                        f"simplifications: noElectricalAction takes away what {task.name} needs; leave it out, or take "
                        "easy, which keeps it for such tasks"
                    )
        known = load_subgoals(subgoals) if subgoals is not None else {}
        for task in listed if subgoals is not None else ():
            if (task.game, task.variation) not in known:
                raise InvalidInputError(f"subgoals: {task.name} is not in {subgoals}")
        threads = num_envs if num_threads is None and num_envs >= 1 else num_threads
        options = (simplifications, known, lists_commands, listed)
        super().__init__(_Processes, listed, num_envs, seed, max_steps, threads, *options)

    @property
    def simulators(self) -> list[Simulator]:
        """The processes as they are now, one per env."""
        return self._native.simulators

    def gold_path(self, task_index: int) -> list[str]:
        """Return the simulator's own solution of a task, from a process started for it.

        Raises:
            InvalidInputError: no task has this index.
            SimulatorError: the process fails.
        """
        task = self.load(task_index)
        with Simulator(self._native.simplifications) as simulator:
            return simulator.gold_path(task.game, task.variation)

    def snapshot(self, index: int, *_: Any) -> NoReturn:
        """Refuse: the simulator cannot be copied.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError("ScienceWorld's simulator cannot be copied; reset with the same task and play again")

    restore = env = snapshot

    def close_extras(self, **_: Any) -> None:
        """End the processes; `close` calls this once."""
        self._native.close()


@dataclasses.dataclass
class _Episode:
    """What one env knows of its episode beside its process."""

    text: str = ""
    goal: str = ""
    score: int = 0
    reward: float = 0.0
    num_steps: int = 0
    ended: bool = False
    crashed: bool = False
    commands: list[str] = dataclasses.field(default_factory=list)
    subgoals: SubgoalProgress | None = None

    @property
    def progress(self) -> float:
        if self.score >= 100:
            return 1.0
        return max(self.score, 0) / 100 if self.subgoals is None else self.subgoals.share


class _Processes:
    """The part that the native worlds have in C++: one process per env, asked side by side."""

    def __init__(
        self,
        num_envs: int,
        max_steps: int,
        num_threads: int,
        simplifications: str,
        subgoals: Mapping[tuple[str, int], Subgoals],
        lists_commands: bool,
        tasks: Sequence[Task],
    ):
        self.simplifications = simplifications
        self._max_steps = max_steps
        self._subgoals = subgoals
        self._lists_commands = lists_commands
        self._pool = concurrent.futures.ThreadPoolExecutor(num_threads, thread_name_prefix="scienceworld")
        self._episodes: list[_Episode | None] = [None] * num_envs
        self.simulators: list[Simulator] = []
        futures = [self._pool.submit(Simulator, simplifications) for _ in range(num_envs)]
        concurrent.futures.wait(futures)
        self.simulators = [future.result() for future in futures if future.exception() is None]
        try:
            for future in futures:
                future.result()
            for task in tasks:
                self.simulators[0].check_variation(task.game, task.variation)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes and threads."""
        for simulator in self.simulators:
            simulator.close()
        self._pool.shutdown()

    def reset(self, indices: Sequence[int], tasks: Sequence[Task], seeds: Sequence[int]) -> None:
        """Start tasks[k] in env indices[k]; seeds decide nothing here. An env that cannot start has no episode."""
        for i in indices:
            self._episodes[i] = None
        self._all(self._start, indices, tasks)

    def step(self, actions: Sequence[str]) -> tuple:
        """Play one command per env; returns the same as `answers`."""
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

    def _all(self, function: Callable[..., None], *columns: Sequence[Any]) -> None:
        """Call side by side, wait for every call, then raise the first error, if any."""
        futures = [self._pool.submit(function, *row) for row in zip(*columns)]
        concurrent.futures.wait(futures)
        for future in futures:
            future.result()

    def answers(self) -> tuple:
        """Return (observations, rewards, terminations, truncations, won, progress, goal, score, crashed, commands)."""
        none = _Episode(NO_EPISODE, ended=True, crashed=True)
        episodes = [episode or none for episode in self._episodes]
        score = np.array([episode.score for episode in episodes], dtype=np.int64)
        terminated = np.array([episode.ended and not episode.crashed for episode in episodes])
        limit = [bool(self._max_steps) and episode.num_steps >= self._max_steps for episode in episodes]
        crashed = np.array([episode.crashed for episode in episodes])
        return (
            [episode.text for episode in episodes],
            np.array([episode.reward for episode in episodes], dtype=np.float64),
            terminated,
            (np.array(limit) & ~terminated) | crashed,
            score >= 100,
            np.array([episode.progress for episode in episodes], dtype=np.float64),
            [episode.goal for episode in episodes],
            score,
            crashed,
            [list(episode.commands) for episode in episodes],
        )

    def _replace(self, index: int) -> Simulator:
        self.simulators[index].close()
        self.simulators[index] = Simulator(self.simplifications)
        return self.simulators[index]

    def _start(self, index: int, task: Task) -> None:
        simulator = self.simulators[index]
        try:
            self._episodes[index] = self._started(simulator, task)
        except SimulatorError:  # it died in the last episode or since; a second failure is told
            self._episodes[index] = self._started(self._replace(index), task)

    def _started(self, simulator: Simulator, task: Task) -> _Episode:
        simulator.load(task.game, task.variation)
        text = f"{simulator.first_text}\n\n{simulator.goal}"
        episode = _Episode(text, simulator.goal)
        if (task.game, task.variation) in self._subgoals:
            episode.subgoals = SubgoalProgress(self._subgoals[task.game, task.variation].patterns)
            episode.subgoals.see(simulator.first_text)
        if self._lists_commands:
            episode.commands = simulator.admissible_commands()
        return episode

    def _play(self, index: int, command: str) -> None:
        episode, simulator = self._episodes[index], self.simulators[index]
        if episode.ended:
            episode.reward = 0.0
            return
        try:
            text, score, completed = simulator.step(command.encode("utf-8", "replace").decode())
            commands = simulator.admissible_commands() if self._lists_commands else []
        except SimulatorError:
            episode.text, episode.reward, episode.commands = CRASHED, 0.0, []
            episode.ended = episode.crashed = True
            simulator.close()
            return
        episode.reward = (score - episode.score) / 100
        episode.text, episode.score, episode.commands = text, score, commands
        episode.num_steps += 1
        episode.ended = completed or score < 0
        if episode.subgoals is not None:
            episode.subgoals.see(text)


def _task_list(tasks: Tasks) -> list[Task]:
    names = game_names()
    if isinstance(tasks, str):
        game, _, split = tasks.rpartition("/")
        if split not in SPLITS or (game and game not in names):
            raise InvalidInputError(
                f"tasks: expected {', '.join(SPLITS)}, <task>/<one of these> or ids such as boil/12, got {tasks!r}"
            )
        return [Task(*pair) for pair in official_variations(split) if not game or pair[0] == game]
    listed = []
    for i, task in enumerate(tasks):
        if isinstance(task, str) and (match := _TASK_ID.match(task)):
            task = Task(match[1], int(match[2]))
        if not isinstance(task, Task) or task.game not in names:
            raise InvalidInputError(
                f"tasks[{i}]: expected <task>/<variation> with a task of ScienceWorld, got {task!r}"
            )
        listed.append(task)
    return listed
