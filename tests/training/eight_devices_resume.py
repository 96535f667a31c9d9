"""Runs in a process of its own with 8 simulated devices; its JSON line is for `test_eight_devices_resume.py`.

Episodes in eight rows on one device, and in three refilled ones on the mesh. Then executor SFT on the mesh: straight,
and stopped by SIGTERM and gone on with on another machine, with the run folder in a bucket.
"""

import json
import os
import pathlib
import signal
import sys
import tempfile

sys.path += [str(pathlib.Path(__file__).resolve().parents[1] / "doubles")]

import jax
import numpy as np
import optax
from flax import nnx
from local_bucket import serve
from scripted_play import refilled

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.memory import Experiences
from embodied_mem.parallel import object_store
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.training import models, optimizers
from embodied_mem.training.config import SFTConfig
from embodied_mem.training.data import ExecutorBatch, fill_batch, spots_of
from embodied_mem.training.loop import read_metrics, run_loop
from embodied_mem.training.sft import make_executor_step
from tests.training import eight_devices_training as small

MESH = MeshShape(2, 2, 2)
STEPS, STOPPED_IN = 5, 2


def played(place: Placement, num_envs: int) -> dict:
    """What is said in episodes of 1 to 3 steps, `num_envs` side by side."""
    model, acting = small.compiler(), small.executor()
    if place.mesh:
        for one in (model, acting):
            nnx.update(one, place.params(nnx.state(one), models.parameter_axes(one)))
    settings = {"length_buckets": (896,), "batch_buckets": (8,), "placement": place}
    compiler = MemoryCompiler(
        model.decoder, model.soft_mem, small.TOKENIZER, max_tokens=4, temperature=1.0, **settings
    )  # fmt: skip
    executor = Executor(acting, small.TOKENIZER, max_action_tokens=3, **settings)
    world, trajectories = refilled(num_envs, executor, make_delivery("compiled", compiler), Experiences())
    records = [one.record for trajectory in trajectories for one in trajectory.delivered]
    return {
        "resets": world.resets,
        "actions": [[step.action for step in trajectory.episode.steps] for trajectory in trajectories],
        "tokens": [record.tokens.tolist() for record in records],
        "log_probs": [np.asarray(record.log_probs).tolist() for record in records],
    }


def trained(folder: pathlib.Path, place: Placement, stopped_in: int = STEPS) -> list[float]:
    """Sums of the trained arrays; SIGTERM comes in a step."""
    acting, _, references, _ = small.inputs()
    model = small.executor()
    graph, params, frozen = models.split_executor(model)
    optimizer = optax.adam(1e-2)
    state, places = optimizers.fresh_state(optimizer, params, models.parameter_axes(model), place)
    step = place.scoped(make_executor_step(graph, frozen, optimizer, SFTConfig(), places=places))
    batch = ExecutorBatch(*place.batch(fill_batch((acting, references, spots_of(acting, 16)), place)))

    def step_of(state, number, _):
        if number == stopped_in:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(state, batch, jax.random.key(number))

    last = run_loop("executor", folder, small.CONFIG, state, step_of, num_steps=STEPS, checkpoint_every=4)
    split = [leaf for leaf in jax.tree.leaves(last.trainable) if not leaf.sharding.is_fully_replicated]
    assert split, "the mesh splits something"
    return [float(np.asarray(leaf, np.float64).sum()) for leaf in jax.tree.leaves(last.trainable)]


def on_machine(name: str, folder: pathlib.Path) -> pathlib.Path:
    """The run's folder on another machine."""
    os.environ["HOME"] = str(folder / name)
    object_store._stores.clear()
    return object_store.local_copy("gs://bucket/run")


if __name__ == "__main__":
    assert jax.device_count() == 8, jax.devices()
    place = placement_of(MESH)
    report = {"one": played(ONE_DEVICE, 8), "refilled": played(place, 3)}
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        serve(root)
        report["straight"] = trained(root / "straight", place)
        try:
            trained(on_machine("first", root), place, STOPPED_IN)
        except SystemExit as stop:
            report["status"] = stop.code
        folder = on_machine("second", root)
        report["found"] = len(read_metrics(folder / "executor"))
        report["resumed"] = trained(folder, place)
        report["losses"] = [
            [line["loss"] for line in read_metrics(run / "executor")] for run in (root / "straight", folder)
        ]
    print(json.dumps(report))
