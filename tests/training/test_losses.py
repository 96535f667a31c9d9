"""Label smoothing against the smoothed distribution written out, its minimum, and finite differences."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.training.sft import masked_mean, smoothed_cross_entropy

pytestmark = pytest.mark.usefixtures("unoptimised")


def label_smoothed_cross_entropy(logits, targets, mask, **settings):
    """The loss from logits [..., V] and targets int32[...]."""
    table = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    chosen = jnp.take_along_axis(table, targets[..., None], axis=-1)[..., 0]
    return smoothed_cross_entropy(chosen, table.mean(-1), mask, **settings)


def test_equals_cross_entropy_to_the_smoothed_distribution():
    logits, targets = jax.random.normal(jax.random.key(0), (2, 3, 5)), jnp.array([[0, 4, 2], [1, 1, 3]])
    mask = jnp.array([[True, False, True], [True, True, False]])
    table = np.asarray(jax.nn.log_softmax(logits), np.float64)
    total = 0.0
    for b, t in np.argwhere(mask):
        smoothed = np.full(5, 0.1 / 5)
        smoothed[targets[b, t]] += 0.9  # a variant that leaves the target out of the even part puts 0.1 / 4 on the rest
        total -= (smoothed * table[b, t]).sum()
    got = label_smoothed_cross_entropy(logits, targets, mask, smoothing=0.1)
    assert float(got) == pytest.approx(total / 4, rel=1e-5)
    half = label_smoothed_cross_entropy(logits, targets, mask, smoothing=0.1, denominator=8.0)
    assert float(half) == pytest.approx(total / 8, rel=1e-5)


def test_two_tokens_by_hand():
    # p = (0.8, 0.2), target 0, smoothing 0.2: -(0.9 ln 0.8 + 0.1 ln 0.2) = 0.3618; without smoothing -ln 0.8 = 0.2231
    logits = jnp.log(jnp.array([[0.8, 0.2]]))
    one = (jnp.array([0]), jnp.array([True]))
    expected = -(0.9 * math.log(0.8) + 0.1 * math.log(0.2))
    assert float(label_smoothed_cross_entropy(logits, *one, smoothing=0.2)) == pytest.approx(expected, rel=1e-5)
    assert float(label_smoothed_cross_entropy(logits, *one, smoothing=0.0)) == pytest.approx(0.22314, rel=1e-4)


def test_minimum_is_the_smoothed_distribution():
    smoothed = jnp.full((1, 4), 0.025).at[0, 2].set(0.925)
    gradient = jax.grad(lambda x: label_smoothed_cross_entropy(x, jnp.array([2]), jnp.array([True]), smoothing=0.1))(
        jnp.log(smoothed)
    )
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_gradient_equals_finite_differences():
    logits, direction = jax.random.normal(jax.random.key(1), (2, 3, 4, 6))
    targets, mask = jnp.zeros((3, 4), int), jnp.ones((3, 4), bool)

    @jax.jit
    def loss(step):
        return label_smoothed_cross_entropy(logits + step * direction, targets, mask)

    np.testing.assert_allclose(jax.grad(loss)(0.0), (loss(1e-2) - loss(-1e-2)) / 2e-2, rtol=1e-2, atol=1e-4)


def test_empty_mask_gives_zero_and_smoothing_is_checked():
    assert float(masked_mean(jnp.array([jnp.nan, 3.0]), jnp.array([False, False]))) == 0.0
    with pytest.raises(InvalidInputError, match="smoothing"):
        label_smoothed_cross_entropy(jnp.zeros((1, 2)), jnp.zeros(1, int), jnp.ones(1, bool), smoothing=1.0)
