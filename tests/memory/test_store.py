"""The store: reopened equals straight; damage, scopes, locks and versions are told; what is forgotten is in no file."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError, MissingDependencyError, StorageError
from embodied_mem.memory import LifelongMemory, MemoryStore, Scope
from embodied_mem.memory.arguments import MAX_DEPTH
from embodied_mem.memory.folder_events import write_snapshot
from embodied_mem.native import part
from experiments.attacks.notes_module import Notes
from experiments.attacks.planted import preloaded

ROOT = Path(__file__).parents[2]


def open_notes(folder, **options):
    notes = Notes()
    return MemoryStore(folder, {"notes": notes}, **{"fsync": "never", **options}), notes


def holds(folder: Path, text: str) -> list[str]:
    """Names of the files whose bytes contain the text, in either of the encodings in use."""
    needles = {text.encode(), json.dumps(text)[1:-1].encode()}
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and any(n in p.read_bytes() for n in needles))


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("record"), st.fixed_dictionaries({"user": st.sampled_from(["ann", "ben"]), "text": st.text()})
        ),
        st.tuples(st.just("refused"), st.none()),
        st.tuples(st.just("forget"), st.sampled_from(["ann", "ben"])),
        st.tuples(st.sampled_from(["snapshot", "reopen"]), st.none()),
    ),
    max_size=14,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_reopened_equals_straight(memory_folders, steps):
    """Any events, snapshots, forgets and restarts leave what the same calls make without a store."""
    folder, straight = memory_folders(), Notes()
    store, notes = open_notes(folder)
    for what, argument in steps:
        if what == "record":
            assert store.record("notes", argument) == straight.apply(argument)
        elif what == "refused":
            with pytest.raises(InvalidInputError, match="expected another one"):
                store.record("notes", {"text": "refuse"})
        elif what == "forget":
            receipt = store.forget(user=argument)
            assert receipt.removed["notes"] == straight.remove(receipt.selector)
        elif what == "snapshot":
            store.snapshot()
        else:
            store.close()
            store, notes = open_notes(folder)
            assert not store.report.damage
        assert notes.rows == straight.rows
    store.close()
    reader, notes = open_notes(folder, read_only=True)
    assert notes.rows == straight.rows
    reader.close()


def killed(folder: Path, copy: Path, first: int = 0, last: int = 6) -> Path:
    """Record notes, and copy the folder as a writer that is killed then leaves it."""
    store, _ = open_notes(folder)
    for i in range(first, last):
        store.record("notes", {"text": f"note {i}"})
    shutil.copytree(folder, copy, ignore=lambda *_: ["memory.db-shm"])
    store.close()
    return copy


@pytest.mark.parametrize(
    ("cut", "flipped"), [(5, ()), (4000, ()), (4110, ()), (4119, ()), (0, (8, 30)), (0, (15, 30)), (0, (30,))]
)
def test_a_torn_end_is_cut_and_reported(tmp_path, cut, flipped):
    """The last frame is cut, or bytes of it are wrong: of a salt in its head and of its page, or of the page alone."""
    folder = killed(tmp_path / "straight", tmp_path / "killed")
    wal = folder / "memory.db-wal"
    data = bytearray(wal.read_bytes())
    for at in flipped:
        data[len(data) - 4120 + at] ^= 1
    wal.write_bytes(data[: len(data) - cut])
    for options in ({"read_only": True}, {}):
        store, notes = open_notes(folder, **options)
        assert [row[3] for row in notes.rows] == [f"note {i}" for i in range(5)]
        (damage,) = store.report.damage
        assert (damage.file, damage.cut) == (str(wal), not options)
        assert "is not whole" in damage.reason
        if not options:
            assert store.record("notes", {"text": "more"}) == 6
        store.close()
    store, notes = open_notes(folder)
    assert (len(notes.rows), store.report.damage) == (6, ())
    store.close()


@pytest.mark.parametrize("where", ["file", "WAL"])
@pytest.mark.parametrize("number", [0, 2, 4])
def test_damage_before_acknowledged_events_is_an_error_unless_repaired(tmp_path, where, number):
    folder = killed(tmp_path / "straight", tmp_path / "killed")
    if where == "file":
        open_notes(folder)[0].close()  # moves all to the file
    path = folder / ("memory.db" if where == "file" else "memory.db-wal")
    data = path.read_bytes()
    good, bad = f"note {number}".encode(), f"n0te {number}".encode()
    at = data.index(good)  # in a WAL: in the first of the frames that have it
    path.write_bytes(data[:at] + bad + data[at + len(bad) :])
    for options in ({"read_only": True}, {}, {}):
        with pytest.raises(StorageError, match=rf"damaged \(.*repair=True to cut .* from event {number + 1} on"):
            open_notes(folder, **options)
    store, notes = open_notes(folder, repair=True)
    assert [row[3] for row in notes.rows] == [f"note {i}" for i in range(number)]
    assert store.report.damage[0].cut
    assert store.record("notes", {"text": "more"}) == number + 1
    store.close()
    store, notes = open_notes(folder)
    assert (len(notes.rows), store.report.damage) == (number + 1, ())
    store.close()


@pytest.mark.parametrize("has_wal", [False, True])
def test_a_schema_that_is_no_text_any_more_is_damage(tmp_path, has_wal):
    """SQLite quotes the damaged statement in its message, which is no UTF-8 then."""
    folder = killed(tmp_path / "straight", tmp_path / "killed")
    open_notes(folder)[0].close()
    path = folder / "memory.db"
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE events", b"CREATE TA\xc2LE events"))
    if has_wal:
        (folder / "memory.db-wal").write_bytes(b"\x00" * 32)
    for options in ({"read_only": True}, {}):
        with pytest.raises(StorageError, match="damaged"):
            open_notes(folder, **options)
    store, _ = open_notes(folder, repair=True)
    store.record("notes", {"text": "more"})
    store.close()


def test_every_flipped_bit_of_the_file_is_told_or_changes_nothing(tmp_path):
    """In a folder that was closed, and in one whose writer was killed; who is refused changes nothing either."""
    rng = random.Random(0)
    folder = killed(tmp_path / "straight", tmp_path / "killed")
    for path in (tmp_path / "straight" / "memory.db", folder / "memory.db-wal"):
        data, told = path.read_bytes(), 0
        for at in rng.sample([i for i, byte in enumerate(data) if byte], 120):
            flipped = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            path.write_bytes(flipped)
            for read_only in (True, False):
                with tempfile.TemporaryDirectory() as copy:
                    shutil.copytree(path.parent, copy, dirs_exist_ok=True)
                    try:
                        store, notes = open_notes(Path(copy), read_only=read_only)
                    except StorageError:
                        told += 1
                        assert (Path(copy) / path.name).read_bytes() == flipped
                        continue
                    store.close()
                    texts = [row[3] for row in notes.rows]
                    assert texts == [f"note {i}" for i in range(len(texts))]
                    assert len(texts) == 6 or store.report.damage
                    told += bool(store.report.damage)
        path.write_bytes(data)
        assert told > 100


def test_files_of_another_version_scope_or_module_are_refused(tmp_path):
    store, _ = open_notes(tmp_path, scope=Scope(user="ann"))
    store.record("notes", {"text": "one"})
    store.snapshot()
    store.close()
    with pytest.raises(InvalidInputError, match=r'with, .*"ann".*, got .*"ben"'):
        open_notes(tmp_path, scope=Scope(user="ben"))
    with pytest.raises(InvalidInputError, match=r"expected a module 'notes' to be given, got other"):
        MemoryStore(tmp_path, {"other": Notes()}, scope=Scope(user="ann"))
    snapshot = next(tmp_path.glob("snapshot-*.bin"))
    data = snapshot.read_bytes()
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("PRAGMA user_version=7")
    with pytest.raises(StorageError, match="expected format version 2, got 7"):
        open_notes(tmp_path, scope=Scope(user="ann"))
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("PRAGMA user_version=2")
    newer = data[:-32].replace(b'"version":1', b'"version":7')
    for changed, message in (
        (newer + hashlib.sha256(newer).digest(), "expected .* version 1, got .* version 7"),
        (data[:-1], "checksum"),
        (data[:30] + b"?" + data[31:], "checksum"),
        (data[:-40] + b"?" + data[-39:], "checksum"),
        (b"something else", "checksum"),
        (data + b"x", "checksum"),
        (b"", "checksum"),
    ):
        snapshot.write_bytes(changed)
        with pytest.raises(StorageError, match=message):
            open_notes(tmp_path, scope=Scope(user="ann"))
    snapshot.write_bytes(data)
    store, notes = open_notes(tmp_path, scope=Scope(user="ann"))
    assert len(notes.rows) == 1
    store.close()


def test_one_writer_and_many_readers(tmp_path):
    store, _ = open_notes(tmp_path)
    store.record("notes", {"text": "one"})
    with pytest.raises(StorageError, match=rf"in process {os.getpid()}"):
        open_notes(tmp_path)
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from experiments.attacks.notes_module import Notes; from embodied_mem.memory import MemoryStore\n"
        f"MemoryStore({str(tmp_path)!r}, {{'notes': Notes()}})"
    )
    got = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert f"in process {os.getpid()}; close it there, or open the store with read_only=True" in got.stderr
    stop, problems, counts = threading.Event(), [], set()

    def read():
        try:
            while not stop.is_set():
                reader, notes = open_notes(tmp_path, read_only=True)
                counts.add(len(notes.rows))
                assert [row[3] for row in notes.rows[1:]] == [f"note {i}" for i in range(len(notes.rows) - 1)]
                reader.close()
        except Exception as error:
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(20_000):
        store.record("notes", {"text": f"note {i}"})
        if i % 50 == 49:
            store.snapshot()
        if problems or (i >= 200 and len(counts) > 8):
            break
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(counts) > 8
    with pytest.raises(InvalidInputError, match="read_only=True, so nothing can be written"):
        open_notes(tmp_path, read_only=True)[0].record("notes", {"text": "x"})
    store.close()
    with pytest.raises(StorageError, match="expected an open store"):
        store.record("notes", {"text": "x"})


@pytest.mark.parametrize("fsync", ["always", "interval", "never"])
def test_threads_record_in_one_order(tmp_path, fsync):
    store, notes = open_notes(tmp_path, fsync=fsync)
    results = [[] for _ in range(4)]

    def write(which):
        for i in range(25):
            results[which].append((store.record("notes", {"text": f"{which} {i}"}), f"{which} {i}"))

    threads = [threading.Thread(target=write, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    for number, text in itertools.chain(*results):
        assert notes.rows[number - 1][3] == text
    again, other = open_notes(tmp_path)
    assert other.rows == notes.rows
    again.close()


def test_refused_and_failing_events(tmp_path):
    store, _ = open_notes(tmp_path)
    with pytest.raises(InvalidInputError, match="expected another one"):
        store.record("notes", {"text": "refuse"})
    with pytest.raises(InvalidInputError, match="expected a module 'other' to be given, got notes"):
        store.record("other", {})
    with pytest.raises(InvalidInputError, match="expected what JSON can hold"):
        store.record("notes", {"text": {1, 2}})
    store.record("notes", {"text": "fine"})
    with pytest.raises(RuntimeError, match="boom"):
        store.record("notes", {"text": "explode"})
    with pytest.raises(StorageError, match="failed in the middle of event 3"):
        store.record("notes", {"text": "fine"})
    store.close()
    reader, _ = open_notes(tmp_path / "new")
    reader.close()
    with pytest.raises(StorageError, match="expected the folder of a store"):
        open_notes(tmp_path / "none", read_only=True)


@pytest.mark.parametrize(
    ("selector", "secret"),
    [
        ({"user": "ann-secret"}, "ann-secret"),
        ({"object": "mug-secret"}, "mug-secret"),
        ({"episode": 77}, "diary-secret"),
    ],
)
def test_what_is_forgotten_is_in_no_file(tmp_path, selector, secret):
    store, _ = open_notes(tmp_path)
    for i in range(6):
        row = {name: value for name, value in selector.items()} | {"text": f"{secret} and {i}"}
        store.record("notes", row if i % 2 else {"text": f"kept {i}", "user": "ben"})
        if i == 3:
            store.snapshot()
    assert any(name.startswith("snapshot") for name in holds(tmp_path, secret))  # first: it is there
    assert any(name.startswith("memory.db") for name in holds(tmp_path, secret))
    receipt = store.forget(**selector)
    assert holds(tmp_path, secret) == []
    assert receipt.removed == {"notes": {"notes": 3}}
    assert len(holds(tmp_path, "kept 4")) == 1
    store.record("notes", {"text": "after"})
    store.close()
    assert holds(tmp_path, secret) == []
    again, other = open_notes(tmp_path)
    assert not again.report.forget_pending
    assert [row[3] for row in other.rows] == ["kept 0", "kept 2", "kept 4", "after"]
    with pytest.raises(InvalidInputError, match="expected one of user, object and episode"):
        again.forget(user="x", object="y")
    again.close()


@pytest.mark.parametrize("seed", range(3))
def test_large_events_are_forgotten_in_every_page(memory_folders, seed):
    """Events over several pages, and in pages that snapshots freed."""
    rng, folder = random.Random(seed), memory_folders()
    store, notes = open_notes(folder, snapshot_bytes=1 << 30)
    for _ in range(6):
        for _ in range(rng.randrange(1, 30)):
            user = rng.choice(["ann", "ben"])
            text = "secret " if user == "ann" else "open "
            store.record("notes", {"user": user, "text": text * rng.randrange(1, rng.choice([5, 300, 3000]))})
        store.snapshot()
        for _ in range(rng.randrange(1, 4)):
            store.record("notes", {"user": "ann", "text": "secret " * rng.randrange(1, 2000)})
    expected = [row for row in notes.rows if row[0] == "ben"]
    assert len(holds(folder, "secret ")) >= 1
    store.forget(user="ann")
    assert holds(folder, "secret ") == []
    assert (folder / "memory.db").stat().st_size < 20_000
    store.close()
    store, notes = open_notes(folder)
    assert notes.rows == expected
    store.close()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"]), st.sampled_from(["", "snap", "forget"])), max_size=12
    )
)
def test_scopes_do_not_interfere(memory_folders, steps):
    """What one scope's store holds and answers is the same whether the others exist or not."""
    root = memory_folders()
    scopes = [Scope(user="ann"), Scope(user="ben"), Scope(user="ann", robot="r2")]

    def play(folder, which):
        return open_notes(folder, scope=scopes[which])

    together = [play(root / f"together{i}", i) for i in range(3)]
    alone = [play(root / f"alone{i}", i) for i in range(3)]
    for i, (which, text, then) in enumerate(steps):
        for store, _ in (together[which], alone[which]) if which == 0 else (together[which],):
            store.record("notes", {"text": f"{text}{i}", "user": text})
            if then == "snap":
                store.snapshot()
            elif then == "forget":
                store.forget(user=text)
    assert together[0][1].rows == alone[0][1].rows
    for store, _ in together + alone:
        store.close()
    files = [{p.name: p.read_bytes() for p in (root / name).iterdir()} for name in ("together0", "alone0")]
    assert files[0] == files[1]
    for i in (1, 2):
        with pytest.raises(InvalidInputError, match="expected the scope it was made with"):
            open_notes(root / "together0", scope=scopes[i])


def test_a_missing_or_old_extension_is_told_in_one_sentence(monkeypatch):
    with pytest.raises(MissingDependencyError, match=r"expected the part 'warp'.*pip install -e \."):
        part("warp")
    monkeypatch.setitem(sys.modules, "embodied_mem._native", None)
    with pytest.raises(MissingDependencyError, match=r"expected the compiled extension.*pip install -e \."):
        part("memory")


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("not a store")
    with pytest.raises(StorageError, match=r"notes\.txt: expected a folder"):
        MemoryStore(tmp_path / "notes.txt", {})


def test_a_snapshot_is_written_when_the_log_has_grown(tmp_path):
    """As often as the log outgrows the last snapshot, so more and more seldom; nothing is lost; what is old goes."""
    store, notes = open_notes(tmp_path, snapshot_bytes=500)
    written = []
    for i in range(600):
        store.record("notes", {"text": f"note {i}"})
        found = {path.name for path in tmp_path.glob("snapshot-*")}
        assert len(found) <= 1
        if found and found != set(written[-1:]):
            written += found
    sizes = 600 * len(json.dumps(["notes", {"text": "note 100"}], separators=(",", ":")))
    assert 3 <= len(written) < sizes / 500 / 2
    store.close()
    again, other = open_notes(tmp_path, snapshot_bytes=500)
    assert other.rows == notes.rows
    assert 0 < again.report.snapshot <= 600
    assert again.report.num_events < 600 / 2
    before = again.report.num_events
    while len({path.name for path in tmp_path.glob("snapshot-*")} - set(written)) == 0:
        again.record("notes", {"text": "more"})  # what was replayed counts, too
    assert again.last_event - 600 + before < 600
    again.close()


def test_a_snapshot_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    def refuse(*_):
        raise StorageError("the disk is full")

    store, notes = open_notes(tmp_path, snapshot_bytes=100)
    monkeypatch.setattr("embodied_mem.memory.folder_events.write_snapshot", refuse)
    with pytest.warns(RuntimeWarning, match="the disk is full; the next try"):
        [store.record("notes", {"text": f"note {i}"}) for i in range(5)]
    monkeypatch.undo()
    store.close()
    again, other = open_notes(tmp_path)
    assert other.rows == notes.rows
    assert len(other.rows) == 5
    again.close()


def test_what_is_forgotten_while_a_snapshot_is_written_is_in_no_file(tmp_path, monkeypatch):
    """The states of a snapshot are taken before it is written; forgetting waits until it is there."""
    store, _ = open_notes(tmp_path)
    store.record("notes", {"text": "ann has a secret", "user": "ann"})
    writing, go_on = threading.Event(), threading.Event()

    def slow(*arguments):
        writing.set()
        go_on.wait(10)
        return write_snapshot(*arguments)

    monkeypatch.setattr("embodied_mem.memory.folder_events.write_snapshot", slow)
    snapshot = threading.Thread(target=store.snapshot)
    snapshot.start()
    assert writing.wait(10)
    monkeypatch.undo()
    forget = threading.Thread(target=store.forget, kwargs={"user": "ann"})
    forget.start()
    forget.join(0.2)
    assert forget.is_alive()
    go_on.set()
    snapshot.join(10)
    forget.join(10)
    assert not [path.name for path in tmp_path.iterdir() if b"secret" in path.read_bytes()]
    store.close()


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, 600, 100_000])
def test_an_event_that_is_nested_too_deep_is_refused(tmp_path, levels):
    store, notes = open_notes(tmp_path)
    value = []
    for _ in range(levels - 2):
        value = [value]
    event = {"text": "deep", "user": value}  # one level more
    if levels < MAX_DEPTH:
        store.record("notes", event)
    else:
        with pytest.raises(InvalidInputError, match=r"within each other|recursion"):
            store.record("notes", event | {"object": [value]})
    store.close()
    store, again = open_notes(tmp_path)
    assert again.rows == notes.rows
    assert not store.report.set_aside
    store.close()


def refuse(*_, **__):
    raise OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize("change", ["record", "forget", "snapshot"])
@pytest.mark.parametrize(
    ("refused", "is_reopened"),
    [("write_snapshot", False), ("write_snapshot", True), ("read_snapshot", False), ("sync_folder", False),
     ("_remove_snapshots", False)],
)  # fmt: skip
def test_a_forget_that_the_disk_refuses_is_finished_by_the_next_change(
    tmp_path, monkeypatch, refused, change, is_reopened
):
    """Also where the store is opened anew before there is room; until then nothing is acknowledged."""
    store, notes = open_notes(tmp_path)
    store.record("notes", {"text": "ann has a secret", "user": "ann"})
    store.snapshot()
    store.record("notes", {"text": "bob has a cat", "user": "bob"})
    changes = {
        "record": lambda: store.record("notes", {"text": "one more", "user": "bob"}),
        "forget": lambda: store.forget(user="eve"),
        "snapshot": lambda: store.snapshot(),
    }
    monkeypatch.setattr(f"embodied_mem.memory.folder_events.{refused}", refuse)
    with pytest.raises(StorageError, match="no space left"):
        store.forget(user="ann")
    for _ in range(2):
        if is_reopened:
            store.close()
            store, notes = open_notes(tmp_path)
            assert store.report.forget_pending
        assert [row[-1] for row in notes.rows] == ["bob has a cat"]
        with pytest.raises(StorageError, match="no space left"):
            changes[change]()
    monkeypatch.undo()
    changes[change]()
    assert holds(tmp_path, "secret") == []
    expected = ["bob has a cat", "one more"][: 1 + (change == "record")]
    for again in (False, True):
        if again:
            store.close()
            store, notes = open_notes(tmp_path)
        assert [row[-1] for row in notes.rows] == expected
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_full_disk(tmp_path):
    """A file system of 128 KiB is filled until it refuses, then has to forget, then gets room: every door goes on."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("mount: not allowed here")
    try:
        memory = LifelongMemory.open(tmp_path / "memory", Scope(user="ann"))
        acknowledged, is_full = [], False
        while not is_full:
            number = len(acknowledged)
            try:
                memory.tell(text := f"The code of box full{number}z is {number}. " + "q" * 400)
                acknowledged.append(text)
            except StorageError:
                is_full = True
        with pytest.raises(StorageError, match="No space left"):
            memory.forget(object="full1z")
        subprocess.run(["mount", "-o", "remount,size=4m", tmp_path], check=True)
        memory.tell("I like tea.")
        memory.forget(object="full1z")  # in case that it was not recorded
        left = [text for text in acknowledged if "full1z" not in text]
        assert holds(tmp_path, "full1z") == []
        assert [entry.text for entry in memory.get_all("notes")] == [*left, "I like tea."]
        memory.close()
        with LifelongMemory.open(tmp_path / "memory", Scope(user="ann")) as memory:
            assert [entry.text for entry in memory.get_all("notes")] == [*left, "I like tea."]
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_only_what_killed_writers_of_the_store_left_is_removed(tmp_path):
    ours = (
        ".snapshot-0000000000000001.bin.0123456789abcdef.partial",
        ".memory.db.0123456789abcdef.partial",
        ".memory.db.0123456789abcdef.partial-wal",
        "snapshot-0000000000000009.bin",
    )
    foreign = ("notes.tmp", "snapshot-1.bin", ".notes.0123456789abcdef.partial", "snapshot-0000000000000001.tmp")
    MemoryStore(tmp_path, {"notes": Notes()}).close()
    for name in (*ours, *foreign):
        (tmp_path / name).write_bytes(b"secret")
    MemoryStore(tmp_path, {"notes": Notes()}, read_only=True).close()
    assert {path.name for path in tmp_path.iterdir()} == {"LOCK", "memory.db", *ours, *foreign}
    MemoryStore(tmp_path, {"notes": Notes()}).close()
    assert {path.name for path in tmp_path.iterdir()} == {"LOCK", "memory.db", *foreign}


def test_a_folder_of_an_unreleased_version_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "events-0000000000000016.log").write_bytes(b"EMEMLOG\n")
    for options in ({"read_only": True}, {}):
        with pytest.raises(StorageError, match=r"expected memory\.db, got events-0+16\.log, .* open a new folder"):
            open_notes(tmp_path, **options)
    assert {path.name for path in tmp_path.iterdir()} == {"LOCK", "events-0000000000000016.log"}


def test_a_forget_waits_for_a_reader_and_is_finished_by_the_next_change(tmp_path, monkeypatch):
    """A connection of somebody else holds an old moment; while it does, the WAL keeps what was forgotten."""
    monkeypatch.setattr("embodied_mem.memory.folder_events._BUSY_S", 0.1)
    store, _ = open_notes(tmp_path)
    store.record("notes", {"text": "ann has a secret", "user": "ann"})
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
        with pytest.raises(StorageError, match="a reader holds it"):
            store.forget(user="ann")
        assert holds(tmp_path, "secret")
        with pytest.raises(StorageError, match="a reader holds it"):
            store.record("notes", {"text": "more"})
    store.record("notes", {"text": "more"})
    assert holds(tmp_path, "secret") == []
    store.close()


@pytest.mark.parametrize(("fsync", "expected"), [("always", 5), ("interval", 1), ("never", 0)])
def test_fsync_is_called_as_the_policy_says(tmp_path, fsync, expected):
    """Counted by the system: a kill cannot show an fsync that is not there."""
    code = (
        "import ctypes, sys, time; sys.path.insert(0, '.')\n"
        "from experiments.attacks.notes_module import Notes; from embodied_mem.memory import MemoryStore\n"
        "disk = ctypes.CDLL(None)\n"
        f"store = MemoryStore({str(tmp_path / 'attack-store')!r}, {{'notes': Notes()}}, fsync={fsync!r})\n"
        "store.record('notes', {'text': 'first'}); time.sleep(0.3)\n"  # the WAL has its head
        "before = disk.num_syncs()\n"
        "for i in range(5): store.record('notes', {'text': f'note {i}'})\n"
        "time.sleep(0.5); print(disk.num_syncs() - before)"
    )
    environment = {**os.environ, "LD_PRELOAD": str(preloaded())}
    got = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert got.returncode == 0, got.stderr
    assert expected <= int(got.stdout) <= expected * 2


@pytest.mark.parametrize("num_bytes", [1, 32, 56, 4096, 4152])
@pytest.mark.parametrize("read_only", [True, False])
def test_what_the_process_had_in_its_heap_is_in_no_file(tmp_path, num_bytes, read_only):
    """A killed writer left a WAL without a frame: SQLite would copy a buffer that nobody has written into `-shm`."""
    folder = tmp_path / "store"
    with MemoryStore(folder, {"notes": Notes()}) as store:
        for number in range(3):
            store.record("notes", {"user": "kept", "text": f"kept {number}"})
        store.snapshot()
        store.record("notes", {"user": "kept", "text": "kept 3"})
        wal = (folder / "memory.db-wal").read_bytes()
    damaged = wal[: num_bytes - 1] + bytes([wal[num_bytes - 1] ^ 1]) if num_bytes == 4152 else wal[:num_bytes]
    (folder / "memory.db-wal").write_bytes(damaged)
    for _ in range(50):  # buffers of all sizes that SQLite may get again
        heap = [(b'"gone 105"' * (size // 10)) for size in range(8192, 131072, 4096)]
        del heap
        with MemoryStore(folder, {"notes": Notes()}, read_only=read_only):
            assert b"gone 105" not in b"".join(path.read_bytes() for path in folder.iterdir())
        assert b"gone 105" not in b"".join(path.read_bytes() for path in folder.iterdir())
        (folder / "memory.db-wal").write_bytes(damaged)
