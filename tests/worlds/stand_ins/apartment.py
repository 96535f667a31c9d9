"""What habitat-sim and the task have in the stand-in for EB-Habitat: a robot that starts anywhere, a cup, a sofa.

The robot starts where numpy's generator says, as in `RearrangeSim.set_articulated_agent_base_to_random_point` of
habitat-lab 0.3.0; the robot's and the scene's files are opened at the first reset and not before.
"""

import os

import numpy as np

ACTIONS = ["navigate to the sofa", "pick up the cup", "place at the sofa"]


class Simulator:
    """What habitat.Env asks of a simulator."""

    def __init__(self, config):
        self.config = config

    def seed(self, seed):
        pass

    def reconfigure(self, config, episode=None):
        for path in (config.agents["main_agent"].articulated_agent_urdf, "data/replica_cad"):
            if not os.path.exists(path):
                raise RuntimeError(f"ESP_CHECK failed: No such file {path}")

    def close(self):
        pass


class Measurements:
    def __init__(self, task):
        self.task = task

    def reset_measures(self, *arguments, **options):
        pass

    update_measures = reset_measures

    def get_metrics(self):
        return dict(self.task.metrics)


class Task:
    """What habitat.Env asks of a task."""

    def __init__(self, sim, size):
        self.sim, self.size = sim, size
        self.measurements = Measurements(self)
        self.is_episode_active = True

    def seed(self, seed):
        pass

    def overwrite_sim_config(self, config, episode):
        return config

    def reset(self, episode, **_):
        self.start, self.steps = int(np.random.randint(1, 256)), 0  # noqa: NPY002
        self.metrics = {"lang_goal": episode.instruction}
        return self.observations()

    def step(self, action, episode, **_):
        action = action["action"]
        self.steps += 1
        won = action == 2
        self.metrics = {
            "lang_goal": episode.instruction, "action": ["nav(sofa)", "pick_cup(robot_0)", "place(sofa)"][action],
            "was_prev_action_invalid": action == 1, "task_progress": 0.5, "predicate_task_success": won,
            "success": won, "reward": 0.25,
        }  # fmt: skip
        return self.observations()

    def observations(self):
        image = np.full((self.size, self.size, 3), self.steps, np.uint8)
        image[0, 0, 0] = self.start
        return {"head_rgb": image}
