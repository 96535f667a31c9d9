"""Replaces files atomically: whole or not at all, with nothing left behind.

    with replacing("runs/a/result.json") as temporary:      # a path beside it, made empty
        temporary.write_text(text)
    write_bytes("runs/a/result.json", data)

A reader of the path sees the old file or the new one, also after a crash or a loss of power. What a killed writer left
behind is removed by the next write to the same path, and by `remove_leftovers`; it is told from a file that is being
written by a lock, and from files of others by its name (`.NAME.<16 hex digits>.partial`). The native code
(`csrc/core/atomic_file.h`) names and locks its files in the same way.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import secrets
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yield the path of a new file that replaces `path` afterwards.

    It is empty at first and takes the place when the block ends. The file is on the disk before it takes the place. It
    may be written by its path or be opened anew, but must stay the same file: not be replaced itself. After an error it
    is removed and `path` is untouched.

    Raises:
        OSError: the folder is missing or read-only, `path` is a folder, the disk is full.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "expected a file to replace, got a folder", os.fspath(path))
    remove_leftovers(path)
    temporary, lock = _new(path)
    try:
        try:
            yield temporary
            descriptor = os.open(temporary, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    finally:
        os.close(lock)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file by these bytes. Raises OSError as `replacing`."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file by this text in UTF-8. Raises OSError as `replacing`."""
    write_bytes(path, text.encode())


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed writers of this path left behind.

    A file that a living one is writing stays.
    """
    path = pathlib.Path(path)
    ours = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.partial")
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(path.parent):
            if ours.fullmatch(name):
                _remove_if_left(path.parent / name)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make changed names in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _new(path: pathlib.Path) -> tuple[pathlib.Path, int]:
    """Return a new locked file beside `path`, and its lock's descriptor."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Between the two calls another writer may have taken it for a leftover.
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)


def _remove_if_left(leftover: pathlib.Path) -> None:
    try:
        descriptor = os.open(leftover, os.O_RDONLY)
    except OSError:
        return  # taken its place, or removed by another
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        leftover.unlink(missing_ok=True)
    except OSError:
        pass  # being written
    finally:
        os.close(descriptor)
