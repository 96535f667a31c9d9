"""Every script of `experiments/` finds what it imports from any folder, with nothing but the package installed."""

from __future__ import annotations

import ast
import pathlib

import pytest

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "experiments"
MODULES = ("attacks/__main__.py", "benchmarks/model_contenders.py")  # given to `python -m` by their callers
SCRIPTS = [
    path
    for path in sorted(EXPERIMENTS.rglob("*.py"))
    if '__name__ == "__main__"' in path.read_text() and not str(path).endswith(MODULES)
]


def unreachable(script: pathlib.Path, source: str = "") -> list[str]:
    """Return the imports that come before their folder is on the path; a script's own folder always is.

    The root of the repository is there after `register_all()` or `sys.path.append`, in the order of lines.
    """
    found, has_root, begun = [], False, set[pathlib.Path]()

    def visit(path: pathlib.Path, text: str) -> None:
        nonlocal has_root
        begun.add(path)
        nodes = [node for node in ast.walk(ast.parse(text)) if hasattr(node, "lineno")]
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        later = {node for function in functions for node in ast.walk(function)} if path != script else set()
        for node in sorted(set(nodes) - later, key=lambda node: node.lineno):
            if isinstance(node, ast.Call):
                has_root |= ast.unparse(node.func) in ("register_all", "sys.path.append")
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                if getattr(node, "level", 0) and path == script:
                    found.append(f"{path.name}:{node.lineno}: a relative import in a script")
                for name in [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]:
                    beside = script.parent / f"{name.replace('.', '/')}.py"
                    is_elsewhere = (EXPERIMENTS / f"{name}.py").exists() and not beside.exists()
                    if is_elsewhere or (name.split(".")[0] == "experiments" and not has_root):
                        found.append(f"{path.name}:{node.lineno}: {name}")
                    if beside.exists() and beside not in begun:
                        visit(beside, beside.read_text())

    visit(script, source or script.read_text())
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(EXPERIMENTS)))
def test_a_script_needs_no_path_of_its_caller(script):
    assert unreachable(script) == []


def test_what_needs_one_is_found():
    script = EXPERIMENTS / "analyses" / "new.py"
    assert unreachable(script, "from experiments.configs import load\nregister_all()") == [
        "new.py:1: experiments.configs"
    ]
    registered = EXPERIMENTS / "new.py"
    assert unreachable(registered, "from registered import register_all\nimport experiments.solvers") == [
        "new.py:2: experiments.solvers"
    ]
    assert unreachable(script, "from registered import register_all") == ["new.py:1: registered"]
    assert unreachable(script, "from ..configs import load") == ["new.py:1: a relative import in a script"]
    assert unreachable(script, "import sys\nsys.path.append('.')\nfrom experiments.configs import load") == []
    assert len(SCRIPTS) > 15
