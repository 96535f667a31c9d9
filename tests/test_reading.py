"""The walks of docs/reading.md: at most eight stations each, and every station is a function that exists."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
WALKS = (ROOT / "docs/reading.md").read_text().split("\n## ")[1:]
_STATION = re.compile(r"^\| `([\w/]+\.(?:py|h|cpp)):([\w.]+)` \|", re.MULTILINE)


def has_function(path: pathlib.Path, name: str) -> bool:
    """Look for a function in a file: by its qualified name in Python, by a call's form in C++."""
    if not path.exists():
        return False
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return re.search(rf"\b{name}\(", text) is not None
    found = ast.parse(text)
    for part in name.split("."):
        inside = [node for node in found.body if getattr(node, "name", "") == part]
        if not inside:
            return False
        found = inside[0]
    return True


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.partition("\n")[0])
def test_stations_exist(walk):
    stations = _STATION.findall(walk)
    assert 4 <= len(stations) <= 8
    assert len(stations) == walk.count("\n| `")
    places = [path if path.startswith(("csrc/", "experiments/")) else f"embodied_mem/{path}" for path, _ in stations]
    gone = [f"{path}:{name}" for path, (_, name) in zip(places, stations) if not has_function(ROOT / path, name)]
    assert gone == [], "name where the walk goes now, in docs/reading.md"


def test_there_are_five_walks_and_a_station_that_is_gone_is_seen():
    assert len(WALKS) == 5
    assert has_function(pathlib.Path(__file__), "has_function")
    assert not has_function(pathlib.Path(__file__), "has_function.gone")
    assert not has_function(ROOT / "csrc/envs/vector_env.h", "Leap")
