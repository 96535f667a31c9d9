"""Fixtures shared by all tests: where the official data is, unpacked once if only an archive is there."""

from __future__ import annotations

import os
import pathlib
import shutil
import tarfile
import tempfile

import pytest

_SHARED = pathlib.Path(__file__).parents[2] / "shared" / "data"
_ARCHIVE = _SHARED / "alfworld" / "json_2.1.1.tar.xz"


def _find_alfworld() -> pathlib.Path:
    """Return the folder json_2.1.1: an installed one, or the development archive unpacked to a cache."""
    installed = []
    if os.environ.get("EMBODIED_MEM_DATA"):
        installed.append(pathlib.Path(os.environ["EMBODIED_MEM_DATA"]) / "alfworld" / "json_2.1.1")
    if os.environ.get("ALFWORLD_DATA"):
        installed.append(pathlib.Path(os.environ["ALFWORLD_DATA"]) / "json_2.1.1")
    for folder in installed:
        if (folder / "train").is_dir():
            return folder
    if not _ARCHIVE.is_file():
        pytest.skip(
            "ALFWorld games are not installed: run `pip install alfworld && alfworld-download` and set ALFWORLD_DATA"
        )
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "embodied_mem" / "alfworld"
    if not (cache / "json_2.1.1" / "train").is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            with tarfile.open(_ARCHIVE) as archive:
                archive.extractall(partial, filter="data")
            (pathlib.Path(partial) / "json_2.1.1").rename(cache / "json_2.1.1")
    return cache / "json_2.1.1"


@pytest.fixture(scope="session")
def alfworld_data() -> pathlib.Path:
    """Folder `json_2.1.1` of the official games, with `train` and `valid_seen` in it."""
    return _find_alfworld()


def _unpacked(archive: pathlib.Path, name: str, world: str = "memento") -> pathlib.Path:
    """Return the folder `name` of an archive, unpacked once to the cache of this user."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "embodied_mem" / world
    if not (cache / name).is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            with tarfile.open(archive) as opened:
                opened.extractall(partial, filter="data")
            (pathlib.Path(partial) / name).rename(cache / name)
    return cache / name


@pytest.fixture(scope="session")
def memento_data() -> pathlib.Path:
    """Folder with MEMENTO's `scenes.json`, `captions.json` and `episodes`."""
    roots = [_SHARED / "memento"]
    if os.environ.get("EMBODIED_MEM_DATA"):
        roots.insert(0, pathlib.Path(os.environ["EMBODIED_MEM_DATA"]) / "memento")
    for root in roots:
        if (root / "scenes.json").is_file():
            return root
    pytest.skip(
        "MEMENTO is not installed: put scenes.json, captions.json and episodes/ into $EMBODIED_MEM_DATA/memento"
    )


@pytest.fixture(scope="session")
def eb_alfred_data() -> pathlib.Path:
    """Folder with EB-ALFRED's `floorplans.json`, `splits.json` and `json_2.1.0`."""
    if os.environ.get("EMBODIED_MEM_DATA"):
        root = pathlib.Path(os.environ["EMBODIED_MEM_DATA"]) / "eb_alfred"
        if (root / "json_2.1.0").is_dir():
            return root
    archive = _SHARED / "eb_alfred" / "trials.tar.xz"
    if not archive.is_file():
        pytest.skip(
            "EB-ALFRED is not installed: put floorplans.json, splits.json and json_2.1.0/ into "
            "$EMBODIED_MEM_DATA/eb_alfred"
        )
    root = _unpacked(archive, "json_2.1.0", "eb_alfred").parent
    for name in ("floorplans.json", "splits.json"):
        shutil.copyfile(archive.parent / name, root / name)
    return root


@pytest.fixture(scope="session")
def memento_recordings(memento_data) -> pathlib.Path:
    """Folder with the recorded runs of MEMENTO: `gold` and `traces`."""
    for name in ("gold", "traces"):
        if not (memento_data / name).is_dir() and not (memento_data / f"{name}.tar.xz").is_file():
            pytest.skip(f"MEMENTO's recorded runs are not installed: expected {name}.tar.xz in {memento_data}")
    if (memento_data / "gold").is_dir() and (memento_data / "traces").is_dir():
        return memento_data
    gold, _ = (_unpacked(memento_data / f"{name}.tar.xz", name) for name in ("gold", "traces"))
    return gold.parent


@pytest.fixture(scope="session")
def eb_habitat_data() -> pathlib.Path:
    """Folder with EB-Habitat's converted episodes, `domain.json.xz` and `scenes.json.xz`."""
    roots = [_SHARED / "eb_habitat"]
    if os.environ.get("EMBODIED_MEM_DATA"):
        roots.insert(0, pathlib.Path(os.environ["EMBODIED_MEM_DATA"]) / "eb_habitat")
    for root in roots:
        if (root / "domain.json.xz").is_file():
            return root
    pytest.skip(
        "EB-Habitat is not installed: put the converted episodes, domain.json.xz and scenes.json.xz into "
        "$EMBODIED_MEM_DATA/eb_habitat"
    )
