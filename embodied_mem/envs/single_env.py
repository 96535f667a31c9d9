"""The worlds under gymnasium's names: single envs, and vector envs in each of its autoreset modes.

    import embodied_mem.envs                                            # registers the ids
    env = gymnasium.make("embodied_mem/alfworld-v0", render_mode="ansi")                       # or, without the import:
    envs = gymnasium.make_vec("embodied_mem.envs:embodied_mem/alfworld-v0", num_envs=16)

Without `tasks`, a world that makes tasks of its own plays those of a new home, which needs no data; another one plays
its `default_tasks`. Options are those of the world's class, and two for all worlds:

    goal_in_observations=True      # each text ends with the goal, not the first one alone
    shaping=1.0                    # rewards also have 1.0 times the growth of `info["progress"]`
"""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from embodied_mem.envs.checks import checked_finite, checked_seed
from embodied_mem.envs.vector_env import Answers, NativeVectorEnv, Reset, Texts, make
from embodied_mem.errors import InvalidInputError
from embodied_mem.registry import card, load, names

NUM_GENERATED = 20
"""Tasks of the home that is played where none are named."""


@functools.lru_cache(maxsize=8)
def _generated(world: str, seed: int) -> dict[str, Any]:
    return dict(load(world, "generated")(NUM_GENERATED, seed))


def _make(
    world: str, num_envs: int, render_mode: str | None, options: dict[str, Any]
) -> NativeVectorEnv | GoalAndShaping:
    if render_mode not in (None, "ansi"):
        raise InvalidInputError(f"render_mode: expected None or 'ansi', got {render_mode!r}")
    options = dict(options)
    shows_goal, shaping = options.pop("goal_in_observations", False), options.pop("shaping", 0.0)
    if not isinstance(shows_goal, bool):
        raise InvalidInputError(f"goal_in_observations: expected True or False, got {shows_goal!r}")
    shaping = checked_finite("shaping", shaping)
    tasks: dict[str, Any] = {}
    if "tasks" not in options:
        if card(world).generated:
            tasks = _generated(world, checked_seed(options.get("seed", 0)))
        elif default := getattr(load(world, "env", options.get("backend")), "default_tasks", ""):
            tasks = {"tasks": default}
    envs = make(world, num_envs=num_envs, **options, **tasks)
    envs.made_by, envs.render_mode = functools.partial(_plain, world, num_envs, render_mode, options), render_mode
    return GoalAndShaping(envs, shows_goal, shaping) if shows_goal or shaping else envs


def _plain(world: str, num_envs: int, render_mode: str | None, options: dict[str, Any]) -> NativeVectorEnv:
    envs = _make(world, num_envs, render_mode, options)
    assert isinstance(envs, NativeVectorEnv)
    return envs


class GoalAndShaping(gymnasium.vector.VectorWrapper):
    """Envs that tell the goal in every text, and of which the reward has a part for progress.

    The part is `shaping` times the growth of `progress` in this step, so that it sums to the same for every way to a
    state.
    """

    env: NativeVectorEnv

    def __init__(self, envs: NativeVectorEnv, shows_goal: bool, shaping: float):
        super().__init__(envs)
        self._shows_goal, self._shaping = shows_goal, shaping
        self._progress = np.zeros(envs.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Reset:
        texts, info = self.env.reset(seed=seed, options=options)
        self._progress = np.array(info["progress"], float)
        return self._with_goal(texts, info), info

    def step(self, actions: Texts) -> Answers:
        texts, rewards, terminated, truncated, info = self.env.step(actions)
        progress = np.array(info["progress"], float)
        rewards, self._progress = rewards + self._shaping * (progress - self._progress), progress
        return self._with_goal(texts, info), rewards, terminated, truncated, info

    def _with_goal(self, texts: Texts, info: dict[str, Any]) -> Texts:
        if not self._shows_goal:
            return texts
        return [text if text.endswith(goal) else f"{text}\n\n{goal}" for text, goal in zip(texts, info["goal"])]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return self.env.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return self.env.get_attr(name)


class TextEnv(gymnasium.Env[str, str]):
    """One env of a world, as `gymnasium.Env`; pickled, it is made anew and has to be reset.

    Tasks that are native objects cannot be pickled; their names or files can.

    Args:
        world: its name.
        render_mode: None, or "ansi": `render` returns the last text.
        options: of the world's class, but `num_envs`.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012 (gymnasium's own name)

    def __init__(self, world: str, render_mode: str | None = None, **options: Any):
        if "num_envs" in options:
            raise InvalidInputError("num_envs: expected none for a single env; gymnasium.make_vec makes several")
        self._made_of = world, render_mode, options
        self._envs, self._text = _make(world, 1, render_mode, options), ""
        self.render_mode = render_mode
        self.observation_space, self.action_space = self._envs.single_observation_space, self._envs.single_action_space

    def __getstate__(self) -> dict[str, Any]:
        return {"made_of": self._made_of}

    def __setstate__(self, state: dict[str, Any]) -> None:
        world, render_mode, options = state["made_of"]
        TextEnv.__init__(self, world, render_mode, **options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Reset the one env, as `NativeVectorEnv.reset`.

        `options` may have `task_indices` with one entry.
        """
        super().reset(seed=None if seed is None else checked_seed(seed))
        texts, info = self._envs.reset(seed=seed, options=options)
        self._text = texts[0]
        return self._text, _row(info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Step the one env, as `NativeVectorEnv.step`."""
        texts, rewards, terminated, truncated, info = self._envs.step([action])
        self._text = texts[0]
        reward = checked_finite("reward", rewards[0])
        return self._text, reward, bool(terminated[0]), bool(truncated[0]), _row(info)

    def render(self) -> str | None:
        """Return the last text, if `render_mode` is "ansi"."""
        return self._text if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends what the world runs."""
        self._envs.close()


def _row(info: dict[str, Any]) -> dict[str, Any]:
    return {name: values[0] for name, values in info.items()}


class AutoresetTextEnvs(gymnasium.vector.VectorWrapper):
    """Envs of a world of which those that ended start anew by themselves; texts are tuples, as in their space.

    Next step: the step after an episode's end starts the next one, whatever its action is, with reward 0. Same step:
    the step that ends an episode answers with the start of the next one; `info` has the last text in `final_obs`, what
    else was known in `final_info`, and in `_final_obs` which envs these are of.
    """

    env: NativeVectorEnv | GoalAndShaping

    def __init__(self, envs: NativeVectorEnv | GoalAndShaping, mode: AutoresetMode):
        super().__init__(envs)
        self.mode = mode
        self.metadata = {**envs.metadata, "autoreset_mode": mode}
        self._ended = np.zeros(envs.num_envs, dtype=bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Reset:
        answers = self.env.reset(seed=seed, options=options)
        mask = (options or {}).get("reset_mask")
        self._ended[:] = False if mask is None else self._ended & ~np.asarray(mask)
        return tuple(answers[0]), answers[1]

    def step(self, actions: Texts) -> Answers:
        """Step as `NativeVectorEnv.step`; where an episode ended, as the mode says."""
        texts, rewards, terminated, truncated, info = self.env.step(actions)
        if self.mode is AutoresetMode.SAME_STEP:
            if (ended := terminated | truncated).any():
                final = {name: np.where(ended, values, None) for name, values in info.items()}
                final_texts = np.array([text if over else None for text, over in zip(texts, ended)], dtype=object)
                texts, info = self.env.reset(options={"reset_mask": ended})
                info |= {"final_obs": final_texts, "_final_obs": ended, "final_info": final, "_final_info": ended}
            return tuple(texts), rewards, terminated, truncated, info
        if (over := self._ended).any():
            texts, info = self.env.reset(options={"reset_mask": over})
            rewards, terminated, truncated = (np.where(over, 0, one) for one in (rewards, terminated, truncated))
            terminated, truncated = terminated.astype(bool), truncated.astype(bool)
        self._ended = terminated | truncated
        return tuple(texts), rewards, terminated, truncated, info

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return self.env.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return self.env.get_attr(name)


def make_vector(
    world: str,
    num_envs: int = 1,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    **options: Any,
) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Return the vector env behind the ids.

    It is the world's own where autoreset is disabled.
    """
    try:
        mode = AutoresetMode(autoreset_mode)
    except ValueError as error:
        known = ", ".join(one.value for one in AutoresetMode)
        raise InvalidInputError(f"autoreset_mode: expected one of {known}, got {autoreset_mode!r}") from error
    envs = _make(world, num_envs, render_mode, options)
    return envs if mode is AutoresetMode.DISABLED else AutoresetTextEnvs(envs, mode)


def register() -> None:
    """Registers `embodied_mem/<world>-v0` of every world with an env; again does nothing."""
    for world in names("env"):
        if (name := f"embodied_mem/{world}-v0") not in gymnasium.registry:
            gymnasium.register(
                name, f"{__name__}:TextEnv", vector_entry_point=f"{__name__}:make_vector", kwargs={"world": world},
                disable_env_checker=True, order_enforce=False,
            )  # fmt: skip
