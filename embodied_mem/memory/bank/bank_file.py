"""The file of a memory bank; `MemoryBank.save` says what stands in it.

write_bank(path, {"embedder": name, "context_weight": 4.0, "object_weight": 8.0}, records)
header, records = read_bank(path)
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from ...atomic_file import write_bytes
from ...errors import InvalidInputError, StorageError
from ...language.images import ImagePool
from ...packed_file import read_packed
from ...types import Episode, Step
from ..arguments import checked_episode, checked_text, shown

FORMAT = "embodied_mem.memory_bank"
_OLD = {"format", "version", "records", "bytes", "sha256", "embedder", "context_weight", "object_weight"}
_HEADER = _OLD | {"checksum"}  # which older files do not have
VERSION = 1

MAX_PACKED_BYTES = 512 << 20
"""Unpacked size above which a `.gz` file is neither written nor read: some 60,000 episodes of ALFWorld."""


def write_bank(path: pathlib.Path, settings: Mapping[str, Any], records: Sequence[tuple[Episode, str]]) -> None:
    """Writes (episode, rationale) records, whole or not at all; `settings` go into the header. Raises as
    `MemoryBank.save`."""
    pool = ImagePool()
    body = "".join(_line(episode, rationale, pool) for episode, rationale in records).encode()
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "records": len(records),
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        **settings,
    }
    header["checksum"] = _checksum(header)
    data = json.dumps(header).encode() + b"\n" + body
    if path.suffix == ".gz" and len(data) > MAX_PACKED_BYTES:
        raise InvalidInputError(
            f"{path}: expected at most {MAX_PACKED_BYTES >> 20} MiB in a .gz file, got {len(data) >> 20}; give a "
            "name without .gz"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the memory bank: {error}") from error


def read_bank(path: pathlib.Path) -> tuple[dict[str, Any], list[tuple[Episode, str]]]:
    """The header and the records of a file. Raises as `MemoryBank.load`."""
    header, lines = _read(path)
    pool, records = ImagePool(), []
    for number, line in enumerate(lines, 2):
        try:
            record = json.loads(line)
            pairs = record["steps"]
            *images, last = pool.read(record, len(pairs) + 1)
            steps = tuple(Step(observation, action, seen) for (observation, action), seen in zip(pairs, images))
            final, won = record["final_observation"], record.get("won", True) is not False
            episode = checked_episode(Episode(record["task_id"], record["goal"], steps, won, final, last))
            records.append((episode, checked_text("rationale", record["rationale"])))
        except (InvalidInputError, LookupError, RecursionError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(f"{path}: expected a record in line {number}, got {shown(line)}") from error
    return header, records


def _read(path: pathlib.Path) -> tuple[dict[str, Any], list[bytes]]:
    try:
        data = read_packed(path, MAX_PACKED_BYTES) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot read the memory bank: {error}") from error
    head, newline, body = data.partition(b"\n")
    try:
        header = json.loads(head)
        known = newline == b"\n" and header["format"] == FORMAT
        version, size, digest, count = (header[name] for name in ("version", "bytes", "sha256", "records"))
        _ = header["embedder"], float(header["context_weight"]), float(header["object_weight"])
        known &= header.get("checksum") == _checksum(header) if header.keys() == _HEADER else header.keys() == _OLD
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{path}: expected a memory bank's header in line 1, got {head[:80]!r}") from error
    if not known or version != VERSION:
        raise InvalidInputError(f"{path}: expected {FORMAT} version {VERSION}, got {head[:80]!r}")
    if len(body) != size:
        raise InvalidInputError(f"{path}: expected {size} bytes after the header, got {len(body)}; the file is cut")
    if hashlib.sha256(body).hexdigest() != digest:
        raise InvalidInputError(f"{path}: the checksum of the records does not match; the file is damaged")
    lines = body.split(b"\n")[:-1]
    if len(lines) != count:
        raise InvalidInputError(f"{path}: expected {count} records, got {len(lines)}; the file is damaged")
    return header, lines


def _line(episode: Episode, rationale: str, pool: ImagePool) -> str:
    """A record as it stands in a file."""
    record: dict[str, Any] = {"task_id": episode.task_id, "goal": episode.goal, "rationale": rationale}
    if not episode.won:
        record["won"] = False
    steps = [[step.observation, step.action] for step in episode.steps]
    record |= {"steps": steps, "final_observation": episode.final_observation}
    return json.dumps(record | pool.stored([*(step.images for step in episode.steps), episode.final_images])) + "\n"


def _checksum(header: Mapping[str, Any]) -> str:
    """16 hexadecimal digits over everything in a header but `checksum`."""
    rest = {name: value for name, value in header.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:16]


def checked_path(path: str | os.PathLike[str]) -> pathlib.Path:
    """The path of a file. Raises InvalidInputError for what is none."""
    try:
        os.fsencode(path)
        return pathlib.Path(path)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"path: expected the path of a file, got {shown(path)} ({error})") from None
