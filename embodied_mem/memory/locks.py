"""One writer at a time. Readers block only while a change is applied.

    with locks.writing:                 # one thread at a time looks, decides and records; others may read meanwhile
        event = proposed()              # may wait for a chat model
        record(event)                   # calls `apply`:
    with locks.applying: ...            # nobody reads
    with locks.reading: ...             # nobody applies

`writing` is taken before the locks of a store, the other two after them, so that a store may ask for a state.
"""

from __future__ import annotations

from ..errors import InvalidInputError
from ..forks import forking_lock


class _Whole:
    """A lock on a memory that no other thread is in the middle of changing."""

    def __init__(self, locks: Locks, applies: bool):
        self._locks, self._applies = locks, applies

    def __enter__(self) -> None:
        locks = self._locks
        locks._whole.acquire()
        if locks._is_applying:
            locks._whole.release()
            raise InvalidInputError(
                "memory: expected one that is whole, got one that another thread was changing when this process was "
                "forked; open it again"
            )
        locks._is_applying = self._applies

    def __exit__(self, *exception: object) -> None:
        self._locks._is_applying = False
        self._locks._whole.release()


class Locks:
    """The locks of one memory, free in a forked child.

    Attributes:
        writing: held by the thread that changes the memory, from looking at it to the end of the change.
        applying: nobody reads inside. Raises InvalidInputError if another thread was changing the memory when this
            process was forked; so does `reading`.
        reading: nothing changes inside.
    """

    def __init__(self) -> None:
        self.writing = forking_lock()
        self._whole = forking_lock()
        self._is_applying = False
        self.reading = _Whole(self, False)
        self.applying = _Whole(self, True)
