"""EmbodiedBench's environments, as a worker runs them: what its two worlds share.

Runs beside `worker.py` under EmbodiedBench's Python; imports nothing of this package.
"""

from __future__ import annotations

from typing import Any

from simulator_tools import ENOUGH, rgb


class EmbodiedBench:
    """The common part of EBAlfEnv and EBHabEnv. Source: EmbodiedBench/EmbodiedBench, `embodiedbench/envs`.

    Attributes:
        goals: the instruction of each task, in the order of the program's file.
    """

    def __init__(self, env: Any, goals: list[str], max_steps: int | None) -> None:
        self.env, self.goals = env, goals
        self.env._max_episode_steps = max_steps or ENOUGH

    def started(self, task: int, place: int) -> dict[str, Any]:
        """Start one episode.

        Args:
            task: its place in the file.
            place: its place in the program's list, where the program looks for the one that it starts next.
        """
        self.env._current_episode_num = place
        image = self.env.reset()["head_rgb"]
        goal = self.env.episode_language_instruction
        if goal != self.goals[task]:
            raise RuntimeError(
                f"task {task}: expected the instruction {self.goals[task]!r}, the program plays {goal!r}"
            )
        text = f"Your task is to: {goal}"
        self.progress = 0.0
        return {"text": text, "goal": goal, "image": rgb(image), "commands": list(self.env.language_skill_set)}

    def step(self, action: str) -> dict[str, Any]:
        """Play an action of the list, given by text or number.

        Anything else is what the evaluator calls unusable.
        """
        env, commands, action = self.env, self.env.language_skill_set, action.strip()
        if action in commands:
            number = commands.index(action)
        elif action.isascii() and action.isdigit() and int(action) < len(commands):
            number = int(action)
        else:
            env._cur_invalid_actions += 1  # as the evaluator counts it, without a step
            ended = env._cur_invalid_actions >= env._max_invalid_actions
            text = "Last action is invalid. The answer is no action of the list"
            progress = 0.0 if ended else self.progress
            told = {"text": text, "progress": progress, "ended": ended}
            return {**told, "valid": False, "is_step": False, **self.counts()}
        observation, reward, done, info = env.step(number)
        won = bool(info["task_success"])
        self.progress = float(info["task_progress"])
        ended = won or env._cur_invalid_actions >= env._max_invalid_actions
        return {
            "text": info["env_feedback"],
            "image": rgb(observation["head_rgb"]),
            "won": won,
            "progress": self.progress,
            "ended": ended,
            "cut": bool(done) and not ended,
            "valid": bool(info["last_action_success"]),
            "reward": float(reward),
            **self.counts(),
        }

    def counts(self) -> dict[str, int]:
        return {"num_invalid": int(self.env._cur_invalid_actions)}

    def close(self) -> None:
        self.env.close()
