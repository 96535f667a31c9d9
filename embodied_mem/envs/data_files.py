"""The files of worlds: where they are installed, what they hold, and what converters find in publishers' folders.

    root = installed("eb_habitat")                  # $EMBODIED_MEM_DATA/eb_habitat, or None
    episodes = read_object(root / "base.json.xz")   # unpacked by the name's ending
    originals = Originals([Path("alfred"), Path("alfworld")])
    for path in originals.files("game.tw-pddl"):    # in any depth, each once, in order

A world's converter (`convert` of its card) takes the originals and a folder, writes the derived files there and returns
sentences: what it made, and what these files do not tell.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from embodied_mem.atomic_file import write_bytes
from embodied_mem.envs.checks import checked_path
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError
from embodied_mem.packed_file import read_packed

MAX_FILE_BYTES = 64 << 20
"""Unpacked size above which a file is refused; the largest of the worlds' own files has 2 MiB."""

MAX_JSON_VALUES = 1 << 21
"""Values in a JSON file above which it is refused: one takes up to 70 bytes and more in memory. The native readers have
the same limit (`csrc/core/json.h`); the largest of the worlds' own files has 170,000."""


def installed(world: str) -> Path | None:
    """Return the folder `$EMBODIED_MEM_DATA/<world>` where there is one, else None."""
    base = os.environ.get("EMBODIED_MEM_DATA")
    root = Path(base).absolute() / world if base else None
    return root if root is not None and os.path.isdir(root) else None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked.

    It is packed if its name ends in `.gz` or `.xz`.

    Raises:
        DataNotFoundError: there is no such file.
        GameFileError: it cannot be read or unpacked, or is larger than `MAX_FILE_BYTES`.
    """
    try:
        return read_packed(path, MAX_FILE_BYTES)
    except FileNotFoundError as error:
        raise DataNotFoundError(f"not installed: expected the file {path}") from error
    except InvalidInputError as error:
        raise GameFileError(str(error)) from error
    except OSError as error:
        raise GameFileError(f"{path}: cannot be read: {error}") from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, read by `read_bytes`.

    Raises:
        DataNotFoundError, GameFileError: as `read_bytes`, or it holds no JSON object.
    """
    content = read_bytes(path)
    if sum(map(content.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES:  # as many values as these, or fewer
        raise GameFileError(f"{path}: more than {MAX_JSON_VALUES} values, no file of this kind has as many")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise GameFileError(f"{path}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise GameFileError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def find_episodes(
    world: str,
    tasks: str | os.PathLike[str],
    names: Mapping[str, Sequence[str]],
    data: str | os.PathLike[str] | None = None,
    *,
    title: str,
) -> tuple[Path, Path]:
    """Return an episode file and its data folder.

    Args:
        world: whose installed data are looked through.
        tasks: a name, or an episode file.
        names: name -> the files of a data folder that may hold its episodes, best first.
        data: the data folder; None takes `$EMBODIED_MEM_DATA/<world>`, or for a file the folder it lies in.
        title: the world's name in messages.

    Raises:
        DataNotFoundError: the file is not there.
    """
    path, root = checked_path("tasks", tasks), None if data is None else checked_path("data", data)
    if str(tasks) not in names:
        if not os.path.isfile(path):
            raise DataNotFoundError(f"tasks: expected one of {', '.join(names)} or an episode file, got {str(tasks)!r}")
        return path, root or path.parent
    if (root := root or installed(world)) is None:
        raise DataNotFoundError(
            f"{title} is not installed: expected its files in $EMBODIED_MEM_DATA/{world}; docs/worlds/{world}.md says "
            "which files go there"
        )
    paths = [root / name for name in names[str(tasks)]]
    found = next(filter(os.path.isfile, paths), None)
    if found is None:
        raise DataNotFoundError(f"{title}: {str(tasks)!r} is not installed: expected {' or '.join(map(str, paths))}")
    return found, root


def read_episodes(path: Path) -> list[dict[str, Any]]:
    """Return the list of objects `episodes` in a JSON file.

    Raises as `read_object`.
    """
    episodes = read_object(path).get("episodes")
    if not isinstance(episodes, list) or not all(isinstance(episode, dict) for episode in episodes):
        raise GameFileError(f"{path}: 'episodes': expected a list of objects")
    return episodes


Read = TypeVar("Read")


def read_once(read: Callable[[Path], Read]) -> Callable[[Path], Read]:
    """Make a reader of files that reads once per change.

    It does so for each of the last four.
    """
    cached = functools.lru_cache(maxsize=4)(lambda path, stamp: read(path))

    def fresh(path: Path) -> Read:
        try:
            return cached(path, path.stat().st_mtime_ns)
        except OSError as error:
            raise GameFileError(f"{path}: cannot be read: {error}") from error

    return fresh


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
        """Return the first file with a name like `pattern`.

        Those with `near` in their path come before others.

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
