"""Stand-in for EmbodiedBench's EBAlfEnv: its signatures and what its callers see, on a kitchen of three actions.

Follows embodiedbench/envs/eb_alfred/EBAlfEnv.py and thor_connector.py of EmbodiedBench/EmbodiedBench: `find` of commit
fc59f55 where STAND_IN_FIND says so, else of commit b247936; the font of b247936 where STAND_IN_FONT names one.
"""

import json
import os
from types import SimpleNamespace

import numpy as np
from ai2thor.controller import Controller

HERE = os.path.dirname(os.path.abspath(__file__))
X_DISPLAY = os.environ.get("STAND_IN_DISPLAY", "1")
ALFRED_DATASET_PATH = os.path.join(HERE, "data/json_2.1.0")
ALFRED_SPLIT_PATH = os.path.join(HERE, "data/splits/splits.json")
ValidEvalSets = ["base", "common_sense", "complex_instruction", "spatial", "visual_appearance", "long_horizon"]


class ThorConnector(Controller):
    def __init__(self, x_display, player_screen_height, player_screen_width):
        super().__init__()
        self.start(player_screen_width, player_screen_height, x_display)
        self.last_event = SimpleNamespace(metadata={"objects": ["Apple"]})
        self.cur_receptacle, self.found = None, False

    if "STAND_IN_FONT" not in os.environ:

        @staticmethod
        def _load_debug_font(font_size):
            return None

    def llm_skill_interact(self, instruction):
        if instruction.startswith("find "):
            self.cur_receptacle = instruction.replace("find a ", "")
            if os.environ.get("STAND_IN_FIND") == "fc59f55":
                self.last_event.metadata["lastActionSuccess"] = True
                return {"action": instruction, "success": True, "message": ""}
            objects = self.last_event.metadata["objects"]
            self.found = self.cur_receptacle.partition("_")[0] in objects
            return {"action": instruction, "success": self.found, "message": ""}
        success, self.found = self.found, False
        return {"action": instruction, "success": success, "message": "" if success else "Why?"}


class EBAlfEnv:
    def __init__(self, eval_set="base", exp_name="", down_sample_ratio=1.0, selected_indexes=[], detection_box=False, resolution=600):  # fmt: skip  # noqa: B006, E501
        self.env = ThorConnector(x_display=X_DISPLAY, player_screen_height=resolution, player_screen_width=resolution)
        assert eval_set in ValidEvalSets
        print("loading", eval_set)
        with open(ALFRED_SPLIT_PATH) as file:
            self.dataset = json.load(file)[eval_set]
        self.resolution = resolution
        self.number_of_episodes = len(self.dataset)
        self._reset = False
        self._current_episode_num = 0
        self._current_step = 0
        self._max_episode_steps = 30
        self._cur_invalid_actions = 0
        self._max_invalid_actions = 10
        self.language_skill_set = ["find a Apple"]

    def reset(self):
        assert self._current_episode_num < self.number_of_episodes
        self.episode_language_instruction = self.dataset[self._current_episode_num]["instruction"]
        self.language_skill_set = ["find a Apple", "pick up the Apple", "find a Apple_2"]
        self._current_step = self._cur_invalid_actions = 0
        self.env.found = False
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
        event = self.env.llm_skill_interact(self.language_skill_set[action])
        success = event["success"]
        done = success and "pick" in event["action"]
        self._cur_invalid_actions += not success
        info = {"task_success": float(done), "task_progress": 1.0 if done else 0.5}
        if self._current_step >= self._max_episode_steps or self._cur_invalid_actions >= self._max_invalid_actions:
            done = True
        info["env_feedback"] = "Last action executed successfully." if success else "Last action is invalid. Why?"
        info["last_action_success"] = float(success)
        return {"head_rgb": self._frame()}, 0.25, done, info

    def close(self):
        print("closed")
        with open(os.environ["STAND_IN_CLOSED"], "a") as file:
            file.write("closed\n")
