"""Runs a few calls at once, for memories that each wait for a model.

calls = ParallelCalls(5)
answers = calls.run([ask_one, ask_another])      # in their order
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Sequence
from typing import Any


class ParallelCalls:
    """Threads that are started when they are first needed; a forked child starts its own."""

    def __init__(self, num_threads: int):
        self._num_threads = num_threads
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._process = 0

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return what the calls return; the first error of one is raised."""
        if self._pool is None or self._process != os.getpid():  # a forked child has none of its threads
            self._process = os.getpid()
            self._pool = concurrent.futures.ThreadPoolExecutor(self._num_threads, "embodied_mem.memory")
        return [future.result() for future in [self._pool.submit(call) for call in calls]]

    def close(self) -> None:
        """End the threads, if there are any."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None
