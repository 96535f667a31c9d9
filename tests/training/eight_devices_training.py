"""Runs in a process of its own with 8 simulated devices; prints one JSON line that `test_mesh.py` reads.

On one device and on each mesh: an executor SFT step, a compiler SFT step with adapters and all five terms, a GRPO
gradient, and a rollout step of compiler and executor. The optimizer keeps the gradient as its state. Then the rollout
step by models that training has split over `fsdp`, sampled from there and from the layout for sampling.
"""

import dataclasses
import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.compiler.prompts import SOFT_TOKEN
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models import prompt_cache
from embodied_mem.models.config import DecoderConfig, LoraConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.training import grpo, models, optimizers
from embodied_mem.training.config import Config, GRPOConfig, MeshConfig, ModelConfig, SFTConfig, WorldConfig
from embodied_mem.training.data import CompilerBatch, ExecutorBatch, Row, fill_batch, pad_rows, spots_of
from embodied_mem.training.models import CompilerModel
from embodied_mem.training.sft import make_compiler_step, make_executor_step

MESHES = {"all": MeshShape(2, 2, 2), "tensor": MeshShape(1, 4, 2)}
NUM_SOFT, ROWS, LENGTH = 4, 6, 32
TOKENIZER = train_bpe(["go to fridge 1", "take apple 1 from fridge 1", "nothing happens"] * 4, 300)
SHAPE = DecoderConfig(
    vocab_size=TOKENIZER.vocab_size, width=32, num_layers=1, num_heads=4, num_kv_heads=2, head_dim=8, mlp_width=64,
    max_length=96,
)  # fmt: skip
CONFIG = Config(world=WorldConfig(num_train=8, num_valid=1), model=ModelConfig(lora=True))
keep_gradient = optax.GradientTransformation(
    lambda params: jax.tree.map(jnp.zeros_like, params),
    lambda gradient, state, params=None: (jax.tree.map(jnp.zeros_like, gradient), gradient),
)


def executor() -> Decoder:
    return Decoder(SHAPE, rngs=nnx.Rngs(0))


def compiler(dropout: float = LoraConfig().dropout) -> CompilerModel:
    decoder = add_lora(Decoder(SHAPE, rngs=nnx.Rngs(1)), LoraConfig(rank=4, dropout=dropout), rngs=nnx.Rngs(2))
    soft_config = SoftMemConfig(NUM_SOFT, embedding_std=0.02)
    model = CompilerModel(decoder, SoftMem(soft_config, compiler_width=32, executor_width=32, rngs=nnx.Rngs(3)))
    for name in ("query_lora_b", "value_lora_b"):  # zero at the start, which would hide the gradient of the other one
        adapter = getattr(decoder.layers, name)
        adapter[...] = jax.random.normal(jax.random.key(4), adapter.shape) * 0.1
    return model


def inputs():
    """(executor batch, compiler batch, references, guided), the same everywhere; 6 rows, which no mesh divides."""
    random = np.random.default_rng(0)

    def ids(low: int, high: int) -> list[int]:
        return random.integers(10, 290, size=random.integers(low, high)).tolist()

    soft = [TOKENIZER.soft_id] * NUM_SOFT
    acting = pad_rows([Row([*ids(4, 9), *soft, *ids(2, 5)], ids(2, 6)) for _ in range(ROWS)], 0, LENGTH)
    acting = acting._replace(suffix=acting.tokens == TOKENIZER.soft_id)
    compiling = pad_rows([Row(ids(4, 12), ids(3, 12), soft) for _ in range(ROWS)], 0, LENGTH)
    references = random.integers(10, 290, size=(ROWS, NUM_SOFT)).astype(np.int32)
    return acting, compiling, references, np.arange(ROWS) % 3 > 0


def policy_samples() -> list[grpo.PolicySample]:
    random = np.random.default_rng(1)
    samples = []
    for i in range(ROWS):
        prompt, tokens = random.integers(10, 290, size=8).tolist(), random.integers(10, 290, size=4 + i).tolist()
        row = Row(prompt, tokens, [TOKENIZER.soft_id] * NUM_SOFT)
        log_probs = -5.7 + 0.1 * random.standard_normal(len(tokens)).astype(np.float32)
        soft = 0.02 * random.standard_normal((NUM_SOFT, 32)).astype(np.float32)
        density = np.full(NUM_SOFT, 2.3, np.float32)
        samples.append(grpo.PolicySample(row, log_probs, soft, density, i % 2 == 0, (-1.0) ** i))
    return samples


def run(place: Placement) -> dict:
    """Losses, gradients, bytes of parameters on the first device, and what a rollout step says."""
    acting, compiling, references, guided = inputs()
    key = jax.random.key(5)
    report = {}

    model = executor()
    axes = models.parameter_axes(model)
    executor_graph, params, frozen = models.split_executor(model)
    state, places = optimizers.fresh_state(keep_gradient, params, axes, place)
    executor_state = jax.tree.map(jnp.copy, state.trainable)  # the step uses the other up
    weights = SFTConfig(prompt_weight=0.3)
    step = place.scoped(make_executor_step(executor_graph, frozen, keep_gradient, weights, places=places))
    read = ExecutorBatch(*place.batch(fill_batch((acting, references, spots_of(acting, 16)), place)))
    state, metrics = step(state, read, key)
    report["executor"] = described(state, metrics)

    model = compiler()
    axes = models.parameter_axes(model)
    graph, params, frozen = nnx.split(model, models.trainable_filter(CONFIG), ...)
    frozen = place.params(frozen, axes)
    state, places = optimizers.fresh_state(keep_gradient, params, axes, place)
    step = make_compiler_step(graph, frozen, executor_graph, keep_gradient, SFTConfig(), places=places)
    some = np.asarray([5, 1, 4, 2], np.int32)  # every row with guidance, which no mesh divides either
    acting = jax.tree.map(lambda array: array[some], acting)
    data = (compiling, references, guided, acting, some, spots_of(compiling, 16), spots_of(acting, 16))
    data = CompilerBatch(*place.batch(fill_batch(data, place)))
    trainable = jax.tree.map(jnp.copy, state.trainable)
    after, metrics = place.scoped(step)(state, executor_state, data, key)
    report["compiler"] = described(after, metrics) | {"frozen_bytes": held(frozen)}

    for microbatch in (0, 4) if place is ONE_DEVICE else (4,):  # without dropout, which a part draws anew
        graph, params, _ = nnx.split(compiler(dropout=0.0), models.trainable_filter(CONFIG), ...)
        state, _ = optimizers.fresh_state(keep_gradient, params, axes, place)
        sft = SFTConfig(microbatch=microbatch)
        step = make_compiler_step(graph, frozen, executor_graph, keep_gradient, sft, places=places)
        report[f"compiler {microbatch}"] = described(*place.scoped(step)(state, executor_state, data, key))
    memory = place.scoped(lambda: step.func.lower(*step.args, after, executor_state, data, key).compile())()
    report["loops"] = memory.as_text().count(" while(")

    gradient = place.scoped(grpo.make_grpo_gradient(graph, GRPOConfig(), places=places and places.trainable))

    def on_mesh(trainable, frozen, data, total):
        return gradient(trainable, frozen, place.batch(data), total)

    gradients, metrics = grpo.accumulate(on_mesh, trainable, frozen, policy_samples(), place.rows(4), 0)
    report["grpo"] = described(after._replace(trainable=trainable, optimizer=gradients), metrics)

    score = place.scoped(grpo.make_grpo_scores(graph, GRPOConfig()))
    rescored, gaps = grpo.rescore(
        lambda trainable, frozen, data: score(trainable, frozen, place.batch(data)),
        trainable, frozen, policy_samples(), place.rows(4), 0, GRPOConfig(max_importance=1.1),
    )  # fmt: skip
    numbers = [(s.log_probs, s.soft_log_density, *s.importance) for s in rescored]
    report["rescored"] = [list(gaps.values()), *(part.tolist() for own in numbers for part in own)]

    report["places"] = sorted({str(leaf.sharding.spec) for leaf in jax.tree.leaves(after) if place.mesh})
    acting_models = nnx.merge(graph, trainable, frozen), nnx.merge(executor_graph, executor_state)
    report["rollout"] = rollout(*acting_models, place)
    return report


def rollout(model: CompilerModel, acting: Decoder, place: Placement) -> dict:
    """What compiler and executor say in one step of 3 rows, which no mesh divides, and the compiler in the next one."""
    settings = {"length_buckets": (64,), "batch_buckets": (3,), "placement": place}
    compiles = MemoryCompiler(model.decoder, model.soft_mem, TOKENIZER, max_tokens=5, temperature=1.0, **settings)
    keys = jax.random.split(jax.random.key(6), 3)
    compiled = compiles.compile(["go to fridge 1", "take apple 1", "nothing"], keys)
    following = compiles.compile(
        ["nothing of it", "go to fridge 1 and 2"], keys
    )  # from what is kept; two rows are left
    executes = Executor(acting, TOKENIZER, max_action_tokens=5, **settings)
    prompt = f"go to\n{SOFT_TOKEN * NUM_SOFT}\n>"
    turn = executes.act([prompt] * 3, keys, [one.soft for one in compiled])
    return {
        "tokens": [one.tokens.tolist() for one in compiled],
        "log_probs": [one.log_probs.tolist() for one in compiled],
        "soft": [one.soft.tolist() for one in compiled],
        "following": [[one.tokens.tolist(), one.log_probs.tolist()] for one in following],
        "actions": turn.actions,
    }


def sampled(mesh: MeshConfig) -> dict:
    """What models split for training say, and the arrays that the programs which write tokens gather."""
    config = dataclasses.replace(CONFIG, mesh=mesh)
    trained, place = models.placement(config), models.acting_placement(config)
    model, acting, programs = compiler(), executor(), []
    for one in (model, acting):
        nnx.update(one, trained.params(nnx.state(one), models.parameter_axes(one)))
    write = prompt_cache._write

    def seen(*arguments, **settings):
        programs.append(write.lower(*arguments, **settings).compile().as_text())
        return write(*arguments, **settings)

    seen._cache_size = write._cache_size
    prompt_cache._write = seen
    said = rollout(models.move_model(model, place), models.move_model(acting, place), place)
    prompt_cache._write = write
    gathered = re.findall(r"= \w+\[([\d,]*)\]\S* all-gather\(", "\n".join(dict.fromkeys(programs)))
    return said | {"gathered": [[int(size) for size in shape.split(",")] for shape in gathered]}


def described(state, metrics) -> dict:
    gradients = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(state.optimizer)]
    numbers = {name: float(value) for name, value in metrics.items()}
    return {"metrics": numbers, "gradients": gradients, "bytes": [held(state.trainable), held(state.optimizer)]}


def held(tree) -> int:
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))


if __name__ == "__main__":
    assert jax.device_count() == 8, jax.devices()
    chosen = {name: MESHES[name] for name in sys.argv[1:] or MESHES}
    report = {"one": run(ONE_DEVICE)} | {name: run(placement_of(mesh)) for name, mesh in chosen.items()}
    report["sampled"] = {tensor: sampled(MeshConfig(1, 8, 1, sampling_tensor=tensor)) for tensor in (0, 1, 4)}
    print(json.dumps(report))
