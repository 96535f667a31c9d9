"""Soft-Mem: the latent part of the compiler's output, N vectors in the executor's embedding space.

    soft_mem = SoftMem(SoftMemConfig(), compiler_width=128, executor_width=128, rngs=nnx.Rngs(0))
    gaussian = soft_mem(hidden)                                   # hidden [B, N, D_compiler] -> mu, log_sigma
    soft = sample(gaussian, keys, temperature=1.2)                # [B, N, D_executor]
    log_probs = log_density(soft, gaussian, temperature=1.2)      # [B, N], for GRPO
    inputs = write_soft_tokens(executor.embed(tokens), tokens == placeholder, soft)

Source: MemCompiler 3.2.3, eqs. 5, 6, 9 and C.3.1. Readings where the paper leaves room:

- "initialized embedding standard deviation of 0.0261": the executor's token embeddings have that standard deviation
  (Qwen2.5's are of this size). At the start mu and sigma are made such that a sampled soft token looks, in size, like
  a token: mu has standard deviation `mu_share` x 0.0261 over its entries and sigma fills up the rest,
  mu_std^2 + sigma^2 = 0.0261^2. A final hidden state is RMS-normalised up to a learned scale, so a projection kernel of
  standard deviation mu_std / sqrt(D_compiler) gives mu_std; `from_embeddings` measures the value of another executor.
- `linear` (Table 4): the projection gives mu and nothing is sampled.
- The density used for the policy ratio is stated at `log_density`.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import ParameterAxes

NUM_TOKENS_CHOICES = (0, 4, 8, 16, 32)


@dataclasses.dataclass(frozen=True)
class SoftMemConfig:
    """Settings of soft tokens.

    Attributes:
        num_tokens: N; 0 switches the channel off.
        projection: "gaussian" (eq. 5) or "linear" (no noise; no policy gradient reaches it).
        embedding_std: standard deviation of the executor's token embeddings, C.3.1.
        mu_share: standard deviation of mu at the start over `embedding_std`, in (0, 1).
        min_log_sigma: log sigma is clipped from below, so that densities stay finite.
        max_log_sigma: and from above.
    """

    num_tokens: int = 16
    projection: str = "gaussian"
    embedding_std: float = 0.0261
    mu_share: float = 0.8
    min_log_sigma: float = -8.0
    max_log_sigma: float = 0.0

    def __post_init__(self) -> None:
        if self.num_tokens not in NUM_TOKENS_CHOICES:
            raise InvalidInputError(f"soft_mem.num_tokens: expected one of {NUM_TOKENS_CHOICES}, got {self.num_tokens}")
        if self.projection not in ("gaussian", "linear"):
            raise InvalidInputError(f"soft_mem.projection: expected gaussian or linear, got {self.projection!r}")
        if not self.embedding_std > 0:
            raise InvalidInputError(f"soft_mem.embedding_std: expected > 0, got {self.embedding_std!r}")
        if not 0 < self.mu_share < 1:
            raise InvalidInputError(f"soft_mem.mu_share: expected in (0, 1), got {self.mu_share!r}")
        if not self.min_log_sigma < self.initial_log_sigma < self.max_log_sigma:
            raise InvalidInputError(
                f"soft_mem.min_log_sigma: expected min_log_sigma < {self.initial_log_sigma:.3f} (the start) < "
                f"max_log_sigma, got {self.min_log_sigma} and {self.max_log_sigma}"
            )

    @property
    def initial_log_sigma(self) -> float:
        """log sigma at the start: what mu leaves of the variance of a token embedding."""
        return math.log(self.embedding_std) + 0.5 * math.log(1 - self.mu_share**2)

    @property
    def stochastic(self) -> bool:
        """True if soft tokens are sampled, i.e. carry a density."""
        return self.projection == "gaussian" and self.num_tokens > 0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Gaussian:
    """A diagonal Gaussian per soft token: mu and log_sigma, float32[B, N, D]; log_sigma is None if `linear`."""

    mu: jax.Array
    log_sigma: jax.Array | None


class SoftMem(nnx.Module):
    """f_phi of eq. 5: one linear map from the compiler's final hidden states to (mu, log sigma).

    Parameters are `mu_kernel` and `log_sigma_kernel` [D_compiler, D_executor] and their biases [D_executor], float32.
    """

    def __init__(self, config: SoftMemConfig, *, compiler_width: int, executor_width: int, rngs: nnx.Rngs):
        self.config = config
        scale = config.embedding_std * (config.mu_share if config.stochastic else 1.0) * compiler_width**-0.5
        kernel = jax.random.normal(rngs.params(), (compiler_width, executor_width), jnp.float32) * scale
        self.mu_kernel = nnx.Param(kernel)
        self.mu_bias = nnx.Param(jnp.zeros((executor_width,)))
        if config.projection == "gaussian":
            self.log_sigma_kernel = nnx.Param(jnp.zeros((compiler_width, executor_width)))
            self.log_sigma_bias = nnx.Param(jnp.full((executor_width,), config.initial_log_sigma, jnp.float32))

    def __call__(self, hidden: jax.Array) -> Gaussian:
        """Returns the Gaussians of hidden states [B, N, D_compiler]."""
        hidden = hidden.astype(jnp.float32)
        mu = hidden @ self.mu_kernel[...] + self.mu_bias[...]
        if self.config.projection == "linear":
            return Gaussian(mu, None)
        log_sigma = hidden @ self.log_sigma_kernel[...] + self.log_sigma_bias[...]
        return Gaussian(mu, jnp.clip(log_sigma, self.config.min_log_sigma, self.config.max_log_sigma))


def logical_axes(config: SoftMemConfig) -> ParameterAxes:
    """Returns the logical axis names of the projection's parameters by path.

    Both widths are small, one is sharded.
    """
    names = ("mu", "log_sigma") if config.projection == "gaussian" else ("mu",)
    kernels: ParameterAxes = {(f"{name}_kernel",): ("embed", None) for name in names}
    return kernels | {(f"{name}_bias",): (None,) for name in names}


def embedding_std(table: jax.Array) -> float:
    """Returns the standard deviation of an embedding table's entries, [V, D].

    It is for `SoftMemConfig.embedding_std`.
    """
    return float(jnp.std(table.astype(jnp.float32)))


def sample(gaussian: Gaussian, keys: jax.Array, temperature: float | jax.Array = 1.0) -> jax.Array:
    """Draws float32[B, N, D] from a Gaussian.

    It is mu + temperature * sigma * eps, eps ~ N(0, I), differentiable in mu and sigma.

    Args:
        gaussian: what to draw from; with log_sigma None, or temperature 0, mu itself comes back.
        keys: PRNG keys [B], one per row, so that a row does not depend on its neighbours.
        temperature: scales sigma (C.3.2: 1.2 in rollouts, for the latent channel too).
    """
    if gaussian.log_sigma is None:
        return gaussian.mu
    noise = jax.vmap(lambda key: jax.random.normal(key, gaussian.mu.shape[1:], jnp.float32))(keys)
    return gaussian.mu + temperature * jnp.exp(gaussian.log_sigma) * noise


def log_density(
    soft: jax.Array,
    gaussian: Gaussian,
    temperature: float | jax.Array = 1.0,
    *,
    per_dimension: bool = False,
) -> jax.Array:
    """Returns log N(soft; mu, (temperature sigma)^2) of each soft token, float32[B, N].

    Args:
        soft: [B, N, D], what was sampled; gradients do not flow through it (it is data for the policy ratio).
        gaussian: mu and log_sigma under the present parameters.
        temperature: as it was when sampling, so that old and new densities speak of the same distribution.
        per_dimension: divide the sum over the width by D. The exact density ratio of one token is a product of D
            factors; its log varies with sqrt(D), so with D in the thousands nearly every ratio leaves the clip range
            after one small step, and the channel gets no gradient. The mean makes the ratio the geometric mean over
            dimensions: of the size of one scalar action, like a text token. At ratio 1 its gradient is that of the
            exact density divided by D. The exact sum (False) is eq. 8 to the letter.

    Raises:
        InvalidInputError: for a `linear` projection, which has no density.
    """
    if gaussian.log_sigma is None:
        raise InvalidInputError("log_density: expected a gaussian projection, got linear, which has no density")
    log_sigma = gaussian.log_sigma + jnp.log(jnp.asarray(temperature, jnp.float32))
    standard = (jax.lax.stop_gradient(soft) - gaussian.mu) * jnp.exp(-log_sigma)
    terms = -0.5 * jnp.square(standard) - log_sigma - 0.5 * math.log(2 * math.pi)
    return terms.mean(-1) if per_dimension else terms.sum(-1)


def entropy_per_dimension(gaussian: Gaussian) -> jax.Array:
    """Returns the Gaussian's entropy divided by its width, nats, float32[B, N].

    It is mean log sigma + log(2 pi e) / 2.

    Source: the entropy term of eq. 9, which the paper only names. Reading: the loss is its negative, so that sigma
    does not collapse before GRPO has to explore with it; per dimension, so that the weight 0.1 does not depend on
    the executor's width.
    """
    if gaussian.log_sigma is None:
        raise InvalidInputError("entropy_per_dimension: expected a gaussian projection, got linear, which has none")
    return gaussian.log_sigma.mean(-1) + 0.5 * math.log(2 * math.pi * math.e)


def write_soft_tokens(embeddings: jax.Array, placeholder_mask: jax.Array, soft: jax.Array) -> jax.Array:
    """Writes soft[:, i] over the i-th placeholder of each row of embeddings.

    Returns embeddings [B, L, D] in their own dtype.

    Args:
        embeddings: [B, L, D], of the executor's tokens.
        placeholder_mask: bool[B, L]; a row may have any number of placeholders, none included (NOACTION); those past
            the N-th keep their embedding.
        soft: [B, N, D].
    """
    if soft.shape[0] != embeddings.shape[0] or soft.shape[2] != embeddings.shape[2]:
        raise InvalidInputError(
            f"write_soft_tokens: expected soft [{embeddings.shape[0]}, N, {embeddings.shape[2]}], got {soft.shape}"
        )
    num_tokens = soft.shape[1]
    if num_tokens == 0:
        return embeddings
    index = jnp.cumsum(placeholder_mask.astype(jnp.int32), axis=1) - 1
    written = placeholder_mask & (index < num_tokens)
    gathered = jnp.take_along_axis(soft.astype(embeddings.dtype), jnp.clip(index, 0, num_tokens - 1)[..., None], axis=1)
    return jnp.where(written[..., None], gathered, embeddings)


def rows_of(hidden: jax.Array, mask: jax.Array, count: int) -> jax.Array:
    """Returns [B, count, D], the positions of `hidden` under `mask`.

    `hidden` is [B, L, D]. In a row `count` positions are true, or none.
    """
    first = jnp.argmax(mask, axis=1)
    index = first[:, None] + jnp.arange(count)
    return jnp.take_along_axis(hidden, jnp.minimum(index, hidden.shape[1] - 1)[..., None], axis=1)


def complementarity(soft_hidden: jax.Array, text_hidden: jax.Array, text_mask: jax.Array) -> jax.Array:
    """Returns |cos(mean of soft_hidden, sg[mean of text_hidden])| per row, float32[B].

    Args:
        soft_hidden: [B, N, D], the compiler's final hidden states at the soft positions.
        text_hidden: [B, T, D], those at the positions of the text that it wrote.
        text_mask: bool[B, T]; a row without text gives 0.

    Source: eq. 6, second term, L_orth in eq. 9. The text side carries no gradient.
    """
    mask = text_mask.astype(jnp.float32)[..., None]
    text = (text_hidden.astype(jnp.float32) * mask).sum(1) / jnp.maximum(mask.sum(1), 1.0)
    text = jax.lax.stop_gradient(text)
    soft = soft_hidden.astype(jnp.float32).mean(1)
    norms = jnp.sqrt(jnp.sum(soft**2, -1) + 1e-12) * jnp.sqrt(jnp.sum(text**2, -1) + 1e-12)
    return jnp.abs((soft * text).sum(-1) / norms)


def semantic_alignment(
    mu: jax.Array,
    reference_tokens: jax.Array,
    reference_mask: jax.Array,
    embedding_matrix: jax.Array,
    temperature: float = 0.1,
) -> jax.Array:
    """Returns -mean over i of log p(e_i) per row, float32[B].

    It is 0 for a row without reference.

    Source: eq. 6, first term, L_latent in eq. 9; the paper does not define e_i or p. Reading: e_1..e_N are the first
    N tokens of a reference text taken from memory (what the retrieved experience says and the text channel does not),
    and p(. | mu_i) is a softmax over the executor's vocabulary of cos(mu_i, embedding) / temperature. The i-th soft
    token thus has to name the i-th reference token in the space in which the executor reads. The cosine leaves the
    size of mu to the action loss. mu is scored and not a sample, whose noise would only widen the same target.

    Args:
        mu: [B, N, D].
        reference_tokens: int32[B, N].
        reference_mask: bool[B, N], False past the end of shorter references.
        embedding_matrix: [V, D], the executor's; frozen, no gradient flows into it.
        temperature: of the softmax over cosines, which lie in [-1, 1].
    """
    table, mu = _unit(jax.lax.stop_gradient(embedding_matrix).astype(jnp.float32)), _unit(mu.astype(jnp.float32))
    log_probs = jax.nn.log_softmax(jnp.einsum("bnd,vd->bnv", mu, table) / temperature, axis=-1)
    chosen = jnp.take_along_axis(log_probs, reference_tokens[..., None], axis=-1)[..., 0]
    mask = reference_mask.astype(jnp.float32)
    return -(chosen * mask).sum(-1) / jnp.maximum(mask.sum(-1), 1.0)


def perceptual_alignment(mu: jax.Array, seen: jax.Array, recalled: jax.Array, temperature: float = 0.1) -> jax.Array:
    """Returns -mean over i of log p(e_i) per row, float32[B].

    It is 0 for a row without remembered pictures.

        p(e_i) = exp(cos(mu_i, e_i) / temperature) / sum over the e of all rows of exp(cos(mu_i, e) / temperature)

    Source: eq. 6, first term: it "grounds the latent channel in perceptual content from M". The paper does not define
    e_i or p. Reading: e_1..e_N are means of N equal runs of the vision features of the row's remembered pictures, in
    the order in which they are read, as the executor's own tower gives them: soft tokens are to stand in the space in
    which the executor sees, for pictures that it is not shown. The i-th soft token has to tell its part from all parts
    of the batch. As in `semantic_alignment`, the cosine leaves the size of mu to the action loss.

    Args:
        mu: [B, N, D].
        seen: [B, K, T, D], features of the compiler's pictures in the executor's space; no gradient flows into them.
        recalled: bool[B, K], those of memory. With fewer than N features of a row some parts are empty and left out.
        temperature: of the softmax over cosines.
    """
    batch, num_tokens, width = mu.shape
    features = jax.lax.stop_gradient(seen).astype(jnp.float32).reshape(batch, -1, width)
    taken = jnp.repeat(recalled, seen.shape[2], axis=1)
    total = jnp.maximum(taken.sum(1, keepdims=True), 1)
    part = (jnp.cumsum(taken, axis=1) - 1) * num_tokens // total
    member = jax.nn.one_hot(part, num_tokens) * taken[..., None]
    parts = jnp.einsum("bfn,bfd->bnd", member, features)
    real = member.sum(1) > 0
    parts, mu = (_unit(array) for array in (parts, mu.astype(jnp.float32)))
    cosines = jnp.einsum("bnd,md->bnm", mu, parts.reshape(-1, width)) / temperature
    log_probs = jax.nn.log_softmax(jnp.where(real.reshape(-1), cosines, -1e30), axis=-1)  # not -inf: no NaN
    own = jnp.arange(batch * num_tokens).reshape(batch, num_tokens, 1)
    chosen = jnp.where(real, jnp.take_along_axis(log_probs, own, axis=-1)[..., 0], 0.0)
    return -chosen.sum(-1) / jnp.maximum(real.sum(-1), 1)


def _unit(x: jax.Array) -> jax.Array:
    """Returns `x` divided by the length of its last axis."""
    return x * jax.lax.rsqrt(jnp.sum(x**2, -1, keepdims=True) + 1e-12)
