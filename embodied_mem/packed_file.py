"""Files that may be packed: unpacked by the name's ending, and never more than the caller says.

data = read_packed(path, max_bytes=64 << 20)       # of a.json, a.json.gz or a.json.xz

A packed file of a few kilobytes can unpack to gigabytes, so whoever reads one says how much it may be.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import pathlib
import zlib
from collections.abc import Callable
from typing import Any

from embodied_mem.errors import InvalidInputError

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
_CHUNK_BYTES = 1 << 20


def read_packed(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return a file's content, unpacked by the suffixes `.gz` and `.xz`.

    Raises:
        OSError: the file cannot be opened or read.
        InvalidInputError: what is packed is damaged or cut, or there are more than `max_bytes`.
    """
    path = pathlib.Path(path)
    content = io.BytesIO()
    with open(path, "rb") as packed:
        try:
            with _OPENERS.get(path.suffix, io.BufferedReader)(packed) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    content.write(chunk)
                    if content.tell() > max_bytes:
                        break
        except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
            raise InvalidInputError(f"{path}: cannot be unpacked: {error}; it is damaged or cut") from error
    if content.tell() > max_bytes:
        raise InvalidInputError(
            f"{path}: expected at most {max_bytes >> 20} MiB{' unpacked' * (path.suffix in _OPENERS)}, got more; no "
            "file of this kind is so large"
        )
    return content.getvalue()
