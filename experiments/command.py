"""How a command ends: what the user can mend is one line, anything else a traceback."""

from __future__ import annotations

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
        sys.exit(f"error: {error}")
