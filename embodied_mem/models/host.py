"""Settings of the host process that make training on a CPU faster.

keep_freed_memory()      # first thing in a script, before jax runs anything
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8  # malloc.h of glibc


def keep_freed_memory(reserve_bytes: int = 256 << 20) -> bool:
    """Returns whether freed memory now stays with the process (glibc only; elsewhere nothing is done).

    XLA on a CPU takes the buffers of each step from malloc and frees them after it. By default glibc hands large blocks
    back to the kernel, and the next step touches every page anew: for the `tiny` decoder at 16 x 384 tokens that is
    135,000 page faults and a quarter to a third of the CPU time of a training step. The price is that the process's
    memory never shrinks, and that threads share one malloc arena.

    Args:
        reserve_bytes: the heap grows by this much at a time, so that growing is rare.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_ARENA_MAX, 1), (_M_TOP_PAD, reserve_bytes))
    return all([mallopt(name, value) == 1 for name, value in settings])
