"""Completions out of given ones: the trie, and what is drawn from it against a search by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_decoders import BASE, build, read, token_log_probs

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.prompt_cache import PromptCache
from embodied_mem.models.sampling import SamplingSettings, tries

pytestmark = [pytest.mark.usefixtures("unoptimised")]

END = 3
PROMPTS = [[5, 9, 11], [12, 7]]
CHOICES = [[[8, 9, END], [8, 10, 9, END], [30, END]], [[20, 21, END], [20, END], [END]]]


def sampler(decoder, temperature):
    settings = SamplingSettings(temperature=temperature, top_k=1, eos_tokens=(END,))
    return PromptCache(decoder, settings, max_new_tokens=5, length_buckets=(8,), batch_buckets=(2, 4))


def written(out, row):
    return out.tokens[row, : out.lengths[row]].tolist()


def test_a_trie_by_hand():
    found = tries([CHOICES[0]], rows=2)
    assert found.tokens.shape == found.nodes.shape == (2, 128, 16)
    assert found.tokens[0, :5, :2].tolist() == [[8, 30], [9, 10], [END, -1], [9, -1], [END, -1]]
    assert found.nodes[0, :5, :2].tolist() == [[1, 5], [2, 3], [0, 0], [4, 0], [0, 0]]
    assert (found.tokens[0, 6:] == -1).all()
    np.testing.assert_array_equal(found.tokens[1], found.tokens[0])


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([[[END]], []], r"choices\[1\]: expected at least one"),
        ([[[END], []]], r"choices\[0\]: expected tokens in each"),
        ([[[4, END], [4, END, 5]]], "goes on behind another's end"),
        ([[[4, 5, END], [4, 5]]], "ends within another"),
    ],
)
def test_what_is_no_choice(choices, message):
    with pytest.raises(InvalidInputError, match=message):
        tries(choices, rows=2)


def test_greedy_is_the_likeliest_child_at_every_node():
    decoder = build(dataclasses.replace(BASE, smear=3))
    out = sampler(decoder, 0.0).generate(PROMPTS, jax.random.split(jax.random.key(0), 2), choices=CHOICES)
    for row, (prompt, choices) in enumerate(zip(PROMPTS, CHOICES)):
        expected: list[int] = []
        while not expected or expected[-1] != END:
            logits = decoder.logits(read(decoder, jnp.asarray([[*prompt, *expected]])))[0, -1]
            nexts = {one[len(expected)] for one in choices if one[: len(expected)] == expected}
            expected.append(max(nexts, key=lambda token: float(logits[token])))
        assert written(out, row) == expected
    assert out.finished[:2].all()


def test_drawn_ones_are_choices_and_their_log_probs_the_trainers():
    decoder, seen = build(BASE), set()
    score = nnx.jit(token_log_probs, static_argnames=("temperature",))
    one = sampler(decoder, 1.5)
    for seed in range(6):
        out = one.generate(PROMPTS, jax.random.split(jax.random.key(seed), 2), choices=CHOICES)
        for row, prompt in enumerate(PROMPTS):
            completion = written(out, row)
            assert completion in CHOICES[row]
            seen.add((row, tuple(completion)))
            ids = jnp.asarray([[*prompt, *completion]])
            log_probs = score(decoder, ids[:, 1:], tokens=ids[:, :-1], temperature=1.5)[0, len(prompt) - 1 :]
            np.testing.assert_allclose(out.log_probs[row, : len(completion)], log_probs, atol=1e-5)
    assert len(seen) > 3  # `top_k=1` does not apply to choices


def test_without_choices_nothing_changes():
    decoder, keys = build(BASE), jax.random.split(jax.random.key(0), 2)
    one = sampler(decoder, 1.0)
    free = one.generate(PROMPTS, keys)
    one.generate(PROMPTS, keys, choices=CHOICES)
    np.testing.assert_array_equal(one.generate(PROMPTS, keys).tokens, free.tokens)
    assert written(free, 0) not in CHOICES[0]
