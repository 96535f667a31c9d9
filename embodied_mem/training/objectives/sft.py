"""Supervised training: the executor learns to act in every format, then the compiler learns from the teacher.

    step = make_executor_step(graphdef, frozen, optimizer, config)
    state, metrics = step(state, ExecutorBatch(...), key)         # the old state is used up

    step = make_compiler_step(graphdef, frozen, executor_graphdef, optimizer, config)
    state, metrics = step(state, executor_state, CompilerBatch(...), key)

Compiler loss (MemCompiler eqs. 6, 7, 9):

    L = L_text + a L_action + e L_entropy + l L_latent + o L_orth

    L_text     cross-entropy of the output tokens, label-smoothed
    L_action   cross-entropy of the frozen executor's action tokens with the guidance in its prompt and the sampled soft
               tokens over its placeholders; the gradient reaches the compiler through the soft tokens only
    L_latent   semantic alignment, first term of eq. 6: the i-th soft mean should name the i-th token of a reference
               text out of memory (the places that come next), see `models.soft_mem.semantic_alignment`; where memory
               has pictures and the executor sees, also the i-th part of them (`perceptual_alignment`)
    L_orth     complementarity, second term of eq. 6
    L_entropy  minus the Gaussian entropy of the soft tokens per dimension. The paper leaves the term open; this reading
               keeps the channel's variance from collapsing before RL, which needs it to explore.

Rows without guidance have no soft tokens and take part in L_text only (NOACTION and BRIEF give the executor nothing).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from optax import contrib

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.decoder import Decoder, TokenScores, score_tokens
from embodied_mem.models.soft_mem import (
    SoftMem,
    complementarity,
    entropy_per_dimension,
    perceptual_alignment,
    rows_of,
    sample,
    semantic_alignment,
    write_soft_tokens,
)
from embodied_mem.models.vision.pictures import embed_seen
from embodied_mem.models.vision.qwen_vl_vision import see
from embodied_mem.training.config import ONE_DEVICE, MeshConfig, SFTConfig
from embodied_mem.training.objectives.batches import A, Batch
from embodied_mem.training.objectives.losses import masked_mean, smoothed_cross_entropy


class CompilerModel(nnx.Module):
    """The compiler's trainable whole: decoder and Soft-Mem head."""

    def __init__(self, decoder: Decoder, soft_mem: SoftMem | None):
        self.decoder = decoder
        self.soft_mem = soft_mem


Params: TypeAlias = "nnx.State[Any, Any]"
Metrics = dict[str, jax.Array]


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
    """Returns a schedule that rises linearly to `peak`, then falls on half a cosine to `final`.

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
    """AdamW with a clipped gradient norm (Table 7). Vectors (norms, biases) do not decay."""

    def decays(params: Params) -> Any:
        return jax.tree.map(lambda p: p.ndim > 1, params)

    return optax.chain(
        optax.clip_by_global_norm(max_grad_norm),
        optax.adamw(schedule, b1=0.9, b2=b2, eps=eps, weight_decay=weight_decay, mask=decays),
    )


def make_muon(schedule: optax.Schedule, weight_decay: float, max_grad_norm: float) -> optax.GradientTransformation:
    """Muon (Jordan 2024) for the matrices of the layers, Adam for everything else; for models from scratch.

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
    """The state after one optimizer step."""
    updates, new = optimizer.update(gradients, state.optimizer, state.trainable)
    return TrainState(optax.apply_updates(state.trainable, updates), new)


class ExecutorBatch(NamedTuple, Generic[A]):
    """What one step of the executor's training reads.

    Attributes:
        rows: B rows of prompt and command.
        references: int32[B, N], the tokens that stand in the places of soft tokens, -1 past the end.
        spots: int32[B, M], positions of the commands' tokens, see `data.spots_of`.
        below: [B, L, D], what enters the layers with adapters (`make_below`); None where all layers are run.
    """

    rows: Batch[A]
    references: A
    spots: A
    below: A | None = None


def make_executor_step(
    graphdef: nnx.GraphDef[Decoder],
    frozen: Params,
    optimizer: optax.GradientTransformation,
    config: SFTConfig,
    *,
    top: int | None = None,
    places: Any = None,
    mesh: MeshConfig = ONE_DEVICE,
) -> functools.partial[tuple[TrainState, Metrics]]:
    """A jitted (state, ExecutorBatch, key) -> (state, metrics) for the executor.

    Placeholders hold what `soft_stand_ins` gives. The loss is the cross-entropy of the action plus `prompt_weight`
    times that of the prompt's other tokens, which is what teaches a model from scratch to copy names from its context.
    Without it logits are those of the action alone.

    Args:
        graphdef: of the executor.
        frozen: its parameters that are not trained (base weights under adapters).
        optimizer: see `make_optimizer`.
        config: weight of the prompt.
        top: so many layers are trained, by adapters, and start from `ExecutorBatch.below`; None: all parameters.
        places: on a mesh, a sharding per leaf of the new state, so that it lies as the old one does.
        mesh: remat and chunks.
    """

    def loss_of(
        trainable: Params, frozen: Params, data: ExecutorBatch[jax.Array], key: jax.Array
    ) -> tuple[jax.Array, Metrics]:
        executor, batch = nnx.merge(graphdef, trainable, frozen), data.rows
        if top is None:
            hidden = executor_hidden(executor, batch, soft_stand_ins(executor, data.references, key), mesh)
        else:
            hidden = executor(embeddings=data.below, mask=batch.mask, remat=mesh.remat, top=top)
        if config.prompt_weight:
            scores = score_tokens(executor, hidden, batch.targets, chunk_size=mesh.logits_chunk)
            learned = batch.learned
        else:
            scores, learned = score_completion(executor, hidden, batch, data.spots, mesh)
        loss = action = masked_mean(-scores.log_probs, learned)
        if config.prompt_weight:
            prompt = batch.mask & ~batch.learned & ~batch.suffix
            prompt &= batch.learned.any(1, keepdims=True)  # not in rows that only fill up the batch
            prompt &= jnp.roll(prompt, -1, axis=1).at[:, -1].set(False)
            loss = loss + config.prompt_weight * masked_mean(-scores.log_probs, prompt)
        accuracy = share_right(scores, learned)
        return loss, {"loss": loss, "action": action, "action_accuracy": accuracy, "tokens": num_tokens(batch)}

    def executor_step(
        frozen: Params, state: TrainState, data: ExecutorBatch[jax.Array], key: jax.Array
    ) -> tuple[TrainState, Metrics]:
        gradients, metrics = jax.grad(loss_of, has_aux=True)(state.trainable, frozen, data, key)
        metrics["grad_norm"] = optax.global_norm(gradients)
        return apply_gradients(optimizer, state, gradients), metrics

    return functools.partial(_jitted(executor_step, places, 1), frozen)


def make_below(graphdef: nnx.GraphDef[Decoder], frozen: Params, top: int) -> functools.partial[jax.Array]:
    """A jitted (rows, references, key) -> [B, L, D], what enters the last `top` layers of an executor without its
    adapters, of which these are graph and parameters."""

    @jax.jit
    def below(frozen: Params, batch: Batch[jax.Array], references: jax.Array, key: jax.Array) -> jax.Array:
        executor = nnx.merge(graphdef, frozen)
        embeddings, _ = embed_batch(executor, batch)
        embeddings = write_soft_tokens(embeddings, batch.suffix, soft_stand_ins(executor, references, key))
        return executor.below(embeddings, mask=batch.mask, top=top)

    return functools.partial(below, frozen)


def soft_stand_ins(executor: Decoder, references: jax.Array, key: jax.Array) -> jax.Array:
    """[B, N, D]: embeddings of the reference tokens plus noise of 0.6 times their standard deviation.

    That is what a compiler whose soft tokens are aligned (eq. 6) writes at the start of its own training, so that the
    frozen executor can read soft tokens later. Those past the end of a reference (-1) are noise alone.
    """
    named = (references >= 0)[..., None]
    soft = jnp.where(named, executor.embed(jnp.maximum(references, 0)), 0)
    noise = jax.random.normal(key, soft.shape, soft.dtype) * jnp.where(named, 0.6, 1.0)
    return soft + jax.lax.stop_gradient(jnp.std(executor.embedding[...])) * noise


def _jitted(step: Callable[..., Any], places: Any, state: int) -> Callable[..., Any]:
    """The step compiled; its argument number `state` is used up, its memory becomes the new state's."""
    options: dict[str, Any] = {} if places is None else {"out_shardings": (places, None)}
    jitted: Callable[..., Any] = jax.jit(step, donate_argnums=state, **options)
    return jitted


def score_completion(
    decoder: Decoder, hidden: jax.Array, batch: Batch[jax.Array], spots: jax.Array, mesh: MeshConfig
) -> tuple[TokenScores, jax.Array]:
    """(scores [B, M] of the completions' tokens alone, which of them are real bool[B, M]); see `data.spots_of`.

    The head is a quarter of a tiny model's work, and completions are a tenth of its positions.
    """
    targets, learned = (jnp.take_along_axis(array, spots, 1) for array in (batch.targets, batch.learned))
    hidden = jnp.take_along_axis(hidden, spots[..., None], 1)
    return score_tokens(decoder, hidden, targets, chunk_size=mesh.logits_chunk), learned


def executor_hidden(executor: Decoder, batch: Batch[jax.Array], soft: jax.Array, mesh: MeshConfig) -> jax.Array:
    """Final hidden states [B, L, D] with soft tokens [B, N, D] written over the placeholders, which `batch.suffix`
    marks in executor rows."""
    embeddings, positions = embed_batch(executor, batch)
    embeddings = write_soft_tokens(embeddings, batch.suffix, soft)
    return executor(embeddings=embeddings, mask=batch.mask, positions=positions, remat=mesh.remat)


def embed_batch(decoder: Decoder, batch: Batch[jax.Array]) -> tuple[jax.Array, jax.Array | None]:
    """(embeddings [B, L, D] of the rows with their pictures, rotary positions); see `vision.pictures.embed_seen`."""
    return embed_seen(decoder, batch.tokens, batch.mask, ~batch.text, batch.pictures)


def share_right(scores: TokenScores, learned: jax.Array) -> jax.Array:
    """The share of rows with a completion whose every token is the likeliest."""
    right = (scores.log_probs >= scores.top_log_probs) | ~learned
    return masked_mean(right.all(1).astype(jnp.float32), learned.any(1))


def num_tokens(batch: Batch[jax.Array]) -> jax.Array:
    """The number of real tokens, without rows that only fill up the batch."""
    return (batch.mask & batch.learned.any(1, keepdims=True)).sum()


class CompilerBatch(NamedTuple, Generic[A]):
    """What one step of the compiler's training reads.

    Attributes:
        compiler: B rows of prompt, output and soft positions.
        references: int32[B, N], -1 past the end; see `models.soft_mem.semantic_alignment`.
        guided: bool[B], rows whose output has guidance; only these have soft tokens.
        executor: A rows that the executor reads, some of the B.
        origin: int32[A], which of the B rows each of them is.
        spots: int32[B, M], positions of the outputs' tokens, see `data.spots_of`.
        executor_spots: int32[A, M'], those of the actions'.
        recalled: bool[B, K], which of the compiler's pictures are out of memory; None without pictures.
    """

    compiler: Batch[A]
    references: A
    guided: A
    executor: Batch[A]
    origin: A
    spots: A
    executor_spots: A
    recalled: A | None = None


def make_compiler_step(
    graphdef: nnx.GraphDef[CompilerModel],
    frozen: Params,
    executor_graphdef: nnx.GraphDef[Decoder],
    optimizer: optax.GradientTransformation,
    config: SFTConfig,
    *,
    places: Any = None,
    mesh: MeshConfig = ONE_DEVICE,
) -> functools.partial[tuple[TrainState, Metrics]]:
    """A jitted (state, executor_state, CompilerBatch, key) -> (state, metrics).

    Args:
        graphdef: of `CompilerModel`.
        frozen: its parameters that are not trained (base weights under LoRA).
        executor_graphdef: of the frozen executor.
        optimizer: see `make_optimizer`.
        config: weights of the terms.
        places: on a mesh, a sharding per leaf of the new state.
        mesh: remat and chunks.
    """

    def loss_of(
        trainable: Params, frozen: Params, executor_state: Params, data: CompilerBatch[jax.Array], key: jax.Array
    ) -> tuple[jax.Array, Metrics]:
        batch, references, guided, executor_batch, origin, spots, executor_spots, recalled = data
        model = nnx.merge(graphdef, trainable, frozen)
        executor = nnx.merge(executor_graphdef, executor_state)
        noise_key, dropout_key = jax.random.split(key)
        embeddings, positions = embed_batch(model.decoder, batch)
        hidden = model.decoder(
            embeddings=embeddings, mask=batch.mask, positions=positions, dropout_key=dropout_key, remat=mesh.remat
        )
        scores, learned = score_completion(model.decoder, hidden, batch, spots, mesh)
        loss = smoothed_cross_entropy(
            scores.log_probs, scores.mean_log_probs, learned, smoothing=config.label_smoothing
        )
        metrics = {"text": loss, "text_nll": -masked_mean(scores.log_probs, learned)}
        metrics["text_accuracy"] = share_right(scores, learned)
        metrics["tokens"] = num_tokens(batch)
        if model.soft_mem is not None:
            h_soft = rows_of(hidden, batch.suffix, references.shape[1])
            gaussian = model.soft_mem(h_soft)
            soft = sample(gaussian, jax.random.split(noise_key, len(references)))
            acting = executor_hidden(executor, executor_batch, soft[origin], mesh)
            scores, learned = score_completion(executor, acting, executor_batch, executor_spots, mesh)
            metrics["action_accuracy"] = share_right(scores, learned)
            metrics["executor_tokens"] = num_tokens(executor_batch)
            metrics["action"] = masked_mean(-scores.log_probs, learned & guided[origin][:, None])
            alignment = semantic_alignment(
                gaussian.mu, jnp.maximum(references, 0), references >= 0, executor.embedding[...]
            )
            metrics["latent"] = masked_mean(alignment, guided)
            if recalled is not None and batch.pictures is not None and executor.config.vision is not None:
                seen = see(executor.vision, batch.pictures)
                shown = perceptual_alignment(gaussian.mu, seen, recalled)
                metrics["perceptual"] = masked_mean(shown, guided & recalled.any(1))
                loss += config.latent * metrics["perceptual"]
            metrics["orth"] = masked_mean(complementarity(h_soft, hidden, batch.text), guided)
            loss += config.action * metrics["action"] + config.latent * metrics["latent"]
            loss += config.orthogonality * metrics["orth"]
            if model.soft_mem.config.stochastic:
                metrics["entropy"] = -masked_mean(entropy_per_dimension(gaussian).mean(-1), guided)
                loss += config.entropy * metrics["entropy"]
        metrics["loss"] = loss
        return loss, metrics

    def compiler_step(
        frozen: Params, state: TrainState, executor_state: Params, data: CompilerBatch[jax.Array], key: jax.Array
    ) -> tuple[TrainState, Metrics]:
        gradients, metrics = jax.grad(loss_of, has_aux=True)(state.trainable, frozen, executor_state, data, key)
        metrics["grad_norm"] = optax.global_norm(gradients)
        return apply_gradients(optimizer, state, gradients), metrics

    # An argument and not a constant of the program, which would hold it whole on every device.
    return functools.partial(_jitted(compiler_step, places, 1), frozen)
