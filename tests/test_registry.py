"""Worlds are found by name; every part that a card names is there; worlds of others come by entry points."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from embodied_mem import envs, registry
from embodied_mem.errors import InvalidInputError


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_every_part_of_every_card_is_there(name):
    card = registry.card(name)
    assert card.name == name
    for part in registry.PARTS:
        if getattr(card, part):
            assert registry.load(name, part) is not None
    for backend in card.backends:
        assert registry.load(name, "env", backend) is not None


def test_cards_load_no_world():
    code = (
        "import sys; from embodied_mem import registry; registry.names();"
        "print([m for m in sys.modules if m.startswith('embodied_mem.worlds.') and m.count('.') > 2])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: registry.card("cellar"), "expected one of alfworld, .*, got 'cellar'"),
        (lambda: registry.card(["cellar"]), r"expected one of alfworld, .*, got \['cellar'\]"),
        (lambda: registry.names("roof"), "expected one of env, .*, got 'roof'"),
        (lambda: registry.names(None), "expected one of env, .*, got None"),
        (lambda: registry.load("memento", "env", ["habitat"]), "expected None or 'habitat' for memento, got"),
        (lambda: envs.make("alfworld"), "alfworld: expected the option tasks, such as 'valid_seen', got none"),
        (lambda: registry.load("alfworld", "roof"), "expected one of env, .*, got 'roof'"),
        (lambda: registry.load("alfworld", "env", "unity"), "backend: expected None for alfworld, got 'unity'"),
        (lambda: registry.load("memento", "env", "unity"), "expected None or 'habitat' for memento, got 'unity'"),
        (lambda: registry.World("cellar", env="cellar"), "expected 'module:attribute', got 'cellar'"),
        (lambda: registry.World("cellar"), "expected at least one part"),
    ],
)
def test_what_is_unknown_is_said(call, expected):
    with pytest.raises(InvalidInputError, match=expected):
        call()


def test_a_world_of_others_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "cellar_world").mkdir()
    (tmp_path / "cellar_world" / "__init__.py").write_text(
        "from embodied_mem.registry import World\nWORLD = World('cellar', env='cellar_world:Cellar')\n"
        "class Cellar:\n    pass\n"
    )
    info = tmp_path / "cellar_world-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cellar-world\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[embodied_mem.worlds]\ncellar = cellar_world:WORLD\nalfworld = cellar_world:WORLD\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registry._entry_points.cache_clear()
    try:
        assert "cellar" in registry.names()
        assert registry.load("cellar", "env").__name__ == "Cellar"
        assert registry.card("alfworld").name == "alfworld"  # a built-in name cannot be taken
    finally:
        registry._entry_points.cache_clear()
