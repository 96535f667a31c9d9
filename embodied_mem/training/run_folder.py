"""The folder of a run, which belongs to one configuration and to one running program at a time.

claim_run(run_dir, config)
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import pathlib
import socket
from collections.abc import Iterator

from embodied_mem.atomic_file import write_text
from embodied_mem.errors import CheckpointError
from embodied_mem.training.config import STAGES, Config

_MADE = ("checkpoints", "episodes_0.jsonl.gz")
"""Files of a stage that has begun; the correction plays its episodes before it trains."""


_LOG = logging.getLogger(__name__)


_held: dict[tuple[int, int], int] = {}  # device and inode of a lock -> its descriptor, open until the process ends


def claim_run(run_dir: str | os.PathLike[str], config: Config, first: bool = True) -> None:
    """Make and lock the folder; write its `config.json`.

    First it makes sure that what lies there fits the configuration. Stages that have not begun may be configured anew:
    a finished executor can be kept for another compiler.

    Args:
        run_dir: of the run.
        config: of the run.
        first: False in the further processes of one run, for all of which the first one holds the lock and writes.

    Raises:
        CheckpointError: the folder cannot be written, another program runs in it, or something there was made under
            other settings; the message names each with both values.
    """
    run_dir = pathlib.Path(run_dir)
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        if first:
            _lock(run_dir)
    except OSError as error:
        raise CheckpointError(f"{run_dir}: expected a folder that a run can write to: {error}") from error
    check_run(run_dir, config)
    if first:
        write_text(run_dir / "config.json", config.to_json() + "\n")


def check_run(run_dir: pathlib.Path, config: Config) -> list[str]:
    """Return a folder's begun stages; check that they fit the configuration.

    Raises:
        CheckpointError: something there was made under other settings, or its `config.json` is damaged.
    """
    path = run_dir / "config.json"
    begun = [stage for stage in STAGES if any((run_dir / stage / made).exists() for made in _MADE)]
    has_data = any(any(run_dir.glob(f"{name}.*")) for name in ("bank", "lessons", "tokenizer"))
    if path.exists() and (begun or has_data):
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: expected JSON: {error}; delete {run_dir} or use another folder") from error
        stage = begun[-1] if begun else "data"
        changed = list(_changes(saved, json.loads(json.dumps(config.parts(stage))), ""))
        if changed:
            raise CheckpointError(
                f"{run_dir}: its {stage} was made under another configuration: {'; '.join(changed)}. "
                "Use the configuration that it was made with, or another --run_dir"
            )
    return begun


def _lock(run_dir: pathlib.Path) -> None:
    """Lock a folder by a file with the process's number, once."""
    path = run_dir / "lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    stat = os.fstat(descriptor)
    key = stat.st_dev, stat.st_ino
    if key in _held:
        os.close(descriptor)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            _LOG.warning("%s: this file system has no locks (%s); let no other program run there", run_dir, error)
            _held[key] = descriptor
            return
        os.close(descriptor)
        raise CheckpointError(
            f"{run_dir}: another program runs in this folder, process {holder or 'unknown'}; wait until it ends, stop "
            "it, or use another --run_dir"
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    _held[key] = descriptor


def _changes(saved: object, wanted: object, name: str) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(saved, dict):
        for key, value in wanted.items():
            yield from _changes(saved.get(key, "nothing"), value, f"{name}.{key}" if name else key)
    elif saved != wanted:
        yield f"{name}: was {saved}, now {wanted}"
