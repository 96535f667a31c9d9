"""Sampler and trainer agree on log-probs before the first update; weights that are stale by one update are refused."""

import jax
import numpy as np
import pytest
from flax import nnx

from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.errors import InternalError
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.models.weights_version import weights_version
from embodied_mem.training import grpo
from embodied_mem.training.config import GRPOConfig
from embodied_mem.training.data import Row
from embodied_mem.training.models import CompilerModel

pytestmark = pytest.mark.usefixtures("unoptimised")


@pytest.fixture(scope="module")
def sampled():
    """(gradient function, weights that sampled, samples, pad id) of a small compiler at temperature 1.2."""
    tokenizer = train_bpe(["go to fridge 1", "take apple 1 from fridge 1"] * 4, 300)
    shape = DecoderConfig(
        vocab_size=tokenizer.vocab_size, width=32, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16, mlp_width=32
    )
    soft = SoftMem(SoftMemConfig(4), compiler_width=32, executor_width=16, rngs=nnx.Rngs(1))
    model = CompilerModel(Decoder(shape, rngs=nnx.Rngs(0)), soft)
    compiler = MemoryCompiler(
        model.decoder,
        soft,
        tokenizer,
        max_tokens=8,
        temperature=1.2,
        top_k=50,
        length_buckets=(64,),
        batch_buckets=(4,),
    )
    records = compiler.compile(["go to fridge 1", "take", "apple 1 from", "go"], jax.random.split(jax.random.key(2), 4))
    samples = [
        grpo.PolicySample(
            Row(r.prompt, r.tokens.tolist(), [tokenizer.soft_id] * 4),
            r.log_probs,
            r.soft,
            r.soft_log_density,
            True,
            a,
            r.weights_version,
        )
        for r, a in zip(records, (1.0, -1.0, 1.0, -1.0))
    ]
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    gradient = grpo.make_grpo_gradient(graph, GRPOConfig())

    def accumulate(weights, bound):
        return grpo.accumulate(gradient, weights, rest, samples, 4, tokenizer.pad_id, max_gap=bound)

    accumulate.samples, accumulate.version_of = samples, lambda weights: version_of(nnx.merge(graph, weights, rest))
    return accumulate, params


def version_of(model):
    return weights_version(model.decoder, model.soft_mem)


def test_fresh_weights_give_the_log_probs_that_were_sampled(sampled):
    accumulate, params = sampled
    _, metrics = accumulate(params, grpo.max_log_prob_gap("float32"))
    assert metrics["log_prob_gap"] < 2e-5
    assert metrics["text_ratio"] == pytest.approx(1, abs=1e-5)


def test_weights_that_moved_by_one_update_are_refused(sampled):
    accumulate, params = sampled
    gradients, _ = accumulate(params, grpo.max_log_prob_gap("float32"))
    moved = jax.tree.map(lambda p, g: p - 1e-3 * np.sign(g), params, gradients)  # an Adam step of 1e-3
    with pytest.raises(InternalError, match=r"within 0\.001 before the first update, got a difference of"):
        accumulate(moved, grpo.max_log_prob_gap("float32"))
    _, metrics = accumulate(moved, float("inf"))  # later minibatches of an update are meant to differ
    assert metrics["log_prob_gap"] > 1e-3


def test_samples_carry_the_version_of_their_weights_and_stale_ones_are_refused(sampled):
    accumulate, params = sampled
    version = accumulate.version_of(params)
    assert {sample.weights_version for sample in accumulate.samples} == {version}
    grpo.refuse_stale(accumulate.samples, version)
    moved = accumulate.version_of(jax.tree.map(lambda p: p + 1e-6, params))
    with pytest.raises(InternalError, match=rf"all 4 samples .* with weights {moved:08x}, got 4 of {version:08x}"):
        grpo.refuse_stale(accumulate.samples, moved)


def test_rounded_products_have_no_bound():
    assert grpo.max_log_prob_gap("bfloat16") == float("inf")
    assert grpo.max_log_prob_gap("float32") == (1e-3 if jax.default_backend() == "cpu" else float("inf"))
