"""Vectors of a folder's texts in one file, so that opening it with a model goes on where it was killed.

    with KeptVectors("memory/ann", "my model") as kept:
        kept.embed(model.embed, texts)       # what the file has is not embedded again; the rest is written in parts

Only texts that are remembered are in it, by a digest, while the folder is opened; `MemoryStore.forget` removes the
file. It can be lost at any moment: then the texts are embedded anew. Format: docs/formats.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Sequence
from typing import BinaryIO

import numpy as np

from ...atomic_file import replacing
from ..store.snapshot_files import VECTORS_NAME

PART = 64
"""Texts that are embedded and written at once."""

_FORMAT = "embodied_mem.vectors"
_DIGEST_BYTES = 16


class KeptVectors:
    """The file of one embedder, open for one writer. It is made, or begun anew for another embedder, at the first use.

    A file that cannot be written is no error: then nothing is kept.
    """

    def __init__(self, folder: str | os.PathLike[str], embedder: str, read_only: bool = False):
        self._folder, self._read_only = folder, read_only
        self._header = json.dumps({"format": _FORMAT, "version": 1, "embedder": embedder}).encode() + b"\n"
        self._rows: dict[bytes, np.ndarray] | None = None
        self._used: set[bytes] = set()
        self._file: BinaryIO | None = None

    def embed(self, embed: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> np.ndarray:
        """float32[n, d] of the texts: of the file, else of `embed`, which is asked for `PART` texts at a time."""
        keys = [_key(text) for text in texts]
        rows = self._read()
        self._used.update(keys)
        new = [(key, text) for key, text in dict(zip(keys, texts)).items() if key not in rows]
        failed: dict[bytes, np.ndarray] = {}
        for first in range(0, len(new), PART):
            part = new[first : first + PART]
            vectors = np.ascontiguousarray(embed([text for _, text in part]), np.float32)
            if vectors.shape[1] and any(len(row) != vectors.shape[1] for row in rows.values()):
                rows.clear()  # another model by the same name
                self._begin()
                return self.embed(embed, texts)
            found = {key: vector for (key, _), vector in zip(part, vectors)}
            there = {key: vector for key, vector in found.items() if vector.any()}
            failed |= {key: vector for key, vector in found.items() if key not in there}
            rows |= there
            self._write(there)
        width = max((len(rows[key]) for key in keys if key in rows), default=max(map(len, failed.values()), default=0))
        nothing = np.zeros(width, np.float32)
        return np.stack([rows.get(key, nothing) for key in keys]) if keys else embed(texts)

    def _read(self) -> dict[bytes, np.ndarray]:
        """The rows of the file, whose torn end is cut off; none of another embedder's."""
        if self._rows is not None:
            return self._rows
        self._path = pathlib.Path(self._folder) / VECTORS_NAME  # that it is one, the store has found out by now
        try:
            data = self._path.read_bytes()
        except OSError:
            data = b""
        self._rows, end = {}, len(self._header)
        if data.startswith(self._header):
            self._rows, end = _rows_of(data, end)
        if not self._read_only:
            try:
                if data.startswith(self._header):
                    self._file = self._path.open("r+b", buffering=0)
                    self._file.truncate(end)
                    self._file.seek(end)
                else:
                    self._begin()
            except OSError:
                self._file = None
        return self._rows

    def _begin(self) -> None:
        """Begin the file anew."""
        if self._read_only:
            return
        if self._file is not None:
            self._file.close()
        try:
            self._file = self._path.open("wb", buffering=0)
            self._file.write(self._header)
        except OSError:
            self._file = None

    def _write(self, rows: dict[bytes, np.ndarray]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(b"".join(_packed(key, row) for key, row in rows.items()))
        except OSError:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Let go of the file; where most of it is of texts that are not there any more, it is written anew without."""
        if self._file is None or self._rows is None:
            return
        self._file.close()
        self._file = None
        kept = {key: row for key, row in self._rows.items() if key in self._used}
        if len(self._rows) > 2 * len(kept) + PART and self._path.exists():
            with replacing(self._path) as temporary:
                temporary.write_bytes(self._header + b"".join(_packed(key, row) for key, row in kept.items()))

    def __enter__(self) -> KeptVectors:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _packed(key: bytes, row: np.ndarray) -> bytes:
    data = key + len(row).to_bytes(4, "little") + row.astype("<f4").tobytes()
    return data + zlib.crc32(data).to_bytes(4, "little")


def _rows_of(data: bytes, start: int) -> tuple[dict[bytes, np.ndarray], int]:
    """The whole rows from a position on, and where they end."""
    rows: dict[bytes, np.ndarray] = {}
    while True:
        width_at = start + _DIGEST_BYTES
        end = width_at + 4 + 4 * int.from_bytes(data[width_at : width_at + 4], "little")
        if end + 4 > len(data) or zlib.crc32(data[start:end]) != int.from_bytes(data[end : end + 4], "little"):
            return rows, start
        rows[data[start:width_at]] = np.frombuffer(data[width_at + 4 : end], "<f4").astype(np.float32)
        start = end + 4
