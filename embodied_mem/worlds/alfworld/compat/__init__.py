"""The original package's classes, played by our engine: code that trains on ALFWorld changes one import.

    from embodied_mem.worlds.alfworld.compat import get_environment   # was: alfworld.agents.environment

    env = get_environment("AlfredTWEnv")(config, train_eval="train").init_env(batch_size=16)
    observations, infos = env.reset()
    observations, scores, dones, infos = env.step([commands[0] for commands in infos["admissible_commands"]])

`config` is the original's. docs/drop_in.md says what differs from it and how the two were compared.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.worlds.alfworld.compat.batch_env import BatchEnv
from embodied_mem.worlds.alfworld.compat.games import solvable_games
from embodied_mem.worlds.alfworld.wording.text import TASK_TYPES

__all__ = ["AlfredTWEnv", "BatchEnv", "get_environment"]

_SPLITS = {
    "train": ("data_path", "num_train_games"),
    "eval_in_distribution": ("eval_id_data_path", "num_eval_games"),
    "eval_out_of_distribution": ("eval_ood_data_path", "num_eval_games"),
}
"""`train_eval` -> the fields of `dataset` that name its folder and how many of its games are played."""

_NUMBERED = (
    "pick_and_place_simple", "look_at_obj_in_light", "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep", "pick_two_obj_and_place",
)  # fmt: skip
"""The task types that `env.task_types` calls 1 to 6."""

assert set(_NUMBERED) == set(TASK_TYPES)


def get_environment(env_type: str) -> type[AlfredTWEnv]:
    """Return the class of the original's name "AlfredTWEnv".

    Raises:
        InvalidInputError: another name; the original's other classes need a simulator of three dimensions.
    """
    if env_type != "AlfredTWEnv":
        raise InvalidInputError(
            f"env_type: expected 'AlfredTWEnv', got {env_type!r}; AlfredThorEnv and AlfredHybrid play in AI2-THOR and "
            "are in alfworld.agents.environment"
        )
    return AlfredTWEnv


class AlfredTWEnv:
    """The games that a config names, and the env that plays them.

    Args:
        config: the original's. Read are `dataset`: `data_path`, `eval_id_data_path`, `eval_ood_data_path`,
            `num_train_games`, `num_eval_games`; `env`: `task_types`, `domain_randomization`, `expert_type`;
            `general.training_method`, "dqn" or "dagger"; and its `training.max_nb_steps_per_episode`, below `rl` or
            `dagger`. Sentences of `goal_desc_human_anns_prob` are in the games or are not, as in the original.
        train_eval: "train", "eval_in_distribution" or "eval_out_of_distribution".

    Attributes:
        game_files: the files that are played, in the order in which the file system lists their folders; with
            `dataset.order: sorted`, a field of ours, in the order of their names, the same on every host.
        num_games: how many.

    Raises:
        InvalidInputError: a field is missing or out of range; its name is in the message.
        DataNotFoundError: the folder has no solvable game of these task types.
    """

    def __init__(self, config: dict[str, Any], train_eval: str = "train"):
        if train_eval not in _SPLITS:
            raise InvalidInputError(f"train_eval: expected one of {', '.join(_SPLITS)}, got {train_eval!r}")
        self.config, self.train_eval = config, train_eval
        self.collect_game_files()

    def collect_game_files(self, verbose: bool = False) -> None:
        """List the games anew, after the config was changed, say."""
        folder_field, count_field = _SPLITS[self.train_eval]
        folder = Path(os.path.expandvars(_field(self.config, "dataset", folder_field))).absolute()
        numbers = _field(self.config, "env", "task_types")
        if not numbers:
            raise InvalidInputError("config: env.task_types: expected at least one of 1 to 6, got none")
        types = {_NUMBERED[number - 1] for number in numbers if number in range(1, 7)}
        games = solvable_games(folder, types)
        if not games:
            raise DataNotFoundError(
                f"config: dataset.{folder_field}: no solvable game of {', '.join(sorted(types)) or 'no known type'} "
                f"below {str(folder)!r}; `alfworld-download` fetches the games"
            )
        order = self.config["dataset"].get("order", "walk")
        if order not in ("walk", "sorted"):
            raise InvalidInputError(f"config: dataset.order: expected walk or sorted, got {order!r}")
        if order == "sorted":
            games.sort()
        count = _field(self.config, "dataset", count_field)
        self.game_files = games[:count] if count > 0 else games
        self.num_games = len(self.game_files)

    def init_env(self, batch_size: int, has_expert: bool = True) -> BatchEnv:
        """Return the env that plays `batch_size` games at a time.

        Args:
            batch_size: games at a time.
            has_expert: False for no expert under `dagger` either.

        Raises:
            InvalidInputError: the training method is unknown, the expert, or `batch_size` is out of range.
        """
        method = _field(self.config, "general", "training_method")
        if method not in ("dqn", "dagger"):
            raise InvalidInputError(f"config: general.training_method: expected dqn or dagger, got {method!r}")
        above = "rl" if method == "dqn" else "dagger"
        is_training = self.train_eval == "train"
        shuffles = is_training and _field(self.config, "env", "domain_randomization")
        has_expert = has_expert and is_training and method == "dagger"
        return BatchEnv(
            self.game_files,
            batch_size,
            _field(self.config, above, "training", "max_nb_steps_per_episode"),
            expert_type=_field(self.config, "env", "expert_type") if has_expert else None,
            numbering=random if shuffles else None,
        )


def _field(config: dict[str, Any], *names: str) -> Any:
    value: Any = config
    for i, name in enumerate(names):
        try:
            value = value[name]
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"config: {'.'.join(names[: i + 1])} is missing") from error
    return value
