"""Imports run downward: each package may import only lower levels, and jax stays out of what must load without it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "embodied_mem"

# The levels of DESIGN.md. What shares a level does not import each other; `play` is a program, imported by none.
LEVELS = {
    "errors": 0, "types": 0,
    "_native": 1, "native": 1,
    "memory": 2, "envs": 2, "language": 2, "models": 2, "rl": 2, "parallel": 2,
    "compiler": 3,
    "agents": 4,
    "training": 5, "evaluation": 5,
    "play": 6,
}  # fmt: skip
NATIVE_USERS = {"memory", "envs", "models"}
JAX = {"jax", "jaxlib", "flax", "optax", "orbax"}
WITHOUT_JAX = {"errors", "types", "memory", "envs"}  # nowhere; `language` only inside functions


def imported_names(tree: ast.AST, package: tuple[str, ...], top_level_only: bool = False) -> list[tuple[int, str]]:
    """Returns (line, absolute dotted name) of every import, relative ones resolved against `package`."""
    nodes = ast.walk(tree) if not top_level_only else _outside_functions(tree)
    names = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *(node.module or "").split("."))).strip(".")
            names += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return names


def _outside_functions(node: ast.AST):
    """Yields what runs at import time; a block under `if TYPE_CHECKING` does not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _outside_functions(child)


def violations(root: Path) -> list[str]:
    """Returns one line per import under `root/embodied_mem` that breaks a rule."""
    found = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts
        if len(module) == 2 and module[1] == "__init__":
            continue  # the package itself: loads sub-packages on demand, see test_import_is_light
        owner, package = module[1], module[:-1]
        where = path.relative_to(root).as_posix()
        if owner not in LEVELS:
            found.append(f"{where}: {owner} has no level; add it to LEVELS and to the design")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), where)
        for line, name in imported_names(tree, package):
            parts = name.split(".")
            reason = ""
            if parts[0] in ("experiments", "tests"):
                reason = "is imported by no package"
            elif parts[0] in JAX and owner in WITHOUT_JAX:
                reason = f"must stay out of {owner}"
            elif parts[0] == PACKAGE and len(parts) > 1 and parts[1] != owner:
                target = parts[1]
                if target in LEVELS and LEVELS[target] >= LEVELS[owner]:
                    reason = f"is on level {LEVELS[target]}, {owner} on level {LEVELS[owner]}"
                elif target in ("_native", "native") and owner not in NATIVE_USERS | {"native"}:
                    reason = f"is for {', '.join(sorted(NATIVE_USERS))} only"
                elif target not in LEVELS and not target.startswith("__"):
                    reason = "is no known package"
            if reason:
                found.append(f"{where}:{line}: {name} {reason}")
        if owner == "language":
            for line, name in imported_names(tree, package, top_level_only=True):
                if name.split(".")[0] in JAX:
                    found.append(f"{where}:{line}: {name} may be imported inside functions only")
    return found


def test_imports_run_downward():
    assert violations(ROOT) == []
    assert sum(1 for _ in (ROOT / PACKAGE).rglob("*.py")) > 20  # it looked at the package


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("memory/a.py", "from embodied_mem.envs import make", "memory/a.py:1: embodied_mem.envs.make is on level 2"),
        ("rl/a.py", "def f():\n    import embodied_mem.agents.x", "rl/a.py:2: embodied_mem.agents.x is on level 4"),
        ("training/a.py", "from ..evaluation import report", "embodied_mem.evaluation.report is on level 5"),
        ("models/sub/a.py", "from ...compiler import x", "embodied_mem.compiler.x is on level 3"),
        ("envs/a.py", "def f():\n    import jax.numpy", "envs/a.py:2: jax.numpy must stay out of envs"),
        ("language/a.py", "try:\n    from jax import jit\nexcept ImportError: pass", "inside functions only"),
        ("agents/a.py", "from embodied_mem import _native", "embodied_mem._native is for envs, memory, models only"),
        ("agents/a.py", "import experiments.train", "experiments.train is imported by no package"),
        ("helpers/a.py", "", "helpers has no level"),
        ("rl/a.py", "from embodied_mem.utils import x", "embodied_mem.utils.x is no known package"),
    ],
)
def test_a_wrong_import_is_found(tmp_path, file, source, expected):
    path = tmp_path / PACKAGE / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert [expected in line for line in violations(tmp_path)] == [True]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("envs/a.py", "from embodied_mem._native import X\nfrom embodied_mem.errors import Y\nfrom . import b"),
        ("language/a.py", "def f():\n    import jax"),
        ("language/b.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jax"),
        ("agents/a.py", "from embodied_mem.compiler.x import y\nfrom embodied_mem import memory"),
    ],
)
def test_a_right_import_is_not(tmp_path, file, source):
    path = tmp_path / PACKAGE / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert violations(tmp_path) == []


@pytest.mark.parametrize("module", ["", ".errors", ".types", ".memory", ".envs", ".language", ".compiler.brief_state"])
def test_import_is_light(module):
    """CPU seconds, so that a busy machine does not matter; numpy and gymnasium are what takes them."""
    code = (
        f"import sys, time, embodied_mem{module}\n"
        f"heavy = {sorted(JAX)!r}\n"
        "assert not set(heavy) & set(sys.modules), sorted(set(heavy) & set(sys.modules))\n"
        "print(time.process_time())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert out.returncode == 0, out.stderr
    assert module or float(out.stdout) < 1.0
