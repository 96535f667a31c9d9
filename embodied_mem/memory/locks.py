"""Who may look at a memory and who may change it, where any thread may call.

    with turns.turn:                 # one thread at a time looks, decides and records; others may read meanwhile
        event = proposed()           # may wait for a chat model
        record(event)                # which calls `apply`:
    with turns.changing: ...         # nobody reads
    with turns.reading: ...          # nobody changes

`turn` is taken before the locks of a store, the other one after them, so that a store may ask for a state.
"""

from __future__ import annotations

from ..errors import InvalidInputError
from ..forks import forking_lock


class _Whole:
    """What `with` takes: a memory that no other thread is in the middle of changing."""

    def __init__(self, turns: Turns, changes: bool):
        self._turns, self._changes = turns, changes

    def __enter__(self) -> None:
        turns = self._turns
        turns._whole.acquire()
        if turns._is_changing:
            turns._whole.release()
            raise InvalidInputError(
                "memory: expected one that is whole, got one that another thread was changing when this process was "
                "forked; open it again"
            )
        turns._is_changing = self._changes

    def __exit__(self, *exception: object) -> None:
        self._turns._is_changing = False
        self._turns._whole.release()


class Turns:
    """The locks of one memory, free in a forked child.

    Attributes:
        turn: held by the thread that changes the memory, from looking at it to the end of the change.
        reading: nothing changes inside. Raises InvalidInputError if another thread was changing the memory when this
            process was forked; so does `changing`.
        changing: nobody reads inside.
    """

    def __init__(self) -> None:
        self.turn = forking_lock()
        self._whole = forking_lock()
        self._is_changing = False
        self.reading = _Whole(self, False)
        self.changing = _Whole(self, True)
