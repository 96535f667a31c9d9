"""The files of installed worlds: where they are, and their content with errors that name the file.

root = installed("eb_habitat")                  # $EMBODIED_MEM_DATA/eb_habitat, or None
episodes = read_object(root / "base.json.xz")   # unpacked by the name's ending
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import zlib
from pathlib import Path
from typing import Any

from embodied_mem.errors import DataNotFoundError, GameFileError

MAX_FILE_BYTES = 256 << 20
"""Unpacked size above which a file is refused."""

_OPENERS = {".gz": gzip.open, ".xz": lzma.open}


def installed(world: str) -> Path | None:
    """Return the folder `$EMBODIED_MEM_DATA/<world>` where there is one, else None."""
    base = os.environ.get("EMBODIED_MEM_DATA")
    root = Path(base) / world if base else None
    return root if root is not None and root.is_dir() else None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in `.gz` or `.xz`.

    Raises:
        DataNotFoundError: there is no such file.
        GameFileError: it cannot be read or unpacked, or is larger than `MAX_FILE_BYTES`.
    """
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise DataNotFoundError(f"not installed: expected the file {path}") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise GameFileError(f"{path}: cannot be read: {error}") from error
    if len(content) > MAX_FILE_BYTES:
        raise GameFileError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, no file of this kind is")
    return content


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, read by `read_bytes`.

    Raises:
        DataNotFoundError, GameFileError: as `read_bytes`, or it holds no JSON object.
    """
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise GameFileError(f"{path}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise GameFileError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value
