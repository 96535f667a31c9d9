"""Learning rates as functions of the update count, for any optax optimizer.

optax.adamw(cosine(peak=1e-5, final=1e-6, num_steps=1000, warmup=0.05))    # SFT
optax.adamw(cosine(peak=1e-6, final=1e-7, num_steps=500))                  # GRPO, Table 7
"""

from __future__ import annotations

import jax.numpy as jnp
import optax

from embodied_mem.errors import InvalidInputError


def cosine(peak: float, final: float, num_steps: int, warmup: float = 0.0) -> optax.Schedule:
    """Returns a schedule that rises linearly to `peak`, then falls on half a cosine to `final`.

    With W = round(warmup * num_steps), update i (from 0) gets peak * (i + 1) / W while i < W, so that no update is
    wasted on a rate of zero; update W gets `peak`, update num_steps - 1 and all later ones get `final`.

    Args:
        peak: highest rate, > 0.
        final: last rate, in [0, peak].
        num_steps: updates of the run, >= 1.
        warmup: share of `num_steps` that rises, in [0, 1).
    """
    if not 0 <= final <= peak or peak <= 0:
        raise InvalidInputError(f"cosine: expected 0 <= final <= peak and peak > 0, got peak {peak}, final {final}")
    if num_steps < 1 or not 0 <= warmup < 1:
        raise InvalidInputError(f"cosine: expected num_steps >= 1 and 0 <= warmup < 1, got {num_steps} and {warmup}")
    rising = round(warmup * num_steps)
    falling = max(num_steps - 1 - rising, 1)

    def schedule(count):
        up = peak * (count + 1) / max(rising, 1)
        share = jnp.clip((count - rising) / falling, 0.0, 1.0)
        down = final + (peak - final) * 0.5 * (1 + jnp.cos(jnp.pi * share))
        return jnp.where(count < rising, up, down)

    return schedule
