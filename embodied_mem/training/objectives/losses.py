"""Supervised losses as pure functions of log-probs.

scores = score_tokens(decoder, hidden, targets)
loss = smoothed_cross_entropy(scores.log_probs, scores.mean_log_probs, mask, smoothing=0.1)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from embodied_mem.errors import InvalidInputError


def masked_mean(values: jax.Array, mask: jax.Array, denominator: float | jax.Array | None = None) -> jax.Array:
    """Returns sum(values where mask) / denominator, float32[]; the denominator is the mask's count (at least 1)."""
    values = jnp.where(mask, values.astype(jnp.float32), 0.0)
    total = jnp.maximum(mask.astype(jnp.float32).sum(), 1.0) if denominator is None else denominator
    return values.sum() / total


def smoothed_cross_entropy(
    log_probs: jax.Array,
    mean_log_probs: jax.Array,
    mask: jax.Array,
    *,
    smoothing: float = 0.1,
    denominator: float | jax.Array | None = None,
) -> jax.Array:
    """Returns the cross-entropy to targets that are smoothed over the vocabulary, mean over the mask, float32[].

    The target distribution gives 1 - smoothing to the token and spreads smoothing evenly over all V tokens, it
    included: loss_t = -(1 - smoothing) log p(token) - smoothing mean_v log p(v). Two numbers per position are all it
    needs, so logits need not be kept.

    Args:
        log_probs: float32[...], log p(token).
        mean_log_probs: float32[...], mean of log p over the vocabulary.
        mask: bool[...], positions that carry loss.
        smoothing: in [0, 1); C.3.1: 0.1.
        denominator: divides the sum; None counts the mask.
    """
    if not 0 <= smoothing < 1:
        raise InvalidInputError(f"label smoothing: expected in [0, 1), got {smoothing!r}")
    loss = -(1 - smoothing) * log_probs - smoothing * mean_log_probs
    return masked_mean(loss, mask, denominator)
