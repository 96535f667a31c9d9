"""Stand-in for EmbodiedBench's EBAlfEnv: its signatures and what its callers see, on a kitchen of three actions.

Follows embodiedbench/envs/eb_alfred/EBAlfEnv.py of EmbodiedBench/EmbodiedBench, commit fc59f55.
"""

import os

import numpy as np

X_DISPLAY = os.environ["STAND_IN_DISPLAY"]
ALFRED_DATASET_PATH = os.environ["STAND_IN_DATA"]
ValidEvalSets = ["base", "common_sense", "complex_instruction", "spatial", "visual_appearance", "long_horizon"]


class EBAlfEnv:
    def __init__(self, eval_set="base", exp_name="", down_sample_ratio=1.0, selected_indexes=[], detection_box=False, resolution=600):  # fmt: skip  # noqa: B006, E501
        assert eval_set in ValidEvalSets
        print("loading", eval_set)
        self.resolution = resolution
        self.number_of_episodes = 3
        self._reset = False
        self._current_episode_num = 0
        self._current_step = 0
        self._max_episode_steps = 30
        self._cur_invalid_actions = 0
        self._max_invalid_actions = 10
        self.language_skill_set = ["find a Apple"]

    def reset(self):
        assert self._current_episode_num < self.number_of_episodes
        self.episode_language_instruction = f"Take apple {self._current_episode_num}."
        self.language_skill_set = ["find a Apple", "pick up the Apple", "find a Apple_2"]
        self._current_step = self._cur_invalid_actions = 0
        self._found = False
        self._current_episode_num += 1
        self._reset = True
        return {"head_rgb": self._frame()}

    def _frame(self):
        frame = np.zeros((self.resolution, self.resolution, 3), np.uint8)
        frame[0, 0] = self._current_episode_num, self._current_step, 255
        return frame

    def step(self, action, reasoning=""):
        assert self._reset, "Reset env before stepping"
        assert type(action) is int
        print("playing", action)
        self._current_step += 1
        lang_action = self.language_skill_set[action]
        success = "find" in lang_action or self._found
        done = success and "pick" in lang_action
        self._found = "find" in lang_action
        self._cur_invalid_actions += not success
        info = {"task_success": float(done), "task_progress": 1.0 if done else 0.5}
        if self._current_step >= self._max_episode_steps or done:
            done = True
        if self._cur_invalid_actions >= self._max_invalid_actions:
            done = True
        info["env_feedback"] = "Last action executed successfully." if success else "Last action is invalid. Why?"
        info["last_action_success"] = float(success)
        return {"head_rgb": self._frame()}, 0.25, done, info

    def close(self):
        print("closed")
        with open(os.environ["STAND_IN_CLOSED"], "a") as file:
            file.write("closed\n")
