"""Versions of weights: the same for the same values wherever they are held, another for any change."""

import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.models.weights_version import WeightsWatch, weights_version


class Pair(nnx.Module):
    def __init__(self, first, second):
        self.first, self.second = nnx.Param(jnp.asarray(first)), nnx.Param(jnp.asarray(second))


FIRST, SECOND = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones(4, np.float16)


def test_the_version_is_that_of_the_values():
    version = weights_version(Pair(FIRST, SECOND))
    assert weights_version(Pair(FIRST.copy(), SECOND), None) == version
    assert weights_version(Pair(SECOND, FIRST)) == version
    swapped = FIRST.copy()
    swapped[0, 0], swapped[1, 2] = FIRST[1, 2], FIRST[0, 0]
    nearly = FIRST.copy()
    nearly[1, 1] = np.nextafter(nearly[1, 1], 9)
    others = [weights_version(Pair(changed, SECOND)) for changed in (swapped, nearly, FIRST.T.copy(), -FIRST)]
    assert len({version, *others}) == 5


def test_a_watch_sees_other_arrays():
    one, two = Pair(FIRST, SECOND), Pair(FIRST, SECOND)
    watch = WeightsWatch(one, None, two)
    assert watch.changed()
    assert not watch.changed()
    two.second[...] = two.second[...] + 0
    assert watch.changed()
    before = watch.version()
    assert not watch.changed()
    one.first[...] = one.first[...] + 1
    assert watch.version() != before
