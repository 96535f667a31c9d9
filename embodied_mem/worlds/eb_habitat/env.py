"""EB-Habitat (EmbodiedBench) without its 3-D simulator: household rearrangement by 70 actions, natively.

    envs = embodied_mem.envs.make("eb_habitat", tasks="base", num_envs=16, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["navigate to the sofa"] * 16)

What is the original's and what is ours is in docs/worlds/eb_habitat.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embodied_mem.envs.checks import checked_count, checked_tasks, checked_text
from embodied_mem.envs.simulators.env import EmbodiedBenchSimulator, SimulatorVectorEnv
from embodied_mem.envs.simulators.process import Program
from embodied_mem.envs.vector_env import NativeVectorEnv, per_env
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.worlds.eb_habitat.data import load_records, load_tasks
from embodied_mem.worlds.eb_habitat.engine import ACTIONS, Task, VectorEnv
from embodied_mem.worlds.eb_habitat.engine import Env as Env

MAX_STEPS = 30
"""Environment steps of an episode in the original, valid or not."""

MAX_INVALID = 10
"""Invalid actions that end an episode in the original."""

Tasks = str | os.PathLike[str] | Sequence[Task]


class EbHabitatVectorEnv(NativeVectorEnv):
    """Rearrangement tasks stepped together; autoreset is disabled, results do not depend on the number of threads.

    The first observation names the places and the task; later ones are the original's feedback, what is in view from
    where the robot stands, and what it holds. An action is its words or its number, blanks around it aside; anything
    else counts as an invalid action and takes no step.

    `info` has, too, `num_invalid` (int64[B]) and `admissible_commands` (the 70 actions, the same at every step: the
    original does not tell which are valid now); `progress` is the share of the recorded subgoals reached so far.
    `terminations` is true once the goal held after a step, or after `max_invalid` invalid actions; an env then changes
    nothing and repeats its last observation until it is reset.
    """

    default_tasks = "base"
    extra_info = ("num_invalid",)
    has_chance = True

    def __init__(
        self,
        tasks: Tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_STEPS,
        *,
        data: str | os.PathLike[str] | None = None,
        reach: str = "group",
        max_invalid: int = MAX_INVALID,
        ends_when_won: bool = True,
        relations: bool = True,
        num_threads: int | None = None,
    ):
        """Read the tasks and make the envs. Other arguments as for `NativeVectorEnv`.

        Args:
            tasks: a subset (`base`, `common_sense`, `long_horizon`, `train_validation`, ...) or an episode file, of
                which tasks that are satisfied at the start are left out; or `Task` objects, which are all played.
            seed: decides where placed objects land, too.
            data: folder with the episode files; None takes `$EMBODIED_MEM_DATA/eb_habitat`.
            reach: `group`: what the place navigated to serves is near, nothing else is; `geometry`: the original's
                distances and angles, from an estimated standing point.
            max_invalid: invalid actions that end an episode.
            ends_when_won: whether an episode ends when the goal holds, as in the original; if not, the agent has to
                stop by itself, and `won` is whether the goal holds now.
            relations: whether the first text tells how places stand to each other, as an image would show.

        Raises:
            DataNotFoundError: the data is not installed.
            GameFileError: a data file is malformed.
            InvalidInputError: any other argument is out of range.
        """
        options = (
            checked_text("reach", reach),
            checked_count("max_invalid", max_invalid, 2**31 - 1),
            bool(ends_when_won),
            bool(relations),
        )
        loaded = checked_tasks(tasks, lambda name: load_tasks(name, data), Task)
        super().__init__(VectorEnv, loaded, num_envs, seed, max_steps, num_threads, *options)

    def _answered(self, answers: tuple[Any, ...]) -> tuple[Any, ...]:
        *rest, info = super()._answered(answers)
        info["admissible_commands"] = per_env([ACTIONS] * self.num_envs)
        return *rest, info


class EbHabitatSimulator(EmbodiedBenchSimulator):
    """EmbodiedBench's EBHabEnv: habitat-sim."""

    program = Path(__file__).with_name("simulator_program.py")
    own_subset, default_resolution = "spatial_relationship", 600

    def __init__(
        self,
        tasks: str | Sequence[str] = "base",
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_STEPS,
        resolution: int | None = None,
        *,
        gpu: int = 0,
        python: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ):
        """Start the processes.

        Arguments are as for `EmbodiedBenchSimulator`, and `gpu`, the device that renders: -1 for the CPU.
        """
        program = self.program_for(tasks, max_steps, resolution, python=python, folder=folder, gpu=gpu)
        SimulatorVectorEnv.__init__(self, program, tasks, num_envs, seed, max_steps)

    @classmethod
    def program_for(cls, *arguments: Any, gpu: int = 0, **options: Any) -> Program:
        """Return what a process runs."""
        if isinstance(gpu, bool) or not isinstance(gpu, int) or gpu < -1:
            raise InvalidInputError(f"gpu: expected a device's number, or -1 for the CPU, got {gpu!r}")
        return super().program_for(*arguments, gpu=gpu, **options)

    def native_goals(self, name: str) -> Sequence[str]:
        """Return the instructions of the native world's episode file."""
        try:
            return [str(record["instruction"]) for record in load_records(name)]
        except DataNotFoundError:
            return ()
