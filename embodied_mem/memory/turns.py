"""Who may look at a memory and who may change it, where any thread may call.

    with turns.turn:                 # one thread at a time looks, decides and records; others may read meanwhile
        event = proposed()           # may wait for a chat model
        record(event)                # which calls `apply`:
    with turns.changing(): ...       # nobody reads
    with turns.reading(): ...        # nobody changes

`turn` is taken before the locks of a store, the other one after them, so that a store may ask for a state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..errors import InvalidInputError
from ..forks import forking_lock


class Turns:
    """The locks of one memory. Both are free in a forked child."""

    def __init__(self) -> None:
        self.turn = forking_lock()
        self._whole = forking_lock()
        self._is_changing = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Nothing changes inside.

        Raises:
            InvalidInputError: another thread was changing the memory when this process was forked.
        """
        with self._whole:
            if self._is_changing:
                raise InvalidInputError(
                    "memory: expected one that is whole, got one that another thread was changing when this process "
                    "was forked; open it again"
                )
            yield

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody reads inside. Raises InvalidInputError as `reading` does."""
        with self.reading():
            self._is_changing = True
            try:
                yield
            finally:
                self._is_changing = False
