"""The parent of the writers that test_store_kills.py kills: imports the store once, forks one for each line read.

    LD_PRELOAD=disk_faults.so python kill_zygote.py        # reads "MODE FOLDER FSYNC N", one writer at a time
    started 4711                                           # then: open 20, ended -9

MODE `record`, `snapshot`, `forget` or `reopen`: does that once and is killed before its N-th system call that changes a
file or the folder. The writers print to the zygote's own output, on which "ended" and the exit code come when it has
waited for them, after all that they said.

The zygote holds no store and has no threads, so a fork copies neither.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from embodied_mem.memory import MemoryStore  # noqa: E402
from experiments.attacks.notes_module import Notes  # noqa: E402

LIFETIME_S = 300  # of a writer that nobody kills


def say(text):
    os.write(1, f"{text}\n".encode())


def write(mode, folder, fsync, n):
    signal.alarm(LIFETIME_S)
    arm = ctypes.CDLL(None).arm
    if mode == "reopen":
        arm(ctypes.c_long(int(n)))
    memory = MemoryStore(folder, {"notes": Notes()}, fsync=fsync, snapshot_bytes=2500)
    say(f"open {memory.last_event}")
    arm(ctypes.c_long(int(n)))
    if mode == "record":
        memory.record("notes", {"user": "kept", "text": "kept 20"})
    elif mode == "snapshot":
        memory.snapshot()
    elif mode == "forget":
        memory.forget(user="gone")
    arm(ctypes.c_long(-1))  # never
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
