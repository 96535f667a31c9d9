"""Play a game in the terminal.

    python -m embodied_mem.play alfworld --tasks valid_seen
    python -m embodied_mem.play eb_alfred --tasks base
    python -m embodied_mem.play alfworld --tasks path/to/game.tw-pddl --grammar 0.3
    python -m embodied_mem.play memento --tasks acquisition --task 0
    printf 'look\\ninventory\\n' | python -m embodied_mem.play alfworld --tasks valid_seen --task 3

Type a command as the game words it (`go to fridge 1`, `find a Fridge`, `Explore[kitchen_1]`). Lines that start with a
slash are for this program: `/commands` lists what can be done now, or where names are part of a command its forms,
`/undo` takes the last command back, `/progress` tells how much of the goal holds, `/restart` and `/quit` do what they
say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TextIO

from embodied_mem.envs import WORLDS, make
from embodied_mem.envs.registry import world_class
from embodied_mem.errors import EmbodiedMemError


def play(envs, task: int | None, lines: Iterable[str], output: TextIO, prompt: str = "> ") -> bool:
    """Play one episode of a vector env with one env and return whether it was won.

    Args:
        envs: a vector env with `num_envs` 1.
        task: index of the task; None for the first one drawn.
        lines: commands, one a line; the game ends when it is won or when they do.
        output: where the game's text goes.
        prompt: written before each command is read.
    """
    options = {} if task is None else {"task_indices": [task]}
    observations, info = envs.reset(options=options)
    first = envs.snapshot(0)
    history = [first]

    def say(text: str) -> None:
        print(text.rstrip("\n"), end="\n\n", file=output)
        print(prompt, end="", file=output, flush=True)

    say(f"[{info['task_id'][0]}]\n{observations[0]}")
    for line in lines:
        command = line.rstrip("\n")
        if command == "/quit":
            break
        if command == "/commands":
            say("\n".join(info["admissible_commands"][0] if "admissible_commands" in info else envs.action_forms))
        elif command == "/progress":
            say(f"{info['progress'][0]:.0%} of the goal holds: {info['goal'][0]}")
        elif command in ("/undo", "/restart"):
            history = history[:-1] if command == "/undo" and len(history) > 1 else [first]
            envs.restore(0, history[-1])
            observations, info = envs.answers()
            say(observations[0])
        elif command.startswith("/"):
            say(f"unknown: {command}; known: /commands /undo /progress /restart /quit")
        else:
            observations, _, terminations, _, info = envs.step([command])
            history.append(envs.snapshot(0))
            if terminations[0]:
                ending = "You won" if info["won"][0] else "The episode ended, not won,"
                print(f"{observations[0]}\n\n{ending} after {len(history) - 1} commands.", file=output)
                return bool(info["won"][0])
            say(observations[0])
    print("\nThe game is not won.", file=output)
    return False


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m embodied_mem.play", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("world", choices=sorted(WORLDS))
    parser.add_argument("--tasks", help="a split, a folder or a file of games (default the world's own choice)")
    parser.add_argument("--data", help="the world's data folder (default below $EMBODIED_MEM_DATA)")
    parser.add_argument("--task", type=int, help="index of the task among them; default one drawn with --seed")
    parser.add_argument("--grammar", choices=["0.4", "0.3"], help="ALFWorld's wording (default 0.4)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    try:
        options = {"tasks": args.tasks or world_class(args.world).default_tasks, "data": args.data}
        options = {name: value for name, value in (options | {"grammar": args.grammar}).items() if value is not None}
        envs = make(args.world, num_envs=1, seed=args.seed, max_steps=None, **options)
        play(envs, args.task, sys.stdin, sys.stdout)
    except EmbodiedMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
