"""House rules that a machine can check: ruff, no loose ends."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("embodied_mem", "experiments", "tests", "csrc")
_LOOSE_END = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
_VAGUE = {"utils", "util", "helpers", "common", "misc", "manager", "v2"}


def sources(root: Path) -> list[Path]:
    """Returns every source file of ours under `root`."""
    suffixes = {".py", ".cpp", ".h"}
    return [p for top in SOURCES for p in sorted((root / top).rglob("*")) if p.suffix in suffixes]


def complaints(root: Path) -> list[str]:
    """Returns one line per broken rule."""
    found = []
    for path in sources(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        if path.stem in _VAGUE or _VAGUE & set(path.relative_to(root).parts[:-1]):
            found.append(f"{name}: a name that says nothing")
        if path != Path(__file__).resolve():
            lines = enumerate(text.splitlines(), 1)
            found += [f"{name}:{i}: {m[0]} has no place in the source" for i, x in lines if (m := _LOOSE_END.search(x))]
        if (
            path.suffix == ".py"
            and path.parts[len(root.parts)] == "embodied_mem"
            and not text.startswith(('"""', 'r"""'))
        ):
            found.append(f"{name}: no docstring")
    return found


def test_house_rules():
    assert complaints(ROOT) == []


def test_house_rules_find_something(tmp_path):
    folder = tmp_path / "embodied_mem" / "rl"
    folder.mkdir(parents=True)
    (folder / "utils.py").write_text('"""Says why."""\n')
    (folder / "bare.py").write_text("x = 1  # TO" + "DO later\n")
    found = "\n".join(complaints(tmp_path))
    for expected in ("utils.py: a name", "bare.py:1: TO", "bare.py: no docstring"):
        assert expected in found
    assert len(found.splitlines()) == 3


_TEST_IMPORTS = re.compile(r"^\s*(?:from|import) (?:test_|tests\.\S*test_|experiments\.(?:benchmarks|bench)\b).*", re.M)


def borrowed(tests: Path) -> list[str]:
    """Returns imports of tests from other tests, and of benchmarks outside of their own tests in `experiments/`."""
    files = [path for path in sorted(tests.rglob("*.py")) if path.parent.name != "experiments"]
    return [
        f"{path.relative_to(tests)}: {line.strip()}"
        for path in files
        for line in _TEST_IMPORTS.findall(path.read_text())
    ]


def test_no_test_imports_a_test_or_a_benchmark(tmp_path):
    assert borrowed(ROOT / "tests") == []
    for folder in ("memory", "experiments"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_x.py").write_text(
            "def test():\n    from experiments.benchmarks.graph_native import read\n"
        )
    (tmp_path / "memory" / "other.py").write_text("import test_graph\nfrom tests.memory.test_x import y\n")
    found = borrowed(tmp_path)
    assert [line.split(":")[0] for line in found] == ["memory/other.py", "memory/other.py", "memory/test_x.py"]
