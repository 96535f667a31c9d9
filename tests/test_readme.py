"""The README's tables are those of the result files; results say where they come from; files that it names exist."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_tables_are_up_to_date_and_a_changed_result_is_noticed(tmp_path):
    check = [sys.executable, "experiments/tables.py", "--check"]
    assert subprocess.run(check, cwd=ROOT).returncode == 0
    copy = tmp_path / "copy"
    for path in (ROOT / "README.md", *(ROOT / "experiments").glob("*.py"), *results()):
        (copy / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        (copy / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    bench = copy / "experiments/results/bench_alfworld.json"
    data = json.loads(bench.read_text())
    bench.write_text(json.dumps(data | {"games": data["games"] + 1}))
    changed = subprocess.run(check, cwd=copy, capture_output=True, text=True)
    assert changed.returncode == 1
    assert "python experiments/tables.py" in changed.stderr


def results() -> list[pathlib.Path]:
    return sorted((ROOT / "experiments/results").glob("*.json"))


def test_every_result_says_where_it_comes_from():
    for path in results():
        data = json.loads(path.read_text())
        assert {"command", "commit", "machine"} <= set(data), path.name


def test_files_that_the_readme_names_exist():
    text = (ROOT / "README.md").read_text()
    for name in re.findall(r"`((?:experiments|embodied_mem|docs)/[\w/.]+\.\w+)`", text) + re.findall(
        r"\]\((\S+?)\)", text
    ):
        assert (ROOT / name).exists(), name
