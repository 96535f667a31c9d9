"""Soft-Mem: sizes at the start, densities against SciPy-free formulas and brute force, writing against a loop."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_decoders import BASE, build

from embodied_mem.errors import InvalidInputError
from embodied_mem.models import soft_mem as sm
from embodied_mem.models.soft_mem import Gaussian, SoftMem, SoftMemConfig

pytestmark = pytest.mark.usefixtures("unoptimised")


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


@pytest.mark.parametrize("projection", ["gaussian", "linear"])
def test_soft_tokens_start_with_the_size_of_embeddings(projection):
    module = SoftMem(SoftMemConfig(projection=projection), compiler_width=96, executor_width=160, rngs=nnx.Rngs(0))
    hidden = normal(1, 32, 16, 96)
    hidden = hidden / jnp.sqrt((hidden**2).mean(-1, keepdims=True))  # a final hidden state is RMS-normalised
    soft = sm.sample(module(hidden), keys(32))
    assert soft.shape == (32, 16, 160)
    assert float(soft.std()) == pytest.approx(0.0261, rel=0.03)
    assert set(sm.logical_axes(module.config)) == {p for p, _ in nnx.to_flat_state(nnx.state(module))}


def test_sampling_has_the_mean_and_spread_of_the_gaussian():
    gaussian = Gaussian(jnp.broadcast_to(jnp.array([0.5, -2.0]), (1, 20_000, 2)), jnp.full((1, 20_000, 2), -1.0))
    soft = sm.sample(gaussian, keys(1), temperature=1.2)
    np.testing.assert_allclose(soft.mean((0, 1)), [0.5, -2.0], atol=0.015)
    np.testing.assert_allclose(soft.std((0, 1)), 1.2 * math.exp(-1), rtol=0.03)
    np.testing.assert_array_equal(sm.sample(gaussian, keys(1), temperature=0.0), gaussian.mu)


def test_density_equals_the_product_of_scalar_densities():
    gaussian = Gaussian(normal(0, 2, 3, 5), 0.3 * normal(1, 2, 3, 5))
    soft = normal(2, 2, 3, 5)
    for temperature in (1.0, 1.2):
        got = sm.log_density(soft, gaussian, temperature)
        for b in range(2):
            for n in range(3):
                product = 1.0
                for d in range(5):
                    sigma = temperature * math.exp(gaussian.log_sigma[b, n, d])
                    z = (soft[b, n, d] - gaussian.mu[b, n, d]) / sigma
                    product *= math.exp(-0.5 * z * z) / (sigma * math.sqrt(2 * math.pi))
                assert float(got[b, n]) == pytest.approx(math.log(product), rel=1e-4, abs=1e-4)
        mean = sm.log_density(soft, gaussian, temperature, per_dimension=True)
        np.testing.assert_allclose(mean * 5, got, rtol=1e-5)


def test_density_is_a_score_function():
    """E[grad log p] = 0 under p; and no gradient flows through the sample itself (reparameterised it would cancel)."""
    mu, log_sigma = jnp.zeros((1, 50_000, 1)), jnp.full((1, 50_000, 1), -0.5)
    soft = sm.sample(Gaussian(mu, log_sigma), keys(1))
    grads = jax.grad(lambda m, s: sm.log_density(soft, Gaussian(m, s)).mean(), (0, 1))(mu, log_sigma)
    assert abs(float(grads[0].sum())) < 0.03
    assert abs(float(grads[1].sum())) < 0.03

    def through_sample(m):
        gaussian = Gaussian(m, log_sigma)
        return sm.log_density(sm.sample(gaussian, keys(1)), gaussian).sum()

    assert float(jnp.abs(jax.grad(through_sample)(mu)).max()) > 1.0


def test_entropy_is_the_mean_negative_log_density():
    gaussian = Gaussian(normal(0, 1, 1, 6), normal(1, 1, 1, 6))
    many = Gaussian(jnp.repeat(gaussian.mu, 20_000, 1), jnp.repeat(gaussian.log_sigma, 20_000, 1))
    estimate = -sm.log_density(sm.sample(many, keys(1)), many).mean() / 6
    assert float(sm.entropy_per_dimension(gaussian)[0, 0]) == pytest.approx(float(estimate), abs=0.01)


def test_linear_has_no_density():
    gaussian = SoftMem(SoftMemConfig(projection="linear"), compiler_width=4, executor_width=6, rngs=nnx.Rngs(0))(
        normal(0, 2, 16, 4)
    )
    np.testing.assert_array_equal(sm.sample(gaussian, keys(2)), gaussian.mu)
    with pytest.raises(InvalidInputError, match="linear"):
        sm.log_density(gaussian.mu, gaussian)


@pytest.mark.parametrize("num_tokens", [0, 4])
def test_writing_equals_a_loop(num_tokens):
    embeddings, soft = normal(0, 5, 9, 3), normal(1, 5, num_tokens, 3)
    mask = np.zeros((5, 9), bool)
    mask[0, 2:6] = True  # as many as there are
    mask[1, [0, 8]] = True  # fewer, apart, at the ends
    mask[2, :] = True  # more: the rest keeps its embedding
    mask[4, 5:9] = True  # row 3 has none
    expected = np.array(embeddings)
    for b in range(5):
        for i, position in enumerate(np.flatnonzero(mask[b])[:num_tokens]):
            expected[b, position] = soft[b, i]
    np.testing.assert_array_equal(jax.jit(sm.write_soft_tokens)(embeddings, mask, soft), expected)


def test_writing_passes_gradients_to_the_right_token():
    """Through a frozen decoder, against finite differences; a token that is not written gets none."""
    decoder = build(BASE)
    tokens = jax.random.randint(jax.random.key(3), (2, 7), 0, 40)
    mask = jnp.zeros((2, 7), bool).at[0, 1:4].set(True).at[1, 5].set(True)

    @jax.jit
    def loss(soft):
        written = sm.write_soft_tokens(decoder.embed(tokens), mask, soft)
        return (decoder(embeddings=written)[:, -1] * normal(4, 2, 24)).sum()

    soft = normal(5, 2, 3, 24)
    gradient = jax.jit(jax.grad(loss))(soft)
    for seed in (6, 7):
        direction = normal(seed, 2, 3, 24)
        numeric = (loss(soft + 1e-3 * direction) - loss(soft - 1e-3 * direction)) / 2e-3
        np.testing.assert_allclose((gradient * direction).sum(), numeric, rtol=2e-2, atol=2e-3)
    assert (gradient[1, 1:] == 0).all()
    assert (jnp.abs(gradient[0]).max(-1) > 0).all()


def test_complementarity_values_and_stopped_gradient():
    soft = jnp.array([[[1.0, 0.0], [3.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    text = jnp.array([[[-4.0, 0.0], [9.0, 9.0]], [[2.0, 0.0], [0.0, 0.0]], [[5.0, 5.0], [5.0, 5.0]]])
    mask = jnp.array([[True, False], [True, True], [False, False]])
    # opposite directions count as redundant (|cos| = 1); 45 degrees; no text at all
    np.testing.assert_allclose(sm.complementarity(soft, text, mask), [1.0, math.sqrt(0.5), 0.0], atol=1e-6)
    grads = jax.grad(lambda s, t: sm.complementarity(s, t, mask).sum(), (0, 1))(soft, text)
    assert (grads[1] == 0).all()
    assert float(jnp.abs(grads[0][1]).max()) > 0.1
    assert jnp.isfinite(grads[0]).all()


def test_alignment_against_a_loop_and_its_minimum():
    mu, table = normal(0, 2, 3, 5), normal(1, 7, 5)
    tokens, mask = jnp.array([[1, 6, 2], [0, 3, 5]]), jnp.array([[True, True, False], [False, False, False]])
    total = 0.0
    for i in range(2):
        cosines = [float(mu[0, i] @ e / jnp.linalg.norm(mu[0, i]) / jnp.linalg.norm(e)) for e in table]
        total -= cosines[tokens[0, i]] / 0.2 - math.log(sum(math.exp(c / 0.2) for c in cosines))
    got = sm.semantic_alignment(mu, tokens, mask, table, temperature=0.2)
    np.testing.assert_allclose(got, [total / 2, 0.0], rtol=1e-4)
    named = sm.semantic_alignment(table[tokens], tokens, mask, table, temperature=0.2)
    assert float(named[0]) < float(got[0])
    grad = jax.grad(lambda t: sm.semantic_alignment(mu, tokens, mask, t).sum())(table)
    assert (grad == 0).all()


@pytest.mark.parametrize(
    ("field", "value"), [("num_tokens", 5), ("projection", "quadratic"), ("embedding_std", 0.0), ("mu_share", 1.0)]
)
def test_errors_name_the_field(field, value):
    with pytest.raises(InvalidInputError, match=rf"soft_mem\.{field}: expected"):
        SoftMemConfig(**{field: value})
    with pytest.raises(InvalidInputError, match="expected soft"):
        sm.write_soft_tokens(jnp.zeros((2, 3, 4)), jnp.zeros((2, 3), bool), jnp.zeros((2, 1, 5)))
