"""Which game files the original plays, in its order, and games whose things are numbered anew.

files = solvable_games(Path("json_2.1.1/train"), {"look_at_obj_in_light"})
game = renumbered(files[0], random.Random(0))
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from embodied_mem.errors import GameFileError
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.env import GAME_FILE

_SOLVABLE = re.compile(rb'"solvable"\s*:\s*true\b')
_ID = re.compile(r"(?<![\w.+-])[\w.+-]+_bar_[\w.+-]+")


class Shuffles(Protocol):
    """What `random` and `random.Random` have."""

    def shuffle(self, x: list[str], /) -> None: ...


def solvable_games(folder: Path, task_types: Collection[str]) -> list[str]:
    """Return the files below a folder that the original would play, in the order in which it lists them.

    That is the order of `os.walk` from below, the file system's. The type of a task is that of `traj_data.json` beside
    the game; without that file, which the original asks for, that of the folder's name.
    """
    files = []
    for root, _, names in os.walk(folder, topdown=False):
        if GAME_FILE not in names or "movable" in root or "Sliced" in root:
            continue
        if "traj_data.json" in names:
            task_type = json.loads(Path(root, "traj_data.json").read_bytes()).get("task_type")
        else:
            task_type = Path(root).parent.name.split("-")[0]
        path = os.path.join(root, GAME_FILE)
        if task_type in task_types and _is_solvable(Path(path).read_bytes()):
            files.append(path)
    return files


def _is_solvable(content: bytes) -> bool:
    """Return whether a game file says so; much faster than parsing its texts, in which a quote has a backslash."""
    return any(content[found.start() - 1 : found.start()] != b"\\" for found in _SOLVABLE.finditer(content))


def renumbered(path: str, numbering: Shuffles) -> Game:
    """Return a game in which the numbers of things of one name are dealt anew.

    What was "cup 1" may be "cup 3". The original shuffles these numbers alone; here things of one name are also
    listed in the order of their new numbers.

    Raises:
        GameFileError: the file is no game.
    """
    text = Path(path).read_bytes()
    Game.from_text(text, path)  # refuses what is no game, and says where
    data = json.loads(text)
    problem = data["pddl_problem"].lower()
    ids: dict[str, list[str]] = {}
    for name in sorted(set(_ID.findall(problem))):
        ids.setdefault(name.split("_bar_")[0] + "basin" * ("basin" in name), []).append(name)
    renamed: dict[str, str] = {}
    for before in ids.values():
        after = list(before)
        numbering.shuffle(after)
        renamed.update(zip(before, after))
    data["pddl_problem"] = _ID.sub(lambda found: renamed[found[0]], problem)
    try:
        return Game.from_text(json.dumps(data).encode(), path)
    except GameFileError as error:
        raise GameFileError(f"{error} (after its things were numbered anew)") from error
