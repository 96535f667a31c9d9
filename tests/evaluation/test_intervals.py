"""Intervals against published values, hand calculation and simulation."""

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.intervals import paired_difference, wilson


@pytest.mark.parametrize(
    ("won", "count", "low", "high"),
    [
        # Newcombe 1998 (Statistics in Medicine 17, 857-872), table I, method 3 (score without continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # By symmetry with 0 of 20.
        (20, 20, 0.8389, 1.0),
    ],
)
def test_wilson_equals_published_values(won, count, low, high):
    assert wilson(won / count, count) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("rate", "count"), [(0.5, 0), (-0.1, 5), (1.1, 5), (float("nan"), 5)])
def test_wilson_refuses(rate, count):
    with pytest.raises(InvalidInputError, match="wilson"):
        wilson(rate, count)


def test_paired_difference_of_identical_outcomes_is_zero():
    won = np.random.default_rng(0).random((30, 3)) < 0.5
    assert paired_difference(won, won) == (0.0, 0.0, 0.0)


def test_paired_interval_is_that_of_the_bootstrap_distribution():
    """10 tasks, 4 of them won by the first only: the resampled mean is Binomial(10, 0.4) / 10. P(X <= 0) = 0.006 and
    P(X <= 1) = 0.046, P(X <= 6) = 0.945 and P(X <= 7) = 0.988: the quantiles 2.5 % and 97.5 % are 0.1 and 0.7."""
    first = np.zeros(10)
    first[3:7] = 1
    assert paired_difference(first, np.zeros(10)) == pytest.approx((0.4, 0.1, 0.7))


def test_seeds_of_a_task_are_not_tasks():
    """Ten copies of each outcome as seeds leave the interval as it is; as tasks they would shrink it."""
    random = np.random.default_rng(1)
    first, second = random.random(40) < 0.7, random.random(40) < 0.5
    one = paired_difference(first, second)
    assert paired_difference(np.tile(first[:, None], 10), np.tile(second[:, None], 10)) == pytest.approx(one)
    _, low, high = paired_difference(np.repeat(first, 10), np.repeat(second, 10))
    assert high - low < 0.5 * (one[2] - one[1])


def test_order_of_arguments_and_seed():
    random = np.random.default_rng(2)
    first, second = random.random(25) < 0.9, random.random(25) < 0.3
    mean, low, high = paired_difference(first, second)
    assert 0 < low < mean < high
    assert paired_difference(first, second) == (mean, low, high)
    assert paired_difference(second, first)[0] == -mean


def test_paired_interval_covers_the_truth():
    """200 simulated comparisons of 60 tasks with correlated outcomes, true difference 0.2: about 95 % cover it.

    The tolerance is 5 standard deviations of a binomial share; an interval of the standard error alone covers 68 %.
    """
    random = np.random.default_rng(3)
    covered = 0
    for trial in range(200):
        hard = random.random(60)
        _, low, high = paired_difference(
            hard < 0.7, (hard + 0.1 * random.normal(size=60)) < 0.5, resamples=500, seed=trial
        )
        covered += low <= 0.7 - 0.5 <= high
    assert 0.95 - 5 * 0.0154 <= covered / 200 <= 1.0


def test_paired_difference_refuses_other_shapes():
    with pytest.raises(InvalidInputError, match="equal shapes"):
        paired_difference(np.zeros(3), np.zeros(4))
    with pytest.raises(InvalidInputError, match="equal shapes"):
        paired_difference(np.zeros(0), np.zeros(0))
