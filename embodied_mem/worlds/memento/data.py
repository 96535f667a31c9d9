"""MEMENTO's files: houses, captions, episodes, found and read.

tasks = load_tasks("acquisition")
records = load_records("acquisition")  # the official entries, metadata included, in the same order
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embodied_mem.envs import data_files
from embodied_mem.envs.checks import checked_path
from embodied_mem.envs.data_files import installed, read_bytes, read_episodes, read_object, read_once
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.memento.engine import Houses, Task, read_tasks

STAGES = {
    "acquisition": "memory_acquisition_stage",
    "single": "single_memory_utilization_stage",
    "joint": "joint_memory_utilization_stage",
}
"""Stage names, and the stems of their episode files."""

BENCHMARK_SCENES = (
    "102816756", "102817140", "103997895_171031182", "104348010_171512832",
    "106366386_174226770", "106878915_174887025", "106878960_174887073", "107733960_175999701",
)  # fmt: skip
"""The benchmark's houses at hand, eight of its twelve. Nothing is fitted on PARTNR's training episodes of these."""

DEVELOPMENT_SCENES = BENCHMARK_SCENES[:4]
"""Houses in which agents are tuned and failures read; docs/worlds/memento.md says what was seen of the others."""


def find_episodes(tasks: str | os.PathLike[str], data: str | os.PathLike[str] | None = None) -> tuple[Path, Path]:
    """Return the episode file and its folder of scenes and captions.

    `tasks` is one of `STAGES` or a file. Raises DataNotFoundError where the stage or the houses are not installed.
    """
    names = {stage: [f"episodes/{stem}{ending}" for ending in (".json.gz", ".json")] for stage, stem in STAGES.items()}
    path, root = data_files.find_episodes("memento", tasks, names, data, title="MEMENTO")
    near = [path.parent, path.parent.parent, *filter(None, [installed("memento")])]
    return path, _with_houses([root] if data is not None else near)


def find_houses(data: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder with `scenes.json` and `captions.json`.

    It is `data` or `$EMBODIED_MEM_DATA/memento`, with or without episodes. Raises DataNotFoundError where they are
    not there.
    """
    return _with_houses([checked_path("data", data)] if data is not None else [*filter(None, [installed("memento")])])


def _with_houses(roots: Sequence[Path]) -> Path:
    for root in roots:
        if os.path.isfile(root / "scenes.json") and os.path.isfile(root / "captions.json"):
            return root
    places = ", ".join(map(str, roots)) or "$EMBODIED_MEM_DATA/memento"
    raise DataNotFoundError(f"no scenes.json and captions.json in {places}; pass data=<folder>")


@read_once
def _houses(path: Path) -> Houses:
    return Houses.from_text(read_bytes(path), str(path))


def load_houses(root: str | os.PathLike[str]) -> Houses:
    """Return a data folder's houses, cached by change. Raises GameFileError."""
    return _houses(Path(root) / "scenes.json")


def load_scenes(root: str | os.PathLike[str]) -> dict[str, Any]:
    """Read `scenes.json`: houses by scene id. Raises GameFileError."""
    return read_object(Path(root) / "scenes.json")


def load_captions(root: str | os.PathLike[str]) -> list[tuple[str, str, str | None]]:
    """Return (template, category, caption or None) of all objects, cached by change.

    Raises:
        GameFileError: `captions.json` is malformed.
    """
    return list(_captions(Path(root) / "captions.json"))


@read_once
def _captions(path: Path) -> tuple[tuple[str, str, str | None], ...]:
    rows = []
    for template, entry in read_object(path).items():
        category = entry.get("category") if isinstance(entry, dict) else None
        caption = entry.get("caption") if isinstance(entry, dict) else None
        if not isinstance(category, str) or not isinstance(caption, str | None):
            raise GameFileError(
                f"{path}: {template!r}: expected a category (str) and a caption (str or null), got {entry!r}"
            )
        rows.append((template, category, caption))
    return tuple(rows)


def load_tasks(
    tasks: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    text_places: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Task]:
    """Return the ordered tasks of a stage or an episode file.

    Args:
        tasks, data: as for `find_episodes`.
        text_places: {episode id: {object name: furniture or floor}} where observations place an unmoved object
            elsewhere than on the piece it starts on (the original does so for 22 of 754 objects).

    Raises:
        DataNotFoundError: the files are not installed.
        GameFileError: a file is malformed; the message names the file, the line and what was expected.
    """
    path, root = find_episodes(tasks, data)
    places = {episode: dict(entry) for episode, entry in (text_places or {}).items()}
    return read_tasks(read_bytes(path), str(path), load_houses(root), load_captions(root), places)


def load_records(tasks: str | os.PathLike[str], data: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Return an episode file's official entries with their `metadata`."""
    return read_episodes(find_episodes(tasks, data)[0])


def tasks_of(
    records: Sequence[Mapping[str, Any]],
    root: str | os.PathLike[str],
    captions: Sequence[tuple[str, str, str | None]] | None = None,
) -> list[Task]:
    """Return the tasks of given entries in the houses of `root`.

    Args:
        captions: as `load_captions` gives them; None for those of `root`.

    Raises:
        GameFileError: an entry is malformed.
    """
    content = json.dumps({"episodes": list(records)}).encode()
    return read_tasks(
        content, "<records>", load_houses(root), load_captions(root) if captions is None else captions, {}
    )


def related_ids(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of an entry's needed acquisition episodes, in order."""
    related = record["metadata"]["related_episode_id"]
    return (str(related),) if isinstance(related, str | int) else tuple(map(str, related))
