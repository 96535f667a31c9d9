"""What holds on to a folder or a file given by a relative path goes on after the working directory changed."""

from __future__ import annotations

import asyncio
import json
import pathlib

import pytest

from embodied_mem.envs import make
from embodied_mem.language.chat import ChatReply, Usage, UsageMeter
from embodied_mem.language.recorded_chat import RecordedChatModel
from embodied_mem.memory import AsyncLifelongMemory, LexicalEmbedder, LifelongMemory, Scope
from embodied_mem.parallel.resume import Finished
from embodied_mem.training.loop import MetricsWriter


class Model:
    name, meter = "model", UsageMeter()

    def complete(self, messages, **options):
        return ChatReply("yes", Usage(), "stop")


class Custom(LexicalEmbedder):
    """One whose vectors are kept in a file."""

    def __init__(self):
        super().__init__()
        self.name = "custom"


def of_memory(folder, leave):
    with LifelongMemory.open(folder, Scope(user="ann"), embedder=Custom(), fsync="interval") as memory:
        memory.tell("My key is in the drawer.")
        leave()
        memory.store.snapshot()
        memory.tell("My cat is called Tom.")
        memory.forget(object="key")
        memory.tell("One more.")
    return ["My cat is called Tom.", "One more."]


def of_awaited_memory(folder, leave):
    async def use():
        async with await AsyncLifelongMemory.open(folder, Scope(user="ann")) as memory:
            leave()
            await memory.tell("My cat is called Tom.")
            await memory.forget(object="key")

    asyncio.run(use())
    return ["My cat is called Tom."]


@pytest.mark.parametrize("use", [of_memory, of_awaited_memory])
def test_a_memory(tmp_path, monkeypatch, use):
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    expected = use("memory", lambda: monkeypatch.chdir(tmp_path))
    with LifelongMemory.open(tmp_path / "home" / "memory", Scope(user="ann"), embedder=Custom()) as memory:
        assert [entry.text for entry in memory.get_all("notes")] == expected
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_stores_of_servers(tmp_path, monkeypatch):
    pytest.importorskip("langgraph.store.base", reason='pip install "embodied_mem[langgraph]"')
    from embodied_mem.serve.langgraph import MemoryBaseStore
    from embodied_mem.serve.mcp import Memories

    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    with MemoryBaseStore("graph") as store:
        memories = Memories("users")
        monkeypatch.chdir(tmp_path)
        store.put(("n",), "a", {"x": 1})
        store.compact()
        store.put(("n",), "b", {"x": 1})
        with memories.lend("ann") as memory:
            memory.tell("My cat is called Tom.")
        memories.close()
    monkeypatch.chdir(tmp_path / "home")
    with MemoryBaseStore("graph") as store:
        assert {item.key for item in store.search(())} == {"a", "b"}
    assert (tmp_path / "home" / "users" / "ann").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_files_of_runs(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    chat = RecordedChatModel(Model(), "answers.jsonl")
    writer = MetricsWriter("metrics", tensorboard=False)
    (tmp_path / "home" / "rows").mkdir()
    finished = Finished(pathlib.Path("rows/rows.jsonl"), {"commit": "x"})
    monkeypatch.chdir(tmp_path)
    chat.complete([{"role": "user", "content": "is it so?"}])
    finished.add("a", "b", "c", [1])
    writer.write(0, {"reward": 1.0})
    writer.close()
    assert json.loads((tmp_path / "home" / "rows" / "rows.jsonl").read_text().splitlines()[1]) == ["a", "b", "c", 1]
    assert len((tmp_path / "home" / "answers.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "home" / "metrics" / "metrics.jsonl").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_the_games_of_envs(tmp_path, monkeypatch, alfworld_data):
    (tmp_path / "games").symlink_to(alfworld_data / "valid_seen")
    monkeypatch.chdir(tmp_path)
    envs = make("alfworld", tasks="games", num_envs=2)
    monkeypatch.chdir("/")
    assert all(envs.reset()[0])
