"""Sampling: its log-probs are the trainer's, rows are independent, programs are compiled once per shape."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_decoders import BASE, build, read, token_log_probs

from embodied_mem.errors import InvalidInputError
from embodied_mem.models import sampling
from embodied_mem.models.sampling import SamplingSettings, append, generate, pad_prompts, sample_token

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]

score = nnx.jit(token_log_probs, static_argnames=("temperature",))
CONFIG = dataclasses.replace(BASE, attention_block=8, smear=3)
RNG = np.random.default_rng(3)
PROMPTS = [RNG.integers(0, 40, n).tolist() for n in (5, 3, 8, 1)]
EOS = (3, 4, 5, 6, 7)


def run(decoder, prompts, keys, settings, bucket=8, max_new_tokens=12, **options):
    tokens, mask = pad_prompts(prompts, buckets=(bucket,))
    out = generate(decoder, keys, settings, tokens=tokens, mask=mask, max_new_tokens=max_new_tokens, **options)
    return tokens, mask, out


@pytest.mark.parametrize(
    ("settings", "scan"),
    [
        (SamplingSettings(temperature=1.2, top_k=10, eos_tokens=EOS), False),
        (SamplingSettings(temperature=1.2, top_k=10, eos_tokens=EOS), True),
        (SamplingSettings(temperature=0.7, top_p=0.8, eos_tokens=EOS), False),
        (SamplingSettings(temperature=0.0, eos_tokens=EOS), True),
        (SamplingSettings(), False),
    ],
)
def test_log_probs_are_those_of_the_training_forward_pass(settings, scan, monkeypatch):
    monkeypatch.setattr(sampling, "UNROLLED_BACKENDS", () if scan else ("cpu",))
    decoder = build(dataclasses.replace(CONFIG, scan_layers=scan))
    keys = jax.random.split(jax.random.key(0), 4)
    tokens, mask, out = run(decoder, PROMPTS, keys, settings, extra_capacity=4)
    everything = jnp.concatenate([tokens, out.tokens], axis=1)
    valid = jnp.concatenate([mask, out.completion_mask], axis=1)
    temperature = settings.temperature or 1.0
    log_probs = score(
        decoder, everything[:, 1:], tokens=everything[:, :-1], mask=valid[:, :-1], temperature=temperature
    )[:, tokens.shape[1] - 1 :]
    np.testing.assert_allclose(out.log_probs, np.where(out.completion_mask, log_probs, 0.0), atol=1e-5)
    if settings.temperature == 0:
        logits = decoder.logits(read(decoder, everything[:, :-1], mask=valid[:, :-1]))[:, tokens.shape[1] - 1 :]
        assert (np.where(out.completion_mask, out.tokens - logits.argmax(-1), 0) == 0).all()

    # Four more positions after completions of different lengths, against one pass over everything.
    more = jnp.full((4, 4), 9)
    hidden, cache = append(decoder, out.cache, tokens=more)
    expected = read(
        decoder,
        jnp.concatenate([everything, more], axis=1),
        mask=jnp.concatenate([valid, jnp.ones((4, 4), bool)], axis=1),
    )[:, -4:]
    np.testing.assert_allclose(hidden, expected, atol=2e-5)
    assert cache.next_position.tolist() == [len(p) + int(n) + 4 for p, n in zip(PROMPTS, out.lengths)]


def test_rows_do_not_depend_on_neighbours_padding_or_batch():
    decoder = build(CONFIG)
    settings = SamplingSettings(temperature=1.2, top_k=10, eos_tokens=EOS)
    keys = jax.random.split(jax.random.key(0), 4)
    _, _, together = run(decoder, PROMPTS, keys, settings)
    order = [2, 0, 3, 1]
    _, _, shuffled = run(decoder, [PROMPTS[i] for i in order], keys[jnp.asarray(order)], settings, bucket=13)
    for i, prompt in enumerate(PROMPTS):
        _, _, alone = run(decoder, [prompt], keys[i : i + 1], settings, bucket=9)
        row = order.index(i)
        for out, at in ((alone, 0), (shuffled, row)):
            assert out.tokens[at].tolist() == together.tokens[i].tolist()
            np.testing.assert_allclose(out.log_probs[at], together.log_probs[i], atol=1e-5)
    _, _, other = run(decoder, PROMPTS, jax.random.split(jax.random.key(1), 4), settings)
    assert (other.tokens != together.tokens).any()


def test_end_token_ends_the_row_and_the_loop():
    decoder = build(CONFIG)
    keys = jax.random.split(jax.random.key(0), 4)
    _, _, out = run(
        decoder, PROMPTS, keys, SamplingSettings(temperature=2.0, eos_tokens=tuple(range(20)), pad_token=39)
    )
    for row in range(4):
        n = int(out.lengths[row])
        text = out.tokens[row].tolist()
        assert out.completion_mask[row].tolist() == [True] * n + [False] * (12 - n)
        assert all(t >= 20 for t in text[: n - 1])
        assert (text[n - 1] < 20) == bool(out.finished[row])
        assert set(text[n:]) <= {39}
    assert out.finished.all()
    assert int(out.num_steps) == int(out.lengths.max()) < 12


def test_one_program_per_shape_and_settings():
    decoder, twin = build(CONFIG, 1), build(CONFIG, 2)
    keys = jax.random.split(jax.random.key(5), 4)
    settings = SamplingSettings(temperature=1.3, top_k=7)
    before = sampling._generate._cache_size()
    for model in (decoder, twin):
        for prompts in (PROMPTS, PROMPTS[::-1]):
            run(model, prompts, keys, settings)
    assert sampling._generate._cache_size() == before + 1
    run(decoder, PROMPTS, keys, settings, bucket=10)
    assert sampling._generate._cache_size() == before + 2


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        # p = 0.5 0.25 0.125 0.125 at temperature 1
        (SamplingSettings(), {0, 1, 2, 3}),
        (SamplingSettings(top_k=2), {0, 1}),
        (SamplingSettings(top_p=0.5), {0}),
        (SamplingSettings(top_p=0.51), {0, 1}),
        (SamplingSettings(top_k=3, top_p=0.8), {0, 1}),  # renormalised over three: 4/7 2/7 1/7, so 6/7 >= 0.8
        (SamplingSettings(top_k=3, top_p=0.9), {0, 1, 2}),
        (SamplingSettings(top_k=99), {0, 1, 2, 3}),
    ],
)
def test_truncation_and_frequencies(settings, allowed):
    probabilities = np.array([0.5, 0.25, 0.125, 0.125])
    keys = jax.random.split(jax.random.key(0), 4000)
    logits = jnp.broadcast_to(jnp.log(probabilities), (4000, 4))
    tokens, log_probs = sample_token(logits, keys, jnp.asarray(3), settings)
    assert set(tokens.tolist()) == allowed
    kept = np.where(np.isin(np.arange(4), list(allowed)), probabilities, 0)
    counts = np.bincount(tokens, minlength=4) / 4000
    np.testing.assert_allclose(counts, kept / kept.sum(), atol=0.03)  # 4 standard errors of 4,000 draws
    np.testing.assert_allclose(log_probs, np.log(probabilities)[tokens], rtol=1e-5)  # untruncated


def test_prompts_go_to_the_smallest_bucket_and_long_ones_are_refused():
    tokens, mask = pad_prompts([[1, 2], [3, 4, 5]], buckets=(8, 4), pad_token=9)
    assert tokens.tolist() == [[9, 9, 1, 2], [9, 3, 4, 5]]
    assert mask.sum() == 5
    with pytest.raises(InvalidInputError, match=r"prompts\[1\]: expected at most 4 tokens.*got 5"):
        pad_prompts([[1], [1] * 5], buckets=(4,))
    with pytest.raises(InvalidInputError, match=r"prompts\[0\]: expected at least one token"):
        pad_prompts([[]], buckets=(4,))


def test_positions_of_images_go_on_behind_the_largest():
    """A row whose image is 2 x 3 patches at positions 1 to 3: its text goes on at 4 and not at 9, as in one pass."""
    decoder = build(dataclasses.replace(BASE, mrope_sections=(1, 1, 1)))
    tokens = RNG.integers(0, 40, (2, 9))
    positions = np.broadcast_to(np.arange(9), (3, 2, 9)).copy()
    positions[:, 0, 1:7] = [[1] * 6, [1, 1, 1, 2, 2, 2], [1, 2, 3, 1, 2, 3]]
    positions[:, 0, 7:] = [4, 5]
    keys, greedy = jax.random.split(jax.random.key(0), 2), SamplingSettings(temperature=0.0)
    out = generate(decoder, keys, greedy, tokens=tokens, positions=positions, max_new_tokens=4)
    following = np.stack([np.arange(6, 10), np.arange(9, 13)])
    everywhere = np.concatenate([positions, np.broadcast_to(following, (3, 2, 4))], axis=2)
    hidden = read(decoder, np.concatenate([tokens, out.tokens], axis=1), positions=everywhere)
    logits = decoder.logits(hidden)[:, 8:-1]
    assert out.tokens.tolist() == logits.argmax(-1).tolist()
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), out.tokens[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(out.log_probs, chosen, atol=1e-5)
    plain = generate(decoder, keys, greedy, tokens=tokens, max_new_tokens=4)
    assert (np.abs(plain.log_probs - out.log_probs) > 1e-3).any(1).tolist() == [True, False]
    with pytest.raises(InvalidInputError, match=r"positions: expected \[\.\.\., 2, 9\], got \(3, 2, 8\)"):
        generate(decoder, keys, greedy, tokens=tokens, positions=positions[..., 1:], max_new_tokens=4)


def test_too_long_a_generation_is_refused():
    with pytest.raises(InvalidInputError, match=r"8 \+ 50 \+ 7 = 65"):
        run(build(CONFIG), PROMPTS, jax.random.split(jax.random.key(0), 4), SamplingSettings(), 8, 50, extra_capacity=7)
    with pytest.raises(InvalidInputError, match=r"sampling\.top_p"):
        SamplingSettings(top_p=0.0)


@pytest.mark.parametrize(("scan", "batch"), [(True, 2), (False, 2), (False, 1)])
def test_decoding_updates_the_cache_in_place(scan, batch, monkeypatch):
    """The compiled loop holds no copy of a whole cache array; one copy per layer and step is what this once cost."""
    monkeypatch.setattr(sampling, "UNROLLED_BACKENDS", () if scan else ("cpu",))
    decoder = build(dataclasses.replace(CONFIG, scan_layers=scan))
    graphdef, state = nnx.split(decoder)
    tokens, keys = np.ones((batch, 8), np.int32), jax.random.split(jax.random.key(0), batch)
    lowered = sampling._generate.lower(
        graphdef, state, keys, {"tokens": tokens, "mask": tokens > 0}, config=sampling.sampling_config(decoder),
        settings=SamplingSettings(top_k=5), max_new_tokens=9, capacity=17,
    )  # fmt: skip
    program = lowered.compile().as_text()
    shape = r"f32\[2,2,2,17,6\]" if scan else r"f32\[2,2,17,6\]" if batch > 1 else r"f32\[(?:1,)?2,17,6\]"
    assert re.search(rf"{shape}\S* (fusion|dynamic-update-slice)\(", program)  # the shape is there, by this name
    assert not re.findall(rf"= {shape}\S* copy\(", program)
