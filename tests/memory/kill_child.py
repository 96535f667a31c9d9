"""The child that test_kill.py kills: records notes as fast as it can and prints the number of each acknowledged one.

    python kill_child.py FOLDER MODE [N]

MODE `run`: now and then a snapshot, and a forget of what it has written so far under the name "gone". MODE `snapshot`
or `forget`: does that once and kills itself with SIGKILL at the N-th call that changes the folder.
"""

import os
import signal
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The package's own __init__ of memory/ loads numpy and gymnasium's neighbours, which takes longer than a child lives.
package = types.ModuleType("embodied_mem.memory")
package.__path__ = [str(ROOT / "embodied_mem" / "memory")]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
sys.modules["embodied_mem.memory"] = package

from notes_module import Notes  # noqa: E402

from embodied_mem.memory import snapshot_files, store  # noqa: E402


def say(text):
    os.write(1, f"{text}\n".encode())


def run(memory, notes):
    """Endless. A forgotten note is said before it goes, so that the parent can tell loss from forgetting."""
    while True:
        number = memory.last_event + 1
        user = "gone" if number % 3 == 0 else "kept"
        memory.record("notes", {"user": user, "text": f"{user} {number}"})
        say(f"ack {number} {user}")
        if number % 40 == 20:
            memory.snapshot()
            say("snapshot")
        if number % 90 == 60:
            say("forgetting")
            memory.forget(user="gone")
            say(f"forgot {number}")


class Killer:
    """Kills the process at the n-th call of what it wraps."""

    def __init__(self, n):
        self.left = n

    def wrap(self, call):
        def wrapped(*args, **kwargs):
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
            return call(*args, **kwargs)

        return wrapped


class KillingLog:
    """The log, with each call that changes something wrapped."""

    def __init__(self, log, killer):
        self._log, self._killer = log, killer

    def __getattr__(self, name):
        value = getattr(self._log, name)
        return self._killer.wrap(value) if name in ("enqueue", "wait", "sync", "roll", "remove_oldest") else value


def at_point(memory, mode, n):
    killer = Killer(n)
    snapshot_files.os = types.SimpleNamespace(
        **{name: getattr(os, name) for name in ("open", "close", "O_RDONLY")},
        fsync=killer.wrap(os.fsync),
        replace=killer.wrap(os.replace),
    )
    snapshot_files.open = killer.wrap(open)
    store.read_snapshot = killer.wrap(store.read_snapshot)
    Path.unlink = killer.wrap(Path.unlink)
    memory._log = KillingLog(memory._log, killer)
    say("begin")
    if mode == "snapshot":
        memory.snapshot()
    else:
        memory.forget(user="gone")
    say("end")


def main():
    folder, mode = sys.argv[1:3]
    notes = Notes()
    memory = store.MemoryStore(folder, {"notes": notes}, fsync="never", segment_bytes=1500)
    say(f"open {memory.last_event}")
    if mode == "run":
        run(memory, notes)
    at_point(memory, mode, int(sys.argv[3]))


main()
