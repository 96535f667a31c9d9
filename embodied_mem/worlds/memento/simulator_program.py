"""PARTNR's simulator, as a worker runs it.

Runs under the simulator's own Python: `embodied_mem/envs/simulators/worker.py` loads this file by its path, and nothing
of this package is imported.
"""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from simulator_tools import Check, Refused, imported, present, rendering, rgb, seed_all

MODULES = (
    "habitat_llm.utils.core", "habitat_llm.agent.env", "omegaconf", "habitat_llm.llm.instruct.utils",
    "habitat_llm.planner.planner", "habitat_llm.utils.sim",
)  # fmt: skip
MEMENTO_FIELDS = ("original_data_info", "metadata")
"""Fields of MEMENTO's episodes that PARTNR's episode class does not know."""

ASSETS = (
    "python -m habitat_sim.utils.datasets_download --uids rearrange_task_assets hab_spot_arm hab3-episodes "
    "habitat_humanoids --data-path data/"
)
HSSD = "git clone -b partnr https://huggingface.co/datasets/hssd/hssd-hab data/hssd-hab, and git lfs pull in it"
OVMM = "git clone https://huggingface.co/datasets/ai-habitat/OVMM_objects data/objects_ovmm --recursive"


class Partnr:
    """PARTNR: habitat_llm on habitat-lab and habitat-sim 0.3.3; one robot acts, by the names of its tools.

    Source: facebookresearch/partnr-planner, `habitat_llm/examples/skill_runner.py` (set-up) and `example_utils.py`
    (`execute_skill`). No language model is loaded, so tools that ask one are refused.
    """

    MAX_SIM_STEPS = 1500
    """Simulator steps of one action in `execute_skill`."""

    own_folder = False

    def __init__(self, *, data_path: str, config: str, overrides: Sequence[str], camera: str, seed: int) -> None:
        core, program, omegaconf, describe, planner, simulation = map(importlib.import_module, MODULES)
        settings = core.get_config(config, [f"habitat.dataset.data_path={data_path}", *overrides])
        core.fix_config(settings)
        with omegaconf.open_dict(settings):
            plain = omegaconf.OmegaConf.to_container(settings.habitat, resolve=True)
            habitat = omegaconf.OmegaConf.create(plain)
            habitat.dataset.metadata = {"metadata_folder": "data/hssd-hab/metadata"}
            settings.habitat = habitat
        settings = core.setup_config(settings, seed)
        program.register_sensors(settings)
        program.register_actions(settings)
        program.register_measures(settings)
        self.describe = describe.get_world_descr
        try:
            dataset = readable(program.CollaborationDatasetV0)(settings.habitat.dataset)
        except TypeError as error:
            raise Refused("data", f"{data_path}: not in the form of PARTNR's episodes: {error}") from error
        self.episodes = list(dataset.episodes)
        self.goals = [episode.instruction for episode in self.episodes]
        self.interface = program.EnvironmentInterface(settings, dataset=dataset, init_wg=False)
        self.planner = planner.Planner({}, self.interface)
        self.planner.agents = simulation.init_agents(settings.evaluation.agents, self.interface)
        self.robot = int(settings.robot_agent_uid)
        self.camera = camera

    @staticmethod
    def checks(*, data_path: str, config: str, overrides: Sequence[str], camera: str, seed: int) -> Iterator[Check]:
        """Look at what has to be there before habitat-sim starts."""
        page = "see docs/worlds/memento.md"
        needed = [imported(name, page) for name in ("habitat", "habitat_sim", *MODULES)]
        yield from needed
        for path, about, mend in (
            (data_path, "the episode file", f"git lfs pull, or name it as seen from PARTNR's checkout; {page}"),
            ("data/hssd-hab", "HSSD", f"{HSSD}; {page}"),
            ("data/objects_ovmm", "objects", f"{OVMM}; {page}"),
        ):
            yield present(path, about, mend)
        if not present(data_path, "", "").problem:
            for path in sorted(places(data_path)):
                yield present(path, f"what its episodes name, {path}", f"{ASSETS}, or {HSSD}; {page}")
        if not any(check.problem for check in needed):
            settings = importlib.import_module(MODULES[0]).get_config(
                config, [f"habitat.dataset.data_path={data_path}", *overrides]
            )
            agents = settings.habitat.simulator.agents
            for path in filter(None, (getattr(agents[name], "articulated_agent_urdf", None) for name in agents)):
                yield present(path, "a robot or a person", f"{ASSETS}; {page}")
        yield rendering(0)

    def reset(self, task: int, seed: int) -> dict[str, Any]:
        core = self.interface.env.env.env._env  # habitat.Env; PARTNR takes the same way to it
        seed_all(seed)
        core.seed(seed)  # where the robots start
        core.current_episode = self.episodes[task]
        self.interface.reset_environment()
        for agent in self.planner.agents:
            agent.reset()
        self.measures: dict[str, Any] = {}
        goal = self.episodes[task].instruction
        house = self.describe(self.interface.world_graph[self.robot], agent_uid=self.robot, include_room_name=True)
        image = self.image(self.interface.get_observations())
        return {"text": f"Task: {goal}\n\n{house}", "goal": goal, "image": image}

    def step(self, action: str) -> dict[str, Any]:
        """Play `Name[arguments]` until the tool answers; `Done[]` ends the episode."""
        name, bracket, arguments = (action.strip().splitlines() or [""])[-1].partition("[")
        agent = self.planner.get_agent_from_uid(self.robot)
        tool = agent.tools.get(name)
        if name == "Done" and bracket:
            return self.answer("Done.", ended=True)
        if not bracket or not arguments.endswith("]"):
            return self.answer(f"Expected Name[arguments], got {action.strip()}", valid=False)
        if tool is None or getattr(tool, "llm", tool) is None:
            usable = sorted(key for key, each in agent.tools.items() if getattr(each, "llm", each) is not None)
            return self.answer(f"{name} cannot be used here. Tools: {', '.join(usable)}", valid=False)
        chosen = {self.robot: (name, arguments[:-1], "")}
        self.planner.last_high_level_actions = chosen
        observations = self.interface.get_observations()
        image = None
        for _ in range(self.MAX_SIM_STEPS):
            low_level, responses = self.planner.process_high_level_actions(chosen, observations)
            done = False
            if low_level:
                raw, _, done, self.measures = self.interface.step(low_level)
                image, observations = raw, self.interface.parse_observations(raw)
                self.interface.batch = observations
            text = responses.get(self.robot, "")
            if text or done or not low_level:
                return self.answer(text, image=image, cut=bool(done))
        return self.answer(f"{name} did not end within {self.MAX_SIM_STEPS} simulator steps.", image=image, valid=False)

    def answer(
        self, text: str, *, image: Any = None, ended: bool = False, cut: bool = False, valid: bool = True
    ) -> dict[str, Any]:
        won = float(self.measures.get("task_state_success", 0)) > 0
        progress = float(self.measures.get("task_percent_complete", 0))
        found = self.image(image) if image is not None else None
        answer = {"text": text, "won": won, "progress": progress, "ended": ended, "cut": cut, "valid": valid}
        return {**answer, "image": found} if found is not None else answer

    def image(self, observations: dict[str, Any]) -> Any:
        """Return what the robot's camera sees, if its sensors were kept."""
        names = [name for name in sorted(observations) if name.endswith(self.camera)]
        mine = [name for name in names if name.startswith(f"agent_{self.robot}_")] or names
        return rgb(observations[mine[0]]) if mine else None

    def close(self) -> None:
        self.interface.env.close()


def readable(dataset: Any) -> Any:
    """Return PARTNR's dataset class that ignores MEMENTO's two further fields."""

    class Episodes(dataset):  # type: ignore[misc]
        def from_json(self, json_str: str, scenes_dir: str | None = None) -> None:
            content = json.loads(json_str)
            for episode in content["episodes"]:
                for field in MEMENTO_FIELDS:
                    episode.pop(field, None)
            super().from_json(json.dumps(content), scenes_dir)

    return Episodes


def places(data_path: str) -> set[str]:
    """Return the files and folders that the episodes of a file name."""
    with (gzip.open if data_path.endswith(".gz") else open)(data_path, "rt", encoding="utf-8") as file:
        episodes = json.load(file)["episodes"]
    named = {episode["scene_dataset_config"] for episode in episodes if "scene_dataset_config" in episode}
    return named.union(*(episode.get("additional_obj_config_paths", ()) for episode in episodes))


PROGRAM = Partnr
