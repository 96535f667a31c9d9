"""What steps of large models must not do: hold logits of all positions, optimise what is frozen, round what is trained,
keep a state that is no longer needed."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from eight_devices_training import CONFIG, SHAPE, TOKENIZER, inputs, policy_samples
from flax import nnx

from embodied_mem.models.config import LoraConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.parallel.placement import ONE_DEVICE
from embodied_mem.training import grpo, models, optimizers
from embodied_mem.training.config import GRPOConfig, MeshConfig, SFTConfig
from embodied_mem.training.data import CompilerBatch, ExecutorBatch, spots_of
from embodied_mem.training.models import CompilerModel
from embodied_mem.training.sft import make_compiler_step, make_executor_step

pytestmark = pytest.mark.usefixtures("unoptimised")


@functools.cache
def key():
    return jax.random.key(0)


NARROW = dataclasses.replace(SHAPE, dtype="bfloat16", param_dtype="bfloat16")


def compiler() -> CompilerModel:
    decoder = add_lora(Decoder(NARROW, rngs=nnx.Rngs(1)), LoraConfig(rank=4), rngs=nnx.Rngs(2))
    head = SoftMem(SoftMemConfig(4, embedding_std=0.02), compiler_width=32, executor_width=32, rngs=nnx.Rngs(3))
    return CompilerModel(decoder, head)


def parts(optimizer):
    """(graph, frozen, state) of a compiler with adapters."""
    model = compiler()
    graph, params, frozen = nnx.split(model, models.trainable_filter(CONFIG), ...)
    return graph, frozen, optimizers.fresh_state(optimizer, params, models.parameter_axes(model), ONE_DEVICE)[0]


def widest_logits(jaxpr) -> int:
    """The most positions whose logits exist at once: elements of arrays that end in the vocabulary, by its size."""
    widest = 0
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            shape = getattr(variable.aval, "shape", ())
            if len(shape) > 1 and shape[-1] == TOKENIZER.vocab_size and equation.primitive.name != "broadcast_in_dim":
                widest = max(widest, int(jnp.prod(jnp.asarray(shape[:-1]))))
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    widest = max(widest, widest_logits(inner))
    return widest


@pytest.mark.parametrize(("chunk", "positions"), [(0, 6 * 32), (8, 6 * 8)])
def test_logits_of_a_chunk_exist_and_never_those_of_all_positions(chunk, positions):
    mesh, optimizer = MeshConfig(remat=True, logits_chunk=chunk), optimizers.sft_optimizer(SFTConfig())
    acting, compiling, references, guided = inputs()
    assert acting.tokens.shape == compiling.tokens.shape == (6, 32)
    graph, params, frozen = models.split_executor(Decoder(NARROW, rngs=nnx.Rngs(0)))
    state = optimizers.fresh_state(optimizer, params, {}, ONE_DEVICE)[0]
    read = ExecutorBatch(acting, references, spots_of(acting, 8))
    for weight, expected in ((0.3, positions), (0.0, 6 * 8)):  # without a loss of the prompt, those of commands alone
        executor_step = make_executor_step(graph, frozen, optimizer, SFTConfig(prompt_weight=weight), mesh=mesh)
        assert widest_logits(jax.make_jaxpr(executor_step)(state, read, key()).jaxpr) == expected

    compiler_graph, frozen, state = parts(optimizer)
    policy = grpo.policy_batch(policy_samples(), 6, 0)
    gradient = grpo.make_grpo_gradient(compiler_graph, GRPOConfig(), mesh=mesh)
    assert widest_logits(jax.make_jaxpr(gradient)(state.trainable, frozen, policy, grpo.Totals(1.0, 1.0)).jaxpr) == (
        6 * (chunk or policy.batch.tokens.shape[1])
    )

    step = make_compiler_step(compiler_graph, frozen, graph, optimizer, SFTConfig(), mesh=mesh)
    spots = spots_of(compiling, 16), spots_of(acting, 16)
    data = CompilerBatch(compiling, references, guided, acting, jnp.arange(6), *spots)
    jaxpr = jax.make_jaxpr(step.func)(*step.args, state, params, data, key()).jaxpr
    assert widest_logits(jaxpr) == 6 * (chunk or 16)  # completions alone, 16 positions at most


def test_adapters_alone_are_optimised_in_float32_and_the_old_state_is_used_up():
    acting, compiling, references, guided = inputs()
    optimizer = optimizers.sft_optimizer(SFTConfig(steps=4, learning_rate=1e-3))
    graph, frozen, state = parts(optimizer)
    executor_graph, executor = nnx.split(Decoder(NARROW, rngs=nnx.Rngs(0)))
    names = {jax.tree_util.keystr(path[:2]) for path, _ in jax.tree_util.tree_flatten_with_path(state.trainable)[0]}
    assert "['decoder']['layers']" in names
    assert all("soft_mem" in name for name in names - {"['decoder']['layers']"})
    trained = sum(leaf.size for leaf in jax.tree.leaves(state.trainable))
    moments = sum(leaf.size for leaf in jax.tree.leaves(state.optimizer) if leaf.ndim)
    assert moments == 2 * trained < 0.5 * sum(leaf.size for leaf in jax.tree.leaves(frozen))

    step = make_compiler_step(graph, frozen, executor_graph, optimizer, SFTConfig())
    spots = spots_of(compiling, 16), spots_of(acting, 16)
    data = CompilerBatch(compiling, references, guided, acting, jnp.arange(6), *spots)
    before = jax.tree.map(jnp.copy, state.trainable)
    after, metrics = step(state, executor, data, key())
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.trainable))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((frozen, executor)))
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(after.trainable)} == {"float32"}
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(frozen)} == {"bfloat16"}
    # Steps of the size of the learning rate, far below what bfloat16 keeps of a number near 1.
    changes = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), after.trainable, before)
    assert 0 < max(jax.tree.leaves(changes)) < 2e-3
    assert int(metrics["tokens"]) == int(compiling.mask.sum())
    assert int(metrics["executor_tokens"]) == int(acting.mask.sum())
