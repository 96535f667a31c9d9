"""The roofline of compiled programs whose products, loops and collectives are known."""

import jax
import jax.numpy as jnp
import pytest

from experiments.plan.roofline import Cost, bound, copies, roofline

LAYERS, ROWS, WIDTH = 5, 8, 64

COLLECTIVE = """
ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %r = f32[8,4]{1,0} all-reduce-start(%p), replica_groups={}, to_apply=%add
}
"""


def test_a_loop_of_products_is_counted_as_often_as_it_runs():
    def layers(weights, x):
        return jax.lax.scan(lambda x, weight: (jnp.tanh(x @ weight), None), x, weights)[0]

    text = jax.jit(layers).lower(jnp.zeros((LAYERS, WIDTH, WIDTH)), jnp.zeros((ROWS, WIDTH))).compile().as_text()
    costs = {cost.kind: cost for cost in roofline(text)}
    product = costs["dot"]
    assert (product.flops, product.count) == (LAYERS * 2 * ROWS * WIDTH * WIDTH, LAYERS)
    assert product.bytes == LAYERS * 4 * (2 * ROWS * WIDTH + WIDTH * WIDTH)  # in, out, weight
    # Beside it slices of one layer are read and written, and some rows: the stack is not read whole in every turn.
    stack = 4 * LAYERS * WIDTH * WIDTH
    assert sum(cost.bytes for kind, cost in costs.items() if kind != "dot") < 4 * stack


def test_collectives_are_apart_and_slow_links_count():
    (sent,) = roofline(COLLECTIVE)
    assert (sent.kind, sent.bytes, sent.count) == ("all-reduce", 2 * 4 * 32, 1)
    product = Cost("dot", flops=1000.0, bytes=10.0)
    assert bound([product], 100.0, 10.0, 1.0) == 1
    assert bound([product, sent], 100.0, 10.0, 25.6) == pytest.approx(0.5)
    assert bound([product, sent], 100.0, 10.0, 25.6, scale=0.5) == pytest.approx(2 / 3)


def test_a_weight_that_a_tpu_reads_into_the_chip_is_no_copy():
    """In a layout S(1) is the chip's own memory, from which products take their operands."""
    program = """
%body (p: (bf16[2,8,4], s32[])) -> (bf16[2,8,4], s32[]) {
  %p = (bf16[2,8,4], s32[]) parameter(0)
  %w = bf16[2,8,4]{2,1,0} get-tuple-element(%p), index=0
  %i = s32[] get-tuple-element(%p), index=1
  %read = bf16[1,8,4]{2,1,0:T(8,128)(2,1)SPACE} fusion(%w, %i), kind=kLoop, calls=%slice
  ROOT %t = (bf16[2,8,4], s32[]) tuple(%w, %i)
}

ENTRY %main (p: (bf16[2,8,4], s32[])) -> (bf16[2,8,4], s32[]) {
  %p = (bf16[2,8,4], s32[]) parameter(0)
  ROOT %loop = (bf16[2,8,4], s32[]) while(%p), condition=%turns, body=%body
}
"""
    assert copies(program.replace("SPACE", "S(1)"), {32}) == 0
    assert copies(program.replace("SPACE", ""), {32}) == 1
