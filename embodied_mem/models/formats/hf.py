"""Hugging Face checkpoints (Llama, Qwen2, Qwen3): config.json and safetensors, read into a decoder and written.

    decoder = load_hf("Qwen2.5-0.5B-Instruct")                    # config from config.json
    decoder = load_hf(folder, dtype="float32", param_dtype="float32")
    decoder = load_hf(folder, shardings=placement.shardings)      # each device reads its own part of each array
    save_hf(decoder, folder)

Only the parts that a device holds are read, see `assembly.py`. Linear weights are stored there
as [out, in] and here as [in, out] with heads apart and layers stacked; the rotary halves are the same on both sides.
Writing holds one file's arrays in host memory at a time. Of a Qwen3-VL folder the language model is read, for texts
alone: its rotary sections are all one position there. `vision.qwen_vl` reads the whole.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from embodied_mem.atomic_file import write_bytes, write_text
from embodied_mem.errors import CheckpointError, EmbodiedMemError, InvalidInputError
from embodied_mem.models.assembly import Index, Shardings, as_stored, assemble
from embodied_mem.models.config import DecoderConfig, RopeScaling, num_parameters
from embodied_mem.models.decoder import Decoder

_LAYER_NAMES = {
    "attention_norm": "input_layernorm.weight", "query": "self_attn.q_proj.weight", "key": "self_attn.k_proj.weight",
    "value": "self_attn.v_proj.weight", "output": "self_attn.o_proj.weight", "query_bias": "self_attn.q_proj.bias",
    "key_bias": "self_attn.k_proj.bias", "value_bias": "self_attn.v_proj.bias",
    "query_norm": "self_attn.q_norm.weight", "key_norm": "self_attn.k_norm.weight",
    "mlp_norm": "post_attention_layernorm.weight", "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
}  # fmt: skip
_MAX_SHARD_BYTES = 4 << 30
_FIELDS = {
    "vocab_size": "vocab_size", "width": "hidden_size", "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads", "head_dim": "head_dim",
    "mlp_width": "intermediate_size", "norm_eps": "rms_norm_eps",
}  # fmt: skip
_MODEL_TYPES = ("llama", "qwen2", "qwen3")
_SEEING = "qwen3_vl"
"""The language model in it is read, its vision tower is not."""
_SHARED = ("tie_word_embeddings", "torch_dtype", "dtype")
MAX_PARAMETERS = 10**13
"""A file that announces more is damaged."""


class SavedArray(NamedTuple):
    """An array that is computed when its file is written."""

    num_bytes: int
    make: Callable[[], np.ndarray]


Saved = dict[str, SavedArray]  # by name


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Raises:
        CheckpointError: there is no file, or something else in it.
    """
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path.parent}: expected {path.name}, found none") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected JSON: {error}") from error
    if not isinstance(described, dict):
        raise CheckpointError(f"{path}: expected an object, got {type(described).__name__}")
    return described


@contextlib.contextmanager
def described_by(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns errors from malformed values into CheckpointError with the file's name.

    Malformed is a value of another kind than a model's: a text for a number, a size of 0.
    """
    try:
        yield
    except EmbodiedMemError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error
    except KeyError as error:
        raise CheckpointError(f"{path}: expected a field {error}, got none") from error
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected the description of a decoder, got values of other kinds: {error}"
        ) from error


def _files_of(index: pathlib.Path) -> list[str]:
    """Returns the file names in an index.

    All are in its own folder.
    """
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index}: weight_map: expected array names with their files, got {weight_map!r:.80}")
    for name, file in weight_map.items():
        if not isinstance(file, str) or pathlib.PurePath(file).name != file or "\\" in file:
            raise CheckpointError(f"{index}: weight_map: {name}: expected a file of this folder, got {file!r:.80}")
    return sorted(set(weight_map.values()))


def weight_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the safetensors files of a checkpoint folder.

    Raises:
        CheckpointError: there are none.
    """
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return [folder / name for name in _files_of(index)]
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    if paths := sorted(folder.glob("*.safetensors")):
        return paths
    raise CheckpointError(f"{folder}: expected *.safetensors files, found none")


_DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
    "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


class HFTensor:
    """An array of a checkpoint folder, a `StoredTensor`.

    Args:
        where: file and name, for messages.
        shape: as stored.
        kind: dtype in the words of safetensors.
        data: its bytes in the mapped file.
        file: the same file, for whole rows: a read costs a third of the page faults of a mapping.
        start: place of the first byte in it.
    """

    def __init__(self, where: str, shape: tuple[int, ...], kind: str, data: np.ndarray, file: BinaryIO, start: int):
        self.where, self.shape, self._kind, self._data = where, shape, kind, data
        self._file, self._start = file, start

    def read(self, index: Index) -> np.ndarray:
        """Returns the part `index` in the file's dtype.

        Whole rows are a copy, others are in the mapped file.
        """
        if self._kind not in _DTYPES:
            raise CheckpointError(f"{self.where}: expected one of {', '.join(_DTYPES)}, got {self._kind}")
        array: np.ndarray = self._data.view(_DTYPES[self._kind]).reshape(self.shape)
        part = array[index]
        if not part.size or part.shape[1:] != self.shape[1:]:
            return part
        copy = np.empty_like(part)
        first = self._start + part.__array_interface__["data"][0] - self._data.__array_interface__["data"][0]
        num_bytes = os.preadv(self._file.fileno(), [copy.reshape(-1).view(np.uint8).data], first)
        return copy if num_bytes == copy.nbytes else part


def _map_tensors(path: pathlib.Path) -> dict[str, HFTensor]:
    """Returns the arrays of a safetensors file without reading them."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy"):  # says what is wrong with a damaged header
            data = np.memmap(path, np.uint8, "r")
        file = path.open("rb", buffering=0)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{path}: expected a safetensors file: {error}") from error
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    tensors = {}
    for name, one in header.items():
        first, last = one["data_offsets"]
        part = data[start + first : start + last]
        tensors[name] = HFTensor(f"{path.parent}: {name}", tuple(one["shape"]), one["dtype"], part, file, start + first)
    return tensors


class HFFolder:
    """Arrays of a checkpoint folder by name, whichever of its safetensors files they lie in.

    Attributes:
        left: names of the arrays that nobody has asked for.

    Raises:
        CheckpointError: there are no files, one that the index names is missing, or one is damaged.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self._tensors: dict[str, HFTensor] = {}
        for path in weight_files(folder):
            self._tensors |= _map_tensors(path)
        self.left = set(self._tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> HFTensor:
        """Returns the array `name`.

        Raises:
            CheckpointError: there is none.
        """
        if name not in self._tensors:
            raise CheckpointError(f"{self.folder}: expected an array {name}, got none among {len(self._tensors)}")
        self.left.discard(name)
        return self._tensors[name]

    def tensor_of(self, name: str, layer: int | None, prefix: str = "model.") -> HFTensor:
        """Returns the array of a decoder's parameter, for `assemble`."""
        return self.tensor(name_in_hf(name, layer, prefix))

    def refuse_left(self, tied: bool, tower: str = "") -> None:
        """Raises CheckpointError if arrays are left.

        Rotary tables and a head that repeats the embedding may be.

        A `tower` is the first part of the names of arrays that nobody reads.
        """
        left = {name for name in self.left if not name.endswith("rotary_emb.inv_freq")}
        left -= {name for name in left if tower and name.startswith(tower)}
        left -= {"lm_head.weight"} if tied else set()
        if left:
            raise CheckpointError(f"{self.folder}: {len(left)} arrays have no place in the decoder, e.g. {min(left)}")


def name_in_hf(name: str, layer: int | None, prefix: str = "model.") -> str:
    """Returns a parameter's published name, e.g. model.layers.3.self_attn.q_proj.weight for ("query", 3)."""
    if layer is not None:
        return f"{prefix}layers.{layer}.{_LAYER_NAMES[name]}"
    return {"embedding": f"{prefix}embed_tokens.weight", "final_norm": f"{prefix}norm.weight"}.get(
        name, "lm_head.weight"
    )


def read_described(folder: pathlib.Path) -> dict[str, Any]:
    """Returns the config.json of a folder.

    Raises:
        CheckpointError: there is none, or it is no JSON object.
    """
    return read_json(folder / "config.json")


def load_hf(folder: str | os.PathLike[str], *, shardings: Shardings | None = None, **overrides: Any) -> Decoder:
    """Returns a decoder with the weights of a Hugging Face folder.

    Args:
        folder: holds config.json and safetensors, sharded or not.
        shardings: where the parameters go, e.g. `Placement.shardings`; None for the default device.
        **overrides: fields of `DecoderConfig`, e.g. `dtype`, `param_dtype`, `scan_layers`, `max_length`.

    Raises:
        CheckpointError: when a file or array is missing, of another shape, or left over (nothing is ignored except
            rotary tables, a head that repeats tied embeddings, and the vision tower of Qwen3-VL).
        InvalidInputError: when the architecture is not one of ours, see `config_from_hf`.
    """
    folder = pathlib.Path(folder)
    described = read_described(folder)
    with described_by(folder / "config.json"):
        config = config_from_hf(described, **overrides)
    files = HFFolder(folder)
    is_part = described["model_type"] == _SEEING
    prefix, tower = ("model.language_model.", "model.visual.") if is_part else ("model.", "")
    decoder = assemble(config, functools.partial(files.tensor_of, prefix=prefix), shardings)
    files.refuse_left(config.tie_embeddings, tower)
    return decoder


def decoder_arrays(decoder: Decoder, prefix: str = "model.") -> Saved:
    """Returns what `write_arrays` writes for a decoder, under the published names.

    Raises:
        InvalidInputError: when adapters are present (merge or save them apart).
    """
    if decoder.lora is not None or (decoder.config.vision is not None and decoder.vision.lora is not None):
        raise InvalidInputError("save_hf: expected a decoder without adapters; call merge_lora first, or save_peft")
    config = decoder.config
    itemsize = jnp.dtype(config.param_dtype).itemsize

    def layer_array(name: str, stacked: jax.Array, i: int) -> np.ndarray:
        return as_stored(name, np.asarray(stacked[i]))

    tops = {name: getattr(decoder, name)[...] for name in ("embedding", "final_norm")}
    saved: Saved = {
        name_in_hf(name, None, prefix): SavedArray(array.nbytes, functools.partial(np.asarray, array))
        for name, array in tops.items()
    }
    if not config.tie_embeddings:
        head = decoder.head[...]
        saved["lm_head.weight"] = SavedArray(head.nbytes, lambda: as_stored("head", np.asarray(head)))
    for name, stacked in decoder.layers.arrays().items():
        for i in range(config.num_layers):
            size = math.prod(stacked.shape[1:]) * itemsize
            saved[name_in_hf(name, i, prefix)] = SavedArray(size, functools.partial(layer_array, name, stacked, i))
    return saved


def write_arrays(saved: Saved, described: dict[str, Any], folder: pathlib.Path, max_shard_bytes: int) -> None:
    """Writes the arrays to safetensors files, and config.json last.

    Where the files are several, an index is written too.

    What an earlier save has left is replaced: config.json and the index go first, so that the folder is no model until
    it is this one, and files that the new model does not have go at the end.
    """
    from safetensors.numpy import save

    shards: list[list[str]] = [[]]
    size = 0
    for name, (num_bytes, _) in saved.items():
        if shards[-1] and size + num_bytes > max_shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += num_bytes
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors.index.json"):
        (folder / name).unlink(missing_ok=True)
    weight_map: dict[str, str] = {}
    for i, names in enumerate(shards):
        file = "model.safetensors" if len(shards) == 1 else f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        # Not `save_file`, which puts another file in the place of the one it is given.
        write_bytes(folder / file, save({name: saved[name].make() for name in names}, metadata={"format": "pt"}))
        weight_map |= dict.fromkeys(names, file)
    left = (".model*.safetensors*.partial", "model.safetensors*", "model-*-of-*.safetensors*")
    for path in (path for pattern in left for path in folder.glob(pattern)):
        if path.name not in weight_map.values():
            path.unlink()
    if len(shards) > 1:
        total = sum(array.num_bytes for array in saved.values())
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        write_text(folder / "model.safetensors.index.json", json.dumps(index, indent=1))
    write_text(folder / "config.json", json.dumps(described, indent=1))


def save_hf(decoder: Decoder, folder: str | os.PathLike[str], *, max_shard_bytes: int = _MAX_SHARD_BYTES) -> None:
    """Writes config.json and safetensors, in files of at most `max_shard_bytes` each.

    The tokenizer is saved apart, by `PretrainedTokenizer.save`; then transformers and vLLM can serve the folder.

    Raises:
        InvalidInputError: when adapters are present (merge or save them apart), or no family has this shape.
    """
    arrays = decoder_arrays(decoder)
    write_arrays(arrays, config_to_hf(decoder.config), pathlib.Path(folder), max_shard_bytes)


def config_from_hf(described: dict[str, Any], **overrides: Any) -> DecoderConfig:
    """Returns the decoder config in a Hugging Face config.json, changed by `overrides`.

    Raises:
        InvalidInputError: for a model type, activation, sliding window or rotary scaling that the decoder does not
            have; nothing that changes the result is ignored.
    """
    if described.get("model_type") == _SEEING:
        shared: dict[str, Any] = {name: described[name] for name in _SHARED if name in described}
        described = {**described.get("text_config", {}), **shared, "model_type": "qwen3"}
    kind = described.get("model_type")
    if kind not in _MODEL_TYPES:
        known = ", ".join((*_MODEL_TYPES, _SEEING))
        raise InvalidInputError(
            f"config.json: model_type: expected one of {known}, got {kind!r}, whose layers are not here; a server may "
            "have it (docs/models.md)"
        )
    if described.get("hidden_act", "silu") != "silu":
        raise InvalidInputError(f"config.json: hidden_act: expected silu, got {described['hidden_act']!r}")
    if described.get("use_sliding_window") or "sliding_attention" in (described.get("layer_types") or ()):
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
    heads = described.get("num_attention_heads")
    named = {"num_key_value_heads": heads} | described
    named["head_dim"] = described.get("head_dim") or described.get("hidden_size", 0) // (heads or 1)
    try:
        fields: dict[str, Any] = {ours: named[theirs] for ours, theirs in _FIELDS.items()}
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
    return sized(DecoderConfig(**(fields | overrides)))


def sized(config: DecoderConfig) -> DecoderConfig:
    """Returns the config; ValueError for an impossible size, before memory is allocated."""
    if num_parameters(config) >= MAX_PARAMETERS:
        raise ValueError(f"{num_parameters(config):.2g} parameters, at most {MAX_PARAMETERS:.0e} are believed")
    return config


def config_to_hf(config: DecoderConfig) -> dict[str, Any]:
    """Returns the config.json of a decoder.

    The model type follows from its biases and norms.

    Raises:
        InvalidInputError: when no published family has this shape: both QKV biases and QK norms, or smear.
    """
    if config.qkv_bias and config.qk_norm:
        raise InvalidInputError("save_hf: expected qkv_bias (qwen2) or qk_norm (qwen3) or neither (llama), got both")
    if config.smear:
        raise InvalidInputError("save_hf: expected smear=0, no published family has it; use training.weights")
    kind = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    described = {
        "architectures": [{"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind] + "ForCausalLM"],
        "model_type": kind,
        **{theirs: getattr(config, ours) for ours, theirs in _FIELDS.items()},
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
