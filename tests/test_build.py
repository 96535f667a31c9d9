"""What the build says while it compiles, and that an sdist would have what it needs."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]


def setup_module_of_the_build():
    spec = importlib.util.spec_from_file_location("build_of_the_extension", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_progress_of_the_build_is_said_now_and_then():
    build, said = setup_module_of_the_build(), []
    lines = ["-- found\n", "[1/40] a\n", "[10/40] b\n", "[11/40] c\n", "[ 75%] d\n"]
    times = iter([0, 5, 20, 25, 60])  # at the start, then at each step: two come too early to be said
    assert build.follow(lines, said.append, lambda: next(times)) == "".join(lines)
    assert said == ["embodied_mem: C++ 10 of 40 files, about 1:00 left", "embodied_mem: C++ 75 %, about 0:20 left"]


def test_the_sdist_has_all_that_the_build_reads():
    """Files that CMake and setup.py name are covered by MANIFEST.in; `.ci/package` builds it."""
    manifest = (ROOT / "MANIFEST.in").read_text()
    grafted = tuple(f"{name}/" for name in re.findall(r"^graft (\S+)$", manifest, re.MULTILINE))
    included = {name for line in re.findall(r"^include (.+)$", manifest, re.MULTILINE) for name in line.split()}
    cmake = (ROOT / "CMakeLists.txt").read_text()
    named = re.findall(r"\b(?:csrc|third_party)/[\w/.-]+\.(?:cpp|h|cmake|in)\b", cmake)
    assert len(named) > 80
    assert "CMakeLists.txt" in included
    assert [name for name in named if not name.startswith(grafted)] == []
    assert [name for name in included if not (ROOT / name).is_file()] == []


def test_licences_of_what_is_compiled_in_are_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "MIT AND Apache-2.0 AND BSD-3-Clause"
    for pattern in project["license-files"]:
        assert list(ROOT.glob(pattern)), pattern
    for name, words in (("hnswlib", "Apache License"), ("pybind11", "Redistribution and use")):
        assert words in (ROOT / f"third_party/licenses/{name}.txt").read_text()


def test_versions_agree():
    import embodied_mem

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == embodied_mem.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_scripts_are_well_formed():
    for name in ("run", "package", "try_installed"):
        subprocess.run(["bash", "-n", str(ROOT / ".ci" / name)], check=True)
