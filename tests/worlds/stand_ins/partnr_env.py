"""Stand-in for habitat_llm.agent.env of facebookresearch/partnr-planner, with habitat's layers of envs."""

from types import SimpleNamespace

import habitat
import numpy as np
from habitat_llm.agent.env.dataset import CollaborationDatasetV0 as CollaborationDatasetV0


class Tensor:
    """An image as torch holds it: a batch of one, on some device."""

    def __init__(self, array):
        self._array = array[None]

    def cpu(self):
        return self

    def numpy(self):
        return self._array


class Simulator:
    """A simulator that places its robot where numpy says, and a task that knows nothing."""

    def reconfigure(self, config, episode=None):
        self.start = int(np.random.randint(1, 256))  # noqa: NPY002

    def reset(self, episode):
        return {}


class EnvironmentInterface:
    def __init__(self, conf, dataset=None, init_wg=True, init_env=True, gym_habitat_env=None):
        assert conf.calls[1:] == ["fix", "setup", "sensors", "actions", "measures"]
        core = habitat.Env(conf.habitat, dataset, Simulator(), Simulator())
        self.env = SimpleNamespace(
            env=SimpleNamespace(env=SimpleNamespace(_env=core)), reset=core.reset, close=lambda: None
        )
        self.env.reset()  # as there, so that the set's first episode is never the next one

    def get_observations(self):
        return self.batch

    def parse_observations(self, obs):
        return {key: Tensor(value) for key, value in obs.items()}

    def reset_environment(self):
        self.env.reset()
        self.steps = 0
        self.world_graph = {0: f"table of {self.env.env.env._env.current_episode.instruction}"}
        self.batch = self.parse_observations(self._observations())

    def _observations(self):
        image = np.zeros((4, 6, 4), np.uint8)
        image[:, :, 0] = self.steps
        image[0, 0, 1] = self.env.env.env._env._sim.start
        return {"agent_0_head_rgb": image, "agent_1_head_rgb": image + 9, "agent_0_head_depth": np.zeros((4, 6, 1))}

    def step(self, low_level_actions):
        self.steps += 1
        info = {"task_percent_complete": min(1.0, self.steps / 4), "task_state_success": float(self.steps >= 4)}
        return self._observations(), 0.0, self.steps >= 6, info


def register_sensors(conf):
    conf.calls.append("sensors")


def register_actions(conf):
    conf.calls.append("actions")


def register_measures(conf):
    conf.calls.append("measures")
