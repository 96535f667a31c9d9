"""The parent of the writers that test_kill.py kills: imports the store once and forks a writer for each line it reads.

    python -S kill_zygote.py            # reads "MODE FOLDER FSYNC N", one writer at a time
    started 4711                        # then: open 20, ended -9

MODE `snapshot`, `forget` or `reopen`: does that once and kills itself at the N-th call that changes the folder. The
writers print to the zygote's own output, on which "ended" and the exit code come when it has waited for them, after all
that they said.

The zygote holds no store and has no threads, so a fork copies neither.
"""

import os
import signal
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parents[3]
# The package's own __init__ of memory/ loads numpy and gymnasium's neighbours, which writers have no use for.
package = types.ModuleType("embodied_mem.memory")
package.__path__ = [str(ROOT / "embodied_mem" / "memory")]
sys.path[:0] = [str(ROOT)]
sys.modules["embodied_mem.memory"] = package

from embodied_mem import atomic_file  # noqa: E402
from embodied_mem.memory.store import snapshot_files, store  # noqa: E402
from experiments.attacks.notes_module import Notes  # noqa: E402

LIFETIME_S = 300  # of a writer that nobody kills


def say(text):
    os.write(1, f"{text}\n".encode())


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
        return (
            self._killer.wrap(value)
            if name in ("recover", "enqueue", "wait", "sync", "roll", "remove_oldest")
            else value
        )


def arm(n):
    """Return what kills at the n-th call that changes a folder from now on; the log is for the caller to wrap."""
    killer = Killer(n)
    changed = {"fsync": killer.wrap(os.fsync), "replace": killer.wrap(os.replace), "open": killer.wrap(os.open)}
    atomic_file.os = types.SimpleNamespace(**{**vars(os), **changed})
    snapshot_files.open = killer.wrap(open)
    store.read_snapshot = killer.wrap(store.read_snapshot)
    Path.unlink = killer.wrap(Path.unlink)
    return killer


def write(mode, folder, fsync, n):
    signal.alarm(LIFETIME_S)
    if mode == "reopen":
        killer, log = arm(int(n)), store.part("storage").EventLog
        store.part = lambda name: types.SimpleNamespace(EventLog=lambda *a: KillingLog(log(*a), killer))
    memory = store.MemoryStore(folder, {"notes": Notes()}, fsync=fsync, segment_bytes=1500, snapshot_bytes=2500)
    say(f"open {memory.last_event}")
    if mode in ("snapshot", "forget"):
        memory._log = KillingLog(memory._log, arm(int(n)))
        if mode == "snapshot":
            memory.snapshot()
        else:
            memory.forget(user="gone")
    say("done")


def main():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                write(*line.split())
                code = 0
            except BrokenPipeError:
                pass  # the test is gone
            except BaseException as error:
                say(f"failed {error!r}")
            finally:
                os._exit(code)
        say(f"started {child}")
        say(f"ended {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")


main()
