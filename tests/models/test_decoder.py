"""The decoder against a plain NumPy transformer, and identities of padding, cache, scan, remat and blocks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_decoders import BASE, VARIANTS, build, prefill, read, token_log_probs

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.decoder import Decoder, score_tokens
from embodied_mem.models.sampling import append

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]


def numpy_forward(decoder: Decoder, tokens: list[int]) -> np.ndarray:
    """Logits [L, V] of one unpadded sequence in float64, one position and head at a time, pairs as complex numbers."""
    config = decoder.config
    p = {name: np.asarray(a, np.float64) for name, a in decoder.layers.arrays().items()}
    table = np.asarray(decoder.embedding[...], np.float64)

    def norm(v, scale):
        return v / np.sqrt((v**2).mean() + config.norm_eps) * scale

    half = config.head_dim // 2
    frequencies = config.rope_theta ** (-np.arange(half) * 2 / config.head_dim)
    if config.rope_scaling:
        s = config.rope_scaling
        for j, f in enumerate(frequencies):
            wavelength = 2 * np.pi / f
            if wavelength > s.original_length / s.low_frequency_factor:
                frequencies[j] = f / s.factor
            elif wavelength > s.original_length / s.high_frequency_factor:
                w = (s.original_length / wavelength - s.low_frequency_factor) / (
                    s.high_frequency_factor - s.low_frequency_factor
                )
                frequencies[j] = (1 - w) * f / s.factor + w * f

    def rotate(v, position):
        z = (v[:half] + 1j * v[half:]) * np.exp(1j * position * frequencies)
        return np.concatenate([z.real, z.imag])

    x = [table[t] for t in tokens]
    if config.smear:
        factors = np.asarray(decoder.smear[...], np.float64).reshape(config.smear, -1)
        x = [v + sum(f * x[i - k] for k, f in enumerate(factors, 1) if i >= k) for i, v in enumerate(x)]
    for layer in range(config.num_layers):
        w = {name: a[layer] for name, a in p.items()}
        normed = [norm(v, w["attention_norm"]) for v in x]

        def head(v, name, h, position, w=w):
            out = v @ w[name][:, h]
            if config.qkv_bias:
                out = out + w[name + "_bias"][h]
            if config.qk_norm and name != "value":
                out = norm(out, w[name + "_norm"])
            return out if name == "value" else rotate(out, position)

        for t in reversed(range(len(tokens))):  # last first: x[t] is overwritten but normed is not
            for h in range(config.num_heads):
                kv = h // (config.num_heads // config.num_kv_heads)
                q = head(normed[t], "query", h, t)
                scores = np.array([q @ head(normed[s], "key", kv, s) for s in range(t + 1)]) / np.sqrt(config.head_dim)
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                context = sum(weights[s] * head(normed[s], "value", kv, s) for s in range(t + 1))
                x[t] = x[t] + context @ w["output"][h]
        for t in range(len(tokens)):
            v = norm(x[t], w["mlp_norm"])
            gate = v @ w["gate"]
            x[t] = x[t] + (gate / (1 + np.exp(-gate)) * (v @ w["up"])) @ w["down"]
    hidden = np.stack([norm(v, np.asarray(decoder.final_norm[...], np.float64)) for v in x])
    return hidden @ (table.T if config.tie_embeddings else np.asarray(decoder.head[...], np.float64))


@pytest.mark.parametrize("name", VARIANTS)
def test_forward_equals_plain_numpy(name):
    decoder = build(VARIANTS[name])
    tokens = np.random.default_rng(1).integers(0, 40, 9).tolist()
    got = decoder.logits(read(decoder, jnp.asarray([tokens])))[0]
    np.testing.assert_allclose(got, numpy_forward(decoder, tokens), atol=3e-4, rtol=3e-4)


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "smear", "smear3"])
@pytest.mark.parametrize("scan", [False, True])
def test_padding_cache_blocks_and_scan_do_not_change_the_result(name, scan):
    config = dataclasses.replace(VARIANTS[name], scan_layers=scan, attention_block=4)
    decoder = build(config)
    plain = build(VARIANTS[name])
    rng = np.random.default_rng(2)
    whole = rng.integers(0, 40, (3, 11))
    expected = read(plain, whole)  # nothing later is read, so it holds for the beginnings too
    rows = [row[:n] for row, n in zip(whole, (7, 11, 3))]
    expected = [row[:n] for row, n in zip(expected, (7, 11, 3))]

    left, right = np.zeros((2, 3, 13), int)
    left_mask, right_mask = np.zeros((2, 3, 13), bool)
    for i, row in enumerate(rows):
        left[i, 13 - len(row) :], left_mask[i, 13 - len(row) :] = row, True
        right[i, : len(row)], right_mask[i, : len(row)] = row, True
    got_left = read(decoder, left, mask=left_mask, remat=True)
    got_right = read(decoder, right, mask=right_mask, remat=True)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(got_left[i, 13 - len(row) :], expected[i], atol=2e-5)
        np.testing.assert_allclose(got_right[i, : len(row)], expected[i], atol=2e-5)

    # The same rows read in three pieces, 8 + 1 + 4 columns, through the cache: one piece prefilled, one of one token.
    hidden, cache = prefill(decoder, left[:, :8], mask=left_mask[:, :8], capacity=20)
    parts = [hidden]
    for start, end in ((8, 9), (9, 13)):
        hidden, cache = append(decoder, cache, tokens=left[:, start:end], mask=left_mask[:, start:end])
        parts.append(hidden)
    cached = jnp.concatenate(parts, axis=1)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(cached[i, 13 - len(row) :], expected[i], atol=2e-5)
    assert cache.next_position.tolist() == [7, 11, 3]
    assert int(cache.index) == 13


@pytest.mark.parametrize("name", ["llama", "smear", "smear3"])
def test_masked_columns_in_the_middle_leave_no_trace(name):
    decoder = build(VARIANTS[name])
    tokens = jnp.asarray([[5, 6, 7, 8, 9]])
    expected = read(decoder, tokens)[0]
    hidden, cache = prefill(decoder, tokens[:, :2], capacity=8)
    _, cache = append(decoder, cache, tokens=jnp.asarray([[39, 38]]), mask=jnp.zeros((1, 2), bool))
    hidden, _ = append(decoder, cache, tokens=tokens[:, 2:])
    np.testing.assert_allclose(hidden[0], expected[2:], atol=2e-5)


def test_scores_equal_log_softmax_chunked_or_not():
    decoder = build(VARIANTS["untied"])
    tokens = jax.random.randint(jax.random.key(0), (2, 11), 0, 40)
    targets = jax.random.randint(jax.random.key(1), (2, 11), 0, 40)
    hidden = read(decoder, tokens)
    table = np.asarray(jax.nn.log_softmax(decoder.logits(hidden) / 1.7), np.float64)
    for chunk_size in (0, 4, 50):
        scores = nnx.jit(score_tokens, static_argnames=("chunk_size",))(
            decoder, hidden, targets, temperature=1.7, chunk_size=chunk_size
        )
        expected = np.take_along_axis(table, np.asarray(targets)[..., None], -1)[..., 0]
        np.testing.assert_allclose(scores.log_probs, expected, atol=1e-5)
        np.testing.assert_allclose(scores.mean_log_probs, table.mean(-1), atol=1e-5)
        np.testing.assert_allclose(scores.entropy, -(np.exp(table) * table).sum(-1), atol=1e-5)


def test_gradients_do_not_depend_on_remat_chunks_scan_or_blocks():
    tokens = jax.random.randint(jax.random.key(0), (2, 10), 0, 40)
    mask = jnp.arange(10)[None] >= jnp.asarray([[0], [4]])

    def gradients(config, **options):
        decoder = build(config)

        def loss(decoder):
            log_probs = token_log_probs(decoder, tokens[:, 1:], tokens=tokens[:, :-1], mask=mask[:, :-1], **options)
            return -(log_probs * (mask[:, 1:] & mask[:, :-1])).sum()

        return nnx.jit(nnx.grad(loss))(decoder)

    plain = dataclasses.replace(VARIANTS["qwen3"], num_layers=2)
    expected = gradients(plain)
    for scan, block, remat, chunk in ((True, 0, False, 0), (False, 3, True, 4), (True, 4, True, 3)):
        config = dataclasses.replace(plain, scan_layers=scan, attention_block=block)
        got = gradients(config, remat=remat, chunk_size=chunk)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3, rtol=2e-3), got, expected)


def test_gradient_equals_finite_differences():
    decoder = build(BASE)
    tokens = jax.random.randint(jax.random.key(0), (2, 8), 0, 40)
    embeddings = decoder.embed(tokens)
    direction = jax.random.normal(jax.random.key(1), embeddings.shape)

    @jax.jit
    @jax.value_and_grad
    def loss(step):
        return token_log_probs(decoder, tokens, embeddings=embeddings + step * direction).sum()

    numeric = (loss(1e-3)[0] - loss(-1e-3)[0]) / 2e-3
    np.testing.assert_allclose(loss(0.0)[1], numeric, rtol=5e-3)


def test_bfloat16_stays_close_and_logits_are_float32():
    tokens = jax.random.randint(jax.random.key(0), (2, 8), 0, 40)
    full = Decoder(BASE, rngs=nnx.Rngs(0))
    half = Decoder(dataclasses.replace(BASE, dtype="bfloat16"), rngs=nnx.Rngs(0))
    hidden = read(half, tokens)
    got = half.logits(hidden)
    assert got.dtype == jnp.float32
    assert hidden.dtype == jnp.bfloat16
    assert np.abs(got - full.logits(read(full, tokens))).max() < 0.1


def test_bad_input_is_named():
    decoder = build(BASE)
    with pytest.raises(InvalidInputError, match="exactly one of tokens and embeddings"):
        decoder()
    with pytest.raises(InvalidInputError, match=r"embeddings \[B, L, 24\]"):
        decoder(embeddings=jnp.zeros((1, 2, 3)))
    with pytest.raises(InvalidInputError, match="capacity >= prompt length 4, got 3"):
        prefill(decoder, jnp.zeros((1, 4), int), capacity=3)
