"""The MCP server, asked by the official client: over standard input and output, over HTTP, and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embodied_mem.memory import LifelongMemory, Scope

pytest.importorskip("mcp_types", reason='the package mcp 2 is not installed: pip install "embodied_mem[mcp]"')
from mcp import Client, StdioServerParameters

from embodied_mem.serve import mcp as served

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
