"""Files that unpack to more than they may are refused, in memory bounded by the limit; whatever reads packed files."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys

import pytest

from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.packed_file import read_packed
from embodied_mem.training.teachers.episodes import read_samples

PACK = {".gz": gzip.compress, ".xz": lzma.compress, "": bytes}


@pytest.mark.parametrize("suffix", PACK)
def test_content_up_to_the_limit_and_not_a_byte_more(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    for size in (0, 1, 3 << 20):
        content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        path.write_bytes(PACK[suffix](content))
        assert read_packed(path, max_bytes=size) == content
        if size:
            with pytest.raises(InvalidInputError, match=rf"a{suffix}: expected at most \d+ MiB"):
                read_packed(path, max_bytes=size - 1)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_damage_is_told(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    whole = PACK[suffix](b"some text " * 1000)
    for damaged in (whole[:-9], whole[:20], b"no archive", whole[:40] + b"\xff\x00" + whole[42:]):
        path.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match=r"cannot be unpacked: .*; it is damaged or cut"):
            read_packed(path, max_bytes=1 << 20)
    with pytest.raises(FileNotFoundError):
        read_packed(tmp_path / f"none{suffix}", max_bytes=1)
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(IsADirectoryError):
        read_packed(tmp_path / f"folder{suffix}", max_bytes=1)


PROGRAM = """
import gzip, lzma, pathlib, resource, sys
from embodied_mem.errors import EmbodiedMemError
from embodied_mem.worlds.alfworld.env import Game
from embodied_mem.worlds.eb_habitat.data import load_records, load_tasks

def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

folder = pathlib.Path(sys.argv[1])
contents = {  # name -> content, reader
    "zeros.json.xz": (bytes(200 << 20), load_records),
    "numbers.json.xz": (b'{"episodes":[' + b"0," * (16 << 20) + b"0]}", load_tasks),
    "lists.json.gz": (b'{"episodes":[' + b"[]," * (12 << 20) + b"0]}", load_records),
    "lists.pickle": (b"\\x80\\x04(" + b"]" * (16 << 20) + b"l.", load_records),
    "game.tw-pddl": (b'{"episodes":[' + b"0," * (16 << 20) + b"0]}", lambda path: Game.load(str(path))),
}
pack = {".xz": lambda content: lzma.compress(content, preset=0), ".gz": lambda content: gzip.compress(content, 1)}
content, read = contents[sys.argv[2]]
path = folder / sys.argv[2]
path.write_bytes(pack.get(path.suffix, bytes)(content))
before = grown()
try:
    read(path)
except EmbodiedMemError as error:
    print(grown() - before, error)
"""


@pytest.mark.parametrize("name", ["zeros.json.xz", "numbers.json.xz", "lists.json.gz", "lists.pickle", "game.tw-pddl"])
def test_no_file_of_a_world_takes_more_than_it_should(tmp_path, name):
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path, name], capture_output=True, text=True, check=True)
    megabytes, _, message = done.stdout.partition(" ")
    assert name in message
    assert "expected at most 64 MiB" in message or "more than 2097152" in message
    assert int(megabytes) < 300  # it was 2 to 7 GB


def test_a_bank_is_neither_read_nor_written_beyond_its_limit(tmp_path, monkeypatch):
    bank = Experiences()
    bank.save(tmp_path / "bank.jsonl.gz")
    assert len(Experiences.load(tmp_path / "bank.jsonl.gz")) == 0
    monkeypatch.setattr("embodied_mem.memory.bank.MAX_PACKED_BYTES", 100)
    with pytest.raises(InvalidInputError, match="expected at most 0 MiB unpacked"):
        Experiences.load(tmp_path / "bank.jsonl.gz")
    with pytest.raises(InvalidInputError, match=r"give a name without \.gz"):
        bank.save(tmp_path / "other.jsonl.gz")
    assert not (tmp_path / "other.jsonl.gz").exists()
    bank.save(tmp_path / "other.jsonl")
    assert len(Experiences.load(tmp_path / "other.jsonl")) == 0


DAMAGED = (b"[1]\n", b"[" * 100_000, b" " * (1 << 26), b"{}\n")


CUT = gzip.compress(b"[]" * 99)[:-9]
DAMAGED_FILES = [b"x", CUT, *map(gzip.compress, DAMAGED)]


@pytest.mark.parametrize("content", DAMAGED_FILES, ids=range(len(DAMAGED_FILES)))  # gzip writes the time into them
def test_episodes_of_an_earlier_round_that_are_damaged_are_told(tmp_path, content):
    path = tmp_path / "episodes_0.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="remove the file"):
        read_samples(path)
