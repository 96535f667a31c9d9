"""The real simulators behind the vector API: EmbodiedBench's EB-ALFRED and EB-Habitat, PARTNR; with images.

    envs = embodied_mem.envs.make("eb_alfred", backend="embodiedbench", tasks="base", python=..., folder=...)
    observations, info = envs.reset()
    info["images"][0]                                   # uint8[height, width, 3]
    observations, rewards, terminations, truncations, info = envs.step(["find a Apple"])
    envs.close()

The pages docs/simulator_*.md say what each needs. Programs are imported in their own processes only.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from embodied_mem.envs.processes import NO_EPISODE, Episode, Processes
from embodied_mem.envs.simulator_process import SimulatorProcess
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import InvalidInputError

_SUBSETS = ("base", "common_sense", "complex_instruction", "visual_appearance", "long_horizon")


@dataclasses.dataclass(frozen=True)
class Task:
    """One episode of a program's episode set."""

    name: str
    index: int

    @property
    def task(self) -> str:
        """Nothing: only the program knows the sentence, once it has started the episode."""
        return ""


class SimulatorVectorEnv(NativeVectorEnv):
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

    def __init__(
        self,
        program: str,
        tasks: str | Sequence[str],
        options: dict[str, Any],
        num_envs: int,
        seed: int,
        max_steps: int | None,
        python: str | None,
        folder: str | os.PathLike | None,
    ):
        """Start the processes.

        Args:
            program: what `SimulatorProcess` runs.
            tasks: name of an episode set, or ids of episodes of one set, "base/3".
            options: what the program takes beside the set.
            num_envs: number of episodes played side by side, B; each is a process with a simulator in it.
            seed: decides, with env and episode number, which episode is drawn.
            max_steps: steps after which an episode is truncated; None for no limit.
            python: the interpreter of the program's own environment; None takes this one.
            folder: the program's checkout, where it runs; None takes the present folder.

        Raises:
            MissingDependencyError: the program, or something that it needs, is not installed.
            DataNotFoundError: its data, or a display, is not there.
            InvalidInputError: an argument is out of range.
            SimulatorError: a process does not start.
        """
        if num_envs < 1:
            raise InvalidInputError(f"num_envs: expected >= 1, got {num_envs}")
        if max_steps is not None and max_steps < 1:
            raise InvalidInputError(f"max_steps: expected >= 1 or None, got {max_steps}")
        name, numbers = _episodes(tasks)
        simulators = _Simulators(num_envs, max_steps or 0, program, options, python, folder)
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

    @property
    def simulators(self) -> list[SimulatorProcess]:
        """The processes as they are now, one per env."""
        return self._native.simulators

    def snapshot(self, index: int, *_: Any) -> NoReturn:
        """Refuse: a simulator cannot be copied.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError("a real simulator cannot be copied; reset with the same task and play again")

    restore = env = snapshot

    def close_extras(self, **_: Any) -> None:
        """End the processes; `close` calls this once."""
        if hasattr(self, "_native"):
            self._native.close()


class EmbodiedBenchSimulator(SimulatorVectorEnv):
    """One of EmbodiedBench's environments: actions by text or number as in the native world of its name."""

    default_tasks = "base"
    program: ClassVar[str]
    own_subset: ClassVar[str]
    default_resolution: ClassVar[int]

    def __init__(
        self,
        tasks: str | Sequence[str] = "base",
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = 30,
        resolution: int | None = None,
        python: str | None = None,
        folder: str | os.PathLike | None = None,
    ):
        """Start the processes; arguments as for `SimulatorVectorEnv`, and `resolution`, the images' side in pixels."""
        name, subsets = _episodes(tasks)[0], (*_SUBSETS, self.own_subset)
        resolution = self.default_resolution if resolution is None else resolution
        if name not in subsets:
            raise InvalidInputError(f"tasks: expected one of {', '.join(subsets)}, or ids such as base/3, got {name!r}")
        if resolution < 1:
            raise InvalidInputError(f"resolution: expected >= 1, got {resolution}")
        options = {"eval_set": name, "resolution": resolution, "max_steps": max_steps}
        super().__init__(self.program, tasks, options, num_envs, seed, max_steps, python, folder)


class EbAlfredSimulator(EmbodiedBenchSimulator):
    """EmbodiedBench's EBAlfEnv: AI2-THOR."""

    program, own_subset, default_resolution = "eb_alfred", "spatial", 500


class EbHabitatSimulator(EmbodiedBenchSimulator):
    """EmbodiedBench's EBHabEnv: habitat-sim."""

    program, own_subset, default_resolution = "eb_habitat", "spatial_relationship", 600


class PartnrSimulator(SimulatorVectorEnv):
    """PARTNR on habitat-lab and habitat-sim: actions `Name[arguments]` as in the native `memento`; agent 0 acts."""

    default_tasks = "data/datasets/partnr_episodes/v0_0/val_mini.json.gz"
    action_forms = ("Navigate[<name>]", "Pick[<object>]", "Place[<object>, on, <furniture>, none, none]", "Done[]")

    def __init__(
        self,
        tasks: str | Sequence[str] = default_tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = 40,
        config: str = "examples/skill_runner_default_config.yaml",
        overrides: Sequence[str] = (),
        camera: str = "head_rgb",
        python: str | None = None,
        folder: str | os.PathLike | None = None,
    ):
        """Start the processes.

        Args:
            tasks: an episode file, seen from `folder`, or ids of episodes in one file, "<file>/3".
            num_envs, seed, max_steps, python, folder: as for `SimulatorVectorEnv`.
            config: a file of PARTNR's `habitat_llm/conf`; it must keep its visual sensors if images are wanted.
            overrides: Hydra's, such as "world_model.partial_obs=True".
            camera: end of the sensor's name whose image is passed on.
        """
        options = {
            "data_path": _episodes(tasks)[0],
            "config": config,
            "overrides": list(overrides),
            "camera": camera,
            "seed": seed,
        }
        super().__init__("partnr", tasks, options, num_envs, seed, max_steps, python, folder)


@dataclasses.dataclass
class _Episode(Episode):
    image: np.ndarray | None = None
    valid: bool = True
    num_invalid: int = 0
    program_reward: float = 0.0


class _Simulators(Processes):
    no_episode = _Episode(NO_EPISODE, crashed=True)

    def __init__(self, num_envs: int, max_steps: int, *program: Any):
        self._program = program
        super().__init__(num_envs, max_steps, num_envs)

    def launch(self) -> SimulatorProcess:
        return SimulatorProcess(*self._program)

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
        return answer.get("is_step", True)

    def extras(self, episodes: Sequence[_Episode]) -> tuple:
        return (
            [episode.goal for episode in episodes],
            [episode.image for episode in episodes],
            [episode.commands for episode in episodes],
            np.array([episode.valid for episode in episodes]),
            np.array([episode.num_invalid for episode in episodes], dtype=np.int64),
            np.array([episode.program_reward for episode in episodes], dtype=np.float64),
            np.array([episode.crashed for episode in episodes]),
        )


def _episodes(tasks: str | Sequence[str]) -> tuple[str, list[int] | None]:
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
