"""A disk that is full: a limit on the size of files (RLIMIT_FSIZE) and, where the system lets one, a small tmpfs.

Whatever writes must end in an error of the library or an `OSError`, must not lose what it acknowledged before, and must
go on when there is room again.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import resource
import signal
import subprocess
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import Experiences, MemoryStore, VectorIndex
from embodied_mem.types import Episode, Step

from . import Counts
from .notes_module import Notes

TMPFS_BYTES = 128 << 10


@contextlib.contextmanager
def _limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size`.

    A write() is short at it, then fails with EFBIG.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def _filled(folder: pathlib.Path, leave: int) -> Iterator[None]:
    """Fill the tmpfs at `folder` up to `leave` bytes."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 1024)
    with contextlib.suppress(OSError):
        os.truncate(ballast, max(ballast.stat().st_size - leave, 0))
    try:
        yield
    finally:
        ballast.unlink()


def _fails(call: Callable[[], object]) -> bool:
    """Return whether the call was told that the disk is full.

    Any other error is raised.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            call()
        except (EmbodiedMemError, OSError):
            return True
    return bool(told)


def full_disk(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Let a store, index, bank and recording run out of room."""
    mounted = rng.random() < 0.3 and _mount(folder)
    try:
        counts = [attack(rng, folder, mounted) for attack in (_store, _vectors, _bank, _recording)]
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
    return Counts(len(counts), sum(counts))


def _mount(folder: pathlib.Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


def _full(rng: random.Random, folder: pathlib.Path, mounted: bool, at_most: int) -> contextlib.AbstractContextManager:
    return _filled(folder, rng.randrange(3) * 4096) if mounted else _limit(rng.randrange(1, at_most))


def _store(rng: random.Random, folder: pathlib.Path, mounted: bool) -> bool:
    expected, options = [], {"fsync": rng.choice(["never", "interval", "always"])}
    landed = False

    def check(read_only: bool) -> None:
        notes = Notes()
        with MemoryStore(folder / "store", {"notes": notes}, fsync="never", read_only=read_only):
            assert [row[3] for row in notes.rows] == expected, "what is there is not what was acknowledged"

    notes = Notes()
    store = MemoryStore(folder / "store", {"notes": notes}, **options)
    for i in range(10):
        store.record("notes", {"user": "ann", "text": f"before {i}"})
        expected.append(f"before {i}")
    size = max(path.stat().st_size for path in (folder / "store").iterdir())
    with _full(rng, folder, mounted, size + 600):
        for i in range(60):
            text = f"full {i} " + "x" * rng.randrange(200)
            if _fails(lambda text=text: store.record("notes", {"user": "bob", "text": text})):
                landed = True
            else:
                expected.append(text)
        landed |= _fails(store.snapshot)
        check(read_only=True)
        if rng.random() < 0.5:
            landed |= _fails(lambda: store.forget(user="bob"))
            expected = [row[3] for row in notes.rows] if not _pending(folder) else expected
    with contextlib.suppress(EmbodiedMemError):
        store.close()
    if _pending(folder):
        expected = [text for text in expected if not text.startswith("full")]
    with MemoryStore(folder / "store", {"notes": Notes()}, **options) as store:
        store.record("notes", {"user": "ann", "text": "after"})
        expected.append("after")
        store.snapshot()
    check(read_only=False)
    left = [path.name for path in (folder / "store").iterdir() if path.suffix in (".tmp", ".partial")]
    assert not left, f"left behind: {left}"
    return landed


def _pending(folder: pathlib.Path) -> bool:
    """Return whether a forget is recorded and not finished.

    What the modules say of it does not count.
    """
    with MemoryStore(folder / "store", {"notes": Notes()}, fsync="never", read_only=True) as store:
        return store.report.forget_pending


def _vectors(rng: random.Random, folder: pathlib.Path, mounted: bool) -> bool:
    index = VectorIndex(32, kind=rng.choice(["exact", "hnsw"]))
    index.add(np.arange(60), np.random.default_rng(0).normal(size=(60, 32)), num_threads=1)
    path = folder / "v.idx"
    index.save(path)
    index.add(np.arange(60, 100), np.random.default_rng(1).normal(size=(40, 32)), num_threads=1)
    with _full(rng, folder, mounted, 12_000):
        failed = _fails(lambda: index.save(path))
    assert len(VectorIndex.load(path)) == (60 if failed else 100), "neither the old file nor the new one"
    index.save(path)
    assert len(VectorIndex.load(path)) == 100
    left = [item.name for item in folder.iterdir() if "v.idx" in item.name and item != path]
    assert not left, f"left behind: {left}"
    return failed


def _bank(rng: random.Random, folder: pathlib.Path, mounted: bool) -> bool:
    def bank(count: int) -> Experiences:
        made = Experiences()
        for i in range(count):
            text = f"{i} " + " ".join(str(rng.random()) for _ in range(30))
            made.add(Episode(f"game {i}", f"put a mug {i} in desk.", (Step(text, "take mug 1"),), True, "You win."))
        return made

    path = folder / "bank.jsonl"
    bank(2).save(path)
    larger = bank(20)
    with _full(rng, folder, mounted, 8000):
        failed = _fails(lambda: larger.save(path))
    assert len(Experiences.load(path)) == (2 if failed else 20), "neither the old file nor the new one"
    larger.save(path)
    assert len(Experiences.load(path)) == 20
    return failed


def _recording(rng: random.Random, folder: pathlib.Path, mounted: bool) -> bool:
    from embodied_mem.language import ChatReply, RecordedChatModel, Usage, UsageMeter

    class Model:
        name, meter = "m", UsageMeter()

        def complete(self, messages: list, **_: object) -> ChatReply:
            return ChatReply(f"answer to {messages[-1]['content']}", Usage(1, 1))

    path, known = folder / "calls.jsonl", []
    ask = lambda model, text: model.complete([{"role": "user", "content": text}])  # noqa: E731
    model = RecordedChatModel(Model(), path)
    ask(model, "first")
    known.append("first")
    landed = False
    with _full(rng, folder, mounted, 2500):
        for i in range(12):
            text = f"question {i} " + "y" * rng.randrange(300)
            if _fails(lambda text=text: ask(model, text)):
                landed = True
            else:
                known.append(text)
    ask(model, "last")
    replayed = RecordedChatModel(None, path, "m")
    for text in (*known, "last"):
        assert ask(replayed, text).text == f"answer to {text}", "an answer that was given is not in the file"
    return landed
