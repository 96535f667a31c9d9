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
from collections.abc import Sequence

import numpy as np

from embodied_mem.envs.checks import MAX_STEPS, MAX_THREADS, checked_count
from embodied_mem.envs.process_env import NO_EPISODE, Episode, Processes, ProcessVectorEnv
from embodied_mem.envs.simulators.process import Program, SimulatorProcess
from embodied_mem.errors import InvalidInputError


@dataclasses.dataclass(frozen=True)
class Task:
    """One episode of a program's episode set."""

    name: str
    index: int

    @property
    def task(self) -> str:
        """Nothing: only the program knows the sentence, once it has started the episode."""
        return ""


class SimulatorVectorEnv(ProcessVectorEnv):
    """Episodes of one program stepped together, each env in its own process; autoreset is disabled.

    `info` holds, each with one entry per env: `goal`, `task_id` ("base/3"), `won`, `progress`, `images` (uint8[height,
    width, 3] or None: what the robot's camera sees), `admissible_commands` (the program's list, empty where it has
    none), `action_valid` (bool[B]), `num_invalid` (int64[B]), `program_reward` (float64[B], the program's own) and
    `crashed` (bool[B]). `rewards` is 1.0 at the step that wins. An env changes nothing after its end. Where a process
    dies its episode is marked and truncated, and the env's next reset starts another.
    """

    extra_info = (
        "goal", "images", "admissible_commands", "action_valid", "num_invalid", "program_reward", "crashed",
    )  # fmt: skip

    def __init__(self, program: Program, tasks: str | Sequence[str], num_envs: int, seed: int, max_steps: int | None):
        """Start the processes.

        Args:
            program: what each process runs.
            tasks: name of an episode set, or ids of episodes of one set, "base/3".
            num_envs: number of episodes played side by side, B; each is a process with a simulator in it.
            seed: decides, with env and episode number, which episode is drawn.
            max_steps: steps after which an episode is truncated; None for no limit.

        Raises:
            MissingDependencyError: the program, or something that it needs, is not installed.
            DataNotFoundError: its data, or a display, is not there.
            InvalidInputError: an argument is out of range.
            SimulatorError: a process does not start.
        """
        num_envs = checked_count("num_envs", num_envs, MAX_THREADS)  # each has a thread of its own
        if max_steps is not None:
            max_steps = checked_count("max_steps", max_steps, MAX_STEPS)
        name, numbers = episodes_of(tasks)
        simulators = _Simulators(num_envs, max_steps or 0, program)
        try:
            number = simulators.simulators[0].num_tasks
            for index in numbers if numbers is not None else ():
                if index >= number:
                    raise InvalidInputError(f"tasks: expected {name}/0 to {name}/{number - 1}, got {name}/{index}")
            listed = [Task(f"{name}/{i}", i) for i in (range(number) if numbers is None else numbers)]
            super().__init__(lambda *_: simulators, listed, num_envs, seed, max_steps, num_envs)
        except BaseException:
            simulators.close()
            raise


@dataclasses.dataclass
class _Episode(Episode):
    image: np.ndarray | None = None
    valid: bool = True
    num_invalid: int = 0
    program_reward: float = 0.0


class _Simulators(Processes):
    no_episode = _Episode(NO_EPISODE, crashed=True)
    told = ("goal", "image", "commands", "valid", "num_invalid", "program_reward", "crashed")

    def __init__(self, num_envs: int, max_steps: int, program: Program):
        self._program = program
        super().__init__(num_envs, max_steps, num_envs)

    def launch(self) -> SimulatorProcess:
        return SimulatorProcess(self._program)

    def start(self, simulator: SimulatorProcess, task: Task) -> _Episode:
        answer = simulator.ask(do="reset", task=task.index)
        commands = tuple(answer.get("commands", ()))
        return _Episode(answer["text"], answer["goal"], commands=commands, image=answer.get("image"))

    def play(self, simulator: SimulatorProcess, episode: _Episode, action: str) -> bool:
        answer = simulator.ask(do="step", action=action)
        episode.text, episode.progress = answer["text"], answer["progress"]
        episode.won, episode.ended = answer.get("won", False), answer["ended"]
        episode.reward, episode.program_reward = float(episode.won), answer.get("reward", 0.0)
        episode.cut, episode.valid = answer.get("cut", False), answer["valid"]
        episode.num_invalid = answer.get("num_invalid", episode.num_invalid + (not episode.valid))
        episode.image = answer.get("image", episode.image)  # an action that moved nothing leaves the last one
        return bool(answer.get("is_step", True))


def episodes_of(tasks: str | Sequence[str]) -> tuple[str, list[int] | None]:
    """Return the set's name and the numbers of its episodes, None for all."""
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
