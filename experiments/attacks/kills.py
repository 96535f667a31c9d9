"""SIGKILL at random moments in write, snapshot, forget and open of a memory store, and in the save of a vector index.

A writer is a fork of this process and tells on a shared page what it is doing and what was acknowledged; so a kill is
known to have landed in the middle of an operation, and what must be found afterwards is known. Several writers die in
one folder, each going on with what the one before left.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pathlib
import random
import signal
import time

import numpy as np

from embodied_mem.memory import MemoryStore, VectorIndex

from . import Counts
from .notes_module import Notes

KILLS = 10  # in one folder
_OPENING, _IDLE, _WRITE, _SNAPSHOT, _FORGET = range(5)
_DOING, _BEGUN, _LAST, _NUM_FORGOT, _FORGOT = 0, 8, 16, 24, 32  # offsets of u64
_LIFETIME_S = 60


class Page:
    """What a writer tells, which outlives it. A number is there whole: a kill finds the old one or the new one."""

    def __init__(self) -> None:
        self._numbers = (ctypes.c_uint64 * 512).from_buffer(mmap.mmap(-1, 4096))

    def put(self, offset: int, value: int) -> None:
        self._numbers[offset // 8] = value

    def get(self, offset: int) -> int:
        return self._numbers[offset // 8]


def kill_write(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while an event is recorded."""
    return _kills(_WRITE, rng, folder)


def kill_snapshot(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while a snapshot is written and older files are removed."""
    return _kills(_SNAPSHOT, rng, folder)


def kill_forget(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while a user is forgotten."""
    return _kills(_FORGET, rng, folder)


def kill_open(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while a store is opened that another kill has left; half of them in the middle of a forget."""
    return _kills(_OPENING, rng, folder)


def _kills(target: int, rng: random.Random, folder: pathlib.Path) -> Counts:
    store = folder / "store"
    fsync = rng.choice(["never", "never", "interval", "always"])
    found: set[int] = set()
    last = tries = landed = 0
    for number in range(KILLS):
        aim = target if target != _OPENING or number % 2 else rng.choice([_FORGET, _WRITE])
        page = Page()
        page.put(_LAST, last)
        child = os.fork()
        if child == 0:
            _write(page, store, fsync, aim, rng.random())
        wait = rng.random() ** 2 * {_OPENING: 3e-3, _WRITE: 2e-4, _SNAPSHOT: 2e-3, _FORGET: 3e-3}[aim]
        _kill(child, page, aim, rng.randrange(1, 4) if aim != _OPENING else 1, wait)
        hit = page.get(_DOING) == aim
        if aim == target:
            tries += 1
            landed += hit
        last, found = _check(store, page, last, found, read_only=rng.random() < 0.5)
    _check(store, page, last, found, read_only=False, same=True)
    left = [path.name for path in store.iterdir() if path.suffix in (".tmp", ".partial")]
    assert not left, f"left behind by killed writers: {left}"
    return Counts(tries, landed)


def _write(page: Page, folder: pathlib.Path, fsync: str, aim: int, mix: float) -> None:
    """Never returns: the writer's life."""
    signal.alarm(_LIFETIME_S)
    try:
        page.put(_DOING, _OPENING)
        page.put(_BEGUN, int(aim == _OPENING))
        store = MemoryStore(folder, {"notes": Notes()}, fsync=fsync, segment_bytes=1500, snapshot_bytes=10_000)
        page.put(_LAST, store.last_event)
        page.put(_DOING, _IDLE)
        step = 0
        while aim != _OPENING:
            step += 1
            doing = aim if step % (2 + int(4 * mix)) == 0 else _WRITE
            if aim == _WRITE and step % 40 == 0:
                doing = _SNAPSHOT
            page.put(_DOING, doing)
            if doing == aim:
                page.put(_BEGUN, page.get(_BEGUN) + 1)
            if doing == _WRITE:
                number = store.last_event + 1
                user = "gone" if number % 3 == 0 else "kept"
                store.record("notes", {"user": user, "text": f"{user} {number}"})
            elif doing == _SNAPSHOT:
                store.snapshot()
            else:
                store.forget(user="gone")
                count = page.get(_NUM_FORGOT)
                page.put(_FORGOT + 8 * count, store.last_event)
                page.put(_NUM_FORGOT, count + 1)
            page.put(_LAST, store.last_event)
            page.put(_DOING, _IDLE)
        signal.pause()
    except BaseException as error:
        os.write(2, f"the writer failed: {error!r}\n".encode())
    os._exit(1)


def _kill(child: int, page: Page, aim: int, begun: int, wait: float) -> None:
    """Kill the child `wait` seconds after it began its `begun`-th operation of this kind."""
    deadline = time.monotonic() + _LIFETIME_S
    while not (page.get(_BEGUN) >= begun and (aim == _OPENING or page.get(_DOING) != _OPENING)):
        dead, status = os.waitpid(child, os.WNOHANG)
        assert not dead, f"the writer ended by itself with {os.waitstatus_to_exitcode(status)}"
        assert time.monotonic() < deadline, "the writer hangs"
        time.sleep(2e-5)
    end = time.perf_counter() + wait
    while time.perf_counter() < end:
        pass
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the writer ended by itself"


def _check(
    folder: pathlib.Path, page: Page, last: int, found: set[int], read_only: bool, same: bool = False
) -> tuple[int, set[int]]:
    """Raise unless what is found is what was acknowledged and at most the one event that was under way."""
    before, expected, doing = last, set(found), page.get(_DOING)
    if not same:
        last = page.get(_LAST)
        forgot = [page.get(_FORGOT + 8 * i) for i in range(page.get(_NUM_FORGOT))]
        expected |= set(range(before + 1, last + 1)) - set(forgot)
        if forgot:
            expected = {n for n in expected if n % 3 or n > max(forgot)}
    if read_only and not folder.is_dir():
        return last, expected
    notes = Notes()
    with MemoryStore(folder, {"notes": notes}, fsync="never", read_only=read_only) as store:
        texts = [row[3] for row in notes.rows]
        number = store.last_event
    assert texts == [f"{'gone' if n % 3 == 0 else 'kept'} {n}" for n in _numbers(texts)], f"other texts: {texts}"
    now = set(_numbers(texts))
    assert len(now) == len(texts), "an event is there twice"
    if number == last:
        assert now == expected, f"acknowledged {sorted(expected - now)} lost, {sorted(now - expected)} too many"
    else:
        under_way = expected | {number} if doing == _WRITE else {n for n in expected if n % 3}
        assert not same, "reading changed what is there"
        assert doing in (_WRITE, _FORGET), f"event {number} was never begun"
        assert number == last + 1, f"expected event {last} or one more, got {number}"
        assert now == under_way, f"expected {sorted(under_way)}, got {sorted(now)}"
    return number, now


def _numbers(texts: list[str]) -> list[int]:
    return [int(text.split()[1]) for text in texts]


def kill_vectors(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while an index replaces its file: the old one or the new one is there, and no removed vector is left."""
    path, dim = folder / "v.idx", 16
    kind = rng.choice(["exact", "hnsw"])
    data = np.random.default_rng(rng.randrange(1 << 30)).normal(size=(200, dim)).astype(np.float32)
    index = VectorIndex(dim, kind=kind)
    index.add(np.arange(200), data, num_threads=1)
    index.save(path)
    wanted = index.vector(0).tobytes()
    page, landed = Page(), 0
    for number in range(KILLS):
        page.put(_DOING, _IDLE)
        page.put(_BEGUN, 0)
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(_LIFETIME_S)
                while True:
                    page.put(_DOING, _WRITE)
                    page.put(_BEGUN, page.get(_BEGUN) + 1)
                    index.save(path)
                    page.put(_DOING, _IDLE)
            finally:
                os._exit(1)
        _kill(child, page, _WRITE, 1 + number % 2, rng.random() * 2e-3)
        landed += page.get(_DOING) == _WRITE
        found = VectorIndex.load(path)
        assert np.array_equal(found.ids, np.arange(200)), "the file holds other vectors"
    found.remove([0])
    found.save(path)
    left = [item.name for item in folder.iterdir() if wanted in item.read_bytes()]
    assert not left, f"the removed vector is in {left}"
    assert [item.name for item in folder.iterdir()] == ["v.idx"], "files of killed saves are left"
    return Counts(KILLS, landed)
