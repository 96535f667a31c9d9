"""The memories of many scopes on one server, the last used ones open in this process.

    with HotScopes(Server("postgresql://host/memory"), max_scopes=200) as scopes:
        with scopes.use(Scope(user="ann")) as memory:
            memory.tell("I like tea.")

A memory that is in use stays open, beyond the maximum too. After a StorageError, such as a lost connection or another
writer of the scope, a memory is closed; its next use opens it anew.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ..errors import InvalidInputError, StorageError
from ..forks import forking_lock
from .arguments import checked_number, shown
from .event_store import EventServer
from .graph import Scope, checked_scope
from .lifelong import LifelongMemory


class _Place:
    """A scope and its memory, which one thread at a time opens and closes."""

    def __init__(self) -> None:
        self.opening = forking_lock()
        self.memory: LifelongMemory | None = None
        self.num_users = 0

    def close(self) -> None:
        with self.opening:
            memory, self.memory = self.memory, None
            if memory is not None:
                memory.close()


class HotScopes:
    """Memories by scope. Any thread may use them.

    Args:
        server: that has them.
        max_scopes: that stay open when nobody uses them.
        options: as for `LifelongMemory.open`.
    """

    def __init__(self, server: EventServer, max_scopes: int = 256, **options: Any):
        if not isinstance(server, EventServer):
            raise InvalidInputError(f"server: expected an EventServer, got {shown(server)}")
        self._server, self._options = server, options
        self._max_scopes = checked_number("max_scopes", max_scopes, 1)
        self._places: OrderedDict[Scope, _Place] = OrderedDict()  # the last used one last
        self._lock = forking_lock()

    @contextlib.contextmanager
    def use(self, scope: Scope) -> Iterator[LifelongMemory]:
        """Lend the memory of a scope. Raises as `LifelongMemory.open`."""
        with self._lock:
            place = self._places.setdefault(checked_scope(scope), _Place())
            self._places.move_to_end(scope)
            place.num_users += 1
        try:
            with place.opening:
                if place.memory is None:
                    place.memory = self._open(scope)
                memory = place.memory
            yield memory
        except StorageError:
            place.close()
            raise
        finally:
            with self._lock:
                place.num_users -= 1
                idle = [one for one, other in self._places.items() if not other.num_users]
                for one in idle[: max(len(self._places) - self._max_scopes, 0)]:
                    self._places.pop(one).close()

    def _open(self, scope: Scope) -> LifelongMemory:
        return LifelongMemory.open(self._server, scope, **self._options)

    def __len__(self) -> int:
        """Return the number of open memories."""
        return sum(place.memory is not None for place in list(self._places.values()))

    def close(self) -> None:
        """Close all that are open."""
        with self._lock:
            places = list(self._places.values())
        for place in places:
            place.close()

    def __enter__(self) -> HotScopes:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
