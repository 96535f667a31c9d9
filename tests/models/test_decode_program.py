"""The optimised program of the sampler: no token copies weights, and the layout of layers changes no digit."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from flax import nnx
from small_decoders import BASE, build

from embodied_mem.models import prompt_cache, sampling
from embodied_mem.models.config import layer_shapes
from embodied_mem.models.prompt_cache import PromptCache
from embodied_mem.models.sampling import SamplingSettings, append, generate
from experiments.plan.roofline import copies

LAYERS = 3
SHAPE = dataclasses.replace(
    BASE, vocab_size=47, width=44, num_layers=LAYERS, num_heads=4, num_kv_heads=2, head_dim=26, mlp_width=94,
    max_length=64, scan_layers=True,
)  # fmt: skip
MATRICES = {math.prod(shape) for name, (shape, _) in layer_shapes(SHAPE).items() if len(shape) > 1}


@pytest.fixture(params=[True, False], ids=["unrolled", "loop"])
def is_unrolled(request, monkeypatch):
    """Whether sampling runs the layers one by one, as on this CPU and a GPU, or in a loop, as on a TPU."""
    monkeypatch.setattr(sampling, "UNROLLED_BACKENDS", ("cpu",) if request.param else ())
    return request.param


def program(decoder, batch):
    """The optimised program with which `PromptCache` writes tokens."""
    texts, results, write = [[5] * 7] * batch, [], prompt_cache._write

    def spy(*arguments, **settings):
        results.append(write.lower(*arguments, **settings).compile().as_text())
        return write(*arguments, **settings)

    spy._cache_size = write._cache_size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prompt_cache, "_write", spy)
        sampler = PromptCache(
            decoder, SamplingSettings(temperature=0), max_new_tokens=5, length_buckets=(8,), batch_buckets=(batch,)
        )
        sampler.generate(texts, jax.random.split(jax.random.key(0), batch))
    return results[0]


@pytest.mark.parametrize("batch", [1, 3])
def test_a_token_copies_no_weight_where_layers_are_unrolled(batch, is_unrolled):
    """The loop over layers copies all seven matrices of each, on a CPU and a GPU; that is what unrolling is for."""
    text = program(build(SHAPE), batch)
    assert copies(text, MATRICES) == (0 if is_unrolled else 7)
    assert not copies(text, {LAYERS * size for size in MATRICES})  # nor a stack


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_both_layouts_say_the_same_to_the_digit(temperature, monkeypatch):
    decoder = build(SHAPE)
    tokens, keys, results = np.arange(24).reshape(3, 8), jax.random.split(jax.random.key(1), 3), []
    for backends in (("cpu",), ()):
        monkeypatch.setattr(sampling, "UNROLLED_BACKENDS", backends)
        out = generate(
            decoder, keys, SamplingSettings(temperature=temperature), tokens=tokens, max_new_tokens=6, extra_capacity=2
        )
        hidden, _ = append(decoder, out.cache, tokens=tokens[:, :2])
        assert isinstance(out.cache.keys, tuple) == bool(backends)
        results.append([np.asarray(array) for array in (out.tokens, out.log_probs, out.last_hidden, hidden)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_second_layout_needs_a_small_part_of_the_memory(monkeypatch):
    decoder = build(SHAPE)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(decoder)))

    class Device:
        def __init__(self, limit):
            self.limit = limit

        def memory_stats(self):
            return {"bytes_limit": self.limit}

    for limit, is_scanned in ((sampling.LAYOUT_SHARE * size, False), (sampling.LAYOUT_SHARE * size - 1, True)):
        monkeypatch.setattr(jax, "local_devices", lambda limit=limit: [Device(limit)])
        assert sampling.sampling_config(decoder).scan_layers == is_scanned
