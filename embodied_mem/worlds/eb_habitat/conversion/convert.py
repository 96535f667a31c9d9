"""Makes EB-Habitat's files from what their publishers give: `<subset>.json.xz`, `domain.json`, `scenes.json`.

    convert(Originals([Path("EmbodiedBench"), Path("ml-llarp")]), Path("data/eb_habitat"))

Read are, wherever they lie in the folders:

- the episodes: `<subset>.pickle` of EmbodiedBench or of Language Rearrangement (apple/ml-llarp), without running
  anything in them; or the same dataset class's JSON (`<subset>.json`, `.json.gz`), as habitat-lab stores episodes;
- `dataset.yaml` of Language Rearrangement (`llarp/dataset/configs`): which asset is of which category. Its lists under
  `object_sets` are read, line by line; no YAML library is needed.

Where receptacles are is taken from the objects that start on them: `receptacle_boxes_from_objects`, the box that these
span in all episodes of a scene. Needs no mesh and no scene file; the real box is larger.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from embodied_mem.atomic_file import write_bytes
from embodied_mem.envs.data_files import Originals, read_bytes, read_object, write_json
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.progress import counted
from embodied_mem.worlds.eb_habitat.conversion.episode_pickle import convert_episodes, load_pickle
from embodied_mem.worlds.eb_habitat.data import SUBSETS

_ALL = "CLUTTER_OBJECTS"
"""The set of every object, which is no category."""

_NAME = re.compile(r"(\s*)- name: \"?([^\"#]*[^\"#\s])\"?\s*$")
_ENTRY = re.compile(r"\s*- \"?([^\"#]*[^\"#\s])\"?\s*$")


def convert(originals: Originals, target: Path) -> list[str]:
    """Write the derived files.

    Returns what was made and what these originals do not tell.

    Raises:
        DataNotFoundError: there is no episode file, or no `dataset.yaml`.
        GameFileError: a file is malformed; the message names it and the place.
    """
    wanted = [f"{subset}{ending}" for subset in SUBSETS for ending in (".pickle", ".json.gz", ".json")]
    files = {name: originals.files(name) for name in wanted}
    if not any(files.values()):
        where = ", ".join(map(str, originals.folders))
        raise DataNotFoundError(
            f"no episodes in {where}: expected base.pickle and others; see docs/worlds/eb_habitat.md"
        )
    categories = asset_categories(_object_sets(originals))
    boxes: dict[str, dict[str, list[list[float]]]] = {}
    said = []
    for subset in counted(SUBSETS, "episodes", "subset"):
        paths = [path for ending in (".pickle", ".json.gz", ".json") for path in files[f"{subset}{ending}"]]
        if not paths:
            continue
        data = (
            load_pickle(read_bytes(paths[0]), str(paths[0])) if paths[0].suffix == ".pickle" else as_pickled(paths[0])
        )
        episodes = convert_episodes(data, categories, subset, str(paths[0]))
        for episode in episodes:
            of_scene = boxes.setdefault(episode["scene"], {})
            for entry in episode["objects"]:
                of_scene.setdefault(entry["receptacle"], []).append(entry["pos"])
        content = json.dumps({"format": 1, "subset": subset, "source_file": paths[0].name, "episodes": episodes})
        write_bytes(target / f"{subset}.json.xz", lzma.compress(content.encode()))
        said.append(f"{subset}: {len(episodes)} episodes")
    write_json(target / "domain.json", {"format": 1, "asset_to_category": categories})
    write_json(target / "scenes.json", {"format": 1, "scenes": {name: _scene(boxes[name]) for name in sorted(boxes)}})
    said.append(f"{len(boxes)} scenes: boxes spanned by the objects that start on each receptacle")
    missing = [subset for subset in SUBSETS if not any(line.startswith(f"{subset}:") for line in said)]
    if missing:
        said.append(f"not in these folders: {', '.join(missing)}")
    said.append(
        "Not in public files: where the chair, the refrigerator and the drawers are (nothing starts there), walkable "
        "points, what is in reach from where (reach='group' needs none of it)"
    )
    return said


def _object_sets(originals: Originals) -> Path:
    """Return the file with the category of each asset."""
    for path in originals.files("dataset*.yaml"):
        if re.search(rb"^object_sets:", read_bytes(path), re.MULTILINE):
            return path
    raise DataNotFoundError(
        f"no dataset.yaml with object_sets in {', '.join(map(str, originals.folders))}: it names the category of each "
        "asset, and is in apple/ml-llarp as llarp/dataset/configs/dataset.yaml"
    )


def asset_categories(path: Path) -> dict[str, str]:
    """Read the category of each asset from the sets of `object_sets`.

    Each set but that of all objects is a category.

    Raises:
        GameFileError: there is no set with assets, or an asset is in two.
    """
    categories: dict[str, str] = {}
    name, inside, reads = "", False, False
    for number, line in enumerate(read_bytes(path).decode(errors="replace").splitlines(), 1):
        text = line.strip()
        if not line.startswith((" ", "-", "#")) and text:
            inside, name = text.startswith("object_sets:"), ""
        elif inside and (match := _NAME.match(line)):
            name, reads = match[2], False
        elif inside and text.endswith(":") and not text.startswith("#"):
            reads = text == "included_substrings:"
        elif inside and reads and name not in ("", _ALL) and (match := _ENTRY.match(line)):
            known = categories.setdefault(match[1], name)
            if known != name:
                raise GameFileError(f"{path}:{number}: {match[1]!r} is in the sets {known!r} and {name!r}")
    if not categories:
        raise GameFileError(f"{path}: object_sets: expected sets with a name and included_substrings")
    return categories


def as_pickled(path: Path) -> dict[str, Any]:
    """Return the episodes of a JSON file in the pickles' form.

    The file is one of the dataset class.

    Raises:
        GameFileError: the file holds no such episodes, e.g. habitat-lab's own without instruction and goal.
    """
    episodes = read_object(path).get("episodes")
    numbers: dict[str, int] = {}
    transforms: list[Any] = []

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    converted = []
    try:
        for i, episode in enumerate(episodes if isinstance(episodes, list) else [None]):
            where = f"episodes[{i}]"
            if not isinstance(episode, dict) or "goal_preds" not in episode or "instruction" not in episode:
                raise GameFileError(
                    f"{path}: {where}: expected an episode of Language Rearrangement, with 'instruction' and "
                    "'goal_preds'; habitat-lab's own rearrangement episodes have neither and give no task here"
                )
            rigid = []
            for name, transform in episode["rigid_objs"]:
                rigid.append([number(name), len(transforms)])
                transforms.append(transform)
            converted.append(
                episode
                | {
                    "rigid_objs": rigid,
                    "name_to_receptacle": [[number(k), number(v)] for k, v in episode["name_to_receptacle"].items()],
                    "ao_states": {number(name): joints for name, joints in episode["ao_states"].items()},
                    "markers": [[number(marker["name"])] for marker in episode["markers"]],
                }
            )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GameFileError(f"{path}: {where}: {type(error).__name__}: {error}") from error
    return {
        "idx_to_name": {i: name for name, i in numbers.items()},
        "all_transforms": [_matrix(transform, path) for transform in transforms],
        "all_eps": converted,
    }


def _matrix(transform: Any, path: Path) -> Any:
    matrix = np.asarray(transform, dtype=float)
    if matrix.shape != (4, 4):
        raise GameFileError(f"{path}: 'rigid_objs': expected a transform of shape (4, 4), got {matrix.shape}")
    return matrix


def _scene(boxes: Mapping[str, list[list[float]]]) -> dict[str, Any]:
    entries = {}
    for receptacle, points in sorted(boxes.items()):
        low, high = [min(axis) for axis in zip(*points)], [max(axis) for axis in zip(*points)]
        centre = [(a + b) / 2 for a, b in zip(low, high)]
        corners = {"min": low, "max": high, "centre": centre}
        entries[receptacle] = {"n": len(points)} | {
            name: [round(x, 3) for x in corner] for name, corner in corners.items()
        }
    return {"receptacle_boxes_from_objects": entries}
