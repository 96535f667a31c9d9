"""The same memories as the original packages keep, after the same answers of a model."""

import importlib.metadata
import json
import os
import pathlib

import pytest
from told_chat import ToldChat

from embodied_mem.agents.method import make_method
from embodied_mem.memory.embedders import default_embedder
from embodied_mem.types import Episode, Step

pytestmark = pytest.mark.parity
RECORDING = pathlib.Path(__file__).with_name("mem0_1.json")


def needs(package, version):
    """Skips the test where the release that it was written against is not installed."""
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f'{package} is not installed: pip install -e ".[baselines]"')
    if not installed.startswith(version):
        pytest.skip(f"expected {package} {version}, got {installed}")


def episode(number):
    return Episode(str(number), f"find thing {number}.", (Step(f"You see a desk {number}.", "look"),), True, "Done.")


EXTRACTED = [
    ["the mug was in the fridge", "the pan was on the stove", "the mug was in the fridge"],
    ["the mug was in the fridge", "", "the soap was in the bath"],
    [],
    ["the mug was on the desk"],
]


def test_mem0_2_keeps_and_finds_what_mem0_does(monkeypatch, tmp_path):
    needs("mem0ai", "2.2.")
    monkeypatch.setitem(os.environ, "MEM0_TELEMETRY", "False")
    monkeypatch.setitem(os.environ, "MEM0_DIR", str(tmp_path))
    from experiments.dialogues.contenders import Mem0

    original = Mem0()._memory
    answers = [{"memory": [{"text": text} for text in texts]} for texts in EXTRACTED]
    told = iter(answers)
    original.llm.generate_response = lambda messages, **settings: json.dumps(next(told))
    ours = make_method("mem0_2", ToldChat(*answers))
    for number in range(len(EXTRACTED)):
        original.add(f"episode {number}", user_id="u")
        ours.observe(episode(number))
    kept = original.get_all(filters={"user_id": "u"}, top_k=100)["results"]
    assert sorted(one["memory"] for one in kept) == sorted(ours.texts())
    assert len(kept) == 4
    query = "where is the mug"
    theirs = original.search(query, filters={"user_id": "u"}, top_k=2, threshold=0.1)["results"]
    near = [ours.entries.texts[n] for n, _ in ours.entries.index.search(query, 2)]
    assert [one["memory"] for one in theirs] == near  # by meaning: its search by words needs a model to download


def test_mem0_1_keeps_what_release_1_0_kept():
    """Against a recording of the release (`record_mem0_1.py`): the same is shown under the same ids, and kept."""
    recorded = json.loads(RECORDING.read_text())
    assert recorded["package"].startswith("mem0ai 1.0.")
    for row in recorded["episodes"]:
        for one in row["decisions"]:
            one.pop("old_memory", None)
    answers = [
        answer
        for row in recorded["episodes"]
        for answer in ({"facts": row["facts"]}, {"memory": row["decisions"]})[: 1 + bool(row["facts"])]
    ]
    chat = ToldChat(*answers)
    ours = make_method("mem0_1", chat)
    for number, row in enumerate(recorded["episodes"]):
        ours.observe(episode(number))
        shown = json.loads(chat.asked[-1])["memory"] if row["facts"] else []
        assert shown == row["shown"]
        assert sorted(ours.texts()) == row["kept"]
    assert not chat.answers
    assert max(len(row["shown"]) for row in recorded["episodes"]) > 5  # more than five: those of several facts


def test_langmem_inserts_and_patches_as_langmem_does():
    needs("langmem", "0.0.")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.store.memory import InMemoryStore
    from langmem import create_memory_store_manager

    embedder = default_embedder()
    dims = embedder.embed([""]).shape[1]
    store = InMemoryStore(index={"dims": dims, "embed": lambda texts: embedder.embed(texts).tolist()})

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **settings):
            return self

    def answers():
        contents = ("the mug was in the fridge", "the pan was on the stove")
        calls = [{"name": "Memory", "args": {"content": c}, "id": str(i)} for i, c in enumerate(contents)]
        yield AIMessage("", tool_calls=calls)
        [mug] = [one for one in store.search(("m",)) if "mug" in one.value["content"]["content"]]
        patch = {"op": "replace", "path": "/content", "value": "the mug was on the desk"}
        args = {"json_doc_id": manager._stable_id(mug), "planned_edits": "the mug has moved", "patches": [patch]}
        yield AIMessage("", tool_calls=[{"name": "PatchDoc", "args": args, "id": "2"}])

    manager = create_memory_store_manager(
        Model(messages=answers()), namespace=("m",), store=store, enable_deletes=False, query_limit=5
    )
    for number in range(2):
        manager.invoke({"messages": [{"role": "user", "content": f"episode {number}"}]})
    ours = make_method(
        "langmem",
        ToldChat(
            {
                "records": [
                    {"id": "", "kind": "semantic", "content": "the mug was in the fridge"},
                    {"id": "", "kind": "semantic", "content": "the pan was on the stove"},
                ]
            },
            {"records": [{"id": "0", "kind": "semantic", "content": "the mug was on the desk"}]},
        ),
    )
    for number in range(2):
        ours.observe(episode(number))
    theirs = [one.value["content"]["content"] for one in store.search(("m",))]
    assert sorted(theirs) == sorted(ours.texts()) == ["the mug was on the desk", "the pan was on the stove"]
