"""The served doors: kills of the MCP server and of LangGraph's store, odd arguments, words that must be gone.

A door may refuse; it may not raise a raw error, lose what it has answered, or leave on the disk what was forgotten.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import sys
import time
from typing import Any

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.serve import tools

from . import Counts
from .kills import KILLS, Page, _bytes, _child, _killed

_LONGEST_S = 2.0
"""Longest time of a call with odd arguments."""


class _Client:
    """A client of an MCP server in a forked child, over pipes."""

    def __init__(self, folder: pathlib.Path):
        asked, self._ask = os.pipe()
        answers, answered = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            signal.alarm(60)
            try:
                _serve(folder, asked, answered)
            finally:
                os._exit(1)
        os.close(asked)
        os.close(answered)
        self._answers = os.fdopen(answers, "rb")
        self._number = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "attack", "version": "1"}}
        self.request("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        os.write(self._ask, json.dumps(message).encode() + b"\n")

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Ask without waiting."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def answer(self) -> dict[str, Any] | None:
        """Return the next answer; None from a dead server."""
        while line := self._answers.readline():
            found = json.loads(line)
            if "id" in found:
                return found
        return None

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        self.send(method, params)
        return self.answer()

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)

    def close(self) -> None:
        os.close(self._ask)
        self._answers.close()


def _serve(folder: pathlib.Path, asked: int, answered: int) -> None:
    from embodied_mem.serve import mcp

    os.dup2(asked, 0)
    os.dup2(answered, 1)
    sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
    memories = mcp.Memories(folder, "ann")
    mcp.serve_stdio(memories, "ann")


def kill_mcp(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill the MCP server while it remembers and forgets.

    What it answered is so, in the memory and on the disk.
    """
    import mcp.server.stdio  # noqa: F401  once, before the forks

    told: set[str] = set()
    gone: set[str] = set()
    number = landed = 0
    for _ in range(4):
        client = _Client(folder / "ann")
        for _ in range(rng.randrange(2, 8)):
            number += 1
            word = f"secret{number:04d}x"
            arguments = {"text": f"The number of box {number} is {word}.", "source": "user"}
            answer = client.request("tools/call", {"name": "remember", "arguments": arguments})
            assert _is_done(answer), f"remember was refused: {answer}"
            told.add(word)
            if rng.random() < 0.4:
                word = rng.choice(sorted(told))
                answer = client.request("tools/call", {"name": "forget", "arguments": {"object": word}})
                assert _is_done(answer), f"forget was refused: {answer}"
                told.discard(word)
                gone.add(word)
        under_way = f"secret{number + 1:04d}x"
        number += 1
        arguments = {"text": f"The number of box {number} is {under_way}.", "source": "user"}
        client.send("tools/call", {"name": "remember", "arguments": arguments})
        time.sleep(rng.random() ** 2 * 3e-3)
        client.kill()
        answered = client.answer() is not None  # before it died
        client.close()
        landed += not answered
        with LifelongMemory.open(folder / "ann", Scope(user="ann")) as memory:
            texts = " ".join(entry.text for entry in memory.get_all())
        if answered or under_way in texts:
            told.add(under_way)
        _check_words(folder / "ann", texts, told, gone)
    return Counts(4, landed)


def _is_done(answer: dict[str, Any] | None) -> bool:
    return answer is not None and not answer.get("result", {"isError": True}).get("isError")


def _check_words(folder: pathlib.Path, texts: str, told: set[str], gone: set[str]) -> None:
    """Raise unless all told words are remembered and no forgotten one.

    A forgotten word is neither in the memory nor in any file.
    """
    lost = sorted(word for word in told if word not in texts)
    assert not lost, f"answered and lost: {lost}"
    raw = b"".join(map(_bytes, folder.rglob("*")))
    left = sorted(word for word in gone if word in texts or word.encode() in raw)
    assert not left, f"forgotten and still there: {left}"


def kill_langgraph(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Kill LangGraph's store while it puts and forgets.

    What was put is there, what was forgotten is nowhere.
    """
    from embodied_mem.serve.langgraph import MemoryBaseStore

    page, space, missing, landed = Page(), ("users", "ann"), set[int](), 0
    begun, put, asked, forgot = 0, 8, 16, 24  # numbers of values: begun, put, asked to be forgotten up to, forgotten

    def write() -> None:
        with MemoryBaseStore(folder / "g", fsync="never") as store:
            for i in range(page.get(begun) + 1, 1 << 30):
                page.put(begun, i)
                store.put(space, f"{i}", {"text": f"value{i:05d}x of [the] vase{i % 5}y", "list": [i, None, "\n"]})
                page.put(put, i)
                if i % 7 == 0:
                    page.put(asked, i)
                    store.store.forget(object="vase3y")
                    page.put(forgot, i)

    for _ in range(KILLS):
        child, first, deadline = _child(write), page.get(begun), time.monotonic() + 20
        while page.get(begun) < first + rng.randrange(2, 30) and time.monotonic() < deadline:
            time.sleep(1e-4)
        _killed(child, rng.random() * 2e-3)
        landed += page.get(begun) > page.get(put) or page.get(asked) > page.get(forgot)
        with MemoryBaseStore(folder / "g", fsync="never") as store:
            found = {int(item.key) for item in store.search(space, limit=100_000)}
        missing |= set(range(page.get(put) + 1, page.get(begun) + 1)) - found  # killed before it was acknowledged
        sure = {i for i in range(1, page.get(begun) + 1) if i % 5 != 3 or i > page.get(asked)} - missing
        assert sure <= found, f"put and lost: {sorted(sure - found)}"
        raw = b"".join(map(_bytes, (folder / "g").rglob("*")))
        gone = [i for i in range(1, page.get(forgot) + 1) if i % 5 == 3]
        left = [i for i in gone if i in found or f"value{i:05d}x".encode() in raw]
        assert not left, f"forgotten and still there: values {left}"
    return Counts(KILLS, landed)


def doors(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Ask tools and LangGraph's store odd things.

    They give an answer or an error of ours, soon, and the folder still opens.
    """
    from embodied_mem.serve.langgraph import MemoryBaseStore
    from embodied_mem.serve.mcp import Memories

    refused = tries = 0
    memories = Memories(folder / "m")
    for user in ("ann", "bob"):
        with memories.lend(user) as memory:
            memory.tell(f"The word of {user} is {user}secret.")
    for _ in range(40):
        user, name = rng.choice(["ann", "bob"]), rng.choice(list(tools._TOOLS))
        properties = tools._TOOLS[name][1]["properties"]
        given: Any = {key: _odd(rng) if rng.random() < 0.5 else _plain(rng, key) for key in properties}
        if rng.random() < 0.1:
            given = rng.choice([_odd(rng), '{"text": "I like tea."', "[" * 5000, "", "[]", {"\ud800": 1}])
        began = time.process_time()
        with memories.lend(user) as memory:
            answer = json.loads(tools.call(memory, name, given))
        took = time.process_time() - began
        assert took < _LONGEST_S, f"{name} took {took:.1f} s"
        other = "bobsecret" if user == "ann" else "annsecret"
        assert other not in json.dumps(answer), f"{name} tells {user} what another user said"
        refused += "error" in answer
        tries += 1
    texts = {}
    for user in ("ann", "bob"):
        with memories.lend(user) as memory:
            texts[user] = {entry.text for entry in memory.get_all()}
    memories.close()
    for user, before in texts.items():
        with LifelongMemory.open(folder / "m" / user, Scope(user=user)) as memory:
            assert {entry.text for entry in memory.get_all()} == before, (
                f"{user}'s memory is another one when opened again"
            )
    with MemoryBaseStore(folder / "g", fsync="never") as store:
        kept: dict[str, Any] = {}
        for i in range(20):
            value, key = {"text": _odd(rng), "n": i}, f"key {i}"
            try:
                store.put(("a",), key, value)
                kept[key] = store.get(("a",), key).value
                store.search(("a",), query=str(_plain(rng, "query")), filter={"n": rng.choice([i, {"$gt": 3}])})
            except (EmbodiedMemError, ValueError, TypeError):
                refused += 1
            tries += 1
    with MemoryBaseStore(folder / "g") as store:
        for key, value in kept.items():
            assert store.get(("a",), key).value == value, f"the value of {key} is another one when opened again"
    return Counts(tries, refused)


def _plain(rng: random.Random, key: str) -> Any:
    values = {"source": rng.choice(["user", "sensor", "agent", "document"]), "k": rng.randrange(1, 60), "as_of": None}
    if key in values:
        return values[key]
    if key == "id":
        return f"{rng.choice(['notes', 'profile', 'spatial', 'x'])}:{rng.choice([0, 1, 7, 10**30])}"
    things = ["tea", "the red mug", "gluten", "\u732b", "Zo\u00eb's cup", "nothing"]
    return f"{rng.choice(['I like', 'I do not like', 'We keep'])} {rng.choice(things)}."


def _odd(rng: random.Random) -> Any:
    runs = [" ", "\t", "\u00a0", "a, ", "not ", "'", '"', "(", "and ", "\U0001f600", "9", "-", "\n", "\u732b"]
    nested: Any = 1
    for _ in range(rng.choice([3, 60, 990, 5000])):
        nested = [nested] if rng.random() < 0.5 else {"a": nested}
    return rng.choice([
        rng.choice(runs) * rng.choice([1, 1000, 100_000]), f"I like{rng.choice(runs) * 3000}tea.", nested, None, True,
        float("nan"), 1e400, -1, 10**400, [], {}, [None], "\0", "\ud800", "", {"a": {1, 2}},
    ])  # fmt: skip
