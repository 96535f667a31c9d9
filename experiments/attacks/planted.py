"""Faults planted in the library, which the attacks must find: the proof that a campaign without faults says something.

    python experiments/faults.py --planted

Faults of the disk are planted in the system calls (`disk_faults.c`, preloaded); the others replace one function.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading
from collections.abc import Callable
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = pathlib.Path(__file__).with_name("disk_faults.c")

PLANTED = {
    "early": "kill_write",  # a call returns before its event is written
    "early_threads": "kill_threads",  # the same, of threads other than the first alone
    "unsynced": "power_loss",  # fsync does nothing
    "cut": "flip_log",  # repair cuts more than what is damaged, and reports it
    "left": "kill_forget",  # the WAL is not truncated, and keeps what was forgotten
    "torn": "kill_files",  # a file is replaced piece by piece
    "unlocked": "kill_lock",  # two writers have one folder
    "swallowed": "full_disk",  # a write that failed counts as done
    "unchecked": "flip_bank",  # a checksum is not compared
    "raw": "mutate_bank",  # a reader raises an error that is not ours
    "answered_early": "kill_mcp",  # a tool answers before the memory has written
    "value_left": "kill_langgraph",  # a forgotten value stays in the log
    "crossed": "doors",  # one user's token opens another user's folder
    "unbounded": "doors",  # a tool raises a raw error for odd arguments
}
"""Planted fault -> the attack that finds it."""


def preloaded() -> pathlib.Path:
    """Build the library of changed system calls; return its path.

    It is built where it is missing or old.
    """
    library = ROOT / "build" / "attacks" / "disk_faults.so"
    if not library.exists() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        partial = library.with_suffix(f".{os.getpid()}")
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(partial), str(SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True)
        partial.replace(library)
    return library


def plant(name: str) -> None:
    """Plant a fault in this process.

    Those of the disk are in the preloaded library already.
    """
    if name in _IN_PYTHON:
        _IN_PYTHON[name]()


def _cut() -> None:
    from embodied_mem.memory import MemoryStore

    opened = MemoryStore._open

    def cut(store: MemoryStore) -> object:
        report = opened(store)
        if report.damage:
            store._modules["notes"].rows.pop()  # type: ignore[attr-defined]
        return report

    MemoryStore._open = cut  # type: ignore[assignment, method-assign]


def _unchecked() -> None:
    from embodied_mem.memory import bank

    bank.hashlib = SimpleNamespace(sha256=lambda _: SimpleNamespace(hexdigest=lambda: "0" * 64))


def _raw() -> None:
    from embodied_mem.memory import bank

    bank.InvalidInputError = KeyError


def _answered_early() -> None:
    from embodied_mem.memory import LifelongMemory

    tell = LifelongMemory.tell

    def early(memory: LifelongMemory, *args: object, **options: object) -> object:
        threading.Timer(0.005, tell, (memory, *args), options).start()
        return tell(LifelongMemory(memory.scope), *args, **options)  # type: ignore[arg-type]

    LifelongMemory.tell = early  # type: ignore[assignment, method-assign]


def _value_left() -> None:
    from embodied_mem.serve.documents import Documents

    Documents.remove = lambda *_: {"documents": 1}  # type: ignore[method-assign]


def _crossed() -> None:
    from embodied_mem.serve.mcp import Memories

    of = Memories._of
    Memories._of = lambda memories, user: of(memories, "ann")  # type: ignore[method-assign]


def _unbounded() -> None:
    from embodied_mem.serve import tools

    tools._arguments = lambda name, arguments: dict(arguments)


_IN_PYTHON: dict[str, Callable[[], None]] = {
    "cut": _cut, "unchecked": _unchecked, "raw": _raw, "answered_early": _answered_early,
    "value_left": _value_left, "crossed": _crossed, "unbounded": _unbounded,
}  # fmt: skip
