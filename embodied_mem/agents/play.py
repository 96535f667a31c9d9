"""A person as an agent: play a game in the terminal.

    embodied-mem play alfworld --tasks generated              # a new home by --seed: no data needed
    embodied-mem play alfworld --tasks valid_seen
    embodied-mem play eb_alfred --tasks base
    embodied-mem play alfworld --tasks path/to/game.tw-pddl --grammar 0.3
    embodied-mem play memento --tasks acquisition --task 0
    embodied-mem play scienceworld --tasks boil/dev           # needs the extra scienceworld; nothing else
    printf 'look\\ninventory\\n' | embodied-mem play alfworld --tasks valid_seen --task 3

Type a command as the game words it (`go to fridge 1`, `find a Fridge`, `Explore[kitchen_1]`). Lines that start with a
slash are for this program: `/help` lists them, `/commands` lists what can be done now, or where names are part of a
command its forms, `/undo` takes the last command back, `/progress` tells how much of the goal holds, `/restart` and
`/quit` do what they say. ScienceWorld's simulator cannot go back.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.rollout import DRAWN, rollout
from embodied_mem.envs import make
from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.registry import card, load, names

NUM_GENERATED = 20
"""Tasks of a generated home."""

HELP = """Type a command as the game words it, for instance one that /commands lists.
/commands   what can be done now, or its forms where names are part of a command
/progress   the goal, and how much of it holds
/quit       ends, not won"""
GOING_BACK = """
/undo       takes the last command back
/restart    begins the task again"""


class Person(Agent):
    """A person who types commands and sees more than agents do: admissible commands and progress.

    Args:
        envs: that are played, with one env.
        lines: what is typed; the game is given up when they end.
        output: where the game's text goes.
        prompt: written before each line is read.
        goes_back: whether the envs have snapshots.
    """

    def __init__(self, envs: Any, lines: Iterable[str], output: TextIO, prompt: str = "> ", goes_back: bool = True):
        self._envs, self._lines, self._output, self._prompt = envs, iter(lines), output, prompt
        self._goes_back = goes_back
        self._history: list[Any] = []  # snapshots, the first of them before any command

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._history, self._gave_up = [], False
        self._shown = f"[{info['task_id']}]\n{observation}"

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """Return the next line that is a command."""
        self._say(observation if self._history else self._shown)
        self._history.append(self._envs.snapshot(0) if self._goes_back else None)
        for line in self._lines:
            command = line.rstrip("\n")
            if command == "/quit":
                break
            if not command.startswith("/"):
                return command
            self._say(self._answer(command))
        self._gave_up = True
        return None

    def end(self, won: bool, observation: str) -> None:
        ending = "You won" if won else "The episode ended, not won,"
        text = f"{observation}\n\n{ending} after {len(self._history)} commands."
        print("\nThe game is not won." if self._gave_up else text, file=self._output)

    def _answer(self, command: str) -> str:
        """Carry out a line with a slash; return the answer."""
        if command in ("/undo", "/restart"):
            if not self._goes_back:
                return f"{command}: this world's simulator cannot go back; /quit, and begin again with --task"
            self._history = self._history[: -1 if command == "/undo" else 1] or self._history[:1]
            self._envs.restore(0, self._history[-1])
        observations, info = self._envs.answers()
        if command == "/commands":
            return "\n".join(
                info["admissible_commands"][0] if "admissible_commands" in info else self._envs.action_forms
            )
        if command == "/progress":
            return f"{info['progress'][0]:.0%} of the goal holds: {info['goal'][0]}"
        if command in ("/undo", "/restart"):
            return str(observations[0])
        if command == "/help":
            return HELP + GOING_BACK * self._goes_back
        return f"unknown: {command}; known: /help /commands /progress /quit" + " /undo /restart" * self._goes_back

    def _say(self, text: str) -> None:
        print(text.rstrip("\n"), end="\n\n", file=self._output)
        print(self._prompt, end="", file=self._output, flush=True)


def main(arguments: list[str] | None = None, prog: str = "python -m embodied_mem.agents.play") -> int:
    """Run the program and return its exit status.

    `prog` is how it is called.
    """
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("world", choices=names())
    parser.add_argument(
        "--tasks", help="a split, a folder or a file of games, or `generated` (default the world's own choice)"
    )
    parser.add_argument("--data", help="the world's data folder (default below $EMBODIED_MEM_DATA)")
    parser.add_argument("--task", type=int, help="index of the task among them; default one drawn with --seed")
    parser.add_argument("--grammar", choices=["0.4", "0.3"], help="ALFWorld's wording (default 0.4)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    try:
        tasks = args.tasks or getattr(load(args.world, "env"), "default_tasks", None) or None
        options: dict[str, Any] = {"tasks": tasks, "data": args.data}
        if args.tasks == "generated":
            if not card(args.world).generated:
                raise InvalidInputError(
                    f"--tasks generated: expected one of {', '.join(names('generated'))}, got {args.world!r}, whose "
                    f"homes are not made here; `embodied-mem data {args.world}` says what it takes"
                )
            options |= load(args.world, "generated")(NUM_GENERATED, args.seed)
        options = {name: value for name, value in (options | {"grammar": args.grammar}).items() if value is not None}
        envs = make(args.world, num_envs=1, seed=args.seed, max_steps=None, **options)
        with contextlib.closing(envs):
            if args.task is not None and not 0 <= args.task < envs.num_tasks:
                raise InvalidInputError(
                    f"--task: expected 0 to {envs.num_tasks - 1} for {args.world} with --tasks {tasks}, got "
                    f"{args.task}; without --task, --seed draws one"
                )
            person = Person(envs, sys.stdin, sys.stdout, goes_back=card(args.world).native)
            rollout(envs, [person], [[DRAWN if args.task is None else args.task]])
    except EmbodiedMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
