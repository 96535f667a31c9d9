"""What a graph's `observe` did and nobody has been told of: reports of several updates put together as one.

buffer = ObservationBuffer(capacity=64)
buffer.add(got)         # what the native update returned
buffer.full, buffer.take()
"""

from __future__ import annotations

import threading
from typing import Any

_LISTS = ("subjects", "objects", "facts", "new_nodes", "similar_nodes", "added", "repeated", "ended")


class ObservationBuffer:
    """What `observe` did and `integrate` has not reported; `lock` keeps both whole when several threads write.

    Adding keeps the report as it is, since it is on the way of every observation; putting together is for `take`.

    Attributes:
        count: triples that wait.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        self._reports: list[dict[str, Any]] = []
        self.count = 0

    def copy(self) -> ObservationBuffer:
        other = ObservationBuffer(self.capacity)
        other._reports, other.count = list(self._reports), self.count
        return other

    def add(self, report: dict[str, Any]) -> None:
        self._reports.append(report)
        self.count += len(report["facts"])

    def take(self) -> dict[str, Any]:
        got = {name: [value for report in self._reports for value in report[name]] for name in _LISTS}
        got["similar_nodes"] = list(dict.fromkeys(got["similar_nodes"]))
        self.clear()
        return got

    @property
    def full(self) -> bool:
        return self.count >= self.capacity
