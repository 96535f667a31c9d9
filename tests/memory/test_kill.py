"""A writer that is killed at any moment loses nothing that it acknowledged, and finishes what it promised to forget."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from notes_module import Notes

from embodied_mem.memory import MemoryStore

CHILD = Path(__file__).parent / "kill_child.py"
NUM_KILLS = 200


def start(*arguments) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-S", str(CHILD), *map(str, arguments)], stdout=subprocess.PIPE)


def open_store(folder) -> tuple[MemoryStore, list[str]]:
    notes = Notes()
    store = MemoryStore(folder, {"notes": notes}, fsync="never")
    return store, [row[3] for row in notes.rows]


def test_kills_at_random_moments(memory_folders):
    """Each child goes on with the folder that the one before was killed in."""
    rng, folder = random.Random(5), memory_folders()
    landed = 0
    acknowledged: dict[int, str] = {}
    forgotten = 0  # all "gone" notes up to here went
    while landed < NUM_KILLS:
        child = start(folder, "run")
        lines = []
        while not any(line.startswith(b"ack") for line in lines):  # it is up and writing
            line = child.stdout.readline()
            assert line, "the child ended on its own"
            lines.append(line)
        time.sleep(rng.random() * 0.03)
        assert child.poll() is None  # alive ...
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.read().splitlines(keepends=True)
        assert child.wait() == -signal.SIGKILL  # ... and this is what ended it
        child.stdout.close()
        landed += 1
        pending = False
        for line in lines:
            word, *rest = line.decode().split()
            if word == "ack":
                acknowledged[int(rest[0])] = rest[1]
            elif word == "forgetting":
                pending = True
            elif word == "forgot":
                forgotten, pending = int(rest[0]), False
        store, texts = open_store(folder)
        last = store.last_event
        store.close()
        numbers = [int(text.split()[1]) for text in texts]
        assert numbers == sorted(set(numbers))
        assert last >= max(acknowledged)
        kept = {number for number, user in acknowledged.items() if user == "kept"}
        assert kept <= set(numbers)
        gone = {number for number, user in acknowledged.items() if user == "gone" and number > forgotten}
        if gone - set(numbers):  # only a forget that was under way may have taken them, and then all of them
            assert pending
            assert not any(text.startswith("gone") and int(text.split()[1]) <= max(acknowledged) for text in texts)
            forgotten = max(acknowledged)
        assert not [n for n in numbers if acknowledged.get(n) == "gone" and n <= forgotten]
        if len(acknowledged) > 400:  # a short history keeps the children quick
            for path in folder.iterdir():
                path.unlink()
            acknowledged, forgotten = {}, 0


def prepared(folder: Path) -> None:
    notes = Notes()
    with MemoryStore(folder, {"notes": notes}, fsync="never", segment_bytes=300) as store:
        for i in range(20):
            store.record("notes", {"user": "gone" if i % 2 else "kept", "text": f"{'secret' if i % 2 else 'kept'} {i}"})
            if i == 9:
                store.snapshot()


@pytest.mark.parametrize("mode", ["snapshot", "forget"])
def test_kills_at_every_step(memory_folders, mode):
    """SIGKILL at each call that changes the folder: nothing is lost, and a forget whose record is there is finished."""
    killed = unfinished = 0
    for n in range(100):
        folder = memory_folders()
        prepared(folder)
        child = start(folder, mode, n)
        out, _ = child.communicate()
        assert b"begin" in out
        ended = b"end" in out
        assert child.returncode == (0 if ended else -signal.SIGKILL)
        store, texts = open_store(folder)
        store.close()
        kept = [f"kept {i}" for i in range(0, 20, 2)]
        if mode == "snapshot":
            assert [text for text in texts if text.startswith("kept")] == kept
            assert len(texts) == 20
        else:
            assert len(texts) in (10, 20)
            assert [text for text in texts if text.startswith("kept")] == kept
            unfinished += store.report.forget_pending
            if len(texts) == 10:
                assert not [
                    p.name for p in folder.iterdir() if b"secret" in p.read_bytes() or b"gone" in p.read_bytes()
                ]
        assert not list(folder.glob("*.tmp"))
        if ended:
            break
        killed += 1
    assert ended
    assert killed >= 8
    if mode == "forget":
        assert len(texts) == 10
        assert unfinished >= 3
