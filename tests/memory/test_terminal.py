"""A memory folder seen, asked, emptied and exported by the command, held against the memory itself."""

from __future__ import annotations

import io

import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError, StorageError
from embodied_mem.memory import LifelongMemory, Scope, terminal

ANN = Scope(user="ann", environment="home")
WHOSE = ["--user", "ann", "--environment", "home"]


@pytest.fixture
def folder(tmp_path):
    with LifelongMemory.open(tmp_path / "ann", ANN) as memory:
        memory.begin_task(
            "t", "put a clean mug in the cabinet.", "You are in a room. You see a desk 1, and a cabinet 1."
        )
        memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2.")
        memory.tell("My sister gave me the blue mug.")
        memory.end_task(won=False)
    return str(tmp_path / "ann")


def said(*arguments):
    output = io.StringIO()
    assert terminal.main([*arguments, *WHOSE], output=output) == 0
    return output.getvalue()


def test_what_is_there_is_shown_found_and_exported(folder):
    shown = said("show", folder).splitlines()
    with LifelongMemory.open(folder, ANN, read_only=True) as memory:
        entries = [entry for entry in memory.get_all() if entry.ended is None]
        assert [line.split()[0] for line in shown[:-1]] == [entry.id for entry in entries]
        assert said("export", folder) == memory.export_json()
    assert shown[-1] == f"{len(entries)} entries"
    assert "sister" in said("search", folder, "who gave the mug?")
    assert all(line.startswith("notes:") for line in said("show", folder, "--module", "notes").splitlines()[:-1])


def test_what_is_forgotten_is_gone_from_the_files(folder):
    assert "pen 2" in said("export", folder)
    assert "removed" in said("forget", folder, "--object", "pen 2")
    assert "pen 2" not in said("export", folder)
    assert "mug 1" in said("export", folder)


def test_wrong_folders_and_scopes_are_refused_and_nothing_is_made(folder, tmp_path):
    with pytest.raises(DataNotFoundError, match="expected a memory's folder"):
        terminal.main(["show", str(tmp_path / "gone")])
    assert not (tmp_path / "gone").exists()
    with pytest.raises((InvalidInputError, StorageError), match="ann"):
        terminal.main(["show", folder])
