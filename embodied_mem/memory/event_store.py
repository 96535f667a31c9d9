"""The events of a scope: where they are kept, their rows, and snapshots that stand for the oldest of them.

`folder_events.FolderEvents` has them in a SQLite file and files beside it, `postgres.ServerEvents` in PostgreSQL. Both
keep the same rows (`record_row`, `events_of`) and snapshots (`snapshot_bytes`, `snapshot_of`); docs/formats.md.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidInputError, StorageError
from .stored_modules import read_state, write_state

RECORD_MAGIC = b"\xff\xfeEVENT\xfd"  # no text in UTF-8 has it
_RECORD_HEAD = struct.Struct("<8sQQIII")  # magic, number, `Head.acknowledged`, kind, CRC of the payload, CRC before it
_MAX_PAYLOAD_BYTES = 1 << 28
_SNAPSHOT_FORMAT = "embodied_mem.snapshot"
_DIGEST_BYTES = 32


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


class Head(NamedTuple):
    """The head of a record."""

    number: int
    acknowledged: int  # the last event that was acknowledged when this one was written
    kind: int
    crc: int


class DamagedRecord(Exception):
    """A record that is not what was written."""


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
        """Return (number, states, later events), once."""
        found, self._content = self._content, (0, {}, [])
        return found

    def append(self, kind: int, *payloads: bytes) -> None:
        """Write events, on a server in one transaction; sync them by policy.

        Raises:
            InvalidInputError: one is too large, or the store is read-only.
            StorageError: none, or in a folder not all, are recorded, and nothing else was lost; or the message says
                that nobody knows.
        """
        if (longest := max(map(len, payloads), default=0)) > _MAX_PAYLOAD_BYTES:
            raise InvalidInputError(f"event: expected at most {_MAX_PAYLOAD_BYTES} bytes, got {longest}")
        self.check_usable()
        if payloads:
            self._append([Event(number, kind, one) for number, one in enumerate(payloads, self.num_acknowledged + 1)])

    @abc.abstractmethod
    def _append(self, events: Sequence[Event]) -> None:
        """Write the next events, sync them by the policy, count them."""

    @abc.abstractmethod
    def sync(self) -> None:
        """Sync what was written, whatever the policy."""

    @abc.abstractmethod
    def replace(self, states: Mapping[str, bytes], is_forgetting: bool = False) -> str:
        """Replace all events by states; return where they are.

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


def record_row(event: Event) -> tuple[int, bytes]:
    """Return a table row.

    It names the event acknowledged before it.
    """
    number, kind, payload = event
    head = _RECORD_HEAD.pack(RECORD_MAGIC, number, number - 1, kind, zlib.crc32(payload), 0)[:-4]
    return number, b"".join((head, struct.pack("<I", zlib.crc32(head)), payload))


def read_head(data: bytes, at: int = 0) -> Head | None:
    """Return a record's head; None if missing or damaged."""
    head = data[at : at + _RECORD_HEAD.size]
    if len(head) < _RECORD_HEAD.size:
        return None
    magic, number, acknowledged, kind, crc, own = _RECORD_HEAD.unpack(head)
    return Head(number, acknowledged, kind, crc) if magic == RECORD_MAGIC and own == zlib.crc32(head[:-4]) else None


def events_of(rows: Iterable[tuple[int, Any]], number: int) -> Iterator[Event]:
    """Yield the events of rows; raise DamagedRecord at a damaged one."""
    for found, record in rows:
        number += 1
        head = read_head(record) if isinstance(record, bytes) else None
        if found != number or head is None or head.number != number:
            raise DamagedRecord(f"expected event {number}, got another row")
        payload = record[_RECORD_HEAD.size :]
        if zlib.crc32(payload) != head.crc:
            raise DamagedRecord(f"event {number} does not have its checksum")
        yield Event(number, head.kind, payload)


def snapshot_bytes(scope: str, number: int, states: Mapping[str, bytes]) -> bytes:
    """Return a snapshot with its checksum."""
    about = {"scope": scope, "number": number, "modules": list(states)}
    data = write_state(_SNAPSHOT_FORMAT, about, *states.values())
    return data + hashlib.sha256(data).digest()


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
