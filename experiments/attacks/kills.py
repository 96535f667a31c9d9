"""SIGKILL at random moments in write, snapshot, forget and open of a memory store, and in the save of other files.

A writer is a fork of this process and tells on a shared page what it is doing and what was acknowledged; so a kill is
known to have landed in the middle of an operation, and what must be found afterwards is known. Several writers die in
one folder, each going on with what the one before left. `power_loss` keeps what was synced alone.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import pathlib
import random
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable

import numpy as np

from embodied_mem.atomic_file import remove_leftovers, write_bytes
from embodied_mem.errors import StorageError
from embodied_mem.memory import Experiences, MemoryStore, VectorIndex
from embodied_mem.types import Episode, Step

from . import Counts
from .notes_module import Notes

KILLS = 10  # in one folder
_OPENING, _IDLE, _WRITE, _SNAPSHOT, _FORGET = range(5)
_DOING, _BEGUN, _LAST, _NUM_FORGOT, _FORGOT = 0, 8, 16, 24, 32  # offsets of u64
_LIFETIME_S = 60


class Page:
    """A writer's progress, which outlives it. A number is there whole: a kill finds the old one or the new one."""

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
    """Kill while a store is opened that another kill has left.

    Half of them are in the middle of a forget.
    """
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
        mix = rng.random()
        child = _child(functools.partial(_write, page, store, fsync, aim, mix))
        wait = rng.random() ** 2 * {_OPENING: 3e-3, _WRITE: 2e-4, _SNAPSHOT: 2e-3, _FORGET: 3e-3}[aim]
        has_ended = target == _FORGET and number % 3 == 2  # then the files are looked into as the forget left them
        _kill(child, page, aim, rng.randrange(1, 4) if aim != _OPENING else 1, 0.0 if has_ended else wait, has_ended)
        hit = page.get(_DOING) == aim
        if aim == target and not has_ended:
            tries += 1
            landed += hit
        last, found = _check(store, page, last, found, read_only=has_ended or rng.random() < 0.5)
    _check(store, page, last, found, read_only=False, same=True)
    left = [path.name for path in store.iterdir() if path.suffix in (".tmp", ".partial")]
    assert not left, f"left behind by killed writers: {left}"
    return Counts(tries, landed)


def _write(page: Page, folder: pathlib.Path, fsync: str, aim: int, mix: float) -> None:
    """Live a writer's life until a kill ends it."""
    page.put(_DOING, _OPENING)
    page.put(_BEGUN, int(aim == _OPENING))
    store = MemoryStore(folder, {"notes": Notes()}, fsync=fsync, snapshot_bytes=10_000)
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


def _kill(child: int, page: Page, aim: int, begun: int, wait: float, has_ended: bool = False) -> None:
    """Kill the child after it began its `begun`-th operation of a kind.

    The kill comes `wait` seconds after it began, or ended that forget.
    """
    counted = _NUM_FORGOT if has_ended else _BEGUN
    deadline = time.monotonic() + _LIFETIME_S
    while not (page.get(counted) >= begun and (aim == _OPENING or page.get(_DOING) != _OPENING)):
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
    """Raise unless what was acknowledged is found.

    At most the one event that was under way may be there besides.
    """
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
    if not (read_only and doing in (_FORGET, _OPENING)):  # who may not write leaves a killed forget as it is
        written = {int(n) for n in re.findall(rb'gone (\d+)"', b"".join(map(_bytes, folder.iterdir())))}
        assert {n for n in written if n <= number} <= now, "what was forgotten is in the folder's files"
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


def _bytes(path: pathlib.Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _numbers(texts: list[str]) -> list[int]:
    return [int(text.split()[1]) for text in texts]


def kill_vectors(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while an index replaces its file.

    The old one or the new one is there, and no removed vector is left.
    """
    path, dim = folder / "v.idx", 16
    kind = rng.choice(["exact", "hnsw"])
    data = np.random.default_rng(rng.randrange(1 << 30)).normal(size=(200, dim)).astype(np.float32)
    index = VectorIndex(dim, kind=kind)
    index.add(np.arange(200), data, num_threads=1)
    index.save(path)
    wanted = index.vector(0).tobytes()
    page, landed = Page(), 0

    def save() -> None:
        page.put(_DOING, _WRITE)
        page.put(_BEGUN, page.get(_BEGUN) + 1)
        index.save(path)
        page.put(_DOING, _IDLE)

    for number in range(KILLS):
        page.put(_DOING, _IDLE)
        page.put(_BEGUN, 0)
        _kill(_child(save), page, _WRITE, 1 + number % 2, rng.random() * 2e-3)
        landed += page.get(_DOING) == _WRITE
        found = VectorIndex.load(path)
        assert np.array_equal(found.ids, np.arange(200)), "the file holds other vectors"
    found.remove([0])
    found.save(path)
    left = [item.name for item in folder.iterdir() if wanted in item.read_bytes()]
    assert not left, f"the removed vector is in {left}"
    assert [item.name for item in folder.iterdir()] == ["v.idx"], "files of killed saves are left"
    return Counts(KILLS, landed)


def _child(work: Callable[[], object]) -> int:
    """Fork a writer that works until killed; return its process id."""
    child = os.fork()
    if child == 0:
        signal.alarm(_LIFETIME_S)
        try:
            while True:
                work()
        except BaseException as error:
            os.write(2, f"the writer failed: {error!r}\n".encode())
        os._exit(1)
    return child


def _killed(child: int, wait: float) -> None:
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the writer ended by itself"


def kill_threads(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while several threads record.

    A thread's acknowledged events are there, in order, and at most one more.
    """
    count, landed = rng.randrange(2, 5), 0
    done = [0] * count
    for number in range(KILLS):
        page, fsync = Page(), rng.choice(["never", "interval", "always"])

        def record(store: MemoryStore, mine: int, page: Page = page) -> None:
            for i in range(done[mine], 1 << 30):
                page.put(_BEGUN + 16 * mine, i + 1)
                store.record("notes", {"user": f"user {mine}", "text": f"{mine} {i}"})
                page.put(_LAST + 16 * mine, i + 1)

        def write(page: Page = page, fsync: str = fsync) -> None:
            store = MemoryStore(folder / "store", {"notes": Notes()}, fsync=fsync)
            threads = [threading.Thread(target=record, args=(store, mine)) for mine in range(count)]
            for thread in threads:
                thread.start()
            page.put(_DOING, _WRITE)
            threads[0].join()

        child = _child(write)
        deadline = time.monotonic() + _LIFETIME_S
        while page.get(_DOING) != _WRITE and time.monotonic() < deadline:
            time.sleep(1e-4)
        _killed(child, rng.random() ** 2 * 5e-3)
        notes = Notes()
        with MemoryStore(folder / "store", {"notes": notes}, fsync="never", read_only=number % 2 == 0):
            texts = [row[3] for row in notes.rows]
        for mine in range(count):
            begun, told = page.get(_BEGUN + 16 * mine), page.get(_LAST + 16 * mine)
            landed += begun > told
            own = [text for text in texts if text.startswith(f"{mine} ")]
            assert own == [f"{mine} {i}" for i in range(len(own))], f"of thread {mine}: {own}"
            assert max(told, done[mine]) <= len(own) <= max(begun, done[mine]), (
                f"of thread {mine} {told} events were acknowledged and {begun} begun, {len(own)} are there"
            )
            done[mine] = len(own)
    return Counts(KILLS * count, landed)


def kill_files(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill while a bank or another file is replaced.

    It is read meanwhile, and is always one of the whole versions.
    """
    banks = [Experiences(), Experiences()]
    for size, bank in zip((3, 40), banks):
        for i in range(size):
            bank.add(
                Episode(f"game {i}", "put a mug in desk.", (Step("You see a mug 1.", "take mug 1"),), True, "Won.")
            )
    versions, path = [b"a" * rng.randrange(1, 40_000), b"b" * rng.randrange(1, 40_000)], folder / "file"
    is_bank = rng.random() < 0.5

    def write(version: int) -> None:
        banks[version].save(path) if is_bank else write_bytes(path, versions[version])

    def check() -> None:
        if is_bank:
            assert len(Experiences.load(path)) in (3, 40)
        else:
            assert path.read_bytes() in versions, "the file is neither the old nor the new one"

    write(0)
    for _ in range(KILLS):
        child = _child(lambda: (write(1), write(0)))
        end = time.monotonic() + rng.random() * 5e-3
        while time.monotonic() < end:
            check()
        _killed(child, 0.0)
        check()
    remove_leftovers(path)
    assert [item.name for item in folder.iterdir()] == ["file"], "files of killed writers are left"
    return Counts(KILLS, KILLS)


def kill_lock(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill at random processes that want one folder.

    One has it at a time, and nobody's events are lost.
    """
    page, count = Page(), 3

    def write(mine: int) -> None:
        try:
            store = MemoryStore(folder / "store", {"notes": Notes()}, fsync="never")
        except StorageError:
            time.sleep(2e-4)
            return
        for _ in range(3):
            i = page.get(_LAST + 8 * mine)
            page.put(512 + 8 * mine, i + 1)
            store.record("notes", {"user": f"user {mine}", "text": f"{mine} {i}"})
            page.put(_LAST + 8 * mine, i + 1)
        store.close()

    children = [_child(lambda mine=mine: write(mine)) for mine in range(count)]
    kills = 0
    try:
        for _ in range(KILLS):
            time.sleep(rng.random() * 0.01)
            mine = rng.randrange(count)
            _killed(children[mine], 0.0)
            kills += 1
            # What was begun and not acknowledged may be there; the next one of this writer has another text.
            page.put(_LAST + 8 * mine, page.get(512 + 8 * mine))
            children[mine] = _child(lambda mine=mine: write(mine))
    finally:
        for child in children:
            _killed(child, 0.0)
    notes = Notes()
    with MemoryStore(folder / "store", {"notes": notes}, fsync="never") as store:
        damage = [one for one in store.report.damage if not one.cut]  # a kill may tear the last write, which is cut
        assert not damage, f"a folder of one writer at a time is damaged: {damage}"
    for mine in range(count):
        own = [int(row[3].split()[1]) for row in notes.rows if row[0] == f"user {mine}"]
        assert own == sorted(set(own)), f"events of writer {mine} are not there once and in order: {own}"
        lost = set(range(page.get(_LAST + 8 * mine))) - set(own)
        assert len(lost) <= kills, f"{len(lost)} events of writer {mine} are lost after {kills} kills"
    return Counts(kills, kills)


def power_loss(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Keep of a folder only what was synced when its writer died.

    What was acknowledged is there.
    """
    found: set[int] = set()
    last = 0
    for number in range(4):
        store, page = folder / f"store-{number}", Page()
        store.mkdir(exist_ok=True)
        (folder / f"store-{number}.durable").mkdir()
        for path in [*store.iterdir(), store]:  # what is there at first is on the disk
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        page.put(_LAST, last)
        aim = rng.choice([_WRITE, _SNAPSHOT, _FORGET])
        child = _child(functools.partial(_write, page, store, "always", aim, rng.random()))
        _kill(child, page, aim, rng.randrange(1, 5), rng.random() ** 2 * 5e-3)
        after = folder / f"store-{number + 1}"
        _recover(folder / f"store-{number}.durable", after)
        last, found = _check(after, page, last, found, read_only=False)
        shutil.rmtree(store)
    return Counts(4, 4)


def _recover(durable: pathlib.Path, target: pathlib.Path) -> None:
    """Make the folder that a loss of power leaves.

    It has the synced names, each with its synced bytes.
    """
    target.mkdir()
    names = durable / "names"
    for line in names.read_text().splitlines() if names.exists() else ():
        inode, name = line.split(" ", 1)
        (target / name).write_bytes(_bytes(durable / inode))
