"""Our attention kernel against sums in double precision and against XLA's, and that training steps use it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_decoders import VARIANTS, token_log_probs

from embodied_mem.models import layers
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.fused_attention import FORWARD, MIN_LENGTH, fused_attention, pays

pytestmark = pytest.mark.usefixtures("unoptimised")
LONG = MIN_LENGTH + 5


def example(batch, kv_heads, groups, length, dim, padding, seed=0):
    """Returns float64 query, keys, values, gradient of the context, and the mask."""
    rng = np.random.default_rng(seed)
    query, gradient = rng.standard_normal((2, batch, kv_heads, groups, length, dim))
    keys, values = rng.standard_normal((2, batch, kv_heads, length, dim))
    mask = np.ones((batch, length), bool)
    real = rng.integers(1, length + 1, batch)
    if padding == "left":
        mask = np.arange(length) >= length - real[:, None]
    elif padding == "right":
        mask = np.arange(length) < real[:, None]
    elif padding == "holes":
        mask = rng.random((batch, length)) < 0.6
    # What comes from positions that attend to nothing is nobody's.
    gradient *= (np.cumsum(mask, 1) > 0)[:, None, None, :, None]
    return query * dim**-0.5, keys, values, gradient, mask


def in_doubles(query, keys, values, gradient, mask):
    """Returns the context and the gradients by query, keys and values, from their definitions."""
    length = query.shape[3]
    allowed = (np.tril(np.ones((length, length), bool)) & mask[:, None])[:, None, None]
    weights = np.exp(np.einsum("bkgqe,bkte->bkgqt", query, keys)) * allowed
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    context = np.einsum("bkgqt,bkte->bkgqe", weights, values)
    slopes = weights * (np.einsum("bkgqe,bkte->bkgqt", gradient, values) - (gradient * context).sum(-1, keepdims=True))
    return (
        context,
        np.einsum("bkgqt,bkte->bkgqe", slopes, keys),
        np.einsum("bkgqt,bkgqe->bkte", slopes, query),
        np.einsum("bkgqt,bkgqe->bkte", weights, gradient),
    )


@functools.partial(jax.jit, static_argnums=0)
def _run(attention, query, keys, values, gradient, mask):
    context, back = jax.vjp(lambda *inputs: attention(*inputs, mask), query, keys, values)
    return context, *back(gradient)


def forward_and_backward(attention, query, keys, values, gradient, mask):
    return _run(attention, *(jnp.float32(array) for array in (query, keys, values, gradient)), jnp.asarray(mask))


@pytest.mark.parametrize("padding", ["none", "left", "right", "holes"])
@pytest.mark.parametrize("shape", [(2, 1, 3, 320, 32), (3, 2, 1, 65, 16), (2, 2, 4, 77, 80), (1, 1, 1, 64, 128)])
def test_attention_and_gradients_are_right(shape, padding):
    inputs = example(*shape, padding)
    for got, expected in zip(forward_and_backward(fused_attention, *inputs), in_doubles(*inputs), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-5)


def test_it_is_xlas_attention(monkeypatch):
    inputs = example(2, 1, 3, 150, 32, "left")
    fused = forward_and_backward(fused_attention, *inputs)
    monkeypatch.setattr(layers, "pays", lambda query: False)
    xla = forward_and_backward(
        lambda query, keys, values, mask: layers.causal_attention(query, keys, values, mask=mask, block=64), *inputs
    )
    seen = (np.cumsum(inputs[4], 1) > 0)[:, None, None, :, None]
    np.testing.assert_allclose(fused[0], np.where(seen, xla[0], 0), atol=1e-5)  # where nothing is to be seen: zeros
    for one, other in zip(fused[1:], xla[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_large_scores():
    """Sums would overflow without the subtraction of the largest score, which changes from tile to tile."""
    query, keys, values, gradient, mask = example(1, 1, 1, 200, 16, "none")
    keys *= np.linspace(1, 100, 200)[:, None]  # scores up to 1,000
    context = forward_and_backward(fused_attention, query, keys, values, gradient, mask)[0]
    scores = np.einsum("bkgqe,bkte->bkgqt", np.float32(query), np.float32(keys))
    scores = np.where(np.tril(np.ones((200, 200), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bkgqt,bkte->bkgqe", weights / weights.sum(-1, keepdims=True), values)
    np.testing.assert_allclose(context, expected, atol=1e-3)


def test_what_is_not_a_number_is_seen():
    query, keys, values, gradient, mask = example(1, 1, 2, 100, 16, "none")
    query[0, 0, 1, 70, 3] = np.nan
    context = np.asarray(forward_and_backward(fused_attention, query, keys, values, gradient, mask)[0])
    assert np.isnan(context[0, 0, 1, 70]).all()
    assert np.isfinite(np.delete(context[0, 0], 70, 1)).all()


def test_rows_and_mapped_axes_have_the_same_bits_as_alone():
    query, keys, values, gradient, mask = example(20, 1, 2, 90, 32, "holes")
    together = forward_and_backward(fused_attention, query, keys, values, gradient, mask)
    inputs = [jnp.asarray(array, jnp.float32) for array in (query, keys, values)]
    mapped = jax.vmap(lambda *one: fused_attention(*(array[None] for array in one))[0])(*inputs, jnp.asarray(mask))
    np.testing.assert_array_equal(mapped, together[0])
    alone = forward_and_backward(fused_attention, *(array[7:8] for array in (query, keys, values, gradient, mask)))
    for one, all_ in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one[0], all_[7])


def loss_of(decoder, tokens, mask, remat):
    log_probs = token_log_probs(decoder, jnp.roll(tokens, -1, 1), tokens=tokens, mask=mask, remat=remat)
    return -(log_probs * mask).sum()


def gradients(decoder, tokens, mask, remat):
    """Returns the loss, all gradients of a jitted step, and the program."""
    step = jax.jit(nnx.value_and_grad(loss_of), static_argnums=3)
    loss, found = step(decoder, tokens, mask, remat)
    return float(loss), jax.tree.leaves(found), step.lower(decoder, tokens, mask, remat).as_text()


@pytest.mark.parametrize(("scan", "remat"), [(False, False), (True, True)])
def test_a_training_step_uses_it(scan, remat, monkeypatch):
    """Its calls stand in the lowered program, and loss and gradients are those of XLA's attention."""
    config = dataclasses.replace(VARIANTS["smear"], num_layers=1, head_dim=16, scan_layers=scan, max_length=256)
    decoder = Decoder(config, rngs=nnx.Rngs(0))
    rng = np.random.default_rng(0)
    tokens = jnp.asarray(rng.integers(0, config.vocab_size, (3, LONG)))
    mask = jnp.asarray(np.arange(LONG) >= np.array([[0], [9], [40]]))
    loss, found, program = gradients(decoder, tokens, mask, remat)
    assert f"@{FORWARD}(" in program
    assert f"@{FORWARD}_backward(" in program
    monkeypatch.setattr(layers, "pays", lambda query: False)
    other_loss, others, program = gradients(decoder, tokens, mask, remat)
    assert FORWARD not in program
    assert loss == pytest.approx(other_loss, rel=1e-5)
    for one, other in zip(found, others, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4 * float(jnp.abs(other).max()))


def test_only_where_it_serves():
    query = jnp.zeros((1, 1, 2, MIN_LENGTH, 32))
    assert pays(query)
    assert not pays(query.astype(jnp.bfloat16))
    assert not pays(query[:, :, :, 1:])
    assert not pays(query[..., :24])
    assert not pays(jnp.zeros((1, 1, 1, MIN_LENGTH, 144)))
    with jax.set_mesh(jax.make_mesh((1,), ("data",))):
        assert not pays(query)
