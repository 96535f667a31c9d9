"""ALFWorld for verl-agent and its relatives: their `build_alfworld_envs`, without Ray and without TextWorld.

    # in agent_system/environments/env_manager.py; was: from ...env_package.alfworld import build_alfworld_envs
    from embodied_mem.serve.verl_agent import build_alfworld_envs

    envs = build_alfworld_envs("config_tw.yaml", seed=0, env_num=16, group_n=8)
    texts, images, infos = envs.reset()
    texts, images, rewards, dones, infos = envs.step([commands[0] for commands in envs.get_admissible_commands])

The original starts `env_num * group_n` processes with an env each. Here one native env plays all games on threads.

Needs `pip install pyyaml`, which verl-agent has.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.envs.checks import checked_actions, checked_count, checked_path, checked_seed
from embodied_mem.errors import DataNotFoundError, InvalidInputError, MissingDependencyError
from embodied_mem.worlds.alfworld.compat import get_environment

WON_REWARD = 10.0

Infos = list[dict[str, Any]]


class AlfworldEnvs:
    """Games of ALFWorld side by side, in groups that play the same game.

    Env i plays the games of the split in the order of `RandomState(seed + i // group_n).shuffle`, so the `group_n` envs
    of a group start the same game at each `reset`. No expert advises, whatever `general.training_method` says.
    Pickled, they go on with their next games after a `reset`.

    Args:
        alf_config_path: ALFWorld's configuration in YAML, such as verl-agent's `config_tw.yaml`.
        seed: of the first group.
        env_num: groups.
        group_n: envs of a group.
        resources_per_worker: unused, since there are no workers. A bool here is `is_train`, and the next argument
            `env_kwargs`, as in copies of the original that have no `resources_per_worker`.
        is_train: plays the split `train`; else the one of `env_kwargs["eval_dataset"]`.
        env_kwargs: `eval_dataset`, "eval_in_distribution" (default) or "eval_out_of_distribution"; `order`, "sorted"
            for the same games on every host, or "walk" (default) for the file system's order, as the original. None
            is the default.

    Attributes:
        num_processes: number of envs, B = env_num * group_n.
        group_n: envs of a group.
        multi_modal: False.
        games_hash: SHA-256 of the list of games (task, trial and file), in hex; equal hashes and seeds play
            equal games.

    Raises:
        DataNotFoundError: there is no configuration, or no game.
        InvalidInputError: an argument or a field of the configuration is out of range.
    """

    multi_modal = False

    def __init__(
        self,
        alf_config_path: str | os.PathLike[str],
        seed: int,
        env_num: int,
        group_n: int,
        resources_per_worker: Mapping[str, Any] | None = None,
        is_train: bool = True,
        env_kwargs: Mapping[str, Any] | None = None,
    ):
        if isinstance(resources_per_worker, bool):  # copies of the original from before it: is_train, env_kwargs
            is_train, env_kwargs = resources_per_worker, env_kwargs if isinstance(is_train, bool) else is_train
        if not isinstance(is_train, bool):
            raise InvalidInputError(f"is_train: expected True or False, got {is_train!r}")
        if not isinstance(env_kwargs or {}, Mapping):
            raise InvalidInputError(f"env_kwargs: expected a mapping, got {env_kwargs!r}")
        seed, kwargs = checked_seed(seed), {key: one for key, one in (env_kwargs or {}).items() if one is not None}
        if unknown := set(kwargs) - {"eval_dataset", "order"}:
            raise InvalidInputError(f"env_kwargs: expected eval_dataset and order, got {', '.join(sorted(unknown))}")
        env_num, group_n = checked_count("env_num", env_num, 65536), checked_count("group_n", group_n, 65536)
        split = "train" if is_train else kwargs.get("eval_dataset", "eval_in_distribution")
        config = read_config(alf_config_path)
        if "order" in kwargs:
            config["dataset"] = {**(config.get("dataset") or {}), "order": kwargs["order"]}
        games = get_environment(config["env"]["type"])(config, train_eval=split)
        self.num_processes, self.group_n = env_num * group_n, group_n
        listing = "\n".join("/".join(file.split(os.sep)[-3:]) for file in games.game_files)
        self.games_hash = hashlib.sha256(listing.encode()).hexdigest()
        print(f"{len(games.game_files)} games of {split}, list {self.games_hash[:16]}", file=sys.stderr)
        self._env = games.init_env(self.num_processes, has_expert=False)
        self._env.seed([seed + i // group_n for i in range(self.num_processes)])
        self._admissible_commands: list[list[str]] = [[] for _ in range(self.num_processes)]

    def reset(self) -> tuple[list[str], None, Infos]:
        """Start the next game of each env and return `(texts, None, infos)`.

        `infos` has a dict per env: `won` (bool), `admissible_commands` (list[str]), `extra.gamefile`,
        `observation_text`.
        """
        texts, infos = self._env.reset()
        return list(texts), None, self._rows(texts, infos)

    def step(self, actions: Sequence[str]) -> tuple[list[str], None, list[float], list[bool], Infos]:
        """Play a command in each env.

        Returns `(texts, None, rewards, dones, infos)`. The reward is 10 where the game is won, else 0. A game that is
        over repeats its last answer. A command that is none is answered "Nothing happens."

        Raises:
            InvalidInputError: not one `str` per env, or `reset` was never called.
        """
        texts, _, dones, infos = self._env.step(list(checked_actions(actions)))
        rows = self._rows(texts, infos)
        return list(texts), None, [WON_REWARD * row["won"] for row in rows], list(dones), rows

    @property
    def get_admissible_commands(self) -> list[list[str]]:
        """The commands that are possible now, a list per env."""
        return self._admissible_commands

    def close(self, timeout_s: float | None = None) -> None:
        """Do nothing, since no process runs."""

    def _rows(self, texts: Sequence[str], infos: Mapping[str, Sequence[Any]]) -> Infos:
        self._admissible_commands = list(infos["admissible_commands"])
        rows = [dict(zip(infos, values)) for values in zip(*infos.values())]
        return [{**row, "observation_text": text} for row, text in zip(rows, texts)]


build_alfworld_envs = AlfworldEnvs
"""The name under which verl-agent makes the envs."""


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ALFWorld's configuration in YAML."""
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError as error:
        raise MissingDependencyError("PyYAML is not installed; run: pip install pyyaml") from error
    try:
        config = yaml.safe_load(checked_path("alf_config_path", path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataNotFoundError(f"alf_config_path: {os.fspath(path)!r} cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(f"alf_config_path: {os.fspath(path)!r} is no YAML ({error})") from error
    if not isinstance(config, dict) or not isinstance(config.get("env"), dict) or "type" not in config["env"]:
        raise InvalidInputError(f"alf_config_path: {os.fspath(path)!r}: expected the field env.type, as ALFWorld's has")
    return config
