"""BERT's layers as functions of a checkpoint's arrays.

    x = hidden_states(params, ids, types, mask, num_layers=6, num_heads=12, epsilon=1e-12)      # float32[B, L, D]

A post-norm encoder with learned positions, types of tokens and exact GELU. Parameters have the names of the published
checkpoints; a matrix is float32[out, in].

Sources: Devlin et al., BERT; Raffel et al., T5, for the bias by relative position, which MPNet has.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

_MASKED = -1e30

Params = Mapping[str, jax.Array]


def layer_norm(x: jax.Array, weight: jax.Array, bias: jax.Array, epsilon: float) -> jax.Array:
    """Normalise the last axis of `x` float32[..., D].

    It is `(x - mean) / sqrt(var + epsilon) * weight + bias`.
    """
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * weight + bias


def _dense(params: Params, name: str, x: jax.Array) -> jax.Array:
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def encoder_layer(
    params: Params,
    prefix: str,
    x: jax.Array,
    mask: jax.Array,
    num_heads: int,
    epsilon: float,
    bias: jax.Array | float = 0.0,
) -> jax.Array:
    """Return a layer's output float32[B, L, D].

    `bias` float32[H, L, L] is added to the scores of attention.
    """
    batch, length, width = x.shape

    def heads(name: str) -> jax.Array:
        y = _dense(params, f"{prefix}.attention.self.{name}", x)
        return y.reshape(batch, length, num_heads, width // num_heads)

    scores = jnp.einsum("blhd,bmhd->bhlm", heads("query"), heads("key")) * (width // num_heads) ** -0.5 + bias
    weights = jax.nn.softmax(jnp.where(mask[:, None, None, :], scores, _MASKED))
    mixed = jnp.einsum("bhlm,bmhd->blhd", weights, heads("value")).reshape(batch, length, width)

    def add_and_norm(name: str, y: jax.Array, residual: jax.Array) -> jax.Array:
        norm = f"{prefix}.{name}.LayerNorm"
        y = _dense(params, f"{prefix}.{name}.dense", y) + residual
        return layer_norm(y, params[f"{norm}.weight"], params[f"{norm}.bias"], epsilon)

    x = add_and_norm("attention.output", mixed, x)
    inner = jax.nn.gelu(_dense(params, f"{prefix}.intermediate.dense", x), approximate=False)
    return add_and_norm("output", inner, x)


RELATIVE = "encoder.relative_attention_bias.weight"
"""float32[buckets, H]: what an encoder that has it adds to attention by how far apart two tokens are."""
_MAX_DISTANCE = 128


def relative_bias(table: jax.Array, length: int) -> jax.Array:
    """Return float32[H, L, L] of the table `RELATIVE`.

    It has an entry for each distance near by, one for a range further away.

    Half of the buckets are for tokens behind; of each half the first half is for single distances, the rest
    grows as the logarithm up to `_MAX_DISTANCE`.

    Source: Raffel et al., T5, section 2.1; as in MPNet's published checkpoints.
    """
    half = table.shape[0] // 2
    near = half // 2
    steps = np.arange(length)[None, :] - np.arange(length)[:, None]
    far = np.abs(steps)
    grown = np.log(np.maximum(far, 1) / near) / np.log(_MAX_DISTANCE / near) * (half - near)
    bucket = np.where(far < near, far, np.minimum(near + grown.astype(int), half - 1))
    return table[np.where(steps > 0, half, 0) + bucket].transpose(2, 0, 1)


def hidden_states(
    params: Params,
    ids: jax.Array,
    types: jax.Array,
    mask: jax.Array,
    *,
    num_layers: int,
    num_heads: int,
    epsilon: float,
) -> jax.Array:
    """Return the last layer's output float32[B, L, D].

    Args:
        params: arrays by name.
        ids, types: int32[B, L], the tokens and which of two texts each is in; `types` may be int32[1, 1].
        mask: bool[B, L], false for padding.
        num_layers, num_heads, epsilon: of the checkpoint.
    """
    x = params["embeddings.word_embeddings.weight"][ids]
    x = x + params["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = x + params["embeddings.token_type_embeddings.weight"][types]
    norm = "embeddings.LayerNorm"
    x = layer_norm(x, params[f"{norm}.weight"], params[f"{norm}.bias"], epsilon)
    bias = relative_bias(params[RELATIVE], ids.shape[1]) if RELATIVE in params else 0.0
    for index in range(num_layers):
        x = encoder_layer(params, f"encoder.layer.{index}", x, mask, num_heads, epsilon, bias)
    return x


def masked_mean(x: jax.Array, mask: jax.Array) -> jax.Array:
    """Return float32[B, D], the mean over tokens; zeros for an empty text."""
    return jnp.where(mask[:, :, None], x, 0).sum(1) / jnp.maximum(mask.sum(1, keepdims=True), 1)
