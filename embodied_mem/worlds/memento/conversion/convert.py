"""Makes MEMENTO's files from what its publishers give: `episodes/` and `captions.json`; `scenes.json` is checked.

    convert(Originals([Path("MEMENTO"), Path("data/hssd-hab/metadata")]), Path("data/memento"))

Read are, wherever they lie in the folders:

- MEMENTO's episode files (`memory_acquisition_stage.json.gz` and the two of utilisation), which are taken as they are;
- tables (CSV) of objects, PARTNR's metadata and MEMENTO's captions: a column `handle` or `id`, and any of `type`,
  `clean_category`, `category` and `caption`;
- `scenes.json`, if there is one. It holds what PARTNR's simulator says of the houses: no published file has it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embodied_mem.atomic_file import write_bytes
from embodied_mem.envs.data_files import Originals, read_bytes, read_episodes, read_object, write_json
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.memento.data import STAGES
from embodied_mem.worlds.memento.engine import Houses

_KEYS = ("handle", "id")
_CATEGORIES = ("type", "clean_category", "category")
_CAPTIONS = ("caption",)


def convert(originals: Originals, target: Path) -> list[str]:
    """Write the derived files; return counts and the originals' gaps.

    Raises:
        DataNotFoundError: there is no episode file, or no table names the category of an object of theirs.
        GameFileError: a file is malformed.
    """
    said: list[str] = []
    templates: set[str] = set()
    scenes: set[str] = set()
    for stem in STAGES.values():
        paths = originals.files(f"{stem}.json.gz", f"{stem}.json")
        if not paths:
            said.append(f"{stem}: not in these folders")
            continue
        episodes = read_episodes(paths[0])
        for i, episode in enumerate(episodes):
            try:
                templates.update(handle.rpartition("_:")[0] for handle in episode["name_to_receptacle"])
                scenes.add(str(episode["scene_id"]))
            except (KeyError, TypeError, AttributeError) as error:
                raise GameFileError(f"{paths[0]}: episodes[{i}]: {type(error).__name__}: {error}") from error
        (target / "episodes").mkdir(exist_ok=True)
        write_bytes(target / "episodes" / paths[0].name, paths[0].read_bytes())
        said.append(f"{stem}: {len(episodes)} episodes")
    if not templates:
        raise DataNotFoundError(
            f"no episodes in {', '.join(map(str, originals.folders))}: expected memory_acquisition_stage.json.gz and "
            "others of MEMENTO's repository (data/datasets)"
        )
    captions = _captions(originals, templates)
    unknown = sorted(template for template in templates if captions.get(template, {}).get("category") is None)
    if unknown:
        raise DataNotFoundError(
            f"no category for {len(unknown)} of {len(templates)} objects, e.g. {unknown[0]}: expected tables (CSV) "
            f"with a column of {', '.join(_KEYS)} and one of {', '.join(_CATEGORIES)}, as in PARTNR's metadata"
        )
    write_json(target / "captions.json", captions)
    num_told = sum(captions[template]["caption"] is not None for template in templates)
    said.append(f"captions of {num_told} of the {len(templates)} objects in these episodes; all have a category")
    return said + _houses(originals, target, scenes)


def _captions(originals: Originals, templates: set[str]) -> dict[str, dict[str, Any]]:
    """Return {template: category and caption} of all tables, the first's."""
    found: dict[str, dict[str, Any]] = {}
    for path in originals.files("*.csv"):
        for key, category, caption in _rows(path):
            if key in templates:
                entry = found.setdefault(key, {"category": None, "caption": None})
                entry["category"] = entry["category"] or category
                entry["caption"] = entry["caption"] or caption
    return {key: found[key] for key in sorted(found)}


def _rows(path: Path) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield (template, category or None, caption or None) of a table."""
    table = csv.DictReader(io.StringIO(read_bytes(path).decode(errors="replace"), newline=""))
    columns = table.fieldnames or ()
    key, category, caption = (
        next((name for name in names if name in columns), None) for names in (_KEYS, _CATEGORIES, _CAPTIONS)
    )
    if key is None or (category is None and caption is None):
        return
    for row in table:
        template = (row[key] or "").removesuffix(".object_config.json")
        kind, words = ((row[name] or "").strip() or None if name else None for name in (category, caption))
        yield template, kind.replace(" ", "_") if kind else None, words


def _houses(originals: Originals, target: Path, scenes: set[str]) -> list[str]:
    paths = [path for path in originals.files("scenes.json") if path.parent.resolve() != target.resolve()]
    if not paths:
        here = (target / "scenes.json").is_file()
        return [] if here else [
            "Not in public files: scenes.json, the names, places and receptacles of the houses. PARTNR's simulator "
            "says them (its world graph). Without it no episode can be played here; `embodied-mem data memento` says "
            "which ways are left"
        ]  # fmt: skip
    content = read_bytes(paths[0])
    Houses.from_text(content, str(paths[0]))
    known = set(read_object(paths[0]))
    write_bytes(target / "scenes.json", content)
    lacking = sorted(scenes - known)
    more = f"; episodes of {', '.join(lacking)} cannot be played" if lacking else ""
    return [f"{len(known)} houses of {paths[0]}{more}"]
