"""A checksum of weights, equal in two programs exactly if the weights are equal; samples carry it.

    version = weights_version(model.decoder, model.soft_mem)

A checksum and not a counter: it needs nobody who raises it, and is the same after a restart, on any mesh, and for
modules that hold the same parameters in another order.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def _bits(leaf: jax.Array) -> jax.Array:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    kinds = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}
    bits = jax.lax.bitcast_convert_type(leaf, kinds[leaf.dtype.itemsize])
    return bits.astype(jnp.uint32)


def _mixed(x: jax.Array) -> jax.Array:
    """Maps uint32 one to one such that every bit depends on all.

    This is the end of MurmurHash3, 32 bits.

    One-to-one, so that a change of one element always shows; mixed, so that changes of many do not cancel, as those of
    all signs would in a plain sum.
    """
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


@jax.jit
def _checksum(leaves: list[jax.Array]) -> jax.Array:
    total: jax.Array = jnp.uint32(0)
    for leaf in leaves:
        bits = _bits(leaf)
        place = jnp.zeros(bits.shape, jnp.uint32)
        for axis, size in enumerate(bits.shape):
            place = place * jnp.uint32(size) + jax.lax.broadcasted_iota(jnp.uint32, bits.shape, axis)
        total += _mixed(bits ^ _mixed(place)).sum(dtype=jnp.uint32)
    return total


def _arrays(modules: tuple[nnx.Module | None, ...]) -> list[Any]:
    return jax.tree.leaves([nnx.state(module) for module in modules if module is not None])


def weights_version(*modules: nnx.Module | None) -> int:
    """Returns the version of all the modules' arrays together, in [0, 2^32).

    None counts as none.
    """
    return int(_checksum(_arrays(modules)))


class WeightsWatch:
    """Sees whether modules still hold the arrays that they held, without a look at their values.

    Args:
        modules: may be updated in place at any time; None for none.
    """

    def __init__(self, *modules: nnx.Module | None):
        self._modules = modules
        self._arrays: list[Any] = []
        self._version: int | None = None  # of `_arrays`, once somebody asked

    def changed(self) -> bool:
        """Return whether an array is another one than at the last call.

        At the first call, True.
        """
        now, before = _arrays(self._modules), self._arrays
        changed = len(now) != len(before) or any(a is not b for a, b in zip(now, before))
        if changed:
            self._arrays, self._version = now, None
        return changed

    def version(self) -> int:
        """Return the version of the present arrays, computed once for each."""
        self.changed()
        if self._version is None:
            self._version = int(_checksum(self._arrays))
        return self._version
