"""Speed in the metrics: operations counted by hand and by XLA, names of chips, numbers of a step."""

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.training import loop
from embodied_mem.training.loop import flops_per_token, peak_flops

CONFIG = DecoderConfig(vocab_size=64, width=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, mlp_width=48)


def test_operations_counted_by_hand():
    layer = 32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 48 + 2 * 32  # q, k and v, output, gate up down, norms
    weights = 2 * (2 * layer + 32 + 64 * 32)
    attention = 2 * 2 * 4 * 8 * 10
    assert flops_per_token(CONFIG, 10, trained=True) == 3 * weights + 3 * attention
    assert flops_per_token(CONFIG, 10, trained=False) == 2 * weights + 3 * attention


def test_operations_are_near_those_of_the_compiled_program():
    graph, params = nnx.split(nnx.eval_shape(lambda: Decoder(CONFIG, rngs=nnx.Rngs(0))))

    def loss(params, tokens):
        decoder = nnx.merge(graph, params)
        return decoder.logits(decoder(tokens)).sum()

    tokens = jax.ShapeDtypeStruct((4, 64), jnp.int32)
    counted = jax.jit(jax.grad(loss)).lower(params, tokens).compile().cost_analysis()["flops"]
    # XLA's products are whole squares of attention, twice ours, and it counts element-wise work too.
    assert 1.0 < counted / (4 * 64 * flops_per_token(CONFIG, 64, trained=True)) < 1.6


@pytest.mark.parametrize(
    ("kind", "peak"),
    [("TPU v5 lite", 197e12), ("TPU v5p", 459e12), ("NVIDIA H100 80GB HBM3", 989e12), ("NVIDIA A100-SXM4-40GB", None)],
)
def test_chips_by_name(kind, peak):
    assert peak_flops(kind) == (peak or 312e12)
    assert peak_flops("cpu") is None


def test_numbers_of_a_step(monkeypatch):
    monkeypatch.setattr(loop, "peak_flops", lambda kind: 1e6)
    answer = loop.throughput({"tokens": 100.0, "others": 10.0, "absent": 1.0}, {"tokens": 50, "others": 20}, 2.0)
    assert answer["tokens_per_s"] == 35
    assert answer["mfu"] == pytest.approx((50 * 100 + 20 * 10) / (2 * 1e6 * jax.device_count()))
    before = answer["peak_memory_bytes"]
    kept = jnp.ones((1 << 24,)) + 1
    assert kept.sum() > 0
    assert loop.peak_memory() >= before > 1e7
