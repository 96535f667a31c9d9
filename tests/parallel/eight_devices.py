"""Runs in a process of its own with 8 simulated devices; prints one JSON line that `test_sharding.py` reads.

For each mesh: loss and gradients of a small decoder against one device, the bytes that each
device holds against the plan, and the compiler's activation memory against the plan's estimate.
"""

import json
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.models.config import DecoderConfig, logical_axes
from embodied_mem.models.decoder import Decoder, score_tokens
from embodied_mem.parallel.checkpoints import Checkpoints
from embodied_mem.parallel.mesh import MeshShape, make_mesh
from embodied_mem.parallel.placement import Placement
from embodied_mem.parallel.sharding import batch_sharding, shardings
from experiments.plan.plan import Pass, Phase, PlannedModel, activation_bytes, plan

MESHES = {"fsdp": MeshShape(1, 8), "all": MeshShape(2, 2, 2), "tensor": MeshShape(2, 1, 4)}
# kv_heads=2 is not divisible by tensor=4, so that mesh falls back; everything else divides.
CONFIG = DecoderConfig(
    vocab_size=96, width=32, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=8, mlp_width=64, qkv_bias=True,
    tie_embeddings=False, scan_layers=True, attention_block=8,
)  # fmt: skip
OPTIMIZER = optax.adamw(1e-2, weight_decay=0.01)


def batch() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 17, size=(8, 1))
    return {"tokens": rng.integers(0, 96, size=(8, 16), dtype=np.int32), "mask": np.arange(16)[None] < lengths}


def loss_of(graph, remat: bool):
    def loss(params, batch):
        decoder = nnx.merge(graph, params)
        log_probs = score_tokens(
            decoder, decoder(batch["tokens"], mask=batch["mask"], remat=remat), batch["tokens"]
        ).log_probs
        return -(log_probs * batch["mask"]).sum() / batch["mask"].sum()

    return jax.value_and_grad(loss)


def largest_difference(a, b) -> float:
    return max(
        float(np.abs(np.asarray(x) - np.asarray(y)).max()) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b))
    )


def activation_ratio(shape: MeshShape, remat: bool) -> float:
    """Compiler's temporary bytes per device over the estimate, for a shape where activations dominate."""
    config = DecoderConfig(
        vocab_size=512, width=128, num_layers=6, num_heads=8, num_kv_heads=4, head_dim=16, mlp_width=384,
        scan_layers=True, attention_block=128,
    )  # fmt: skip
    mesh = make_mesh(shape)
    graph, params = nnx.split(nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0))))
    places = shardings(params, logical_axes(config), mesh).tree
    params = jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), params, places)
    tokens = jax.ShapeDtypeStruct((16, 256), jnp.int32, sharding=batch_sharding(mesh))

    def loss(params, tokens):
        decoder = nnx.merge(graph, params)
        return -score_tokens(decoder, decoder(tokens, remat=remat), tokens).log_probs.mean()

    with jax.set_mesh(mesh):
        compiled = jax.jit(jax.grad(loss), out_shardings=places).lower(params, tokens).compile()
    estimate = activation_bytes(config, mesh.shape, 16, 256, remat)
    return compiled.memory_analysis().temp_size_in_bytes / estimate


def main() -> None:
    assert jax.device_count() == 8, jax.devices()
    graph, params = nnx.split(Decoder(CONFIG, rngs=nnx.Rngs(0)))
    axes = logical_axes(CONFIG)
    loss, gradients = jax.jit(loss_of(graph, remat=False))(params, batch())
    report = {"loss": float(loss), "gradient_size": max(float(jnp.abs(x).max()) for x in jax.tree.leaves(gradients))}
    for name, shape in MESHES.items():
        mesh = make_mesh(shape)
        state = (params, OPTIMIZER.init(params))
        places = shardings(state, axes, mesh)
        state = jax.device_put(state, places.tree)
        with jax.set_mesh(mesh):
            step = jax.jit(loss_of(graph, remat=True), out_shardings=(None, places.tree[0]))
            actual = step(state[0], Placement(mesh).batch(batch()))
        model = PlannedModel("decoder", CONFIG, params, axes, lambda path: True)
        planned = plan([model], shape.resolve(8), [Phase("sft", (Pass("decoder", 8, 16),), trains=True)], OPTIMIZER)
        report[name] = {
            "loss": float(actual[0]),
            "gradients": largest_difference(actual[1], gradients),
            "held": [sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(tree)) for tree in state],
            "planned": [planned.models[0].parameters, planned.models[0].optimizer],
            "fallbacks": places.fallbacks,
        }
    with tempfile.TemporaryDirectory() as directory:  # written on the last mesh, read onto another one
        checkpoints = Checkpoints(directory)
        checkpoints.save(1, state[0])
        checkpoints.wait()
        places = shardings(params, axes, make_mesh(MESHES["fsdp"])).tree
        like = jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), params, places)
        restored = Checkpoints(directory).restore(like=like).arrays
        report["restored"] = largest_difference(restored, params)
        report["restored_places"] = all(
            x.sharding == s for x, s in zip(jax.tree.leaves(restored), jax.tree.leaves(places))
        )
    report["activation_ratios"] = [activation_ratio(MESHES["fsdp"], remat=True), activation_ratio(MESHES["all"], False)]
    print(json.dumps(report))


if __name__ == "__main__":
    sys.exit(main())
