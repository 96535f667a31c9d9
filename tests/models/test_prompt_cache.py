"""What is kept between steps changes nothing that is said: against sampling that reads every prompt from its start."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from prompt_sampling import GREEDY, SOFT, WARM, from_the_start, same, sampler_of, text
from small_decoders import VARIANTS, build, token_log_probs

from embodied_mem.errors import InvalidInputError
from embodied_mem.models import prompt_cache, sampling
from embodied_mem.models.prompt_cache import StoredPrompts, batch_bucket
from embodied_mem.models.sampling import append, generate, pad_prompts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]

CONFIG = dataclasses.replace(VARIANTS["smear3"], attention_block=16)


@functools.partial(jax.jit, static_argnames=("graphdef", "temperature"))
def scored(graphdef, state, targets, tokens, mask, temperature):
    """The trainer's log-probs; not by `nnx.jit`, which puts other arrays into the module."""
    return token_log_probs(nnx.merge(graphdef, state), targets, tokens=tokens, mask=mask, temperature=temperature)


def episode():
    """Prompts per step of up to four rows: goals, a part that grows, an end that changes, rows that leave and move."""
    goals = [text(1, 9), text(2, 5), text(1, 9), text(3, 12)]
    end = [text(10 + i, 3) for i in range(9)]
    yield [goals[0] + end[0], goals[1] + end[0], goals[2] + end[0], goals[3] + end[0]]  # 0 and 2 are one task
    yield [goals[0] + end[1] + end[2], goals[1] + end[1] + end[2], goals[2] + end[3] + end[2], goals[3] + end[2]]
    yield [goals[3] + end[2] + end[4], goals[0] + end[1] + end[5], goals[2] + end[3] + end[2] + end[6]]  # 1 left
    yield [goals[2] + end[3] + end[2] + end[7]]
    yield [text(50, 27), goals[2] + end[8]]  # a longer bucket, nothing or a little in common


@pytest.mark.parametrize(
    ("scan", "settings", "buckets"),
    [(False, GREEDY, (2, 4)), (True, WARM, (4,))],
)
def test_every_step_of_an_episode_is_as_if_read_from_the_start(scan, settings, buckets, monkeypatch):
    monkeypatch.setattr(sampling, "UNROLLED_BACKENDS", () if scan else ("cpu",))
    decoder = build(dataclasses.replace(CONFIG, scan_layers=scan))
    sampler = sampler_of(decoder, settings, buckets)
    for step, prompts in enumerate(episode()):
        keys = jax.random.split(jax.random.key(step), 4)
        out = sampler.generate(prompts, keys, extra_capacity=2)
        rows = len(out.tokens)
        filled = [*prompts, *[prompts[0]] * (rows - len(prompts))]
        tokens, mask, expected = from_the_start(decoder, filled, keys, settings, extra_capacity=2)
        same(out, expected, len(prompts))

        # The trainer's pass over prompt and completion gives the log-probs of the cached path.
        everything = jnp.concatenate([tokens, out.tokens], axis=1)
        valid = jnp.concatenate([mask, out.completion_mask], axis=1)
        trained = scored(
            *nnx.split(decoder), everything[:, 1:], everything[:, :-1], valid[:, :-1], settings.log_prob_temperature
        )[:, tokens.shape[1] - 1 :]
        gap = np.where(out.completion_mask, out.log_probs - trained, 0)[: len(prompts)]
        np.testing.assert_allclose(gap, 0, atol=1e-5)

        more = np.full((rows, 2), 9)
        hidden = append(decoder, out.cache, tokens=more)[0]
        other = append(decoder, expected.cache, tokens=more)[0]
        np.testing.assert_allclose(hidden[: len(prompts)], other[: len(prompts)], atol=3e-5)
    assert sampler.kept_tokens == 29 + 42 + 15  # step 1 (8, 5, 8, 8 of 16 columns), 2 (15, 12, 15), 3; none in step 4


def test_what_is_kept_and_shared_is_counted():
    sampler = sampler_of(build(CONFIG), batch_buckets=(1, 4))
    keys = jax.random.split(jax.random.key(0), 4)
    goal = text(1, 10)
    sampler.generate([goal] * 4, keys)
    assert (sampler.prompt_tokens, sampler.kept_tokens, sampler.shared_tokens) == (40, 0, 30)
    sampler.generate([goal + text(2 + i, 2) for i in range(4)], keys)  # all four from the one row that was read
    assert (sampler.prompt_tokens, sampler.kept_tokens, sampler.shared_tokens) == (88, 40, 30)
    sampler.generate([text(9, 12)], keys)
    assert (sampler.prompt_tokens, sampler.kept_tokens) == (100, 40)


def test_one_program_per_bucket():
    decoder = build(dataclasses.replace(CONFIG, width=12), 1)
    sampler = sampler_of(decoder, batch_buckets=(4,), length_buckets=(32,))
    keys, goals = jax.random.split(jax.random.key(0), 4), [text(i, 16) for i in range(4)]
    programs = (prompt_cache._read, prompt_cache._write)
    before = [program._cache_size() for program in programs]

    def traced():
        return tuple(program._cache_size() - then for program, then in zip(programs, before))

    sampler.generate(goals, keys)
    assert traced() == (1, 1)
    for step in range(6):  # other places, lengths, shares and ends, all in a quarter of the bucket
        sampler.generate([goals[(i + step) % 4] + text(step, 1 + step) for i in range(4)], keys)
    assert traced() == (2, 1)
    sampler.generate([goal[:14] + text(8, 12) for goal in goals], keys)  # half of it
    sampler.generate([goal + text(9, 3) for goal in goals[:2]], keys)  # two rows are left
    sampler.generate([text(9, 7)], keys)  # short, but nothing shared: as at the start
    sampler.generate(goals, keys)
    assert traced() == (3, 1)


def test_soft_tokens_are_written_and_never_kept():
    """Two steps with the same tokens and other soft values, against embeddings written by hand."""
    decoder = build(CONFIG)
    sampler, keys = sampler_of(decoder), jax.random.split(jax.random.key(0), 2)
    prompts = [[*text(1, 12), SOFT, SOFT, 9], text(2, 13)]
    for seed in (0, 1):
        soft = np.random.default_rng(seed).standard_normal((2, CONFIG.width)).astype(np.float32)
        out = sampler.generate(prompts, keys, soft=[soft, None])
        tokens, mask = pad_prompts(prompts, buckets=(16,))
        embeddings = np.array(decoder.embed(tokens))
        embeddings[tokens == SOFT] = soft
        same(out, generate(decoder, keys, GREEDY, embeddings=embeddings, mask=mask, max_new_tokens=8), 2)
    assert sampler.kept_tokens == 24  # both up to three quarters of the bucket
    # The same two rows, equal but for what the soft tokens are, are not taken for one.
    twice = sampler.generate([prompts[0]] * 2, keys, soft=[soft, -soft])
    assert (np.asarray(twice.log_probs[0]) != np.asarray(twice.log_probs[1])).any()


def test_other_weights_read_everything_again():
    decoder, twin = build(CONFIG, 1), build(CONFIG, 2)
    sampler, keys, prompts = sampler_of(decoder), jax.random.split(jax.random.key(0), 2), [text(1, 12), text(2, 12)]
    sampler.generate(prompts, keys)
    nnx.update(decoder, jax.tree.map(jnp.copy, nnx.state(twin)))
    same(sampler.generate(prompts, keys), from_the_start(twin, prompts, keys, GREEDY)[2], 2)
    assert sampler.kept_tokens == 0
    sampler.generate(prompts, keys)
    assert sampler.kept_tokens == 22  # all but the last token of each
    sampler.forget()
    sampler.generate(prompts, keys)
    assert sampler.kept_tokens == 22


def test_the_longest_beginning_is_found():
    rng = np.random.default_rng(0)
    stored = [tuple(rng.integers(0, 2, rng.integers(1, 9)).tolist()) for _ in range(30)]
    index = StoredPrompts(stored, [])
    for _ in range(300):
        prompt = tuple(rng.integers(0, 2, rng.integers(1, 9)).tolist())
        counts = [
            next((i for i, (a, b) in enumerate(zip(prompt, s)) if a != b), min(len(prompt), len(s))) for s in stored
        ]
        row, count = index.longest(prompt)
        assert count == max(counts) == counts[row]
    assert StoredPrompts([], []).longest((1, 2)) == (0, 0)


def test_rows_go_to_the_smallest_bucket():
    assert [batch_bucket(n, (16, 4)) for n in (1, 4, 5, 17, 33)] == [4, 4, 16, 32, 48]


def test_too_long_prompts_are_refused():
    keys = jax.random.split(jax.random.key(0), 2)
    with pytest.raises(InvalidInputError, match=r"at most 32 tokens .* got 33"):
        sampler_of(build(CONFIG)).generate([text(1, 33)], keys)
    with pytest.raises(InvalidInputError, match=r"max_length=64 columns, got a length bucket of 60 \+ 8 new tokens"):
        sampler_of(build(CONFIG), length_buckets=(60,)).generate([text(1, 4)], keys)
