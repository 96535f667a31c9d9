"""EmbodiedBench's real environments behind the vector API: what its two worlds share."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import ClassVar

from embodied_mem.envs.simulators.env import SimulatorVectorEnv, episodes_of
from embodied_mem.envs.simulators.process import Program
from embodied_mem.errors import InvalidInputError

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
        """Start the processes; arguments as for `SimulatorVectorEnv`, and `resolution`, the images' side in pixels."""
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
        """Return what a process runs; `options` are further ones of the world's program."""
        name, subsets = episodes_of(tasks)[0], (*_SUBSETS, cls.own_subset)
        resolution = cls.default_resolution if resolution is None else resolution
        if name not in subsets:
            raise InvalidInputError(f"tasks: expected one of {', '.join(subsets)}, or ids such as base/3, got {name!r}")
        if resolution < cls.least_resolution:
            raise InvalidInputError(f"resolution: expected >= {cls.least_resolution}, got {resolution}")
        known = {"eval_set": name, "resolution": resolution, "max_steps": max_steps}
        return Program(cls.program, known | options, python, folder)
