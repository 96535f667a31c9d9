"""Events in a folder: a SQLite file, and snapshots in files beside it; docs/formats.md."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import fcntl
import os
import pathlib
import re
import shlex
import sqlite3
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..atomic_file import remove_leftovers, replacing, sync_folder
from ..errors import InvalidInputError, StorageError
from .arguments import shown
from .event_store import (
    RECORD_MAGIC,
    Damage,
    DamagedRecord,
    Event,
    EventServer,
    EventStore,
    events_of,
    read_head,
    record_row,
    snapshot_bytes,
    snapshot_of,
)
from .graph import Scope, scope_from_text

FILE_NAME = "memory.db"
VECTORS_NAME = "vectors.bin"
"""File of vectors that can be made anew (`KeptVectors`); a forget removes it."""
_APPLICATION_ID = 0x454D454D  # "EMEM"
_FILE_VERSION = 2
_SCHEMA = (
    "CREATE TABLE about (scope TEXT, snapshot INTEGER, crc INTEGER)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY, record BLOB)",
    f"PRAGMA application_id={_APPLICATION_ID}",
    f"PRAGMA user_version={_FILE_VERSION}",
)
_WAL_HEAD, _WAL_FRAME_HEAD = 32, 24  # bytes
_SQLITE_ERRORS = (sqlite3.Error, UnicodeError)  # a message that quotes damaged bytes cannot be decoded
_BUSY_S = 10.0
_INTERVAL_S = 0.1
_POLL_S = 0.02
_MARK = re.compile(rb"[0-9]{1,20} ([0-9]{1,20}) ([0-9a-f]{8}) *\n")
_LOCK_ATTEMPTS = 5
_SNAPSHOT_NAME = re.compile(r"snapshot-([0-9a-f]{16})\.bin")
_UNFINISHED = re.compile(rf"\.({re.escape(FILE_NAME)}|{_SNAPSHOT_NAME.pattern})\.[0-9a-f]{{16}}\.partial(-\w+)?")
_NO_DAMAGE = ("BUSY", "LOCKED", "IOERR", "CANTOPEN", "NOMEM", "FULL", "PERM", "READONLY", "INTERRUPT")


@contextlib.contextmanager
def storage_errors(path: object, what: str) -> Iterator[None]:
    """Turn what the system or SQLite refuses inside into a StorageError."""
    try:
        yield
    except StorageError:
        raise
    except (OSError, *_SQLITE_ERRORS) as error:
        raise StorageError(f"{path}: cannot {what}: {_description(error)}") from error


class Folder(EventServer):
    """A folder for one scope.

    Attributes:
        name: its absolute path; the working directory may change.
    """

    name: pathlib.Path

    def __init__(self, directory: Any, read_only: bool):
        try:
            self.name = pathlib.Path(directory).absolute()
            os.fsencode(self.name)
            is_folder, is_other = self.name.is_dir(), self.name.exists()
        except (TypeError, ValueError, OSError) as error:
            raise InvalidInputError(f"directory: expected a path, got {shown(directory)} ({error})") from None
        if is_other and not is_folder:
            raise StorageError(f"{self.name}: expected a folder for the store, got a file; give another path")
        if read_only and not is_folder:
            raise StorageError(f"{self.name}: expected the folder of a store, got none")

    def events(self, scope: str, fsync: str, read_only: bool, repair: bool) -> EventStore:
        if not read_only:
            self.name.mkdir(parents=True, exist_ok=True)
        return FolderEvents(self.name, scope, fsync, read_only, repair)


class FolderEvents(EventStore):
    """Events in a SQLite file (`memory.db`, WAL, secure_delete), states in a file beside it.

    What SQLite does not do is done here: a record has a checksum (pages have none); it says which events were
    acknowledged before it, so that a damaged WAL, whose rest SQLite drops without a word, is told from one whose last
    write was never finished; the file LOCK says how far the events went when a writer opened or closed the folder.
    """

    def __init__(self, folder: pathlib.Path, scope: str, fsync: str, read_only: bool, repair: bool):
        """Open or make a folder's events; arguments as for `MemoryStore`.

        Raises:
            StorageError: another writer has the folder, damage, another version.
            InvalidInputError: another scope.
            FileNotFoundError: a writer put another file in the place of one.
        """
        super().__init__(folder, read_only)
        self._folder, self._scope, self._fsync = folder, scope, fsync
        self.path = folder / FILE_NAME
        self._wal = folder / f"{FILE_NAME}-wal"
        self._connection: sqlite3.Connection | None = None
        self._is_synced = True
        self._stop = threading.Event()
        self._lock_file = -1
        if not read_only:
            self._take_lock()
        _stores.add(self)
        try:
            self._open(repair)
        except _SQLITE_ERRORS as error:
            self._release()
            raise StorageError(f"{self.path}: cannot open: {_description(error)}") from error
        except BaseException:
            self._release()
            raise
        if fsync == "interval" and not read_only:
            threading.Thread(target=_sync_in_background, args=(weakref.ref(self), self._stop), daemon=True).start()

    # Opening.

    def _take_lock(self) -> None:
        path = self._folder / "LOCK"
        self._lock_file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not any(_is_locked(self._lock_file, fcntl.LOCK_EX) for _ in range(_LOCK_ATTEMPTS)):
            owner = os.pread(self._lock_file, 20, 0).partition(b" ")[0].decode("ascii", "replace")
            os.close(self._lock_file)
            self._lock_file = -1
            raise StorageError(
                f"{self._folder}: another store has it open for writing, in process {owner or 'unknown'}; close it "
                "there, or open the store with read_only=True"
            )

    def _mark(self) -> None:
        """Write the process and the last event for later openings.

        They must find this event.
        """
        number = str(self.num_acknowledged)
        line = f"{self._process} {number} {zlib.crc32(number.encode()):08x}".ljust(63) + "\n"
        with contextlib.suppress(OSError):  # if the disk refuses, the older number stays
            os.pwrite(self._lock_file, line.encode(), 0)

    def _read_mark(self) -> tuple[bool, int, str]:
        """Read LOCK: (is being written, least last event, problem)."""
        path = self._folder / "LOCK"
        if not path.exists():
            return False, 0, ""
        with path.open("rb") as file:
            is_written = self._read_only and not _is_locked(file.fileno(), fcntl.LOCK_SH)
            text = file.read()
        match = _MARK.fullmatch(text)
        if not text or (match and int(match[2], 16) == zlib.crc32(match[1])):
            return is_written, int(match[1]) if match else 0, ""
        expected = "expected a process, the number of the last event and its checksum"
        return is_written, 0, f"{expected}, got {text[:40]!r}"

    def _open(self, repair: bool) -> None:
        if not self._read_only:
            _remove_unfinished(self._folder)
        self._found_times = self._file_times()
        is_written, expected, problem = self._read_mark()  # before the events, which another process may write
        if not self.path.exists():
            self._begin(repair)
        if self.path.exists():
            number, events = self._read(repair, is_written)
            states = read_snapshot(snapshot_path(self._folder, number), self._scope) if number else {}
            self.num_acknowledged, self._content = number + len(events), (number, states, events)
        if not problem and self.num_acknowledged < expected:
            problem = (
                f"expected events up to {expected}, the last one when the store was opened or closed, got "
                f"{self.num_acknowledged} as the last one: a file was cut or is gone; restore it from a copy"
            )
        if problem:
            self.damage.append(Damage(str(self._folder / "LOCK"), problem, False))
        if self._read_only:
            return
        if self._wal.exists() and not _has_frame(self._wal.read_bytes()):
            os.truncate(self._wal, 0)  # no event is in it, see `_has_frame`
        self._connection = self._connect()
        synchronous = "FULL" if self._fsync == "always" else "NORMAL"
        for setting in ("temp_store=MEMORY", "secure_delete=ON", f"synchronous={synchronous}"):
            self._connection.execute(f"PRAGMA {setting}")
        self._mark()
        _remove_snapshots(self._folder, but=self._content[0])
        sync_folder(self._folder)
        try:
            self._empty_wal()  # what a killed writer left is acknowledged from now on, and what it forgot is gone
        except (*_SQLITE_ERRORS, StorageError):
            self.is_clean = False

    def _begin(self, repair: bool) -> None:
        """Make the file of a new folder that may be written."""
        if earlier := sorted(path.name for path in self._folder.glob("events-*.log")):
            raise StorageError(
                f"{self._folder}: expected {FILE_NAME}, got {earlier[0]}, which an unreleased version wrote; export it "
                "with that version (embodied-mem memory export), and open a new folder"
            )
        if (number := _newest_snapshot(self._folder)) and not repair:
            raise StorageError(
                f"{self.path}: expected it beside {snapshot_path(self._folder, number).name}, got none; restore it "
                "from a copy, or open the store with repair=True for what the snapshot has"
            )
        if not self._read_only:
            self._build(number, [])

    def _build(self, number: int, events: Sequence[Event]) -> None:
        """Rewrite the file atomically after removing the old WAL."""
        if self._wal.exists():
            with contextlib.suppress(*_SQLITE_ERRORS), contextlib.closing(self._connect()) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for path in (self._wal, self._folder / f"{FILE_NAME}-shm"):
            path.unlink(missing_ok=True)
        with (
            replacing(self.path) as temporary,
            contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA auto_vacuum=FULL")  # the file shrinks when a snapshot takes the place
            connection.execute("PRAGMA journal_mode=OFF")
            for statement in ("BEGIN", *_SCHEMA):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES (?, ?, ?)", self._about(number))
            connection.executemany("INSERT INTO events VALUES (?, ?)", map(record_row, events))
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode=WAL")

    def _about(self, snapshot: int) -> tuple[str, int, int]:
        return self._scope, snapshot, zlib.crc32(f"{snapshot} {self._scope}".encode())

    def _connect(self, options: str = "") -> sqlite3.Connection:
        uri = self.path.as_uri() + options
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_S)

    def _read(self, repair: bool, is_written: bool) -> tuple[int, list[Event]]:
        """Read all events over a read-only connection; repair if asked.

        Args:
            is_written: whether a writer may be in the middle of a write, so that the end of the WAL says nothing.

        Returns:
            Number of the snapshot, the events after it.
        """
        about = self.path.stat()
        wal = self._wal_bytes()
        is_quiet = wal is None or not (is_written or _has_frame(wal))  # nobody writes: no file is made beside it
        events: list[Event] = []
        number, problem = _newest_snapshot(self._folder), ""
        try:
            with contextlib.closing(self._connect("?mode=ro" + "&immutable=1" * is_quiet)) as connection:
                connection.execute("BEGIN")
                number = self._checked_about(connection)
                (problem,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                problem = "" if problem == "ok" else f"SQLite: {problem}"
                rows = connection.execute("SELECT number, record FROM events ORDER BY number")
                for event in events_of(rows, number):
                    events.append(event)
        except (DamagedRecord, UnicodeDecodeError) as error:
            problem = str(error)
        except _SQLITE_ERRORS as error:
            if _is_of(error, _NO_DAMAGE):
                raise
            problem = f"SQLite: {error}"
        if is_quiet:
            now = self.path.stat()
            if self._wal_bytes() != wal or (now.st_ino, now.st_mtime_ns) != (about.st_ino, about.st_mtime_ns):
                raise StorageError(f"{self.path}: a writer opened it while it was read; open it again")
        last = number + len(events)
        promise, torn = _promise(wal or b""), "" if is_written else _torn(wal or b"")
        is_wal = not problem and promise > last
        if is_wal:
            problem = f"its WAL, {torn or 'before its end'}; event {promise} was acknowledged"
        if problem and not repair:
            raise StorageError(
                f"{self.path}: damaged ({problem}); restore the folder from a copy, or open the store with repair=True "
                f"to cut everything from event {last + 1} on"
            )
        if problem or torn:
            self.damage.append(Damage(str(self.path if problem else self._wal), problem or torn, not self._read_only))
        if problem and not is_wal and not self._read_only:
            self._build(number, events)
        return number, events

    def _wal_bytes(self) -> bytes | None:
        return self._wal.read_bytes() if self._wal.exists() else None

    def _checked_about(self, connection: sqlite3.Connection) -> int:
        """Return the number of the snapshot, of a file of ours."""
        (application,), (version,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != _APPLICATION_ID:
            raise DamagedRecord(f"expected the database of a store, got application {application}")
        if version != _FILE_VERSION:
            raise StorageError(
                f"{self.path}: expected format version {_FILE_VERSION}, got {version}; open it with the release that "
                "wrote it"
            )
        rows = connection.execute("SELECT scope, snapshot, crc FROM about").fetchall()
        if len(rows) != 1 or zlib.crc32(f"{rows[0][1]} {rows[0][0]}".encode()) != rows[0][2]:
            raise DamagedRecord("the row of the scope does not have its checksum")
        scope, number = rows[0][:2]
        if scope != self._scope:
            raise InvalidInputError(f"{self._folder}: expected the scope it was made with, {scope}, got {self._scope}")
        return int(number)

    # Writing.

    def _writer(self) -> sqlite3.Connection:
        self.check_usable()
        if self._connection is None:
            raise StorageError(f"{self._folder}: is not open")
        return self._connection

    def _append(self, events: Sequence[Event]) -> None:
        for event in events:
            self._append_one(event)

    def _append_one(self, event: Event) -> None:
        connection = self._writer()
        try:
            connection.execute("INSERT INTO events VALUES (?, ?)", record_row(event))
            self.num_acknowledged = event.number
        except _SQLITE_ERRORS as error:
            problem = f"{self.path}: cannot write: {_description(error)}"
            if _is_of(error, ("IOERR_FSYNC",)):
                self._refusal = f"{problem}; what is on the disk is not known: open the store again"
            raise StorageError(f"{problem}; the event was not recorded") from error
        except BaseException:  # Ctrl-C: the file says whether it was written
            (last,) = connection.execute("SELECT max(number) FROM events").fetchone()
            self.num_acknowledged = max(self.num_acknowledged, last or 0)
            raise
        finally:
            self._is_synced = self._fsync == "always"

    def sync(self) -> None:
        if self._is_synced:
            return
        self._is_synced = True
        try:
            descriptor = os.open(self._wal, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._refusal = f"{self._wal}: cannot sync: {error}; what is on the disk is not known: open the store again"
            raise StorageError(self._refusal) from error

    def replace(self, states: Mapping[str, bytes], is_forgetting: bool = False) -> str:
        connection = self._writer()
        if is_forgetting:
            (self._folder / VECTORS_NAME).unlink(missing_ok=True)
        path = write_snapshot(self._folder, self._scope, self.num_acknowledged, states)
        read_snapshot(path, self._scope)  # nothing is removed for a file that cannot be read
        with storage_errors(self.path, "put a snapshot in the place of events"):
            connection.execute("PRAGMA cache_size=-65536")  # what is removed need not be written before it goes
            with connection:  # which rolls back whatever happens, Ctrl-C too
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("DELETE FROM events")  # without a condition all pages are overwritten
                connection.execute(
                    "UPDATE about SET scope = ?, snapshot = ?, crc = ?", self._about(self.num_acknowledged)
                )
            connection.execute("PRAGMA cache_size=-2000")
            _remove_snapshots(self._folder, but=self.num_acknowledged)
            sync_folder(self._folder)
            self._empty_wal()
        self.is_clean = True
        return str(path)

    def _empty_wal(self) -> None:
        """Move the WAL to the file, and leave no byte of it."""
        (is_busy, *_) = self._writer().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StorageError(f"{self.path}: a reader holds it for {_BUSY_S:g} s; the next change tries again")

    def has_news(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self._file_times() == self._found_times:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _file_times(self) -> list[tuple[int, int, int]]:
        stats = [path.stat() for path in (self.path, self._wal) if path.exists()]
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in stats]

    def _closing(self) -> None:
        if self._lock_file >= 0:
            self._mark()

    def _release(self) -> None:
        self._stop.set()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_SQLITE_ERRORS):
                connection.close()  # empties and removes the WAL
        if self._lock_file >= 0:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)  # a child that was forked a moment ago may have a copy
            os.close(self._lock_file)
            self._lock_file = -1


_stores: weakref.WeakSet[FolderEvents] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Leave the folder to the parent.

    Connections are kept for ever: to close one means to wait for locks that a thread of the parent held.
    """
    for store in list(_stores):
        if store._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(store._connection))
        if store._lock_file >= 0:
            os.close(store._lock_file)
            store._lock_file = -1


os.register_at_fork(after_in_child=_let_go_in_child)


def _is_locked(file: int, how: int) -> bool:
    """Take a free lock; readers learn whether somebody writes."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.01)
        return False
    return True


def _sync_in_background(store: weakref.ref[FolderEvents], stop: threading.Event) -> None:
    while not stop.wait(_INTERVAL_S):
        one = store()
        if one is None:
            return
        with contextlib.suppress(StorageError):  # the next event tells
            one.sync()
        del one  # or the store would not be collected while this waits


def _promise(wal: bytes) -> int:
    """Return the last event that a record in a WAL calls acknowledged."""
    last, at = 0, wal.find(RECORD_MAGIC)
    while at >= 0:
        if head := read_head(wal, at):
            last = max(last, head.acknowledged)
        at = wal.find(RECORD_MAGIC, at + 1)
    return last


def _has_frame(wal: bytes) -> bool:
    """Decide whether SQLite takes the first frame of a WAL.

    Where it takes none, SQLite 3.40 copies what it finds in its heap, forgotten texts too, into the file `-shm`.
    """
    order = _wal_order(wal)
    frame = wal[_WAL_HEAD : _WAL_HEAD + _WAL_FRAME_HEAD + int.from_bytes(wal[8:12], "big")]
    if len(frame) <= _WAL_FRAME_HEAD or len(frame) % 8 or frame[8:16] != wal[16:24]:
        return False
    sums = _wal_sums(order, frame[:8] + frame[_WAL_FRAME_HEAD:], _wal_sums(order, wal[:24], (0, 0)))
    return sums == struct.unpack(">II", frame[16:24])


def _torn(wal: bytes) -> str:
    """Return the damage at the end of a WAL; "" for none.

    It may be a last write that was never finished.

    SQLite ends at the first frame that is not whole, and says nothing. Source: sqlite.org/fileformat2.html, 4.
    """
    if not wal:
        return ""
    order = _wal_order(wal)
    sums = _wal_sums(order, wal[:24], (0, 0))
    if len(wal) < _WAL_HEAD or sums != struct.unpack(">II", wal[24:32]):
        return "its head does not have its checksum"
    frame_bytes, salts = int.from_bytes(wal[8:12], "big") + _WAL_FRAME_HEAD, wal[16:24]
    end = valid = _WAL_HEAD
    is_whole = True
    for at in range(_WAL_HEAD, len(wal), frame_bytes):
        frame = wal[at : at + frame_bytes]
        if is_whole:
            after = _wal_sums(order, frame[:8] + frame[_WAL_FRAME_HEAD:], sums)
            has_sums = len(frame) == frame_bytes and after == struct.unpack(">II", frame[16:24])
            if has_sums and frame[8:16] == salts:
                sums, valid = after, at + frame_bytes
                if frame[4:8] != bytes(4):  # the last one of a transaction
                    end = at + frame_bytes
                continue
            is_whole = False
            if has_sums or len(frame) < frame_bytes:
                return f"the frame at {at} is not whole"
        # Frames from before the WAL began anew have neither salt; the damage may have hit one of them as well.
        if frame[8:12] == salts[:4] or frame[12:16] == salts[4:]:
            return f"the frame at {end} is not whole"
    return "" if end >= valid else f"the transaction at {end} has no end"


def _wal_order(wal: bytes) -> str:
    return ">" if wal[3:4] and wal[3] & 1 else "<"


def _wal_sums(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 8 * 2}I", data[: len(data) // 8 * 8]))
    for one in words:
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + next(words) + first) & 0xFFFFFFFF
    return first, second


def _is_of(error: Exception, names: Sequence[str]) -> bool:
    return getattr(error, "sqlite_errorname", "SQLITE_").startswith(tuple(f"SQLITE_{name}" for name in names))


def _description(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if _is_of(error, ("FULL",)):
        return f"No space left on device ({error})"
    return f"{error} ({name})" if name else str(error)


# Snapshots.


def snapshot_path(folder: pathlib.Path, number: int) -> pathlib.Path:
    """Return the path of the snapshot after an event."""
    return folder / f"snapshot-{number:016x}.bin"


def write_snapshot(folder: pathlib.Path, scope: str, number: int, states: Mapping[str, bytes]) -> pathlib.Path:
    """Write the file whole or not at all, and return its path."""
    data, path = snapshot_bytes(scope, number, states), snapshot_path(folder, number)
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the snapshot: {error}; nothing that was recorded is lost") from error
    return path


def read_snapshot(path: pathlib.Path, scope: str) -> dict[str, bytes]:
    """Return the states in the file.

    Raises:
        StorageError: no snapshot, damaged or cut, or of another version.
        InvalidInputError: a snapshot of another scope.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot read the snapshot: {error}; restore it from a copy") from error
    number, states = snapshot_of(data, scope, path)
    if snapshot_path(path.parent, number) != path:
        raise StorageError(f"{path}: expected the snapshot after {number} events; it was renamed")
    return states


def _newest_snapshot(folder: pathlib.Path) -> int:
    """Return the number of the newest snapshot; 0 without one."""
    names = (_SNAPSHOT_NAME.fullmatch(path.name) for path in folder.iterdir())
    return max((int(name[1], 16) for name in names if name), default=0)


def _remove_snapshots(folder: pathlib.Path, but: int) -> None:
    for path in list(folder.iterdir()):
        if _SNAPSHOT_NAME.fullmatch(path.name) and path != snapshot_path(folder, but):
            path.unlink(missing_ok=True)


def _remove_unfinished(folder: pathlib.Path) -> None:
    """Remove unfinished files of killed writers, and no others."""
    for path in list(folder.iterdir()):
        if match := _UNFINISHED.fullmatch(path.name):
            if match[3]:  # of SQLite, beside an unfinished file
                path.unlink(missing_ok=True)
            else:
                remove_leftovers(folder / match[1])


def is_store_folder(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder has a store's files, even damaged or old."""
    patterns = (FILE_NAME, "LOCK", "snapshot-*.bin", "events-*.log")
    return any(any(pathlib.Path(folder).glob(pattern)) for pattern in patterns)


def folder_scope(folder: str | os.PathLike[str], **given: str | None) -> Scope:
    """Return the scope of a store's folder, else the given one.

    Args:
        folder: it may be missing.
        given: fields of the scope that are known; None for what the folder says.

    Raises:
        InvalidInputError: the folder has another scope than what is given.
    """
    folder, known = pathlib.Path(folder), {name: value for name, value in given.items() if value is not None}
    if (scope := _stored_scope(folder)) is None:
        return Scope(**known)
    own = dataclasses.asdict(scope)
    if wrong := {name: value for name, value in known.items() if own[name] != value}:
        raise InvalidInputError(f"scope: expected that of {folder}, {_scope_options(own)}; got {_scope_options(wrong)}")
    return scope


def _stored_scope(folder: pathlib.Path) -> Scope | None:
    """Return the scope in the files; None without a whole store."""
    path = folder.absolute() / FILE_NAME
    if not path.is_file():
        return None
    options = "" if path.with_name(f"{FILE_NAME}-wal").exists() else "&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro{options}", uri=True)) as connection:
            return scope_from_text(connection.execute("SELECT scope FROM about").fetchone()[0])
    except (*_SQLITE_ERRORS, TypeError, InvalidInputError):
        return None


def _scope_options(fields: Mapping[str, str]) -> str:
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in fields.items() if value) or "nobody's"
