"""Samplers that keep what they read, and the same sampling from the start of every prompt, for tests."""

import numpy as np

from embodied_mem.models.prompt_cache import PromptCache
from embodied_mem.models.sampling import SamplingSettings, generate, pad_prompts

EOS, SOFT = (3, 4, 5, 6, 7), 39
GREEDY, WARM = SamplingSettings(temperature=0.0, eos_tokens=EOS), SamplingSettings(temperature=1.2, eos_tokens=EOS)


def sampler_of(decoder, settings=GREEDY, batch_buckets=(2, 4), **options):
    options = {"max_new_tokens": 8, "length_buckets": (16, 32), "soft_token": SOFT} | options
    return PromptCache(decoder, settings, batch_buckets=batch_buckets, **options)


def text(seed, length):
    return np.random.default_rng(seed).integers(8, 38, length).tolist()


def from_the_start(decoder, prompts, keys, settings, **options):
    tokens, mask = pad_prompts(prompts, buckets=(32,))
    keys = keys[: len(prompts)]
    return tokens, mask, generate(decoder, keys, settings, tokens=tokens, mask=mask, max_new_tokens=8, **options)


def same(out, expected, rows):
    for name in ("tokens", "completion_mask"):
        np.testing.assert_array_equal(getattr(out, name)[:rows], getattr(expected, name)[:rows], name)
    np.testing.assert_allclose(out.log_probs[:rows], expected.log_probs[:rows], atol=1e-5)
