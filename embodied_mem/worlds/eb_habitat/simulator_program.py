"""EmbodiedBench's EBHabEnv, as a worker runs it.

Runs under the simulator's own Python: `embodied_mem/envs/simulators/worker.py` loads this file by its path, and nothing
of this package is imported.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from embodiedbench_program import EmbodiedBench
from simulator_tools import Check, imported, present, rendering, seed_all, tested

COMMITS = ("b247936", "fc59f55", "f18086e")
"""Commits of EmbodiedBench whose EB-Habitat this was run against."""

MODULE = "embodiedbench.envs.eb_habitat.EBHabEnv"
LAB = "pip install --no-deps habitat-lab==0.3.20231024 (so the index calls 0.3.0; 0.3.3 breaks EmbodiedBench's reset)"
ASSETS = "python -m habitat_sim.utils.datasets_download --uids"


class EbHabitat(EmbodiedBench):  # type: ignore[misc]
    """EBHabEnv on habitat-lab 0.3.0 and habitat-sim."""

    own_folder = True  # importing EmbodiedBench leaves a link `data` in the present one

    def __init__(self, eval_set: str, resolution: int, max_steps: int | None, gpu: int) -> None:
        module: Any = importlib.import_module(MODULE)
        module.habitat.get_config = functools.partial(configured, module.habitat.get_config, gpu)
        env = module.EBHabEnv(eval_set=eval_set, exp_name="embodied_mem", resolution=resolution)
        self.core = env.env.env.env._env  # habitat.Env; EBHabEnv takes the same way to it
        # An episode's id is its place in the file; the list itself is shuffled when the env starts.
        self.places = {int(episode.episode_id): place for place, episode in enumerate(self.core.episodes)}
        goals = [self.core.episodes[self.places[task]].instruction for task in range(len(self.places))]
        super().__init__(env, goals, max_steps)

    @staticmethod
    def checks(eval_set: str, resolution: int, max_steps: int | None, gpu: int) -> Iterator[Check]:
        """Look at what has to be there before habitat-sim starts."""
        page = "see docs/worlds/eb_habitat.md"
        conda = "conda install -c conda-forge -c aihabitat habitat-sim withbullet headless"
        yield imported("habitat_sim", f"{conda}; {page}")
        yield imported("habitat", f"{LAB}; {page}", "0.3.0")
        program = imported(MODULE, page)
        yield program
        if program.problem:
            return
        module: Any = importlib.import_module(MODULE)
        here = os.path.dirname(os.path.abspath(module.__file__))
        yield tested(here, COMMITS)
        episodes = os.path.join(here, "datasets", f"{eval_set}.pickle")
        yield present(episodes, "EB-Habitat's episode file", f"git lfs pull; {page}")
        for path, about, uid in (
            ("data", "the YCB and ReplicaCAD data", "rearrange_task_assets"),
            ("data/replica_cad", "ReplicaCAD", "replica_cad_dataset"),
            ("data/objects/ycb", "YCB", "ycb"),
            *((path, "the robot", "hab_fetch") for path in robots(module)),
        ):
            yield present(os.path.join(here, path), about, f"{ASSETS} {uid}, and move data to {here}; {page}")
        yield rendering(gpu)

    def reset(self, task: int, seed: int) -> Any:
        place = self.places[task]
        seed_all(seed)
        self.core.seed(seed)  # where the robot starts
        self.core.current_episode = self.core.episodes[place]
        return self.started(task, place)


def robots(module: Any) -> list[str]:
    """Return the files of the robots in EmbodiedBench's configuration."""
    if "hydra.core.global_hydra" in sys.modules:  # as EBHabEnv does, since importing it may leave one
        sys.modules["hydra.core.global_hydra"].GlobalHydra.instance().clear()
    agents = module.habitat.get_config(module.HABITAT_CONFIG_PATH).habitat.simulator.agents
    return [agents[name].articulated_agent_urdf for name in agents if agents[name].articulated_agent_urdf]


def configured(get_config: Any, gpu: int, path: str, overrides: Any = None, *rest: Any) -> Any:
    """Return EmbodiedBench's configuration with the device that renders.

    Its program has no argument for it.
    """
    return get_config(path, [*(overrides or []), f"habitat.simulator.habitat_sim_v0.gpu_device_id={gpu}"], *rest)


PROGRAM = EbHabitat
