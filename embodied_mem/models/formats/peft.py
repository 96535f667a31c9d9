"""LoRA adapters in the layout of the PEFT library, which transformers and vLLM read.

    save_peft(decoder, "adapter", base="Qwen/Qwen2.5-7B-Instruct")    # adapter_config.json, adapter_model.safetensors
    load_peft(decoder, "adapter")                                      # replaces adapters that the decoder has

There A is [rank, in] and B [out, rank], one pair per layer and projection. A setting that asks for more than LoRA on
query, key and value projections is refused by its name, settings that PEFT will have one day included. Names are those
of transformers, which has the decoder of Qwen2.5-VL as a part of the whole model: one with `mrope_sections` is written
as such, even where its tower was left out. Adapters of the tower stand beside it, with the same rank and scale.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.atomic_file import write_bytes, write_text
from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.models.config import LoraConfig, lora_shapes
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import described_by, name_in_hf, read_json
from embodied_mem.models.lora import LoraParam, remove_lora
from embodied_mem.models.vision.qwen_vl_vision import adapter_shapes

_MODULES = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
_TOWER, _TOWER_MODULE = "model.visual.", "qkv"  # a suffix that no module of the decoder has
# Fields that change nothing about what a stored adapter computes, or that are read below.
_READ = {"r", "lora_alpha", "lora_dropout", "target_modules"}
_NEUTRAL = {
    "auto_mapping", "base_model_name_or_path", "inference_mode", "megatron_core", "peft_version", "qalora_group_size",
    "revision", "runtime_config", "task_type",
}  # fmt: skip
# Fields with a value that `lora.py` honours. Any other field may only be empty: it would ask for something else.
_PLAIN = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, False, "gaussian")}


def _adapters(
    decoder: Decoder, lora: LoraConfig, in_tower: bool
) -> Iterator[tuple[nnx.Module, str, tuple[int, ...], list[str]]]:
    """Yield (holder, name, shape, published names) of every array of adapters.

    The shape is that in a layer; there is one published name for each layer.
    """
    config = decoder.config
    prefix = "model.language_model." if config.mrope_sections else "model."

    def published(modules: list[str], letter: str) -> list[str]:
        return [f"base_model.model.{module}.lora_{letter.upper()}.weight" for module in modules]

    for target in lora.targets:
        modules = [name_in_hf(target, i, prefix).removesuffix(".weight") for i in range(config.num_layers)]
        for name, (shape, _) in lora_shapes(config, target, lora.rank).items():
            yield decoder.layers, name, shape, published(modules, name[-1])
    if in_tower:
        assert config.vision is not None
        modules = [f"{_TOWER}blocks.{i}.attn.{_TOWER_MODULE}" for i in range(config.vision.num_layers)]
        for name, (shape, _) in adapter_shapes(config.vision, lora.rank).items():
            yield decoder.vision.blocks, name, shape, published(modules, name[-1])


def save_peft(decoder: Decoder, folder: str | os.PathLike[str], *, base: str = "") -> None:
    """Writes the adapters of a decoder as adapter_config.json and adapter_model.safetensors.

    Args:
        decoder: has adapters.
        folder: made if needed.
        base: name or folder of the model that the adapters belong to; PEFT looks there when it is not given a model.

    Raises:
        InvalidInputError: the decoder has no adapters, or its vision tower has some of another rank or scale.
    """
    from safetensors.numpy import save

    lora = decoder.lora
    if lora is None:
        raise InvalidInputError("save_peft: expected a decoder with adapters, got one without; see save_hf")
    tower = None if decoder.config.vision is None else decoder.vision.lora
    if tower is not None and (tower.rank, tower.alpha) != (lora.rank, lora.alpha):
        raise InvalidInputError(
            f"save_peft: expected adapters of the vision tower with rank {lora.rank} and alpha {lora.alpha}, as the "
            f"decoder's, got {tower.rank} and {tower.alpha}"
        )
    arrays = {}
    for holder, ours, _, published in _adapters(decoder, lora, tower is not None):
        for name, array in zip(published, np.asarray(getattr(holder, ours)[...]), strict=True):
            arrays[name] = np.ascontiguousarray(array.reshape(len(array), -1).T)
    described = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": [*(_MODULES[target] for target in lora.targets), *([_TOWER_MODULE] if tower else [])],
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / "adapter_model.safetensors", save(arrays, {"format": "pt"}))
    write_text(folder / "adapter_config.json", json.dumps(described, indent=1))


def _lora_config(path: pathlib.Path, sees: bool) -> tuple[LoraConfig, bool]:
    """Return (the adapters, whether a vision tower has some, too)."""
    described = read_json(path)
    for field, value in described.items():
        if field in _READ | _NEUTRAL or value in _PLAIN.get(field, (None, False, [], {})):
            continue
        expected = repr(_PLAIN[field][0]) if field in _PLAIN else "nothing"
        raise InvalidInputError(f"{path}: {field}: expected {expected}, got {value!r}")
    known = [*_MODULES.values(), *([_TOWER_MODULE] if sees else [])]
    modules = described.get("target_modules")
    if not isinstance(modules, list) or any(module not in known for module in map(str, modules)):
        raise InvalidInputError(f"{path}: target_modules: expected some of {sorted(known)}, got {modules!r}")
    targets = tuple(target for target in _MODULES if _MODULES[target] in modules)
    with described_by(path):
        lora = LoraConfig(described["r"], described["lora_alpha"], described.get("lora_dropout", 0.0), targets)
    return lora, _TOWER_MODULE in modules


def load_peft(decoder: Decoder, folder: str | os.PathLike[str]) -> Decoder:
    """Puts a PEFT folder's adapters into the decoder and returns it.

    The decoder is changed in place; adapters that it had are replaced, its vision tower's too.

    Raises:
        CheckpointError: a file or array is missing, of another shape, or left over.
        InvalidInputError: the adapter is more than LoRA on query, key and value projections.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = pathlib.Path(folder)
    lora, in_tower = _lora_config(folder / "adapter_config.json", decoder.config.vision is not None)
    path = folder / "adapter_model.safetensors"
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: expected a safetensors file: {error}") from error
    read = []
    for holder, name, shape, published in _adapters(decoder, lora, in_tower):
        merged = (shape[0], int(np.prod(shape[1:])))[::-1]
        layers: list[np.ndarray] = []
        for key in published:
            array = arrays.pop(key, None)
            if array is None or array.shape != merged:
                got = "none" if array is None else f"shape {array.shape}"
                raise CheckpointError(f"{path}: {key}: expected shape {merged}, got {got}")
            layers.append(array.T.reshape(shape))
        read.append((holder, name, jnp.asarray(np.stack(layers), jnp.float32)))
    if arrays:
        raise CheckpointError(f"{path}: {len(arrays)} arrays have no place in the decoder, e.g. {min(arrays)}")
    remove_lora(decoder)
    for holder, name, adapter in read:
        setattr(holder, name, LoraParam(adapter))
    decoder.lora = lora
    if in_tower:
        decoder.vision.lora = lora
    return decoder
