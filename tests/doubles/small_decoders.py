"""Small decoders of every variant for the tests of models, and their programs, compiled once for all of them."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.models import decoder as model
from embodied_mem.models.config import DecoderConfig, RopeScaling
from embodied_mem.models.decoder import Decoder, score_tokens
from embodied_mem.models.kv_cache import KVCache

BASE = DecoderConfig(
    vocab_size=40, width=24, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=6, mlp_width=32, max_length=64,
    attention_block=0,
)  # fmt: skip
VARIANTS = {
    "llama": BASE,
    "untied": dataclasses.replace(BASE, tie_embeddings=False, num_kv_heads=4),
    "qwen2": dataclasses.replace(BASE, qkv_bias=True, num_kv_heads=1),
    "qwen3": dataclasses.replace(BASE, qk_norm=True),
    "smear": dataclasses.replace(BASE, smear=1),
    "smear3": dataclasses.replace(BASE, smear=3),
    "llama3": dataclasses.replace(BASE, rope_theta=500.0, rope_scaling=RopeScaling(8.0, 1.0, 4.0, 16)),
}


def build(config: DecoderConfig, seed: int = 0) -> Decoder:
    """A decoder whose norms, biases and matrices are all random, so that leaving one out shows; nothing is compiled."""
    decoder = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0)))
    rng = np.random.default_rng(seed)
    leaves, treedef = jax.tree_util.tree_flatten_with_path(nnx.state(decoder))
    values = []
    for path, leaf in leaves:
        middle = 1.0 if "norm" in jax.tree_util.keystr(path) else 0.0
        values.append(jnp.asarray((middle + 0.25 * rng.standard_normal(leaf.shape)).astype(leaf.dtype)))
    nnx.update(decoder, jax.tree.unflatten(treedef, values))
    return decoder


read = nnx.jit(Decoder.__call__, static_argnames=("remat",))


@nnx.jit(static_argnames=("capacity",))
def prefill(decoder: Decoder, tokens: jax.Array | None = None, **settings: Any) -> tuple[jax.Array, KVCache]:
    """The module's `prefill`."""
    return model.prefill(decoder.network(), tokens, **settings)


def token_log_probs(
    decoder: Decoder,
    targets: jax.Array,
    *,
    tokens: jax.Array | None = None,
    embeddings: jax.Array | None = None,
    mask: jax.Array | None = None,
    temperature: float | jax.Array = 1.0,
    chunk_size: int = 0,
    dropout_key: jax.Array | None = None,
    remat: bool = False,
) -> jax.Array:
    """Returns float32[B, L], the log-prob of each target int32[B, L] as the token after its position.

    The distribution is softmax(logits / temperature), untruncated: what `generate` reports for what it sampled.
    Arguments as in `Decoder.__call__` and `score_tokens`.
    """
    hidden = decoder(tokens, embeddings=embeddings, mask=mask, dropout_key=dropout_key, remat=remat)
    return score_tokens(decoder, hidden, targets, temperature=temperature, chunk_size=chunk_size).log_probs
