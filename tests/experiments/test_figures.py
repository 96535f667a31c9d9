"""What the figures measure: attention at the end of a prompt, whose tokens are memory's, neighbours."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from embodied_mem.agents.deliveries import Delivered
from embodied_mem.compiler.executor_format import encode_prompts
from embodied_mem.compiler.prompts import executor_prompt
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from experiments.analyses.figures import attention_at_end, memory_positions, same_kind_neighbours

pytestmark = pytest.mark.usefixtures("unoptimised")

SHAPE = DecoderConfig(
    vocab_size=40, width=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, mlp_width=32, smear=1
)


def test_attention_is_that_of_the_decoder():
    decoder = Decoder(SHAPE, rngs=nnx.Rngs(0))
    tokens = jax.random.randint(jax.random.key(1), (3, 10), 0, 40)
    mask = jnp.arange(10) >= jnp.asarray([0, 3, 6])[:, None]

    def measured(memory):
        return attention_at_end(SHAPE, decoder.weights(False), decoder.embed(tokens), mask, memory)

    logit, share, hidden = measured(mask)
    np.testing.assert_allclose(hidden[:, -1], decoder(tokens, mask=mask)[:, -1], atol=1e-5)
    np.testing.assert_allclose(share, 1, atol=1e-6)
    early, late = mask & (jnp.arange(10) < 8), mask & (jnp.arange(10) >= 8)
    (logit_a, share_a, _), (logit_b, share_b, _) = measured(early), measured(late)
    np.testing.assert_allclose(share_a + share_b, 1, atol=1e-6)
    counts = early.sum(1), late.sum(1)
    np.testing.assert_allclose((logit_a * counts[0] + logit_b * counts[1]) / sum(counts), logit, atol=1e-5)
    assert float(jnp.abs(logit_a - logit_b).min()) > 1e-4


def test_one_layer_by_hand():
    """One layer, one head, no smear: logit = (q k) / sqrt(E) with both turned by their positions."""
    shape = dataclasses.replace(SHAPE, num_layers=1, num_heads=1, num_kv_heads=1, smear=0)
    decoder = Decoder(shape, rngs=nnx.Rngs(2))
    tokens = jnp.asarray([[7, 11, 13]])
    layer = decoder.weights(False)["layers"][0]
    x = np.asarray(decoder.embed(tokens)[0], np.float64)
    normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + shape.norm_eps)
    angles = np.arange(3)[:, None] * 10_000.0 ** -(np.arange(4) / 4)

    def turned(name):
        a, b = np.split(normed @ np.asarray(layer[name], np.float64)[:, 0], 2, axis=1)
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], 1)

    logits = turned("key") @ turned("query")[-1] / np.sqrt(8)
    weights = np.exp(logits) / np.exp(logits).sum()
    memory = jnp.asarray([[False, True, False]])
    logit, share, _ = attention_at_end(shape, decoder.weights(False), decoder.embed(tokens), memory | True, memory)
    np.testing.assert_allclose([logit[0], share[0]], [logits[1], weights[1]], atol=1e-5)


def test_memory_is_its_text_and_its_soft_tokens():
    tokenizer = train_bpe(["hint: find apple 1 in fridge 1", "memory: apple 1 was in fridge 1; hint"], 300)
    turns = [("go to fridge 1", "You see an apple 1.")]

    def of(given: Delivered, **fields) -> str:
        prompt = executor_prompt("find apple 1", "fridge 1", turns, **fields)
        ids = encode_prompts(tokenizer, [prompt])[0]
        where = memory_positions(tokenizer, prompt, ids, given)
        return tokenizer.decode([token for token, mine in zip(ids, where) if mine])

    soft = np.zeros((3, 8), np.float32)
    assert of(Delivered()) == ""
    assert of(Delivered(memory="apple 1 was in fridge 1"), memory="apple 1 was in fridge 1") == (
        "\napple 1 was in fridge 1"
    )
    found = of(Delivered(hint="find apple 1", soft=soft), hint="find apple 1", num_soft=3)
    assert found == " find apple 1<soft><soft><soft>"


def test_neighbours_of_the_same_step_do_not_count():
    """Two directions, one per kind; then the same with kinds mixed up. A state's own step is never its neighbour."""
    states = np.float32([[1, 0.1], [1, 0.1], [1, 0.2], [0.1, 1], [0.1, 1], [0.2, 1]])
    kind = np.asarray([True, True, True, False, False, False])
    assert same_kind_neighbours(states, kind, np.asarray([0, 0, 1, 0, 0, 1])) == 1.0
    mixed = np.asarray([True, True, False, False, False, True])
    assert same_kind_neighbours(states, mixed, np.asarray([0, 0, 1, 0, 0, 1])) == 0.0
