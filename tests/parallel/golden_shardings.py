"""Prints where every parameter of each family goes on each mesh: `python tests/parallel/golden_shardings.py`.

The output is kept in tests/golden/shardings.txt, so that a change of the table shows as a difference of that file.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
from flax import nnx

from embodied_mem.models.config import PRESETS, LoraConfig, logical_axes
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import add_lora
from embodied_mem.models.vision.qwen_vl_vision import VisionConfig, VisionTower, vision_axes
from embodied_mem.parallel.mesh import MeshShape, abstract_mesh
from embodied_mem.parallel.sharding import leaf_path, place

MESHES = {"fsdp=8": MeshShape(1, 8, 1), "tensor=8": MeshShape(1, 1, 8), "data=2 fsdp=2 tensor=2": MeshShape(2, 2, 2)}
PRESET_NAMES = ("tiny", "smollm2-135m", "llama-3.2-1b", "qwen2.5-7b", "qwen3-8b")


def _decoder(name: str) -> Decoder:
    return add_lora(Decoder(PRESETS[name], rngs=nnx.Rngs(0)), LoraConfig(), rngs=nnx.Rngs(0))


def lines() -> Iterator[str]:
    """Yields a heading per model and mesh, then one line per parameter; "-" is an axis that stays whole."""
    models = {
        name: (lambda name=name: _decoder(name), logical_axes(PRESETS[name], LoraConfig().rank))
        for name in PRESET_NAMES
    }
    models["qwen2.5-vl-7b vision"] = (
        lambda: VisionTower(VisionConfig(), rngs=nnx.Rngs(0)),
        vision_axes(VisionConfig()),
    )
    for name, (build, axes) in models.items():
        state = nnx.state(nnx.eval_shape(build))
        for mesh_name, shape in MESHES.items():
            yield f"# {name}, {mesh_name}"
            mesh = abstract_mesh(shape)
            for key_path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
                path = leaf_path(key_path)
                placed = place(path, leaf, axes, mesh)
                spec = " ".join(target or "-" for target in placed.split)
                note = f"  ({'; '.join(placed.reasons)})" if placed.reasons else ""
                yield f"{'.'.join(path)} {list(leaf.shape)}: {spec}{note}"
            yield ""


if __name__ == "__main__":
    print("\n".join(lines()), end="")
