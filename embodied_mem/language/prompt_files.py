"""Reads prompts, which are text files in a folder `prompts/` beside the code that uses them.

from embodied_mem.language.prompt_files import prompt

text = prompt("embodied_mem.agents.planner_critic", "plan")      # .../planner_critic/prompts/plan.txt
"""

from __future__ import annotations

import importlib.resources

from ..errors import InvalidInputError


def prompt(package: str, name: str) -> str:
    """Return the text of a package's `prompts/<name>.txt`, stripped.

    Raises:
        InvalidInputError: there is none; the known ones are listed.
    """
    folder = importlib.resources.files(package) / "prompts"
    file = folder / f"{name}.txt"
    if not file.is_file():
        known = sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.name.endswith(".txt"))
        raise InvalidInputError(f"prompt: expected one of {', '.join(known)}, got {name!r}")
    return file.read_text(encoding="utf-8").strip()
