"""Stand-in for EmbodiedBench's EBAlfEnv, played by the native world: its own lists of actions and feedback."""

import os
from types import SimpleNamespace

import numpy as np

from embodied_mem.worlds.eb_alfred.engine import Env
from embodied_mem.worlds.eb_alfred.env import load_tasks

from .kitchen import ALFRED_DATASET_PATH, ALFRED_SPLIT_PATH, X_DISPLAY, ThorConnector  # noqa: F401
from .kitchen import EBAlfEnv as Kitchen


class EBAlfEnv(Kitchen):
    def reset(self):
        self.tasks = load_tasks("base", os.environ["STAND_IN_DATA"])
        super().reset()
        self.world = Env(self.tasks[self._current_episode_num - 1], shows_view=False)
        self.language_skill_set = list(self.world.task.actions)
        self.env = SimpleNamespace(llm_skill_interact=self.interact)
        return {"head_rgb": self._frame()}

    def interact(self, instruction):
        text = self.world.step(instruction)
        return {"action": instruction, "success": self.world.action_valid, "message": text}

    def step(self, action, reasoning=""):
        observations, reward, _, info = super().step(action)
        info |= {"task_success": float(self.world.won), "task_progress": self.world.progress}
        info["env_feedback"] = self.world.feedback
        over = self._current_step >= self._max_episode_steps or self._cur_invalid_actions >= self._max_invalid_actions
        return observations, reward, over or self.world.won, info

    def _frame(self):
        return np.zeros((self.resolution, self.resolution, 3), np.uint8)
