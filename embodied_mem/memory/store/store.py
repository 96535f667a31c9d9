"""A store in a folder: every change of every memory module is an event that is on the disk before it counts.

    graph = GraphModule()
    with MemoryStore("memory/ann", {"graph": graph}, scope=Scope(user="ann")) as store:
        store.record("graph", {"op": "update", "triples": [["apple", "in", "fridge", 3, 17, "", "", [], []]]})
        store.snapshot()                                # a restart reads this and the events after it; the store
                                                        # writes one by itself when the log has grown, too
        receipt = store.forget(episode=17)              # afterwards no file holds it
    print(receipt.removed, receipt.files_removed)

A module is a deterministic state machine (`MemoryModule`): the same events give the same state. Reopening after a
crash restores the newest whole snapshot and applies the events after it, so all acknowledged changes are there.

One writer per folder, found by an flock; any number of stores with `read_only=True` beside it, each of which sees the
moment at which it was opened. One store belongs to one scope, which is in the header of each of its files; no method
takes a scope.

`forget` is an event, too. From its record on it will be finished: a store that was killed on the way finishes it when
it is opened for writing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import threading
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal

from ..errors import InvalidInputError, StorageError
from ..native import part
from .durable import MemoryModule, Selector
from .facts import Scope, scope_text
from .snapshot_files import list_snapshots, load_newest, read_snapshot, snapshot_path, sync_folder, write_snapshot

_EVENT, _FORGET = 1, 2
_ATTEMPTS = 20


@dataclasses.dataclass(frozen=True)
class Damage:
    """Something that was not whole when the store was opened. `cut`: taken off; a read-only store only ignores it."""

    file: str
    offset: int
    num_bytes: int
    reason: str
    cut: bool


@dataclasses.dataclass(frozen=True)
class OpenReport:
    """What opening found.

    Attributes:
        snapshot: number of the last event in the snapshot that was restored; 0 if none.
        num_events: applied after it.
        num_rejected: of these, events that their module refused, as it did when they were recorded.
        damage: torn or damaged ends of the log.
        problems: snapshots that were not whole, so that an older one was taken.
        forget_pending: a `forget` was not finished; a store that is opened for writing has finished it now.
    """

    snapshot: int
    num_events: int
    num_rejected: int
    damage: tuple[Damage, ...]
    problems: tuple[str, ...]
    forget_pending: bool


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What `forget` did: counts per module, names of files that are gone and of the one that took their place."""

    selector: Selector
    sequence: int
    removed: dict[str, dict[str, int]]
    files_removed: tuple[str, ...]
    file_written: str


@dataclasses.dataclass(eq=False)
class _Item:
    module: str
    event: dict[str, Any]
    result: Any = None
    error: BaseException | None = None


class MemoryStore:
    """The events of one scope in one folder, and the modules that they make. Any thread may call it.

    Attributes:
        report: what opening found.
    """

    def __init__(
        self,
        directory: str | os.PathLike,
        modules: Mapping[str, MemoryModule],
        *,
        scope: Scope | None = None,
        fsync: Literal["always", "interval", "never"] = "always",
        fsync_interval_ms: int = 100,
        segment_bytes: int = 16 << 20,
        snapshot_bytes: int = 16 << 20,
        read_only: bool = False,
        repair: bool = False,
    ):
        """Open the folder, which is made if it does not exist, and bring the modules, which are new, to its state.

        Args:
            directory: the folder.
            modules: name to module; all that the folder has events of, and any new ones.
            scope: whose memory it is.
            fsync: "always": an event that `record` has returned from survives a loss of power; "interval": all but
                those of the last `fsync_interval_ms` do; "never": what the system had written does. A killed process
                loses no acknowledged event under any of them.
            segment_bytes: a new log file is begun beyond this size.
            snapshot_bytes: the `record` that takes the events after the last snapshot beyond this, and beyond the size
                of that snapshot, writes another one before it returns: so a reopened store never replays more than
                that, and all snapshots together cost a write of about what was recorded. A snapshot that cannot be
                written is a RuntimeWarning: the events are in the log.
            read_only: look without a lock; nothing is changed, not even a torn end.
            repair: cut the log at damage that acknowledged events lie behind, instead of refusing to open.

        Raises:
            StorageError: another writer has the folder (its process is named), damage, another version.
            InvalidInputError: another scope, or a module that is missing.
        """
        self.scope = Scope() if scope is None else scope
        self._folder = pathlib.Path(directory)
        self._modules = dict(modules)
        self._read_only = read_only
        self._lock = threading.RLock()
        self._files_lock = threading.Lock()  # taken before _lock: one thread writes and removes files of states
        self._waiting: dict[int, _Item] = {}
        self._snapshot_bytes = snapshot_bytes
        self._last_snapshot_bytes = 0  # size of the newest snapshot
        self._bytes_after = 0  # of the events after it
        self._broken = ""
        self._process = os.getpid()
        if self._folder.exists() and not self._folder.is_dir():
            raise StorageError(f"{self._folder}: expected a folder for the store, got a file; give another path")
        if not read_only:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif not self._folder.is_dir():
            raise StorageError(f"{self._folder}: expected the folder of a store, got none")
        self._options = (fsync, fsync_interval_ms, segment_bytes, read_only, repair)
        empty = {name: module.state() for name, module in self._modules.items()} if read_only else {}
        for attempt in range(_ATTEMPTS):
            try:
                self.report = self._open()
                break
            except (FileNotFoundError, StorageError):
                # A writer may have put a snapshot in the place of files between two looks of a reader.
                if not read_only or attempt + 1 == _ATTEMPTS:
                    raise
                for name, state in empty.items():
                    self._modules[name].restore(state)

    def _open(self) -> OpenReport:
        self._log = part("storage").EventLog(str(self._folder), scope_text(self.scope), *self._options)
        try:
            if not self._read_only:
                for path in self._folder.glob("*.tmp"):  # what a killed writer never finished
                    path.unlink()
            stored, problems = load_newest(self._folder, scope_text(self.scope))
            self._log.recover(stored.sequence)
            newest = max([sequence for sequence, _ in list_snapshots(self._folder)], default=0)
            if self._log.acknowledged < newest:
                raise StorageError(
                    "; ".join(problems) + f"; the log ends with event {self._log.acknowledged} before it"
                )
            for name, state in stored.states.items():
                self._module(name).restore(state)
            self._applied = stored.sequence
            self._last_snapshot_bytes = sum(map(len, stored.states.values()))
            self._bytes_after = 0
            num_rejected, forgets = self._replay()
            damage = tuple(Damage(d.file, d.offset, d.num_bytes, d.reason, d.cut) for d in self._log.damage)
            if not self._read_only:
                if forgets:
                    self._replace_files()
                else:
                    self._remove_covered(stored.sequence)
        except BaseException:
            self._log.close()
            raise
        events = self._applied - stored.sequence
        return OpenReport(stored.sequence, events, num_rejected, damage, tuple(problems), forgets > 0)

    def _replay(self) -> tuple[int, int]:
        rejected = forgets = 0
        for segment in range(len(self._log.segments)):
            for sequence, kind, payload in self._log.read(segment):
                if sequence <= self._applied:
                    continue
                self._applied = sequence
                self._bytes_after += len(payload)
                if kind == _FORGET:
                    self._remove_in_modules(Selector(**json.loads(payload)))
                    forgets += 1
                elif kind == _EVENT:
                    name, event = json.loads(payload)
                    try:
                        self._module(name).apply(event)
                    except InvalidInputError:
                        rejected += 1  # as it was when it was recorded
                else:
                    raise StorageError(
                        f"{self._folder}: expected events of kind 1 or 2, got {kind} at event {sequence}"
                    )
        return rejected, forgets

    def _module(self, name: str) -> MemoryModule:
        try:
            return self._modules[name]
        except KeyError:
            known = ", ".join(sorted(self._modules)) or "none"
            raise InvalidInputError(f"{self._folder}: expected a module {name!r} to be given, got {known}") from None

    def record(self, module: str, event: Mapping[str, Any]) -> Any:
        """Put an event on the disk, apply it, and return what the module returns.

        What is applied is what JSON makes of the event, as it will be when it is read back: tuples become lists.

        Raises:
            InvalidInputError: an unknown module, an event that JSON cannot hold or that the module refuses.
            StorageError: the disk refused; the event is neither recorded nor applied.
        """
        self._module(module)
        try:
            text = json.dumps([module, event], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            payload = text.encode()
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"event for {module!r}: expected what JSON can hold, got {error}") from error
        item = _Item(module, json.loads(text)[1])
        with self._lock:
            self._check()
            ticket = self._log.enqueue(_EVENT, payload)
            self._waiting[ticket.sequence] = item
        try:
            self._log.wait(ticket)  # several threads wait for one write and one fsync
        except BaseException:
            with self._lock:
                if self._waiting.get(ticket.sequence) is item and ticket.sequence > self._log.acknowledged:
                    del self._waiting[ticket.sequence]
            raise
        with self._lock:
            self._apply_through(ticket.sequence)
            self._bytes_after += len(payload)
            if item.error is not None:
                raise item.error
            due = self._bytes_after > max(self._snapshot_bytes, self._last_snapshot_bytes)
            if due:
                self._bytes_after = 0  # one thread writes it
        if due:
            self._snapshot_by_itself()
        return item.result

    def _snapshot_by_itself(self) -> None:
        try:
            self.snapshot()
        except OSError as error:
            warnings.warn(f"{error}; the next try is after as many events", RuntimeWarning, stacklevel=3)

    def _apply_through(self, sequence: int) -> None:
        """Apply what is acknowledged in the order of the log, whichever thread recorded it."""
        while self._applied < sequence:
            item = self._waiting.pop(self._applied + 1, None)
            if item is None:
                self._broken = f"event {self._applied + 1} was recorded and not applied"
                self._check()
            try:
                item.result = self._modules[item.module].apply(item.event)
            except InvalidInputError as error:
                item.error = error
            except BaseException as error:
                item.error = error
                self._broken = f"module {item.module!r} failed in the middle of event {self._applied + 1}: {error!r}"
            self._applied += 1

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise StorageError(
                f"{self._folder}: opened in process {self._process}, used in {os.getpid()}; open it again after a fork"
            )
        if self._broken:
            raise StorageError(f"{self._folder}: {self._broken}; open the store again")

    def _settle(self) -> None:
        """With the lock held: everything enqueued is written and applied."""
        self._check()
        self._log.sync()
        self._apply_through(self._log.acknowledged)
        self._check()

    @property
    def last_event(self) -> int:
        """Number of the last event that was applied; events count from 1."""
        return self._applied

    def snapshot(self) -> pathlib.Path:
        """Write the state of all modules to a new file, remove the files that it makes needless, and return its path.

        Events can be recorded meanwhile, once the modules have given their states.
        """
        with self._files_lock:
            with self._lock:
                self._settle()
                self._log.roll()
                sequence = self._applied
                states = {name: module.state() for name, module in self._modules.items()}
                self._bytes_after = 0
            path = write_snapshot(self._folder, scope_text(self.scope), sequence, states)
            read_snapshot(path, scope_text(self.scope))  # nothing is removed for a file that cannot be read
            with self._lock:
                self._last_snapshot_bytes = sum(map(len, states.values()))
                self._remove_covered(sequence)
            return path

    def forget(self, *, user: str | None = None, object: str | None = None, episode: int | None = None) -> Receipt:
        """Remove a user, an object or an episode from all modules and from every file, and say what was done.

        When it returns, the files of the store are one new snapshot and an empty log. What was read from the store
        before, and copies of its files, are the caller's; so is what the disk keeps of deleted files.

        Raises:
            InvalidInputError: not exactly one of them is given.
            StorageError: the disk refused; if the message does not say "not recorded", opening the store finishes it.
        """
        selector = Selector(user, object, episode)
        with self._files_lock, self._lock:
            self._settle()
            payload = json.dumps(dataclasses.asdict(selector)).encode()
            self._log.wait(self._log.enqueue(_FORGET, payload))
            self._log.sync()  # whatever the policy: from here on it will be finished
            self._applied += 1
            try:
                removed = self._remove_in_modules(selector)
                before = self._files()
                path = self._replace_files()
            except BaseException as error:
                self._broken = f"forgetting was not finished: {error!r}"
                raise
            gone = tuple(sorted(before - self._files()))
        return Receipt(selector, self._applied, removed, gone, path.name)

    def _remove_in_modules(self, selector: Selector) -> dict[str, dict[str, int]]:
        return {name: module.remove(selector) for name, module in self._modules.items()}

    def _files(self) -> set[str]:
        return {path.name for path in self._folder.iterdir()}

    def _replace_files(self) -> pathlib.Path:
        self._log.roll()
        states = {name: module.state() for name, module in self._modules.items()}
        path = write_snapshot(self._folder, scope_text(self.scope), self._applied, states)
        read_snapshot(path, scope_text(self.scope))
        self._bytes_after, self._last_snapshot_bytes = 0, sum(map(len, states.values()))
        self._remove_covered(self._applied)
        return path

    def _remove_covered(self, sequence: int) -> None:
        while self._log.remove_oldest(sequence):
            pass
        if not snapshot_path(self._folder, sequence).exists():
            return  # no snapshot yet
        for number, path in list_snapshots(self._folder):
            if number < sequence:
                path.unlink()
        sync_folder(self._folder)

    def close(self) -> None:
        """Sync and let go of the folder; recording raises StorageError from now on."""
        if os.getpid() == self._process:
            self._log.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
