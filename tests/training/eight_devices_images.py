"""Runs in a process of its own with 8 simulated devices; prints one JSON line that `test_image_steps.py` reads.

On one device and on a mesh of 2 x 2 x 2: a supervised step, on pictures, of a compiler with adapters in decoder and
tower, and what compiler and executor then say of these.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "doubles"))

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from small_seeing import COUNT, SIDE, picture, reader, seeing, tokenizer

from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.training import data, models, optimizers
from embodied_mem.training.config import Config, DataConfig, MemoryConfig, ModelConfig, WorldConfig
from embodied_mem.training.data import CompilerBatch, compiler_batch
from embodied_mem.training.sft import make_compiler_step
from embodied_mem.training.teachers.episodes import Sample

CONFIG = Config(
    world=WorldConfig(num_train=4, num_valid=4),
    memory=MemoryConfig(num_soft=4),
    model=ModelConfig(lora=True, images=COUNT, image_side=SIDE, vision_lora=True),
    data=DataConfig(no_brief=0.0),
)
SAMPLES = [
    Sample(
        "goal: find the mug\n=", "", "hybrid\n", ("find the mug", "", ()), "", "go to desk", "desk 1", "go to desk 1",
        images=(picture(i),), remembered=(picture(10 + i),) * (i % 2),
    )
    for i in range(3)
]  # fmt: skip
SETTINGS = {"length_buckets": (128,), "batch_buckets": (2,)}


def run(place: Placement) -> dict:
    """Metrics, what is trained after a step, and what is said; bytes of the tower on the first device."""
    model, executor = models.compiler_of(CONFIG, seeing(0, layers=1), 48, 0.02), seeing(1, layers=1)
    axes = models.parameter_axes(model)
    graph, params, frozen = models.split_model(CONFIG, model)
    frozen = place.params(frozen, axes)
    optimizer = optax.sgd(1e-3)
    state, places = optimizers.fresh_state(optimizer, params, axes, place)
    executor_graph, executor_state = nnx.split(executor)
    executor_state = place.params(executor_state, models.parameter_axes(executor))
    step = make_compiler_step(graph, frozen, executor_graph, optimizer, CONFIG.compiler_sft, places=places)
    readers = reader(model.decoder), reader(executor)
    batch = compiler_batch(tokenizer(), SAMPLES, CONFIG, 1.0, np.random.default_rng(0), readers)
    batch = CompilerBatch(*place.batch(data.fill_batch(batch, place)))
    state, metrics = place.scoped(step)(state, executor_state, batch, place.whole(jax.random.key(0)))
    trained = nnx.merge(graph, state.trainable, frozen)
    acting = nnx.merge(executor_graph, executor_state)
    compiler = MemoryCompiler(
        trained.decoder, trained.soft_mem, tokenizer(), max_tokens=4, placement=place, reader=readers[0], **SETTINGS
    )
    keys, shown = jax.random.split(jax.random.key(1), 2), [(picture(1), picture(2)), (picture(3),)]
    compiled = compiler.compile(["goal: find the mug\n="] * 2, keys, pictures=shown)
    executes = Executor(acting, tokenizer(), max_action_tokens=4, placement=place, reader=readers[1], **SETTINGS)
    tower = jax.tree.leaves(nnx.state(trained.decoder.vision))
    return {
        "metrics": {name: float(value) for name, value in metrics.items()},
        "trained": [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(state.trainable)],
        "soft": [one.soft.tolist() for one in compiled],
        "actions": executes.act(["find the mug\n>"] * 2, keys, pictures=shown).actions,
        "tower_bytes": sum(leaf.addressable_shards[0].data.nbytes for leaf in map(jnp.asarray, tower)),
    }


if __name__ == "__main__":
    assert jax.device_count() == 8, jax.devices()
    print(json.dumps({"one": run(ONE_DEVICE), "mesh": run(placement_of(MeshShape(2, 2, 2)))}))
