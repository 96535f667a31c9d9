"""Supervised training: the executor learns to act in every format, then the compiler learns from the teacher.

    step = make_executor_step(graphdef, optimizer, config)
    state, metrics = step(state, batch, references, key)

    step = make_compiler_step(graphdef, frozen, executor_graphdef, optimizer, config)
    state, metrics = step(state, executor_state, compiler_batch, executor_batch, references, key)

Compiler loss (MemCompiler eqs. 6, 7, 9):

    L = L_text + a L_action + e L_entropy + l L_latent + o L_orth

    L_text     cross-entropy of the output tokens, label-smoothed
    L_action   cross-entropy of the frozen executor's action tokens with the guidance in its prompt and the sampled soft
               tokens over its placeholders; the gradient reaches the compiler through the soft tokens only
    L_latent   semantic alignment, first term of eq. 6: the i-th soft mean should name the i-th token of a reference
               text out of memory (the places that come next); see `models.soft_mem.semantic_alignment`
    L_orth     complementarity, second term of eq. 6
    L_entropy  minus the Gaussian entropy of the soft tokens per dimension. The paper leaves the term open; this reading
               keeps the channel's variance from collapsing before RL, which needs it to explore.

Rows without guidance have no soft tokens and take part in L_text only (NOACTION and BRIEF give the executor nothing).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from embodied_mem.models.decoder import Decoder, score_tokens
from embodied_mem.models.soft_mem import (
    SoftMem,
    complementarity,
    entropy_per_dimension,
    sample,
    semantic_alignment,
    write_soft_tokens,
)
from embodied_mem.rl.losses import masked_mean, smoothed_cross_entropy
from embodied_mem.training.config import ONE_DEVICE, MeshConfig, SFTConfig
from embodied_mem.training.data import Batch


class CompilerModel(nnx.Module):
    """The compiler's trainable whole: decoder and Soft-Mem head."""

    def __init__(self, decoder: Decoder, soft_mem: SoftMem | None):
        self.decoder = decoder
        self.soft_mem = soft_mem


class TrainState(NamedTuple):
    """Everything a step changes.

    Attributes:
        trainable: parameters that are trained.
        optimizer: the optimizer's state.
    """

    trainable: nnx.State
    optimizer: optax.OptState


def rows_of(hidden: jax.Array, mask: jax.Array, count: int) -> jax.Array:
    """Returns [B, count, D], the positions of `hidden` [B, L, D] where `mask` is true: `count` or none a row."""
    first = jnp.argmax(mask, axis=1)
    index = first[:, None] + jnp.arange(count)
    return jnp.take_along_axis(hidden, jnp.minimum(index, hidden.shape[1] - 1)[..., None], axis=1)


def make_optimizer(schedule: optax.Schedule, weight_decay: float, max_grad_norm: float, b2: float, eps: float):
    """AdamW with a clipped gradient norm (Table 7). Vectors (norms, biases) do not decay."""

    def decays(params):
        return jax.tree.map(lambda p: p.ndim > 1, params)

    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm),
        optax.adamw(schedule, b1=0.9, b2=b2, eps=eps, weight_decay=weight_decay, mask=decays),
    )


def apply_gradients(optimizer, state: TrainState, gradients) -> TrainState:
    """The state after one optimizer step."""
    updates, new = optimizer.update(gradients, state.optimizer, state.trainable)
    return TrainState(optax.apply_updates(state.trainable, updates), new)


def make_executor_step(
    graphdef, optimizer, config: SFTConfig, *, places: Any = None, mesh: MeshConfig = ONE_DEVICE
) -> Callable:
    """A jitted (state, batch, references int32[B, N], key) -> (state, metrics) for the executor.

    Placeholders hold the embeddings of the reference tokens plus noise of 0.6 times their standard deviation: what a
    compiler whose soft tokens are aligned (eq. 6) writes at the start of its own training, so that the frozen executor
    can read soft tokens later. The loss is the cross-entropy of the action plus `prompt_weight` times that of the
    prompt's other tokens, which is what teaches a model from scratch to copy names from its context.

    On a mesh, `places` has a sharding per leaf of the new state, so that it lies as the old one does.
    """

    def loss_of(trainable, batch: Batch, references, key):
        executor = nnx.merge(graphdef, trainable)
        soft = executor.embed(references)
        noise = jax.random.normal(key, soft.shape, soft.dtype)
        soft = soft + 0.6 * jax.lax.stop_gradient(jnp.std(executor.embedding[...])) * noise
        losses, right = executor_losses(executor, batch, soft, mesh)
        loss = action = masked_mean(losses, batch.learned)
        if config.prompt_weight:
            prompt = batch.mask & ~batch.learned & ~batch.suffix
            prompt &= batch.learned.any(1, keepdims=True)  # not in rows that only fill up the batch
            prompt &= jnp.roll(prompt, -1, axis=1).at[:, -1].set(False)
            loss = loss + config.prompt_weight * masked_mean(losses, prompt)
        return loss, {"loss": loss, "action": action, "action_accuracy": right}

    def executor_step(state: TrainState, batch: Batch, references, key):
        gradients, metrics = jax.grad(loss_of, has_aux=True)(state.trainable, batch, references, key)
        metrics["grad_norm"] = optax.global_norm(gradients)
        return apply_gradients(optimizer, state, gradients), metrics

    return _jitted(executor_step, places)


def _jitted(step: Callable, places: Any) -> Callable:
    return jax.jit(step) if places is None else jax.jit(step, out_shardings=(places, None))


def executor_losses(
    executor: Decoder, batch: Batch, soft: jax.Array, mesh: MeshConfig = ONE_DEVICE
) -> tuple[jax.Array, jax.Array]:
    """(cross-entropy float32[B, L] per position, share of rows with an action whose whole action is the likeliest).

    Soft tokens [B, N, D] are written over the placeholders, which `batch.suffix` marks in executor rows.
    """
    embeddings = write_soft_tokens(executor.embed(batch.tokens), batch.suffix, soft)
    hidden = executor(embeddings=embeddings, mask=batch.mask, remat=mesh.remat)
    scores = score_tokens(executor, hidden, batch.targets, chunk_size=mesh.logits_chunk)
    right = (scores.log_probs >= scores.top_log_probs) | ~batch.learned
    return -scores.log_probs, masked_mean(right.all(1).astype(jnp.float32), batch.learned.any(1))


def make_compiler_step(
    graphdef,
    frozen,
    executor_graphdef,
    optimizer,
    config: SFTConfig,
    *,
    places: Any = None,
    mesh: MeshConfig = ONE_DEVICE,
) -> Callable:
    """A jitted (state, executor_state, batch, executor_batch, references, guided bool[B], key) -> (state, metrics).

    Args:
        graphdef: of `CompilerModel`.
        frozen: its parameters that are not trained (base weights under LoRA).
        executor_graphdef: of the frozen executor.
        optimizer: see `make_optimizer`.
        config: weights of the terms.
        places: on a mesh, a sharding per leaf of the new state.
        mesh: remat and chunks.
    """

    def loss_of(trainable, frozen, executor_state, batch: Batch, executor_batch: Batch, references, guided, key):
        model = nnx.merge(graphdef, trainable, frozen)
        executor = nnx.merge(executor_graphdef, executor_state)
        noise_key, dropout_key = jax.random.split(key)
        hidden = model.decoder(batch.tokens, mask=batch.mask, dropout_key=dropout_key, remat=mesh.remat)
        scores = score_tokens(model.decoder, hidden, batch.targets, chunk_size=mesh.logits_chunk)
        loss = smoothed_cross_entropy(
            scores.log_probs, scores.mean_log_probs, batch.learned, smoothing=config.label_smoothing
        )
        metrics = {"text": loss, "text_nll": -masked_mean(scores.log_probs, batch.learned)}
        if model.soft_mem is not None:
            h_soft = rows_of(hidden, batch.suffix, references.shape[1])
            gaussian = model.soft_mem(h_soft)
            soft = sample(gaussian, jax.random.split(noise_key, len(references)))
            losses, metrics["action_accuracy"] = executor_losses(executor, executor_batch, soft, mesh)
            metrics["action"] = masked_mean(losses, executor_batch.learned & guided[:, None])
            alignment = semantic_alignment(
                gaussian.mu, references, jnp.ones(references.shape, bool), executor.embedding[...]
            )
            metrics["latent"] = masked_mean(alignment, guided)
            metrics["orth"] = masked_mean(complementarity(h_soft, hidden, batch.text), guided)
            loss += config.action * metrics["action"] + config.latent * metrics["latent"]
            loss += config.orthogonality * metrics["orth"]
            if model.soft_mem.config.stochastic:
                metrics["entropy"] = -masked_mean(entropy_per_dimension(gaussian).mean(-1), guided)
                loss += config.entropy * metrics["entropy"]
        metrics["loss"] = loss
        return loss, metrics

    def compiler_step(frozen, state: TrainState, executor_state, batch, executor_batch, references, guided, key):
        gradients, metrics = jax.grad(loss_of, has_aux=True)(
            state.trainable, frozen, executor_state, batch, executor_batch, references, guided, key
        )
        metrics["grad_norm"] = optax.global_norm(gradients)
        return apply_gradients(optimizer, state, gradients), metrics

    # An argument and not a constant of the program, which would hold it whole on every device.
    return functools.partial(_jitted(compiler_step, places), frozen)
