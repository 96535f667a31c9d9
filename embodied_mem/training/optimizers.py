"""Optimizers, their schedules, and the state that a training step changes.

schedule = cosine(1e-4, 1e-5, num_steps=1000)
optimizer = make_optimizer(schedule, weight_decay=0.01, max_grad_norm=1.0, b2=0.999, eps=1e-8)
state, places = fresh_state(optimizer, params, axes, place)
state = apply_gradients(optimizer, state, gradients)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from optax import contrib

from embodied_mem.errors import InvalidInputError
from embodied_mem.parallel.placement import Placement
from embodied_mem.parallel.sharding import LogicalAxes
from embodied_mem.training.config import SFTConfig
from embodied_mem.training.models import Params


class TrainState(NamedTuple):
    """Everything a step changes.

    Attributes:
        trainable: parameters that are trained.
        optimizer: the optimizer's state.
    """

    trainable: Params
    optimizer: optax.OptState


MUON_SCALE = 5.0
"""Step of Muon's matrices by Adam's; chosen on generated games."""


_MATRICES = {
    **dict.fromkeys(("query", "key", "value"), (1, (2, 3))),
    "output": ((1, 2), 3),
    **dict.fromkeys(("gate", "up", "down"), (1, 2)),
}
"""Input and output dimensions of the stacked matrices that Muon moves."""


def cosine(peak: float, final: float, num_steps: int, warmup: float = 0.0) -> optax.Schedule:
    """Return a schedule: linear rise to `peak`, half a cosine to `final`.

    With W = round(warmup * num_steps), update i (from 0) gets peak * (i + 1) / W while i < W, so that no update is
    wasted on a rate of zero; update W gets `peak`, update num_steps - 1 and all later ones get `final`. optax's own
    schedules, joined to the same, differ by some 1e-6 of a rate, and with it every number of a run.

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

    def schedule(count: Any) -> jax.Array:
        up = peak * (count + 1) / max(rising, 1)
        share = jnp.clip((count - rising) / falling, 0.0, 1.0)
        down = final + (peak - final) * 0.5 * (1 + jnp.cos(jnp.pi * share))
        return jnp.where(count < rising, up, down)

    return schedule


def make_optimizer(
    schedule: optax.Schedule, weight_decay: float, max_grad_norm: float, b2: float, eps: float
) -> optax.GradientTransformation:
    """Make AdamW with gradient clipping (Table 7); vectors do not decay."""

    def decays(params: Params) -> Any:
        return jax.tree.map(lambda p: p.ndim > 1, params)

    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm),
        optax.adamw(schedule, b1=0.9, b2=b2, eps=eps, weight_decay=weight_decay, mask=decays),
    )


def make_muon(schedule: optax.Schedule, weight_decay: float, max_grad_norm: float) -> optax.GradientTransformation:
    """Make Muon (Jordan 2024) for layers' matrices, Adam for the rest.

    An orthogonalised update moves all directions of a matrix alike. The schedule is Adam's; the matrices move by
    `MUON_SCALE` times as much, scaled by sqrt(max(1, rows / columns)).
    """

    def matrices(params: Params) -> Any:
        def dimensions(path: tuple[Any, ...], _: Any) -> Any:
            kind = next((_MATRICES[part.key] for part in path if getattr(part, "key", None) in _MATRICES), None)
            return contrib.MuonDimensionNumbers(*kind) if kind else None

        return jax.tree_util.tree_map_with_path(dimensions, params)

    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm),
        contrib.muon(
            lambda step: MUON_SCALE * schedule(step),
            weight_decay=weight_decay,
            adam_b2=0.98,
            adam_learning_rate=schedule,
            muon_weight_dimension_numbers=matrices,
        ),
    )


def apply_gradients(optimizer: optax.GradientTransformation, state: TrainState, gradients: Params) -> TrainState:
    """Return the state after one optimizer step."""
    updates, new = optimizer.update(gradients, state.optimizer, state.trainable)
    return TrainState(optax.apply_updates(state.trainable, updates), new)


def sft_optimizer(sft: SFTConfig) -> optax.GradientTransformation:
    """Return the optimizer of a stage of supervised training, with its schedule."""
    schedule = cosine(sft.learning_rate, sft.learning_rate / 10, max(sft.steps, 1), warmup=sft.warmup)
    if sft.optimizer == "muon":
        return make_muon(schedule, sft.weight_decay, sft.max_grad_norm)
    return make_optimizer(schedule, sft.weight_decay, sft.max_grad_norm, b2=0.999, eps=1e-8)


def fresh_state(
    optimizer: optax.GradientTransformation, params: Params, axes: LogicalAxes, place: Placement
) -> tuple[TrainState, Any]:
    """Return (placed initial state, its shardings or None on one device).

    The parameters are copied, since a step uses up the state that it is given. On one device the state is put there by
    name, as what is restored from a checkpoint is: else a resumed run would be other programs, each compiled anew.
    """
    params = jax.tree.map(jnp.copy, place.params(params, axes))
    state = TrainState(params, place.build(optimizer.init, params, axes=axes))
    if place.mesh is None:
        state = jax.device_put(state, jax.devices()[0])
    return state, place.shardings(state, axes)
