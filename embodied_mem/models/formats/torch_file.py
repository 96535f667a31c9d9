"""An array as `torch.save` writes a tensor, without torch: vLLM reads prompt embeddings so.

    tensor_file(np.zeros((12, 3584), np.float32))              # bytes; torch.load(io.BytesIO(them), weights_only=True)

A zip with the numbers (`data/0`) and a pickle of protocol 2 that says how to rebuild a tensor of them.
"""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np

from embodied_mem.errors import InvalidInputError

_STORAGES = {"float32": "FloatStorage", "bfloat16": "BFloat16Storage", "float16": "HalfStorage"}


def tensor_file(array: np.ndarray) -> bytes:
    """Write an array of floats as a file of torch.

    Raises:
        InvalidInputError: another dtype.
    """
    if array.dtype.name not in _STORAGES:
        raise InvalidInputError(f"tensor_file: expected one of {', '.join(_STORAGES)}, got {array.dtype.name}")
    strides = np.empty(array.shape, np.uint8).strides  # in elements
    storage = [_text("storage"), _name("torch", _STORAGES[array.dtype.name]), _text("0"), _text("cpu")]
    parts = [
        _tuple(*storage, _number(array.size)) + b"Q",  # a persistent id: the numbers
        _number(0), _tuple(*map(_number, array.shape)), _tuple(*map(_number, strides)),
        b"\x89",  # no gradient
        _name("collections", "OrderedDict") + b")R",  # no hooks
    ]  # fmt: skip
    program = b"\x80\x02" + _name("torch._utils", "_rebuild_tensor_v2") + _tuple(*parts) + b"R."
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in {
            "data.pkl": program, "byteorder": b"little", "data/0": array.tobytes(), "version": b"3\n",
        }.items():  # fmt: skip
            archive.writestr(f"archive/{name}", data)
    return file.getvalue()


def _tuple(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


def _number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()
