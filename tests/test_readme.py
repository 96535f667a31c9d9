"""Tables of README.md and docs/ are those of the result files; results have a source; the README is short."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from experiments import tables

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_tables_are_up_to_date_and_a_changed_result_is_noticed(tmp_path):
    check = [sys.executable, "experiments/tables.py", "--check"]
    assert subprocess.run(check, cwd=ROOT).returncode == 0
    copy = tmp_path / "copy"
    programs = [path for kind in ("*.py", "*.ini") for path in (ROOT / "experiments").rglob(kind)]
    for path in (ROOT / "README.md", *programs, *results(), *episodes()):
        (copy / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        (copy / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    result = copy / "experiments/results/alfworld_judging_seed2.json"
    data = json.loads(result.read_text())
    result.write_text(json.dumps(data | {"num_tasks": data["num_tasks"] + 1}))
    changed = subprocess.run(check, cwd=copy, capture_output=True, text=True)
    assert changed.returncode == 1
    assert "README.md: benchmarks; run: python experiments/tables.py" in changed.stderr
    del data["deliveries"]
    result.write_text(json.dumps(data))
    broken = subprocess.run(check, cwd=copy, capture_output=True, text=True)
    assert broken.returncode == 1
    assert broken.stderr.startswith("table benchmarks: alfworld_judging_seed2.json cannot be rendered (KeyError: ")


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_table_renders_from_its_result(name):
    assert tables.table(name).startswith("|")


def results() -> list[pathlib.Path]:
    return sorted((ROOT / "experiments/results").glob("*.json"))


def episodes() -> list[pathlib.Path]:
    return sorted((ROOT / "experiments/results").glob("*.episodes.jsonl.xz"))


def test_every_result_says_where_it_comes_from():
    for path in results():
        data = json.loads(path.read_text())
        assert {"command", "commit", "machine"} <= set(data), path.name


def test_the_readme_is_short_and_has_the_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert 'pip install -e ".[train]" && python experiments/train.py --config=grpo_cpu' in lines
    assert 'pip install -e ".[train,test]" && pytest tests/' in lines
