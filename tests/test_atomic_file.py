"""Files are replaced whole, by many writers at once, and killed writers leave nothing for good."""

from __future__ import annotations

import os
import threading

import pytest

from embodied_mem.atomic_file import remove_leftovers, replacing, write_bytes, write_text


def test_the_path_holds_what_was_written_and_nothing_is_beside_it(tmp_path):
    write_text(tmp_path / "a.json", "é")
    write_bytes(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    write_text(tmp_path / "a", "old")

    def fails() -> None:
        with replacing(tmp_path / "a") as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_killed_writer_left_goes_with_the_next_write_and_foreign_files_stay(tmp_path):
    child = os.fork()
    if child == 0:
        with replacing(tmp_path / "a") as temporary:
            temporary.write_text("secret")
            os._exit(0)
    os.waitpid(child, 0)
    left = os.listdir(tmp_path)
    assert len(left) == 1
    assert left[0].endswith(".partial")
    for foreign in ("a.tmp", ".b.0123456789abcdef.partial", ".a.0123.partial"):
        (tmp_path / foreign).write_text("not ours")
    with replacing(tmp_path / "a") as running:
        write_text(tmp_path / "a", "whole")  # does not take the running one for a leftover
        assert running.exists()
    remove_leftovers(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [".a.0123.partial", ".b.0123456789abcdef.partial", "a", "a.tmp"]


def test_threads_that_write_one_path_leave_one_whole_file(tmp_path):
    texts = [character * 100_000 for character in "abcd"]
    threads = [
        threading.Thread(target=lambda text=text: [write_text(tmp_path / "a", text) for _ in range(25)])
        for text in texts
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "a").exists():
            assert (tmp_path / "a").read_text() in texts
    for thread in threads:
        thread.join()
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_in_the_place_of_the_file_is_said(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError, match="expected a file"):
        write_text(tmp_path / "a", "x")
