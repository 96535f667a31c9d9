"""The arithmetic of a decoder layer as pure functions of arrays; `decoder.py` owns the parameters and the cache.

    rope = rope_tables(config, positions)
    x, state = apply_layer(config, weights, x, rope, attend)

Arrays are [B, L, ...] outside attention and [B, kv heads, L, head_dim] for keys and values. Norms, attention
weights and rotary tables are float32 whatever the compute dtype is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from embodied_mem.models.config import DecoderConfig, LoraConfig
from embodied_mem.models.fused_attention import fused_attention, pays

Attend = Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, object]]
"""(query [B, K, G, L, E] scaled, keys [B, K, L, E], values) -> (context [B, K, G, L, E], state)."""
MASKED = -1e30  # finite, so that a row that may attend to nothing gives numbers (never read) and not NaN


BATCH_AXES = ("data", "fsdp")  # mesh axes that split the batch


def constrain(x: jax.Array, *axes: str | tuple[str, ...] | None) -> jax.Array:
    """Splits `x` over the mesh in scope (`jax.set_mesh`) as `axes` say.

    Where there is no mesh, `x` is returned as it is.

    `axes` has mesh axes per leading dimension; further dimensions are whole. A dimension that the mesh axes do not
    divide is left to the compiler. Without this the compiler may split D over `fsdp`, as the parameters are, and keep
    the whole batch on every device.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return x
    split: list[Any] = []
    for size, names in zip(x.shape, (*axes, *[None] * (x.ndim - len(axes))), strict=True):
        names = (names,) if isinstance(names, str) else names or ()
        names = tuple(name for name in names if name in mesh.axis_names)
        divides = size % math.prod(mesh.shape[name] for name in names) == 0
        split.append((names or None) if divides else jax.P.UNCONSTRAINED)
    constrained: jax.Array = jax.lax.with_sharding_constraint(x, jax.P(*split))
    return constrained


def rms_norm(x: jax.Array, scale: jax.Array, eps: float) -> jax.Array:
    """Returns x / sqrt(mean(x^2) + eps) * scale over the last axis.

    It is computed in float32 and returned in the dtype of `x`.
    """
    x32 = x.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.mean(jnp.square(x32), axis=-1, keepdims=True) + eps)
    return (x32 * inverse * scale.astype(jnp.float32)).astype(x.dtype)


def smear(x: jax.Array, factor: jax.Array, mask: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Adds sum_k factor_k * x_(i-k) to x_i.

    Returns the sum and the last K real x. The last ones are for the positions that follow; only real positions count.

    Args:
        x: [B, L, D].
        factor: [K, D], or [D] for K = 1.
        mask: bool[B, L], real positions; what is returned for others means nothing.
        last: [B, K, D], the last K real x before these, oldest first; zeros where there are fewer.
    """
    count = last.shape[1]
    real = jnp.take_along_axis(x, jnp.argsort(~mask, axis=1)[..., None], axis=1)  # real positions first; stable
    known = jnp.concatenate([last, real], axis=1)  # the n-th real x, from 1, is known[count - 1 + n]
    newest = count - 1 + jnp.cumsum(mask, axis=1)
    total = x
    for k, weight in enumerate(factor.reshape(-1, x.shape[-1]), 1):
        total = total + weight * jnp.take_along_axis(known, (newest - k)[..., None], axis=1)
    kept = newest[:, -1:] + jnp.arange(1 - count, 1)
    return total, jnp.take_along_axis(known, kept[..., None], axis=1)


def add_deep(x: jax.Array, deep: jax.Array | None, number: int | jax.Array) -> jax.Array:
    """Add deep[number] (DeepStack) to a layer's output x [B, L, D].

    Deep is [N, B, L, D], or None; layers from N on add nothing.
    """
    return x if deep is None else x + jnp.where(number < len(deep), deep[jnp.minimum(number, len(deep) - 1)], 0)


def rope_frequencies(config: DecoderConfig) -> jax.Array:
    """Returns the rotary angle per position, float32[head_dim / 2].

    It has Llama 3.1 scaling where that is configured.
    """
    frequencies = config.rope_theta ** -(jnp.arange(0, config.head_dim, 2, dtype=jnp.float32) / config.head_dim)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    wavelengths = 2 * math.pi / frequencies
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    kept = jnp.clip((scaling.original_length / wavelengths - low) / (high - low), 0.0, 1.0)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def rope_tables(config: DecoderConfig, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns cos and sin of the rotary angles at positions int32[B, L].

    Both are float32[B, L, head_dim / 2].

    Positions int32[3, B, L] (time, row, column of an image) are for a decoder with `mrope_sections`: each section of
    the frequencies turns with its own axis. Where the three are equal, the result is that of int32[B, L].
    """
    if positions.ndim == 3:
        axis = [i for i, size in enumerate(config.mrope_sections) for _ in range(size)]
        if config.mrope_interleaved:  # rows and columns stand in each triple until theirs are used up, then time
            axis = [i % 3 if i < 3 * config.mrope_sections[i % 3] else 0 for i in range(len(axis))]
        angles = jnp.moveaxis(positions.astype(jnp.float32)[jnp.array(axis)], 0, -1) * rope_frequencies(config)
    else:
        angles = positions.astype(jnp.float32)[..., None] * rope_frequencies(config)
    return jnp.cos(angles), jnp.sin(angles)


def apply_rope(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Rotates `x` [B, L, heads, head_dim].

    The two halves of a head are the pairs, as in published weights.
    """
    half = x.shape[-1] // 2
    first, second = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    cos, sin = cos[:, :, None, :], sin[:, :, None, :]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)


def _attend(query: jax.Array, keys: jax.Array, values: jax.Array, bias: jax.Array) -> jax.Array:
    """Returns the query's attention over keys and values.

    Query and attention are [B, K, G, Q, E], keys and values [B, K, T, E], bias [B, Q, T].

    The G query heads of one key head become rows of one product, so keys are never repeated.
    """
    batch, kv_heads, groups, length, dim = query.shape
    scores = jax.lax.dot_general(
        query.reshape(batch, kv_heads, groups * length, dim),
        keys,
        (((3,), (3,)), ((0, 1), (0, 1))),
        preferred_element_type=jnp.float32,
    ).reshape(batch, kv_heads, groups, length, -1)
    scores = scores + bias[:, None, None]
    scores = jnp.exp(scores - jax.lax.stop_gradient(scores.max(-1, keepdims=True)))
    total = scores.sum(-1, keepdims=True)
    context = jax.lax.dot_general(
        scores.astype(values.dtype).reshape(batch, kv_heads, groups * length, -1),
        values,
        (((3,), (2,)), ((0, 1), (0, 1))),
        preferred_element_type=jnp.float32,
    ).reshape(query.shape)
    return (context / total).astype(values.dtype)


def causal_attention(query: jax.Array, keys: jax.Array, values: jax.Array, *, mask: jax.Array, block: int) -> jax.Array:
    """Returns attention of every position over itself and earlier unmasked positions.

    Args:
        query: [B, K, G, L, E], already scaled by 1/sqrt(E).
        keys: [B, K, L, E].
        values: [B, K, L, E].
        mask: bool[B, L], False at padding.
        block: queries per block; a block sees keys up to its own end, so work above the diagonal is skipped.
    """
    if pays(query):
        return fused_attention(query, keys, values, mask)
    length = query.shape[3]
    block = block or length
    padding = jnp.where(mask, 0.0, MASKED).astype(jnp.float32)
    outputs = []
    for start in range(0, length, block):
        end = min(start + block, length)
        causal = jnp.arange(end)[None, :] <= jnp.arange(start, end)[:, None]
        bias = jnp.where(causal[None], padding[:, None, :end], MASKED)
        outputs.append(_attend(query[:, :, :, start:end], keys[:, :, :end], values[:, :, :end], bias))
    return outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=3)


def cached_attention(query: jax.Array, keys: jax.Array, values: jax.Array, *, allowed: jax.Array) -> jax.Array:
    """Returns attention of the query over columns of the cache.

    The query is [B, K, G, S, E], the columns [B, K, T, E]; allowed is bool[B, S, T].
    """
    return _attend(query, keys, values, jnp.where(allowed, 0.0, MASKED).astype(jnp.float32))


def attention_weights(query: jax.Array, keys: jax.Array, *, mask: jax.Array, rows: int) -> jax.Array:
    """Returns float32[B, R, L], the last `rows` positions' attention in `causal_attention`.

    It is the mean over heads.
    """
    scores = jnp.einsum("bkgqe,bkte->bkgqt", query[..., -rows:, :], keys, preferred_element_type=jnp.float32)
    length = keys.shape[2]
    causal = jnp.arange(length)[None, :] <= jnp.arange(length - rows, length)[:, None]
    allowed = causal & mask[:, None, None, None, :]
    return jax.nn.softmax(jnp.where(allowed, scores, MASKED), axis=-1).mean((1, 2))


def _project(x: jax.Array, weight: jax.Array, inner: int = 1) -> jax.Array:
    """Multiplies x by a weight as one flat product.

    x is [B, L, D], weight [D, ...]; D is the first `inner` dimensions of the weight.
    """
    batch, length, width = x.shape
    flat = x.reshape(batch * length, width)
    return jnp.dot(flat, weight.reshape(width, -1)).reshape(batch, length, *weight.shape[inner:])


def apply_layer(
    config: DecoderConfig,
    weights: dict[str, Any],
    x: jax.Array,
    rope: tuple[jax.Array, jax.Array],
    attend: Attend,
    *,
    lora: LoraConfig | None = None,
    dropout_key: jax.Array | None = None,
) -> tuple[jax.Array, object]:
    """Returns the layer's output [B, L, D] and whatever `attend` handed back.

    That is the extended cache, or None.

    Args:
        config: the decoder's shape.
        weights: arrays of one layer, named as in `config.layer_shapes`; plus adapters.
        x: [B, L, D].
        rope: see `rope_tables`.
        attend: see `Attend`.
        lora: of the adapters.
        dropout_key: randomness of this layer, or None for no dropout.
    """
    x = constrain(x, BATCH_AXES)
    batch, length, _ = x.shape
    heads, kv_heads, dim = config.num_heads, config.num_kv_heads, config.head_dim

    normed = rms_norm(x, weights["attention_norm"], config.norm_eps)
    adapter_input = normed
    if dropout_key is not None and lora is not None and lora.dropout > 0:
        keep = jax.random.bernoulli(dropout_key, 1 - lora.dropout, normed.shape)
        adapter_input = jnp.where(keep, normed / (1 - lora.dropout), 0).astype(normed.dtype)
    projected = {}
    for name in ("query", "key", "value"):
        projected[name] = _project(normed, weights[name])
        if lora is not None and f"{name}_lora_a" in weights:
            low = _project(adapter_input, weights[f"{name}_lora_a"])
            projected[name] += _project(low, weights[f"{name}_lora_b"]) * lora.scale
        if f"{name}_bias" in weights:
            projected[name] += weights[f"{name}_bias"]
        if f"{name}_norm" in weights:
            projected[name] = rms_norm(projected[name], weights[f"{name}_norm"], config.norm_eps)
    query = apply_rope(projected["query"], *rope) * (dim**-0.5)
    query = query.reshape(batch, length, kv_heads, heads // kv_heads, dim).transpose(0, 2, 3, 1, 4)
    keys = apply_rope(projected["key"], *rope).transpose(0, 2, 1, 3)
    values = projected["value"].transpose(0, 2, 1, 3)
    context, state = attend(query, keys, values)
    context = context.transpose(0, 3, 1, 2, 4).reshape(batch, length, heads * dim)
    x = x + _project(context, weights["output"], inner=2)

    normed = rms_norm(x, weights["mlp_norm"], config.norm_eps)
    hidden = jax.nn.silu(_project(normed, weights["gate"])) * _project(normed, weights["up"])
    return constrain(x + _project(hidden, weights["down"]), BATCH_AXES), state
