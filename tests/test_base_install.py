"""On a base install, without any extra: every program says its help, what needs an extra names it, rules are played.

The extras are made away with by a finder that refuses their packages, in a process of its own. There a program finds
its own folder and the package, as in an install: `experiments` itself is on no path.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = sorted(
    path.name for path in (ROOT / "experiments").glob("*.py") if '__name__ == "__main__"' in path.read_text()
)
WITHOUT = """
import contextlib, importlib.abc, io, json, runpy, sys

sys.path[:0] = [f"{sys.argv[1]}/experiments", sys.argv[3]]  # `python experiments/NAME.py` has the first

from embodied_mem.evaluation.command import EXTRA_OF


class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA_OF:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
codes = {}
for words in json.loads(sys.argv[2]):
    sys.argv = [f"{sys.path[0]}/{words[0]}", *words[1:]]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            runpy.run_path(sys.argv[0], run_name="__main__")
        codes[" ".join(words)] = 0
    except SystemExit as end:
        codes[" ".join(words)] = end.code if end.code != 2 else said.getvalue()
print(json.dumps(codes))
"""


def without_extras(commands: list[list[str]], cwd: pathlib.Path = ROOT) -> tuple[dict[str, object], str]:
    """Run commands of programs; return their exit status, or what they said with status 2, and all that was printed."""
    with tempfile.TemporaryDirectory() as site:
        (pathlib.Path(site) / "embodied_mem").symlink_to(ROOT / "embodied_mem")
        command = [sys.executable, "-P", "-c", WITHOUT, str(ROOT), json.dumps(commands), site]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1]), result.stdout


def test_every_program_says_its_help():
    commands = [[name, "--help"] for name in PROGRAMS]
    commands += [["evaluate.py", f"--config={name}", "--help"] for name in ("memento", "eb_alfred", "scienceworld")]
    commands += [["evaluate.py", "--agents", "full", "--help"], ["train.py", "--config=smollm2", "--help"]]
    codes, said = without_extras(commands)
    assert len(codes) >= 10
    assert set(codes.values()) <= {0, None}, codes
    assert "--deliveries [{none,static,compiled" in " ".join(said.split())
    assert "--executor_sft.learning_rate 0.002" in said  # of grpo_cpu
    assert "--model.compiler 'smollm2-135m'" in said


def test_training_without_options_starts_nothing(capsys):
    from experiments.configs import cli

    with pytest.raises(SystemExit) as end:
        cli([], "Trains.")
    assert end.value.code == 2
    text = capsys.readouterr().out
    assert "Configs: " in text
    assert "alfworld" in text
    assert text.count("python experiments/train.py --config=grpo_cpu") == 2


def test_what_needs_an_extra_names_it():
    commands = [
        ["train.py", "--config=grpo_cpu"],
        ["train.py", "--plan"],
        ["evaluate.py"],
        ["evaluate.py", "--deliveries", "none"],
    ]
    codes, _ = without_extras(commands)
    for code in codes.values():
        assert code.startswith("error: this needs the package `")
        assert code.rstrip().endswith('it comes with the extra `train`: pip install -e ".[train]"')


@pytest.mark.parametrize("tasks", ["generated"])
def test_rules_are_played(tasks, tmp_path):
    command = [
        "evaluate.py",
        "--agents",
        "full",
        "--tasks",
        tasks,
        "--num_tasks",
        "2",
        "--repeat",
        "1",
        "--max_steps",
        "5",
    ]
    codes, _ = without_extras([[*command, "--result", str(tmp_path / "result.json")]])
    assert set(codes.values()) == {0}
    assert json.loads((tmp_path / "result.json").read_text())["num_tasks"] == 2


def test_programs_write_to_runs_unless_told_otherwise(tmp_path, monkeypatch, capsys):
    from experiments import bench

    def suite(arguments):
        return {"speed": 3}

    monkeypatch.setattr(bench, "ROOT", tmp_path)
    module = importlib.import_module(f"benchmarks.{bench.MODULES['graph']}")
    monkeypatch.setattr(module, "bench_graph", suite)
    monkeypatch.setattr(sys, "argv", ["experiments/bench.py", "--suite", "graph"])
    assert bench.main() == 0
    assert json.loads((tmp_path / "runs" / "bench_graph.json").read_text())["speed"] == 3
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--output", str(tmp_path)])
    with pytest.raises(SystemExit):
        bench.main()
    assert "--output: expected a file, got the folder" in capsys.readouterr().err


def test_no_program_has_a_tracked_file_as_its_default():
    """`tables.py` alone names the folder of results: it reads them, and writes the pages made of them."""
    for path in sorted((ROOT / "experiments").glob("*.py")):
        if not path.read_text():
            continue
        code = path.read_text().split('"""', 2)[2]  # without the docstring, which shows commands
        named = [line for line in code.splitlines() if "experiments/results" in line or '/ "results"' in line]
        assert not named or path.name == "tables.py", f"{path.name}: {named}"
