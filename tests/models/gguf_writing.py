"""Writes small GGUF files for tests: a header as the format's specification says, tensors as given bytes."""

from __future__ import annotations

import pathlib
import struct

import numpy as np


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value) -> bytes:
    """Type number and bytes: bool, int as uint32, float as float32, texts, lists of texts, arrays of int32."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    return struct.pack("<IIQ", 9, 5, len(value)) + np.asarray(value, "<i4").tobytes()


def write_gguf(path: pathlib.Path, metadata: dict, tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> int:
    """Writes `tensors` (name -> shape rows first, format number, bytes); returns the length of the header."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    header += b"".join(_text(key) + _value(value) for key, value in metadata.items())
    body = b""
    for name, (shape, kind, data) in tensors.items():
        header += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(body))
        body += data + b"\0" * (-len(data) % 32)
    path.write_bytes(header + b"\0" * (-len(header) % 32) + body)
    return len(header)
