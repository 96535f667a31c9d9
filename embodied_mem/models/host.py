"""Settings of the process that make JAX's programs faster.

set_gpu_flags()          # first thing in a script, before jax starts a device
keep_freed_memory()      # likewise, for a CPU
keep_programs()          # before the first program is compiled
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pathlib
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8  # malloc.h of glibc


def keep_freed_memory(reserve_bytes: int = 256 << 20) -> bool:
    """Keeps freed memory with the process; returns whether it now stays.

    This is for glibc only; elsewhere nothing is done.

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


GPU_FLAGS = {
    "xla_gpu_enable_triton_gemm": "false",
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION",
    "xla_gpu_dot_merger_threshold_mb": "0",
}
"""XLA's flags for a GPU. With the first two an H200 decoded Qwen2.5-7B at 162 and 2,428 tokens/s (batch 1, 16) in place
of 88 and 1,260: products by cuBLAS, the loop over tokens in one CUDA graph. Without the third, XLA concatenates query,
key and value weights for every token."""


def set_gpu_flags() -> bool:
    """Adds `GPU_FLAGS` to XLA_FLAGS if JAX will find an NVIDIA GPU.

    Flags that are there already win.

    Returns:
        Whether it will. Nothing is started to find out.
    """
    platforms = os.environ.get("JAX_PLATFORMS", "").lower()
    is_wanted = not platforms or any(name in platforms.split(",") for name in ("cuda", "gpu"))
    has_plugin = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    if not (is_wanted and has_plugin and pathlib.Path("/dev/nvidiactl").exists()):
        return False
    own_flags = os.environ.get("XLA_FLAGS", "")
    names = {flag.partition("=")[0] for flag in own_flags.split()}
    new_flags = [f"--{name}={value}" for name, value in GPU_FLAGS.items() if f"--{name}" not in names]
    os.environ["XLA_FLAGS"] = " ".join([*new_flags, own_flags]).strip()
    return True


def keep_programs() -> pathlib.Path | None:
    """Returns the folder of compiled programs; None on a CPU.

    A CPU's programs may not run on another CPU that shares the folder. A folder that is set already wins.
    """
    import jax

    if jax.default_backend() == "cpu":
        return None
    own = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    folder = pathlib.Path(own or pathlib.Path.home() / ".cache/embodied_mem/programs")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    return folder
