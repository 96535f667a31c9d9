"""Stand-in for EmbodiedBench's EBHabEnv: its signatures and what its callers see, on habitat-lab or its stand-in.

Follows embodiedbench/envs/eb_habitat/EBHabEnv.py of EmbodiedBench/EmbodiedBench, commit fc59f55. Importing it
leaves a link `data` in the present folder, as there.
"""

import os

import habitat
from embodiedbench.envs.eb_habitat.apartment import ACTIONS
from embodiedbench.envs.eb_habitat.lang_dataset import LangRearrangeDatasetV0
from embodiedbench.envs.eb_habitat.layers import make_gym_from_config

ValidEvalSets = ["base", "common_sense", "complex_instruction", "spatial_relationship", "visual_appearance", "long_horizon"]  # fmt: skip  # noqa: E501
HERE = os.path.dirname(os.path.abspath(__file__))
HABITAT_CONFIG_PATH = os.path.join(HERE, "config/task/language_rearrangement.yaml")
if not os.path.lexists("data"):
    os.symlink(os.path.join(HERE, "data"), "data")


class EBHabEnv:
    def __init__(self, eval_set="train", exp_name="", down_sample_ratio=1.0, start_epi_index=0, resolution=600, recording=False):  # fmt: skip  # noqa: E501
        assert eval_set in ValidEvalSets
        self.config = habitat.get_config(HABITAT_CONFIG_PATH)
        path = os.path.join(HERE, f"datasets/{eval_set}.pickle")
        self.dataset = LangRearrangeDatasetV0(
            type("Config", (), {"data_path": path, "split": "", "scenes_dir": "data"})
        )
        self.env = make_gym_from_config(self.config, self.dataset, resolution)
        print("gpu", self.config.habitat.simulator.habitat_sim_v0.gpu_device_id)
        self.number_of_episodes = self.env.number_of_episodes * down_sample_ratio  # a float, as there
        self._reset = False
        self._current_episode_num = 0
        self._max_episode_steps = 30
        self._max_invalid_actions = 10
        self.language_skill_set = ACTIONS

    def reset(self, **kwargs):
        assert self._current_episode_num <= self.number_of_episodes
        observations, info = self.env.reset(return_info=True, **kwargs)
        self.episode_language_instruction = info["lang_goal"]
        self.episode_data = self.dataset.episodes[self._current_episode_num]
        self._current_step = self._cur_invalid_actions = 0
        self._current_episode_num += 1
        self._reset = True
        return observations

    def step(self, action, reasoning="", **kwargs):
        assert self._reset, "Reset env before stepping"
        self._current_step += 1
        observations, reward, done, info = self.env.step(action, **kwargs)
        self._cur_invalid_actions += info["was_prev_action_invalid"]
        if self._current_step >= self._max_episode_steps or self._cur_invalid_actions >= self._max_invalid_actions:
            done = True
        refused = info["was_prev_action_invalid"]
        said = "Last action is invalid." if refused else "Last action executed successfully."
        info["env_feedback"] = info.get("feedback", said)
        info["last_action_success"] = 1 - float(info["was_prev_action_invalid"])
        info["task_success"] = info["predicate_task_success"]
        if info["task_success"]:
            info["task_progress"] = 1.0
        return observations, reward, done, info

    def close(self):
        self.env.close()
