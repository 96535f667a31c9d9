"""Hugging Face checkpoints (Llama, Qwen2, Qwen3): config.json and safetensors, read into a decoder and written.

    decoder = load_hf("Qwen2.5-0.5B-Instruct")                    # config from config.json
    decoder = load_hf(folder, dtype="float32", param_dtype="float32")
    save_hf(decoder, folder)

Files are read one array at a time, so that memory holds the decoder and one array. Linear weights are stored there as
[out, in] and here as [in, out] with heads apart and layers stacked; the rotary halves are the same on both sides.
"""

from __future__ import annotations

import json
import os
import pathlib

import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.models.config import DecoderConfig, RopeScaling, layer_shapes
from embodied_mem.models.decoder import Decoder

_LAYER_NAMES = {
    "attention_norm": "input_layernorm.weight",
    "query": "self_attn.q_proj.weight",
    "key": "self_attn.k_proj.weight",
    "value": "self_attn.v_proj.weight",
    "output": "self_attn.o_proj.weight",
    "query_bias": "self_attn.q_proj.bias",
    "key_bias": "self_attn.k_proj.bias",
    "value_bias": "self_attn.v_proj.bias",
    "query_norm": "self_attn.q_norm.weight",
    "key_norm": "self_attn.k_norm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
}
_MODEL_TYPES = ("llama", "qwen2", "qwen3")
_MAX_SHARD_BYTES = 4 << 30


def config_from_hf(described: dict, **overrides: object) -> DecoderConfig:
    """Returns the decoder config that a Hugging Face config.json describes, with `overrides` put over it.

    Raises:
        InvalidInputError: for a model type, activation, sliding window or rotary scaling that the decoder does not
            have; nothing that changes the result is ignored.
    """
    kind = described.get("model_type")
    if kind not in _MODEL_TYPES:
        raise InvalidInputError(f"config.json: model_type: expected one of {', '.join(_MODEL_TYPES)}, got {kind!r}")
    if described.get("hidden_act", "silu") != "silu":
        raise InvalidInputError(f"config.json: hidden_act: expected silu, got {described['hidden_act']!r}")
    if described.get("use_sliding_window"):
        raise InvalidInputError("config.json: use_sliding_window: expected false, got true")
    if described.get("mlp_bias"):
        raise InvalidInputError("config.json: mlp_bias: expected false, got true")
    if described.get("attention_bias"):
        raise InvalidInputError("config.json: attention_bias: expected false, got true (it would bias o_proj as well)")
    # transformers 5 moved rope_theta and the scaling into one dict.
    rope = described.get("rope_parameters") or described.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    scaling = None
    if rope_type == "llama3":
        scaling = RopeScaling(
            rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
        )
    elif rope_type != "default":
        raise InvalidInputError(f"config.json: rope type: expected default or llama3, got {rope_type!r}")
    try:
        heads = described["num_attention_heads"]
        fields = {
            "vocab_size": described["vocab_size"],
            "width": described["hidden_size"],
            "num_layers": described["num_hidden_layers"],
            "num_heads": heads,
            "num_kv_heads": described.get("num_key_value_heads", heads),
            "head_dim": described.get("head_dim") or described["hidden_size"] // heads,
            "mlp_width": described["intermediate_size"],
            "norm_eps": described["rms_norm_eps"],
        }
    except KeyError as error:
        raise InvalidInputError(f"config.json: expected a field {error}, got none") from error
    dtype = described.get("torch_dtype") or described.get("dtype") or "float32"
    fields |= {
        "rope_theta": float(described.get("rope_theta") or rope.get("rope_theta") or 10_000.0),
        "rope_scaling": scaling,
        "qkv_bias": kind == "qwen2",
        "qk_norm": kind == "qwen3",
        "tie_embeddings": bool(described.get("tie_word_embeddings", False)),
        "max_length": described.get("max_position_embeddings", 2048),
        "dtype": dtype,
        "param_dtype": dtype,
        "scan_layers": fields["num_layers"] > 8,
        "attention_block": 512,
    }
    return DecoderConfig(**(fields | overrides))


def config_to_hf(config: DecoderConfig) -> dict:
    """Returns the config.json of a decoder; the model type follows from its biases and norms.

    Raises:
        InvalidInputError: when no published family has this shape: both QKV biases and QK norms, or smear.
    """
    if config.qkv_bias and config.qk_norm:
        raise InvalidInputError("save_hf: expected qkv_bias (qwen2) or qk_norm (qwen3) or neither (llama), got both")
    if config.smear:
        raise InvalidInputError("save_hf: expected smear=False, no published family has it; use training.weights")
    kind = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    described = {
        "architectures": [{"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind] + "ForCausalLM"],
        "model_type": kind,
        "vocab_size": config.vocab_size,
        "hidden_size": config.width,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.mlp_width,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "hidden_act": "silu",
        "tie_word_embeddings": config.tie_embeddings,
        "max_position_embeddings": config.max_length,
        "torch_dtype": config.param_dtype,
    }
    scaling = config.rope_scaling
    if scaling is not None:
        described["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
            "original_max_position_embeddings": scaling.original_length,
        }
    return described


def _to_ours(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return array.reshape(shape) if array.ndim == 1 else array.T.reshape(shape)


def _to_theirs(name: str, array: np.ndarray, width: int) -> np.ndarray:
    if name.endswith("_norm"):
        return array
    if name.endswith("_bias"):
        return array.reshape(-1)
    rows = width if name in ("query", "key", "value", "gate", "up") else array.size // width
    return np.ascontiguousarray(array.reshape(rows, -1).T)


class _Folder:
    """Arrays of a checkpoint folder by name, whichever of its files they lie in."""

    def __init__(self, folder: pathlib.Path):
        from safetensors import SafetensorError, safe_open

        index = folder / "model.safetensors.index.json"
        if index.is_file():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
            paths = [folder / name for name in names]
        else:
            paths = sorted(folder.glob("*.safetensors"))
        if not paths:
            raise CheckpointError(f"{folder}: expected *.safetensors files, found none")
        self.folder, self.files = folder, {}
        for path in paths:
            try:
                file = safe_open(os.fspath(path), framework="flax")
                self.files |= dict.fromkeys(file.keys(), file)
            except (OSError, SafetensorError) as error:
                raise CheckpointError(f"{path}: expected a safetensors file: {error}") from error
        self.left = set(self.files)

    def read(self, name: str, size: int) -> np.ndarray:
        if name not in self.files:
            raise CheckpointError(f"{self.folder}: expected an array {name}, got none among {len(self.files)}")
        self.left.discard(name)
        array = np.asarray(self.files[name].get_tensor(name))
        if array.size != size:
            raise CheckpointError(f"{self.folder}: {name}: expected {size} entries, got shape {array.shape}")
        return array


def load_hf(folder: str | os.PathLike, **overrides: object) -> Decoder:
    """Returns a decoder with the weights of a Hugging Face folder.

    Args:
        folder: holds config.json and safetensors, sharded or not.
        **overrides: fields of `DecoderConfig`, e.g. `dtype`, `param_dtype`, `scan_layers`, `max_length`.

    Raises:
        CheckpointError: when a file or array is missing, of another size, or left over (nothing is ignored except
            rotary tables and a head that repeats tied embeddings).
        InvalidInputError: when the architecture is not one of ours, see `config_from_hf`.
    """
    folder = pathlib.Path(folder)
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder}: expected a config.json, found none")
    config = config_from_hf(json.loads((folder / "config.json").read_text()), **overrides)
    decoder = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0)))
    dtype, files = jnp.dtype(config.param_dtype), _Folder(folder)
    table = (config.vocab_size, config.width)
    state: dict[tuple[str, ...], object] = {}
    state[("embedding",)] = files.read("model.embed_tokens.weight", table[0] * table[1]).reshape(table).astype(dtype)
    state[("final_norm",)] = files.read("model.norm.weight", config.width).astype(dtype)
    if not config.tie_embeddings:
        head = files.read("lm_head.weight", table[0] * table[1])
        state[("head",)] = head.reshape(table).T.astype(dtype)
    for name, (shape, _) in layer_shapes(config).items():
        stacked = np.empty((config.num_layers, *shape), dtype)
        for i in range(config.num_layers):
            array = files.read(f"model.layers.{i}.{_LAYER_NAMES[name]}", stacked[i].size)
            stacked[i] = _to_ours(name, array, shape)
        state["layers", name] = stacked
    left = [n for n in files.left if not n.endswith("rotary_emb.inv_freq")]
    if config.tie_embeddings:
        left = [n for n in left if n != "lm_head.weight"]
    if left:
        raise CheckpointError(f"{folder}: {len(left)} arrays have no place in the decoder, e.g. {sorted(left)[0]}")
    for path, variable in nnx.to_flat_state(nnx.state(decoder)):
        variable.set_value(jnp.asarray(state[path]))
        nnx.update(decoder, nnx.from_flat_state([(path, variable)]))
    return decoder


def save_hf(decoder: Decoder, folder: str | os.PathLike, *, max_shard_bytes: int = _MAX_SHARD_BYTES) -> None:
    """Writes config.json and safetensors, split into files of at most `max_shard_bytes` where there is more.

    Raises:
        InvalidInputError: when adapters are present (merge or save them apart), or no family has this shape.
    """
    from safetensors.numpy import save_file

    if decoder.lora is not None:
        raise InvalidInputError("save_hf: expected a decoder without adapters; call merge_lora first, or save_lora")
    config = decoder.config
    described = config_to_hf(config)
    arrays = {
        "model.embed_tokens.weight": np.asarray(decoder.embedding[...]),
        "model.norm.weight": np.asarray(decoder.final_norm[...]),
    }
    if not config.tie_embeddings:
        arrays["lm_head.weight"] = np.ascontiguousarray(np.asarray(decoder.head[...]).T)
    for name, stacked in decoder.layers.arrays().items():
        for i, array in enumerate(np.asarray(stacked)):
            arrays[f"model.layers.{i}.{_LAYER_NAMES[name]}"] = _to_theirs(name, array, config.width)
    shards: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, array in arrays.items():
        if shards[-1] and size + array.nbytes > max_shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = array
        size += array.nbytes

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weight_map = {}
    for i, shard in enumerate(shards):
        name = "model.safetensors" if len(shards) == 1 else f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        partial = folder / f"{name}.partial"
        save_file(shard, partial, metadata={"format": "pt"})
        os.replace(partial, folder / name)
        weight_map |= dict.fromkeys(shard, name)
    if len(shards) > 1:
        index = {
            "metadata": {"total_size": sum(array.nbytes for array in arrays.values())},
            "weight_map": weight_map,
        }
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    (folder / "config.json").write_text(json.dumps(described, indent=1))
