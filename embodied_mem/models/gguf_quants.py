"""The block formats of GGUF tensors, read into float32: plain floats, Q4_0 to Q8_0, and the K formats of 4 to 6 bits.

    FORMATS[8].name, FORMATS[8].block_size, FORMATS[8].block_bytes       # "Q8_0", 32 weights, 34 bytes
    dequantize(blocks, FORMATS[8])                                       # uint8[..., N, 34] -> float32[..., N * 32]

A block holds 32 or 256 neighbouring weights of one row: small integers q and float16 scales. In the formats of 32,
x = d q (with q's middle taken off) or d q + m. In the K formats a block has 8 or 16 sub-blocks with integer scales of
their own: x = d s q - e t, where d and e belong to the block and s and t to the sub-block.

Source: the block layouts of ggml (`ggml-common.h`); tested against the package `gguf`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import ml_dtypes
import numpy as np

from embodied_mem.errors import InvalidInputError


@dataclasses.dataclass(frozen=True)
class Format:
    """One tensor format.

    Attributes:
        name: as in GGUF.
        block_size: weights of a block.
        block_bytes: bytes of a block.
        read: uint8[..., N, block_bytes] -> [..., N, block_size].
    """

    name: str
    block_size: int
    block_bytes: int
    read: Callable[[np.ndarray], np.ndarray]


def dequantize(blocks: np.ndarray, format: Format) -> np.ndarray:
    """Returns float32[..., N * block_size] of the weights in uint8[..., N, block_bytes].

    Raises:
        InvalidInputError: the last axis is not one block of bytes.
    """
    if blocks.dtype != np.uint8 or blocks.shape[-1] != format.block_bytes:
        raise InvalidInputError(
            f"blocks: expected uint8[..., {format.block_bytes}] for {format.name}, got {blocks.dtype} {blocks.shape}"
        )
    weights = np.asarray(format.read(np.ascontiguousarray(blocks)), np.float32)
    return weights.reshape(*blocks.shape[:-2], blocks.shape[-2] * format.block_size)


def _half(blocks: np.ndarray, at: int) -> np.ndarray:
    """The float16 at byte `at` of every block, as float32[..., 1]."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """Low halves of all bytes, then their high halves."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _fifth_bits(packed: np.ndarray) -> np.ndarray:
    """32 bits of 4 bytes, the lowest first, each worth 16."""
    return np.unpackbits(packed, axis=-1, bitorder="little") << 4


def _q4_0(b: np.ndarray) -> np.ndarray:
    return _half(b, 0) * (_nibbles(b[..., 2:]).astype(np.float32) - 8)


def _q4_1(b: np.ndarray) -> np.ndarray:
    return _half(b, 0) * _nibbles(b[..., 4:]) + _half(b, 2)


def _q5_0(b: np.ndarray) -> np.ndarray:
    return _half(b, 0) * ((_nibbles(b[..., 6:]) | _fifth_bits(b[..., 2:6])).astype(np.float32) - 16)


def _q5_1(b: np.ndarray) -> np.ndarray:
    return _half(b, 0) * (_nibbles(b[..., 8:]) | _fifth_bits(b[..., 4:8])) + _half(b, 2)


def _q8_0(b: np.ndarray) -> np.ndarray:
    return _half(b, 0) * b[..., 2:].view(np.int8)


def _k_scales(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 8 scales s and 8 offsets t, of 6 bits each, in 12 bytes: float32[..., 8, 1] each.

    Bytes 0-3 and 4-7 have s and t of sub-blocks 0-3 in their low 6 bits and the high 2 bits of those of sub-blocks 4-7
    above them; bytes 8-11 have the low 4 bits of the latter.
    """
    first, second, third = packed[..., 0:4], packed[..., 4:8], packed[..., 8:12]
    scales = np.concatenate([first & 63, (third & 15) | ((first >> 6) << 4)], axis=-1)
    offsets = np.concatenate([second & 63, (third >> 4) | ((second >> 6) << 4)], axis=-1)
    return scales.astype(np.float32)[..., None], offsets.astype(np.float32)[..., None]


def _k_nibbles(packed: np.ndarray) -> np.ndarray:
    """uint8[..., 8, 32]: of each 32 bytes, the low halves are one sub-block and the high halves the next."""
    packed = packed.reshape(*packed.shape[:-1], 4, 1, 32)
    return np.concatenate([packed & 15, packed >> 4], axis=-2).reshape(*packed.shape[:-3], 8, 32)


def _k_weights(b: np.ndarray, q: np.ndarray) -> np.ndarray:
    scales, offsets = _k_scales(b[..., 4:16])
    return (_half(b, 0)[..., None] * scales) * q - _half(b, 2)[..., None] * offsets


def _q4_k(b: np.ndarray) -> np.ndarray:
    return _k_weights(b, _k_nibbles(b[..., 16:]))


def _q5_k(b: np.ndarray) -> np.ndarray:
    bits = (b[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    return _k_weights(b, _k_nibbles(b[..., 48:]) | (bits << 4))


def _q6_k(b: np.ndarray) -> np.ndarray:
    low = b[..., :128].reshape(*b.shape[:-1], 2, 1, 2, 32)
    low = np.concatenate([low & 15, low >> 4], axis=-3)  # [..., half, high or low nibble, 32 bytes of two, 32]
    high = b[..., 128:192].reshape(*b.shape[:-1], 2, 1, 32)
    high = (high >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3
    q = low.reshape(*b.shape[:-1], 16, 16) | (high << 4).reshape(*b.shape[:-1], 16, 16)
    scales = b[..., 192:208].view(np.int8).astype(np.float32)[..., None]
    return (_half(b, 208)[..., None] * scales) * (q.astype(np.float32) - 32)


FORMATS: dict[int, Format] = {
    0: Format("F32", 1, 4, lambda b: b.view(np.float32)),
    1: Format("F16", 1, 2, lambda b: b.view(np.float16)),
    2: Format("Q4_0", 32, 18, _q4_0),
    3: Format("Q4_1", 32, 20, _q4_1),
    6: Format("Q5_0", 32, 22, _q5_0),
    7: Format("Q5_1", 32, 24, _q5_1),
    8: Format("Q8_0", 32, 34, _q8_0),
    12: Format("Q4_K", 256, 144, _q4_k),
    13: Format("Q5_K", 256, 176, _q5_k),
    14: Format("Q6_K", 256, 210, _q6_k),
    30: Format("BF16", 1, 2, lambda b: b.view(ml_dtypes.bfloat16)),
}
"""By the number that GGUF files carry."""
