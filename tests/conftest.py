"""Fixtures shared by all tests: where the official ALFWorld games are, unpacked once if only the archive is there."""

from __future__ import annotations

import os
import pathlib
import tarfile
import tempfile

import pytest

_ARCHIVE = pathlib.Path(__file__).parents[2] / "shared" / "data" / "alfworld" / "json_2.1.1.tar.xz"


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
