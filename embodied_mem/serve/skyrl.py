"""Worlds as environments of SkyRL: an env class for its registry, and a writer of its dataset.

    python -m embodied_mem.serve.skyrl alfworld train.parquet --num_tasks 2000 --options '{"tasks": "train"}'

    import embodied_mem.serve.skyrl             # registers the env class "embodied_mem", which the rows name
    # then SkyRL's own entry point, with data.train_data="['train.parquet']" and environment.env_class=embodied_mem

A row is a task: the world, its options, a seed, the system prompt. The env's first text is appended to the prompt. A
reply's command is its `<action>…</action>`, else its last line.

Needs `pip install skyrl-gym`; the writer needs `pip install pyarrow`, too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.envs.checks import MAX_STEPS, checked_count, checked_seed
from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError, MissingDependencyError
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.serve.replies import SYSTEM_PROMPT, command_of, prompt_of
from embodied_mem.serve.world_options import json_object

try:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as error:
    raise MissingDependencyError(f"skyrl-gym is not installed ({error}); run: pip install skyrl-gym") from error

ENV_CLASS = "embodied_mem"

Messages = list[dict[str, str]]


class SkyRLWorld(BaseTextEnv):
    """One episode of a world; envs of different threads are independent.

    Args:
        env_config: unused.
        extras: the row: `extra_info` with `world`, `options` (an object or its JSON) and `seed`; SkyRL adds
            `max_turns`, steps after which the episode ends; None or 0 is no limit.

    Raises:
        InvalidInputError: `extra_info` lacks a field, the world or one of its options is unknown.
    """

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None):
        super().__init__()
        extras = extras or {}
        row = extras.get("extra_info") or {}
        fields = {"world", "options", "seed"}
        if missing := fields - set(row) if isinstance(row, Mapping) else fields:
            raise InvalidInputError(f"extras: expected extra_info with world, options and seed; {sorted(missing)} lack")
        self.max_turns = checked_count("max_turns", extras["max_turns"], MAX_STEPS) if extras.get("max_turns") else 0
        self._seed = checked_seed(row["seed"])
        self._env = TextEnv(row["world"], **_options(row["options"]))
        self._info: dict[str, Any] = {}

    def init(self, prompt: Messages) -> tuple[Messages, dict[str, Any]]:
        """Start the episode.

        Returns the prompt with the first text, and `{"task_id": ...}`.
        """
        if prompt is None or isinstance(prompt, str):
            raise InvalidInputError(f"prompt: expected a list of messages, got {prompt!r}")
        text, self._info = self._env.reset(seed=self._seed)
        self.turns = 0
        return [*prompt, _message(text, self._info)], {"task_id": self._info["task_id"]}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Play the command of a reply.

        Returns:
            `observations` (one message, none at the end), `reward` (float), `done`, `metadata` (`command`, `won`).
        """
        if not isinstance(action, str):
            raise InvalidInputError(f"action: expected a str, got {type(action).__name__}")
        command = command_of(action)
        text, reward, terminated, truncated, self._info = self._env.step(command)
        self.turns += 1
        done = terminated or truncated or 0 < self.max_turns <= self.turns
        return BaseTextEnvStepOutput(
            observations=[] if done else [_message(text, self._info)],
            reward=reward,
            done=done,
            metadata={"command": command, "won": bool(self._info["won"])},
        )

    def get_metrics(self) -> dict[str, Any]:
        """Report `won` and `progress` (0 to 1) and `steps` of the episode."""
        return {
            "won": float(self._info.get("won", 0)),
            "progress": float(self._info.get("progress", 0)),
            "steps": float(self.turns),
        }

    def close(self) -> None:
        """End what the world runs."""
        self._env.close()


def rows(world: str, num_tasks: int, first_seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    """List a dataset's rows: one task per seed from `first_seed` on."""
    try:
        text = json.dumps(options)
    except TypeError as error:
        raise InvalidInputError(f"options: expected JSON, so tasks by name or file: {error}") from error
    return [
        {
            "data_source": f"embodied_mem/{world}",
            "prompt": [{"role": "system", "content": SYSTEM_PROMPT}],
            "env_class": ENV_CLASS,
            "reward_spec": {"method": "rule", "ground_truth": ""},
            "extra_info": {"world": world, "options": text, "seed": seed},
        }
        for seed in range(first_seed, first_seed + num_tasks)
    ]


def write_dataset(path: str | os.PathLike[str], dataset: list[dict[str, Any]]) -> None:
    """Write the rows of a dataset as a parquet file."""
    try:
        pandas: Any = importlib.import_module("pandas")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        pandas.DataFrame(dataset).to_parquet(path)
    except ImportError as error:
        raise MissingDependencyError(f"{error}; run: pip install pandas pyarrow") from error


def _options(value: Any) -> dict[str, Any]:
    """Read a row's options, JSON or what it was read to."""
    try:
        options = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidInputError(f"options: expected JSON, got {value!r} ({error})") from error
    if not isinstance(options, dict):
        raise InvalidInputError(f"options: expected an object, got {value!r}")
    return options


def _message(text: str, info: dict[str, Any]) -> dict[str, str]:
    return {"role": "user", "content": prompt_of(text, info)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a dataset (the command line of this module)."""
    parser = argparse.ArgumentParser(
        prog="python -m embodied_mem.serve.skyrl", description="Writes a dataset of tasks."
    )
    parser.add_argument("world")
    parser.add_argument("file", type=output_file, help="the parquet file")
    parser.add_argument("--num_tasks", type=int, default=1000)
    parser.add_argument("--first_seed", type=int, default=0)
    parser.add_argument("--options", type=json_object, default={}, help='of the world, as JSON: \'{"tasks": "train"}\'')
    args = parser.parse_args(arguments)
    if args.num_tasks < 1:
        parser.error("--num_tasks: expected at least 1")
    TextEnv(args.world, **args.options).close()  # refuses unknown worlds and options before anything is written
    write_dataset(args.file, rows(args.world, args.num_tasks, args.first_seed, **args.options))
    print(f"{args.num_tasks} tasks of {args.world} in {args.file}")


if ENV_CLASS not in skyrl_gym.envs.registration.registry:
    skyrl_gym.register(id=ENV_CLASS, entry_point=f"{__name__}:SkyRLWorld")

if __name__ == "__main__":
    run(main)
