"""Folders on an object store (`gs://`, `s3://`), each with a local copy that programs read and write.

    folder = local_copy("gs://bucket/run")     # with the files of the store; a path without `://` stays itself
    push(folder)                               # sends what has changed since

The local copy keeps its own guarantees: atomic files, a lock. The list of files is sent after the files, so a reader
finds all of a push or the one before. Stores are those of `etils.epath`; they need their packages (`gcsfs`, `s3fs`).
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
from typing import Any

from embodied_mem.atomic_file import replacing
from embodied_mem.errors import MissingDependencyError
from embodied_mem.progress import counted

LIST = ".files.json"
_stores: dict[pathlib.Path, Any] = {}  # local copy -> its place in the store


def local_copy(place: str | os.PathLike[str]) -> pathlib.Path:
    """Fetch a place in a store, once; a local path stays itself.

    Raises:
        MissingDependencyError: the store's package is not installed, or there is none.
    """
    if "://" not in str(place):
        return pathlib.Path(place)
    from etils import epath

    try:
        store = epath.Path(place)
        name = hashlib.sha256(str(store).encode()).hexdigest()[:16]
        folder = pathlib.Path.home() / ".cache/embodied_mem/stores" / name
        if folder in _stores:
            return folder
        whole = store / LIST
        stamps = json.loads(whole.read_text()) if whole.exists() else _store_stamps(store, "")
    except (ImportError, KeyError) as error:
        stores = "expected a folder, gs://... (pip install gcsfs) or s3://... (pip install s3fs)"
        raise MissingDependencyError(f"{place}: {stores}: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    there = _stamps(folder)
    for name in there.keys() - stamps.keys():
        (folder / name).unlink()
    if names := [name for name, stamp in stamps.items() if there.get(name) != stamp]:
        for name in counted(names, f"fetching {place}", "file"):
            path, mtime = folder / name, stamps[name][1]
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                _copy(store / name, temporary)
                os.utime(temporary, ns=(mtime, mtime))
    _stores[folder] = store
    return folder


def is_copy(folder: pathlib.Path) -> bool:
    """Tell whether a folder is a local copy."""
    return folder in _stores


def push(folder: pathlib.Path) -> None:
    """Send the changes of a local copy; nothing for other folders."""
    if folder not in _stores:
        return
    store, stamps = _stores[folder], _stamps(folder)
    whole = store / LIST
    before = json.loads(whole.read_text()) if whole.exists() else {}
    for name, stamp in stamps.items():
        if before.get(name) != stamp:
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            _copy(folder / name, store / name)
    store.mkdir(parents=True, exist_ok=True)
    whole.write_text(json.dumps(stamps))
    for name in before.keys() - stamps.keys():
        (store / name).unlink(missing_ok=True)


def _stamps(folder: pathlib.Path) -> dict[str, list[int]]:
    """Return size and time of each whole file, by name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path.stat() for path in files if path.name != "lock"}
    return {
        name: [stat.st_size, stat.st_mtime_ns]
        for name, stat in names.items()
        if not name.endswith(".partial") and "orbax-checkpoint-tmp" not in name
    }


def _store_stamps(store: Any, prefix: str) -> dict[str, list[int]]:
    """Return the stamps of files that no `push` has sent."""
    stamps: dict[str, list[int]] = {}
    for path in (store / prefix).iterdir() if store.exists() else ():
        name = f"{prefix}{path.name}"
        if path.is_dir():
            stamps |= _store_stamps(store, f"{name}/")
        else:
            stat = path.stat()
            stamps[name] = [stat.length, int(stat.mtime * 1e9)]
    return stamps


def _copy(source: Any, target: Any) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 24)
