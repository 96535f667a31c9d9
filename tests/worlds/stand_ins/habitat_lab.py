"""Stand-in for the part of habitat-lab 0.3.0 that its callers here take: configuration, episodes, layers of envs.

Follows habitat-lab/habitat/core/env.py and dataset.py, gym/gym_wrapper.py, core/environments.py.
"""

import dataclasses
import os
import random
import sys
import types
from types import SimpleNamespace

import numpy as np

__version__ = os.environ.get("STAND_IN_LAB", "0.3.0")
episode_class = dataclasses.dataclass(kw_only=True)


@episode_class
class RearrangeEpisode:
    episode_id: str
    scene_id: str
    scene_dataset_config: str = ""
    additional_obj_config_paths: list = dataclasses.field(default_factory=list)
    start_position: list = dataclasses.field(default_factory=list)
    start_rotation: list = dataclasses.field(default_factory=list)
    info: dict = dataclasses.field(default_factory=dict)
    ao_states: dict = dataclasses.field(default_factory=dict)
    rigid_objs: list = dataclasses.field(default_factory=list)
    targets: dict = dataclasses.field(default_factory=dict)
    markers: list = dataclasses.field(default_factory=list)
    target_receptacles: list = dataclasses.field(default_factory=list)
    goal_receptacles: list = dataclasses.field(default_factory=list)
    name_to_receptacle: dict = dataclasses.field(default_factory=dict)


class RearrangeDatasetV0:
    def __init__(self, config=None):
        import gzip

        self.config, self.episodes = config, []
        with gzip.open(config.data_path, "rt") as file:
            self.from_json(file.read(), scenes_dir=config.scenes_dir)


class EpisodeIterator:
    def __next__(self):
        return next(self._iterator)


class Env:
    """habitat.Env: takes the iterator's next episode at a reset, unless one was set."""

    def __init__(self, config, dataset, sim, task):
        self._config, self._dataset, self._sim, self._task = config, dataset, sim, task
        self._iterator = dataset.get_episode_iterator(seed=config.seed, shuffle=True)
        self.current_episode = next(self._iterator)
        self.number_of_episodes = len(self.episodes)

    @property
    def episodes(self):
        return self._dataset.episodes

    @property
    def current_episode(self):
        return self._current_episode

    @current_episode.setter
    def current_episode(self, episode):
        self._current_episode = episode
        self._episode_from_iter_on_reset = False
        self._episode_force_changed = True

    @property
    def task(self):
        return self._task

    def seed(self, seed):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002

    def reset(self):
        if self._episode_from_iter_on_reset:
            self._current_episode = next(self._iterator)
        self._episode_from_iter_on_reset, self._episode_force_changed = True, False
        self._elapsed_steps, self.episode_over = 0, False
        self._sim.reconfigure(self._config.simulator, self._current_episode)
        return self._task.reset(episode=self._current_episode)

    def step(self, action):
        assert self.episode_over is False, "Episode over, call reset before calling step"
        assert not self._episode_force_changed, "Episode was changed"
        observations = self._task.step(action=action, episode=self._current_episode)
        self._elapsed_steps += 1
        self.episode_over = self._elapsed_steps >= self._config.environment.max_episode_steps
        return observations


def layers(core):
    """The layers of gym: `env.env.env._env` is the core."""

    def reset(return_info=False, **_):
        observations = core.reset()
        return (observations, core.task.measurements.get_metrics()) if return_info else observations

    def step(action):
        observations = core.step({"action": action})
        info = core.task.measurements.get_metrics()
        return observations, info["reward"], core.episode_over or info["success"], info

    inner = SimpleNamespace(env=SimpleNamespace(_env=core))
    return SimpleNamespace(
        env=inner, reset=reset, step=step, number_of_episodes=core.number_of_episodes, close=lambda: None,
        current_episode=lambda all_info=False: core.current_episode,
    )  # fmt: skip


def get_config(config_path, overrides=None, configs_dir=""):
    assert os.path.isfile(config_path)
    robot = SimpleNamespace(articulated_agent_urdf="data/robots/hab_fetch/robots/hab_suction.urdf")
    simulator = SimpleNamespace(agents={"main_agent": robot}, habitat_sim_v0=SimpleNamespace(gpu_device_id=0))
    for override in overrides or ():
        path, _, value = override.partition("=")
        assert path == "habitat.simulator.habitat_sim_v0.gpu_device_id"
        simulator.habitat_sim_v0.gpu_device_id = int(value)
    return SimpleNamespace(
        habitat=SimpleNamespace(
            simulator=simulator, dataset=SimpleNamespace(data_path="", scenes_dir="data"), seed=100,
            environment=SimpleNamespace(max_episode_steps=30),
        )
    )  # fmt: skip


def _module(name, **content):
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(content)
    return module


dataset = _module("habitat.core.dataset", EpisodeIterator=EpisodeIterator)
_module("habitat.core", dataset=dataset)
rearrange = _module(
    "habitat.datasets.rearrange.rearrange_dataset",
    RearrangeEpisode=RearrangeEpisode,
    RearrangeDatasetV0=RearrangeDatasetV0,
)
_module("habitat.datasets.rearrange", rearrange_dataset=rearrange)
_module("habitat.datasets")
