"""Memory of a run's programs as XLA's compiler counts it, from shapes alone: no weights, and simulated devices do.

    for program in compiled_memory(config, compiler_length=3000, executor_length=2700):
        print(program.name, program.arguments, program.temporaries, program.total)

What is compiled are the steps that training runs, with its shardings, remat and chunks. A device's peak is arguments
(weights, optimizer state, batch), temporaries (activations, gathered weights, gradients before they are applied) and
those outputs that do not take the place of an argument. On simulated CPU devices the compiler widens bfloat16 products
to float32, so that temporaries are an upper bound for chips that multiply bfloat16.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem.models.config import LoraConfig, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.parallel.placement import Placement
from embodied_mem.parallel.sharding import batch_sharding, replicated
from embodied_mem.training import grpo, stages
from embodied_mem.training.config import Config
from embodied_mem.training.data import Batch
from embodied_mem.training.sft import CompilerBatch, CompilerModel, TrainState, make_compiler_step


@dataclasses.dataclass(frozen=True)
class ProgramMemory:
    """Bytes per device of one compiled program.

    Attributes:
        name: `sft`, `grpo`, or `prefill compiler` and `prefill executor`, which read the prompts of a rollout.
        arguments: what is handed in and stays.
        temporaries: what exists while it runs.
        outputs: results that take no argument's place.
        compile_s: seconds of compilation.
    """

    name: str
    arguments: int
    temporaries: int
    outputs: int
    compile_s: float

    @property
    def total(self) -> int:
        """Peak while the program runs; arrays of other programs come on top."""
        return self.arguments + self.temporaries + self.outputs


def compiled_memory(config: Config, *, compiler_length: int, executor_length: int) -> Iterator[ProgramMemory]:
    """Yields the programs of a run whose compiler is trained, compiled for the devices of this process.

    Args:
        config: the run; its mesh has as many devices as there are.
        compiler_length: tokens of a compiler row, output and soft positions included.
        executor_length: tokens of an executor row, soft positions and action included.
    """
    place = stages.placement(config)
    overrides = {} if config.model.weights else {"vocab_size": config.model.vocab_size}
    shapes = {
        role: preset(getattr(config.model, role), **overrides, **stages.masters_of(config, role))
        for role in ("compiler", "executor")
    }
    executor_graph, executor = nnx.split(nnx.eval_shape(lambda: Decoder(shapes["executor"], rngs=nnx.Rngs(0))))
    model = nnx.eval_shape(lambda: _compiler(config, shapes))
    axes = stages.parameter_axes(model)
    graph, trainable, frozen = nnx.split(model, stages.trainable_filter(config), ...)
    executor = _placed(place, executor, stages.parameter_axes(nnx.merge(executor_graph, executor)))
    frozen = _placed(place, frozen, axes)

    sft = config.compiler_sft
    optimizer = stages.sft_optimizer(sft)
    state = _placed(place, jax.eval_shape(lambda p: TrainState(p, optimizer.init(p)), trainable), axes)
    places = jax.tree.map(lambda leaf: leaf.sharding, state) if place.mesh else None
    step = make_compiler_step(graph, frozen, executor_graph, optimizer, sft, places=places, mesh=config.mesh)
    rows, num_soft = place.rows(sft.batch_size), config.memory.num_soft
    acting = place.rows(math.ceil(sft.action_share * sft.batch_size))
    data = CompilerBatch(
        _rows(rows, compiler_length),
        _struct(jnp.int32, rows, max(num_soft, 1)),
        _struct(jnp.bool, rows),
        _rows(acting, executor_length),
        _struct(jnp.int32, acting),
        _struct(jnp.int32, rows, config.model.max_compiler_tokens),
        _struct(jnp.int32, acting, config.model.max_action_tokens),
    )
    key = jax.eval_shape(lambda: jax.random.key(0))
    if place.mesh:
        key = jax.ShapeDtypeStruct(key.shape, key.dtype, sharding=replicated(place.mesh))
    yield _compiled("sft", place, step.func, *step.args, state, executor, _batch(place, data), key)

    rl = config.grpo
    rows, width = place.rows(rl.microbatch), shapes["executor"].width
    data = grpo.PolicyBatch(
        _rows(rows, compiler_length),
        _struct(jnp.float32, rows, compiler_length),
        _struct(jnp.float32, rows, num_soft, width),
        _struct(jnp.float32, rows, num_soft),
        _struct(jnp.bool, rows),
        _struct(jnp.float32, rows),
    )
    gradient = grpo.make_grpo_gradient(graph, rl, places=places and places.trainable, mesh=config.mesh)
    yield _compiled("grpo", place, gradient, state.trainable, frozen, _batch(place, data), 1.0)

    rows = place.rows(rl.num_tasks * rl.group_size)
    decoder_graph, decoder = nnx.split(nnx.merge(graph, state.trainable, frozen).decoder)
    for role, graph_of, parameters, length, new in (
        ("compiler", decoder_graph, decoder, compiler_length, config.model.max_compiler_tokens + num_soft),
        ("executor", executor_graph, executor, executor_length, config.model.max_action_tokens),
    ):

        def prefill(parameters, tokens, mask, graph_of=graph_of, length=length):
            return nnx.merge(graph_of, parameters).prefill(tokens, mask=mask, capacity=length)

        data = _batch(place, (_struct(jnp.int32, rows, length - new), _struct(jnp.bool, rows, length - new)))
        yield _compiled(f"prefill {role}", place, jax.jit(prefill), parameters, *data)


def _compiler(config: Config, shapes: dict) -> CompilerModel:
    decoder = Decoder(shapes["compiler"], rngs=nnx.Rngs(0))
    if config.model.lora:
        add_lora(decoder, LoraConfig(), rngs=nnx.Rngs(1))
    soft_mem = None
    if config.memory.num_soft:
        soft_mem = SoftMem(
            SoftMemConfig(config.memory.num_soft, config.memory.projection),
            compiler_width=shapes["compiler"].width, executor_width=shapes["executor"].width, rngs=nnx.Rngs(2),
        )  # fmt: skip
    return CompilerModel(decoder, soft_mem)


def _struct(dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _rows(count: int, length: int) -> Batch:
    tokens, flags = _struct(jnp.int32, count, length), _struct(jnp.bool, count, length)
    return Batch(tokens, flags, tokens, flags, flags, flags)


def _placed(place: Placement, tree: Any, axes: dict) -> Any:
    if place.mesh is None:
        return tree
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        tree,
        place.shardings(tree, axes),
    )


def _batch(place: Placement, tree: Any) -> Any:
    if place.mesh is None:
        return tree
    sharding = batch_sharding(place.mesh)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)


def _compiled(name: str, place: Placement, program: Any, *arguments: Any) -> ProgramMemory:
    started = time.perf_counter()
    with place.scope():
        memory = program.lower(*arguments).compile().memory_analysis()
    return ProgramMemory(
        name,
        memory.argument_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.output_size_in_bytes - memory.alias_size_in_bytes,
        time.perf_counter() - started,
    )
