"""The vector index called wrongly, saved by many at once, killed while it saves: errors of the library, whole files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError, StorageError
from embodied_mem.memory import VectorIndex

KINDS = ("exact", "hnsw")


def normal(count: int, dim: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)


def nan_row() -> np.ndarray:
    rows = normal(2, 4, 0)
    rows[1, 2] = np.nan
    return rows


class Unfit:
    """No array, no number, no path."""

    def __array__(self, *_, **__):
        raise TypeError("no array")


BAD_MAKING = {
    "dim": (0, -1, 65537, 2**31, 2**63, 2**70, 1.5, "4", None, True),
    "connectivity": (0, 1, 257, 2**70, "16", None),
    "ef_construction": (0, 65537, 2**70, 1.5),
    "metric": ("l2", None, 5, ["cosine"]),
    "kind": ("flat", "ivf", None, 5, np.array(["hnsw", "exact"])),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD_MAKING for value in BAD_MAKING[name]])
def test_bad_arguments_make_no_index(name, value):
    with pytest.raises(InvalidInputError, match=name):
        VectorIndex(**{"dim": 4, name: value})


BAD_CALLS = {
    "add(None)": lambda index: index.add(None, normal(2, 4, 0)),
    "add(5)": lambda index: index.add(5, normal(1, 4, 0)),
    "add(str ids)": lambda index: index.add(["a", "b"], normal(2, 4, 0)),
    "add(float ids)": lambda index: index.add([0.5, 1.5], normal(2, 4, 0)),
    "add(too large)": lambda index: index.add([0, 2**63], normal(2, 4, 0)),
    "add(far too large)": lambda index: index.add([0, 2**70], normal(2, 4, 0)),
    "add(negative)": lambda index: index.add([0, -1], normal(2, 4, 0)),
    "add(twice)": lambda index: index.add([7, 7], normal(2, 4, 0)),
    "add(ragged ids)": lambda index: index.add([[1], [2, 3]], normal(2, 4, 0)),
    "add(too few ids)": lambda index: index.add([1], normal(2, 4, 0)),
    "add(no rows)": lambda index: index.add([1], None),
    "add(str rows)": lambda index: index.add([1], [["a"] * 4]),
    "add(complex)": lambda index: index.add([1], normal(1, 4, 0) * 1j),
    "add(bool)": lambda index: index.add([1], np.ones((1, 4), bool)),
    "add(ragged rows)": lambda index: index.add([1, 2], [[1, 2, 3, 4], [1]]),
    "add(other width)": lambda index: index.add([1], normal(1, 5, 0)),
    "add(one row)": lambda index: index.add([1], normal(1, 4, 0)[0]),
    "add(three axes)": lambda index: index.add([1], normal(1, 4, 0)[None]),
    "add(nan)": lambda index: index.add([1, 2], nan_row()),
    "add(too large for float32)": lambda index: index.add([1], np.full((1, 4), 1e300)),
    "add(zero)": lambda index: index.add([1], np.zeros((1, 4))),
    "add(no array)": lambda index: index.add([1], Unfit()),
    "add(0 threads)": lambda index: index.add([1], normal(1, 4, 0), num_threads=0),
    "add(many threads)": lambda index: index.add([1], normal(1, 4, 0), num_threads=2**70),
    "add(str threads)": lambda index: index.add([1], normal(1, 4, 0), num_threads="2"),
    "remove(unknown)": lambda index: index.remove([99]),
    "remove(None)": lambda index: index.remove(None),
    "remove(2**63)": lambda index: index.remove([2**63]),
    "search(None)": lambda index: index.search(None, 1),
    "search(ragged)": lambda index: index.search([[1, 2, 3, 4], [1]], 1),
    "search(other width)": lambda index: index.search(normal(1, 3, 0), 1),
    "search(nan)": lambda index: index.search(nan_row(), 1),
    "search(k=0)": lambda index: index.search(normal(1, 4, 0), 0),
    "search(k=-1)": lambda index: index.search(normal(1, 4, 0), -1),
    "search(k=None)": lambda index: index.search(normal(1, 4, 0), None),
    "search(k=1.5)": lambda index: index.search(normal(1, 4, 0), 1.5),
    "search(k=2**27+1)": lambda index: index.search(normal(1, 4, 0), 2**27 + 1),
    "search(k=2**31)": lambda index: index.search(normal(1, 4, 0), 2**31),
    "search(k=2**63)": lambda index: index.search(normal(1, 4, 0), 2**63),
    "search(k=2**63, no queries)": lambda index: index.search(np.zeros((0, 4)), 2**63),
    "search(k=2**70)": lambda index: index.search(normal(1, 4, 0), 2**70),
    "search(much in all)": lambda index: index.search(normal(1000, 4, 0), 2**20),
    "search(ef=0)": lambda index: index.search(normal(1, 4, 0), 1, ef_search=0),
    "search(ef=2**70)": lambda index: index.search(normal(1, 4, 0), 1, ef_search=2**70),
    "search(allowed=5)": lambda index: index.search(normal(1, 4, 0), 1, allowed=5),
    "search(allowed=str)": lambda index: index.search(normal(1, 4, 0), 1, allowed="all"),
    "search(allowed of another length)": lambda index: index.search(normal(1, 4, 0), 1, allowed=[True]),
    "vector(unknown)": lambda index: index.vector(99),
    "vector(str)": lambda index: index.vector("0"),
    "vector(2**63)": lambda index: index.vector(2**63),
    "save(None)": lambda index: index.save(None),
    "save(5)": lambda index: index.save(5),
    "save('')": lambda index: index.save(""),
    "save(nul)": lambda index: index.save("a\0b"),
    "save(lone surrogate)": lambda index: index.save("\ud800"),
    "load(None)": lambda index: VectorIndex.load(None),
    "load(nul)": lambda index: VectorIndex.load("a\0b"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_bad_calls_are_refused_in_the_librarys_own_words_and_change_nothing(kind):
    index = VectorIndex(4, kind=kind)
    rows = normal(40, 4, 1)
    index.add(np.arange(40), rows)
    expected = index.search(rows, 5)
    for name, call in BAD_CALLS.items():
        with pytest.raises(InvalidInputError):
            print(name, call(index))  # shown for one that raises nothing, or something else
    np.testing.assert_array_equal(index.search(rows, 5), expected)
    assert (len(index), index.num_removed) == (40, 0)


def test_whatever_is_asked_for_is_in_the_index_or_not():
    index = VectorIndex(4)
    index.add([3], normal(1, 4, 0))
    assert 3 in index
    assert np.int64(3) in index
    assert not any(value in index for value in (4, -3, 2**63, 2**70, "3", None, 3.5, True, [3]))


def test_a_search_for_more_than_there_are_is_filled_up():
    index = VectorIndex(4)
    index.add([3], normal(1, 4, 0))
    ids, scores = index.search(normal(1, 4, 0)[0], k=100_000, ef_search=2**62)
    assert ids[0] == 3
    assert (ids[1:] == -1).all()
    assert np.isneginf(scores[1:]).all()


def test_files_that_cannot_be_written_or_read(tmp_path):
    index = VectorIndex(4)
    index.add([3], normal(1, 4, 0))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "folder", tmp_path / "none" / "v", tmp_path / "file" / "v", tmp_path / ("x" * 300)):
        with pytest.raises(StorageError):
            index.save(path)
    with pytest.raises(StorageError):
        index.save("/proc/no_index")  # a folder that cannot be written to, whoever asks
    for path in (tmp_path / "folder", tmp_path / "file", "/dev/null"):
        with pytest.raises(StorageError):
            VectorIndex.load(path)
    for path in (tmp_path / "none", tmp_path / "file" / "v", tmp_path / ("x" * 300)):
        with pytest.raises(DataNotFoundError):
            VectorIndex.load(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    index.save(os.fsencode(tmp_path) + b"/\xff")  # no UTF-8, and a name of a file for all that
    assert 3 in VectorIndex.load(os.fsencode(tmp_path) + b"/\xff")
    with pytest.raises(StorageError):
        index.save(os.fsencode(tmp_path) + b"/\xff\xff/none")


def crc32c(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", range(8, 64, 4))
def test_a_header_that_lies_is_refused_or_harmless(kind, offset, tmp_path):
    """Its checksum holds. What loads answers; nothing of the size that it claims is allocated."""
    index = VectorIndex(4, kind=kind)
    index.add(np.arange(40), normal(40, 4, 1))
    index.save(tmp_path / "v")
    good = (tmp_path / "v").read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for value in (0, 1, 2, 3, 4, 5, 39, 41, 255, 256, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1):
        head = good[:offset] + value.to_bytes(4, "little") + good[offset + 4 : 64]
        (tmp_path / "v").write_bytes(head + crc32c(head) + good[68:])
        try:
            loaded = VectorIndex.load(tmp_path / "v")
        except StorageError:
            continue
        assert len(loaded) == 40
        loaded.search(normal(1, loaded.dim, 2), 3)
        loaded.add([100], normal(1, loaded.dim, 3))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_threads_that_save_to_one_path_leave_one_whole_file(tmp_path):
    indexes = []
    for count in (500, 501, 502):
        indexes.append(VectorIndex(64, kind="exact"))
        indexes[-1].add(np.arange(count), normal(count, 64, count))

    for _ in range(20):
        threads = [threading.Thread(target=index.save, args=(tmp_path / "v",)) for index in indexes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(VectorIndex.load(tmp_path / "v")) in (500, 501, 502)
    assert os.listdir(tmp_path) == ["v"]


def test_what_killed_saves_left_goes_with_the_next_one_and_nothing_else(tmp_path):
    index = VectorIndex(4)
    index.add([0, 1], normal(2, 4, 0))
    secret = index.vector(0).tobytes()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    alive = f"v.partial-{os.getppid()}"
    for name in (".v.0123456789abcdef.partial", f"v.partial-{ended.pid}", f"v.partial-{os.getpid()}", alive):
        (tmp_path / name).write_bytes(secret)
    foreign = [".w.0123456789abcdef.partial", "v.partial-", "v.partial-x", "v.partial.1", "v.tmp", "w.partial-999999"]
    for name in foreign:
        (tmp_path / name).write_bytes(b"not ours")
    index.remove([0])
    index.save(tmp_path / "v")
    assert sorted(os.listdir(tmp_path)) == sorted(["v", alive, *foreign])
    assert secret not in (tmp_path / "v").read_bytes()
