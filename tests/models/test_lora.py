"""Adapters: identity at the start, equal to a merged matrix, trained alone, saved without loss."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from small_decoders import BASE, build, read

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import LoraConfig, logical_axes
from embodied_mem.models.formats.peft import load_peft, save_peft
from embodied_mem.models.lora import LoraParam, add_lora, merge_lora

pytestmark = pytest.mark.usefixtures("unoptimised")

TOKENS = np.random.default_rng(0).integers(0, 40, (2, 9))
LORA = LoraConfig(rank=3, alpha=6.0)


def with_random_adapters(scan=False):
    decoder = add_lora(build(dataclasses.replace(BASE, scan_layers=scan)), LORA, rngs=nnx.Rngs(1))
    for name in ("query_lora_b", "value_lora_b"):
        variable = getattr(decoder.layers, name)
        variable[...] = jax.random.normal(jax.random.key(2), variable[...].shape)
    return decoder


def test_identity_at_the_start():
    decoder = build(BASE)
    before = read(decoder, TOKENS)
    add_lora(decoder, LORA, rngs=nnx.Rngs(1))
    np.testing.assert_array_equal(read(decoder, TOKENS), before)
    with pytest.raises(InvalidInputError, match="merge_lora first"):
        add_lora(decoder, LORA, rngs=nnx.Rngs(1))


@pytest.mark.parametrize("scan", [False, True])
def test_merged_equals_unmerged_and_explicit_matrices(scan):
    decoder = with_random_adapters(scan)
    expected = read(decoder, TOKENS)
    assert np.abs(expected - read(build(BASE), TOKENS)).max() > 0.1
    query = np.asarray(decoder.layers.query[...], np.float64)
    a, b = (np.asarray(getattr(decoder.layers, f"query_lora_{x}")[...], np.float64) for x in "ab")
    by_hand = query + 2.0 * np.stack([(a[i] @ b[i].reshape(3, -1)).reshape(query[i].shape) for i in range(2)])
    merge_lora(decoder)
    np.testing.assert_allclose(decoder.layers.query[...], by_hand, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(read(decoder, TOKENS), expected, atol=1e-4)
    assert decoder.lora is None
    assert jax.tree.structure(nnx.state(decoder)) == jax.tree.structure(nnx.state(build(decoder.config)))


def test_optimizer_moves_adapters_only():
    decoder = add_lora(build(BASE), LORA, rngs=nnx.Rngs(1))
    base = nnx.state(decoder, nnx.Param)
    before = jax.tree.map(np.array, base)
    optimizer = nnx.Optimizer(decoder, optax.adam(1e-2), wrt=LoraParam)

    @nnx.jit
    def step(decoder, optimizer):
        grads = nnx.grad(lambda d: (d(TOKENS) ** 2)[..., 0].sum(), argnums=nnx.DiffState(0, LoraParam))(decoder)
        optimizer.update(decoder, grads)

    step(decoder, optimizer)
    step(decoder, optimizer)
    jax.tree.map(np.testing.assert_array_equal, nnx.state(decoder, nnx.Param), before)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(nnx.state(decoder, LoraParam)))
    axes = logical_axes(BASE, LORA.rank, LORA.targets)
    assert {p: v.ndim for p, v in nnx.to_flat_state(nnx.state(decoder))} == {p: len(a) for p, a in axes.items()}


def test_dropout_needs_a_key_and_keeps_the_mean():
    decoder = with_random_adapters()
    plain = read(decoder, TOKENS)
    np.testing.assert_array_equal(plain, read(decoder, TOKENS))
    one = read(decoder, TOKENS, dropout_key=jax.random.key(0))
    np.testing.assert_array_equal(one, read(decoder, TOKENS, dropout_key=jax.random.key(0)))
    assert np.abs(one - read(decoder, TOKENS, dropout_key=jax.random.key(1))).max() > 1e-3
    # With B zero there is nothing to drop: the base sees no dropout.
    fresh = add_lora(build(BASE), LORA, rngs=nnx.Rngs(1))
    np.testing.assert_array_equal(read(fresh, TOKENS, dropout_key=jax.random.key(0)), read(build(BASE), TOKENS))


def test_adapters_of_a_narrow_decoder_are_float32_and_merge_into_its_dtype(tmp_path):
    config = dataclasses.replace(BASE, param_dtype="bfloat16", dtype="bfloat16")
    decoder = add_lora(build(config), LORA, rngs=nnx.Rngs(0))
    save_peft(decoder, tmp_path)
    for one in (decoder, load_peft(build(config), tmp_path)):
        assert one.layers.query_lora_a[...].dtype == jnp.float32
        assert one(TOKENS).dtype == jnp.bfloat16
    assert merge_lora(decoder).layers.query[...].dtype == jnp.bfloat16
