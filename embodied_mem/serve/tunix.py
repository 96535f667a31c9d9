"""Worlds as task environments of Tunix, for its `AgenticGRPOLearner` on TPU and GPU.

    from embodied_mem.serve.tunix import TunixWorld, batches

    learner = GRPOLearner(..., env_class=TunixWorld, env_kwargs={"world": "alfworld", "max_steps": 30})
    learner.train(batches(2000, batch_size=16))  # a row is a seed; the envs of a group play the same task

The first text is the goal's observation with the commands that are possible now. A reply's command is its
`<action>…</action>`, else its last line. The reward is the world's; a `reward_fn(task=, action=, reward=)` replaces it.

Needs `pip install google-tunix`.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from embodied_mem.envs.checks import MAX_STEPS, checked_count, checked_finite
from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError, MissingDependencyError
from embodied_mem.serve.replies import SYSTEM_PROMPT, command_of, prompt_of

try:
    from tunix.rl.agentic.environments.base_environment import BaseTaskEnv, EnvStepResult
except ImportError as error:
    raise MissingDependencyError(f"Tunix is not installed ({error}); run: pip install google-tunix") from error


class TunixWorld(BaseTaskEnv):
    """One episode of a world.

    Args:
        task: a row of `batches`; its `seed` decides the task and all chance in it.
        world: the world's name.
        options: of the world's class, such as `tasks`; `max_steps` is given beside it.
        reward_fn: replaces the world's reward; called with `task`, `action` (the command) and `reward`.
        max_steps: steps after which the episode ends.
        kwargs: the learner's, such as `group_id`.

    Raises:
        InvalidInputError: the row has no seed, the world or one of its options is unknown.
    """

    def __init__(
        self,
        task: Mapping[str, Any] | None = None,
        *,
        world: str = "alfworld",
        options: Mapping[str, Any] | None = None,
        reward_fn: Callable[..., float] | None = None,
        max_steps: int = 50,
        **kwargs: Any,
    ):
        if not isinstance(task or {}, Mapping):
            raise InvalidInputError(f"task: expected a row with a seed, got {task!r}")
        if not isinstance(options or {}, Mapping) or "max_steps" in (options or {}):
            raise InvalidInputError(f"options: expected a mapping without max_steps, an argument here, got {options!r}")
        max_steps = checked_count("max_steps", max_steps, MAX_STEPS)
        super().__init__(dict(task or {}), reward_fn=reward_fn, max_steps=max_steps, **kwargs)
        try:
            self._seed = operator.index(np.asarray(self.task["seed"]).item())  # a row may come as a batch of one
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"task: expected a row with a seed, got {self.task!r}") from error
        self._env = TextEnv(world, max_steps=max_steps, **(options or {}))

    def _initial_observation(self) -> str:
        return prompt_of(*self._env.reset(seed=self._seed))

    def _step_impl(self, action: Any) -> EnvStepResult:
        command = command_of(str(getattr(action, "action", action)))
        text, reward, terminated, truncated, info = self._env.step(command)
        if self.reward_fn is not None:
            reward = checked_finite("reward_fn", self.reward_fn(task=self.task, action=command, reward=reward))
        metrics = {"command": command, "won": bool(info["won"]), "progress": float(info["progress"])}
        return EnvStepResult(prompt_of(text, info), reward, terminated or truncated, metrics)

    def close(self) -> None:
        """End what the world runs."""
        with contextlib.suppress(AttributeError):  # the constructor failed before there was an env
            self._env.close()


def batches(num_tasks: int, batch_size: int, first_seed: int = 0) -> list[dict[str, Any]]:
    """List the batches of a dataset, with a task per seed.

    Each is {"prompts": [batch], "seed": int64[batch]}.
    """
    num_tasks, batch_size = (
        checked_count(name, count, MAX_STEPS) for name, count in (("num_tasks", num_tasks), ("batch_size", batch_size))
    )
    ends = range(first_seed, first_seed + num_tasks, batch_size)
    seeds = (np.arange(first, min(first + batch_size, first_seed + num_tasks)) for first in ends)
    return [{"prompts": np.array([SYSTEM_PROMPT] * len(some)), "seed": some} for some in seeds]
