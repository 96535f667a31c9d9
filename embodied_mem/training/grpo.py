"""GRPO of the compiler: groups of episodes from one start, binary reward, clipped ratio over text and soft tokens.

    model = train_grpo(run, model, executor, games)             # the stage: play, advantages, updates; it resumes

    advantages, num_equal = advantages_of(trajectories, group_size)
    samples = policy_samples(trajectories, advantages, soft_shape, soft_id)
    gradients, metrics = accumulate(gradient, trainable, frozen, samples, microbatch, pad_id)
    state = update(state, gradients)

For group g of K trajectories with rewards r in {0, 1} (MemCompiler eq. 8, Table 7):

    A_i = (r_i - mean(r)) / std(r)                       a group with equal rewards has no gradient; it is counted
    loss = -1/M sum over tokens of min(rho A, clip(rho, 1 - 0.2, 1 + 0.28) A),   rho = pi(o) / pi_old(o)

The sum runs over all text tokens of all steps of all trajectories, and over the soft tokens, each of which counts as
one token. M is the number of these tokens in the batch, so that a long trajectory does not weigh less per token. No KL
term. Observations and prompts carry no loss.

A soft token is D numbers with one Gaussian each. `GRPOConfig.density` says what stands for log pi of it:

    sum     of the D log-densities: its true log-probability. rho is the exact ratio of likelihoods, and before the
            first update the gradient is the policy gradient (REINFORCE). The clip ends a step once the token as a
            whole is some 0.2 nats likelier. log rho spreads with sqrt(D): with a large D nearly all ratios leave the
            range after one update, and of several minibatches the later ones move text alone.
    mean    that sum over D. rho is the geometric mean of the D ratios, of the size of one text token's. The clip ends
            a step once each number is 0.2 nats likelier on average, the token D times that: a range D times as wide.
            Before the first update the gradient is that of `sum` over D, so text weighs D times more beside it.

    root    that sum over sqrt(D), between the two: log rho spreads alike for every D.

With one minibatch all ratios are 1 and nothing is clipped: then they differ in the weight of the soft channel alone.

Deviation from eq. 8: it writes one ratio per trajectory; a ratio per token is what its clip range is made for and what
the GRPO that it cites uses.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.agents.rollout import Trajectory, play
from embodied_mem.errors import InternalError, InvalidInputError
from embodied_mem.language.completions import CompletionServer
from embodied_mem.models.decoder import Decoder, score_tokens
from embodied_mem.models.formats.peft import save_peft
from embodied_mem.models.soft_mem import entropy_per_dimension, log_density, rows_of
from embodied_mem.models.weights_version import weights_version
from embodied_mem.parallel.placement import fetch
from embodied_mem.training.config import ONE_DEVICE, Config, GRPOConfig, MeshConfig
from embodied_mem.training.data import A, Batch, Row, pad_rows
from embodied_mem.training.loop import MEAN_LENGTH, Metrics, Run, flops_per_token, run_loop
from embodied_mem.training.models import (
    CompilerModel,
    Params,
    acting_placement,
    make_compiler,
    make_executor,
    parameter_axes,
    special_ids,
    split_model,
)
from embodied_mem.training.optimizers import TrainState, apply_gradients, cosine, fresh_state, make_optimizer
from embodied_mem.training.sft import embed_batch, num_tokens
from embodied_mem.training.teachers.dagger import delivery_in_training
from embodied_mem.training.teachers.games import Games

DENSITIES: dict[str, Callable[[int], float]] = {"mean": lambda d: 1.0, "root": math.sqrt, "sum": float}
"""Name -> factor on the mean of D log-densities."""


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


@dataclasses.dataclass(frozen=True)
class PolicySample:
    """One compiler output with what its trajectory earned.

    Attributes:
        row: prompt, sampled tokens, soft positions.
        log_probs: float32[T] when it was sampled.
        soft: float32[N, D] sampled soft tokens; zeros if none were used.
        soft_log_density: float32[N], mean over the width, whatever `GRPOConfig.density` is.
        uses_soft: whether the executor read soft tokens that were sampled; those of a linear projection are not.
        advantage: of its trajectory.
        weights_version: of the weights that sampled it.
        importance: float32[T] and float32[N], factors of the tokens' advantages.
    """

    row: Row
    log_probs: np.ndarray
    soft: np.ndarray
    soft_log_density: np.ndarray
    uses_soft: bool
    advantage: float
    weights_version: int = 0
    importance: tuple[np.ndarray, np.ndarray] | None = None


def advantages_of(trajectories: Sequence[Trajectory], group_size: int) -> tuple[np.ndarray, int]:
    """(float32[len(trajectories)], number of groups with equal rewards); groups stand in a row."""
    rewards = np.asarray([float(t.won) for t in trajectories], np.float32).reshape(-1, group_size)
    advantages, num_equal = group_normalized_advantages(jnp.asarray(rewards))
    return np.asarray(advantages).reshape(-1), int(num_equal)


def policy_samples(
    trajectories: Sequence[Trajectory], advantages: np.ndarray, soft_shape: tuple[int, int], soft_id: int
) -> list[PolicySample]:
    """Return the compiler outputs of trajectories with an advantage."""
    samples = []
    num_soft = soft_shape[0]
    for trajectory, advantage in zip(trajectories, advantages):
        if advantage == 0:
            continue
        for delivered in trajectory.delivered:
            record, soft = delivered.record, delivered.soft
            if record is None:
                raise InternalError("grpo: expected every step to be compiled, got one without a record")
            density, uses_soft = record.soft_log_density, True
            if soft is None or density is None:
                soft, density, uses_soft = np.zeros(soft_shape, np.float32), np.zeros(num_soft, np.float32), False
            row = Row(record.prompt, record.tokens.tolist(), [soft_id] * num_soft, record.pictures)
            version = record.weights_version
            samples.append(PolicySample(row, record.log_probs, soft, density, uses_soft, float(advantage), version))
    return samples


def refuse_stale(samples: Sequence[PolicySample], version: int) -> None:
    """Check that samples have the weights of `version`. Raises InternalError.

    `accumulate` sees stale weights by their log-probs, in float32; this sees them in every precision.
    """
    stale = [sample.weights_version for sample in samples if sample.weights_version != version]
    if stale:
        raise InternalError(
            f"grpo: expected all {len(samples)} samples to be made with weights {version:08x}, got {len(stale)} of "
            f"{', '.join(f'{other:08x}' for other in sorted(set(stale)))}; play again with the present weights"
        )


@dataclasses.dataclass(frozen=True)
class PolicyBatch(Generic[A]):
    """Policy samples as arrays, see `PolicySample`."""

    batch: Batch[A]
    old_log_probs: A
    soft: A
    old_soft: A
    uses_soft: A
    advantages: A
    importance: tuple[A, A] | None = None


jax.tree_util.register_dataclass(
    PolicyBatch, ["batch", "old_log_probs", "soft", "old_soft", "uses_soft", "advantages", "importance"], []
)


def policy_batch(samples: Sequence[PolicySample], size: int, pad_id: int, length: int = 0) -> PolicyBatch[np.ndarray]:
    """Stack samples into `size` rows; copies of the first teach nothing."""
    filled = [*samples, *[samples[0]] * (size - len(samples))]
    batch = pad_rows([s.row for s in filled], pad_id, length=length)
    old = np.zeros(batch.tokens.shape, np.float32)
    for b, sample in enumerate(filled):
        old[b, batch.learned[b]] = sample.log_probs
    importance = None
    if samples[0].importance is not None:
        text = np.ones_like(old)
        weights = [sample.importance for sample in filled if sample.importance is not None]
        for b, (own, _) in enumerate(weights):
            text[b, batch.learned[b]] = own
        importance = text, np.stack([soft for _, soft in weights])
    real = np.arange(size) < len(samples)
    batch = batch._replace(learned=batch.learned & real[:, None])
    return PolicyBatch(
        batch,
        old,
        np.stack([s.soft for s in filled]),
        np.stack([s.soft_log_density for s in filled]),
        np.asarray([s.uses_soft for s in filled]) & real,
        np.asarray([s.advantage for s in filled], np.float32) * real,
        importance,
    )


class Totals(NamedTuple):
    """The learned tokens of a whole batch, of which a microbatch is a part: text, and soft tokens that were read."""

    text: float
    soft: float


def totals_of(samples: Sequence[PolicySample]) -> Totals:
    """Return what `samples` have together."""
    return Totals(float(sum(len(s.log_probs) for s in samples)), float(sum(s.uses_soft * len(s.soft) for s in samples)))


class _Scores(NamedTuple):
    """Log-probs and entropies [B, L] of text, densities and entropies [B, N] of soft tokens, if they are drawn."""

    text: jax.Array
    text_entropy: jax.Array
    soft: jax.Array | None = None
    soft_entropy: jax.Array | None = None


def _score(model: CompilerModel, data: PolicyBatch[jax.Array], config: GRPOConfig, mesh: MeshConfig) -> _Scores:
    batch = data.batch
    embeddings, positions = embed_batch(model.decoder, batch)
    hidden = model.decoder(embeddings=embeddings, mask=batch.mask, positions=positions, remat=mesh.remat)
    scores = score_tokens(
        model.decoder, hidden, batch.targets, temperature=config.temperature, chunk_size=mesh.logits_chunk
    )
    if model.soft_mem is None or not model.soft_mem.config.stochastic:
        return _Scores(scores.log_probs, scores.entropy)
    gaussian = model.soft_mem(rows_of(hidden, batch.suffix, data.soft.shape[1]))
    density = log_density(data.soft, gaussian, config.temperature, per_dimension=True)
    entropy = entropy_per_dimension(gaussian) + jnp.log(config.temperature)
    return _Scores(scores.log_probs, scores.entropy, density, entropy)


def make_grpo_scores(
    graphdef: nnx.GraphDef[CompilerModel], config: GRPOConfig, *, mesh: MeshConfig = ONE_DEVICE
) -> Callable[..., tuple[jax.Array, jax.Array | None]]:
    """Make a jitted (trainable, frozen, PolicyBatch) -> log-probs, densities."""

    @jax.jit
    def grpo_scores(
        trainable: Params, frozen: Params, data: PolicyBatch[jax.Array]
    ) -> tuple[jax.Array, jax.Array | None]:
        own = _score(nnx.merge(graphdef, trainable, frozen), data, config, mesh)
        return own.text, own.soft

    return grpo_scores


def rescore(
    scores: Callable[..., tuple[jax.Array, jax.Array | None]],
    trainable: Params,
    frozen: Params,
    samples: Sequence[PolicySample],
    microbatch: int,
    pad_id: int,
    config: GRPOConfig,
    *,
    max_gap: float = math.inf,
) -> tuple[list[PolicySample], dict[str, float]]:
    """Return (samples with the trainer's log-probs, metrics).

    Metrics: `sampler_gap`, the largest difference of a text token's log-prob, `sampler_log_ratio`, their mean, and
    `truncated`, the share of text tokens whose importance weight is cut off.

    Raises:
        InternalError: a difference is larger than `max_gap`.
    """
    order = sorted(range(len(samples)), key=lambda i: samples[i].row.num_tokens)
    result = list(samples)
    log_ratios: list[np.ndarray] = []
    cut = math.log(config.max_importance or 1.0)
    for start in range(0, len(order), microbatch):
        indices = order[start : start + microbatch]
        data = policy_batch([samples[i] for i in indices], microbatch, pad_id)
        text, soft = jax.tree.map(fetch, scores(trainable, frozen, data))
        for b, i in enumerate(indices):
            sample, log_probs = samples[i], text[b, data.batch.learned[b]]
            density = soft[b] if soft is not None and sample.uses_soft else sample.soft_log_density
            factor = DENSITIES[config.density](sample.soft.shape[1])
            log_ratio = log_probs - sample.log_probs, factor * (density - sample.soft_log_density)
            log_ratios.append(log_ratio[0])
            weights = None
            if config.max_importance:
                weights = np.exp(np.minimum(log_ratio[0], cut)), np.exp(np.minimum(log_ratio[1], cut))
            result[i] = dataclasses.replace(sample, log_probs=log_probs, soft_log_density=density, importance=weights)
    every = np.concatenate(log_ratios)
    gap = float(np.abs(every).max(initial=0.0))
    if not gap <= max_gap:
        raise InternalError(_stale(max_gap, gap))
    metrics = {"sampler_gap": gap, "sampler_log_ratio": float(every.mean())}
    if config.max_importance:
        metrics["truncated"] = float((every > cut).mean())
    return result, metrics


def _stale(max_gap: float, gap: float) -> str:
    return (
        f"grpo: expected log-probs of sampler and trainer within {max_gap} before the first update, got a "
        f"difference of {gap:.3g}; the sampler's weights or caches are stale"
    )


def make_grpo_gradient(
    graphdef: nnx.GraphDef[CompilerModel], config: GRPOConfig, *, places: Any = None, mesh: MeshConfig = ONE_DEVICE
) -> Callable[..., tuple[Params, Metrics]]:
    """Jit (trainable, frozen, PolicyBatch, Totals) -> (gradient, metrics) to be summed.

    On a mesh, `places` has a sharding per leaf of the gradient. The metrics are means over the text tokens, `text_...`,
    and over the soft tokens, `soft_...`: `entropy` at the sampling temperature (of a soft token per dimension),
    `log_ratio` (of a soft token per dimension), and `ratio`, `clipped`, `approximate_kl` of `grpo_clip_loss`.
    """

    def loss_of(
        trainable: Params, frozen: Params, data: PolicyBatch[jax.Array], totals: Totals
    ) -> tuple[jax.Array, Metrics]:
        scores, batch = _score(nnx.merge(graphdef, trainable, frozen), data, config, mesh), data.batch
        importance = data.importance or (1.0, 1.0)
        channels: dict[str, tuple[Any, ...]] = {
            "text": (
                scores.text, data.old_log_probs, batch.learned, scores.text_entropy, totals.text, 1, importance[0],
            )
        }  # fmt: skip
        if scores.soft is not None:
            used = jnp.broadcast_to(data.uses_soft[:, None], scores.soft.shape)
            factor = DENSITIES[config.density](data.soft.shape[2])
            channels["soft"] = (
                scores.soft, data.old_soft, used, scores.soft_entropy, totals.soft, factor, importance[1],
            )  # fmt: skip
        everything = totals.text + totals.soft
        loss = jnp.zeros(())
        metrics = {"log_prob_gap": jnp.zeros(()), "tokens": num_tokens(batch)}
        for name, (new, old, mask, entropy, total, factor, weight) in channels.items():
            part, values = grpo_clip_loss(
                factor * new, factor * old, data.advantages[:, None] * weight, mask,
                clip_low=config.clip_low, clip_high=config.clip_high, denominator=everything,
            )  # fmt: skip
            loss += part
            log_ratio = jnp.where(mask, new - old, 0)
            count = jnp.maximum(total, 1.0)
            metrics |= {f"{name}_{key}": value * everything / count for key, value in values.items()}
            metrics[f"{name}_log_ratio"] = log_ratio.sum() / count
            metrics[f"{name}_entropy"] = jnp.where(mask, entropy, 0).sum() / count
            metrics["log_prob_gap"] = jnp.maximum(metrics["log_prob_gap"], jnp.abs(log_ratio).max())
        return loss, metrics

    def grpo_gradient(
        trainable: Params, frozen: Params, data: PolicyBatch[jax.Array], totals: Totals
    ) -> tuple[Params, Metrics]:
        gradient: tuple[Params, Metrics] = jax.grad(loss_of, has_aux=True)(trainable, frozen, data, totals)
        return gradient

    return jax.jit(grpo_gradient) if places is None else jax.jit(grpo_gradient, out_shardings=(places, None))


def make_grpo_update(optimizer: optax.GradientTransformation, places: Any) -> Callable[..., TrainState]:
    """Jit (state, gradient) -> state, donating the old one."""

    def grpo_update(state: TrainState, gradients: Params) -> TrainState:
        return apply_gradients(optimizer, state, gradients)

    return jax.jit(grpo_update, out_shardings=places, donate_argnums=0)


MAX_LOG_PROB_GAP = 1e-3
"""Largest difference of sampler and trainer in a float32 log-prob before the first update of a batch; the two
compute the same numbers in another order, which gives some 1e-5."""


def max_log_prob_gap(dtype: str) -> float:
    """Return the bound for `accumulate` at the first minibatch.

    Where products are rounded to fewer bits, there is none.
    """
    exact = dtype == "float32" and jax.default_backend() == "cpu"
    return MAX_LOG_PROB_GAP if exact else math.inf


def accumulate(
    gradient: Callable[..., tuple[Params, Metrics]],
    trainable: Params,
    frozen: Params,
    samples: Sequence[PolicySample],
    microbatch: int,
    pad_id: int,
    *,
    max_gap: float = math.inf,
) -> tuple[Params, dict[str, float]]:
    """Sum (gradient, metrics) over microbatches of similar lengths.

    Raises:
        InternalError: a log-prob differs by more than `max_gap` from what it was when its token was sampled. At the
            first minibatch of an update the sampler then used other weights, a stale cache or another prompt.
    """
    order = sorted(range(len(samples)), key=lambda i: samples[i].row.num_tokens)
    totals = totals_of(samples)
    gradients: Any = None
    metrics: dict[str, float] = {}
    for start in range(0, len(order), microbatch):
        data = policy_batch([samples[i] for i in order[start : start + microbatch]], microbatch, pad_id)
        part, values = gradient(trainable, frozen, data, totals)
        gradients = part if gradients is None else jax.tree.map(jnp.add, gradients, part)
        for name, value in values.items():
            before = metrics.get(name, 0.0)
            metrics[name] = max(before, float(value)) if name == "log_prob_gap" else before + float(value)
        if not metrics["log_prob_gap"] <= max_gap:
            raise InternalError(_stale(max_gap, metrics["log_prob_gap"]))
    metrics["grad_norm"] = float(optax.global_norm(gradients))
    return gradients, metrics


def train_grpo(run: Run, model: CompilerModel, executor: Decoder, games: Games) -> CompilerModel:
    """Train the compiler by GRPO; the frozen executor acts greedily."""
    config, rl, place, axes = run.config, run.config.grpo, run.place, parameter_axes(model)
    if (rl.server or rl.executor_server) and jax.process_count() > 1:
        raise InvalidInputError(f"grpo.server: expected one process, got {jax.process_count()}")
    graph, params, frozen = split_model(config, model)
    frozen = place.params(frozen, axes)
    # From here on the executor only acts; what is frozen of the compiler lies in both layouts.
    acting = acting_placement(config)
    nnx.update(executor, acting.params(nnx.state(executor), parameter_axes(executor)))
    frozen_acting = acting.params(frozen, axes)
    schedule = cosine(rl.learning_rate, rl.min_learning_rate, max(rl.steps * rl.minibatches, 1))
    optimizer = make_optimizer(schedule, rl.weight_decay, rl.max_grad_norm, b2=0.95, eps=1e-5)
    first = place.params(params, axes)
    start, places = fresh_state(optimizer, params, axes, place)
    sharded_gradient: Callable[..., tuple[Params, Metrics]] = place.scoped(
        make_grpo_gradient(graph, rl, places=places and places.trainable, mesh=config.mesh)
    )
    update = place.scoped(make_grpo_update(optimizer, places))
    max_gap = max_log_prob_gap(model.decoder.config.dtype)
    ids, soft_shape = special_ids(run.tokenizer), (config.memory.num_soft, executor.config.width)
    rows = place.rows(rl.microbatch)

    def gradient(trainable: Params, frozen: Params, data: PolicyBatch[np.ndarray], totals: Totals) -> Any:
        return sharded_gradient(trainable, frozen, place.batch(data), totals)

    score = place.scoped(make_grpo_scores(graph, rl, mesh=config.mesh))

    def own_scores(trainable: Params, frozen: Params, data: PolicyBatch[np.ndarray]) -> Any:
        return score(trainable, frozen, place.batch(data))

    def drift(samples: Sequence[PolicySample]) -> dict[str, float]:
        """Estimate the policy's divergence from its start on a fresh microbatch.

        KL(policy || start): of text in nats per token, r - 1 - log r with r = pi_start / pi; of soft tokens in nats per
        dimension, -log r.
        """
        _, values = accumulate(gradient, first, frozen, samples, rows, ids.pad)
        text = {"text_kl_to_start": values["text_approximate_kl"]}
        return text | ({"soft_kl_to_start": -values["soft_log_ratio"]} if "soft_log_ratio" in values else {})

    def step(state: TrainState, number: int, _: None) -> tuple[TrainState, Metrics]:
        """Play one batch of episodes and update by it."""
        current = nnx.merge(graph, state.trainable, frozen)
        random = np.random.default_rng((config.seed, 3, number))
        started = time.perf_counter()
        sampler = nnx.merge(graph, state.trainable, frozen_acting)
        trajectories = _play_groups(run, sampler, executor, games, number, random)
        rollout_s = time.perf_counter() - started
        advantages, equal = advantages_of(assign_rewards(config, trajectories, number), rl.group_size)
        metrics = rollout_metrics(trajectories) | {"equal_share": equal / rl.num_tasks, "rollout_s": rollout_s}
        samples = policy_samples(trajectories, advantages, soft_shape, ids.soft)
        refuse_stale(samples, weights_version(current.decoder, current.soft_mem))
        parts = np.array_split(random.permutation(len(samples)), rl.minibatches) if samples else []
        metrics |= {"samples": len(samples), "tokens": 0}
        if samples and rl.old_log_probs == "trainer":
            samples, gaps = rescore(own_scores, state.trainable, frozen, samples, rows, ids.pad, rl, max_gap=max_gap)
            metrics |= gaps
        if samples:
            metrics |= drift([samples[i] for i in parts[0][: rl.microbatch]])
        for index, part in enumerate(part for part in parts if len(part)):
            gradients, values = accumulate(
                gradient, state.trainable, frozen, [samples[i] for i in part], rows, ids.pad,
                max_gap=math.inf if index else max_gap,
            )  # fmt: skip
            state = update(state, gradients)
            gap = metrics.get("log_prob_gap", values["log_prob_gap"])  # of the first minibatch, where it should be 0
            metrics |= values | {"log_prob_gap": gap, "tokens": metrics["tokens"] + values["tokens"]}
        return state, metrics

    work = {"tokens": flops_per_token(model.decoder.config, MEAN_LENGTH, trained=not config.model.lora)}
    state = run_loop(
        "grpo", run.folder, config, start, step,
        num_steps=rl.steps, checkpoint_every=rl.checkpoint_every, work=work,
    )  # fmt: skip
    return nnx.merge(graph, state.trainable, frozen)


def _play_groups(
    run: Run, model: CompilerModel, executor: Decoder, games: Games, step: int, random: np.random.Generator
) -> list[Trajectory]:
    """Play drawn tasks in groups with acting copies of the models."""
    config, rl = run.config, run.config.grpo
    tasks = np.repeat(random.choice(games.tasks.num_train, rl.num_tasks, replace=False), rl.group_size)
    sampling = {"temperature": rl.temperature, "top_k": rl.top_k, "top_p": rl.top_p}
    acting = CompletionServer(rl.executor_server, "executor") if rl.executor_server else None
    with serve_adapters(run, model.decoder) as server:
        compiler = make_compiler(config, model, run.tokenizer, server=server, **sampling)
        return play(
            games.tasks.rollout, make_executor(config, executor, run.executor_tokenizer, server=acting),
            delivery_in_training(config, compiler), games.seen(0), tasks=tasks.tolist(),
            seeds=config.seed * 1_000_003 + step * len(tasks) + np.arange(len(tasks)),
            top_k=config.memory.top_k, shown=config.memory.shown, max_steps=rl.max_steps,
        )  # fmt: skip


@contextlib.contextmanager
def serve_adapters(run: Run, decoder: Decoder) -> Iterator[CompletionServer | None]:
    """Yield the run's server with the present adapters; None without a server.

    They have their weights' version as name, so no answer and no cache of a server is of others.
    """
    if not run.config.grpo.server:
        yield None
        return
    server = CompletionServer(run.config.grpo.server, f"compiler-{weights_version(decoder):08x}")
    folder = run.folder / "grpo" / "adapter"
    save_peft(decoder, folder)
    server.load_adapter(folder)
    yield server
    server.unload_adapter()


def assign_rewards(config: Config, trajectories: Sequence[Trajectory], step: int) -> list[Trajectory]:
    """Return each trajectory's source of reward: itself, or shuffled."""
    count = len(trajectories)
    shuffled = config.grpo.rewards == "shuffled"
    order = np.random.default_rng((config.seed, 10, step)).permutation(count) if shuffled else range(count)
    return [trajectories[i] for i in order]


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Success, length and how well the compiler's outputs could be read."""
    records = [d.record for t in trajectories for d in t.delivered if d.record is not None]
    return {
        "won": float(np.mean([t.won for t in trajectories])),
        "progress": float(np.mean([t.progress for t in trajectories])),
        "steps": float(np.mean([len(t.delivered) for t in trajectories])),
        "well_formed": float(np.mean([r.output.well_formed for r in records])) if records else 1.0,
        "refused_edits": float(np.mean([r.refused_edits for r in records])) if records else 0.0,
        "guided": float(np.mean([bool(d.hint) for t in trajectories for d in t.delivered])),
    }
