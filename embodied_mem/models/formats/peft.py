"""LoRA adapters in the layout of the PEFT library, which transformers and vLLM read.

    save_peft(decoder, "adapter", base="Qwen/Qwen2.5-7B-Instruct")    # adapter_config.json, adapter_model.safetensors
    load_peft(decoder, "adapter")                                      # replaces adapters that the decoder has

There A is [rank, in] and B [out, rank], one pair per layer and projection. A setting that asks for more than LoRA on
query, key and value projections is refused by its name, settings that PEFT will have one day included.
"""

from __future__ import annotations

import json
import os
import pathlib

import jax.numpy as jnp
import numpy as np

from embodied_mem.atomic_file import write_bytes, write_text
from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.models.config import LoraConfig, lora_shapes
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import described_by, name_in_hf, read_json
from embodied_mem.models.lora import LoraParam, remove_lora

_MODULES = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
# Fields that change nothing about what a stored adapter computes, or that are read below.
_READ = {"r", "lora_alpha", "lora_dropout", "target_modules"}
_NEUTRAL = {
    "auto_mapping", "base_model_name_or_path", "inference_mode", "megatron_core", "peft_version", "qalora_group_size",
    "revision", "runtime_config", "task_type",
}  # fmt: skip
# Fields with a value that `lora.py` honours. Any other field may only be empty: it would ask for something else.
_PLAIN = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, False, "gaussian")}


def _peft_name(target: str, layer: int, letter: str, prefix: str) -> str:
    module = name_in_hf(target, layer, prefix).removesuffix(".weight")
    return f"base_model.model.{module}.lora_{letter.upper()}.weight"


def save_peft(decoder: Decoder, folder: str | os.PathLike[str], *, base: str = "", prefix: str = "model.") -> None:
    """Writes the adapters of a decoder as adapter_config.json and adapter_model.safetensors.

    Args:
        decoder: has adapters.
        folder: made if needed.
        base: name or folder of the model that the adapters belong to; PEFT looks there when it is not given a model.
        prefix: of the decoder within the model, "model." for text models, see `name_in_hf`.

    Raises:
        InvalidInputError: the decoder has no adapters, or its vision tower has some, which are not written.
    """
    from safetensors.numpy import save

    lora = decoder.lora
    if lora is None:
        raise InvalidInputError("save_peft: expected a decoder with adapters, got one without; see save_hf")
    if decoder.config.vision is not None and decoder.vision.lora is not None:
        raise InvalidInputError("save_peft: expected no adapters in the vision tower, got some; they are not written")
    arrays = {}
    for target in lora.targets:
        a = np.asarray(getattr(decoder.layers, f"{target}_lora_a")[...])
        b = np.asarray(getattr(decoder.layers, f"{target}_lora_b")[...])
        for i in range(decoder.config.num_layers):
            arrays[_peft_name(target, i, "a", prefix)] = np.ascontiguousarray(a[i].T)
            arrays[_peft_name(target, i, "b", prefix)] = np.ascontiguousarray(b[i].reshape(lora.rank, -1).T)
    described = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": [_MODULES[target] for target in lora.targets],
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / "adapter_model.safetensors", save(arrays, {"format": "pt"}))
    write_text(folder / "adapter_config.json", json.dumps(described, indent=1))


def _lora_config(path: pathlib.Path) -> LoraConfig:
    described = read_json(path)
    for field, value in described.items():
        if field in _READ | _NEUTRAL or value in _PLAIN.get(field, (None, False, [], {})):
            continue
        expected = repr(_PLAIN[field][0]) if field in _PLAIN else "nothing"
        raise InvalidInputError(f"{path}: {field}: expected {expected}, got {value!r}")
    ours = {module: target for target, module in _MODULES.items()}
    modules = described.get("target_modules")
    if not isinstance(modules, list) or any(module not in ours for module in map(str, modules)):
        raise InvalidInputError(f"{path}: target_modules: expected some of {sorted(ours)}, got {modules!r}")
    targets = tuple(target for target in _MODULES if _MODULES[target] in modules)
    with described_by(path):
        return LoraConfig(described["r"], described["lora_alpha"], described.get("lora_dropout", 0.0), targets)


def load_peft(decoder: Decoder, folder: str | os.PathLike[str], *, prefix: str = "model.") -> Decoder:
    """Returns the decoder, changed in place, with the adapters of a PEFT folder; those that it had are replaced.

    Raises:
        CheckpointError: a file or array is missing, of another shape, or left over.
        InvalidInputError: the adapter is more than LoRA on query, key and value projections.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = pathlib.Path(folder)
    lora, config = _lora_config(folder / "adapter_config.json"), decoder.config
    path = folder / "adapter_model.safetensors"
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: expected a safetensors file: {error}") from error
    stacked = {}
    for target in lora.targets:
        for name, (shape, _) in lora_shapes(config, target, lora.rank).items():
            letter = name[-1]
            merged = (shape[0], int(np.prod(shape[1:])))[::-1]
            layers: list[np.ndarray] = []
            for i in range(config.num_layers):
                key = _peft_name(target, i, letter, prefix)
                array = arrays.pop(key, None)
                if array is None or array.shape != merged:
                    got = "none" if array is None else f"shape {array.shape}"
                    raise CheckpointError(f"{path}: {key}: expected shape {merged}, got {got}")
                layers.append(array.T.reshape(shape))
            stacked[name] = jnp.asarray(np.stack(layers), jnp.float32)
    if arrays:
        raise CheckpointError(f"{path}: {len(arrays)} arrays have no place in the decoder, e.g. {min(arrays)}")
    remove_lora(decoder)
    for name, adapter in stacked.items():
        setattr(decoder.layers, name, LoraParam(adapter))
    decoder.lora = lora
    return decoder
