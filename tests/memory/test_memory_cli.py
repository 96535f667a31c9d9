"""A memory folder seen, asked, emptied and exported by the command, held against the memory itself."""

from __future__ import annotations

import dataclasses
import io
import itertools

import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope, cli
from embodied_mem.viewer import terminal as view

ANN = Scope(user="ann", environment="home")


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
    assert cli.main(arguments, output=output) == 0
    return output.getvalue()


def test_what_is_there_is_shown_found_and_exported(folder):
    shown = said("show", folder).splitlines()
    with LifelongMemory.open(folder, ANN, read_only=True) as memory:
        entries = [entry for entry in memory.get_all() if entry.ended is None]
        assert [line.split()[0] for line in shown[:-1]] == [entry.id for entry in entries]
        assert said("export", folder) == memory.export()
    assert shown[-1] == f"{len(entries)} entries"
    assert "sister" in said("search", folder, "who gave the mug?")
    assert all(line.startswith("notes:") for line in said("show", folder, "--module", "notes").splitlines()[:-1])


def test_what_is_forgotten_is_gone_from_the_files(folder):
    assert "pen 2" in said("export", folder)
    assert "looks like it: " in said("forget", folder, "--object", "des")
    assert " 0 removed" not in said("forget", folder, "--object", "pen 2")
    assert said("forget", folder, "--object", "pen 2") == "nothing removed\n"
    assert "pen 2" not in said("export", folder)
    assert "mug 1" in said("export", folder)


def test_a_missing_folder_is_named_and_not_made(tmp_path):
    with pytest.raises(DataNotFoundError, match="expected a memory's folder"):
        cli.main(["show", str(tmp_path / "gone")])
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("command", [["show"], ["export"], ["forget", "--everything"]])
def test_a_folder_without_a_memory_is_refused_and_left_as_it_is(tmp_path, command):
    (tmp_path / "photo.txt").touch()
    with pytest.raises(DataNotFoundError, match=r"expected a memory's folder, got .*, which is none"):
        cli.main([*command, str(tmp_path)])
    with pytest.raises(DataNotFoundError, match="expected a trace or a memory's folder"):
        view.main([str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["photo.txt"]


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize(
    "scope", [Scope(), Scope(user="ann"), ANN, Scope("日本", "r 2", "it's"), Scope(environment="home")]
)
def test_the_scope_is_that_of_the_folder_and_another_one_is_refused(tmp_path, scope, is_compacted):
    with LifelongMemory.open(tmp_path, scope) as memory:
        memory.tell("My sister gave me the blue mug.")
        if is_compacted:
            memory.store.snapshot()
            memory.tell("My sister gave me the red cup.")
    given = {f"--{name}": value for name, value in dataclasses.asdict(scope).items()}
    for options in ([], *([name, value] for name, value in given.items()), [*itertools.chain(*given.items())]):
        assert "blue mug" in said("show", str(tmp_path), *options)
        assert view.main([str(tmp_path), *options, "--out", str(tmp_path / "a.html")], output=io.StringIO()) == 0
    for name in given:
        for command in (["show"], ["search", "mug"], ["forget", "--object", "mug"], ["export"]):
            with pytest.raises(InvalidInputError, match=f"expected that of .*got {name} bob"):
                cli.main([command[0], str(tmp_path), *command[1:], name, "bob"])
        with pytest.raises(InvalidInputError, match=f"expected that of .*got {name} bob"):
            view.main([str(tmp_path), name, "bob"])
    assert "blue mug" in said("show", str(tmp_path))


@pytest.mark.parametrize("options", [[], ["--user", "ann"]])
def test_a_text_that_cannot_be_imported_makes_no_folder(tmp_path, monkeypatch, options):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"bad'))
    with pytest.raises(InvalidInputError, match="line 1"):
        said("import", str(tmp_path / "new"), *options)
    assert not (tmp_path / "new").exists()


def test_everything_is_forgotten_by_one_flag(tmp_path):
    with LifelongMemory.open(tmp_path / "m", Scope(user="ann")) as memory:
        memory.tell("The word is secretbox.")
    assert any(b"secretbox" in path.read_bytes() for path in (tmp_path / "m").iterdir())
    assert cli.main(["forget", str(tmp_path / "m"), "--everything"], output=io.StringIO()) == 0
    assert not any(b"secretbox" in path.read_bytes() for path in (tmp_path / "m").iterdir())
