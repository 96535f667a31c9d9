"""Golden playthroughs: whole games as text, replayed line by line.

Write them anew after a change that is meant: `python tests/worlds/alfworld/test_playthrough.py`.
"""

from __future__ import annotations

import pathlib

import pytest

from embodied_mem.worlds.alfworld.env import Env
from embodied_mem.worlds.alfworld.generator import generate

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
GRAMMARS = ("0.4", "0.3")
ODD_COMMANDS = (
    "look",
    "inventory",
    "",
    "go to",
    "GO TO fridge 1",
    "examine  fridge 1",
    "take nothing from nowhere",
    "help",
)


def playthrough(grammar: str) -> str:
    """One generated game of each task type, solved, with odd commands in between, as text."""
    lines = []
    for number, generated in enumerate(generate(6, seed=3, num_scenes=12, split="valid")):
        env = Env(generated.load(), grammar)
        lines += [f"### {generated.task_id}", env.reset()]
        for step, command in enumerate(generated.walkthrough):
            if grammar == "0.3" and command.startswith("move "):
                command = command.replace("move ", "put ", 1).replace(" to ", " in/on ", 1)
            for given in (ODD_COMMANDS[(step + number) % len(ODD_COMMANDS)], command):
                answer = env.step(given)
                lines += [f"> {given}", answer if isinstance(answer, str) else str(answer[0])]
                lines.append(f"[score {env.score}, won {env.won}, progress {env.progress}]")
                lines.append(f"[{' | '.join(env.admissible_commands)}]")
        assert env.won, generated.task_id
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_games_are_played_as_recorded(grammar):
    recorded = (GOLDEN / f"alfworld_{grammar}.txt").read_text().split("\n")
    for number, (now, then) in enumerate(zip(playthrough(grammar).split("\n"), recorded, strict=True), 1):
        assert now == then, f"line {number} of alfworld_{grammar}.txt"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in GRAMMARS:
        (GOLDEN / f"alfworld_{name}.txt").write_text(playthrough(name))
