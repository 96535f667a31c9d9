"""Stand-in for habitat-sim and the task of EB-Habitat: the native world plays, with differences put in on purpose.

STAND_IN_DIFFERS names a word; an action with it is refused, as where a simulator's robot stands badly.
"""

import os

import numpy as np

from embodied_mem.worlds.eb_habitat.data import load_tasks
from embodied_mem.worlds.eb_habitat.engine import ACTIONS as ACTIONS
from embodied_mem.worlds.eb_habitat.env import Env

from .cup import Measurements
from .cup import Simulator as Simulator
from .cup import Task as Cup

DIFFERS = os.environ.get("STAND_IN_DIFFERS", "")


class Task(Cup):
    def __init__(self, sim, size):
        super().__init__(sim, size)
        self.measurements = Measurements(self)
        self.tasks = load_tasks("base", os.environ["STAND_IN_DATA"])

    def reset(self, episode, **_):
        if os.environ.get("STAND_IN_NEVER_STARTS") == episode.episode_id:
            raise RuntimeError("no navmesh")
        self.env, self.start, self.steps = Env(self.tasks[int(episode.episode_id)]), 0, 0
        self.metrics = {"lang_goal": episode.instruction}
        return self.observations()

    def step(self, action, episode, **_):
        if os.environ.get("STAND_IN_DIES") == episode.episode_id:
            os.kill(os.getpid(), 9)
        action, invalid = ACTIONS[action["action"]], self.env.num_invalid
        self.steps += 1
        feedback, refused = "Last action is invalid. It stands badly.", bool(DIFFERS) and DIFFERS in action
        if not refused:
            feedback = self.env.step(action).partition("\n")[0]
            refused = self.env.num_invalid > invalid
        self.metrics = {
            "lang_goal": episode.instruction, "action": action, "was_prev_action_invalid": refused,
            "task_progress": self.env.progress, "predicate_task_success": self.env.won, "success": self.env.won,
            "reward": 0.25, "feedback": feedback,
        }  # fmt: skip
        return self.observations()

    def observations(self):
        return {"head_rgb": np.zeros((self.size, self.size, 3), np.uint8)}
