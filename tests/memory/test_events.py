"""Events: what cannot be applied is never recorded, or set aside and forgotten; a log that ends too early says so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embodied_mem.errors import EmbodiedMemError, InvalidInputError, StorageError
from embodied_mem.memory import LifelongMemory, MemoryStore, Scope
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.profile import UserProfile
from experiments.attacks.notes_module import Notes

ROOM = "Looking quickly around you, you see a desk 1, and a shelf 1."
WRONG_CALLS = {
    "forget a number too large": lambda m: m.forget(episode=2**63),
    "forget a flag": lambda m: m.forget(episode=True),
    "int task_id": lambda m: (m.begin_task(7, "g", "o"), m.forget(object="vase")),
    "int goal": lambda m: m.begin_task("t", 7, "o"),
    "int observation at first": lambda m: m.begin_task("t", "g", 7),
    "int place": lambda m: (m.begin_task("t", "g", "o", place=7), m.forget(object="vase")),
    "int action": lambda m: (m.begin_task("t", "g", "o"), m.observe(7, "x")),
    "None as action": lambda m: (m.begin_task("t", "g", "o"), m.observe(None, "x"), m.forget(object="vase")),
    "None as observation": lambda m: (m.begin_task("t", "g", "o"), m.observe("look", None)),
    "half a character": lambda m: (m.begin_task("t", "g", "o"), m.observe("look", "\ud800")),
    "None told": lambda m: m.tell(None),
    "word for a flag": lambda m: (m.begin_task("t", "g", "o"), m.end_task("yes")),
    "no episode": lambda m: replay(m, None),
    "number asked": lambda m: m.retrieve(7),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_argument_is_refused_and_leaves_no_event(memory_folders, call):
    folder = memory_folders()
    with LifelongMemory.open(folder, fsync="never") as memory:
        with pytest.raises(InvalidInputError):
            call(memory)
        running, state = memory.running, memory.state()
        assert memory.store.last_event == running  # the task began where it was right, and nothing else
    for read_only in (False, True):
        with LifelongMemory.open(folder, read_only=read_only) as again:
            assert again.state() == state
            assert not again.store.report.set_aside


SAID = (
    "On the |The | is open. In it, you see |, you see |a mug 1|a |, and |,| 1|.|\n|/|_|You arrive at |You pick up the |"
    " from the |You move the | to the |This is a clean |\u0301|\0|Looking quickly around you, you see |nothing|I keep "
)
PIECES = st.sampled_from([*SAID.split("|"), "x" * 2100, "\U0001f600" * 600])
TEXTS = st.lists(PIECES, max_size=9).map("".join) | st.text(max_size=20).filter(str.isprintable)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), TEXTS)
def test_any_text_can_be_remembered_and_replayed(memory_folders, turns, place):
    """Text that makes no sense is no error; what was recorded makes the same memory when it is opened again."""
    folder = memory_folders()
    with LifelongMemory.open(folder, fsync="never") as memory:
        memory.begin_task(turns[0][0], turns[0][1], turns[0][0], place=place[:500])
        for action, text in turns:
            memory.observe(action, text)
            memory.tell(text)
            memory.retrieve(text)
        memory.end_task(False)
        state = memory.state()
    with LifelongMemory.open(folder, read_only=True) as again:
        assert again.state() == state
        assert (again.store.report.num_rejected, again.store.report.set_aside) == (0, ())


def test_a_module_that_fails_in_the_middle_is_replayed_without_that_event(tmp_path):
    def opened(**options):
        notes = Notes()
        return MemoryStore(tmp_path, {"notes": notes}, fsync="never", **options), notes

    store, _ = opened()
    for text in ("one", "two"):
        store.record("notes", {"text": text})
    store.snapshot()
    store.record("notes", {"text": "three"})
    with pytest.raises(RuntimeError, match="boom"):
        store.record("notes", {"text": "explode"})
    store.close()
    for options in ({"read_only": True}, {}):
        store, notes = opened(**options)
        assert [row[3] for row in notes.rows] == ["one", "two", "three"]
        assert [(one.number, one.module, one.reason) for one in store.report.set_aside] == [
            (4, "notes", "RuntimeError: boom")
        ]
        store.close()
    store, notes = opened()
    assert store.record("notes", {"text": "four"}) == 4
    store.forget(object="nothing of it")  # what was set aside goes with the log
    store.close()
    assert not any(b"explode" in path.read_bytes() for path in tmp_path.iterdir())
    store, _ = opened()
    assert store.report.set_aside == ()
    store.close()


def test_modules_are_checked():
    for modules in (None, [], {"a": 3}, {7: Notes()}, {"a": Notes}):
        with pytest.raises(InvalidInputError, match="modules"):
            MemoryStore("nowhere", modules)


def test_place_of_the_running_episode_goes_with_it(tmp_path):
    with LifelongMemory.open(tmp_path, fsync="never") as memory:
        memory.begin_task("a", "g", ROOM, place="hall")
        memory.observe("look", "On the desk 1, you see a mug 1.")
        memory.end_task(True)
        memory.begin_task("b", "g", ROOM, place="hidden attic")
        memory.observe("look", "On the desk 1, you see a pen 1.")
        memory.forget(episode=0)
        assert (memory.place, memory.spatial.place) == ("hidden attic", "hidden attic")  # another one was forgotten
        memory.forget(episode=1)
        assert (memory.place, memory.spatial.place) == ("", "")
        memory.observe("look", "On the desk 1, you see a cup 1.")
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"cup 1" in raw
    assert b"hidden attic" not in raw
    assert b"hall" not in raw


def test_the_receipt_says_where_the_name_stays(tmp_path):
    scope = Scope(user="Zoe\u0308", environment="house of zo\u00eb")
    with MemoryStore(tmp_path, {"notes": Notes()}, scope=scope) as store:
        assert store.forget(object="mug").named_in_scope == ()
        assert store.forget(user="Zo\u00eb").named_in_scope == ("user",)
        assert store.forget(object="zo\u00eb").named_in_scope == ("user", "environment")


# A log that ends too early.


def written(folder, count, **options):
    """Record some notes and close."""
    with MemoryStore(folder, {"notes": Notes()}, fsync="never", **options) as store:
        for _ in range(count):
            store.record("notes", {"text": f"note {store.last_event}"})


@pytest.mark.parametrize("how", ["older file", "file gone"])
@pytest.mark.parametrize("with_snapshot", [False, True])
def test_missing_events_at_the_end_are_told(memory_folders, how, with_snapshot):
    folder = memory_folders()
    written(folder, 12)
    if with_snapshot:
        with MemoryStore(folder, {"notes": Notes()}, fsync="never") as store:
            store.snapshot()
    older = (folder / "memory.db").read_bytes()
    written(folder, 8)
    if how == "older file":
        (folder / "memory.db").write_bytes(older)
    else:
        (folder / "memory.db").unlink()
    left, options = (12 if with_snapshot or how == "older file" else 0), {}
    if with_snapshot and how == "file gone":
        options = {"repair": True}
        for read_only in (True, False):
            with pytest.raises(StorageError, match=r"expected it beside snapshot-0+c\.bin, got none"):
                MemoryStore(folder, {"notes": Notes()}, read_only=read_only)
    else:
        for _ in range(2):
            with MemoryStore(folder, {"notes": Notes()}, read_only=True) as store:
                assert [one.cut for one in store.report.damage] == [False]
    with MemoryStore(folder, {"notes": Notes()}, fsync="never", **options) as store:
        (damage,) = store.report.damage
        assert store.last_event == left
        assert (
            f"expected events up to 20, the last one when the store was opened or closed, got {left}" in damage.reason
        )
        assert not damage.cut
    with MemoryStore(folder, {"notes": Notes()}, fsync="never") as store:
        assert store.report.damage == ()  # told once to whoever writes on
        store.record("notes", {"text": "on"})
        assert store.last_event == left + 1


def mark(folder) -> str:
    return (folder / "LOCK").read_text().split()[1]


def test_a_folder_without_the_mark_opens_and_gets_one(memory_folders):
    folder = memory_folders()
    written(folder, 5)
    (folder / "LOCK").unlink()
    written(folder, 1)
    assert mark(folder) == "6"
    text = (folder / "LOCK").read_text()
    (folder / "LOCK").write_text(text.replace(" 6 ", " 7 "))  # flipped
    with MemoryStore(folder, {"notes": Notes()}, fsync="never", read_only=True) as store:
        assert "its checksum" in store.report.damage[0].reason
    written(folder, 0)
    with MemoryStore(folder, {"notes": Notes()}, fsync="never", read_only=True) as store:
        assert store.report.damage == ()


def test_a_writer_that_was_killed_is_no_damage(memory_folders):
    folder = memory_folders()
    written(folder, 3)
    script = """
import os, sys
sys.path[:0] = sys.argv[2:]
from experiments.attacks.notes_module import Notes
from embodied_mem.memory import MemoryStore
store = MemoryStore(sys.argv[1], {"notes": Notes()}, fsync="never")
for i in range(9):
    store.record("notes", {"text": f"note {i}"})
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script, str(folder), *sys.path], timeout=60)
    assert done.returncode == -9
    assert mark(folder) == "3"
    for options in ({"read_only": True}, {}):
        with MemoryStore(folder, {"notes": Notes()}, fsync="never", **options) as store:
            assert (store.report.damage, store.last_event) == ((), 12)
            assert mark(folder) == ("3" if options else "12")


# Folders that are not as they should be.


@pytest.mark.parametrize("name", ["snapshot-000000000000000c.bin", "memory.db", "memory.db-wal", "LOCK"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_in_the_place_of_a_file(memory_folders, name, read_only):
    folder = memory_folders()
    written(folder, 12)
    with MemoryStore(folder, {"notes": Notes()}, fsync="never") as store:
        store.snapshot()
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()
    with pytest.raises(StorageError):
        MemoryStore(folder, {"notes": Notes()}, fsync="never", read_only=read_only)


def test_a_disk_that_refuses_is_a_storage_error(tmp_path):
    for path in ("/dev/null", "/dev/null/x", "/proc/none", tmp_path / ("x" * 300)):
        for options in ({}, {"read_only": True}):
            with pytest.raises(EmbodiedMemError):
                MemoryStore(path, {"notes": Notes()}, **options)


def test_a_module_that_applies_in_its_own_way_does_so_at_once_and_on_replay(tmp_path):
    class Counting(Notes):
        def __init__(self):
            super().__init__()
            self.count = 0

        def apply(self, event):
            self.count += 1
            return super().apply(event)

    class Profile(UserProfile):
        count = 0

        def apply(self, event):
            self.count += 1
            super().apply(event)

    for name, kind in (("notes", Counting), ("profile", Profile)):
        module = kind()
        event = {"text": "one"} if name == "notes" else module.propose("I like tea.", episode=0, step=0, time=1)
        with MemoryStore(tmp_path / name, {name: module}) as store:
            store.record(name, event)
        again = kind()
        with MemoryStore(tmp_path / name, {name: again}):
            assert (module.count, again.count) == (1, 1)
            assert module.state() == again.state()
