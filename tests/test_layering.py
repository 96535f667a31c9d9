"""Imports run downward: a package imports lower levels only, and jax stays out of what must load without it.

No module imports itself by way of others, inside functions either; nothing in the package imports `experiments`.
The levels are those of the design. A file of a world stands on the level of what it may import.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "embodied_mem"
TOPS = (PACKAGE, "embodied_mem_verifiers", "experiments")

LEVELS = {
    "errors": 0, "types": 0, "atomic_file": 0, "forks": 0, "progress": 0,
    "_native": 1, "native": 1, "registry": 1, "packed_file": 1,
    "language": 2, "parallel": 2,
    "memory": 3, "envs": 3, "models": 3,
    "compiler": 4,
    "agents": 5,
    "training": 6,
    "evaluation": 7,
    "worlds": 8, "viewer": 8,
    "cli": 9, "serve": 9,
}  # fmt: skip
NATIVE_USERS = {"memory", "models", "worlds"}
JAX = {"jax", "jaxlib", "flax", "optax", "orbax"}
WITHOUT_JAX = {  # nowhere
    "errors", "types", "atomic_file", "packed_file", "forks", "progress", "native", "registry", "memory", "envs",
    "viewer",
}  # fmt: skip
JAX_IN_FUNCTIONS = {"language", "evaluation"}  # and agents/rollout
WORLD_FILES = [  # (pattern inside worlds/<name>/, level up to which it may import, jax: never, in functions)
    (r"(__init__|simulator_program)", 1, "never"),
    (r"(skills|agent/.*)", 5, "never"),
    (r"(tasks|wording/(teacher|follower))", 6, "in functions"),
    (r"benchmark", 7, "in functions"),
    (r".*", 3, "never"),
]
SHARED_WORDING = f"{PACKAGE}.worlds.alfworld.wording"
WORLDS_DOORS = dict.fromkeys(("serve/verl_agent", "serve/ragen"), f"{PACKAGE}.worlds.alfworld.compat")
"""Doors under the name of a world's own users: module -> what of the world it may import."""
OTHER_PYTHON = (  # what simulators run: nothing of ours is there
    "simulator_program", "simulators/worker", "simulators/embodiedbench_program", "simulators/simulator_tools",
)  # fmt: skip


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


def place_of(parts: tuple[str, ...]) -> tuple[int, str]:
    """(level, how jax may be imported) of a module inside the package, given as path parts without suffix."""
    owner = parts[0]
    if owner == "worlds" and len(parts) > 2:
        inside = "/".join(parts[2:])
        _, level, jax = next(rule for rule in WORLD_FILES if re.fullmatch(rule[0], inside))
        return level, jax
    if owner in WITHOUT_JAX:
        return LEVELS[owner], "never"
    if owner in JAX_IN_FUNCTIONS or parts == ("agents", "rollout"):
        return LEVELS[owner], "in functions"
    return LEVELS[owner], "anywhere"


def _reason(parts: tuple[str, ...], name: str, at_import: bool, root: Path) -> str:
    """Why a module may not import a name; empty if it may."""
    owner, target = parts[0], name.split(".")
    level, jax = place_of(parts)
    where = "/".join(parts)
    if any(where.endswith(end) for end in OTHER_PYTHON) and target[0] == PACKAGE:
        return "is not there under another Python"
    if target[0] in ("experiments", "tests"):
        return "is imported by no package"
    if target[0] in JAX and (jax == "never" or (jax == "in functions" and at_import)):
        return f"must stay out of {where}" if jax == "never" else f"may be imported inside functions of {where} only"
    if target[0] != PACKAGE or len(target) < 2 or (target[1] == owner and owner != "worlds"):
        return ""
    if target[1] in ("_native", "native"):
        users = ", ".join(sorted(NATIVE_USERS))
        return "" if owner in NATIVE_USERS | {"native"} else f"is for {users} only"
    if target[1] == "worlds":
        if owner != "worlds":
            is_door = name.startswith(WORLDS_DOORS.get(where, "no door"))
            return "" if is_door else "is named by the registry only"
        if name.startswith(SHARED_WORDING):
            return ""
        if len(target) > 2 and target[2] != parts[1]:
            return "is another world; only alfworld/wording is shared"
        own = tuple(_module(target[1:], root))
        there = place_of(own)[0] if len(own) > 2 else 0
        return f"is on level {there}, {where} on level {level}" if there > level else ""
    above = LEVELS.get(target[1], 0)
    limit = above > level if owner == "worlds" else above >= level
    if owner == "worlds" and level == 3 and target[1] == "models":
        limit = True
    return f"is on level {above}, {where} on level {level}" if limit else ""


def _module(parts: list[str], root: Path, top: str = PACKAGE) -> list[str]:
    """The longest beginning of a dotted name that is a module of a package under `root`."""
    for end in range(len(parts), -1, -1):
        path = root / top / Path(*parts[:end])
        if path.with_suffix(".py").is_file():
            return parts[:end]
        if path.is_dir():
            return [*parts[:end], "__init__"]
    return parts


def violations(root: Path) -> list[str]:
    """Returns one line per import under `root/embodied_mem` that breaks a rule."""
    found = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts
        if module[1:] == ("__init__",):
            continue  # the package itself: loads sub-packages on demand, see test_import_is_light
        where = path.relative_to(root).as_posix()
        if module[1] not in LEVELS:
            found.append(f"{where}: {module[1]} has no level; add it to LEVELS and to the design")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), where)
        early = set(imported_names(tree, module[:-1], top_level_only=True))
        for line, name in imported_names(tree, module[:-1]):
            if reason := _reason(module[1:], name, (line, name) in early, root):
                found.append(f"{where}:{line}: {name} {reason}")
    return found


def circles(root: Path) -> list[str]:
    """Returns one line per circle of modules that import each other, at load or in functions."""
    graph: dict[str, set[str]] = {}
    for path in sorted(path for top in TOPS for path in (root / top).rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts
        names = imported_names(ast.parse(path.read_text(encoding="utf-8")), module[:-1])
        targets = {".".join((top, *_module(rest, root, top))) for top, *rest in (name.split(".") for _, name in names)}
        graph[".".join(module)] = targets - {".".join(module)}
    found, done = [], set()

    def visit(module: str, trail: list[str]) -> None:
        if module in trail:
            found.append(" -> ".join([*trail[trail.index(module) :], module]))
        elif module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, [*trail, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return found


def test_imports_run_downward():
    assert violations(ROOT) == []
    assert sum(1 for _ in (ROOT / PACKAGE).rglob("*.py")) > 20  # it looked at the package


def test_no_module_imports_itself_by_way_of_others():
    assert circles(ROOT) == []


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("memory/a.py", "from embodied_mem.envs import make", "memory/a.py:1: embodied_mem.envs.make is on level 3"),
        (
            "models/a.py",
            "def f():\n    import embodied_mem.agents.x",
            "models/a.py:2: embodied_mem.agents.x is on level 5",
        ),
        ("training/a.py", "from ..evaluation import report", "embodied_mem.evaluation.report is on level 7"),
        ("models/sub/a.py", "from ...compiler import x", "embodied_mem.compiler.x is on level 4"),
        ("envs/a.py", "def f():\n    import jax.numpy", "envs/a.py:2: jax.numpy must stay out of envs"),
        (
            "language/a.py",
            "try:\n    from jax import jit\nexcept ImportError: pass",
            "inside functions of language/a only",
        ),
        ("agents/rollout.py", "import jax", "inside functions of agents/rollout only"),
        ("agents/a.py", "from embodied_mem import _native", "embodied_mem._native is for memory, models, worlds only"),
        ("agents/a.py", "import experiments.train", "experiments.train is imported by no package"),
        ("helpers/a.py", "", "helpers has no level"),
        ("training/a.py", "def f():\n    from ..worlds.alfworld import env", "is named by the registry only"),
        ("worlds/a/env.py", "from embodied_mem.models.config import preset", "is on level 3, worlds/a/env on level 3"),
        ("worlds/a/agent/rules.py", "from ....training import bank", "is on level 6, worlds/a/agent/rules on level 5"),
        ("worlds/a/rules.py", "def f():\n    import jax", "must stay out of worlds/a/rules"),
        ("worlds/a/benchmark.py", "import jax", "inside functions of worlds/a/benchmark only"),
        ("worlds/a/tasks.py", "from ..b.env import E", "is another world"),
        ("worlds/a/simulator_program.py", "import embodied_mem.errors", "is not there under another Python"),
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
        ("envs/a.py", "from embodied_mem.errors import Y\nfrom . import b"),
        ("language/a.py", "def f():\n    import jax"),
        ("language/b.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jax"),
        ("agents/a.py", "from embodied_mem.compiler.x import y\nfrom embodied_mem import memory"),
        ("worlds/a/env.py", "from embodied_mem.native import part\nfrom embodied_mem.envs.vector_env import E"),
        ("worlds/a/tasks.py", "from ..alfworld.wording import text\nfrom .env import E"),
        ("worlds/a/benchmark.py", "def f():\n    import jax"),
    ],
)
def test_a_right_import_is_not(tmp_path, file, source):
    path = tmp_path / PACKAGE / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert violations(tmp_path) == []


@pytest.mark.parametrize("statement", ["from .{0} import x", "def f():\n    from {1}.{0} import x", "import {1}.{0}"])
@pytest.mark.parametrize("package", ["embodied_mem.agents", "experiments.solvers"])
def test_a_circle_is_found(tmp_path, package, statement):
    folder = tmp_path.joinpath(*package.split("."))
    folder.mkdir(parents=True)
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (folder / f"{name}.py").write_text(statement.format(other, package))
    assert len(circles(tmp_path)) == 1


def test_a_circle_through_a_package_is_found(tmp_path):
    folder = tmp_path / PACKAGE / "agents"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from embodied_mem.agents.a import x")
    (folder / "a.py").write_text("def f():\n    from embodied_mem.agents import x")
    assert circles(tmp_path) == [
        "embodied_mem.agents.__init__ -> embodied_mem.agents.a -> embodied_mem.agents.__init__"
    ]


@pytest.mark.parametrize(
    "module", ["", ".errors", ".types", ".memory", ".envs", ".language", ".compiler.brief_state", ".agents.rollout"]
)
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
