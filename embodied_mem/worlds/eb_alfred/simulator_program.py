"""EmbodiedBench's EBAlfEnv, as a worker runs it.

Runs under the simulator's own Python: `embodied_mem/envs/simulators/worker.py` loads this file by its path, and nothing
of this package is imported.
"""

from __future__ import annotations

from typing import Any

from embodiedbench_program import EmbodiedBench
from simulator_tools import load, need


class EbAlfred(EmbodiedBench):  # type: ignore[misc]
    """EBAlfEnv: AI2-THOR 2.1.0 under X display 1."""

    def __init__(self, eval_set: str, resolution: int, max_steps: int | None) -> None:
        page = "see docs/worlds/eb_alfred.md"
        module = load("embodiedbench.envs.eb_alfred.EBAlfEnv", page)
        need(module.ALFRED_DATASET_PATH, "EB-ALFRED's data", f"git clone the dataset EmbodiedBench/EB-ALFRED; {page}")
        display = f"/tmp/.X11-unix/X{module.X_DISPLAY}"
        start = f"python -m embodiedbench.envs.eb_alfred.scripts.startx {module.X_DISPLAY}"
        need(display, "an X display for AI2-THOR", f"start it with: {start}")
        super().__init__(module.EBAlfEnv, eval_set, resolution, max_steps)

    def reset(self, task: int) -> Any:
        return self.started(task)


PROGRAM = EbAlfred
