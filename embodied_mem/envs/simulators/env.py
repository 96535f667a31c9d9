"""Real simulators behind the vector API, with images.

    envs = embodied_mem.envs.make("eb_alfred", backend="embodiedbench", tasks="base", python=..., folder=...)
    observations, info = envs.reset()
    info["images"][0]                                   # uint8[height, width, 3]
    observations, rewards, terminations, truncations, info = envs.step(["find a Apple"])
    envs.close()

The pages docs/worlds/*.md say what each needs. Programs are imported in their own processes only.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from embodied_mem.envs.checks import MAX_STEPS, MAX_THREADS, checked_count
from embodied_mem.envs.process_env import NO_EPISODE, Episode, Processes, ProcessVectorEnv
from embodied_mem.envs.simulators.process import Program, SimulatorProcess
from embodied_mem.envs.vector_env import Stream
from embodied_mem.errors import GameFileError, InvalidInputError, SimulatorError


@dataclasses.dataclass(frozen=True)
class Task:
    """One episode of a program's episode set: its name, its place in the file, and its instruction."""

    name: str
    index: int
    task: str


class SimulatorVectorEnv(ProcessVectorEnv):
    """Episodes of one program stepped together, each env in its own process; autoreset is disabled.

    `info` holds, each with one entry per env: `goal`, `task_id` ("base/3"), `won`, `progress`, `images` (uint8[height,
    width, 3] or None: what the robot's camera sees), `admissible_commands` (the program's list, empty where it has
    none), `action_valid` (bool[B]), `num_invalid` (int64[B]), `program_reward` (float64[B], the program's own, of this
    step), `cut_by_program` (bool[B], the program ended the episode for its length before `max_steps`), `crashed`
    (bool[B]) and `crash_reason` (what the process said last, else ""). `rewards` is 1.0 at the step that wins. An env
    changes nothing after its end. Where a process dies its episode is marked and truncated, and the env's next reset
    starts another. An env's seed and the task decide what a program draws, so that a task begins as it did before.
    """

    extra_info = (
        "goal", "images", "admissible_commands", "action_valid", "num_invalid", "program_reward", "cut_by_program",
        "crashed", "crash_reason",
    )  # fmt: skip
    has_chance = True

    def __init__(self, program: Program, tasks: str | Sequence[str], num_envs: int, seed: int, max_steps: int | None):
        """Start the processes.

        Args:
            program: what each process runs.
            tasks: name of an episode set, or ids of episodes of one set, "base/3".
            num_envs: number of episodes played side by side, B; each is a process with a simulator in it.
            seed: decides, with env and episode number, which episode is drawn; with the task, what is drawn in it.
            max_steps: steps after which an episode is truncated; None for no limit.

        Raises:
            MissingDependencyError: the program, or something that it needs, is not installed.
            DataNotFoundError: its data, or a display, is not there.
            GameFileError: its episodes are not those of the native world.
            InvalidInputError: an argument is out of range.
            SimulatorError: a process does not start.
        """
        num_envs = checked_count("num_envs", num_envs, MAX_THREADS)  # each has a thread of its own
        if max_steps is not None:
            max_steps = checked_count("max_steps", max_steps, MAX_STEPS)
        name, numbers = episodes_of(tasks)
        simulators = _Simulators(num_envs, max_steps or 0, program)
        try:
            goals = simulators.simulators[0].goals
            for index in numbers if numbers is not None else ():
                if index >= len(goals):
                    raise InvalidInputError(f"tasks: expected {name}/0 to {name}/{len(goals) - 1}, got {name}/{index}")
            chosen = range(len(goals)) if numbers is None else numbers
            listed = [Task(f"{name}/{i}", i, goals[i]) for i in chosen]
            _compare(listed, self.native_goals(name))
            super().__init__(lambda *_: simulators, listed, num_envs, seed, max_steps, num_envs)
        except BaseException:
            simulators.close()
            raise

    def native_goals(self, name: str) -> Sequence[str]:
        """Return an episode set's instructions in the native world's data.

        There are none where it is not installed.
        """
        return ()

    def chance_seed(self, stream: Stream, episode: int, task_index: int) -> int:
        """Reset like a native world.

        A task begins in the same way in every episode.
        """
        entropy = [stream.seed, self._tasks[task_index].index]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0]) >> 1  # simulators take 31 bits


def _compare(tasks: Sequence[Task], native: Sequence[str]) -> None:
    """Raise GameFileError if instructions differ from the native world's.

    The instructions are those of a program's tasks.
    """
    for task in tasks if native else ():
        expected = native[task.index] if task.index < len(native) else None
        if expected != task.task:
            raise GameFileError(
                f"{task.name}: the program's file says {task.task!r}, the native world's data says {expected!r}: their "
                "versions differ; take the same one, or point EMBODIED_MEM_DATA elsewhere"
            )


@dataclasses.dataclass
class _Episode(Episode):
    image: np.ndarray | None = None
    valid: bool = True
    num_invalid: int = 0
    program_reward: float = 0.0
    cut_by_program: bool = False

    def begin_step(self) -> None:
        super().begin_step()
        self.program_reward = 0.0


class _Simulators(Processes):
    no_episode = _Episode(NO_EPISODE, crashed=True)
    told = (
        "goal", "image", "commands", "valid", "num_invalid", "program_reward", "cut_by_program", "crashed",
        "crash_reason",
    )  # fmt: skip

    def __init__(self, num_envs: int, max_steps: int, program: Program):
        self._program = program
        super().__init__(num_envs, max_steps, num_envs)

    def launch(self) -> SimulatorProcess:
        simulator = SimulatorProcess(self._program)
        simulator.open()
        return simulator

    def start(self, simulator: SimulatorProcess, task: Task, seed: int) -> _Episode:
        answer = simulator.ask(do="reset", task=task.index, seed=seed)
        commands = tuple(answer.get("commands", ()))
        return _Episode(answer["text"], answer["goal"], commands=commands, image=answer.get("image"))

    def play(self, simulator: SimulatorProcess, episode: _Episode, action: str) -> bool:
        answer = simulator.ask(do="step", action=action)
        for name in ("reward", "progress"):
            if not math.isfinite(number := answer.get(name, 0.0)):
                raise SimulatorError(f"{name}: expected a finite number of the program, got {number}")
        is_step = bool(answer.get("is_step", True))
        episode.text, episode.progress = answer["text"], answer["progress"]
        episode.won, episode.ended = answer.get("won", False), answer["ended"]
        episode.reward, episode.program_reward = float(episode.won), answer.get("reward", 0.0)
        episode.cut, episode.valid = answer.get("cut", False), answer["valid"]
        limit = bool(self._max_steps) and episode.num_steps + is_step >= self._max_steps
        episode.cut_by_program = episode.cut and not limit
        episode.num_invalid = answer.get("num_invalid", episode.num_invalid + (not episode.valid))
        episode.image = answer.get("image", episode.image)  # an action that moved nothing leaves the last one
        return is_step


def episodes_of(tasks: str | Sequence[str]) -> tuple[str, list[int] | None]:
    """Return the set's name and the numbers of its episodes.

    The numbers are None for all.
    """
    if isinstance(tasks, str):
        return tasks, None
    if not tasks:
        raise InvalidInputError("tasks: expected at least one, got none")
    names, numbers = set(), []
    for i, task in enumerate(tasks):
        name, slash, number = task.rpartition("/") if isinstance(task, str) else ("", "", "")
        if not slash or not (number.isascii() and number.isdigit()):
            raise InvalidInputError(f"tasks[{i}]: expected <set>/<number>, got {task!r}")
        names.add(name)
        numbers.append(int(number))
    if len(names) > 1:
        raise InvalidInputError(f"tasks: expected episodes of one set, got {', '.join(sorted(names))}")
    return names.pop(), numbers


_SUBSETS = ("base", "common_sense", "complex_instruction", "visual_appearance", "long_horizon")


class EmbodiedBenchSimulator(SimulatorVectorEnv):
    """One of EmbodiedBench's environments: actions by text or number as in the native world of its name."""

    default_tasks = "base"
    program: ClassVar[pathlib.Path]
    own_subset: ClassVar[str]
    default_resolution: ClassVar[int]
    least_resolution: ClassVar[int] = 1

    def __init__(
        self,
        tasks: str | Sequence[str] = "base",
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = 30,
        resolution: int | None = None,
        *,
        python: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ):
        """Start the processes.

        Arguments are as for `SimulatorVectorEnv`, and `resolution`, the images' side in pixels.
        """
        program = self.program_for(tasks, max_steps, resolution, python=python, folder=folder)
        super().__init__(program, tasks, num_envs, seed, max_steps)

    @classmethod
    def program_for(
        cls,
        tasks: str | Sequence[str] = "base",
        max_steps: int | None = 30,
        resolution: int | None = None,
        *,
        python: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        **options: int,
    ) -> Program:
        """Return the program for a process to run.

        `options` are further ones of the world's program.
        """
        name, subsets = episodes_of(tasks)[0], (*_SUBSETS, cls.own_subset)
        resolution = cls.default_resolution if resolution is None else resolution
        if name not in subsets:
            raise InvalidInputError(f"tasks: expected one of {', '.join(subsets)}, or ids such as base/3, got {name!r}")
        if resolution < cls.least_resolution:
            raise InvalidInputError(f"resolution: expected >= {cls.least_resolution}, got {resolution}")
        known = {"eval_set": name, "resolution": resolution, "max_steps": max_steps}
        return Program(cls.program, known | options, python, folder)
