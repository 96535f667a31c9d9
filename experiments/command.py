"""How a command ends: what the user can mend is one line, anything else a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from embodied_mem.errors import EmbodiedMemError, InternalError


def run(main: Callable[[], object]) -> None:
    """Calls `main`; an error of the caller's ends the process with its message and status 1."""
    try:
        main()
    except InternalError:
        raise
    except EmbodiedMemError as error:
        _end(f"error: {error}")
    except Exception as error:
        if "jax" not in sys.modules or type(error).__name__ != "JaxRuntimeError" or _num_processes() == 1:
            raise
        _end(
            f"error: {str(error)[:300]}\nIn a run of several processes this mostly means that another one is gone; "
            "give the same command again in all of them, and the run goes on from its last checkpoint"
        )


def _num_processes() -> int:
    import jax

    return jax.process_count()


def _end(message: str) -> None:
    """Ends this process; one of several at once, since a normal end waits for the others, who may wait for this one."""
    if "jax" in sys.modules and _num_processes() > 1:
        print(message, file=sys.stderr, flush=True)
        os._exit(1)
    sys.exit(message)
