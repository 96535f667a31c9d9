"""GRPO of the compiler: groups of episodes from one start, binary reward, clipped ratio over text and soft tokens.

    samples, statistics = episodes_to_samples(trajectories, rewards, group_size)
    gradients = accumulate(...)

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

With one minibatch all ratios are 1 and nothing is clipped: then the two differ in the weight of the soft channel alone.

Deviation from eq. 8: it writes one ratio per trajectory; a ratio per token is what its clip range is made for and what
the GRPO that it cites uses.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.agents.rollout import Trajectory
from embodied_mem.errors import InternalError
from embodied_mem.models.decoder import score_tokens
from embodied_mem.models.soft_mem import entropy_per_dimension, log_density, rows_of
from embodied_mem.training.config import ONE_DEVICE, GRPOConfig, MeshConfig
from embodied_mem.training.objectives.batches import A, Batch, Row, pad_rows
from embodied_mem.training.objectives.grpo_loss import group_normalized_advantages, grpo_clip_loss
from embodied_mem.training.objectives.sft import (
    CompilerModel,
    Metrics,
    Params,
    TrainState,
    apply_gradients,
    embed_batch,
    num_tokens,
)


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
    """

    row: Row
    log_probs: np.ndarray
    soft: np.ndarray
    soft_log_density: np.ndarray
    uses_soft: bool
    advantage: float
    weights_version: int = 0


def advantages_of(trajectories: Sequence[Trajectory], group_size: int) -> tuple[np.ndarray, int]:
    """(float32[len(trajectories)], number of groups with equal rewards); groups stand in a row."""
    rewards = np.asarray([float(t.won) for t in trajectories], np.float32).reshape(-1, group_size)
    advantages, num_equal = group_normalized_advantages(jnp.asarray(rewards))
    return np.asarray(advantages).reshape(-1), int(num_equal)


def policy_samples(
    trajectories: Sequence[Trajectory], advantages: np.ndarray, soft_shape: tuple[int, int], soft_id: int
) -> list[PolicySample]:
    """Every compiler output of the trajectories with an advantage; those without have no gradient and are left out."""
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
    """Raises InternalError unless all samples were made with the weights of `version`, those before the first update.

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


jax.tree_util.register_dataclass(
    PolicyBatch, ["batch", "old_log_probs", "soft", "old_soft", "uses_soft", "advantages"], []
)


def policy_batch(samples: Sequence[PolicySample], size: int, pad_id: int, length: int = 0) -> PolicyBatch[np.ndarray]:
    """`samples` as arrays of `size` rows; missing rows repeat the first with advantage 0 and no learned token."""
    filled = [*samples, *[samples[0]] * (size - len(samples))]
    batch = pad_rows([s.row for s in filled], pad_id, length=length)
    old = np.zeros(batch.tokens.shape, np.float32)
    for b, sample in enumerate(filled):
        old[b, batch.learned[b]] = sample.log_probs
    real = np.arange(size) < len(samples)
    batch = batch._replace(learned=batch.learned & real[:, None])
    return PolicyBatch(
        batch,
        old,
        np.stack([s.soft for s in filled]),
        np.stack([s.soft_log_density for s in filled]),
        np.asarray([s.uses_soft for s in filled]) & real,
        np.asarray([s.advantage for s in filled], np.float32) * real,
    )


class Totals(NamedTuple):
    """The learned tokens of a whole batch, of which a microbatch is a part: text, and soft tokens that were read."""

    text: float
    soft: float


def totals_of(samples: Sequence[PolicySample]) -> Totals:
    """What `samples` have together."""
    return Totals(float(sum(len(s.log_probs) for s in samples)), float(sum(s.uses_soft * len(s.soft) for s in samples)))


def make_grpo_gradient(
    graphdef: nnx.GraphDef[CompilerModel], config: GRPOConfig, *, places: Any = None, mesh: MeshConfig = ONE_DEVICE
) -> Callable[..., tuple[Params, Metrics]]:
    """A jitted (trainable, frozen, PolicyBatch, Totals) -> (gradient, metrics), to be summed over parts.

    On a mesh, `places` has a sharding per leaf of the gradient. The metrics are means over the text tokens, `text_...`,
    and over the soft tokens, `soft_...`: `entropy` at the sampling temperature (of a soft token per dimension),
    `log_ratio` (of a soft token per dimension), and `ratio`, `clipped`, `approximate_kl` of `grpo_clip_loss`.
    """

    def loss_of(
        trainable: Params, frozen: Params, data: PolicyBatch[jax.Array], totals: Totals
    ) -> tuple[jax.Array, Metrics]:
        model = nnx.merge(graphdef, trainable, frozen)
        batch = data.batch
        embeddings, positions = embed_batch(model.decoder, batch)
        hidden = model.decoder(embeddings=embeddings, mask=batch.mask, positions=positions, remat=mesh.remat)
        scores = score_tokens(
            model.decoder, hidden, batch.targets, temperature=config.temperature, chunk_size=mesh.logits_chunk
        )
        channels = {"text": (scores.log_probs, data.old_log_probs, batch.learned, scores.entropy, totals.text, 1)}
        if model.soft_mem is not None and model.soft_mem.config.stochastic:
            gaussian = model.soft_mem(rows_of(hidden, batch.suffix, data.soft.shape[1]))
            density = log_density(data.soft, gaussian, config.temperature, per_dimension=True)
            used = jnp.broadcast_to(data.uses_soft[:, None], density.shape)
            entropy = entropy_per_dimension(gaussian) + jnp.log(config.temperature)
            factor = data.soft.shape[2] if config.density == "sum" else 1
            channels["soft"] = density, data.old_soft, used, entropy, totals.soft, factor
        everything = totals.text + totals.soft
        loss = jnp.zeros(())
        metrics = {"log_prob_gap": jnp.zeros(()), "tokens": num_tokens(batch)}
        for name, (new, old, mask, entropy, total, factor) in channels.items():
            part, values = grpo_clip_loss(
                factor * new, factor * old, data.advantages[:, None], mask,
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
    """A jitted (state, gradient) -> state, which uses the old one up; on a mesh it lies as `places` says."""

    def grpo_update(state: TrainState, gradients: Params) -> TrainState:
        return apply_gradients(optimizer, state, gradients)

    return jax.jit(grpo_update, out_shardings=places, donate_argnums=0)


MAX_LOG_PROB_GAP = 1e-3
"""In float32, the most that sampler and trainer may differ in a log-prob before the first update of a batch; the two
compute the same numbers in another order, which gives some 1e-5."""


def max_log_prob_gap(dtype: str) -> float:
    """The bound for `accumulate` at the first minibatch: where products are rounded to fewer bits, there is none."""
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
    """(gradient, metrics) of all samples, in microbatches of one length each so that little is padded.

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
            raise InternalError(
                f"grpo: expected log-probs of sampler and trainer within {max_gap} before the first update, got a "
                f"difference of {metrics['log_prob_gap']:.3g}; the sampler's weights or caches are stale"
            )
    metrics["grad_norm"] = float(optax.global_norm(gradients))
    return gradients, metrics
