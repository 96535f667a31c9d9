"""Configurations by name: each file holds one, and its docstring records what it gave.

config = load("grpo_cpu")
"""

from __future__ import annotations

import importlib
import pathlib

from embodied_mem.errors import InvalidInputError
from embodied_mem.training.config import Config

EVALUATIONS = ("memento", "eb_alfred", "eb_habitat", "scienceworld")
"""Configurations of `evaluate.py`, which train nothing."""


def names() -> list[str]:
    """The names of all configurations of training."""
    files = pathlib.Path(__file__).parent.glob("*.py")
    return sorted(p.stem for p in files if not p.stem.startswith("_") and p.stem not in EVALUATIONS)


def load(name: str) -> Config:
    """The configuration called `name`.

    Raises:
        InvalidInputError: there is none; the message lists them.
    """
    if name in EVALUATIONS:
        raise InvalidInputError(f"--config: {name} trains nothing; run: python experiments/evaluate.py --config={name}")
    if name not in names():
        raise InvalidInputError(f"--config: expected one of {', '.join(names())}, got {name!r}")
    return importlib.import_module(f"experiments.configs.{name}").config()


def describe(name: str) -> str:
    """The docstring of the configuration called `name`."""
    return importlib.import_module(f"experiments.configs.{name}").__doc__ or ""


def cli(arguments: list[str], description: str):
    """(options, config) of a command line: `--config NAME`, options of the script, any field as `--part.field VALUE`.

    `--help` lists every field with its default. An unknown field is an error that lists what is close.
    """
    import argparse

    import tyro

    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config", default="grpo_cpu")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--run_dir", default="")
    options, rest = parser.parse_known_args(arguments)
    text = (
        f"{description}\nOptions besides the fields below:\n  --config NAME   one of {', '.join(names())}\n"
        "  --plan          print memory and sharding per device, then stop\n"
        "  --compile       with --plan: also what XLA's compiler says, in minutes\n"
        "  --run_dir DIR   where the run is kept\n\n"
        f"{options.config}: {describe(options.config) if options.config in names() else ''}"
    )
    config = tyro.cli(Config, args=rest, default=load(options.config), description=text)
    return options, config
