"""Worlds are found by name; every part that a card names is there; worlds of others come by entry points."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from embodied_mem import cli, envs, registry
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


def test_what_is_registered_is_found_and_loaded_late(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    registry.register("methods", "mine", f"{tmp_path}/mine.py:Mine")
    registry.register("methods", "gone", f"{tmp_path}/gone.py:Mine")
    registry.register("methods", "other", f"{tmp_path}/mine.py:Other")
    assert registry.names("methods") == ("mine", "gone", "other")
    assert registry.load("methods", "mine").__name__ == "Mine"
    with pytest.raises(InvalidInputError, match=r"expected a Python file, got .*gone\.py"):
        registry.load("methods", "gone")
    with pytest.raises(InvalidInputError, match=r"mine\.py: expected 'Other' in it, got none"):
        registry.load("methods", "other")
    assert not registry.card("memento").benchmark
    registry.register("memento", "benchmark", "memento_scores:BENCHMARK")
    assert registry.card("memento").benchmark == "memento_scores:BENCHMARK"
    assert "memento" in registry.names("benchmark")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("methods", "mine", "mine"), "expected 'module:attribute', got 'mine'"),
        (("cellar", "env", "cellar:Env"), "world: expected one of alfworld"),
        (("memento", "roof", "cellar:Roof"), "part: expected one of env"),
        (("worlds", "memento", "cellar:WORLD"), "expected a name of no world of this package, got 'memento'"),
    ],
)
def test_what_cannot_be_registered_is_refused(arguments, expected):
    with pytest.raises(InvalidInputError, match=expected):
        registry.register(*arguments)


def test_what_a_wheel_lacks_says_where_it_is(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    for call, name in (
        (lambda: registry.load("methods", "mem0_2"), "mem0_2"),
        (lambda: registry.load("agents", "voyager"), "voyager"),
        (lambda: registry.load("memento", "benchmark"), "the benchmark of memento"),
        (lambda: registry.card("locomo"), "locomo"),
    ):
        with pytest.raises(InvalidInputError, match=f"{name} is in a clone of the repository only"):
            call()


def test_all_that_a_clone_registers_is_what_a_wheel_says_it_lacks():
    groups = [*registry.GROUPS[1:], "benchmark"]
    assert {name for group in groups for name in registry.names(group)} - {"alfworld"} == registry.ONLY_IN_CLONE


def test_a_world_of_others_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "cellar_world").mkdir()
    (tmp_path / "cellar_world" / "__init__.py").write_text(
        "from embodied_mem.registry import World\nWORLD = World('cellar', env='cellar_world:Cellar')\n"
        "class Cellar:\n    def __init__(self, num_envs=1):\n        self.num_envs = num_envs\n"
    )
    info = tmp_path / "cellar_world-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cellar-world\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[embodied_mem.worlds]\ncellar = cellar_world:WORLD\nalfworld = cellar_world:WORLD\n"
        "[embodied_mem.methods]\nlast = cellar_world:Cellar\n[embodied_mem.agents]\nwalker = cellar_world:Cellar\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registry._entry_points.cache_clear()
    try:
        assert "cellar" in registry.names()
        assert registry.load("cellar", "env").__name__ == "Cellar"
        assert (envs.make("cellar", num_envs=2).num_envs, cli._wrong_with("cellar")) == (2, "")
        assert registry.load("methods", "last") is registry.load("agents", "walker") is registry.load("cellar", "env")
        assert registry.card("alfworld").name == "alfworld"  # a built-in name cannot be taken
        (info / "entry_points.txt").write_text("[embodied_mem.worlds]\ncellar = cellar:WORLD\n")
        registry._entry_points.cache_clear()
        with pytest.raises(InvalidInputError, match="world cellar: expected a World at cellar:WORLD, got an error"):
            registry.names()
    finally:
        registry._entry_points.cache_clear()
