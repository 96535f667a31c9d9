"""What a simulator needs is looked for before it starts: refusals of `make`, and `embodied-mem doctor --simulator`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from simulator_checkouts import POINTER

from embodied_mem import cli
from embodied_mem.envs import make
from embodied_mem.envs.simulators import simulator_tools
from embodied_mem.errors import DataNotFoundError, MissingDependencyError

HABITAT, ALFRED = "embodiedbench/envs/eb_habitat", "embodiedbench/envs/eb_alfred"


@pytest.mark.parametrize(
    ("world", "lost", "message"),
    [
        ("eb_alfred", "embodiedbench", r"embodiedbench.* cannot be imported by .*see docs/worlds/eb_alfred\.md"),
        ("eb_alfred", "ai2thor.py", r"ai2thor.* cannot be imported by .*; pip install ai2thor==2\.1\.0"),
        ("eb_alfred", f"{ALFRED}/data/json_2.1.0", r"EB-ALFRED's data is not installed: expected .*0; git clone"),
        ("eb_alfred", "display", r"an X display .* start it with: python -m embodiedbench\S+startx "),
        ("eb_habitat", "embodiedbench", r"see docs/worlds/eb_habitat\.md"),
        ("eb_habitat", f"{HABITAT}/datasets/base.pickle", "git lfs pull"),
        ("eb_habitat", f"{HABITAT}/data", "--uids rearrange_task_assets"),
        ("memento", "habitat_llm", r"habitat_llm.* cannot be imported .*see docs/worlds/memento\.md"),
        ("memento", "data/hssd-hab", "HSSD is not installed"),
        ("memento", "val.json.gz", "the episode file is not installed"),
    ],
)
def test_what_is_missing_is_said(checkouts, world, lost, message):
    folder = getattr(checkouts, world)
    path = checkouts.display if lost == "display" else folder / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    options = {"backend": "habitat", "tasks": "val.json.gz"} if world == "memento" else {"backend": "embodiedbench"}
    kind = MissingDependencyError if "imported" in message or lost == "embodiedbench" else DataNotFoundError
    with pytest.raises(kind, match=message):
        make(world, folder=folder, **options)


def test_an_x_server_that_has_died_is_no_display(checkouts):
    checkouts.display.unlink()
    checkouts.display.touch()  # as its socket is left
    with pytest.raises(DataNotFoundError, match=r"an X display for AI2-THOR is not there: .*refused"):
        make("eb_alfred", backend="embodiedbench", folder=checkouts.eb_alfred)


@pytest.fixture
def egl(tmp_path, monkeypatch):
    """Puts a libEGL that reports some devices where the loader finds it, for processes that start from here."""

    def build(devices):
        source = tmp_path / "egl.c"
        source.write_text(
            "static unsigned query(int max, void **list, int *number) { *number = DEVICES; return 1; }\n"
            "void *eglGetProcAddress(const char *name) { return (void *)query; }\n"
        )
        library = tmp_path / "libEGL.so.1"
        command = ["cc", "-shared", "-fPIC", f"-DDEVICES={devices}", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        return library

    return build


@pytest.mark.parametrize(
    ("devices", "gpu", "problem"),
    [(2, 1, ""), (2, 2, "expected device 2, got 2"), (1, -1, ""), (0, -1, "expected device 0, got 0")],
)
def test_devices_of_egl_are_counted(egl, monkeypatch, devices, gpu, problem):
    monkeypatch.setattr(simulator_tools, "EGL", str(egl(devices)))
    check = simulator_tools.rendering(gpu)
    assert problem in check.problem
    assert bool(check.problem) == bool(problem)


def test_doctor_says_the_next_command_and_starts_nothing(checkouts, egl, capsys):
    egl(1)
    command = ["doctor", "--simulator", "eb_habitat", "--folder", str(checkouts.eb_habitat)]
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    assert "  ok       habitat 0.3.0\n" in said
    assert "  ok       EmbodiedBench commit b247936\n" in said
    assert "  ok       the robot /" in said
    assert said.endswith("  ok       EGL 1 devices\n\nNothing is missing.\n")
    (checkouts.eb_habitat / HABITAT / "datasets/base.pickle").write_bytes(POINTER)
    shutil.rmtree(checkouts.eb_habitat / HABITAT / "data/robots")
    assert cli.main([*command, "--gpu", "1"]) == 1
    said = capsys.readouterr().out
    assert "  missing  EB-Habitat's episode file is a pointer of Git LFS" in said
    assert "  missing  the robot is not installed" in said  # all of it is told, not the first alone
    assert "  missing  EGL: expected device 1, got 1 devices" in said
    assert said.endswith(f"\nNext: git -C {checkouts.eb_habitat / HABITAT / 'datasets'} lfs pull\n")
    assert not checkouts.closed.exists()


def test_doctor_knows_every_simulator(checkouts, capsys):
    for world, tasks, status in (("eb_alfred", "base", 0), ("memento", "gone.json.gz", 1)):
        command = ["doctor", "--simulator", world, "--folder", str(getattr(checkouts, world)), "--tasks", tasks]
        assert cli.main([*command, "--python", sys.executable]) == status
        assert ("  missing" in capsys.readouterr().out) == bool(status)
    assert not os.path.exists(checkouts.closed)
