"""Builds the layers of envs for the stand-in of EBHabEnv: habitat-lab's own where it is, else those of its stand-in."""

import habitat
from embodiedbench.envs.eb_habitat.apartment import ACTIONS, Simulator, Task


def make_gym_from_config(config, dataset, size):
    if hasattr(habitat, "layers"):
        sim = Simulator(config.habitat.simulator)
        return habitat.layers(habitat.Env(config.habitat, dataset, sim, Task(sim, size)))
    import gym
    import numpy as np
    from habitat.core.spaces import ActionSpace, EmptySpace
    from habitat.gym import make_gym_from_config as real

    spaces = {"head_rgb": gym.spaces.Box(0, 255, (size, size, 3), np.uint8)}
    suite = type("Suite", (), {"observation_spaces": gym.spaces.Dict(spaces)})

    @habitat.registry.register_simulator(name="Apartment-v0")
    class RealSimulator(Simulator, habitat.Simulator):
        sensor_suite = suite

    @habitat.registry.register_task(name="Cup-v0")
    class RealTask(Task, habitat.EmbodiedTask):
        sensor_suite, action_space = suite, ActionSpace({name: EmptySpace() for name in ACTIONS})

        def __init__(self, config, sim, dataset=None):
            Task.__init__(self, sim, size)
            self._is_episode_active = True

        is_episode_active = True

    with habitat.read_write(config):
        config.habitat.simulator.type, config.habitat.task.type = "Apartment-v0", "Cup-v0"
        config.habitat.task.reward_measure, config.habitat.task.success_measure = "reward", "success"
        config.habitat.gym.obs_keys = ["head_rgb"]
    return real(config, dataset)
