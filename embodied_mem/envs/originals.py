"""What a publisher's files look like on a user's disk: found by name in folders, read and written by converters.

    originals = Originals([Path("alfred"), Path("alfworld")])
    for path in originals.files("game.tw-pddl"):        # in any depth, each once, in order
        ...
    write_json(target / "splits.json", splits)

A world's converter (`convert` of its card) takes the originals and a folder, writes the derived files there and returns
sentences: what it made, and what these files do not tell.
"""

from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from embodied_mem.atomic_file import write_bytes
from embodied_mem.errors import DataNotFoundError, InvalidInputError

Converter = Callable[["Originals", Path], list[str]]
"""(the originals, the folder for the derived files, which exists) -> what was made and what is missing."""

_SKIPPED = {".git", "__pycache__", "high_res_images", "raw_images", "node_modules"}


class Originals:
    """The folders that a user named."""

    def __init__(self, folders: Sequence[str | os.PathLike[str]]):
        """Walk the folders once. Raises InvalidInputError for what is no folder."""
        self.folders = [Path(folder) for folder in folders]
        for folder in self.folders:
            if not os.path.isdir(folder):
                raise InvalidInputError(f"--from: expected a folder with publishers' files, got {str(folder)!r}")
        self._by_name: dict[str, list[Path]] = {}
        for top in self.folders:
            for inner, below, names in os.walk(top):
                below[:] = sorted(set(below) - _SKIPPED)
                for name in names:
                    self._by_name.setdefault(name, []).append(Path(inner) / name)

    def files(self, *patterns: str) -> list[Path]:
        """Paths of all files with a name like one of `patterns`, sorted."""
        names = {name for pattern in patterns for name in fnmatch.filter(self._by_name, pattern)}
        return sorted(path for name in names for path in self._by_name[name])

    def one(self, pattern: str, what: str, near: str = "") -> Path:
        """The first file with a name like `pattern`, those with `near` in their path before others.

        Raises:
            DataNotFoundError: there is none; `what` says what it is and who publishes it.
        """
        found = self.files(pattern)
        if not found:
            raise DataNotFoundError(f"no {pattern} in {', '.join(map(str, self.folders))}: {what}")
        return next((path for path in found if near in path.as_posix()), found[0])


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file whole; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, json.dumps(value, separators=(",", ":")).encode())
