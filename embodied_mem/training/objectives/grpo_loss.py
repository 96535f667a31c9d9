"""GRPO: advantages within groups of trajectories of one task, and the clipped policy loss with asymmetric bounds.

    advantages, num_equal = group_normalized_advantages(rewards)              # rewards [N, K]
    loss, metrics = grpo_clip_loss(log_probs, old_log_probs, advantages.reshape(-1)[:, None], mask)

An "action" is whatever the policy chose with a log-prob: a text token, or a soft token with its Gaussian log-density.
Both stand side by side on the last axis of the same arrays, `concatenate([text, soft], axis=-1)`.

Source: MemCompiler eq. 8 and C.3.2 (clip 0.2 / 0.28, no KL term).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from embodied_mem.errors import InvalidInputError


def group_normalized_advantages(rewards: jax.Array, eps: float = 1e-6) -> tuple[jax.Array, jax.Array]:
    """Returns (advantages float32[N, K], number of groups with equal rewards int32[]).

    A_i = (r_i - mean(r)) / std(r) over the K trajectories of one task, with the population's standard deviation (the
    one whose normalised values have mean square 1). A group whose rewards are all equal says nothing about what
    was better: its advantages are exactly zero and it is counted, since it costs a rollout and gives no gradient.

    Args:
        rewards: [N, K], N tasks with K trajectories each, K >= 2.
        eps: rewards of a group are equal if they span no more than this.

    Raises:
        InvalidInputError: another shape, NaN or infinity; inside of `jit` only the shape is checked.
    """
    if rewards.ndim != 2 or rewards.shape[1] < 2:
        raise InvalidInputError(
            f"rewards: expected shape [N, K] with K >= 2, got {rewards.shape}; a group of one has no baseline"
        )
    if not isinstance(rewards, jax.core.Tracer) and not jnp.isfinite(rewards).all():
        task, number = (int(i) for i in jnp.argwhere(~jnp.isfinite(rewards))[0])
        raise InvalidInputError(f"rewards[{task}, {number}]: expected a finite number, got {rewards[task, number]}")
    rewards = rewards.astype(jnp.float32)
    equal = (rewards.max(1) - rewards.min(1)) <= eps
    centred = rewards - rewards.mean(1, keepdims=True)
    std = jnp.sqrt(jnp.mean(centred**2, axis=1, keepdims=True))
    advantages = jnp.where(equal[:, None], 0.0, centred / jnp.where(equal[:, None], 1.0, std))
    return advantages, equal.sum(dtype=jnp.int32)


def grpo_clip_loss(
    log_probs: jax.Array,
    old_log_probs: jax.Array,
    advantages: jax.Array,
    mask: jax.Array,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    max_log_ratio: float = 20.0,
    denominator: float | jax.Array | None = None,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Returns (loss float32[], metrics) of the clipped objective over single actions.

    loss = - sum_t mask_t min(r_t A_t, clip(r_t, 1 - clip_low, 1 + clip_high) A_t) / denominator,
    r_t = exp(log_probs_t - old_log_probs_t).

    Deviation from eq. 8, which writes one ratio per output o_i and averages over the G outputs: the ratio is taken per
    action and every action of the batch weighs the same (denominator = number of masked actions), so that a long
    episode counts by its decisions and no ratio is a product of hundreds of factors. When a batch is split
    into microbatches, pass the whole batch's count as `denominator` and sum losses and gradients.

    Args:
        log_probs: float32[B, T] under the present parameters; gradients flow through these only.
        old_log_probs: float32[B, T], recorded when the actions were sampled, at the same temperature.
        advantages: broadcastable to [B, T], e.g. [B, 1] for one advantage per episode.
        mask: bool[B, T], True at the policy's own actions.
        clip_low: with a negative advantage, the gain ends at a ratio of 1 - clip_low.
        clip_high: with a positive one, at 1 + clip_high.
        max_log_ratio: |log ratio| is limited to this, so that exp cannot overflow; at 20 nothing trainable is lost.
        denominator: see above; None counts the mask.

    Returns:
        The loss and, all float32[] sums over the mask divided by the denominator: `ratio`, `clipped` (share of actions
        whose gradient the clip removed), `approximate_kl` (r - 1 - log r, never negative).
    """
    if log_probs.shape != old_log_probs.shape or log_probs.shape != mask.shape:
        raise InvalidInputError(
            f"grpo_clip_loss: expected log_probs, old_log_probs and mask of one shape, "
            f"got {log_probs.shape}, {old_log_probs.shape}, {mask.shape}"
        )
    if not (0 < clip_low < 1 and clip_high > 0):
        raise InvalidInputError(
            f"grpo.clip_low, clip_high: expected clip_low in (0, 1) and clip_high > 0, got {clip_low}, {clip_high}"
        )
    # Masked entries may hold anything, infinities included: they are replaced before exp, not multiplied by 0 after.
    log_ratio = jnp.where(mask, log_probs - jax.lax.stop_gradient(old_log_probs), 0.0)
    log_ratio = jnp.clip(log_ratio, -max_log_ratio, max_log_ratio)
    ratio = jnp.exp(log_ratio)
    weight = mask.astype(jnp.float32)
    advantages = jax.lax.stop_gradient(jnp.broadcast_to(advantages, ratio.shape).astype(jnp.float32))
    plain = ratio * advantages
    clipped = jnp.clip(ratio, 1 - clip_low, 1 + clip_high) * advantages
    total = jnp.maximum(weight.sum(), 1.0) if denominator is None else denominator
    loss = -(jnp.minimum(plain, clipped) * weight).sum() / total
    metrics = {
        "ratio": (ratio * weight).sum() / total,
        "clipped": ((clipped < plain) * weight).sum() / total,
        "approximate_kl": ((ratio - 1 - log_ratio) * weight).sum() / total,
    }
    return loss, jax.tree.map(jax.lax.stop_gradient, metrics)
