"""EB-Habitat's files: episodes converted to JSON (plain or .xz) or as the official pickles, found and read.

tasks = load_tasks("base")
records = load_records("base")  # the converted entries, in the same order
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embodied_mem.envs import data_files
from embodied_mem.envs.data_files import read_bytes, read_episodes, read_object
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.eb_habitat.conversion.episode_pickle import convert_episodes, load_pickle
from embodied_mem.worlds.eb_habitat.engine import ACTIONS as ACTIONS
from embodied_mem.worlds.eb_habitat.engine import Scenes, Task, read_tasks

SUBSETS = (
    "base",
    "common_sense",
    "complex_instruction",
    "spatial_relationship",
    "visual_appearance",
    "long_horizon",
    "train_validation",
)
"""EmbodiedBench's evaluation subsets, and the training-side episodes that come with it."""

_SUFFIXES = (".json", ".json.xz", ".pickle")


def find_episodes(tasks: str | os.PathLike[str], data: str | os.PathLike[str] | None = None) -> tuple[Path, Path]:
    """Return an episode file and the folder of `scenes.json` and `domain.json`.

    The file is that of one of `SUBSETS`, or the one named.

    Raises DataNotFoundError where the file is not installed.
    """
    names = {subset: [f"{subset}{ending}" for ending in _SUFFIXES] for subset in SUBSETS}
    return data_files.find_episodes("eb_habitat", tasks, names, data, title="EB-Habitat")


def _beside(root: Path, stem: str) -> Path | None:
    return next(filter(os.path.isfile, (root / f"{stem}{suffix}" for suffix in _SUFFIXES[:2])), None)


def load_scenes(root: str | os.PathLike[str]) -> Scenes:
    """Return the receptacles' boxes of a folder.

    They are in `scenes.json` or `scenes.json.xz`; there are none without such a file.

    Raises:
        GameFileError: the file is malformed.
    """
    path = _beside(Path(root), "scenes")
    return Scenes() if path is None else Scenes.from_text(read_bytes(path), str(path))


def load_categories(root: str | os.PathLike[str]) -> Mapping[str, str]:
    """Return category by asset, from `domain.json` or `domain.json.xz`; only pickles need it.

    Raises:
        DataNotFoundError: there is no such file.
        GameFileError: it is malformed.
    """
    path = _beside(Path(root), "domain")
    if path is None:
        raise DataNotFoundError(
            f"official pickles name no categories: expected domain.json or domain.json.xz with asset_to_category in "
            f"{root}; pass data=<folder>"
        )
    categories = read_object(path).get("asset_to_category")
    if not isinstance(categories, dict) or not all(isinstance(word, str) for word in categories.values()):
        raise GameFileError(f"{path}: 'asset_to_category': expected an object of strings")
    return categories


def load_records(tasks: str | os.PathLike[str], data: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Return the converted entries of an episode file; a pickle is converted.

    Raises:
        DataNotFoundError: the file, or what it needs, is not installed.
        GameFileError: it is malformed; the message names the file, the position and what was expected.
    """
    return _records(*find_episodes(tasks, data))


def _records(path: Path, root: Path) -> list[dict[str, Any]]:
    if path.suffix == ".pickle":
        content = load_pickle(read_bytes(path), str(path))
        return convert_episodes(content, load_categories(root), path.stem, str(path))
    return read_episodes(path)


def load_tasks(tasks: str | os.PathLike[str], data: str | os.PathLike[str] | None = None) -> list[Task]:
    """Return the tasks of a subset or an episode file, in order.

    The order is the file's.

    Those with `satisfied_at_start` belong in no score: their goal holds before anything is done.

    Raises:
        DataNotFoundError: the files are not installed.
        GameFileError: a file is malformed; the message names the file, the position and what was expected.
    """
    path, root = find_episodes(tasks, data)
    converted = path.suffix == ".pickle"  # JSON is read as it stands, for the positions in errors
    content = json.dumps({"episodes": _records(path, root)}).encode() if converted else read_bytes(path)
    return read_tasks(content, str(path), load_scenes(root))
