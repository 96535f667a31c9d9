"""Configurations by name: each file holds one, and its docstring records what it gave.

config = load("grpo_cpu")
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import pathlib
import sys
from typing import Any

from embodied_mem import registry
from embodied_mem.errors import InvalidInputError
from embodied_mem.training.config import Config


def names() -> list[str]:
    """Return the names of all configurations of training."""
    files = pathlib.Path(__file__).parent.glob("*.py")
    return sorted(p.stem for p in files if not p.stem.startswith("_"))


def load(name: str) -> Config:
    """Return the configuration called `name`.

    Those of worlds were called `eb_alfred_train` and so on.

    Raises:
        InvalidInputError: there is none; the message lists them.
    """
    name = name.removesuffix("_train")  # as the commands of older results have it
    if name not in names() and name in registry.names("benchmark"):
        raise InvalidInputError(f"--config: {name} trains nothing; run: python experiments/evaluate.py --config={name}")
    if name not in names():
        raise InvalidInputError(f"--config: expected one of {', '.join(names())}, got {name!r}")
    return importlib.import_module(f"{__name__}.{name}").config()


def describe(name: str) -> str:
    """Return the docstring of the configuration called `name`."""
    return importlib.import_module(f"{__name__}.{name}").__doc__ or ""


def cli(arguments: list[str], description: str):
    """Return (options, config) of a command line.

    It has `--config NAME`, options of the script, any field as `--part.field VALUE`. `--help` lists every field with
    its default. An unknown field is an error that lists what is close.
    """
    if not arguments:
        print(
            f"{description}\nConfigs: {', '.join(names())}\n\n"
            "  python experiments/train.py --config=grpo_cpu            # trains\n"
            "  python experiments/train.py --config=grpo_cpu --help     # lists every option and field"
        )
        sys.exit(2)
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config", default="grpo_cpu")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--topology", default="")
    parser.add_argument("--unchecked", action="store_true")
    parser.add_argument("--run_dir", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ray", default="")
    parser.add_argument("--teacher", choices=("rules", "chat"), default="rules")
    for option in ("server", "model", "record", "executor"):
        parser.add_argument(f"--teacher_{option}", default="")
    options, rest = parser.parse_known_args(arguments)
    if (options.compile and not options.plan) or (options.topology and not options.compile):
        raise InvalidInputError("--compile, --topology: expected --plan --compile [--topology v5e:4x4]; nothing is run")
    text = (
        f"{description}\nOptions besides the fields below:\n  --config NAME   one of {', '.join(names())}\n"
        "  --plan          print memory and sharding per device, then stop\n"
        "  --compile       with --plan: also what XLA's compiler says, in minutes\n"
        "  --topology v5e:4x4  with --compile: by the compiler for TPUs (pip install -e '.[tpu]'); needs no chip\n"
        "  --unchecked     go on where something is missing, or where a frozen executor cannot play\n"
        "  --run_dir DIR   where the run is kept\n"
        "  --json          end with the result as one line of JSON\n"
        "  --ray ADDRESS   cluster whose hosts play the teacher's episodes: auto, HOST:PORT, local\n"
        "  --teacher NAME  rules, or chat: the model --teacher_model behind the OpenAI-compatible --teacher_server;\n"
        "                  its answers are kept in the file --teacher_record, which alone replays them\n"
        "  --teacher_executor MODEL  at that server: acts on the guidance; only what it wins is taught\n\n"
        f"{options.config}: {describe(options.config) if options.config in names() else ''}"
    )
    default = load(options.config)
    if (options.teacher == "chat") != bool(options.teacher_model):
        raise InvalidInputError(
            "--teacher: expected chat with --teacher_model, and --teacher_server or --teacher_record, or none of them"
        )
    if options.ray and (options.teacher == "chat" or options.teacher_executor):
        raise InvalidInputError("--ray: expected the teacher rules; a chat model's server is one place anyway")
    models = {"teacher": options.teacher_model or default.data.teacher, "executor": options.teacher_executor}
    default = dataclasses.replace(default, data=dataclasses.replace(default.data, **models))
    try:
        import tyro
    except ImportError:
        if not {"-h", "--help"} & set(rest):
            raise
        print(f"{text}\n\nFields and their defaults here:\n{fields_of(default)}")
        sys.exit()
    return options, tyro.cli(Config, args=rest, default=default, description=text)


def fields_of(config: Any, part: str = "") -> str:
    """Return a configuration's fields with their values, a line each.

    They stand as on the command line.
    """
    lines = []
    for field in dataclasses.fields(config):
        name, value = f"{part}{field.name}", getattr(config, field.name)
        nested = dataclasses.is_dataclass(value)
        lines.append(fields_of(value, f"{name}.") if nested else f"  --{name} {value!r}")
    return "\n".join(lines)
