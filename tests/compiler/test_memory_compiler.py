"""What the compiler makes of a published model's answers."""

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder, mean_attention


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


@pytest.mark.usefixtures("unoptimised")
def test_a_compiler_without_marks_reads_none():
    text = "memory:\nmug was in fridge 1 x\ngoal: mug\n> \n\nleft: fridge 1\nmug\n="
    tokenizer = train_bpe([text] * 4, 300)
    shape = DecoderConfig(
        vocab_size=tokenizer.vocab_size, width=16, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8, mlp_width=16,
        max_length=128,
    )  # fmt: skip
    sizes = {"max_tokens": 4, "length_buckets": (64,), "batch_buckets": (1,)}
    read = []
    for marks in (True, False):
        compiler = MemoryCompiler(Decoder(shape, rngs=nnx.Rngs(0)), None, tokenizer, marks=marks, **sizes)
        [one] = compiler.compile([text], jax.random.split(jax.random.key(0), 1))
        read.append(tokenizer.decode(one.prompt))
    assert read == [text, "memory:\nmug was in fridge 1\ngoal: mug\n> \n\nmug\n="]


@pytest.mark.usefixtures("unoptimised")
def test_attention_is_told_by_line_of_the_prompt_and_costs_one_program_only_where_it_is_asked_for():
    """Without keys, each of the first n positions gets 1/n of the n-th one's attention."""
    tokenizer = train_bpe(["memory:\nmug in fridge 1\n="] * 4, 300)
    shape = DecoderConfig(
        vocab_size=tokenizer.vocab_size, width=16, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=8, mlp_width=16,
        max_length=64,
    )  # fmt: skip
    decoder = Decoder(shape, rngs=nnx.Rngs(0))
    decoder.layers.key[...] = jnp.zeros_like(decoder.layers.key[...])
    compiler = MemoryCompiler(decoder, None, tokenizer, max_tokens=4, length_buckets=(32,), batch_buckets=(2,))
    programs = mean_attention._cache_size()
    prompts = ["memory:\nmug in fridge 1\n=", "memory:\n="]
    compiled = compiler.compile(prompts, jax.random.split(jax.random.key(0), 2))
    assert mean_attention._cache_size() == programs
    told = compiler.attention([*compiled] * 9)
    assert mean_attention._cache_size() == programs + 1
    assert told[2] == told[0] == told[16]
    for one, lines, text in zip(compiled, told, prompts):
        assert [line for line, _ in lines] == text.split("\n")
        length = len(one.prompt)
        share = sum(1 / (length + written) for written in range(len(one.tokens))) / len(one.tokens)
        counts = [len(tokenizer.encode(line)) + (not line.startswith("=")) for line, _ in lines]
        assert sum(counts) == length
        assert [part for _, part in lines] == pytest.approx([count * share for count in counts], rel=1e-4)
