"""ScienceWorld: the original simulator behind the vector API, one Java process per env.

    envs = embodied_mem.envs.make("scienceworld", tasks="train", num_envs=4, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["look around"] * 4)
    envs.close()

A process that dies marks its episode in `info["crashed"]`, and the next reset replaces it.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem.envs.checks import MAX_THREADS, checked_count, checked_path, checked_text, listed_tasks
from embodied_mem.envs.process_env import NO_EPISODE, Episode, Processes, ProcessVectorEnv
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.prompt_files import prompt
from embodied_mem.worlds.scienceworld.beginnings import Beginnings, is_native
from embodied_mem.worlds.scienceworld.engine import Env, VectorEnv
from embodied_mem.worlds.scienceworld.jvm import SOLVES_S, SPLITS, Simulator, game_names, official_variations
from embodied_mem.worlds.scienceworld.subgoals import SubgoalProgress, Subgoals, load_subgoals

MAX_STEPS = 100
"""Steps of an episode in the original."""

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


class ScienceWorldVectorEnv(ProcessVectorEnv):
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

    extra_info = ("goal", "score", "crashed", "crash_reason", "admissible_commands", "native")
    default_tasks = "train"

    def __init__(
        self,
        tasks: Tasks = "train",
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_STEPS,
        *,
        simplifications: str = "",
        subgoals: str | os.PathLike[str] | None = None,
        lists_commands: bool = True,
        num_threads: int | None = None,
    ):
        """Start the processes. Other arguments as for `NativeVectorEnv`.

        Args:
            tasks: an official split of all tasks (`train`, `dev`, `test`), of one ("boil/test"), an id ("boil/12"), or
                a list of ids and `Task` objects.
            num_envs: number of tasks played side by side, B; each is a process of a few hundred MB.
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
        if "noElectricalAction" in checked_text("simplifications", simplifications).split(","):
            for task in listed:
                if "power-component" in task.game or "conductivity" in task.game:
                    raise InvalidInputError(
                        f"simplifications: noElectricalAction takes away what {task.name} needs; leave it out, or take "
                        "easy, which keeps it for such tasks"
                    )
        known = load_subgoals(checked_path("subgoals", subgoals)) if subgoals is not None else {}
        for task in listed if subgoals is not None else ():
            if (task.game, task.variation) not in known:
                raise InvalidInputError(f"subgoals: {task.name} is not in {subgoals}")
        num_envs = checked_count("num_envs", num_envs, MAX_THREADS)
        native: Any
        if not known and all(is_native(task.game, simplifications) for task in listed):
            native = functools.partial(_NativeEnvs, lists_commands=lists_commands)
        else:
            num_threads = num_envs if num_threads is None else num_threads
            native = functools.partial(
                _Simulators,
                simplifications=simplifications, subgoals=known, lists_commands=lists_commands, tasks=listed,
            )  # fmt: skip
        super().__init__(native, listed, num_envs, seed, max_steps, num_threads)

    def subgoals(self, index: int) -> tuple[int, int]:
        """Return (met, total) of one env's subgoals, as `Simulator.subgoals` counts them."""
        return self._native.subgoals(self._checked_env(index))  # type: ignore[no-any-return]

    def gold_path(self, task_index: int) -> list[str]:
        """Return the simulator's own solution of a task.

        A process is started for it. Raises as `load`, and SimulatorError where the process fails.
        """
        task = self.load(task_index)
        with Simulator(self._native.simplifications, SOLVES_S) as simulator:
            return simulator.gold_path(task.game, task.variation)


@dataclasses.dataclass
class _Episode(Episode):
    score: int = 0
    subgoals: SubgoalProgress | None = None
    world: Simulator | _NativeWorld | None = None
    native: bool = False

    def copy(self) -> _Episode:
        """Return a copy of a native one."""
        assert isinstance(self.world, _NativeWorld)
        world = _NativeWorld(self.world.env.copy())
        return dataclasses.replace(self, world=world, subgoals=copy.deepcopy(self.subgoals))


class _NativeWorld:
    """A native task behind the methods of `Simulator`."""

    def __init__(self, env: Env):
        self.env, self.goal = env, env.task.task
        self.first_text = env.observation.removesuffix(f"\n\n{self.goal}")

    def step(self, action: str) -> tuple[str, int, bool]:
        return self.env.step(action), self.env.score, self.env.ended

    def admissible_commands(self) -> list[str]:
        return self.env.admissible_commands


class _NoProcess:
    """The process of an env that needs none."""

    def close(self) -> None:
        """Do nothing."""


_SCORE = 7
"""Its place among the columns that a step answers."""


class _NativeEnvs:
    """Admitted tasks, all played by one native call a step; the counterpart of `_Simulators`."""

    simulators, simplifications = (), ""

    def __init__(self, num_envs: int, max_steps: int, num_threads: int, *, lists_commands: bool):
        self._envs = VectorEnv(num_envs, max_steps, num_threads)
        self._num_envs, self._lists_commands = num_envs, lists_commands
        self._goals, self._score = [""] * num_envs, np.zeros(num_envs, dtype=np.int64)
        self._beginnings = Beginnings()

    def close(self) -> None:
        self._beginnings.close()

    def reset(self, indices: list[int], tasks: Sequence[Task], seeds: list[int]) -> None:
        natives = [self._beginnings.task(task.game, task.variation) for task in tasks]
        self._envs.reset(indices, natives, seeds)
        for index, native in zip(indices, natives):
            self._goals[index], self._score[index] = native.task, 0

    def step(self, actions: Sequence[str]) -> tuple[Any, ...]:
        answers = self._columns(self._envs.step(list(actions)))
        self._score = answers[_SCORE].copy()
        return answers

    def answers(self) -> tuple[Any, ...]:
        return self._columns(self._envs.answers())

    def subgoals(self, index: int) -> tuple[int, int]:
        return self._envs.subgoals(index)

    def snapshot(self, index: int) -> Env:
        return self._envs.snapshot(index)

    def restore(self, index: int, snapshot: Env) -> None:
        self._envs.restore(index, snapshot)
        self._goals[index], self._score[index] = snapshot.task.task, snapshot.score

    def _columns(self, answers: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the columns that `_Simulators` answers."""
        texts, _, terminated, truncated, wins, progress, score = answers
        envs = range(self._num_envs)
        commands = [self._envs.admissible_commands(i) if self._lists_commands else [] for i in envs]
        others = (list(self._goals), score, np.zeros_like(wins), [""] * len(envs), commands, np.ones_like(wins))
        return texts, (score - self._score) / 100, terminated, truncated, wins, progress, *others


class _Simulators(Processes):
    """One Java process per env."""

    no_episode = _Episode(NO_EPISODE, crashed=True)
    told = ("goal", "score", "crashed", "crash_reason", "commands", "native")

    def __init__(
        self,
        num_envs: int,
        max_steps: int,
        num_threads: int,
        *,
        simplifications: str,
        subgoals: Mapping[tuple[str, int], Subgoals],
        lists_commands: bool,
        tasks: Sequence[Task],
    ):
        self.simplifications = simplifications
        self._subgoals = subgoals
        self._lists_commands = lists_commands
        self._beginnings = Beginnings()
        self._all_native = all(is_native(task.game, simplifications) for task in tasks)
        super().__init__(num_envs, max_steps, num_threads)
        try:
            for task in tasks if not self._all_native else ():
                self.simulators[0].check_variation(task.game, task.variation)
        except BaseException:
            self.close()
            raise

    def launch(self) -> Simulator | _NoProcess:
        return _NoProcess() if self._all_native else Simulator(self.simplifications)

    def close(self) -> None:
        super().close()
        self._beginnings.close()

    def start(self, simulator: Simulator | _NoProcess, task: Task, seed: int) -> _Episode:
        native = is_native(task.game, self.simplifications)
        world: Simulator | _NativeWorld
        if native:
            world = _NativeWorld(Env(self._beginnings.task(task.game, task.variation)))
        else:
            assert isinstance(simulator, Simulator)
            simulator.load(task.game, task.variation)
            world = simulator
        episode = _Episode(f"{world.first_text}\n\n{world.goal}", world.goal, world=world, native=native)
        if (task.game, task.variation) in self._subgoals:
            episode.subgoals = SubgoalProgress(self._subgoals[task.game, task.variation].patterns)
        self._see(world, episode, world.first_text)
        return episode

    def play(self, simulator: Any, episode: _Episode, action: str) -> bool:
        world: Any = episode.world
        text, score, completed = world.step(action)
        self._see(world, episode, text)
        episode.reward = (score - episode.score) / 100
        episode.text, episode.score, episode.won = text, score, score >= 100
        episode.ended = completed or score < 0
        if episode.subgoals is None or episode.won:
            episode.progress = min(max(score, 0) / 100, 1.0)
        return True

    def subgoals(self, index: int) -> tuple[int, int]:
        """Return (met, total) of an episode's subgoals."""
        world = self._episodes[index].world
        return world.env.subgoals if isinstance(world, _NativeWorld) else self.simulators[index].subgoals()

    def snapshot(self, index: int) -> _Episode:
        """Return a copy of a native env's episode."""
        episode: _Episode = self._episodes[index]
        return episode.copy() if episode.native else super().snapshot(index)

    def restore(self, index: int, snapshot: _Episode) -> None:
        """Put a copy of a snapshot into an env."""
        if not isinstance(snapshot, _Episode):
            raise TypeError("it is no episode")
        self._episodes[index] = snapshot.copy()

    def _see(self, world: Simulator | _NativeWorld, episode: _Episode, text: str) -> None:
        if self._lists_commands:
            episode.commands = world.admissible_commands()
        if episode.subgoals is not None:
            episode.subgoals.see(text)
            episode.progress = episode.subgoals.share


def _task_list(tasks: Tasks) -> list[Task]:
    names = game_names()
    if isinstance(tasks, str) and _TASK_ID.match(tasks):
        tasks = [tasks]
    if isinstance(tasks, str):
        game, _, split = tasks.rpartition("/")
        if split not in SPLITS or (game and game not in names):
            raise InvalidInputError(
                f"tasks: expected {', '.join(SPLITS)}, <task>/<one of these> or ids such as boil/12, got {tasks!r}"
            )
        return [Task(*pair) for pair in official_variations(split) if not game or pair[0] == game]
    listed = []
    for i, task in enumerate(listed_tasks(tasks)):
        if isinstance(task, str) and (match := _TASK_ID.match(task)):
            task = Task(match[1], int(match[2]))
        if not isinstance(task, Task) or task.game not in names:
            raise InvalidInputError(
                f"tasks[{i}]: expected <task>/<variation> with a task of ScienceWorld, got {task!r}"
            )
        listed.append(task)
    return listed


def executor_instruction(grammar: str = "") -> str:
    """Return the instruction for a published model.

    It is told this before it acts; `grammar` has no meaning here.
    """
    return prompt(__package__, "executor")
