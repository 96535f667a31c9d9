"""Memory of a run's programs by XLA's own count, from shapes alone: no weights, simulated devices.

    for program in compiled_memory(config, compiler_length=3000, executor_length=2700):
        print(program.name, program.arguments, program.temporaries, program.total)

What is compiled are the steps that training runs, with its shardings, remat and chunks. A device's peak is arguments
(weights, optimizer state, batch), temporaries (activations, gathered weights, gradients before they are applied) and
those outputs that do not take the place of an argument.

On simulated CPU devices all is compiled in float32, and only the arguments are counted in the dtypes in which they are
stored: the compiler for CPUs widens bfloat16 products, for which it keeps a float32 copy of all layers' weights, as no
chip that multiplies bfloat16 does. What exists in float32 is at least as large as in bfloat16, so temporaries and
outputs are upper bounds, as far as another backend's compiler plans as this one does.

With `tpu_devices("v5e:4x4")` the compiler for TPUs does it, ahead of time, without a chip, in the stored dtypes. Then
the programs that write tokens come, too, and the weights that each token copies are counted.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem.errors import InvalidInputError, MissingDependencyError
from embodied_mem.models import decoder as decoders
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.sampling import SamplingSettings, decode
from embodied_mem.parallel.mesh import MeshShape, make_mesh
from embodied_mem.parallel.placement import Placement
from embodied_mem.parallel.sharding import LogicalAxes, batch_sharding, replicated
from embodied_mem.training import grpo, models, optimizers
from embodied_mem.training.config import ROLES, Config
from embodied_mem.training.data import Batch, CompilerBatch
from embodied_mem.training.models import shape_of
from embodied_mem.training.optimizers import TrainState
from embodied_mem.training.sft import make_compiler_step

from .roofline import Cost, copies, roofline


@dataclasses.dataclass(frozen=True)
class ProgramMemory:
    """Bytes per device of one compiled program.

    Attributes:
        name: `sft`, `grpo`, or `prefill compiler` and `prefill executor`, which read the prompts of a rollout;
            `decode compiler` and `decode executor`.
        arguments: what is handed in and stays, as it is stored.
        temporaries: what exists while it runs.
        outputs: results that take no argument's place.
        compile_s: seconds of compilation.
        costs: what it computes, moves and sends; of a CPU's program.
        copies: weights that every token copies in memory; None where none is sampled.
    """

    name: str
    arguments: int
    temporaries: int
    outputs: int
    compile_s: float
    costs: list[Cost]
    copies: int | None = None

    @property
    def total(self) -> int:
        """Peak while the program runs; arrays of other programs come on top."""
        return self.arguments + self.temporaries + self.outputs


def tpu_devices(topology: str) -> list[Any]:
    """Return the devices of a slice such as `v5e:4x4`, for compiling alone.

    Raises:
        MissingDependencyError: the extra `tpu` is not installed.
        InvalidInputError: there is no such slice.
    """
    if importlib.util.find_spec("libtpu") is None:
        raise MissingDependencyError("--topology: libtpu is missing: pip install 'embodied_mem[tpu]'")
    kind, _, sides = topology.partition(":")
    count = math.prod(int(side) for side in re.findall(r"\d+", sides))
    name = {"v5e": "v5litepod"}.get(kind, kind)
    alone = {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": f"{name}-{count}"}
    alone |= {"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"}
    alone["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # no chip is taken: a lock file that another process left is none of ours
    for variable, value in alone.items():
        os.environ.setdefault(variable, value)
    from jax.experimental import topologies

    try:
        return list(topologies.get_topology_desc(topology, "tpu").devices)
    except jax.errors.JaxRuntimeError as error:
        raise InvalidInputError(f"--topology: expected a slice such as v5e:4x4, got {topology!r}: {error}") from error


def compiled_memory(
    config: Config,
    *,
    compiler_length: int,
    executor_length: int,
    devices: list[Any] | None = None,
    stages: Sequence[str] = ("sft", "grpo", "rollout"),
) -> Iterator[ProgramMemory]:
    """Yield the programs of a run that trains its compiler.

    Args:
        config: the run; its mesh has as many devices as there are.
        compiler_length: tokens of a compiler row, output and soft positions included.
        executor_length: tokens of an executor row, soft positions and action included.
        devices: of `tpu_devices`; None for those of this process.
        stages: whose programs are compiled.
    """
    shape = MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
    place = Placement(make_mesh(shape, devices)) if devices else models.placement(config)
    stored = {role: shape_of(config, role) for role in ROLES}
    shapes = stored
    if jax.default_backend() == "cpu" and not devices:
        shapes = {
            role: dataclasses.replace(shape, dtype="float32", param_dtype="float32") for role, shape in stored.items()
        }
    executor_graph, executor = nnx.split(nnx.eval_shape(lambda: Decoder(shapes["executor"], rngs=nnx.Rngs(0))))
    width = shapes["executor"].width
    model = nnx.eval_shape(
        lambda: models.compiler_of(config, Decoder(shapes["compiler"], rngs=nnx.Rngs(0)), width, std=1.0)
    )
    axes = models.parameter_axes(model)
    graph, trainable, frozen = models.split_model(config, model)
    executor = _placed(place, executor, models.parameter_axes(nnx.merge(executor_graph, executor)))
    frozen = _placed(place, frozen, axes)
    executor_size = jnp.dtype(stored["executor"].param_dtype).itemsize
    frozen_size = jnp.dtype(stored["compiler"].param_dtype).itemsize

    sft = config.compiler_sft
    optimizer = optimizers.sft_optimizer(sft)
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
        key = _struct(key.dtype, *key.shape, sharding=replicated(place.mesh))
    arguments = (*step.args, state, executor, _batch(place, data), key)
    handed = _bytes(step.args, frozen_size) + _bytes(executor, executor_size) + _bytes(arguments[1:2] + arguments[3:])
    if "sft" in stages:
        yield _compiled("sft", place, handed, step.func, *arguments)[0]

    rl = config.grpo
    rows = place.rows(rl.microbatch)
    policy = grpo.PolicyBatch(
        _rows(rows, compiler_length),
        _struct(jnp.float32, rows, compiler_length),
        _struct(jnp.float32, rows, num_soft, width),
        _struct(jnp.float32, rows, num_soft),
        _struct(jnp.bool, rows),
        _struct(jnp.float32, rows),
    )
    gradient = grpo.make_grpo_gradient(graph, rl, places=places and places.trainable, mesh=config.mesh)
    policy = _batch(place, policy)
    handed = _bytes((state.trainable, policy)) + _bytes(frozen, frozen_size)
    if "grpo" in stages:
        yield _compiled("grpo", place, handed, gradient, state.trainable, frozen, policy, grpo.Totals(1.0, 1.0))[0]
    if "rollout" not in stages:
        return

    playing = place.for_sampling(config.mesh.sampling_tensor)
    rows = playing.rows(rl.num_rows)
    decoder_graph, decoder = nnx.split(nnx.merge(graph, state.trainable, frozen).decoder)
    decoder = _placed(playing, decoder, axes)
    executor = _placed(playing, executor, models.parameter_axes(nnx.merge(executor_graph, executor)))
    for role, graph_of, parameters, size, length, new in (
        ("compiler", decoder_graph, decoder, frozen_size, compiler_length, config.model.max_compiler_tokens + num_soft),
        ("executor", executor_graph, executor, executor_size, executor_length, config.model.max_action_tokens),
    ):

        def prefill(
            parameters: Any, tokens: Any, mask: Any, graph_of: nnx.GraphDef[Decoder] = graph_of, length: int = length
        ) -> Any:
            return decoders.prefill(nnx.merge(graph_of, parameters).network(), tokens, mask=mask, capacity=length)

        prompts = _batch(playing, (_struct(jnp.int32, rows, length - new), _struct(jnp.bool, rows, length - new)))
        handed = _bytes(parameters, size) + _bytes(prompts)
        read, compiled = _compiled(f"prefill {role}", playing, handed, jax.jit(prefill), parameters, *prompts)
        yield read
        if not devices:
            continue
        num_new = getattr(config.model, f"max_{'action' if role == 'executor' else role}_tokens")
        settings = SamplingSettings(0.0) if role == "executor" else SamplingSettings(rl.temperature, rl.top_k, rl.top_p)

        def write(
            parameters: Any, cache: Any, hidden: Any, keys: Any,
            graph_of: nnx.GraphDef[Decoder] = graph_of, num_new: int = num_new, settings: Any = settings,
        ) -> Any:  # fmt: skip
            network = nnx.merge(graph_of, parameters).network()
            return decode(network, cache, hidden[:, -1], keys, settings, num_new)

        abstract = jax.eval_shape(prefill, parameters, *prompts)
        hidden, cache = jax.tree.map(
            lambda leaf, sharding: _struct(leaf.dtype, *leaf.shape, sharding=sharding),
            abstract, compiled.output_shardings,
        )  # fmt: skip
        keys = _batch(playing, jax.eval_shape(lambda rows=rows: jax.random.split(jax.random.key(0), rows)))
        program, size_in = jax.jit(write, donate_argnums=1), _bytes(parameters, size) + _bytes((cache, hidden))
        one, compiled = _compiled(f"decode {role}", playing, size_in, program, parameters, cache, hidden, keys)
        yield dataclasses.replace(one, copies=copies(compiled.as_text(), matrices(parameters)))


def _struct(dtype: Any, *shape: int, sharding: jax.sharding.Sharding | None = None) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def _rows(count: int, length: int) -> Batch[jax.ShapeDtypeStruct]:
    tokens, flags = _struct(jnp.int32, count, length), _struct(jnp.bool, count, length)
    return Batch(tokens, flags, tokens, flags, flags, flags)


def _placed(place: Placement, tree: Any, axes: LogicalAxes) -> Any:
    if place.mesh is None:
        return tree
    return jax.tree.map(
        lambda leaf, sharding: _struct(leaf.dtype, *leaf.shape, sharding=sharding), tree, place.shardings(tree, axes)
    )


def _batch(place: Placement, tree: Any) -> Any:
    if place.mesh is None:
        return tree
    sharding = batch_sharding(place.mesh)
    return jax.tree.map(lambda leaf: _struct(leaf.dtype, *leaf.shape, sharding=sharding), tree)


def _bytes(tree: Any, itemsize: int = 0) -> int:
    """Return the bytes per device of abstract arrays.

    Their elements have `itemsize` bytes if it is given.
    """

    def of(leaf: Any) -> int:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return 0
        shape = leaf.sharding.shard_shape(leaf.shape) if leaf.sharding else leaf.shape
        size: int = itemsize or leaf.dtype.itemsize
        return int(math.prod(shape)) * size

    return sum(map(of, jax.tree.leaves(tree)))


def matrices(parameters: Any) -> set[int]:
    """Return the sizes of a device's matrices, of one and all layers."""
    sizes = set()
    for path, leaf in jax.tree_util.tree_flatten_with_path(parameters)[0]:
        name, shard = jax.tree_util.keystr(path), leaf.sharding.shard_shape(leaf.shape)
        layer = shard["layers" in name :]
        if len(layer) > 1 and "_lora_" not in name and "bias" not in name:
            sizes |= {math.prod(shard), math.prod(layer)}
    return sizes


def _compiled(name: str, place: Placement, handed: int, program: Any, *arguments: Any) -> tuple[ProgramMemory, Any]:
    start = time.perf_counter()
    with place.scope():
        compiled = program.lower(*arguments).compile()
    memory = compiled.memory_analysis()
    program_memory = ProgramMemory(
        name,
        handed,
        memory.temp_size_in_bytes,
        memory.output_size_in_bytes - memory.alias_size_in_bytes,
        time.perf_counter() - start,
        roofline(compiled.as_text()) if place.platform == "cpu" else [],
    )
    return program_memory, compiled
