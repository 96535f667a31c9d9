"""Causal attention on a CPU by a native kernel that XLA calls, forward and backward; most of training a small model.

    if pays(query): context = fused_attention(query, keys, values, mask)    # as `layers.causal_attention`

XLA writes the scores [B, K, G, L, L] to memory and reads them again several times per layer. The kernel
(`csrc/models/attention.h`) holds those of a few rows at a time, and computes none above the diagonal.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from embodied_mem.native import part

FORWARD, BACKWARD = "embodied_mem_attention", "embodied_mem_attention_backward"
MIN_LENGTH = 64
"""Positions from which on the kernel is used; for fewer, scores stay in the caches, and XLA is good enough."""
Saved = tuple[jax.Array, ...]


@functools.cache
def _native() -> Any:
    """Registers the kernel at the first call."""
    native = part("attention")
    jax.ffi.register_ffi_target(FORWARD, native.forward(), platform="cpu", api_version=1)
    jax.ffi.register_ffi_target(BACKWARD, native.backward(), platform="cpu", api_version=1)
    return native


def pays(query: jax.Array) -> bool:
    """Tell whether the kernel serves query [B, K, G, L, E].

    It does for float32 on one CPU (no mesh in scope) and a sequence that is long enough.
    """
    if jax.default_backend() != "cpu" or not jax.sharding.get_abstract_mesh().empty or query.dtype != jnp.float32:
        return False
    length, dim = query.shape[3:]
    return length >= MIN_LENGTH and dim % _native().HEAD_DIM_STEP == 0 and dim <= _native().MAX_HEAD_DIM


@jax.custom_vjp
def fused_attention(query: jax.Array, keys: jax.Array, values: jax.Array, mask: jax.Array) -> jax.Array:
    """Returns attention of every position over itself and earlier unmasked positions.

    It is zeros where there are none.

    Args:
        query: float32[B, K, G, L, E], already scaled by 1/sqrt(E).
        keys: float32[B, K, L, E].
        values: float32[B, K, L, E].
        mask: bool[B, L], False at padding.
    """
    return _forward(query, keys, values, mask)[0]


def _forward(query: jax.Array, keys: jax.Array, values: jax.Array, mask: jax.Array) -> tuple[jax.Array, Saved]:
    _native()
    # The kernel reads rows of all heads as the projections write them, so that XLA has nothing to transpose.
    query, keys, values = query.transpose(0, 3, 1, 2, 4), keys.swapaxes(1, 2), values.swapaxes(1, 2)
    batch, length, kv_heads, groups, _ = query.shape
    results = (
        jax.ShapeDtypeStruct(query.shape, jnp.float32),
        jax.ShapeDtypeStruct((batch, kv_heads, groups, length), jnp.float32),
    )
    call = jax.ffi.ffi_call(FORWARD, results, vmap_method="sequential")
    context, log_sums = call(query, keys, values, mask)
    return context.transpose(0, 2, 3, 1, 4), (query, keys, values, mask, context, log_sums)


def _backward(saved: Saved, gradient: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, None]:
    results = [jax.ShapeDtypeStruct(array.shape, jnp.float32) for array in saved[:3]]
    call = jax.ffi.ffi_call(BACKWARD, results, vmap_method="sequential")
    query, keys, values = call(*saved, gradient.transpose(0, 3, 1, 2, 4))
    return query.transpose(0, 2, 3, 1, 4), keys.swapaxes(1, 2), values.swapaxes(1, 2), None


fused_attention.defvjp(_forward, _backward)
