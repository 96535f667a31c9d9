"""What the compiler makes of a published model's answers."""

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder


@pytest.mark.usefixtures("unoptimised")
def test_a_token_that_the_tokenizer_does_not_have_is_kept_for_training_and_has_no_text():
    """Qwen2.5 has 152,064 rows in its head and 151,665 tokens."""
    tokenizer = train_bpe(["go to fridge 1"] * 4, 300)
    shape = DecoderConfig(
        vocab_size=tokenizer.vocab_size + 8, width=16, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8,
        mlp_width=16, tie_embeddings=False, max_length=64,
    )  # fmt: skip
    decoder = Decoder(shape, rngs=nnx.Rngs(0))
    decoder.head[...] = jnp.zeros_like(decoder.head[...]).at[:, -1].set(jnp.sign(jnp.arange(16) - 7.5))
    compiler = MemoryCompiler(decoder, None, tokenizer, max_tokens=4, length_buckets=(32,), batch_buckets=(2,))
    compiled = compiler.compile(["go to fridge 1", "to fridge"], jax.random.split(jax.random.key(0), 2))
    # All logits are 0 but the last one's, which has the sign of one sum: it is drawn where that is positive, and
    # token 0 elsewhere.
    drawn = {token for one in compiled for token in one.tokens.tolist()}
    assert shape.vocab_size - 1 in drawn
    assert all(len(one.tokens) == len(one.log_probs) == 4 for one in compiled)
    assert {one.output for one in compiled} == {parse_output("")}
