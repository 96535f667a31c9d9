"""Runs in a process of its own with 8 simulated devices; prints one JSON line that `test_sharded_loading.py` reads.

For each family and mesh: a checkpoint of several files is loaded onto the mesh in small pieces; weights and logits
against one device, bytes held per device, the largest part that was read at once, how many bytes were read in all.
"""

import json
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.models import assembly
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import HFTensor, load_hf, save_hf
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import placement_of

MESHES = {"fsdp": MeshShape(1, 8), "all": MeshShape(2, 2, 2), "tensor": MeshShape(2, 1, 4)}
SIZES = {
    "vocab_size": 2048, "width": 256, "num_layers": 4, "num_heads": 8, "num_kv_heads": 4, "head_dim": 32,
    "mlp_width": 512, "scan_layers": True, "attention_block": 512,
}  # fmt: skip
FAMILIES = {
    "llama": DecoderConfig(**SIZES),
    "qwen2": DecoderConfig(**SIZES, qkv_bias=True, tie_embeddings=False),
    "qwen3": DecoderConfig(**SIZES, qk_norm=True, param_dtype="bfloat16"),
}


def main() -> None:
    assert jax.device_count() == 8, jax.devices()
    read_whole, parts = HFTensor.read, []

    def read(self, index):
        part = read_whole(self, index)
        parts.append(part.nbytes)
        return part

    HFTensor.read = read
    assembly._PIECE_BYTES = 100_000  # several of each large array
    tokens = np.random.default_rng(0).integers(0, 2048, (8, 6), dtype=np.int32)
    logits = nnx.jit(lambda decoder, tokens: decoder.logits(decoder(tokens)))
    report = {}
    for family, config in FAMILIES.items():
        with tempfile.TemporaryDirectory() as directory:
            decoder = Decoder(config, rngs=nnx.Rngs(0))
            save_hf(decoder, directory, max_shard_bytes=2_500_000)
            total = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(decoder)))
            largest = max(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(decoder)))
            files = len(list(pathlib.Path(directory).glob("*.safetensors")))
            expected = logits(decoder, tokens)
            report[family] = {"total": total, "largest": largest, "files": files}
            for name, shape in MESHES.items():
                placement = placement_of(shape)
                parts.clear()
                loaded = load_hf(directory, shardings=placement.shardings, dtype="float32")
                with placement.scope():
                    got = logits(loaded, placement.batch(tokens))
                leaves = jax.tree.leaves(nnx.state(loaded))
                report[family][name] = {
                    "difference": float(jnp.abs(np.asarray(got) - np.asarray(expected)).max()),
                    "held": max(
                        sum(s.data.nbytes for leaf in leaves for s in leaf.addressable_shards if s.device == device)
                        for device in jax.devices()
                    ),
                    "read": sum(parts),
                    "part": max(parts),
                    "same": all(
                        bool((np.asarray(a) == np.asarray(b)).all())
                        for a, b in zip(leaves, jax.tree.leaves(nnx.state(decoder)), strict=True)
                    ),
                }
    print(json.dumps(report))


if __name__ == "__main__":
    sys.exit(main())
