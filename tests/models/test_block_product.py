"""Our products of rows with a large matrix against NumPy's, and what is sampled with them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from prompt_sampling import WARM, from_the_start, same, sampler_of, text
from small_decoders import VARIANTS, build

from embodied_mem.models import block_product
from embodied_mem.models.block_product import Blocks, in_blocks, pays

pytestmark = pytest.mark.usefixtures("unoptimised")


@pytest.mark.parametrize("rows", [1, 2, 6, 7, 50, 401])  # tiles have 6 rows and 48, tasks 192
@pytest.mark.parametrize("shape", [(5, 3), (64, 64), (40, 7, 19), (300, 1000)])
def test_products_are_numpys(rows, shape):
    rng = np.random.default_rng(rows)
    x, weight = rng.standard_normal((rows, shape[0])), rng.standard_normal(shape)
    blocks = jax.jit(Blocks.of)(jnp.float32(weight))
    product = jax.jit(Blocks.multiply)(blocks, jnp.float32(x))
    np.testing.assert_allclose(product, x @ weight.reshape(shape[0], -1), atol=1e-4)
    alone = jax.jit(Blocks.multiply)(blocks, jnp.float32(x[-1:]))
    np.testing.assert_array_equal(product[-1:], alone)  # the same sums, whatever else is in the batch


def test_the_matrix_may_begin_with_several_dimensions():
    weight, x = np.random.default_rng(0).standard_normal((3, 4, 70)), np.ones((2, 12))
    product = Blocks.of(jnp.float32(weight), 12).multiply(jnp.float32(x))
    np.testing.assert_allclose(product, x @ weight.reshape(12, 70), atol=1e-5)


def test_products_at_the_same_time():
    """XLA runs independent products on several threads; each has its own result."""
    rng = np.random.default_rng(0)
    weights, x = rng.standard_normal((24, 96, 200)), rng.standard_normal((3, 96))
    blocks = [Blocks.of(jnp.float32(weight)) for weight in weights]
    program = jax.jit(lambda blocks, x: jnp.stack([one.multiply(x) for one in blocks]))
    for _ in range(20):
        np.testing.assert_allclose(program(blocks, jnp.float32(x)), x @ weights, atol=1e-4)


@pytest.mark.parametrize("variant", ["untied", "qwen2", "qwen3"])
def test_sampling_in_blocks(variant, monkeypatch):
    decoder = build(VARIANTS[variant])
    prompts, keys = [text(1, 14), text(2, 9)], jax.random.split(jax.random.key(0), 2)
    _, _, expected = from_the_start(decoder, prompts, keys, WARM)
    monkeypatch.setattr(block_product, "LARGE_BYTES", 0)
    sampler = sampler_of(decoder, WARM)
    same(sampler.generate(prompts, keys), expected, 2)
    layer = sampler._network.weights["layers"][0]
    matrices = {name for name in layer if isinstance(layer[name], Blocks)}
    assert matrices == {"query", "key", "value", "output", "gate", "up", "down"}


def test_only_large_models_in_float32_that_are_not_scanned(monkeypatch):
    decoder = build(VARIANTS["llama"])
    arrays = list(decoder.layers.arrays().values())
    assert not pays(decoder.config, arrays)
    monkeypatch.setattr(block_product, "LARGE_BYTES", sum(array.nbytes for array in arrays))
    assert pays(decoder.config, arrays)
    assert not pays(decoder.config, arrays[1:])
    for change in ({"dtype": "bfloat16"}, {"scan_layers": True}):
        assert not pays(dataclasses.replace(decoder.config, **change), arrays)
    assert set(in_blocks(decoder.config, decoder.weights(False))) == {"embedding", "layers", "final_norm", "head"}
