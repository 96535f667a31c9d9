"""PARTNR's simulator, as a worker runs it.

Runs under the simulator's own Python: `embodied_mem/envs/simulators/worker.py` loads this file by its path, and nothing
of this package is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator_tools import load, need, rgb


class Partnr:
    """PARTNR: habitat_llm on habitat-lab and habitat-sim 0.3.3; one robot acts, by the names of its tools.

    Source: facebookresearch/partnr-planner, `habitat_llm/examples/skill_runner.py` (set-up) and `example_utils.py`
    (`execute_skill`). No language model is loaded, so tools that ask one are refused.
    """

    MAX_SIM_STEPS = 1500
    """Simulator steps of one action in `execute_skill`."""

    def __init__(self, *, data_path: str, config: str, overrides: Sequence[str], camera: str, seed: int) -> None:
        page = "see docs/worlds/memento.md"
        core = load("habitat_llm.utils.core", page)
        program = load("habitat_llm.agent.env", page)
        omegaconf = load("omegaconf", page)
        self.describe = load("habitat_llm.llm.instruct.utils", page).get_world_descr
        planner = load("habitat_llm.planner.planner", page).Planner
        init_agents = load("habitat_llm.utils.sim", page).init_agents
        for path, what in (
            (data_path, "the episode file"),
            ("data/hssd-hab", "HSSD"),
            ("data/objects_ovmm", "objects"),
        ):
            need(path, what, f"run in PARTNR's checkout, with its data; {page}")
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
        dataset = program.CollaborationDatasetV0(settings.habitat.dataset)
        self.episodes = list(dataset.episodes)
        self.num_tasks = len(self.episodes)
        self.interface = program.EnvironmentInterface(settings, dataset=dataset, init_wg=False)
        self.planner = planner({}, self.interface)
        self.planner.agents = init_agents(settings.evaluation.agents, self.interface)
        self.robot = int(settings.robot_agent_uid)
        self.camera = camera

    def reset(self, task: int) -> dict[str, Any]:
        core = self.interface.env.env.env._env  # habitat.Env; PARTNR takes the same way to it
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


PROGRAM = Partnr
