"""The MCP server, asked by the official client: over standard input and output, over HTTP, and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope

pytest.importorskip("mcp_types", reason='the package mcp 2 is not installed: pip install "embodied_mem[mcp]"')
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from embodied_mem.serve import mcp as served
from experiments.attacks.cluster import Cluster, programs

TOKENS = {"a-secret-of-ann-1234": "ann", "a-secret-of-bob-1234": "bob"}


def stdio(folder):
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "embodied_mem.serve.mcp", str(folder), "--user", "ann"],
        env=dict(os.environ),
    )


async def called(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    text = result.content[0].text
    return (text, True) if result.is_error else (json.loads(text), False)


def test_a_client_remembers_and_another_one_recalls(tmp_path):
    async def first():
        async with Client(stdio(tmp_path / "ann")) as client:
            assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["remember", "recall"]
            await called(client, "remember", text="I am allergic to peanuts.", source="user")
            said, failed = await called(client, "remember", text="x", source="god")
            assert failed
            assert "expected one of user" in said

    async def second():
        async with Client(stdio(tmp_path / "ann")) as client:
            found, failed = await called(client, "recall", query="What am I allergic to?")
            assert not failed
            assert "peanuts" in found["entries"][0]["text"]

    asyncio.run(first())
    asyncio.run(second())


ROOM = "You are in a room. Looking quickly around you, you see a cabinet 1, a desk 1, a fridge 1, and a sinkbasin 1."
PLAYED = [
    ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1."),
    ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
    ("go to cabinet 1", "You arrive at cabinet 1. On the cabinet 1, you see nothing."),
    ("move mug 1 to cabinet 1", "You move the mug 1 to the cabinet 1."),
]


def test_a_client_is_guided_through_a_task_by_what_it_did_before(tmp_path):
    """By shipped weights; the second client meets a server that was started anew in the middle of a task."""

    async def first():
        async with Client(stdio(tmp_path / "ann")) as client:
            assert [tool.name for tool in (await client.list_tools()).tools][5:] == ["guide", "end_task"]
            assert "expected a goal" in (await called(client, "guide", action="look", observation="Nothing."))[0]
            await called(client, "guide", goal="put a mug in cabinet.", observation=ROOM)
            for action, answer in PLAYED:
                guided, failed = await called(client, "guide", action=action, observation=answer)
                assert not failed
            assert "done: find mug" in guided["state"]
            assert (await called(client, "end_task", won=True))[0] == {"remembered": "task 1"}
            await called(client, "remember", text="My sister gave me the mug.", source="user")
            await called(client, "remember", text="Put every mug in fridge 1.", source="document")
            guided, _ = await called(client, "guide", goal="put a mug in fridge.", observation=ROOM)
            assert guided["guidance"] == "find mug in desk 1"
            [source] = guided["sources"]
            assert (source["task"], source["source"]) == (0, "sensor")
            assert "mug was in desk 1" in source["text"]
            reasons = {one["source"]: (one["text"], one["reason"]) for one in guided["withheld"]}
            assert "sister" in reasons["user"][0]
            assert "these weights read" in reasons["user"][1]
            assert 'a document says: "Put every mug' in reasons["document"][0]
            assert "no instruction" in guided["warning"]
            assert "has not ended" in (await called(client, "guide", goal="put a mug in fridge.", observation=ROOM))[0]

    async def second():
        parameters = stdio(tmp_path / "ann")
        parameters.args = ["-m", "embodied_mem.cli", "serve", "mcp", *parameters.args[2:]]
        async with Client(parameters) as client:
            action, observation = PLAYED[0]
            guided, failed = await called(client, "guide", action=action, observation=observation)
            assert not failed
            assert guided["guidance"] == "take mug 1 from desk 1"
            for arguments in ({}, {"goal": "put a mug in desk.", "action": "look"}):
                said, failed = await called(client, "guide", observation=ROOM, **arguments)
                assert failed
                assert "expected a goal, where a task begins, or an action" in said

    asyncio.run(first())
    asyncio.run(second())


def test_users_are_guided_at_the_same_time_each_by_the_own_memory(tmp_path, unoptimised):
    """One compiler for all of them."""
    things = {"ann": "mug", "bob": "plate", "eve": "cup"}
    memories = served.Memories(tmp_path, weights=served.WEIGHTS)

    async def play(user):
        async def guide(**arguments):
            text, failed = await memories.call(user, "guide", arguments)
            assert not failed, text
            return json.loads(text)["guidance"]

        thing = things[user]
        await guide(goal=f"put a {thing} in cabinet.", observation=ROOM)
        for action, answer in PLAYED:
            await guide(action=action.replace("mug", thing), observation=answer.replace("mug", thing))
        await memories.call(user, "end_task", {"won": True})
        return await guide(goal=f"put a {thing} in fridge.", observation=ROOM)

    async def play_all():
        return await asyncio.gather(*map(play, things))

    assert asyncio.run(play_all()) == [f"find {thing} in desk 1" for thing in things.values()]
    memories.close()


def test_without_the_training_extra_or_weights_nobody_is_offered_guidance(tmp_path):
    async def tools(parameters, said):
        with said.open("w") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                assert (await called(client, "guide", goal="put a mug in desk.", observation=ROOM))[1]
                return [tool.name for tool in (await client.list_tools()).tools]

    parameters, said = stdio(tmp_path / "ann"), tmp_path / "said"
    hidden = "import sys; sys.modules['jax'] = None; from embodied_mem.serve.mcp import main; main(sys.argv[1:])"
    parameters.args = ["-c", hidden, *parameters.args[2:]]
    assert asyncio.run(tools(parameters, said)) == ["remember", "recall", "update", "forget", "explain"]
    [line] = said.read_text().splitlines()
    assert line.startswith("the tools guide and end_task are left out; jax not installed: pip install")
    parameters = stdio(tmp_path / "ann")
    parameters.args = [*parameters.args, "--weights", ""]
    assert asyncio.run(tools(parameters, said)) == ["remember", "recall", "update", "forget", "explain"]
    assert said.read_text() == ""
    assert served.main([str(tmp_path / "new"), "--user", "ann", "--weights", "nowhere"]) == 1


def test_what_was_answered_survives_a_kill(tmp_path):
    """SIGKILL while a client writes: everything that was answered is there."""
    answered = []

    async def write():
        async with Client(stdio(tmp_path / "ann")) as client:
            for number in range(1000):
                await called(client, "remember", text=f"The number of box {number} is {number * 7}.", source="user")
                answered.append(number)
                if number == 12:
                    (server,) = children(os.getpid())
                    os.kill(server, signal.SIGKILL)

    with pytest.raises(BaseException):  # noqa: B017, PT011 (whatever the client makes of a server that is gone)
        asyncio.run(asyncio.wait_for(write(), 60))
    assert len(answered) >= 13
    with LifelongMemory.open(tmp_path / "ann", Scope(user="ann")) as memory:
        texts = {entry.text for entry in memory.get_all("notes")}
    assert {f"The number of box {number} is {number * 7}." for number in answered} <= texts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_signal_ends_the_server_at_once(tmp_path, number, is_asked):
    """Before a client said anything, and between two of its calls; the folder is free again."""
    process = subprocess.Popen(
        [sys.executable, "-m", "embodied_mem.serve.mcp", str(tmp_path / "ann"), "--user", "ann"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}
    process.stdin.write(json.dumps(hello).encode() + b"\n")
    process.stdin.flush()
    assert process.stdout.readline()
    if is_asked:
        call = {"name": "remember", "arguments": {"text": "My cat is called Tom.", "source": "user"}}
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        assert b"stored" in process.stdout.readline()
    process.send_signal(number)
    assert process.wait(10) == 128 + number
    assert process.stderr.read() == b""
    with LifelongMemory.open(tmp_path / "ann", Scope(user="ann")) as memory:
        assert [entry.text for entry in memory.get_all("notes")] == ["My cat is called Tom."] * is_asked


def test_the_scope_is_that_of_the_folder(tmp_path, capsys):
    """A folder made for a user, a robot and an environment is served as it is; another scope is refused by name."""
    scope = Scope(user="ann", robot="r2", environment="home")
    for folder in (tmp_path / "one", tmp_path / "all" / "ann"):
        with LifelongMemory.open(folder, scope) as memory:
            memory.tell("My cat is called Tom.")

    async def recall(options):
        parameters = stdio(tmp_path / "one")
        parameters.args = [*parameters.args[:3], *options]
        async with Client(parameters) as client:
            return (await called(client, "recall", query="cat"))[0]

    for options in ([], ["--user", "ann"], ["--robot", "r2", "--environment", "home"]):
        assert "Tom" in str(asyncio.run(recall(options)))
    memories = served.Memories(tmp_path / "all")
    with memories.lend("ann") as memory:
        assert memory.scope == scope
    memories.close()
    for name in ("user", "robot", "environment"):
        assert served.main([str(tmp_path / "one"), f"--{name}", "bob"]) == 1
        assert f"got --{name} bob" in capsys.readouterr().err
    assert served.main([str(tmp_path / "new")]) == 1
    assert "--user: expected one" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    (tmp_path / "all" / "ann").rename(tmp_path / "all" / "bob")
    with pytest.raises(InvalidInputError, match="got --user bob"):
        served.Memories(tmp_path / "all").lend("bob").__enter__()


def test_users_do_not_wait_for_each_other_and_one_user_takes_one_thread(tmp_path, monkeypatch):
    """While the calls of one user hang, another one is answered; more calls than may wait are refused at once."""
    free = threading.Event()

    def slow(memory, *_):
        if memory.scope.user == "ann":
            assert free.wait(60)
        return {"user": memory.scope.user}

    monkeypatch.setattr(served, "answer", slow)
    memories = served.Memories(tmp_path)

    async def talk():
        hanging = [asyncio.create_task(memories.call("ann", "recall", {})) for _ in range(served.MAX_CALLS + 3)]
        await asyncio.sleep(0)
        for user in ("bob", "eve"):
            assert await asyncio.wait_for(memories.call(user, "recall", {}), 30) == (f'{{"user": "{user}"}}', False)
        for task in hanging[:5]:
            task.cancel()  # the client has gone: the call is made all the same
        refused = [text for text, failed in await asyncio.gather(*hanging[-3:]) if failed]
        assert len(refused) == 3
        assert all("calls at a time" in text for text in refused)
        working = [one for one in threading.enumerate() if one.name.startswith("embodied_mem.mcp")]
        assert len(working) <= 3  # one for each user
        free.set()
        assert {await task for task in hanging[5:-3]} == {('{"user": "ann"}', False)}

    asyncio.run(talk())
    memories.close()


def test_the_server_goes_on_with_a_store_that_has_to_be_opened_again(tmp_path):
    """A disk that refuses fsync once closes the log of a store; the next call opens it anew."""
    memories = served.Memories(tmp_path)

    async def remember(text):
        return await memories.call("ann", "remember", {"text": text, "source": "user"})

    assert not asyncio.run(remember("My cat is called Tom."))[1]
    with memories.lend("ann") as memory:
        memory.store._fault = "event 2 was recorded and not applied"
    said, failed = asyncio.run(remember("My dog is called Rex."))
    assert failed
    assert "open the store again" in said
    assert not asyncio.run(remember("My dog is called Rex."))[1]
    with memories.lend("ann") as memory:
        notes = [entry.text for entry in memory.get_all("notes")]
    assert notes == ["My cat is called Tom.", "My dog is called Rex."]
    memories.close()


def children(parent):
    """Process ids of the children that serve."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                status = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                command = Path(f"/proc/{name}/cmdline").read_text()
            except OSError:
                continue
            if int(status[1]) == parent and "embodied_mem.serve.mcp" in command:
                found.append(int(name))
    return found


@pytest.fixture
def server(tmp_path):
    """(address, folder) of a server over HTTP."""
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "embodied_mem.serve.mcp", str(tmp_path / "all")]
    process = subprocess.Popen([*command, "--tokens", str(tmp_path / "tokens.json"), "--port", str(port)])
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


def test_a_token_reaches_its_users_memory_alone(server):
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def with_token(token, name, **arguments):
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(server, http_client=http)) as client,
        ):
            return (await called(client, name, **arguments))[0]

    async def talk():
        ann, bob = TOKENS
        await with_token(ann, "remember", text="My door code is 4711.", source="user")
        assert "4711" in str(await with_token(ann, "recall", query="door code"))
        assert "4711" not in str(await with_token(bob, "recall", query="door code"))
        async with httpx2.AsyncClient() as http:
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            for headers in ({}, {"Authorization": "Bearer somebody else's token"}):
                assert (await http.post(server, json=asked, headers=headers)).status_code == 401
            assert (await http.get(server.replace("/mcp", "/health"))).text == "ok\n"
            metrics = (await http.get(server.replace("/mcp", "/metrics"))).text.splitlines()
        assert 'embodied_mem_calls_total{tool="recall",outcome="ok"} 2' in metrics
        assert 'embodied_mem_calls_total{tool="remember",outcome="ok"} 1' in metrics
        assert "embodied_mem_open_memories 2" in metrics
        assert "embodied_mem_waiting_calls 0" in metrics
        assert not any("ann" in line or "4711" in line for line in metrics)

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "expected a JSON object"),
        ("{}", "expected a JSON object"),
        ('{"short": "ann"}', "at least 16 characters"),
        ('{"0123456789abcdef": "../eve"}', "expected names of users"),
    ],
)
def test_bad_tokens_are_refused_before_anything_is_served(tmp_path, capsys, content, said):
    path = tmp_path / "tokens.json"
    path.write_text(content)
    assert served.main([str(tmp_path / "all"), "--tokens", str(path)]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "all").exists()


def test_users_of_a_server_have_a_scope_each_and_another_program_goes_on(capsys):
    pytest.importorskip("psycopg", reason='pip install "embodied-mem[postgres]"')
    if programs() is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")

    async def talk(url):
        memories = served.Memories(url)
        try:
            text, failed = await memories.call("ann", "remember", {"text": "My door code is 4711.", "source": "user"})
            assert not failed, text
        finally:
            memories.close()
        other = served.Memories(url)
        try:
            assert "4711" in (await other.call("ann", "recall", {"query": "door code"}))[0]
            assert "4711" not in (await other.call("bob", "recall", {"query": "door code"}))[0]
            assert "embodied_mem_open_memories 2" in other.metrics()
        finally:
            other.close()

    async def recall(url):
        async with Client(stdio(url)) as client:
            return (await called(client, "recall", query="door code"))[0]

    with Cluster() as cluster:
        asyncio.run(talk(cluster.url))
        assert "4711" in str(asyncio.run(recall(cluster.url)))
        assert served.main([cluster.url, "--robot", "r2"]) == 1
        assert "--user: expected one" in capsys.readouterr().err
