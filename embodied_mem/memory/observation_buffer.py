"""What a graph's `observe` did and nobody has been told of: reports of several updates put together as one.

buffer = ObservationBuffer(capacity=64)
buffer.add(got)         # what the native update returned
buffer.full, buffer.take()
"""

from __future__ import annotations

import threading
from typing import Any


class ObservationBuffer:
    """What `observe` did and `integrate` has not reported; `lock` keeps both whole when several threads write."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        lists = ("subjects", "objects", "facts", "new_nodes", "similar_nodes", "added", "repeated", "ended")
        self._got: dict[str, list] = {name: [] for name in lists}

    def copy(self) -> ObservationBuffer:
        other = ObservationBuffer(self.capacity)
        other._got = {name: list(values) for name, values in self._got.items()}
        return other

    def add(self, got: dict[str, Any]) -> None:
        for name, values in self._got.items():
            known = values if name == "similar_nodes" else ()
            values += [value for value in got[name] if value not in known]

    def take(self) -> dict[str, Any]:
        got: dict[str, Any] = self._got
        self.clear()
        return got

    @property
    def count(self) -> int:
        return len(self._got["facts"])

    @property
    def full(self) -> bool:
        return self.count >= self.capacity
