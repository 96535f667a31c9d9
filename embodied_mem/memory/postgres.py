"""Events of many scopes in PostgreSQL, for many processes and robots (extra `postgres`).

    server = Server("postgresql://robots@host/memory")                   # connects at the first use
    with LifelongMemory.open(server, Scope(user="ann")) as memory:       # also by the address alone
        memory.tell("I like tea.")

All stores of a `Server` share one connection. Modules and their indices are in this process, as with a folder.

- Writers: one per scope, by an advisory lock, which ends with its connection. Each opening raises the scope's fencing
  number; every change asks for its own number in the same statement, so a writer that lost its lock changes nothing.
- Acknowledgement: a commit, with `synchronous_commit` under fsync="always". If the connection is lost in the middle,
  nobody knows whether an event was recorded: the store refuses all further ones, and opening it again finds out.
- Readers: a reader that waits for news (`MemoryStore.follow`) marks the scope and listens; only then do writers notify.
- Row-level security: a statement sees the rows of one scope, and a role those scopes that it made. Superusers see all.
- Forgetting: records and states are encrypted (AES-GCM) by a data key of the scope, in a schema of its own. `forget`
  makes a new key, encrypts the state that is left by it, and removes the old key with all rows that it encrypted. Other
  snapshots keep the key. A subject (a speaker, a thing, a task) has no key of its own. Its events can only go when a
  state takes the place of all events since the last one, as each event is applied to what those before it left; so its
  key would always go together with the keys of all other subjects. And a thing to forget is any words of any text: the
  subjects of an event are not known when it is written. The proof is of keys: write-ahead log, free pages and backups
  keep bytes for a while. Where these are archived, give the keys a database of their own (`keys=`) that is not.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import re
import socket
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import MissingDependencyError, StorageError
from ..forks import forking_lock
from .arguments import checked_text
from .event_store import (
    Damage,
    DamagedRecord,
    Event,
    EventServer,
    EventStore,
    events_of,
    record_row,
    snapshot_bytes,
    snapshot_of,
)

try:
    import psycopg
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as error:
    raise MissingDependencyError(f'memory in PostgreSQL: {error}; pip install "embodied-mem[postgres]"') from error

PARTITIONS = 64
_VERSION = "embodied_mem memory 1"
_KEYS_VERSION = "embodied_mem keys 1"
_SETUP_LOCK = 0x454D454D
_LOCK_ATTEMPTS, _LOCK_WAIT_S = 40, 0.05  # a killed writer's lock goes a moment after it
_FOLLOWED_S = 60
_NONCE_BYTES, _KEY_BITS = 12, 256
_ALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
"""A robot that is off holds its locks for 25 s at most."""
_MINE = "scope = current_setting('embodied_mem.scope', true)::uuid"
_TABLES = f"""
CREATE TABLE embodied_mem.scopes (
  scope uuid PRIMARY KEY, name text NOT NULL, owner name NOT NULL DEFAULT current_user, fence bigint NOT NULL,
  generation bigint NOT NULL, followed_until timestamptz NOT NULL DEFAULT '-infinity');
CREATE TABLE embodied_mem.events (
  scope uuid, seq bigint, fence bigint NOT NULL, payload bytea NOT NULL, crc bigint NOT NULL, PRIMARY KEY (scope, seq)
) PARTITION BY HASH (scope);
CREATE TABLE embodied_mem.states (
  scope uuid PRIMARY KEY, seq bigint NOT NULL, fence bigint NOT NULL, payload bytea NOT NULL, crc bigint NOT NULL);
ALTER TABLE embodied_mem.states ALTER payload SET STORAGE EXTERNAL;
DO $$ BEGIN FOR i IN 0..{PARTITIONS - 1} LOOP
  EXECUTE format('CREATE TABLE embodied_mem.events_%s PARTITION OF embodied_mem.events '
                 'FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER %s)', i, i);
  EXECUTE format('ALTER TABLE embodied_mem.events_%s ALTER payload SET STORAGE EXTERNAL', i);
END LOOP; END $$;
CREATE POLICY one ON embodied_mem.scopes USING ({_MINE} AND owner = current_user);
CREATE POLICY one ON embodied_mem.events USING ({_MINE} AND EXISTS (SELECT FROM embodied_mem.scopes WHERE {_MINE}));
CREATE POLICY one ON embodied_mem.states USING ({_MINE} AND EXISTS (SELECT FROM embodied_mem.scopes WHERE {_MINE}));
"""
_KEYS = f"""
CREATE TABLE embodied_mem_keys.keys (
  scope uuid, generation bigint, owner name NOT NULL DEFAULT current_user, key bytea NOT NULL,
  PRIMARY KEY (scope, generation));
CREATE POLICY one ON embodied_mem_keys.keys USING ({_MINE} AND owner = current_user);
"""
_SETTINGS = "SELECT set_config('embodied_mem.scope', %s, false), set_config('synchronous_commit', %s, false)"
_BEGIN = """
INSERT INTO embodied_mem.scopes AS old (scope, name, fence, generation) VALUES (%s, %s, 1, 0)
ON CONFLICT (scope) DO UPDATE SET fence = old.fence + 1 RETURNING fence, generation"""
_APPEND = """
WITH mine AS (
  SELECT followed_until > now() AS is_followed FROM embodied_mem.scopes
  WHERE scope = %(scope)s AND fence = %(fence)s FOR SHARE),
new AS (
  INSERT INTO embodied_mem.events SELECT %(scope)s, {columns} FROM mine{rows} RETURNING seq)
SELECT CASE WHEN is_followed THEN pg_notify(%(channel)s, seq::text) END FROM mine, new ORDER BY seq DESC LIMIT 1"""
_APPEND_ONE = _APPEND.format(columns="%(seq)s, %(fence)s, %(payload)b, %(crc)s", rows="")
_APPEND_MANY = _APPEND.format(
    columns="row.seq, %(fence)s, row.payload, row.crc",
    rows=", unnest(%(seqs)b::bigint[], %(payloads)b::bytea[], %(crcs)b::bigint[]) AS row (seq, payload, crc)",
)
_MY_FENCE = "SELECT FROM embodied_mem.scopes WHERE scope = %s AND fence = %s FOR NO KEY UPDATE"
_STATES = """
INSERT INTO embodied_mem.states VALUES (%(scope)s, %(seq)s, %(fence)s, %(payload)b, %(crc)s)
ON CONFLICT (scope) DO UPDATE SET seq = excluded.seq, fence = excluded.fence, payload = excluded.payload,
crc = excluded.crc"""
_POSITION = """
SELECT fence, generation, greatest(
  0, (SELECT max(seq) FROM embodied_mem.events WHERE scope = %(scope)s),
  (SELECT seq FROM embodied_mem.states WHERE scope = %(scope)s))
FROM embodied_mem.scopes WHERE scope = %(scope)s"""
_OWNER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32 | objid::bigint) = %s"""


class _Session:
    """One connection for the stores of a process, and one for their keys, which may be the same.

    Attributes:
        held_scopes: scopes that this process writes by it.
        num_stores: that are open; the last one to go closes it.
    """

    def __init__(self, url: str, keys_url: str):
        self.lock = forking_lock()
        self.process = os.getpid()
        self.held_scopes: set[uuid.UUID] = set()
        self.num_stores = 0
        self.connection = _connect(url)
        self.keys = _connect(keys_url) if keys_url else self.connection
        try:
            _set_up(self.connection, "embodied_mem", _TABLES, _VERSION)
            _set_up(self.keys, "embodied_mem_keys", _KEYS, _KEYS_VERSION)
        except BaseException:
            self.close()
            raise
        self._settings: tuple[str, str] | None = None
        self._thread = 0  # inside a statement
        self._unlocks: collections.deque[int] = collections.deque()

    @property
    def is_usable(self) -> bool:
        return self.process == os.getpid() and not (self.connection.closed or self.keys.closed)

    @contextlib.contextmanager
    def using(self, scope: uuid.UUID, synchronous: str = "on") -> Iterator[Any]:
        """Lend the connection, set to one scope, to one thread."""
        with self.lock:
            before, self._thread = self._thread, threading.get_ident()
            try:
                settings = str(scope), synchronous
                if settings != self._settings:
                    self._settings = None
                    for connection in {self.connection, self.keys}:
                        connection.execute(_SETTINGS, settings)
                    self._settings = settings
                yield self.connection
            finally:
                self._thread = before
                while self._unlocks and not before:
                    self.unlock(self._unlocks.popleft())

    def unlock(self, number: int) -> None:
        """Give a lock back; after the statement that this thread is in.

        A store that nobody closed goes with a garbage collection, which may come inside a statement.
        """
        if self._thread == threading.get_ident():
            self._unlocks.append(number)
            return
        with contextlib.suppress(psycopg.Error), self.lock:
            self._thread = threading.get_ident()
            try:
                if self.is_usable:
                    self.connection.execute("SELECT pg_advisory_unlock(%s)", [number])
            finally:
                self._thread = 0

    def close(self) -> None:
        if self.process == os.getpid():
            self.connection.close()
            self.keys.close()


def _connect(url: str) -> Any:
    return psycopg.connect(
        url, autocommit=True, connect_timeout=10, options=_ALIVE,
        application_name=f"embodied_mem {os.getpid()} on {socket.gethostname()}",
    )  # fmt: skip


def _set_up(connection: Any, schema: str, tables: str, version: str) -> None:
    """Make the tables of a new schema; check its version."""
    select = f"SELECT obj_description(to_regnamespace('{schema}'), 'pg_namespace')"
    (made_by,) = connection.execute(select).fetchone()
    if made_by is None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_SETUP_LOCK])
            (made_by,) = connection.execute(select).fetchone()  # by another process meanwhile
            if made_by is None:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}; {tables}")
                connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC")
                for table in re.findall(r"CREATE TABLE ([a-z_.]+) \(", tables):
                    connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
                    connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO PUBLIC")
                connection.execute(f"COMMENT ON SCHEMA {schema} IS '{version}'")
                return
    if made_by != version:
        raise StorageError(f"schema {schema}: expected {version!r}, got {made_by!r}; use the release that made it")


class Server(EventServer):
    """A PostgreSQL database for the events of many scopes. Any thread may use it; a forked child connects anew.

    Attributes:
        name: its address, without a password.
    """

    def __init__(self, url: str, *, keys: str = ""):
        """Name a database; nothing connects yet.

        Args:
            url: as libpq takes it; its schema is made where it is missing and the role may.
            keys: of another database for the data keys; empty for the same one.
        """
        self._url, self._keys = checked_text("url", url), checked_text("keys", keys)
        self.name = re.sub(r"(?<=//)([^/@:]*):[^/@]*@", r"\1@", re.sub(r"password=[^&\s]*", "password=", url))
        self._lock = forking_lock()
        self._session: _Session | None = None

    def events(self, scope: str, fsync: str, read_only: bool, repair: bool) -> EventStore:
        return ServerEvents(self, scope, fsync, read_only, repair)

    def session(self, is_shared: bool = True) -> _Session:
        """Return a session for one more store, shared or its own."""
        with self._lock:
            session = self._session if is_shared else None
            if session is None or not session.is_usable or not session.num_stores:
                session = _Session(self._url, self._keys)
                self._session = session if is_shared else self._session
            session.num_stores += 1
            return session

    def release(self, session: _Session) -> None:
        """Close a session after its last store."""
        with self._lock:
            session.num_stores -= 1
            if not session.num_stores:
                session.close()


class ServerEvents(EventStore):
    """Events of one scope in a database, see the module."""

    def __init__(self, server: Server, scope: str, fsync: str, read_only: bool, repair: bool):
        super().__init__(server.name, read_only)
        self._server, self._scope = server, scope
        self._id = uuid.UUID(bytes=hashlib.sha256(scope.encode()).digest()[:16])
        self._lock_number = int.from_bytes(self._id.bytes[:8], "big", signed=True)
        self._channel = f"embodied_mem_{self._id.hex}"
        self._synchronous = "on" if fsync == "always" else "off"
        self._fence = self._generation = 0
        self._cipher: Any = None
        self._session: _Session | None = None
        with self._errors("open"):
            self._session = server.session(is_shared=not read_only)
        try:
            if not read_only:
                self._take_lock()
            with self._errors("open"), self._using() as connection:
                self._open(connection, repair)
        except BaseException:
            self._release()
            raise

    def _using(self, synchronous: str = "on") -> contextlib.AbstractContextManager[Any]:
        if self._session is None:
            raise StorageError(f"{self._name}: is not open")
        return self._session.using(self._id, synchronous)

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn a refusal of the server into a StorageError."""
        try:
            yield
        except psycopg.Error as error:
            problem = f"{self._name}: cannot {what}: {str(error).strip()}"
            session = self._session  # None: nothing was asked of the server
            is_lost = session is not None and (isinstance(error, psycopg.OperationalError) or not session.is_usable)
            if is_lost:
                problem = self._refusal = f"{problem}; what is recorded is not known: open the store again"
            raise StorageError(problem if is_lost else f"{problem}; nothing was recorded") from error
        except (KeyboardInterrupt, SystemExit):
            self._refusal = f"{self._name}: interrupted; what is recorded is not known: open the store again"
            raise

    # Opening.

    def _take_lock(self) -> None:
        session = self._session
        assert session is not None
        with self._errors("lock the scope"):
            for _ in range(_LOCK_ATTEMPTS):
                with self._using() as connection:
                    if self._id in session.held_scopes:  # the lock is of the session, so it would be given again
                        break
                    if connection.execute("SELECT pg_try_advisory_lock(%s)", [self._lock_number]).fetchone()[0]:
                        session.held_scopes.add(self._id)
                        self._is_locked = True
                        return
                time.sleep(_LOCK_WAIT_S)
            with self._using() as connection:
                owners = connection.execute(_OWNER, [self._lock_number]).fetchall()
        raise StorageError(
            f"{self._name}: another store has the scope {self._scope} open for writing, in "
            f"{owners[0][0] if owners else 'a process that is gone by now'}; close it there, or open the store with "
            "read_only=True"
        )

    _is_locked = False

    def _open(self, connection: Any, repair: bool) -> None:
        with connection.transaction():
            if self._read_only:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                row = connection.execute(_POSITION, {"scope": self._id}).fetchone()
                if row is None:
                    raise StorageError(f"{self._name}: expected the scope {self._scope}, got none")
            else:
                row = connection.execute(_BEGIN, [self._id, self._scope]).fetchone()
            self._fence, self._generation = row[:2]
            self._cipher = self._read_key()
            cursor = connection.cursor(binary=True)
            states: dict[str, bytes] = {}
            number, problem = 0, ""
            select = "SELECT seq, payload, crc FROM embodied_mem.{} WHERE scope = %s ORDER BY seq"
            for seq, payload, crc in cursor.execute(select.format("states"), [self._id]):
                try:
                    data = self._decrypt(b"state", seq, payload, crc)
                except DamagedRecord as error:
                    raise StorageError(f"{self._name}: the snapshot of {self._scope}: {error}; use a backup") from error
                number, states = snapshot_of(data, self._scope, self._name)
            events: list[Event] = []
            rows = cursor.execute(select.format("events"), [self._id])
            try:
                for event in events_of(self._records(rows), number):
                    events.append(event)
            except DamagedRecord as error:
                problem = str(error)
            self.num_acknowledged = number + len(events)
            if problem and not repair:
                raise StorageError(
                    f"{self._name}: the scope {self._scope} is damaged ({problem}); use a backup, or open the store "
                    f"with repair=True to cut everything from event {self.num_acknowledged + 1} on"
                )
            if problem:
                self.damage.append(Damage(f"{self._name}: {self._scope}", problem, not self._read_only))
                if not self._read_only:
                    after = "DELETE FROM embodied_mem.events WHERE scope = %s AND seq > %s"
                    connection.execute(after, [self._id, self.num_acknowledged])
        self._content = number, states, events
        self._position = self._generation, self.num_acknowledged
        if not self._read_only:
            self._remove_keys()

    def _records(self, rows: Iterable[tuple[int, bytes, int]]) -> Iterator[tuple[int, bytes]]:
        return ((seq, self._decrypt(b"event", seq, payload, crc)) for seq, payload, crc in rows)

    # Keys.

    def _read_key(self) -> Any:
        """Return the scope's cipher; make the key of a new scope."""
        assert self._session is not None
        select = "SELECT key FROM embodied_mem_keys.keys WHERE scope = %s AND generation = %s"
        row = self._session.keys.execute(select, [self._id, self._generation]).fetchone()
        if row is not None:
            return AESGCM(bytes(row[0]))
        if self._generation or self._fence > 1 or self._read_only:
            raise StorageError(f"{self._name}: the key of the scope {self._scope} is gone; nobody can read its records")
        return self._new_key(0)

    def _new_key(self, generation: int) -> Any:
        assert self._session is not None
        key = AESGCM.generate_key(_KEY_BITS)
        self._session.keys.execute(
            "INSERT INTO embodied_mem_keys.keys AS old (scope, generation, key) VALUES (%s, %s, %b) "
            "ON CONFLICT (scope, generation) DO UPDATE SET key = excluded.key",
            [self._id, generation, key],
        )
        return AESGCM(key)

    def _remove_keys(self) -> None:
        """Remove keys of other generations, of forgotten rows or unfinished snapshots."""
        assert self._session is not None
        others = "DELETE FROM embodied_mem_keys.keys WHERE scope = %s AND generation <> %s"
        self._session.keys.execute(others, [self._id, self._generation])

    def _encrypt(self, cipher: Any, kind: bytes, seq: int, data: bytes) -> dict[str, Any]:
        """Return the columns of a row; scope, kind and number are signed."""
        nonce = os.urandom(_NONCE_BYTES)
        payload = nonce + cipher.encrypt(nonce, data, self._about(kind, seq))
        return {"scope": self._id, "seq": seq, "fence": self._fence, "payload": payload, "crc": zlib.crc32(payload)}

    def _decrypt(self, kind: bytes, seq: int, payload: bytes, crc: int) -> bytes:
        if zlib.crc32(payload) != crc:
            raise DamagedRecord(f"{kind.decode()} {seq} does not have its checksum")
        try:
            data: bytes = self._cipher.decrypt(payload[:_NONCE_BYTES], payload[_NONCE_BYTES:], self._about(kind, seq))
        except (InvalidTag, ValueError) as error:
            raise DamagedRecord(f"{kind.decode()} {seq} was not encrypted by the key of its scope") from error
        return data

    def _about(self, kind: bytes, seq: int) -> bytes:
        return kind + self._id.bytes + struct.pack("<q", seq)

    # Writing.

    def _append(self, events: Sequence[Event]) -> None:
        rows = [self._encrypt(self._cipher, b"event", event.number, record_row(event)[1]) for event in events]
        values = rows[0] | {"channel": self._channel}
        if len(rows) > 1:
            values |= {f"{name}s": [row[name] for row in rows] for name in ("seq", "payload", "crc")}
        with self._errors("write an event"), self._using(self._synchronous) as connection:
            statement = _APPEND_ONE if len(rows) == 1 else _APPEND_MANY
            is_written = connection.execute(statement, values).fetchone() is not None
        if not is_written:
            self._refuse_fenced()
        self.num_acknowledged = events[-1].number

    def _refuse_fenced(self) -> None:
        self._refusal = (
            f"{self._name}: another store opened the scope {self._scope} for writing after this one; nothing was "
            "recorded: open the store again"
        )
        raise StorageError(self._refusal)

    def sync(self) -> None:
        if self._synchronous == "on":
            return
        with self._errors("sync"), self._using() as connection:  # a later commit on the disk has all earlier ones there
            connection.execute("UPDATE embodied_mem.scopes SET fence = fence WHERE scope = %s", [self._id])

    def replace(self, states: Mapping[str, bytes], is_forgetting: bool = False) -> str:
        self.check_usable()
        number, generation = self.num_acknowledged, self._generation + is_forgetting
        with self._errors("put a snapshot in the place of events"), self._using() as connection:
            cipher = self._new_key(generation) if is_forgetting else self._cipher
            row = self._encrypt(cipher, b"state", number, snapshot_bytes(self._scope, number, states))
            with connection.transaction():
                if is_mine := connection.execute(_MY_FENCE, [self._id, self._fence]).fetchone() is not None:
                    connection.execute(_STATES, row)
                    connection.execute("DELETE FROM embodied_mem.events WHERE scope = %s", [self._id])
                    statement = "UPDATE embodied_mem.scopes SET generation = %s WHERE scope = %s"
                    connection.execute(statement, [generation, self._id])
                    connection.execute("SELECT pg_notify(%s, %s)", [self._channel, str(number)])
            if is_mine and is_forgetting:
                self._cipher, self._generation, self.is_clean = cipher, generation, False
                self._remove_keys()
                self.is_clean = True
        if not is_mine:
            self._refuse_fenced()
        return f"{self._name}: snapshot {number} of {self._scope}"

    def has_news(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._errors("wait for events"), self._using() as connection:
            connection.execute(f"LISTEN {self._channel}")
            interest = "UPDATE embodied_mem.scopes SET followed_until = now() + %s * interval '1 s' WHERE scope = %s"
            while True:
                connection.execute(interest, [_FOLLOWED_S, self._id])
                if self._is_behind(connection):
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                for _ in connection.notifies(timeout=min(left, _FOLLOWED_S / 2), stop_after=1):
                    pass

    def _is_behind(self, connection: Any) -> bool:
        row = connection.execute(_POSITION, {"scope": self._id}).fetchone()
        return row is not None and row[1:] != self._position

    def _release(self) -> None:
        session, self._session = self._session, None
        if session is None or session.process != os.getpid():
            return
        try:
            if self._is_locked:
                session.held_scopes.discard(self._id)
                session.unlock(self._lock_number)
        finally:
            self._server.release(session)
