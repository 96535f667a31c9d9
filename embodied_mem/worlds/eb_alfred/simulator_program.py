"""EmbodiedBench's EBAlfEnv, as a worker runs it.

Runs under the simulator's own Python: `embodied_mem/envs/simulators/worker.py` loads this file by its path, and nothing
of this package is imported.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from embodiedbench_program import EmbodiedBench
from simulator_tools import Check, imported, present, seed_all, tested

COMMITS = ("b247936",)
"""Commits of EmbodiedBench whose EB-ALFRED this was run against, the one to take first."""

MODULE = "embodiedbench.envs.eb_alfred.EBAlfEnv"
FONT = "/usr/share/fonts/truetype/ubuntu/UbuntuMono-B.ttf"
"""Font that ThorConnector loads at its start, for text on images that nobody asks for; later ones do without."""


class EbAlfred(EmbodiedBench):  # type: ignore[misc]
    """EBAlfEnv: AI2-THOR 2.1.0 under an X display."""

    own_folder = True

    def __init__(self, eval_set: str, resolution: int, max_steps: int | None) -> None:
        module: Any = importlib.import_module(MODULE)
        download_once()
        env = module.EBAlfEnv(eval_set=eval_set, exp_name="embodied_mem", resolution=resolution)
        super().__init__(env, [entry["instruction"] for entry in env.dataset], max_steps)

    @staticmethod
    def checks(eval_set: str, resolution: int, max_steps: int | None) -> Iterator[Check]:
        """Look at what has to be there before AI2-THOR starts."""
        page = "see docs/worlds/eb_alfred.md"
        yield imported("ai2thor", f"pip install ai2thor==2.1.0; {page}", "2.1.0")
        program = imported(MODULE, page)
        yield program
        if program.problem:
            return
        module: Any = importlib.import_module(MODULE)
        yield tested(os.path.dirname(os.path.abspath(module.__file__)), COMMITS)
        if not find_moves(module.ThorConnector):
            problem = "EB-ALFRED: find reports success and moves nothing in this version (so in fc59f55 and f18086e)"
            yield Check("find", problem, f"git checkout {COMMITS[0]} in EmbodiedBench's folder", "missing")
        if not hasattr(module.ThorConnector, "_load_debug_font"):
            yield present(FONT, "the font that this version loads", "apt-get install fonts-ubuntu")
        mend = "git clone https://huggingface.co/datasets/EmbodiedBench/EB-ALFRED there"
        yield present(module.ALFRED_DATASET_PATH, "EB-ALFRED's data", f"{mend}; {page}")
        yield present(module.ALFRED_SPLIT_PATH, "EB-ALFRED's list of tasks", page)
        yield display(module.X_DISPLAY)

    def reset(self, task: int, seed: int) -> Any:
        seed_all(seed)
        return self.started(task, task)


def find_moves(connector: Any) -> bool:
    """Decide whether `find` looks for its object.

    One that moves nothing always reports success.
    """

    class Metadata(dict):  # type: ignore[type-arg]
        def __missing__(self, key: str) -> Any:
            raise LookupError(key)

    robot = object.__new__(connector)  # without its simulator
    robot.last_event = type("Event", (), {"metadata": Metadata()})()
    try:
        return not robot.llm_skill_interact("find a Fridge")["success"]
    except Exception:  # it looked for something that only a simulator has
        return True


def display(number: str) -> Check:
    """Connect to an X server.

    One that has died may have left its socket.
    """
    path = f"/tmp/.X11-unix/X{number}"
    mend = f"start it with: python -m embodiedbench.envs.eb_alfred.scripts.startx {number}"
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(path)
    except OSError as error:
        return Check("an X display", f"an X display for AI2-THOR is not there: {path} ({error})", mend)
    return Check("an X display", found=path)


def download_once() -> None:
    """Fetch AI2-THOR's build of Unity, if it is not there.

    One process does so at a time: they unpack it in the same place.
    """
    controller = importlib.import_module("ai2thor.controller").Controller()
    folder = os.path.join(os.path.expanduser("~"), ".ai2thor")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "embodied_mem.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        controller.download_binary()


PROGRAM = EbAlfred
