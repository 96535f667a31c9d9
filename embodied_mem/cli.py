"""The command `embodied-mem`.

    embodied-mem play alfworld --tasks valid_seen           # play a world in the terminal
    embodied-mem evaluate --config=alfworld --agents full   # score agents, or compare two results
    embodied-mem doctor                                     # what is installed, what is missing, what mends it

`embodied-mem COMMAND --help` says what a command takes. `play`, `doctor` and agents by rules need no extra.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Callable, Sequence

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.registry import load, names

BASE = ("numpy", "gymnasium", "embodied_mem._native")
"""Without these nothing works."""


def play(arguments: Sequence[str]) -> int:
    """`embodied-mem play`."""
    from embodied_mem.agents import play

    return play.main(list(arguments), prog="embodied-mem play")


def evaluate(arguments: Sequence[str]) -> int:
    """`embodied-mem evaluate`."""
    from embodied_mem.evaluation.evaluate import main

    main(arguments, prog="embodied-mem evaluate")
    return 0


def doctor(arguments: Sequence[str]) -> int:
    """`embodied-mem doctor`: 1 if something is missing without which nothing works, else 0."""
    about = "Says what is installed, which extras and data are missing, and what mends each."
    argparse.ArgumentParser(prog="embodied-mem doctor", description=about).parse_args(list(arguments))
    print(f"embodied_mem {_version('embodied_mem')}, Python {platform.python_version()}, {platform.machine()}\n")
    missing = [name for name in BASE if not _is_installed(name)]
    for name in BASE:
        print(f"  {'missing' if name in missing else 'ok':8} {name}")
    if missing:
        print("           mend: pip install --force-reinstall embodied_mem, or in a clone: pip install -e .")
        return 1
    print("\nExtras:")
    for extra, packages in _extras().items():
        absent = [name for name in packages if not _is_installed(name)]
        print(f"  {'missing' if absent else 'ok':8} {extra}" + (f": {', '.join(absent)}" if absent else ""))
        if absent:
            print(f'           mend: pip install "embodied_mem[{extra}]", or in a clone: pip install -e ".[{extra}]"')
    print("\nWorlds, with the tasks that they take by default:")
    for world in names("env"):
        wrong = _wrong_with(world)
        print(f"  {'missing' if wrong else 'ok':8} {world}")
        if wrong:
            print(f"           {wrong}")
    return 0


def _extras() -> dict[str, list[str]]:
    """Extra -> modules of others that it installs."""
    from embodied_mem.evaluation.command import EXTRA_OF

    extras: dict[str, list[str]] = {}
    for module, extra in EXTRA_OF.items():
        extras.setdefault(extra, []).append(module)
    return extras


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed as a package)"


def _wrong_with(world: str) -> str:
    """Why a world cannot be played, as its own error says it; empty if it can."""
    from embodied_mem.envs import make

    try:
        tasks = load(world, "env").default_tasks
        envs = make(world, tasks=tasks, num_envs=1)
        if hasattr(envs, "close"):
            envs.close()
    except (EmbodiedMemError, ImportError) as error:
        return str(error)
    return ""


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"play": play, "evaluate": evaluate, "doctor": doctor}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="embodied-mem", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=list(COMMANDS))
    return COMMANDS[parser.parse_args(given[:1]).command](given[1:])


def run() -> None:
    """The console script: an error of the caller's is one line."""
    from embodied_mem.evaluation.command import run

    run(lambda: sys.exit(main()))


if __name__ == "__main__":
    run()
