"""Both engines of a store keep the same promises: a folder's SQLite file and a PostgreSQL server.

The server is one of our own in a temporary folder; `apt-get install postgresql` and the extra `postgres` bring it.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import threading
import uuid

import pytest

from embodied_mem.errors import InvalidInputError, StorageError
from embodied_mem.memory import LifelongMemory, MemoryStore, Scope, cli
from embodied_mem.viewer import terminal as view
from experiments.attacks.cluster import Cluster, programs
from experiments.attacks.notes_module import Notes

ANN = Scope(user="ann", environment="home")


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("psycopg", reason='pip install "embodied-mem[postgres]"')
    pytest.importorskip("cryptography", reason='pip install "embodied-mem[postgres]"')
    if programs() is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def server(cluster):
    """A server without any scope."""
    import psycopg

    from embodied_mem.memory.postgres import Server

    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS embodied_mem, embodied_mem_keys CASCADE")
    return Server(cluster.url)


@pytest.fixture(params=["folder", "server"])
def place(request, tmp_path):
    return tmp_path / "ann" if request.param == "folder" else request.getfixturevalue("server")


def rows(cluster, query, *values):
    """Return what a superuser sees."""
    import psycopg

    with psycopg.connect(cluster.url, autocommit=True) as connection:
        cursor = connection.execute(query, values)
        return cursor.fetchall() if cursor.description else []


def said(*arguments, **options):
    output = io.StringIO()
    assert cli.main(list(map(str, arguments)), output=output, **options) == 0
    return output.getvalue()


def killed(work) -> None:
    """Run it in a forked child, which is killed when it returns."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_what_a_killed_writer_acknowledged_is_there(place):
    def work():
        memory = LifelongMemory.open(place, ANN)
        for number in range(5):
            memory.tell(f"I like drink {number}.")

    killed(work)
    killed(work)
    with LifelongMemory.open(place, ANN) as memory:
        assert (memory.store.report.num_events, memory.store.report.damage) == (10, ())
        assert [note.text for note in memory.get_all("notes")] == [f"I like drink {number}." for number in range(5)]
        with pytest.raises(StorageError, match=r"another store has .* open for writing, in "):
            LifelongMemory.open(place, ANN)
        with LifelongMemory.open(place, ANN, read_only=True) as reader:
            assert reader.state() == memory.state()
            with pytest.raises(InvalidInputError, match="read_only=True"):
                reader.tell("I like tea.")


def test_events_of_one_call_are_recorded_in_order_and_on_a_server_in_one_transaction(place):
    from embodied_mem.memory.event_store import EventServer

    notes = Notes()
    with MemoryStore(place, {"notes": notes}) as store:
        assert store.record_all("notes", []) == []
        assert store.record_all("notes", [{"text": text} for text in ("tea", "jam", "rye")]) == [1, 2, 3]
        with pytest.raises(InvalidInputError, match="text: expected one"):
            store.record_all("notes", [{"text": "soy"}, {"text": 1}])
        assert store.last_event == 3
        if isinstance(place, EventServer):
            with store._events._using() as connection:  # the second row is there already: neither is written
                connection.execute(
                    "INSERT INTO embodied_mem.events SELECT scope, 5, fence, payload, crc FROM embodied_mem.events "
                    "WHERE seq = 1"
                )
                with pytest.raises(StorageError, match="nothing was recorded"):
                    store.record_all("notes", [{"text": "soy"}, {"text": "oat"}])
                connection.execute("DELETE FROM embodied_mem.events WHERE seq = 5")
            assert store.last_event == 3
        store.record_all("notes", [{"text": "soy"}, {"text": "oat"}])
    again = Notes()
    with MemoryStore(place, {"notes": again}) as store:
        assert store.last_event == 5
        assert again.rows == notes.rows


def test_what_is_forgotten_is_in_no_event_and_a_snapshot_goes_on(place):
    with LifelongMemory.open(place, ANN) as memory:
        memory.tell("The mug is in the sink.")
        memory.tell("I like tea.")
        memory.forget(object="mug")
        assert (memory.store.last_event, memory.store.report.snapshot) == (3, 0)
        memory.tell("I like jam.")
        state = memory.state()
    with LifelongMemory.open(place, ANN) as memory:
        assert (memory.store.report.snapshot, memory.store.report.num_events) == (3, 1)
        assert memory.state() == state
        assert [note.text for note in memory.get_all("notes")] == ["I like tea.", "I like jam."]
        memory.store.snapshot()
    with LifelongMemory.open(place, ANN, read_only=True) as memory:
        assert memory.state() == state


def test_a_reader_follows_the_writer(place):
    with LifelongMemory.open(place, ANN) as memory, LifelongMemory.open(place, ANN, read_only=True) as reader:
        assert reader.store.follow(0.0) == 0
        writing = threading.Timer(0.2, memory.tell, ["I like tea."])
        writing.start()
        assert reader.store.follow(30.0) == 1
        writing.join()
        assert reader.state() == memory.state()
        memory.forget(object="tea")
        memory.tell("I like jam.")
        assert reader.store.follow(30.0) == 2
        memory.tell("I like rye.")
        memory.store.snapshot()  # its event is in no table any more
        assert reader.store.follow(30.0) == 1
        assert reader.store.follow(0.0) == 0
        assert reader.state() == memory.state()
        with pytest.raises(InvalidInputError, match="follow: expected a store with read_only=True"):
            memory.store.follow(0.0)


def test_one_history_has_one_hash_at_any_step_on_both_engines_and_moves_between_them(
    tmp_path, server, cluster, monkeypatch
):
    for place in (tmp_path / "ann", server):
        with LifelongMemory.open(place, ANN) as memory:
            for number in range(4):
                memory.tell(f"I like drink {number}.")
    of = ["--user", "ann", "--environment", "home"]
    hashes = [
        [said("replay", place, *of, "--to", step, "--hash") for step in range(5)]
        for place in (tmp_path / "ann", cluster.url)
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) == 5
    assert said("replay", tmp_path / "ann", "--hash") == hashes[0][-1]
    assert "drink 1" in said("replay", cluster.url, *of, "--to", 2)
    assert "drink 2" not in said("replay", cluster.url, *of, "--to", 2)
    with pytest.raises(InvalidInputError, match="to: expected a number from 0, the snapshot, to 4, the last event"):
        cli.main(["replay", str(tmp_path / "ann"), "--to", "5"])
    assert view.main([cluster.url, *of, "--out", str(tmp_path / "a.html")], output=io.StringIO()) == 0
    assert "I like drink 3." in (tmp_path / "a.html").read_text()
    # An export moves a scope to the other engine and back.
    ben = ["--user", "ben"]
    with LifelongMemory.open(tmp_path / "ben", Scope(user="ben")) as memory:
        memory.tell("I like jam.")
        memory.begin_task("task", "put a mug in the sink.", "You see a mug 1, and a sink 1.")
    for source, target in ((tmp_path / "ben", cluster.url), (cluster.url, tmp_path / "again")):
        text = said("export", source, *ben)
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        said("import", target)
        assert said("export", target, *ben) == text
        assert said("replay", target, *ben, "--hash") == said("replay", source, *ben, "--hash")


def test_a_writer_that_lost_its_lock_changes_nothing(cluster, server):
    store = MemoryStore(server, {"notes": Notes()}, scope=ANN)
    store.record("notes", {"text": "one"})
    with pytest.raises(StorageError, match="open for writing, in embodied_mem"):
        MemoryStore(server, {"notes": Notes()}, scope=ANN)
    # Its lock is gone and its connection is not, as behind a proxy that gives connections to others.
    server._session.connection.execute("SELECT pg_advisory_unlock_all()")
    notes = Notes()
    from embodied_mem.memory.postgres import Server

    with MemoryStore(Server(cluster.url), {"notes": notes}, scope=ANN) as other:
        other.record("notes", {"text": "two"})
        for change in (lambda: store.record("notes", {"text": "late"}), store.snapshot):
            with pytest.raises(
                StorageError, match=r"another store opened the scope .* after this one; nothing was rec"
            ):
                change()
        other.record("notes", {"text": "three"})
    assert [row[3] for row in notes.rows] == ["one", "two", "three"]
    store.close()


def test_rows_and_keys_of_what_is_forgotten_are_gone(cluster, server):
    with MemoryStore(server, {"notes": Notes()}, scope=ANN) as store:
        store.record("notes", {"user": "ben", "text": "secret"})
        ((event,),) = rows(cluster, "SELECT payload FROM embodied_mem.events")
        ((key,),) = rows(cluster, "SELECT key FROM embodied_mem_keys.keys")
        store.snapshot()  # by the same key: a backup is read by it until something is forgotten
        assert rows(cluster, "SELECT key FROM embodied_mem_keys.keys") == [(key,)]
        store.forget(user="ben")
        assert rows(cluster, "SELECT count(*) FROM embodied_mem.events") == [(0,)]
        ((new_key,),) = rows(cluster, "SELECT key FROM embodied_mem_keys.keys")
        ((state,),) = rows(cluster, "SELECT payload FROM embodied_mem.states")
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    about = store._events._about(b"event", 1)
    assert b"secret" not in event
    assert b"secret" in AESGCM(key).decrypt(event[:12], event[12:], about)  # the key that is gone did open it
    with pytest.raises(InvalidTag):
        AESGCM(new_key).decrypt(event[:12], event[12:], about)
    assert b"notes" in AESGCM(new_key).decrypt(state[:12], state[12:], store._events._about(b"state", 2))
    rows(cluster, "DELETE FROM embodied_mem_keys.keys")
    with pytest.raises(StorageError, match=r"the key of the scope .* is gone"):
        MemoryStore(server, {"notes": Notes()}, scope=ANN)


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        ("UPDATE embodied_mem.events SET payload = set_byte(payload, 9, 255 - get_byte(payload, 9)) WHERE seq = 3", 2),
        ("UPDATE embodied_mem.events SET payload = o.payload, crc = o.crc FROM embodied_mem.events o "
         "WHERE o.seq = 1 AND embodied_mem.events.seq = 3", 2),
        ("DELETE FROM embodied_mem.events WHERE seq = 2", 1),
    ],
    ids=["byte", "another row", "gap"],
)  # fmt: skip
def test_a_damaged_row_is_refused_and_cut_only_if_asked(cluster, server, damage, left):
    with MemoryStore(server, {"notes": Notes()}) as store:
        for number in range(4):
            store.record("notes", {"text": f"note {number}"})
    rows(cluster, damage)
    for options in ({}, {"read_only": True}):
        with pytest.raises(StorageError, match=f"is damaged .*repair=True to cut everything from event {left + 1} on"):
            MemoryStore(server, {"notes": Notes()}, **options)
    notes = Notes()
    with MemoryStore(server, {"notes": notes}, repair=True) as store:
        assert len(notes.rows) == left
        assert len(store.report.damage) == 1
        store.record("notes", {"text": "next"})
    with MemoryStore(server, {"notes": Notes()}) as store:
        assert (store.last_event, store.report.damage) == (left + 1, ())


def test_a_role_sees_its_own_scopes_and_no_others(cluster, server):
    from embodied_mem.memory.postgres import Server

    MemoryStore(server, {"notes": Notes()}, scope=Scope(user="root")).close()  # makes the schema
    urls = {}
    for name in ("ann", "ben"):
        rows(cluster, f"CREATE ROLE {name} LOGIN")
        urls[name] = cluster.url.replace("postgres@", f"{name}@")
        with MemoryStore(Server(urls[name]), {"notes": Notes()}, scope=Scope(user=name)) as store:
            store.record("notes", {"text": name})
            store.snapshot()
            store.record("notes", {"text": name})
    with pytest.raises(StorageError, match="row-level security"):
        MemoryStore(Server(urls["ben"]), {"notes": Notes()}, scope=Scope(user="ann"))
    with pytest.raises(StorageError, match=r"expected the scope .*ann.*, got none"):
        MemoryStore(Server(urls["ben"]), {"notes": Notes()}, scope=Scope(user="ann"), read_only=True)
    import psycopg

    (ann,) = rows(cluster, "SELECT scope::text FROM embodied_mem.scopes WHERE owner = 'ann'")
    for role, count in (("ann", 1), ("ben", 0)):
        with psycopg.connect(urls[role]) as connection:
            connection.execute("SELECT set_config('embodied_mem.scope', %s, false)", ann)
            for table in ("embodied_mem.events", "embodied_mem.states", "embodied_mem_keys.keys"):
                assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (count,)


def test_stores_of_a_server_share_a_connection_and_a_forked_child_has_its_own(cluster, server):
    connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'embodied_mem %%'"
    stores = [MemoryStore(server, {"notes": Notes()}, scope=Scope(user=f"{number}")) for number in range(5)]
    assert rows(cluster, connections) == [(1,)]

    def work():
        with MemoryStore(server, {"notes": Notes()}, scope=Scope(user="child")) as store:
            store.record("notes", {"text": "of the child"})
        with pytest.raises(StorageError, match="open it again after a fork"):
            stores[0].record("notes", {"text": "of the child"})
        stores.clear()
        gc.collect()

    killed(work)
    for store in stores:
        store.record("notes", {"text": "of the parent"})
        store.close()
    assert server._session.connection.closed


def test_a_store_that_is_collected_inside_a_statement_gives_its_lock_back_after_it(cluster, server):
    def collect_inside():
        with MemoryStore(server, {"notes": Notes()}, scope=ANN), session.using(uuid.uuid4()) as connection:
            with connection.lock:  # as psycopg holds it while it waits for the server
                ben.close()
            number_of_locks.append(held())
        number_of_locks.append(held())

    def held():
        return rows(cluster, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")[0][0]

    ben = MemoryStore(server, {"notes": Notes()}, scope=Scope(user="ben"))
    session, number_of_locks = server._session, []
    thread = threading.Thread(target=collect_inside, daemon=True)
    thread.start()
    thread.join(20)
    assert number_of_locks == [2, 0]


def test_a_server_that_nobody_reaches_has_recorded_nothing(cluster):
    from embodied_mem.memory.postgres import Server

    with pytest.raises(StorageError, match=r"(?s)ann@127.0.0.1:1/x: cannot open: .*; nothing was recorded$"):
        LifelongMemory.open(Server("postgresql://ann:secret@127.0.0.1:1/x"), ANN)


def test_a_killed_server_loses_nothing_and_hot_scopes_open_again(cluster, server):
    from embodied_mem.memory.hot_scopes import HotScopes

    scopes = [Scope(user=f"user {number}") for number in range(6)]
    with HotScopes(server, max_scopes=3) as hot:
        for text in ("tea", "jam"):
            for scope in scopes:
                with hot.use(scope) as memory:
                    memory.tell(f"I like {text}.")
        assert len(hot) == 3
        cluster.kill()
        cluster.start()
        with (
            pytest.raises(StorageError, match="what is recorded is not known: open the store again"),
            hot.use(scopes[-1]) as memory,
        ):
            memory.tell("I like rye.")
        for scope in scopes:
            for _ in range(2):  # three were open: each learns from its own first change
                try:
                    with hot.use(scope) as memory:
                        memory.tell("I like soy.")
                    break
                except StorageError:
                    continue
            with hot.use(scope) as memory:
                texts = [note.text for note in memory.get_all("notes")]
                assert texts == ["I like tea.", "I like jam.", "I like soy."]


@pytest.mark.parametrize("is_planted", [False, True])
def test_the_campaign_finds_a_store_that_acknowledges_too_early_and_no_other(cluster, monkeypatch, is_planted):
    from embodied_mem.memory.postgres import ServerEvents
    from experiments.attacks import servers

    append = ServerEvents._append

    def forgetful(store, events):
        if events[-1].number % 7:
            append(store, events)
        else:  # as if the commit were not waited for
            store.num_acknowledged = events[-1].number

    if is_planted:
        monkeypatch.setattr(ServerEvents, "_append", forgetful)
    monkeypatch.setattr(servers, "FAULTS", {"worker": 0.8, "connection": 0.1, "server": 0.1})
    found = servers.campaign(seconds=4, workers=2, scopes=servers.SHARED_SCOPES + 4, seed=1)
    assert found["worker_kills"] > 0
    assert found["events_acknowledged"] > 10
    assert bool(found["faults"]) == is_planted, found


def test_each_engine_is_timed_and_a_killed_server_recovers(cluster):
    from experiments.attacks import servers

    speeds = servers.throughput(0.2, workers=2, scopes=4, disk=servers.MEMORY_DISK, rounds=1)
    assert all(speeds[name]["events_per_s"][0] > 0 for name in ("embedded", "postgresql"))
    outcome = servers.recovery(100, servers.MEMORY_DISK, scopes=3, batch=20)
    assert (outcome["events"], outcome["read_events"]) == (100, 40)
    assert min(outcome["recovery_s"], outcome["append_s"]) > 0
