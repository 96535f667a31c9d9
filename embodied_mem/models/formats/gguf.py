"""GGUF files (llama.cpp's) of Llama, Qwen2 and Qwen3 models: header, tensors, and a decoder with dequantised weights.

    file = GGUFFile("SmolLM2-135M-Instruct.Q4_1.gguf")
    file.metadata["general.architecture"], file.tensors["token_embd.weight"].shape      # "llama", (49152, 576)
    decoder = load_gguf(file, param_dtype="bfloat16")          # float32 unless said otherwise
    pretrained = PretrainedTokenizer.from_gguf(file.metadata)  # `language.pretrained`

The file is mapped, not read: a tensor's bytes are touched when a part of it is. For the `llama` architecture the
rows of query and key are stored with the two halves of each head interleaved, which is undone.

Weights are dequantised by the package `gguf` (extra `train`). Its reader of headers is not used: it takes 3 seconds
for a vocabulary of 49,152 tokens, where this one takes 0.07.

Source: the GGUF specification, versions 2 and 3 (little-endian).
"""

from __future__ import annotations

import collections
import functools
import math
import os
import pathlib
import struct
from typing import Any, NamedTuple

import numpy as np

from embodied_mem.errors import CheckpointError, InvalidInputError, MissingDependencyError
from embodied_mem.models.assembly import Index, Shardings, StoredTensor, assemble
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import described_by, sized

_SCALARS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_FIELDS = {
    "width": "embedding_length", "num_layers": "block_count", "num_heads": "attention.head_count",
    "mlp_width": "feed_forward_length", "norm_eps": "attention.layer_norm_rms_epsilon", "max_length": "context_length",
}  # fmt: skip
_ARCHITECTURES = ("llama", "qwen2", "qwen3")
_NAMES = {
    "embedding": "token_embd.weight", "final_norm": "output_norm.weight", "head": "output.weight",
    "attention_norm": "attn_norm.weight", "query": "attn_q.weight", "key": "attn_k.weight", "value": "attn_v.weight",
    "output": "attn_output.weight", "query_bias": "attn_q.bias", "key_bias": "attn_k.bias",
    "value_bias": "attn_v.bias", "query_norm": "attn_q_norm.weight", "key_norm": "attn_k_norm.weight",
    "mlp_norm": "ffn_norm.weight", "gate": "ffn_gate.weight", "up": "ffn_up.weight", "down": "ffn_down.weight",
}  # fmt: skip


class _Format(NamedTuple):
    """A tensor's format: blocks of so many neighbouring weights of a row, of so many bytes."""

    kind: Any  # gguf.GGMLQuantizationType
    block_size: int
    block_bytes: int


@functools.cache
def _format(number: int) -> _Format | None:
    """Return the format with this number in GGUF files.

    None if the package `gguf` cannot read it.
    """
    try:
        import gguf
    except ImportError as error:
        raise MissingDependencyError(f"{error}; install it with: pip install 'embodied_mem[train]'") from error
    try:
        kind = gguf.GGMLQuantizationType(number)
        block_size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        gguf.quants.dequantize(np.zeros(block_bytes, np.uint8), kind)
    except (KeyError, NotImplementedError, ValueError):
        return None
    return _Format(kind, block_size, block_bytes)


class GGUFTensor:
    """A tensor of a GGUF file; a `StoredTensor` that dequantises what is read.

    Attributes:
        where: file and name.
        shape: rows first, as numpy has it (the file has the sizes in the other order).
    """

    def __init__(self, where: str, shape: tuple[int, ...], format: _Format, data: np.ndarray):
        self.where, self.shape, self._format, self._data = where, shape, format, data

    def read(self, index: Index) -> np.ndarray:
        """Returns the part `index` in float32.

        Whole blocks that lie outside are not touched.
        """
        import gguf

        *rows, columns = index
        kind, size, num_bytes = self._format
        first, last = columns.start // size, -(-columns.stop // size)
        stored = self._data.reshape(*self.shape[:-1], self.shape[-1] // size * num_bytes)
        blocks = np.ascontiguousarray(stored[(*rows, slice(first * num_bytes, last * num_bytes))])
        weights: np.ndarray = gguf.quants.dequantize(blocks, kind)
        return weights[..., columns.start - first * size : columns.stop - first * size]


class GGUFFile:
    """Header and tensors of a GGUF file.

    Attributes:
        path: the file.
        metadata: values by key; arrays of numbers are numpy arrays, arrays of texts are lists.
        tensors: by name.

    Raises:
        CheckpointError: no GGUF file, another version, a tensor format that the package `gguf` cannot read, or the
            file ends before what it announces.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path)
        try:
            self._data = np.memmap(self.path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: expected a GGUF file: {error}") from error
        self._at = 0
        magic, version = bytes(self._take(4)), self._number("<u4")
        if magic != b"GGUF" or version not in (2, 3):
            raise CheckpointError(f"{path}: expected GGUF version 2 or 3, got {magic!r} version {version}")
        num_tensors, num_values = self._number("<u8"), self._number("<u8")
        self.metadata: dict[str, Any] = {}
        for _ in range(num_values):
            key = self._text()
            self.metadata[key] = self._value(self._number("<u4"))
        described = [self._tensor_header() for _ in range(num_tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1:
            raise CheckpointError(f"{path}: general.alignment: expected an integer >= 1, got {alignment!r:.80}")
        names = [name for name, *_ in described]
        if len(set(names)) != len(names):
            twice, count = collections.Counter(names).most_common(1)[0]
            raise CheckpointError(f"{path}: {twice}: expected one tensor of this name, got {count}")
        start = -(-self._at // alignment) * alignment
        self.tensors = {name: self._tensor(start, name, shape, kind, offset) for name, shape, kind, offset in described}

    def _take(self, count: int) -> np.ndarray:
        end = self._at + count
        if end > len(self._data):
            raise CheckpointError(
                f"{self.path}: expected {count} bytes at {self._at}, the file ends at {len(self._data)}"
            )
        taken, self._at = self._data[self._at : end], end
        return taken

    def _number(self, kind: str) -> Any:
        return self._take(np.dtype(kind).itemsize).view(kind)[0].item()

    def _text(self) -> str:
        try:
            return bytes(self._take(self._number("<u8"))).decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.path}: expected UTF-8 before byte {self._at}: {error}") from error

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind != _ARRAY:
            raise CheckpointError(f"{self.path}: expected a value type up to 12 at byte {self._at}, got {kind}")
        inner, count = self._number("<u4"), self._number("<u8")
        if inner in _SCALARS:
            return np.array(self._take(count * np.dtype(_SCALARS[inner]).itemsize).view(_SCALARS[inner]))
        if inner == _STRING:
            return self._texts(count)
        raise CheckpointError(f"{self.path}: expected an array of numbers or texts at byte {self._at}, got {inner}")

    def _texts(self, count: int) -> list[str]:
        """Read `count` texts.

        It does what `_text` does, without a numpy view for each of some 10^5.
        """
        texts, data, at, size = [], memoryview(self._data.data), self._at, len(self._data)
        length_of = struct.Struct("<Q").unpack_from
        try:
            for _ in range(count):
                (length,) = length_of(data, at)
                if at + 8 + length > size:
                    raise struct.error("text")
                texts.append(str(data[at + 8 : at + 8 + length], "utf-8"))
                at += 8 + length
        except (struct.error, UnicodeDecodeError) as error:
            raise CheckpointError(f"{self.path}: expected a UTF-8 text at byte {at} of {size}") from error
        self._at = at
        return texts

    def _tensor_header(self) -> tuple[str, tuple[int, ...], int, int]:
        name, rank = self._text(), self._number("<u4")
        if rank > 4:
            raise CheckpointError(f"{self.path}: {name}: expected at most 4 axes, got {rank}")
        sizes = tuple(self._number("<u8") for _ in range(rank))
        return name, sizes[::-1], self._number("<u4"), self._number("<u8")

    def _tensor(self, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int) -> GGUFTensor:
        where = f"{self.path}: {name}"
        format = _format(kind)
        if format is None:
            raise CheckpointError(f"{where}: expected a format that the package gguf reads, got number {kind}")
        if not shape or not math.prod(shape) or shape[-1] % format.block_size:
            raise CheckpointError(
                f"{where}: expected sizes >= 1, the last a multiple of {format.block_size}, got shape {shape}"
            )
        size = math.prod(shape) // format.block_size * format.block_bytes
        if start + offset + size > len(self._data):
            raise CheckpointError(
                f"{where}: expected {size} bytes at {start + offset}, the file ends at {len(self._data)}"
            )
        return GGUFTensor(where, shape, format, self._data[start + offset : start + offset + size])


class _Uninterleaved:
    """Query or key of the `llama` architecture, with the two halves of each head apart again."""

    def __init__(self, stored: StoredTensor, head_dim: int):
        self.where, self.shape, self._stored, self._head_dim = stored.where, stored.shape, stored, head_dim

    def read(self, index: Index) -> np.ndarray:
        rows = self._stored.read(index)
        return rows.reshape(-1, self._head_dim // 2, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def config_from_gguf(file: GGUFFile, **overrides: Any) -> DecoderConfig:
    """Returns the decoder config in the metadata (in float32), changed by `overrides`.

    Raises:
        InvalidInputError: an architecture, or a rotary scaling, that the decoder does not have.
        CheckpointError: a value is missing, or of another kind.
    """
    with described_by(file.path):
        return _config_from(file, **overrides)


def _config_from(file: GGUFFile, **overrides: Any) -> DecoderConfig:
    values = file.metadata
    kind = values.get("general.architecture")
    if not isinstance(kind, str) or kind not in _ARCHITECTURES:
        raise InvalidInputError(
            f"{file.path}: general.architecture: expected one of {', '.join(_ARCHITECTURES)}, got {kind!r}"
        )
    scaling = values.get(f"{kind}.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in file.tensors:
        raise InvalidInputError(f"{file.path}: expected no rotary scaling, got {scaling!r} or rope_freqs.weight")
    try:
        width, heads = values[f"{kind}.embedding_length"], values[f"{kind}.attention.head_count"]
        head_dim = values.get(f"{kind}.attention.key_length", width // max(heads, 1))
        fields = {ours: values[f"{kind}.{theirs}"] for ours, theirs in _FIELDS.items()} | {
            "vocab_size": file.tensors["token_embd.weight"].shape[0],
            "num_kv_heads": values.get(f"{kind}.attention.head_count_kv", heads),
            "head_dim": head_dim,
            "rope_theta": values.get(f"{kind}.rope.freq_base", 10_000.0),
        }
    except KeyError as error:
        raise CheckpointError(f"{file.path}: expected {error}, got none") from error
    rotated = values.get(f"{kind}.rope.dimension_count", head_dim)
    if rotated != head_dim:
        raise InvalidInputError(f"{file.path}: {kind}.rope.dimension_count: expected {head_dim}, got {rotated}")
    fields |= {
        "qkv_bias": kind == "qwen2",
        "qk_norm": kind == "qwen3",
        "tie_embeddings": "output.weight" not in file.tensors,
        "scan_layers": fields["num_layers"] > 8,
        "attention_block": 512,
    }
    return sized(DecoderConfig(**(fields | overrides)))


def load_gguf(
    file: GGUFFile | str | os.PathLike[str], *, shardings: Shardings | None = None, **overrides: Any
) -> Decoder:
    """Returns a decoder with the dequantised weights of a GGUF file.

    Args:
        file: the file or its path.
        shardings: where the parameters go, see `assembly.assemble`.
        **overrides: fields of `DecoderConfig`, e.g. `dtype`, `param_dtype`, `max_length`.

    Raises:
        CheckpointError: a tensor is missing, has another shape, or has no place in the decoder.
        InvalidInputError: an architecture that is not ours, see `config_from_gguf`.
    """
    file = file if isinstance(file, GGUFFile) else GGUFFile(file)
    config = config_from_gguf(file, **overrides)
    left = set(file.tensors)

    @functools.cache
    def tensor_of(name: str, layer: int | None) -> StoredTensor:
        stored = _NAMES[name] if layer is None else f"blk.{layer}.{_NAMES[name]}"
        if stored not in file.tensors:
            raise CheckpointError(f"{file.path}: expected a tensor {stored}, got none among {len(file.tensors)}")
        left.discard(stored)
        tensor = file.tensors[stored]
        if file.metadata["general.architecture"] == "llama" and name in ("query", "key"):
            return _Uninterleaved(tensor, config.head_dim)
        return tensor

    decoder = assemble(config, tensor_of, shardings)
    if left:
        raise CheckpointError(f"{file.path}: {len(left)} tensors have no place in the decoder, e.g. {min(left)}")
    return decoder
