"""Snapshot files of a store: the state of every module at one point of its event log, checksummed, written whole.

    write_snapshot(folder, scope_text, 17, {"graph": b"..."})
    newest = load_newest(folder, scope_text)

Byte by byte in docs/formats.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import struct
from collections.abc import Mapping

from ...atomic_file import remove_leftovers, replacing
from ...errors import InvalidInputError, StorageError
from ..graph import Scope, scope_from_text
from .log_end import END_NAME

VECTORS_NAME = "vectors.bin"
"""Of vectors that can be made anew (`KeptVectors`); a forget takes them away."""

MAGIC = b"EMEMSNAP"
VERSION = 1
_HEAD = struct.Struct("<8sII")
_LOG_HEAD = struct.Struct("<8sIIQ")
_MAX_SCOPE_BYTES = 1 << 20
_NAME = re.compile(r"snapshot-([0-9a-f]{16})\.bin")
_LOG = r"events-[0-9a-f]{16}\.log"
_UNFINISHED = re.compile(rf"\.({_NAME.pattern}|{_LOG}|{END_NAME})\.[0-9a-f]{{16}}\.partial")
_UNFINISHED_BEFORE = re.compile(rf"({_NAME.pattern}|{_LOG})\.tmp")  # as older versions named them


@dataclasses.dataclass(frozen=True)
class StoredSnapshot:
    """The state of each module after event number `sequence`."""

    sequence: int
    states: dict[str, bytes]


def snapshot_path(folder: pathlib.Path, sequence: int) -> pathlib.Path:
    return folder / f"snapshot-{sequence:016x}.bin"


def list_snapshots(folder: pathlib.Path) -> list[tuple[int, pathlib.Path]]:
    """Return (sequence, path) of every snapshot in the folder, newest first; none is opened."""
    found = [(int(m[1], 16), path) for path in folder.iterdir() if (m := _NAME.fullmatch(path.name))]
    return sorted(found, reverse=True)


def write_snapshot(folder: pathlib.Path, scope: str, sequence: int, states: dict[str, bytes]) -> pathlib.Path:
    """Write the file whole or not at all, and return its path."""
    modules = [{"name": n, "bytes": len(s), "sha256": hashlib.sha256(s).hexdigest()} for n, s in states.items()]
    header = json.dumps({"scope": scope, "sequence": sequence, "modules": modules}).encode()
    data = _HEAD.pack(MAGIC, VERSION, len(header)) + header + hashlib.sha256(header).digest()
    path = snapshot_path(folder, sequence)
    try:
        with replacing(path) as temporary, open(temporary, "wb") as file:
            file.write(data)
            for state in states.values():
                file.write(state)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the snapshot: {error}; nothing that was recorded is lost") from error
    return path


def read_snapshot(path: pathlib.Path, scope: str) -> StoredSnapshot:
    """Return what is in the file.

    Raises:
        StorageError: no snapshot, damaged or cut, or of another version.
        InvalidInputError: a snapshot of another scope.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path}: cannot read the snapshot: {error}") from error
    if len(data) < _HEAD.size or not data.startswith(MAGIC):
        raise StorageError(f"{path}: expected a snapshot, which begins with {MAGIC!r}, got {data[:8]!r}")
    _, version, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise StorageError(
            f"{path}: expected format version {VERSION}, got {version}; open it with the release that wrote it"
        )
    header, digest = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length : _HEAD.size + length + 32]
    if hashlib.sha256(header).digest() != digest:
        raise StorageError(f"{path}: the checksum of the header does not match; the file is damaged or cut")
    about = json.loads(header)
    if about["scope"] != scope:
        raise InvalidInputError(f"{path}: expected the scope it was made with, {about['scope']}, got {scope}")
    states, offset = {}, _HEAD.size + length + 32
    for module in about["modules"]:
        state = data[offset : offset + module["bytes"]]
        if hashlib.sha256(state).hexdigest() != module["sha256"]:
            raise StorageError(
                f"{path}: the checksum of {module['name']!r} at offset {offset} does not match; damaged or cut"
            )
        states[module["name"]] = state
        offset += len(state)
    if offset != len(data):
        raise StorageError(f"{path}: expected the end at offset {offset}, got {len(data) - offset} more bytes")
    return StoredSnapshot(about["sequence"], states)


def folder_scope(folder: str | os.PathLike[str], **given: str | None) -> Scope:
    """Return the scope that a folder of a store has; a folder without one gets what is given.

    Args:
        folder: it may be missing.
        given: fields of the scope that are known; None for what the folder says.

    Raises:
        InvalidInputError: the folder has another scope than what is given.
    """
    folder, known = pathlib.Path(folder), {name: value for name, value in given.items() if value is not None}
    for path in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
        if (stored := _stored_scope(path)) is None:
            continue
        own = dataclasses.asdict(stored)
        if wrong := {name: value for name, value in known.items() if own[name] != value}:
            raise InvalidInputError(f"scope: expected that of {folder}, {_named(own)}; got {_named(wrong)}")
        return stored
    return Scope(**known)


def _stored_scope(path: pathlib.Path) -> Scope | None:
    """The scope in the header of a file of a store; None for any other file, or a damaged one."""
    is_log = re.fullmatch(_LOG, path.name) is not None
    if not is_log and not _NAME.fullmatch(path.name):
        return None
    try:
        with path.open("rb") as file:
            head = file.read(_LOG_HEAD.size if is_log else _HEAD.size)
            length = _LOG_HEAD.unpack(head)[2] if is_log else _HEAD.unpack(head)[2]
            text = file.read(min(length, _MAX_SCOPE_BYTES)).decode()
        return scope_from_text(text if is_log else json.loads(text)["scope"])
    except (OSError, ValueError, TypeError, LookupError, struct.error):
        return None


def _named(fields: Mapping[str, str]) -> str:
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in fields.items() if value) or "nobody's"


def load_newest(folder: pathlib.Path, scope: str) -> tuple[StoredSnapshot, list[str]]:
    """Return the newest snapshot that is whole (number 0, empty, if there are none), and what is wrong with newer ones.

    Raises:
        StorageError: there are snapshots, and none is whole.
        InvalidInputError: another scope.
    """
    problems: list[str] = []
    for _, path in list_snapshots(folder):
        try:
            return read_snapshot(path, scope), problems
        except StorageError as error:
            problems.append(str(error))
    if problems:
        raise StorageError("; ".join(problems) + "; no other snapshot is left: restore one from a copy")
    return StoredSnapshot(0, {}), problems


def remove_unfinished(folder: pathlib.Path) -> None:
    """Remove what killed writers of a store never finished, and no file of anybody else."""
    for path in list(folder.iterdir()):
        if found := _UNFINISHED.fullmatch(path.name):
            remove_leftovers(folder / found[1])
        elif _UNFINISHED_BEFORE.fullmatch(path.name):
            path.unlink(missing_ok=True)
