"""A store in a folder: every change of a memory module is an event, on disk before it counts.

    notes = NoteMemory()
    with MemoryStore("memory/ann", {"notes": notes}, scope=Scope(user="ann")) as store:
        store.record("notes", notes.propose("I like tea.", episode=0, step=0, time=1))
        store.snapshot()                                # a restart reads this and the events after it; the store
                                                        # writes one by itself when the log has grown, too
        receipt = store.forget(episode=17)              # afterwards no file holds it
    print(receipt.removed)

A module is a deterministic state machine (`MemoryModule`): the same events give the same state. Reopening after a
crash restores the snapshot and applies the events after it, so all acknowledged changes are there.

An `EventStore` holds them. `FolderEvents` has events in a SQLite file and snapshots in files beside it;
`postgres.Server` has the events of many scopes in PostgreSQL. One writer per scope; any number of stores with
`read_only=True` beside it, each of which sees the moment at which it was opened. One store belongs to one scope; no
method takes a scope.

An event is recorded only if its module can apply it (`MemoryModule.check`). One that it cannot, because the module
failed or is another one now, is set aside when the folder is opened, and reported.

`forget` is an event, too. From its record on it will be finished: where the disk refused, or the store was killed on
the way, the next change finishes it, or opening the store for writing.
"""

from __future__ import annotations

import abc
import contextlib
import copy
import ctypes
import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import sqlite3
import struct
import threading
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

from ..atomic_file import remove_leftovers, replacing, sync_folder
from ..errors import InvalidInputError, StorageError
from ..forks import forking_lock
from .arguments import check_depth, checked_call, checked_flag, checked_number, checked_real, checked_text, shown
from .graph import Scope, checked_scope, scope_from_text, scope_text
from .people import ROLES
from .words import folded, looks_like, names, normal

FILE_NAME = "memory.db"
VECTORS_NAME = "vectors.bin"
"""Of vectors that can be made anew (`KeptVectors`); a forget takes them away."""

_STATE_VERSION = 1
_EVENT, _FORGET = 1, 2
_ATTEMPTS = 20


# Memories in a store.


@dataclasses.dataclass(frozen=True)
class Selector:
    """The thing to forget: exactly one of a user, an object, an episode, an entry and everything.

    Attributes:
        user: name of somebody who spoke, in any case and Unicode form: what this user said is meant, and, of the user
            of the scope, the profile; not what sensors saw.
        object: a thing ("mug 1") or a whole class ("mug"). Whatever names it is meant, so "desk" goes for
            "desk lamp 1" too; case, Unicode form, singular and plural make no difference.
        episode: its number.
        entry: its id, as `LifelongMemory.get` takes it: "notes:12".
        everything: True for all that a scope holds.

    Raises:
        InvalidInputError: not exactly one of them, or a value that names nothing.
    """

    user: str | None = None
    object: str | None = None
    episode: int | None = None
    entry: str | None = None
    everything: bool | None = None

    def __post_init__(self) -> None:
        fields = {name: value for name, value in vars(self).items() if value is not None}
        if len(fields) != 1:
            got = shown(fields) if fields else "none"
            expected = "expected one of user, object and episode, or an entry, or everything"
            raise InvalidInputError(f"selector: {expected}, got {got}")
        ((kind, value),) = fields.items()
        if kind == "episode":
            value = checked_number("selector: episode", value)
        elif kind == "everything":
            if value is not True:
                raise InvalidInputError(f"selector: everything: expected True, got {shown(value)}")
        elif not normal(checked_text(f"selector: {kind}", value)).strip(" _\t\n\r"):
            raise InvalidInputError(f"selector: {kind}: expected a name, got {shown(value)}")
        object.__setattr__(self, kind, value)

    @property
    def kind(self) -> str:
        """The name of the field that is given."""
        return next(field.name for field in dataclasses.fields(self) if getattr(self, field.name) is not None)

    @property
    def value(self) -> Any:
        return getattr(self, self.kind)

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        return names(self.object or "")

    def in_text(self, text: str) -> bool:
        """Test a text for the object's name."""
        return self.object is not None and self._pattern.search(folded(text)) is not None

    def is_like(self, text: str) -> bool:
        """Test for a form of the object's name that `in_text` does not decide."""
        return self.object is not None and looks_like(self.object, text)

    def is_name(self, name: str) -> bool:
        """Test for the user's or object's name in any Unicode form and case."""
        meant = self.user or self.object
        return meant is not None and folded(name).split() == folded(meant).split()

    def is_entry(self, module: str, number: int | str) -> bool:
        """Test for the entry of a module under a number."""
        return self.entry == f"{module}:{number}"

    def number_in(self, module: str) -> str:
        """Return the entry's number in this module; else ""."""
        name, _, number = (self.entry or "").partition(":")
        return number if name == module else ""

    def is_user_of(self, scope: Scope) -> bool:
        """Test for the user of a scope, by default called "user"."""
        return self.user is not None and self.is_name(scope.user or "user")

    def is_speaker(self, name: str, scope: Scope) -> bool:
        """Test for the user's name; a scope's user has chat roles too."""
        return self.user is not None and (self.is_name(name) or (normal(name) in ROLES and self.is_user_of(scope)))


class MemoryModule(Protocol):
    """A memory as its keeper sees it. The same events in the same order give the same `state()`."""

    def check(self, event: dict[str, Any]) -> None:
        """Raise InvalidInputError for an event that no state can apply; the store asks before it records one."""

    def apply(self, event: dict[str, Any]) -> Any:
        """Apply the event; return what `MemoryStore.record` returns.

        Raises InvalidInputError, having changed nothing; whatever else it raises closes the store.
        """

    def state(self) -> bytes:
        """Return everything that `restore` needs."""

    def restore(self, data: bytes) -> None:
        """Take a state in place of the present one."""

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names from the state; return counts by kind."""


def restoring(restore: Callable[..., None]) -> Callable[..., None]:
    """Return a `restore` that raises InvalidInputError for whatever it cannot read."""

    @functools.wraps(restore)
    def guard(*arguments: Any, **options: Any) -> None:
        try:
            restore(*arguments, **options)
        except InvalidInputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"state: expected what state() returned, got other bytes ({shown(error)})"
            ) from error

    return guard


def write_state(format_name: str, data: Mapping[str, Any], *parts: bytes) -> bytes:
    """Return the bytes of a state."""
    whole = {"format": format_name, "version": _STATE_VERSION, **data, "parts": [len(part) for part in parts]}
    line = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return b"".join((line, b"\n", *parts))


def read_state(format_name: str, data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the data and the parts that `write_state` wrote.

    Raises:
        InvalidInputError: other bytes, cut, or of another format or version.
    """
    if not isinstance(data, bytes):
        raise InvalidInputError(f"state: expected bytes, got {shown(data)}")
    end = data.find(b"\n")
    try:
        state = json.loads(data[: max(end, 0)].decode("utf-8", "surrogatepass"))
        found = state["format"], state["version"]
        lengths = [int(length) for length in state.pop("parts")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInputError(
            f"state: expected {format_name}, a line of JSON first, got {data[:60]!r}; it is damaged"
        ) from error
    if found != (format_name, _STATE_VERSION):
        raise InvalidInputError(
            f"state: expected {format_name} version {_STATE_VERSION}, got {found[0]} version {found[1]}"
        )
    parts, offset = [], end + 1
    for length in lengths:
        parts.append(data[offset : offset + length])
        offset += length
    if offset != len(data):
        raise InvalidInputError(f"state: expected {offset} bytes of {format_name}, got {len(data)}; it is damaged")
    return state, parts


class RecordedModule(abc.ABC):
    """A memory of one scope, all of whose changes are events.

    Args:
        scope: whose it is.
        record: gets every event and must have `apply` called with it; None for `apply` itself.
    """

    format_name: ClassVar[str]

    def __init__(self, scope: Scope | None, record: Callable[[dict[str, Any]], Any] | None):
        self.scope = checked_scope(scope)
        self._record = self.apply if record is None else checked_call("record", record)

    @abc.abstractmethod
    def check(self, event: Mapping[str, Any]) -> None:
        """Raise InvalidInputError for an event that cannot be applied."""

    @abc.abstractmethod
    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`."""

    def apply(self, event: Mapping[str, Any]) -> None:
        """Apply an event; for an impossible one raise InvalidInputError and change nothing."""
        self.check(event)
        self.apply_checked(event)

    def state(self) -> bytes:
        """Return all that is remembered, as bytes; vectors are made anew."""
        data, *parts = self._state()
        return write_state(self.format_name, {"scope": dataclasses.asdict(self.scope), **data}, *parts)

    @restoring
    def restore(self, data: bytes) -> None:
        """Restore what `state` returned; for other bytes raise InvalidInputError and change nothing."""
        state, parts = read_state(self.format_name, data)
        if state["scope"] != dataclasses.asdict(self.scope):
            raise InvalidInputError(f"state: expected the scope {self.scope}, got {state['scope']}")
        self._restore(state, parts)

    @abc.abstractmethod
    def _state(self) -> tuple[Any, ...]:
        """Return what is written beside the scope, then the parts that are bytes."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        """Restore what `_state` returned, or raise and stay as before."""

    @abc.abstractmethod
    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names; return counts by kind of record."""

    def fork(self) -> Self:
        """Return an independent copy that records nowhere."""
        other = copy.copy(self)
        other._record = other.apply
        return other


# What holds the events.


@dataclasses.dataclass(frozen=True)
class Damage:
    """Something that was not whole when the store was opened. `cut`: taken off; a read-only store only ignores it."""

    file: str
    reason: str
    cut: bool


class Event(NamedTuple):
    """An acknowledged event. Numbers count up by one from 1."""

    number: int
    kind: int
    payload: bytes


_APPLICATION_ID = 0x454D454D  # "EMEM"
_FILE_VERSION = 2
_SCHEMA = (
    "CREATE TABLE about (scope TEXT, snapshot INTEGER, crc INTEGER)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY, record BLOB)",
    f"PRAGMA application_id={_APPLICATION_ID}",
    f"PRAGMA user_version={_FILE_VERSION}",
)
_RECORD_MAGIC = b"\xff\xfeEVENT\xfd"  # no text in UTF-8 has it
_RECORD_HEAD = struct.Struct("<8sQQIII")  # magic, number, `_Head.acknowledged`, kind, CRC of the payload, CRC before it
_MAX_PAYLOAD_BYTES = 1 << 28
_WAL_HEAD, _WAL_FRAME_HEAD = 32, 24  # bytes
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SQLITE_ERRORS = (sqlite3.Error, UnicodeError)  # a message that quotes damaged bytes cannot be decoded
_BUSY_S = 10.0
_INTERVAL_S = 0.1
_POLL_S = 0.02
_MARK = re.compile(rb"[0-9]{1,20} ([0-9]{1,20}) ([0-9a-f]{8}) *\n")
_LOCK_ATTEMPTS = 5
_SNAPSHOT_NAME = re.compile(r"snapshot-([0-9a-f]{16})\.bin")
_UNFINISHED = re.compile(rf"\.({re.escape(FILE_NAME)}|{_SNAPSHOT_NAME.pattern})\.[0-9a-f]{{16}}\.partial(-\w+)?")
_NO_DAMAGE = ("BUSY", "LOCKED", "IOERR", "CANTOPEN", "NOMEM", "FULL", "PERM", "READONLY", "INTERRUPT")


class _Head(NamedTuple):
    number: int
    acknowledged: int  # the last event that was acknowledged when this one was written
    kind: int
    crc: int


class DamagedRecord(Exception):
    """A record that is not what was written."""


@contextlib.contextmanager
def _storage_errors(path: object, what: str) -> Iterator[None]:
    """Turn what the system or SQLite refuses inside into a StorageError."""
    try:
        yield
    except StorageError:
        raise
    except (OSError, *_SQLITE_ERRORS) as error:
        raise StorageError(f"{path}: cannot {what}: {_description(error)}") from error


class EventStore(abc.ABC):
    """The events of one scope in order, and the states that stand for the oldest of them.

    One thread at a time calls it.

    Attributes:
        damage: what was not whole when it was opened.
        num_acknowledged: number of the last event that is there to stay.
        is_clean: whether everything that was removed is off the disk; `replace` sees to it.
    """

    def __init__(self, name: object, read_only: bool):
        self._name, self._read_only = name, read_only
        self._process = os.getpid()
        self._refusal = ""
        self._content: tuple[int, dict[str, bytes], list[Event]] = 0, {}, []
        self.damage: list[Damage] = []
        self.num_acknowledged = 0
        self.is_clean = True

    def replay(self) -> tuple[int, dict[str, bytes], list[Event]]:
        """Return, once, the number of the states, the states, the events after them."""
        found, self._content = self._content, (0, {}, [])
        return found

    def append(self, kind: int, payload: bytes) -> None:
        """Write an event and, by the policy, sync it.

        Raises:
            InvalidInputError: it is too large, or the store is read-only.
            StorageError: it is not recorded, and nothing else was lost; or the message says that nobody knows.
        """
        if len(payload) > _MAX_PAYLOAD_BYTES:
            raise InvalidInputError(f"event: expected at most {_MAX_PAYLOAD_BYTES} bytes, got {len(payload)}")
        self.check_usable()
        self._append(Event(self.num_acknowledged + 1, kind, payload))

    @abc.abstractmethod
    def _append(self, event: Event) -> None:
        """Write the next event, sync it by the policy, count it."""

    @abc.abstractmethod
    def sync(self) -> None:
        """Sync what was written, whatever the policy."""

    @abc.abstractmethod
    def replace(self, states: Mapping[str, bytes], is_forgetting: bool = False) -> str:
        """Put states in the place of all events and return where; what no state holds is gone then.

        Raises:
            StorageError: what was there is there, or the states are.
        """

    @abc.abstractmethod
    def has_news(self, timeout_s: float) -> bool:
        """Wait for a change since opening; return False after the time."""

    def check_usable(self) -> None:
        """Raise InvalidInputError or StorageError if nothing can be written."""
        if self._read_only:
            raise InvalidInputError(f"{self._name}: opened with read_only=True, so nothing can be written")
        if self._refusal:
            raise StorageError(self._refusal)

    def close(self) -> None:
        """Let go of it; whatever writes raises StorageError from now on."""
        if self._process != os.getpid():
            return
        if not self._refusal:
            self._refusal = f"{self._name}: expected an open store, got one that was closed; open it again"
            self._closing()
        self._release()

    def _closing(self) -> None:  # noqa: B027  a server needs none
        """Note what the next opening must find."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Let another writer have it."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class EventServer(abc.ABC):
    """A place that keeps events, of one scope or of many.

    Attributes:
        name: as messages call it.
    """

    name: object

    @abc.abstractmethod
    def events(self, scope: str, fsync: str, read_only: bool, repair: bool) -> EventStore:
        """Open the events of a scope; arguments as for `MemoryStore`.

        Raises:
            StorageError: another writer has the scope, damage, another version, nothing to read.
            InvalidInputError: another scope.
        """


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
        """Open the events of a folder that exists, or begin them; arguments as for `MemoryStore`.

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
        """Write the process and the last event, which later openings must find."""
        number = str(self.num_acknowledged)
        line = f"{self._process} {number} {zlib.crc32(number.encode()):08x}".ljust(63) + "\n"
        with contextlib.suppress(OSError):  # if the disk refuses, the older number stays
            os.pwrite(self._lock_file, line.encode(), 0)

    def _read_mark(self) -> tuple[bool, int, str]:
        """Read LOCK: is the folder being written, its least last event, a problem."""
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
        """Write the file anew, whole or not at all; the old WAL goes before."""
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
        """Read all events by a connection that can change nothing; repair if asked.

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

    def _append(self, event: Event) -> None:
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
        with _storage_errors(self.path, "put a snapshot in the place of events"):
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
    """Take the lock if it is free; a reader learns so whether somebody writes."""
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


def record_row(event: Event) -> tuple[int, bytes]:
    """Return a table row, which names the event acknowledged before it."""
    number, kind, payload = event
    head = _RECORD_HEAD.pack(_RECORD_MAGIC, number, number - 1, kind, zlib.crc32(payload), 0)[:-4]
    return number, b"".join((head, struct.pack("<I", zlib.crc32(head)), payload))


def _head(data: bytes, at: int = 0) -> _Head | None:
    """Return the head of a record; None for none or a damaged one."""
    head = data[at : at + _RECORD_HEAD.size]
    if len(head) < _RECORD_HEAD.size:
        return None
    magic, number, acknowledged, kind, crc, own = _RECORD_HEAD.unpack(head)
    return _Head(number, acknowledged, kind, crc) if magic == _RECORD_MAGIC and own == zlib.crc32(head[:-4]) else None


def events_of(rows: Iterable[tuple[int, Any]], number: int) -> Iterator[Event]:
    """Yield the events of rows; raise DamagedRecord at a damaged one."""
    for found, record in rows:
        number += 1
        head = _head(record) if isinstance(record, bytes) else None
        if found != number or head is None or head.number != number:
            raise DamagedRecord(f"expected event {number}, got another row")
        payload = record[_RECORD_HEAD.size :]
        if zlib.crc32(payload) != head.crc:
            raise DamagedRecord(f"event {number} does not have its checksum")
        yield Event(number, head.kind, payload)


def _promise(wal: bytes) -> int:
    """Return the last event that a record in a WAL calls acknowledged."""
    last, at = 0, wal.find(_RECORD_MAGIC)
    while at >= 0:
        if head := _head(wal, at):
            last = max(last, head.acknowledged)
        at = wal.find(_RECORD_MAGIC, at + 1)
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


# Snapshots: the state of every module after one event, and a SHA-256; docs/formats.md.

_SNAPSHOT_FORMAT = "embodied_mem.snapshot"
_DIGEST_BYTES = 32


def snapshot_path(folder: pathlib.Path, number: int) -> pathlib.Path:
    """Return the path of the snapshot after an event."""
    return folder / f"snapshot-{number:016x}.bin"


def snapshot_bytes(scope: str, number: int, states: Mapping[str, bytes]) -> bytes:
    """Return a snapshot with its checksum."""
    about = {"scope": scope, "number": number, "modules": list(states)}
    data = write_state(_SNAPSHOT_FORMAT, about, *states.values())
    return data + hashlib.sha256(data).digest()


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


def snapshot_of(data: bytes, scope: str, name: object) -> tuple[int, dict[str, bytes]]:
    """Return a snapshot's number and states; raise as `read_snapshot`."""
    try:
        if hashlib.sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
            raise StorageError(f"{name}: the checksum does not match; it is damaged or cut, restore it from a copy")
        about, states = read_state(_SNAPSHOT_FORMAT, data[:-_DIGEST_BYTES])
    except InvalidInputError as error:
        raise StorageError(f"{name}: {error}") from error
    if about["scope"] != scope:
        raise InvalidInputError(f"{name}: expected the scope it was made with, {about['scope']}, got {scope}")
    return about["number"], dict(zip(about["modules"], states, strict=True))


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
    """Return whether a folder has files of a store, damaged ones and those of earlier versions too."""
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


# Memories and their events together.


class SetAside(NamedTuple):
    """An event that was passed over because it cannot be applied. It stays until a snapshot takes its place.

    Attributes:
        number: of the event.
        module: that it was for; "" for one to forget something, or if it cannot be read.
        reason: why.
    """

    number: int
    module: str
    reason: str


@dataclasses.dataclass(frozen=True)
class OpenReport:
    """The findings of an opening.

    Attributes:
        snapshot: number of the last event in the snapshot that was restored; 0 if none.
        num_events: after it.
        num_rejected: of these, events that their module refused, as it did when they were recorded.
        damage: what was not whole.
        forget_pending: a `forget` was not finished; a store that is opened for writing has finished it now or, where
            the disk refused, will with the next change.
    """

    snapshot: int
    num_events: int
    num_rejected: int
    damage: tuple[Damage, ...]
    forget_pending: bool
    set_aside: tuple[SetAside, ...] = ()


@dataclasses.dataclass(frozen=True)
class Receipt:
    """The effect of `forget`.

    Attributes:
        selector: what was forgotten.
        number: of the event.
        removed: counts per module.
        named_in_scope: fields of the store's scope that still name it. The scope is in the files; to be rid of the
            name, remove the folder.
    """

    selector: Selector
    number: int
    removed: dict[str, dict[str, int]]
    named_in_scope: tuple[str, ...] = ()


class _CannotApply(Exception):
    """An event stopped its module in the middle; the replay begins anew without it."""

    def __init__(self, found: SetAside):
        self.found = found


def _applier(module: MemoryModule) -> Callable[[Any], Any]:
    """Return what applies a checked event, without another check if possible."""
    if isinstance(module, RecordedModule) and type(module).apply is RecordedModule.apply:
        return module.apply_checked
    return module.apply


class MemoryStore:
    """The events of one scope in one place, and the modules that they make. Any thread may call it, one at a time.

    Attributes:
        report: what opening found.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | EventServer,
        modules: Mapping[str, MemoryModule],
        *,
        scope: Scope | None = None,
        fsync: Literal["always", "interval", "never"] = "always",
        snapshot_bytes: int = 16 << 20,
        read_only: bool = False,
        repair: bool = False,
        to: int | None = None,
    ):
        """Open or make the folder, and bring the new modules to its state.

        Args:
            directory: the folder, or a `postgres.Server`.
            modules: name to module; all that the folder has events of, and any new ones.
            scope: whose memory it is.
            fsync: "always": an event that `record` has returned from survives a loss of power; "interval": all but
                those of the last 100 ms do; "never": what the system had written does. A killed process loses no
                acknowledged event under any of them.
            snapshot_bytes: the `record` that takes the events after the last snapshot beyond this, and beyond the size
                of that snapshot, writes another one before it returns: so a reopened store never replays more than
                that, and all snapshots together cost a write of about what was recorded. A snapshot that cannot be
                written is a RuntimeWarning: the events are in the log.
            read_only: look without a lock; nothing is changed, not even a torn end.
            repair: cut everything from the first damaged event on, instead of refusing to open.
            to: number of the last event that a read-only store applies; None for all.

        Raises:
            StorageError: another writer has the folder (its process is named), damage, another version, the system
                refuses.
            InvalidInputError: another scope, a module that is missing or is none, an option out of range.
        """
        self.scope = checked_scope(scope)
        self._modules = _checked_modules(modules)
        self._apply = {name: _applier(module) for name, module in self._modules.items()}
        self._read_only = checked_flag("read_only", read_only)
        if not isinstance(fsync, str) or fsync not in ("always", "interval", "never"):
            raise InvalidInputError(f'fsync: expected "always", "interval" or "never", got {shown(fsync)}')
        self._snapshot_bytes = checked_number("snapshot_bytes", snapshot_bytes, 1)
        self._to = None if to is None else checked_number("to", to)
        if to is not None and not read_only:
            raise InvalidInputError("to: expected a store with read_only=True, got one that writes")
        self._place = directory if isinstance(directory, EventServer) else Folder(directory, self._read_only)
        self._name = self._place.name
        self._lock = forking_lock()
        self._last = 0
        self._last_snapshot_bytes = 0  # size of the newest snapshot
        self._bytes_after = 0  # of the events after it
        self._fault = ""
        self._is_forgetting = False  # what is forgotten stands in files that the disk refused to replace
        self._process = os.getpid()
        self._options = fsync, self._read_only, checked_flag("repair", repair)
        self._empty = {name: module.state() for name, module in self._modules.items()}
        with _storage_errors(self._name, "open the store"):
            self.report = self._open_patiently()

    def _restore(self, states: Mapping[str, bytes]) -> None:
        for name, state in states.items():
            self._module(name).restore(state)

    def _open_patiently(self) -> OpenReport:
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                return self._open()
            except (FileNotFoundError, StorageError):
                # A writer may have put a snapshot in the place of another between two looks of a reader.
                if not self._read_only or not attempts_left:
                    raise
                self._restore(self._empty)
        raise AssertionError

    def _open(self) -> OpenReport:
        self._events = self._place.events(scope_text(self.scope), *self._options)
        try:
            number, states, events = self._events.replay()
            if self._to is not None:
                if not number <= self._to <= number + len(events):
                    expected = (
                        f"expected a number from {number}, the snapshot, to {number + len(events)}, the last event"
                    )
                    raise InvalidInputError(f"to: {expected}, got {self._to}")
                events = events[: self._to - number]
            set_aside: dict[int, SetAside] = {}
            while True:
                self._restore(states)
                try:
                    num_rejected, forgets = self._replay(events, set_aside)
                    break
                except _CannotApply as stopped:
                    set_aside[stopped.found.number] = stopped.found
                    self._restore(self._empty)
            self._last = number + len(events)
            self._bytes_after = sum(len(event.payload) for event in events)
            self._last_snapshot_bytes = sum(map(len, states.values()))
            if not self._read_only and (forgets or not self._events.is_clean):
                self._is_forgetting = True
                with contextlib.suppress(OSError):  # the next change tries again
                    self.snapshot()
        except BaseException:
            self._events.close()
            raise
        aside = tuple(set_aside[number] for number in sorted(set_aside))
        return OpenReport(number, len(events), num_rejected, tuple(self._events.damage), forgets > 0, aside)

    def _replay(self, events: Sequence[Event], set_aside: dict[int, SetAside]) -> tuple[int, int]:
        """Apply events, except for `set_aside`; add to it what cannot be applied.

        Returns:
            How many events were rejected, and how many were to forget.

        Raises:
            _CannotApply: an event stopped its module in the middle.
        """
        num_rejected = num_forgets = 0
        for number, kind, payload in events:
            if number in set_aside:
                continue
            if kind not in (_EVENT, _FORGET):
                raise StorageError(f"{self._name}: expected events of kind 1 or 2, got {kind} at event {number}")
            try:
                if kind == _FORGET:
                    selector = Selector(**json.loads(payload))
                else:
                    name, event = json.loads(payload)
                    check_depth("event", event, payload)
            except (TypeError, ValueError, RecursionError) as error:
                set_aside[number] = SetAside(number, "", f"it cannot be read: {error}")
                continue
            if kind == _FORGET:
                try:
                    self._remove_in_modules(selector)
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                    raise StorageError(
                        f"{self._name}: event {number} is to forget something, and a module failed: {error!r}"
                    ) from error
                num_forgets += 1
                continue
            module = self._module(name)
            try:
                module.apply(event)
            except InvalidInputError:
                # Refused when it was recorded, too, unless by a version that did not check what it recorded.
                try:
                    module.check(event)
                    num_rejected += 1
                except InvalidInputError as error:
                    set_aside[number] = SetAside(number, name, str(error))
            except (MemoryError, OSError):
                raise
            except Exception as error:
                raise _CannotApply(SetAside(number, name, f"{type(error).__name__}: {error}")) from error
        return num_rejected, num_forgets

    def _module(self, name: str) -> MemoryModule:
        try:
            return self._modules[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._modules)) or "none"
            raise InvalidInputError(f"{self._name}: expected a module {shown(name)} to be given, got {known}") from None

    def record(self, module: str, event: Mapping[str, Any]) -> Any:
        """Put an event on the disk and apply it; return what the module returns.

        What is applied is what JSON makes of the event, as it will be when it is read back: tuples become lists.

        Raises:
            InvalidInputError: an unknown module, an event that JSON cannot hold or that the module refuses; the event
                is not applied, and only one that fits no longer what is remembered by now was recorded.
            StorageError: the disk refused; the event is neither recorded nor applied.
        """
        target = self._module(module)
        try:
            text = _JSON.encode([module, event])
            payload, (_, read) = text.encode(), json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"event for {module!r}: expected what JSON can hold, got {error}") from error
        check_depth(f"event for {module!r}", read, text)
        target.check(read)
        result = None
        with self._lock:
            self._check()
            if self._is_forgetting:
                self.snapshot()
            try:
                self._events.append(_EVENT, payload)
            finally:
                if self._events.num_acknowledged > self._last:  # also where Ctrl-C came after the write
                    self._last += 1
                    self._bytes_after += len(payload)
                    result = self._applied(module, read)
            if self._bytes_after > max(self._snapshot_bytes, self._last_snapshot_bytes):
                try:
                    self.snapshot()
                except OSError as error:
                    warnings.warn(f"{error}; the next try is after as many events", RuntimeWarning, stacklevel=2)
        return result

    def _applied(self, module: str, event: Any) -> Any:
        """Return what a module makes of an event that is on the disk."""
        try:
            return self._apply[module](event)  # it was checked before it was recorded
        except InvalidInputError:
            raise
        except BaseException as error:
            self._fault = f"module {module!r} failed in the middle of event {self._last}: {error!r}"
            raise

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise StorageError(
                f"{self._name}: opened in process {self._process}, used in {os.getpid()}; open it again after a fork"
            )
        if not self._fault and self._events.num_acknowledged > self._last:
            self._fault = f"event {self._last + 1} was recorded and not applied"
        if self._fault:
            raise StorageError(f"{self._name}: {self._fault}; open the store again")

    @property
    def last_event(self) -> int:
        """Number of the last event that was applied; events count from 1."""
        return self._last

    def follow(self, timeout_s: float) -> int:
        """Wait for the writer's changes and apply them to a read-only store.

        Returns:
            How many events were recorded since; 0 after a timeout.
        """
        with self._lock, _storage_errors(self._name, "follow"):
            self._check()
            if not self._read_only or self._to is not None:
                raise InvalidInputError("follow: expected a store with read_only=True and without to=")
            last, deadline = self._last, time.monotonic() + checked_real("timeout_s", timeout_s)
            while self._last == last and self._events.has_news(deadline - time.monotonic()):
                self._events.close()
                self._restore(self._empty)
                self.report = self._open_patiently()
            return self._last - last

    def snapshot(self) -> str:
        """Replace events by the states of all modules; return where they are.

        Raises:
            StorageError: the disk refused, or the store is read-only or closed; nothing that was recorded is lost.
        """
        with self._lock, _storage_errors(self._name, "write a snapshot"):
            self._check()
            self._bytes_after = 0
            states = {name: module.state() for name, module in self._modules.items()}
            path = self._events.replace(states, self._is_forgetting)
            self._last_snapshot_bytes = sum(map(len, states.values()))
            self._is_forgetting = False
        return path

    def forget(self, **what: Any) -> Receipt:
        """Remove what one selector names from all modules and files.

        When it returns, the files of the store hold one new snapshot and no event. What was read from the store
        before, and copies of its files, are the caller's; so is what the disk keeps of deleted files.

        Args:
            what: one field of a `Selector`.

        Raises:
            InvalidInputError: not exactly one of them is given, or one that names nothing.
            StorageError: the disk refused; if the message does not say "not recorded", the next change finishes it, or
                opening the store.
        """
        selector = Selector(**what)
        with self._lock, _storage_errors(self._name, "forget"):
            self._check()
            if self._is_forgetting:
                self.snapshot()
            self._events.append(_FORGET, json.dumps({selector.kind: selector.value}).encode())
            self._events.sync()  # whatever the policy: from here on it will be finished
            self._last += 1
            try:
                removed = self._remove_in_modules(selector)
            except BaseException as error:
                self._fault = f"forgetting was not finished: {error!r}"
                raise
            self._is_forgetting = True
            self.snapshot()
        scope = dataclasses.asdict(self.scope).items()
        named = tuple(field for field, name in scope if selector.is_name(name) or selector.in_text(name))
        return Receipt(selector, self._last, removed, named)

    def _remove_in_modules(self, selector: Selector) -> dict[str, dict[str, int]]:
        return {name: module.remove(selector) for name, module in self._modules.items()}

    def close(self) -> None:
        """Let go of the folder; recording raises StorageError from now on."""
        if os.getpid() == self._process:
            with self._lock:
                self._events.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _checked_modules(modules: Any) -> dict[str, MemoryModule]:
    if not isinstance(modules, Mapping) or not all(isinstance(name, str) for name in modules):
        raise InvalidInputError(f"modules: expected a mapping of names to modules, got {shown(modules)}")
    for name, module in modules.items():
        methods = ("check", "apply", "state", "restore", "remove")
        missing = [method for method in methods if not callable(getattr(module, method, None))]
        if missing or isinstance(module, type):
            raise InvalidInputError(
                f"modules[{name!r}]: expected a MemoryModule, got {shown(module)}; it lacks {missing or 'an instance'}"
            )
    return dict(modules)
