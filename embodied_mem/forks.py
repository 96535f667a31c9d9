"""Locks that are released in a forked child, where the threads that held them do not exist.

self._lock = forking_lock()
with self._lock: ...
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def forking_lock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked child.

    It is free even if a thread held it during the fork. What it guards may be half changed then, so it is for what
    stays usable: counters, caches, what checks itself.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as the locks of the standard library's own modules


os.register_at_fork(after_in_child=_free_all)
