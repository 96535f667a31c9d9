"""GRPO maths on tiny arrays with the derivation in the comment, and against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.training.grpo import group_normalized_advantages, grpo_clip_loss

pytestmark = pytest.mark.usefixtures("unoptimised")

ONE = np.ones((1, 1), bool)


def test_advantages_of_binary_rewards():
    rewards = jnp.array([[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
    advantages, num_equal = group_normalized_advantages(rewards)
    # First row: mean 1/4, variance 3/16, so (3/4) / (sqrt(3)/4) = sqrt(3) and -1/sqrt(3); the sample's standard
    # deviation (divisor K - 1) would give 1.5 and -0.5. Last row: mean 1/2, std 1/2.
    np.testing.assert_allclose(advantages[0], [3**0.5, *[-(3**-0.5)] * 3], rtol=1e-6)
    np.testing.assert_array_equal(advantages[1:3], 0.0)
    np.testing.assert_allclose(advantages[3], [1, 1, -1, -1], rtol=1e-6)
    assert int(num_equal) == 2


def test_advantages_do_not_depend_on_scale_or_offset():
    rewards = jax.random.normal(jax.random.key(0), (5, 4))
    expected, _ = group_normalized_advantages(rewards)
    np.testing.assert_allclose(group_normalized_advantages(3 * rewards - 7)[0], expected, atol=1e-4)
    np.testing.assert_allclose(expected.mean(1), 0, atol=1e-6)
    np.testing.assert_allclose((expected**2).mean(1), 1, rtol=1e-5)
    with pytest.raises(InvalidInputError, match=r"K >= 2, got \(4, 1\)"):
        group_normalized_advantages(jnp.zeros((4, 1)))


@pytest.mark.parametrize(
    ("ratio", "advantage", "objective", "slope"),
    [
        (1.0, 2.0, 2.0, 2.0),  # on policy: the slope in log-prob is ratio * advantage
        (1.27, 1.0, 1.27, 1.27),  # a symmetric clip at 0.2 would give 1.2 and no slope
        (1.50, 1.0, 1.28, 0.0),
        (0.50, 1.0, 0.50, 0.5),  # a good action that became rare is never clipped
        (1.50, -1.0, -1.50, -1.5),  # a bad action that became likely is never clipped
        (0.79, -1.0, -0.80, 0.0),
        (0.81, -1.0, -0.81, -0.81),
        (1.50, 0.0, 0.0, 0.0),
    ],
)
def test_one_action(ratio, advantage, objective, slope):
    old = jnp.full((1, 1), -1.3)

    def loss(log_probs):
        return grpo_clip_loss(log_probs, old, jnp.full((1, 1), advantage), ONE)[0]

    value, gradient = jax.value_and_grad(loss)(old + np.log(ratio))
    assert float(value) == pytest.approx(-objective, abs=1e-5)
    assert float(gradient[0, 0]) == pytest.approx(-slope, abs=1e-5)


def test_every_action_weighs_the_same_and_masked_ones_nothing():
    # Row 0 has 3 actions with advantage 1, row 1 one with -3, all ratios 1: -(3 * 1 - 3) / 4 = 0; averaging each row
    # first would give -(1 - 3) / 2 = 1. Masked entries hold infinities and NaN.
    log_probs = jnp.array([[-1.0, -1.0, -1.0], [-1.0, -jnp.inf, jnp.nan]])
    old = jnp.where(jnp.isfinite(log_probs), log_probs, 5.0)
    mask = jnp.array([[True, True, True], [True, False, False]])
    advantages = jnp.array([[1.0], [-3.0]])

    def loss(log_probs):
        return grpo_clip_loss(log_probs, old, advantages, mask)[0]

    value, gradient = jax.value_and_grad(loss)(log_probs)
    assert float(value) == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(gradient, [[-0.25] * 3, [0.75, 0, 0]], atol=1e-6)


def test_text_and_soft_actions_together_equal_their_parts():
    rng = jax.random.split(jax.random.key(0), 6)
    new, old = jax.random.normal(rng[0], (3, 7)), jax.random.normal(rng[1], (3, 7))
    advantages, mask = jax.random.normal(rng[2], (3, 1)), jax.random.bernoulli(rng[3], 0.6, (3, 7))
    together, metrics = grpo_clip_loss(new, old, advantages, mask)
    count = mask.sum()
    parts = [
        grpo_clip_loss(new[:, s], old[:, s], advantages, mask[:, s], denominator=count)
        for s in (slice(0, 5), slice(5, 7))
    ]
    assert float(together) == pytest.approx(float(parts[0][0] + parts[1][0]), rel=1e-5)
    for name, value in metrics.items():
        assert float(value) == pytest.approx(float(parts[0][1][name] + parts[1][1][name]), rel=1e-5)


def test_metrics():
    # Ratios 2 and 0.5 with advantages 1 and 1: the first is clipped. KL terms: 2 - 1 - ln 2, 0.5 - 1 + ln 2.
    new = jnp.log(jnp.array([[2.0, 0.5]]))
    _, metrics = grpo_clip_loss(new, jnp.zeros((1, 2)), jnp.ones((1, 1)), jnp.ones((1, 2), bool))
    assert float(metrics["ratio"]) == pytest.approx(1.25)
    assert float(metrics["clipped"]) == pytest.approx(0.5)
    assert float(metrics["approximate_kl"]) == pytest.approx(0.25)


def test_gradient_equals_finite_differences():
    rng = jax.random.split(jax.random.key(1), 5)
    old, mask = 0.3 * jax.random.normal(rng[0], (4, 6)), jax.random.bernoulli(rng[1], 0.7, (4, 6))
    new, direction = old + 0.2 * jax.random.normal(rng[2], (4, 6)), jax.random.normal(rng[3], (4, 6))
    advantages = jax.random.normal(rng[4], (4, 1))

    @jax.jit
    def loss(step):
        return grpo_clip_loss(new + step * direction, old, advantages, mask)[0]

    numeric = (loss(1e-3) - loss(-1e-3)) / 2e-3
    np.testing.assert_allclose(jax.grad(loss)(0.0), numeric, rtol=1e-2, atol=1e-4)


def test_a_bandit_is_learned():
    """A softmax over 5 arms, assign_rewards for arm 3: GRPO with groups of 8 makes it the choice."""
    logits, key = jnp.zeros(5), jax.random.key(0)

    @jax.jit
    def step(logits, key):
        actions = jax.random.categorical(key, logits, shape=(4, 8))
        advantages, _ = group_normalized_advantages(actions == 3)
        old = jax.nn.log_softmax(logits)[actions]

        def loss(logits):
            new = jax.nn.log_softmax(logits)[actions]
            return grpo_clip_loss(new, old, advantages, jnp.ones((4, 8), bool))[0]

        return logits - 0.5 * jax.grad(loss)(logits)

    for i in range(60):
        logits = step(logits, jax.random.fold_in(key, i))
    assert float(jax.nn.softmax(logits)[3]) > 0.9


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="one shape"):
        grpo_clip_loss(jnp.zeros((1, 2)), jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.ones((1, 2), bool))
    with pytest.raises(InvalidInputError, match="clip_low"):
        grpo_clip_loss(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.zeros((1, 1)), ONE, clip_low=1.5)
