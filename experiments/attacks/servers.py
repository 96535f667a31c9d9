"""Many processes write many scopes on one PostgreSQL server while they, their connections and the server are killed.

    outcome = campaign(seconds=300, workers=8, scopes=1000, seed=0, events=10**6)     # `faults` says what was wrong
    speeds = throughput(seconds=20, workers=8, scopes=1000, disk="/dev/shm")

The number of an event decides what it is: a forget, a note that the next forget removes, or a note that stays. So the
last number tells which notes a scope must hold. It is checked at every opening, and of all scopes at the end: at least
what was acknowledged, at most what was begun. A page that outlives the workers has both numbers of each scope.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import psycopg

from embodied_mem.errors import StorageError
from embodied_mem.memory import LifelongMemory, MemoryStore, Scope
from embodied_mem.memory.hot_scopes import HotScopes
from embodied_mem.memory.postgres import Server

from .cluster import Cluster
from .notes_module import Notes

FORGET_EVERY, SECRET = 100, 3
"""Every so many-th event forgets the notes that leave 3 when divided by 5; of a whole memory every tenth does."""
SHARED_SCOPES = 20
"""Scopes that all workers want, one at a time; each other scope is of one worker."""
WHOLE_EVERY = 10
"""Each so many-th scope is a whole memory."""
MAX_WRITES, MAX_EVENTS = 8, 80
"""Writes of a visit at most, events of a write at most."""
HOT_SHARE = 0.5
"""Share of a worker's scopes that stay open."""
FAULTS = {"worker": 0.85, "connection": 0.1, "server": 0.05}
MEAN_WAIT_S = 0.5
PATIENCE_S = 60
MEMORY_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"


class Page:
    """Numbers that outlive their writers: events begun and acknowledged by scope, operations by worker."""

    def __init__(self, scopes: int, workers: int):
        shape = np.uint64(2 * scopes + 2 * workers)
        memory = mmap.mmap(-1, int(shape) * 8)
        numbers = np.frombuffer((ctypes.c_uint64 * int(shape)).from_buffer(memory), np.uint64)
        self.num_begun, self.num_acknowledged = numbers[:scopes], numbers[scopes : 2 * scopes]
        self.is_writing, self.operations = np.split(numbers[2 * scopes :], 2)


def expected_notes(number: int, last: int) -> list[int]:
    """Return the numbers of a scope's notes after an event."""
    every = _forget_every(number)
    return [k for k in range(1, last + 1) if k % every and not (k % 5 == SECRET and k < last // every * every)]


def _scope(number: int) -> Scope:
    return Scope(user=f"user {number}", environment="campaign")


class _Whole:
    """A whole memory as the campaign writes it."""

    def __init__(self, memory: LifelongMemory):
        self.store, self.close = memory.store, memory.close
        self._memory = memory

    def note(self, notes: Mapping[int, str]) -> None:
        for number, about in notes.items():
            self._memory.tell(f"Note {number} about {about}.")

    def forget(self, about: str) -> None:
        self._memory.forget(object=about)

    def numbers(self) -> list[int]:
        return [int(note.text.split()[1]) for note in self._memory.get_all("notes")]


class _Bare:
    """A store of a list of notes as the campaign writes it."""

    def __init__(self, server: Server, scope: Scope):
        self._notes = Notes()
        self.store = MemoryStore(server, {"notes": self._notes}, scope=scope)
        self.close = self.store.close

    def note(self, notes: Mapping[int, str]) -> None:
        self.store.record_all("notes", [{"user": about, "text": str(number)} for number, about in notes.items()])

    def forget(self, about: str) -> None:
        self.store.forget(user=about)

    def numbers(self) -> list[int]:
        return [int(text) for *_, text in self._notes.rows]


def _is_whole(number: int) -> bool:
    return number < SHARED_SCOPES or number % WHOLE_EVERY == 0


def _forget_every(number: int) -> int:
    return FORGET_EVERY // 10 if _is_whole(number) else FORGET_EVERY


class _Scopes(HotScopes):
    """Scopes of the campaign, checked when they are opened."""

    def __init__(self, server: Server, max_scopes: int, page: Page):
        super().__init__(server, max_scopes)
        self._page = page

    def _open(self, scope: Scope) -> Any:
        number = int(str(scope.user).split()[1])
        memory = _Whole(super()._open(scope)) if _is_whole(number) else _Bare(self._server, scope)
        last = memory.store.last_event
        least, most = int(self._page.num_acknowledged[number]), int(self._page.num_begun[number])
        assert last in (least, most), f"scope {number}: {least} acknowledged, {most} begun, {last} are there"
        self._page.num_acknowledged[number] = last  # what was read is there to stay
        numbers = memory.numbers()
        assert numbers == expected_notes(number, last), (
            f"scope {number}: after event {last} there are other notes: {numbers}"
        )
        return memory


def _write(memory: _Whole | _Bare, number: int, page: Page, most: int) -> int:
    """Record the next events of a scope; return how many."""
    first = memory.store.last_event + 1
    forget = -(-first // _forget_every(number)) * _forget_every(number)
    last = page.num_begun[number] = first if first == forget else min(first + most, forget) - 1
    if first == forget:
        memory.forget("walrus")
    else:
        memory.note({k: "walrus" if k % 5 == SECRET else "tea" for k in range(first, last + 1)})
    assert memory.store.last_event == last
    page.num_acknowledged[number] = last
    return last + 1 - first


def _live(url: str, slot: int, workers: int, page: Page, seed: int) -> None:
    """Live a worker's life until it is killed."""
    rng = random.Random(f"{seed} {slot} {os.getpid()}")
    scopes = len(page.num_begun)
    own = list(range(SHARED_SCOPES + slot, scopes, workers))
    server = Server(url)
    hot = _Scopes(server, max(int(len(own) * HOT_SHARE), 1), page)
    unlucky_since = time.monotonic()
    while True:
        is_shared = rng.random() < 0.03
        number = rng.randrange(SHARED_SCOPES) if is_shared else rng.choice(own)
        try:
            with contextlib.ExitStack() as stack:
                scopes_used = stack.enter_context(_Scopes(server, 1, page)) if is_shared else hot
                memory = stack.enter_context(scopes_used.use(_scope(number)))
                for _ in range(rng.randint(1, MAX_WRITES)):
                    page.is_writing[slot] = 1
                    count = _write(memory, number, page, 1 if _is_whole(number) else rng.randint(1, MAX_EVENTS))
                    page.is_writing[slot] = 0
                    page.operations[slot] += count
            unlucky_since = time.monotonic()
        except StorageError as error:
            if "after this one" in str(error):
                raise AssertionError(f"fenced wrongly: {error}") from error
            if time.monotonic() - unlucky_since > PATIENCE_S:
                raise AssertionError(f"no success for {PATIENCE_S} s: {error}") from error


def _child(work: Callable[[], object], error_file: pathlib.Path) -> int:
    """Fork a process that writes its error to a file."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            error_file.write_text(f"{type(error).__name__}: {error}")
        os._exit(1)
    return child


def campaign(seconds: float, workers: int, scopes: int, seed: int, events: int = 10**9) -> dict[str, Any]:
    """Run workers, kill at random, check all scopes; return the counts.

    Args:
        seconds: until it ends.
        workers: processes that write.
        scopes: that they write.
        seed: of what is killed when, and what is written.
        events: that end it sooner, once they are acknowledged.
    """
    rng, page = random.Random(seed), Page(scopes, workers)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="campaign-"))
    counts = {f"{what}_kills": 0 for what in FAULTS} | {"kills_in_a_write": 0}
    faults: list[str] = []
    with Cluster(disk=MEMORY_DISK) as cluster:
        LifelongMemory.open(cluster.url, _scope(-1)).close()  # makes the schema
        starts = [
            lambda slot=slot: _child(lambda: _live(cluster.url, slot, workers, page, seed), folder / f"{slot}")
            for slot in range(workers)
        ]
        children = [start() for start in starts]
        began = time.monotonic()
        while time.monotonic() < began + seconds and page.num_acknowledged.sum() < events:
            time.sleep(min(rng.expovariate(1 / MEAN_WAIT_S), 5 * MEAN_WAIT_S))
            (what,) = rng.choices(list(FAULTS), list(FAULTS.values()))
            slot = rng.randrange(workers)
            counts[f"{what}_kills"] += 1
            if what == "worker":
                os.kill(children[slot], signal.SIGKILL)
                _, status = os.waitpid(children[slot], 0)
                counts["kills_in_a_write"] += int(page.is_writing[slot])
                page.is_writing[slot] = 0
                if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                    faults.append((folder / f"{slot}").read_text())
                children[slot] = starts[slot]()
            elif what == "connection":
                with psycopg.connect(cluster.url, autocommit=True) as connection:
                    connection.execute(_CONNECTIONS, [f"embodied_mem {children[slot]} on %"])
            else:
                counts["kills_in_a_write"] += int(page.is_writing.sum())
                cluster.kill()
                cluster.start()
        took = time.monotonic() - began
        for slot, child in enumerate(children):
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                faults.append((folder / f"{slot}").read_text())
        with _Scopes(Server(cluster.url), workers, page) as hot:
            for number in np.flatnonzero(page.num_begun).tolist():
                try:
                    with hot.use(_scope(number)):  # which finishes a killed forget
                        pass
                except (AssertionError, StorageError) as error:
                    faults.append(f"at the end: {error}")
        keys, rows = _sizes(cluster)
    shutil.rmtree(folder)
    counts |= {
        "events_acknowledged": int(page.num_acknowledged.sum()),
        "scopes_written": int((page.num_begun > 0).sum()),
    }
    rate = round(int(page.operations.sum()) / took, 1)
    return counts | {"seconds": round(took, 1), "events_per_s": rate, "keys": keys, "rows": rows, "faults": faults}


def _sizes(cluster: Cluster) -> tuple[int, int]:
    with psycopg.connect(cluster.url) as connection:
        tables = ("embodied_mem_keys.keys", "embodied_mem.events")
        keys, rows = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    return keys, rows


# Speed.


def _embedded(url: str, folder: pathlib.Path, scopes: list[int]) -> Iterator[Callable[[str], None]]:
    """Yield what records a text: one SQLite file for each scope."""
    for number in scopes:
        yield _record(MemoryStore(folder / f"{number}", {"notes": Notes()}, scope=_scope(number)))


def _postgresql(url: str, folder: pathlib.Path, scopes: list[int]) -> Iterator[Callable[[str], None]]:
    """Yield what records a text: scopes on the server."""
    server = Server(url)
    for number in scopes:
        yield _record(MemoryStore(server, {"notes": Notes()}, scope=_scope(number)))


def _record(store: MemoryStore) -> Callable[[str], None]:
    return lambda text: store.record("notes", {"user": "ann", "text": text})


def _langgraph(url: str, folder: pathlib.Path, scopes: list[int]) -> Iterator[Callable[[str], None]]:
    """Yield writers of LangGraph's PostgresStore, a namespace for each scope."""
    from langgraph.store.postgres import PostgresStore

    store = PostgresStore(psycopg.connect(url, autocommit=True, row_factory=psycopg.rows.dict_row))
    store.setup()
    for number in scopes:
        yield lambda text, number=number: store.put((f"user {number}",), os.urandom(8).hex(), {"text": text})


def _mem0(
    url: str, folder: pathlib.Path, scopes: list[int], encoder: str = "default_embedder"
) -> Iterator[Callable[[str], None]]:
    """Yield writers of mem0 on pgvector; its history stays in memory."""
    from experiments.dialogues import contenders

    embedder = getattr(contenders, encoder)()
    store = {"connection_string": url, "collection_name": encoder, "maxconn": 1}
    memory = contenders.open_mem0(str(folder), "pgvector", store, embedder)
    for number in scopes:
        yield lambda text, number=number: memory.add(text, user_id=f"user{number}", infer=False)


STORES = {
    "embedded": _embedded, "postgresql": _postgresql, "langgraph": _langgraph, "mem0": _mem0,
    "mem0_minilm": functools.partial(_mem0, encoder="minilm"),
}  # fmt: skip
TEXT = "I like tea. " * 16


def throughput(seconds: float, workers: int, scopes: int, disk: str | None, rounds: int = 2) -> dict[str, Any]:
    """Return rates and latencies of durable writes in each installed store."""
    times: dict[str, list[np.ndarray]] = {name: [] for name in STORES}
    rates: dict[str, list[float]] = {name: [] for name in STORES}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="throughput-", dir=disk))
    error_file = folder / "told"
    with Cluster(disk=disk) as cluster:
        for name, store_of in STORES.items():  # which makes its tables
            child = _child(lambda: next(store_of(cluster.url, folder / name, [scopes]))(TEXT), error_file)  # noqa: B023
            if os.waitpid(child, 0)[1]:
                print(f"{name} is left out: {error_file.read_text()}", file=sys.stderr)
                error_file.unlink()
                del times[name], rates[name]
        for turn in range(rounds):
            for name in times:
                page = Page(1, workers)

                def work(slot: int, name: str = name, page: Page = page, turn: int = turn) -> None:
                    own = range(slot, scopes, workers)
                    records = list(STORES[name](cluster.url, folder / f"{turn}", list(own)))
                    rng, took = random.Random(slot), []
                    records[0](TEXT)
                    page.operations[slot] = 1
                    while not page.num_begun[0]:
                        time.sleep(0.001)
                    end = time.perf_counter() + seconds
                    while (start := time.perf_counter()) < end:
                        rng.choice(records)(TEXT)
                        took.append(time.perf_counter() - start)
                    np.save(folder / f"{slot}.npy", took)

                children = [_child(lambda slot=slot, work=work: work(slot), error_file) for slot in range(workers)]
                while page.operations.sum() < workers and not error_file.exists():
                    time.sleep(0.01)
                page.num_begun[0] = 1
                for child in children:
                    _, status = os.waitpid(child, 0)
                    assert not status, error_file.read_text()
                took = [np.load(folder / f"{slot}.npy") for slot in range(workers)]
                times[name] += took
                rates[name].append(sum(map(len, took)) / seconds)
    shutil.rmtree(folder)
    return {
        name: {
            "events_per_s": [round(rate, 1) for rate in rates[name]],
            **{f"p{q}_ms": round(1e3 * float(np.percentile(np.concatenate(times[name]), q)), 2) for q in (50, 99)},
        }
        for name in times
    }


def recovery(events: int, disk: str | None, scopes: int = 100, batch: int = 1000) -> dict[str, Any]:
    """Time how a server recovers that was killed long after a checkpoint.

    Returns:
        Events, of which `read_events` are the scope's that is read; megabytes of log; seconds until the server takes
        connections, then until a new event is acknowledged, then until a scope is read.
    """
    with Cluster(disk=disk, settings=("checkpoint_timeout=1d", "max_wal_size=1TB")) as cluster:
        server, batches = Server(cluster.url), -(-events // batch)
        stores = [MemoryStore(server, {"notes": Notes()}, scope=_scope(number)) for number in range(scopes)]
        first = _log_position(cluster)
        for number in range(batches):
            stores[number % scopes].record_all("notes", [{"user": "ann", "text": TEXT}] * batch)
        num_bytes = _log_position(cluster) - first
        cluster.kill()
        times = [time.monotonic()]
        cluster.start()
        times.append(time.monotonic())
        server = Server(cluster.url)
        with MemoryStore(server, {"notes": Notes()}, scope=_scope(scopes)) as store:
            _record(store)(TEXT)
        times.append(time.monotonic())
        with MemoryStore(server, {"notes": (notes := Notes())}, scope=_scope(0)):
            times.append(time.monotonic())
        assert len(notes.rows) == batch * len(range(0, batches, scopes))
    counts = {"events": batch * batches, "read_events": len(notes.rows), "log_mb": round(num_bytes / 1e6, 1)}
    return counts | dict(zip(("recovery_s", "append_s", "read_s"), np.diff(times).round(2).tolist(), strict=True))


def _log_position(cluster: Cluster) -> float:
    with psycopg.connect(cluster.url) as connection:
        return float(connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()[0])
