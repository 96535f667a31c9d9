"""How a command ends: what the user can mend is one line, anything else a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from embodied_mem.errors import EmbodiedMemError, InternalError

_AGAIN = (
    "This is one of several processes. If another one is gone, that is why: give the same command again in all of "
    "them, and the run goes on from its last checkpoint"
)


def run(main: Callable[[], object]) -> None:
    """Calls `main`; an error of the caller's ends the process with its message and status 1.

    One of several processes ends at once, whatever the error is: a normal end waits for the others, who may wait for
    this one.
    """
    try:
        main()
    except Exception as error:
        expected = isinstance(error, EmbodiedMemError) and not isinstance(error, InternalError)
        if not _several():
            if expected:
                sys.exit(f"error: {error}")
            raise
        if not expected:
            import traceback

            traceback.print_exc()
        print(f"error: {str(error)[:500]}\n{_AGAIN}", file=sys.stderr, flush=True)
        os._exit(1)


def _several() -> bool:
    """Return whether this is one of several processes; without starting jax where it has not been started."""
    if "jax" not in sys.modules:
        return False
    import jax

    return jax.distributed.is_initialized()
