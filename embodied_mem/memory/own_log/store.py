"""A store in a folder: every change of a memory module is an event, on disk before it counts.

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

An event is recorded only if its module can apply it (`MemoryModule.check`). One that it cannot, which older versions
and failing modules left in a log, is set aside when the folder is opened, and reported.

`forget` is an event, too. From its record on it will be finished: where the disk refused, or the store was killed on
the way, the next change finishes it, or opening the store for writing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ...atomic_file import sync_folder
from ...errors import InvalidInputError, StorageError
from ...forks import forking_lock
from ...native import part
from ..arguments import check_depth, checked_flag, checked_number, shown
from ..graph import Scope, checked_scope, scope_text
from .log_end import LogEnd
from .module import MemoryModule, Selector
from .reports import Damage, OpenReport, Receipt, SetAside
from .snapshot_files import (
    VECTORS_NAME,
    list_snapshots,
    load_newest,
    read_snapshot,
    remove_unfinished,
    snapshot_path,
    write_snapshot,
)

_EVENT, _FORGET = 1, 2
_ATTEMPTS = 20
_MAX_INTERVAL_MS = 24 * 60 * 60 * 1000


class _CannotApply(Exception):
    """An event stopped its module in the middle; the replay begins anew without it."""

    def __init__(self, found: SetAside):
        self.found = found


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
        directory: str | os.PathLike[str],
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
            StorageError: another writer has the folder (its process is named), damage, another version, the system
                refuses.
            InvalidInputError: another scope, a module that is missing or is none, an option out of range.
        """
        self.scope = checked_scope(scope)
        self._modules = _checked_modules(modules)
        self._read_only = checked_flag("read_only", read_only)
        if not isinstance(fsync, str) or fsync not in ("always", "interval", "never"):
            raise InvalidInputError(f'fsync: expected "always", "interval" or "never", got {shown(fsync)}')
        fsync_interval_ms = checked_number("fsync_interval_ms", fsync_interval_ms, 1, _MAX_INTERVAL_MS)
        segment_bytes = checked_number("segment_bytes", segment_bytes, 1)
        snapshot_bytes = checked_number("snapshot_bytes", snapshot_bytes, 1)
        try:
            self._folder = pathlib.Path(directory).absolute()  # the working directory may change
            os.fsencode(self._folder)
            is_folder, is_other = self._folder.is_dir(), self._folder.exists()
        except (TypeError, ValueError, OSError) as error:
            raise InvalidInputError(f"directory: expected a path, got {shown(directory)} ({error})") from None
        self._lock = forking_lock()
        self._files_lock = forking_lock()  # taken before _lock: one thread writes and removes files of states
        self._waiting: dict[int, _Item] = {}
        self._snapshot_bytes = snapshot_bytes
        self._last_snapshot_bytes = 0  # size of the newest snapshot
        self._bytes_after = 0  # of the events after it
        self._broken = ""
        self._is_forgetting = False  # what is forgotten stands in files that the disk refused to replace
        self._process = os.getpid()
        if is_other and not is_folder:
            raise StorageError(f"{self._folder}: expected a folder for the store, got a file; give another path")
        if read_only and not is_folder:
            raise StorageError(f"{self._folder}: expected the folder of a store, got none")
        self._options = (fsync, fsync_interval_ms, segment_bytes, self._read_only, checked_flag("repair", repair))
        self._empty = {name: module.state() for name, module in self._modules.items()}
        if not read_only:
            with self._storage_errors("make the folder"):
                self._folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(_ATTEMPTS):
            try:
                self.report = self._open()
                break
            except OSError as error:
                # A writer may have put a snapshot in the place of files between two looks of a reader.
                changed = isinstance(error, FileNotFoundError | StorageError) and read_only
                if not changed or attempt + 1 == _ATTEMPTS:
                    if isinstance(error, StorageError):
                        raise
                    raise StorageError(f"{self._folder}: cannot open the store: {error}") from error
                self._restore(self._empty)

    @contextlib.contextmanager
    def _storage_errors(self, what: str) -> Iterator[None]:
        """Whatever the system refuses inside is a StorageError."""
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"{self._folder}: cannot {what}: {error}") from error

    def _restore(self, states: Mapping[str, bytes]) -> None:
        for name, state in states.items():
            self._module(name).restore(state)

    def _open(self) -> OpenReport:
        self._log = part("storage").EventLog(str(self._folder), scope_text(self.scope), *self._options)
        try:
            if not self._read_only:
                remove_unfinished(self._folder)
            self._end = LogEnd.read(self._folder)  # before the log, which another process may write on
            stored, problems = load_newest(self._folder, scope_text(self.scope))
            self._log.recover(stored.sequence)
            newest = max([sequence for sequence, _ in list_snapshots(self._folder)], default=0)
            if self._log.acknowledged < newest:
                raise StorageError(
                    "; ".join(problems) + f"; the log ends with event {self._log.acknowledged} before it"
                )
            self._last_snapshot_bytes = sum(map(len, stored.states.values()))
            set_aside: dict[int, SetAside] = {}
            while True:
                self._restore(stored.states)
                self._applied = stored.sequence
                self._bytes_after = 0
                try:
                    num_rejected, forgets = self._replay(set_aside)
                    break
                except _CannotApply as stopped:
                    set_aside[stopped.found.sequence] = stopped.found
                    self._restore(self._empty)
            damage = [Damage(d.file, d.offset, d.num_bytes, d.reason, d.cut) for d in self._log.damage]
            if missing := self._end.missing(self._log.acknowledged):
                damage.append(Damage(str(self._end.path), 0, 0, missing, False))
            if not self._read_only:
                self._end.write(self._log.acknowledged)
                if forgets:
                    self._is_forgetting = True
                    with contextlib.suppress(OSError):  # the next change tries again
                        self._replace_files()
                else:
                    self._remove_covered(stored.sequence)
        except BaseException:
            self._log.close()
            raise
        events = self._applied - stored.sequence
        aside = tuple(set_aside[sequence] for sequence in sorted(set_aside))
        return OpenReport(stored.sequence, events, num_rejected, tuple(damage), tuple(problems), forgets > 0, aside)

    def _replay(self, set_aside: dict[int, SetAside]) -> tuple[int, int]:
        """Apply the log, but for what was set aside before; what is found to belong there is added to it.

        Returns:
            How many events were rejected, and how many were to forget.

        Raises:
            _CannotApply: an event stopped its module in the middle.
        """
        rejected = forgets = 0
        for segment in range(len(self._log.segments)):
            for sequence, kind, payload in self._log.read(segment):
                if sequence <= self._applied:
                    continue
                self._applied = sequence
                self._bytes_after += len(payload)
                if sequence in set_aside:
                    continue
                if kind == _FORGET:
                    try:
                        selector = Selector(**json.loads(payload))
                    except (TypeError, ValueError, RecursionError) as error:
                        set_aside[sequence] = SetAside(sequence, "", f"nothing can be forgotten by it: {error}")
                        continue
                    try:
                        self._remove_in_modules(selector)
                    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                        raise StorageError(
                            f"{self._folder}: event {sequence} is to forget something, and a module failed: {error!r}"
                        ) from error
                    forgets += 1
                elif kind == _EVENT:
                    try:
                        name, event = json.loads(payload)
                        check_depth("event", event, payload)
                    except (TypeError, ValueError, RecursionError) as error:
                        set_aside[sequence] = SetAside(sequence, "", f"it cannot be read: {error}")
                        continue
                    module = self._module(name)
                    try:
                        module.apply(event)
                    except InvalidInputError:
                        # Refused when it was recorded, too, unless by a version that did not check what it recorded.
                        if (reason := _malformed(module, event)) is None:
                            rejected += 1
                        else:
                            set_aside[sequence] = SetAside(sequence, name, reason)
                    except (MemoryError, OSError):
                        raise
                    except Exception as error:
                        raise _CannotApply(SetAside(sequence, name, f"{type(error).__name__}: {error}")) from error
                else:
                    raise StorageError(
                        f"{self._folder}: expected events of kind 1 or 2, got {kind} at event {sequence}"
                    )
        return rejected, forgets

    def _module(self, name: str) -> MemoryModule:
        try:
            return self._modules[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._modules)) or "none"
            raise InvalidInputError(
                f"{self._folder}: expected a module {shown(name)} to be given, got {known}"
            ) from None

    def record(self, module: str, event: Mapping[str, Any]) -> Any:
        """Put an event on the disk, apply it, and return what the module returns.

        What is applied is what JSON makes of the event, as it will be when it is read back: tuples become lists.

        Raises:
            InvalidInputError: an unknown module, an event that JSON cannot hold or that the module refuses; the event
                is not applied, and only one that fits no longer what is remembered by now was recorded.
            StorageError: the disk refused; the event is neither recorded nor applied.
        """
        target = self._module(module)
        try:
            text = json.dumps([module, event], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            payload = text.encode()
            item = _Item(module, json.loads(text)[1])
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"event for {module!r}: expected what JSON can hold, got {error}") from error
        check_depth(f"event for {module!r}", item.event, text)
        target.check(item.event)
        if self._is_forgetting:
            with self._files_lock, self._lock, self._storage_errors("finish forgetting"):
                self._settle()
                self._finish_forgetting()
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
                raise self._unusable()
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
            raise self._unusable()

    def _unusable(self) -> StorageError:
        return StorageError(f"{self._folder}: {self._broken}; open the store again")

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

        Raises:
            StorageError: the disk refused, or the store is read-only or closed; nothing that was recorded is lost.
        """
        with self._files_lock, self._storage_errors("write a snapshot"):
            with self._lock:
                self._settle()
                self._finish_forgetting()
                sequence, states = self._states()
            path = self._written(sequence, states)
            with self._lock:
                self._remove_covered(sequence)
            return path

    def _states(self) -> tuple[int, dict[str, bytes]]:
        """Number of the last event and the states after it; the log goes on in a new file."""
        self._log.roll()
        self._bytes_after = 0
        return self._applied, {name: module.state() for name, module in self._modules.items()}

    def _written(self, sequence: int, states: dict[str, bytes]) -> pathlib.Path:
        path = write_snapshot(self._folder, scope_text(self.scope), sequence, states)
        read_snapshot(path, scope_text(self.scope))  # nothing is removed for a file that cannot be read
        self._last_snapshot_bytes = sum(map(len, states.values()))
        return path

    def forget(
        self,
        *,
        user: str | None = None,
        object: str | None = None,
        episode: int | None = None,
        entry: str | None = None,
        everything: bool | None = None,
    ) -> Receipt:
        """Remove a user, an object, an episode, an entry or everything from all modules and files; what was done.

        When it returns, the files of the store are one new snapshot and an empty log. What was read from the store
        before, and copies of its files, are the caller's; so is what the disk keeps of deleted files.

        Raises:
            InvalidInputError: not exactly one of them is given, or one that names nothing.
            StorageError: the disk refused; if the message does not say "not recorded", the next change finishes it, or
                opening the store.
        """
        selector = Selector(user, object, episode, entry, everything)
        with self._files_lock, self._lock, self._storage_errors("forget"):
            self._settle()
            self._finish_forgetting()
            given = dataclasses.asdict(selector).items()
            fields = {name: value for name, value in given if name not in ("entry", "everything") or value}
            payload = json.dumps(fields).encode()
            self._log.wait(self._log.enqueue(_FORGET, payload))
            self._log.sync()  # whatever the policy: from here on it will be finished
            self._applied += 1
            try:
                removed = self._remove_in_modules(selector)
            except BaseException as error:
                self._broken = f"forgetting was not finished: {error!r}"
                raise
            self._is_forgetting = True
            before = self._files()
            path = self._replace_files()
            gone = tuple(sorted(before - self._files()))
        scope = dataclasses.asdict(self.scope).items()
        named = tuple(field for field, name in scope if selector.is_name(name) or selector.in_text(name))
        return Receipt(selector, self._applied, removed, gone, path.name, named)

    def _remove_in_modules(self, selector: Selector) -> dict[str, dict[str, int]]:
        return {name: module.remove(selector) for name, module in self._modules.items()}

    def _files(self) -> set[str]:
        return {path.name for path in self._folder.iterdir()}

    def _replace_files(self) -> pathlib.Path:
        (self._folder / VECTORS_NAME).unlink(missing_ok=True)
        path = self._written(*self._states())
        self._remove_covered(self._applied)
        self._is_forgetting = False
        return path

    def _finish_forgetting(self) -> None:
        """Replace the files if a forget could not; nothing more is recorded before."""
        if self._is_forgetting:
            self._replace_files()

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
            if not self._read_only:
                self._end.write(self._log.acknowledged)
            self._log.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _checked_modules(modules: Any) -> dict[str, MemoryModule]:
    if not isinstance(modules, Mapping) or not all(isinstance(name, str) for name in modules):
        raise InvalidInputError(f"modules: expected a mapping of names to modules, got {shown(modules)}")
    for name, module in modules.items():
        needed = ("check", "apply", "state", "restore", "remove")
        missing = [method for method in needed if not callable(getattr(module, method, None))]
        if missing or isinstance(module, type):
            raise InvalidInputError(
                f"modules[{name!r}]: expected a MemoryModule, got {shown(module)}; it lacks {missing or 'an instance'}"
            )
    return dict(modules)


def _malformed(module: MemoryModule, event: Any) -> str | None:
    """Why no state of the module would let it apply the event; None if one would."""
    try:
        module.check(event)
    except InvalidInputError as error:
        return str(error)
    return None
