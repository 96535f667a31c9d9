"""Stand-in for EmbodiedBench's EBHabEnv: its signatures and what its callers see, with habitat's layers of envs.

Follows embodiedbench/envs/eb_habitat/EBHabEnv.py of EmbodiedBench/EmbodiedBench, commit fc59f55, and
habitat-lab/habitat/core/env.py of facebookresearch/habitat-lab (`Env.current_episode`, `Env.reset`).
"""

from types import SimpleNamespace

import numpy as np

ValidEvalSets = ["base", "common_sense", "complex_instruction", "spatial_relationship", "visual_appearance", "long_horizon"]  # fmt: skip  # noqa: E501


class Env:
    """habitat.Env: takes the iterator's next episode at a reset, unless one was set."""

    def __init__(self, config, dataset=None):
        self.episodes = dataset
        self._iterator = iter(dataset)
        self._current_episode = next(self._iterator)
        self._episode_from_iter_on_reset = True

    @property
    def current_episode(self):
        return self._current_episode

    @current_episode.setter
    def current_episode(self, episode):
        self._current_episode = episode
        self._episode_from_iter_on_reset = False

    def reset(self):
        if self._episode_from_iter_on_reset:
            self._current_episode = next(self._iterator)
        self._episode_from_iter_on_reset = True


class EBHabEnv:
    def __init__(self, eval_set="train", exp_name="", down_sample_ratio=1.0, start_epi_index=0, resolution=600, recording=False):  # fmt: skip  # noqa: E501
        assert eval_set in ValidEvalSets
        episodes = [f"Move cup {i}." for i in range(4)]
        core = Env(None, episodes)
        self.env = SimpleNamespace(env=SimpleNamespace(env=SimpleNamespace(_env=core)), reset=core.reset)
        self.number_of_episodes = len(episodes) * down_sample_ratio  # a float, as there
        self.resolution = resolution
        self._reset = False
        self._current_episode_num = 0
        self._max_episode_steps = 30
        self._max_invalid_actions = 10
        self.language_skill_set = ["navigate to the sofa", "pick up the cup", "place at the sofa"]

    def reset(self, **kwargs):
        assert self._current_episode_num <= self.number_of_episodes
        self.env.reset()
        self.episode_language_instruction = self.env.env.env._env.current_episode
        self._current_step = self._cur_invalid_actions = 0
        self._current_episode_num += 1
        self._reset = True
        return self._observations()

    def _observations(self):
        return {"head_rgb": np.full((self.resolution, self.resolution, 3), self._current_step, np.uint8)}

    def step(self, action, reasoning="", **kwargs):
        assert self._reset, "Reset env before stepping"
        self._current_step += 1
        info = {"was_prev_action_invalid": action == 1, "task_progress": 0.5, "task_success": action == 2}
        self._cur_invalid_actions += info["was_prev_action_invalid"]
        done = info["task_success"] or self._current_step >= self._max_episode_steps
        if self._cur_invalid_actions >= self._max_invalid_actions:
            done = True
        info["env_feedback"] = "Last action is invalid." if action == 1 else "Last action executed successfully."
        info["last_action_success"] = 1 - float(info["was_prev_action_invalid"])
        if info["task_success"]:
            info["task_progress"] = 1.0
        return self._observations(), 0.0, done, info

    def close(self):
        pass
