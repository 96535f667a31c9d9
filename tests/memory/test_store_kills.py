"""A writer that is killed at any step loses nothing that it acknowledged, and finishes what it promised to forget.

Kills at random moments are in experiments/attacks/kills.py, which tests/faults runs.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embodied_mem.memory import MemoryStore
from experiments.attacks.notes_module import Notes
from experiments.attacks.planted import preloaded

ZYGOTE = Path(__file__).parent / "kill_zygote.py"
PATIENCE_S = 60  # for one line; a busy machine is slow, a hanging one is not


class Writers:
    """The zygote, and the one writer of it that lives."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(ZYGOTE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env={**os.environ, "LD_PRELOAD": str(preloaded())},
        )  # fmt: skip
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.bytes = b""

    def start(self, mode: str, folder: Path, fsync: str, n: int = 0) -> int:
        """Return the process id of a new writer."""
        self.process.stdin.write(f"{mode} {folder} {fsync} {n}\n".encode())
        # The writer may speak before the zygote says who it is; a line that is not its own waits its turn.
        self.early: list[list[str]] = []
        while (line := self._line("the zygote to fork"))[0] != "started":
            self.early.append(line)
        return int(line[1])

    def next(self, what: str) -> list[str]:
        """Return the words of the next line."""
        line = self.early.pop(0) if self.early else self._line(what)
        assert line[0] != "failed", f"waiting for {what}: the writer {' '.join(line)}"
        return line

    def until_ended(self) -> list[list[str]]:
        """Return the lines up to "ended -9"."""
        lines = [self.next("the writer to end")]
        while lines[-1][0] != "ended":
            lines.append(self.next("the writer to end"))
        return lines

    def _line(self, what: str) -> list[str]:
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self.bytes:
            left = deadline - time.monotonic()
            assert left > 0, f"waited {PATIENCE_S} s for {what}"
            if not self.selector.select(left):
                continue
            got = os.read(self.process.stdout.fileno(), 1 << 16)
            assert got, f"waiting for {what}: the zygote ended"
            self.bytes += got
        line, _, self.bytes = self.bytes.partition(b"\n")
        return line.decode().split(maxsplit=1 if line.startswith(b"failed") else -1)

    def close(self) -> None:
        """A writer that is left finds nobody to speak to and ends."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.process.stdin.close()
        self.process.stdout.close()
        self.selector.close()


@pytest.fixture(scope="module")
def writers():
    zygote = Writers()
    yield zygote
    zygote.close()


def read(folder: Path, read_only: bool) -> tuple[MemoryStore, list[str]]:
    notes = Notes()
    with MemoryStore(folder, {"notes": notes}, fsync="never", read_only=read_only) as store:
        assert not any("expected events up to" in damage.reason for damage in store.report.damage)  # a kill loses none
        return store, [row[3] for row in notes.rows]


def prepared(root: Path) -> Path:
    """A store of twenty notes, ten of them after its snapshot."""
    folder = root / "attack-store"
    with MemoryStore(folder, {"notes": Notes()}, fsync="never") as store:
        for i in range(20):
            store.record("notes", {"user": "gone" if i % 2 else "kept", "text": f"{'secret' if i % 2 else 'kept'} {i}"})
            if i == 9:
                store.snapshot()
    return folder


def bare(folder: Path) -> None:
    """Nothing of what was forgotten is in a file."""
    assert not [p.name for p in folder.iterdir() if b"secret" in p.read_bytes() or b"gone" in p.read_bytes()]


@pytest.mark.parametrize("fsync", ["always", "never"])
@pytest.mark.parametrize("mode", ["record", "snapshot", "forget"])
def test_kills_at_every_step(memory_folders, writers, mode, fsync):
    """SIGKILL before each system call that changes the folder: nothing is lost, and a recorded forget is finished."""
    killed = unfinished = 0
    for n in range(200):
        folder = prepared(memory_folders())
        writers.start(mode, folder, fsync, n)
        lines = writers.until_ended()
        done = ["done"] in lines
        assert ["open", "20"] in lines
        assert lines[-1] == ["ended", "0" if done else "-9"]
        store, texts = read(folder, read_only=False)
        assert [text for text in texts if text.startswith("kept")][:10] == [f"kept {i}" for i in range(0, 20, 2)]
        if mode != "forget":
            assert len(texts) in ((20, 21) if mode == "record" else (20,))
        else:
            assert len(texts) in (10, 20)
            unfinished += store.report.forget_pending
        if len(texts) == 10:
            bare(folder)
        assert {path.name for path in folder.iterdir() if path.suffix != ".bin"} == {"LOCK", "memory.db"}
        if done:
            break
        killed += 1
    assert done
    assert killed >= {"record": 3, "snapshot": 8, "forget": 12}[mode]
    assert len(texts) == {"record": 21, "snapshot": 20, "forget": 10}[mode]
    assert mode != "forget" or unfinished >= 3


def test_kills_at_every_step_of_finishing_a_forget(memory_folders, writers):
    """A forget that was killed after its record is finished by whoever opens the store and lives."""
    killed = unfinished = 0
    for n in range(200):
        folder = prepared(memory_folders())
        for step in range(3, 20):
            writers.start("forget", folder, "never", step)
            assert writers.until_ended()[-1] == ["ended", "-9"]
            reader, _ = read(folder, read_only=True)
            if reader.report.forget_pending:
                break
        assert reader.report.forget_pending
        writers.start("reopen", folder, "never", n)
        lines = writers.until_ended()
        done = ["done"] in lines
        assert lines[-1] == ["ended", "0" if done else "-9"]
        store, texts = read(folder, read_only=False)
        assert texts == [f"kept {i}" for i in range(0, 20, 2)]
        bare(folder)
        unfinished += store.report.forget_pending
        if done:
            break
        killed += 1
    assert done
    assert killed >= 8
    assert unfinished >= 3


def test_kills_at_every_step_of_the_first_opening(memory_folders, writers):
    """A folder whose first writer was killed opens, and is empty."""
    for n in range(100):
        folder = memory_folders() / "attack-store"
        writers.start("reopen", folder, "always", n)
        done = ["done"] in writers.until_ended()
        for read_only in (True, False):
            if folder.exists() or not read_only:
                assert read(folder, read_only)[1] == []
        if done:
            break
    assert done
    assert n >= 5
