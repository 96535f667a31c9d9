"""Programs that are compiled fast and run once: without optimising passes, each operation by XLA's plain loop emitter.

    with compiled_fast(): ...                       # in this process
    environment["XLA_FLAGS"] = flags()              # in another

What jax hands to XLA is the same; a program of a decoder takes a seventh of the compiler's time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

_OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


@functools.cache
def _known() -> dict[str, int | bool]:
    """The options that this XLA has: one that it does not know ends a process."""
    import jax

    lowered = jax.jit(lambda x: x).lower(0.0)

    def is_known(name: str) -> bool:
        try:
            lowered.compile(compiler_options={name: _OPTIONS[name]})
        except jax.errors.JaxRuntimeError:
            return False
        return True

    return {name: _OPTIONS[name] for name in filter(is_known, _OPTIONS)}


def flags() -> str:
    """The options as XLA_FLAGS."""
    return " ".join(f"--{name}={str(value).lower()}" for name, value in _known().items())


@contextlib.contextmanager
def compiled_fast() -> Iterator[None]:
    """Programs compiled in it are compiled so."""
    from jax._src import compiler  # jax has no public setting for all programs of a process

    options, original = _known(), compiler.get_compile_options

    def with_options(*arguments, env_options_overrides=None, **keywords):
        return original(*arguments, env_options_overrides=options | (env_options_overrides or {}), **keywords)

    compiler.get_compile_options = with_options
    try:
        yield
    finally:
        compiler.get_compile_options = original
