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

import contextlib
import dataclasses
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import InvalidInputError, StorageError
from ..forks import forking_lock
from .arguments import check_depth, checked_flag, checked_number, checked_real, shown
from .event_store import Damage, Event, EventServer
from .folder_events import Folder, storage_errors
from .graph import Scope, checked_scope, scope_text
from .stored_modules import MemoryModule, RecordedModule, Selector

_EVENT, _FORGET = 1, 2
_ATTEMPTS = 20
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
        """Open or make the folder and restore the new modules.

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
        with storage_errors(self._name, "open the store"):
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
        """Record an event, apply it, return the module's result.

        What is applied is what JSON makes of the event, as it will be when it is read back: tuples become lists.

        Raises:
            InvalidInputError: an unknown module, an event that JSON cannot hold or that the module refuses; the event
                is not applied, and only one that fits no longer what is remembered by now was recorded.
            StorageError: the disk refused; the event is neither recorded nor applied.
        """
        return self.record_all(module, [event])[0]

    def record_all(self, module: str, events: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Do `record` with many events; a server has them in one transaction.

        Raises as `record`. An event that fits no longer ends it; the store must be opened again for the later ones.
        """
        target = self._module(module)
        rows: list[tuple[Any, bytes]] = []
        for event in events:
            try:
                text = _JSON.encode([module, event])
                payload, (_, read) = text.encode(), json.loads(text)
            except (TypeError, ValueError, RecursionError) as error:
                raise InvalidInputError(f"event for {module!r}: expected what JSON can hold, got {error}") from error
            check_depth(f"event for {module!r}", read, text)
            target.check(read)
            rows.append((read, payload))
        results = []
        with self._lock:
            self._check()
            if self._is_forgetting:
                self.snapshot()
            last = self._last
            try:
                self._events.append(_EVENT, *(payload for _, payload in rows))
            finally:  # also where Ctrl-C came after the write
                for read, payload in rows[: self._events.num_acknowledged - last]:
                    self._last += 1
                    self._bytes_after += len(payload)
                    results.append(self._applied(module, read))
            if self._bytes_after > max(self._snapshot_bytes, self._last_snapshot_bytes):
                try:
                    self.snapshot()
                except OSError as error:
                    warnings.warn(f"{error}; the next try is after as many events", RuntimeWarning, stacklevel=3)
        return results

    def _applied(self, module: str, event: Any) -> Any:
        """Apply a recorded event; return the module's result."""
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
        with self._lock, storage_errors(self._name, "follow"):
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
        with self._lock, storage_errors(self._name, "write a snapshot"):
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
        with self._lock, storage_errors(self._name, "forget"):
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
