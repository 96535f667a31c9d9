"""ALFWorld for RAGEN: its env and config classes, without TextWorld.

    # in ragen/env/__init__.py; was: from .alfworld.env import AlfredTXTEnv, from .alfworld.config ...
    from embodied_mem.serve.ragen import AlfredEnvConfig, AlfredTXTEnv

    env = AlfredTXTEnv(AlfredEnvConfig(config_file="alfworld_config.yaml"))
    text = env.reset(seed=7)                    # the game of index 7 % number of games
    text, reward, done, info = env.step("look")

Needs `pip install pyyaml`, which RAGEN has.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from typing import Any

from embodied_mem.envs.checks import checked_finite, checked_path, checked_seed
from embodied_mem.errors import InvalidInputError
from embodied_mem.serve.verl_agent import read_config
from embodied_mem.worlds.alfworld.compat import AlfredTWEnv, BatchEnv, config_field, get_environment


@dataclasses.dataclass
class AlfredEnvConfig:
    """Settings of the env.

    Attributes:
        config_file: ALFWorld's configuration in YAML.
        score: the reward of a won game.
        render_mode: "text".
        eval_dataset: the split of the modes "val" and "test".
    """

    config_file: str = "./ragen/env/alfworld/alfworld_config.yaml"
    score: float = 10.0
    render_mode: str = "text"
    eval_dataset: str = "eval_in_distribution"


@functools.lru_cache(maxsize=8)
def _games(config_file: str, split: str) -> AlfredTWEnv:
    config = read_config(config_file)
    return get_environment(config["env"]["type"])(config, train_eval=split)


class AlfredTXTEnv:
    """One game at a time, chosen by seed.

    Texts end with `Admissible actions: [...]`. `info` of a step has `action_is_effective` (True), `action_is_valid`
    (whether the action was listed) and `success`.

    Args:
        config: the settings.
        mode: "train", "val" or "test".

    Raises:
        DataNotFoundError: there is no configuration, or no game.
        InvalidInputError: a setting is out of range.
    """

    def __init__(self, config: AlfredEnvConfig | None = None, mode: str = "train"):
        self.config = config or AlfredEnvConfig()
        if missing := [name for name in vars(AlfredEnvConfig()) if not hasattr(self.config, name)]:
            raise InvalidInputError(f"config: expected an AlfredEnvConfig, got {config!r} without {', '.join(missing)}")
        self._score = checked_finite("score", self.config.score)
        if self.config.render_mode != "text":
            raise InvalidInputError(f"render_mode: expected 'text', got {self.config.render_mode!r}")
        self._env: BatchEnv | None = None
        self._text, self.available_actions = "", list[str]()
        self._enter(mode)

    def reset(self, seed: int | None = None, mode: str | None = None) -> str:
        """Start the game of index `seed` modulo their number."""
        if mode is not None:
            self._enter(mode)
        if seed is None and self.current_mode == "test":
            raise InvalidInputError("seed: expected one in mode 'test'")
        index = random.randrange(self.num_games) if seed is None else checked_seed(seed) % self.num_games
        self.current_game_file = self.game_files[index]
        max_steps = config_field(self._split.config, "rl", "training", "max_nb_steps_per_episode")
        self._env = BatchEnv([self.current_game_file], 1, max_steps)
        texts, infos = self._env.reset()
        return self._tell(texts[0], infos["admissible_commands"][0])

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """Play an action; return `(text, reward, done, info)`."""
        if self._env is None:
            raise InvalidInputError("step: no game was started; call reset()")
        is_valid = action in self.available_actions
        texts, _, dones, infos = self._env.step([action])
        success = bool(infos["won"][0])
        text = self._tell(texts[0], infos["admissible_commands"][0])
        info = {"action_is_effective": True, "action_is_valid": is_valid, "success": success}
        return text, self._score * success, dones[0], info

    def render(self) -> str:
        """Repeat the last text."""
        return self._text

    def close(self) -> None:
        """Forget the game."""
        self._env, self._text = None, ""

    def _enter(self, mode: str) -> None:
        if mode not in ("train", "val", "test"):
            raise InvalidInputError(f"mode: expected train, val or test, got {mode!r}")
        split = "train" if mode == "train" else self.config.eval_dataset
        self._split = _games(str(checked_path("config_file", self.config.config_file)), split)
        self.current_mode = mode
        self.game_files, self.num_games = list(self._split.game_files), self._split.num_games

    def _tell(self, text: str, commands: list[str]) -> str:
        self.available_actions = commands
        self._text = f"{text}\n\nAdmissible actions: [{', '.join(commands)}]"
        return self._text
