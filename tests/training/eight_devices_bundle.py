"""Runs in a process of its own with 8 simulated devices; prints one JSON line that `test_bundles.py` reads.

`python eight_devices_bundle.py FOLDER WEIGHTS`: on each mesh, the version of the weights in the folder, what the first
device holds of them, and the parts of stored arrays that were handed to devices, as shares of their arrays; and what
the models say on the last mesh.
"""

import json
import math
import sys

import jax
import numpy as np
from flax import nnx

from embodied_mem.compiler.prompts import SOFT_TOKEN
from embodied_mem.models.weights_version import weights_version
from embodied_mem.training import bundle as weights
from embodied_mem.training import models
from embodied_mem.training.config import MeshConfig

MESHES = {"training": None, "fsdp": MeshConfig(1, 8, 1), "all": MeshConfig(2, 2, 2)}


def said(config, tokenizer, executor, model) -> list:
    """Per prompt: the compiler's tokens, their log-probs, its soft tokens, and what the executor then says."""
    compiler = models.make_compiler(config, model, tokenizer, temperature=1.0, length_buckets=(64,), batch_buckets=(3,))
    keys = jax.random.split(jax.random.key(6), 3)
    compiled = compiler.compile(["go to fridge 1", "take apple 1", "nothing"], keys)
    soft = [np.asarray(one.soft) for one in compiled]
    acting = models.make_executor(config, executor, tokenizer, length_buckets=(2400,), batch_buckets=(3,))
    turn = acting.act([f"go to\n{SOFT_TOKEN * len(soft[0])}\n>"] * 3, keys, soft)
    return [
        [one.tokens.tolist(), one.log_probs.tolist(), one.soft.tolist(), action]
        for one, action in zip(compiled, turn.actions)
    ]


def held(module: nnx.Module) -> int:
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(nnx.state(module)))


def main() -> None:
    assert jax.device_count() == 8, jax.devices()
    place_array, shares = weights.place_array, []

    def watched(shape, sharding, read):
        def part(index):
            piece = read(index)
            shares.append(piece.size / math.prod(shape))
            return piece

        return place_array(shape, sharding, part)

    weights.place_array = watched
    report = {}
    for name, mesh in MESHES.items():
        shares.clear()
        bundle = weights.load_bundle(sys.argv[1], mesh=mesh, weights=sys.argv[2])
        report[name] = {
            "version": weights_version(bundle.executor, bundle.model),
            "bytes": [held(bundle.executor), held(bundle.model)],
            "shares": shares.copy(),
        }
    report["said"] = said(bundle.config, bundle.tokenizer, bundle.executor, bundle.model)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
