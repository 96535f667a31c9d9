"""EmbodiedBench's EBHabEnv, as a worker runs it.

Runs under the simulator's own Python: `embodied_mem/envs/simulators/worker.py` loads this file by its path, and nothing
of this package is imported.
"""

from __future__ import annotations

import os
from typing import Any

from embodiedbench_program import EmbodiedBench
from simulator_tools import load, need


class EbHabitat(EmbodiedBench):  # type: ignore[misc]
    """EBHabEnv: habitat-sim 0.3.0 and habitat-lab 0.3.0."""

    def __init__(self, eval_set: str, resolution: int, max_steps: int | None) -> None:
        page = "see docs/worlds/eb_habitat.md"
        module = load("embodiedbench.envs.eb_habitat.EBHabEnv", page)
        folder = os.path.dirname(module.__file__)
        need(
            os.path.join(folder, "datasets", f"{eval_set}.pickle"), "EB-Habitat's episode file", f"git lfs pull; {page}"
        )
        assets = "python -m habitat_sim.utils.datasets_download --uids rearrange_task_assets"
        need(os.path.join(folder, "data"), "the YCB and ReplicaCAD data", f"{assets}, and move data there; {page}")
        super().__init__(module.EBHabEnv, eval_set, resolution, max_steps)

    def reset(self, task: int) -> Any:
        core = self.env.env.env.env._env  # habitat.Env; EBHabEnv takes the same way to it
        core.current_episode = core.episodes[task]
        return self.started(task)


PROGRAM = EbHabitat
