"""The LangGraph store beside LangGraph's own, in a real graph, reopened and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "langgraph.store.base", reason='langgraph-checkpoint is not installed: pip install "embodied_mem[langgraph]"'
)
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import StaticEmbedder
from embodied_mem.memory.arguments import MAX_DEPTH
from embodied_mem.serve.langgraph import MemoryBaseStore

labels = st.sampled_from(["users", "ann", "bob", "notes", "日本"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["a", "b", "long key", ""])
values = st.dictionaries(
    st.sampled_from(["text", "n", "tags", "inner"]),
    st.one_of(
        st.integers(-3, 3),
        st.sampled_from(["a blue mug", "the fridge", "Ann eats no meat", ""]),
        st.lists(st.sampled_from(["x", "y"]), max_size=2),
        st.fixed_dictionaries({"n": st.integers(0, 2)}),
        st.none(),
        st.booleans(),
    ),
    max_size=3,
)
filters = st.one_of(
    st.none(),
    st.fixed_dictionaries({"n": st.integers(-3, 3)}),
    st.fixed_dictionaries({"tags": st.lists(st.sampled_from(["x", "y"]), max_size=2)}),
    st.fixed_dictionaries({"inner": st.just({"n": 1})}),
    st.fixed_dictionaries({"text": st.just({"$ne": "the fridge"})}),
)
_PUT = st.tuples(namespaces, keys, st.one_of(values, st.none())).map(lambda given: PutOp(*given))
_GET = st.tuples(namespaces, keys).map(lambda given: GetOp(*given))
_SEARCH = st.tuples(namespaces, filters).map(lambda given: SearchOp(*given, limit=1000))
_NAMESPACES = st.one_of(st.none(), st.integers(1, 3)).map(lambda depth: ListNamespacesOp(max_depth=depth, limit=1000))
operations = st.lists(st.one_of(_PUT, _GET, _SEARCH, _NAMESPACES), max_size=12)


def shown(result):
    """An answer without its times."""
    if isinstance(result, list):
        return [shown(one) for one in result]
    if result is None or isinstance(result, tuple):
        return result
    return result.namespace, result.key, result.value, getattr(result, "score", None)


def as_set(answer):
    return sorted(str(shown(one)) for one in answer)


@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(st.lists(operations, max_size=4))
def test_batches_are_answered_as_langgraphs_own_store_does(batches):
    """Also opened anew for each; the order among namespaces, which questions change in theirs, is not compared."""
    with tempfile.TemporaryDirectory() as folder:
        own = InMemoryStore()
        for batch in batches:
            with MemoryBaseStore(folder, fsync="never") as store:
                for op, ours, theirs in zip(batch, store.batch(batch), own.batch(batch), strict=True):
                    if isinstance(op, SearchOp):
                        assert as_set(ours) == as_set(theirs)
                    elif isinstance(op, ListNamespacesOp):
                        assert set(ours) <= set(theirs)  # theirs also has those that were emptied, or only asked for
                    else:
                        assert shown(ours) == shown(theirs)
                whole = store.search((), limit=1000)
                assert as_set(whole) == as_set(own.search((), limit=1000))
                pages = [store.search((), limit=2, offset=offset) for offset in range(0, len(whole) + 2, 2)]
                assert [shown(item) for page in pages for item in page] == [shown(item) for item in whole]
                assert set(store.list_namespaces(limit=1000)) == {item.namespace for item in whole}


def test_search_ranks_as_langgraphs_own_store_with_the_same_vectors(tmp_path):
    embedder = StaticEmbedder()
    index = {"dims": 64, "embed": lambda texts: embedder.embed(texts).tolist(), "fields": ["text", "tags[*]"]}
    own = InMemoryStore(index=index)
    texts = [
        "Ann is vegetarian.",
        "The kettle is in the kitchen.",
        "Bob plays chess.",
        "Ann has a cat.",
        "Tea at five.",
    ]
    with MemoryBaseStore(tmp_path, fields=["text", "tags[*]"]) as store:
        for one in (own, store):
            for number, text in enumerate(texts):
                one.put(("home",), str(number), {"text": text, "tags": ["food", text.split()[0]]})
            one.put(("home",), "plain", {"n": 1})
            one.put(("home",), "hidden", {"text": "Ann eats no meat."}, index=False)
        for query in ("what does Ann eat?", "chess", "hot water"):
            ours, theirs = (one.search(("home",), query=query, limit=10) for one in (store, own))
            scores = {item.key: item.score for item in theirs}
            assert {item.key for item in ours} == set(scores)
            for item in ours:
                assert item.score == (None if scores[item.key] is None else pytest.approx(scores[item.key], abs=1e-5))
            given = [item.score for item in ours if item.score is not None]
            assert given == sorted(given, reverse=True)
        store.put(("home",), "2", {"text": "Bob boils water in a kettle."})
        assert store.search(("home",), query="boil water", limit=1)[0].key == "2"


def test_a_graph_remembers_across_processes(tmp_path):
    graph = pytest.importorskip("langgraph.graph", reason="the package langgraph is not installed")

    def node(state, *, store):
        store.put(("users", "ann"), f"turn {state['n']}", {"text": f"said {state['n']}"})
        return {"n": len(store.search(("users", "ann"), limit=100))}

    builder = graph.StateGraph(dict)
    builder.add_node("remember", node)
    builder.add_edge(graph.START, "remember")
    for n in range(3):
        with MemoryBaseStore(tmp_path) as store:
            assert builder.compile(store=store).invoke({"n": n})["n"] == n + 1


def test_the_async_methods_do_the_same(tmp_path):
    async def talk(store):
        await asyncio.gather(*(store.aput(("n",), str(i), {"i": i}) for i in range(20)))
        found = await store.asearch(("n",), filter={"i": {"$gte": 15}}, limit=100)
        await store.adelete(("n",), "17")
        return {item.key for item in found}, await store.aget(("n",), "17"), await store.alist_namespaces()

    with MemoryBaseStore(tmp_path) as store:
        assert asyncio.run(talk(store)) == ({"15", "16", "17", "18", "19"}, None, [("n",)])


WRITER = """
import sys
from embodied_mem.serve.langgraph import MemoryBaseStore
store = MemoryBaseStore(sys.argv[1])
for number in range(100_000):
    store.put(("users", "ann"), str(number), {"text": f"line {number}"})
    print(number, flush=True)
"""


def test_what_put_returned_from_survives_a_kill(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    written = [int(process.stdout.readline()) for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    written += [int(line) for line in process.stdout.read().split()]
    process.wait()
    with MemoryBaseStore(tmp_path) as store:
        found = {int(item.key) for item in store.search(("users",), limit=1_000_000)}
    assert set(written) <= found


def test_what_is_deleted_leaves_the_disk_when_it_is_compacted(tmp_path):
    with MemoryBaseStore(tmp_path) as store:
        store.put(("n",), "a", {"text": "a very private sentence"})
        store.delete(("n",), "a")
        store.compact()
    assert not any(b"very private" in path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file())


TEXTS = {  # what is forgotten -> texts that name it
    "mug": [
        "I like the\nmug", "a\tmug\tis here", "'mug'", '"mug"', "a\\mug", "the\r\nmug.", "Mugs!", "(mug)",
        "\u201cmug\u201d", "a mug",
    ],
    "blue chair": ["the blue\nchair", "blue\tchair", "Blue Chairs", "a blue  chair"],
    '5" pipe': ['a 5" pipe', 'the\n5" pipe'],
    "kölner café": ["das\nKölner Café", "KÖLNER CAFE\u0301"],
    "杯子": ["我喜欢杯子", "一个\n杯子"],
    "4711": ["code\t4711"],
}  # fmt: skip
PLACES = [
    lambda text: (("u",), "k", {"text": text}),
    lambda text: (("u",), "k", {text: 1}),
    lambda text: (("u",), "k", {"a": [{"b": [1, text]}]}),
    lambda text: (("u",), "k", {"a": {"b": {text: None}}}),
    lambda text: (("u",), text, {"n": 1}),
    lambda text: (("u", text.replace(".", "")), "k", {"n": 1}),
]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_what_names_a_thing_is_forgotten_wherever_it_stands(tmp_path, name, text):
    for number, place in enumerate(PLACES):
        with MemoryBaseStore(tmp_path / str(number), fsync="never") as store:
            store.put(("u",), "other", {"text": "smuggled blue armchairs, 14711 cafés", "n": [None, True, 47110]})
            store.put(*place(text))
            assert store.store.forget(object=name).removed == {"documents": {"documents": 1}}
            assert [item.key for item in store.search((), limit=10)] == ["other"]
        left = b"".join(path.read_bytes() for path in (tmp_path / str(number)).iterdir())
        assert json.dumps(text, ensure_ascii=False)[1:-1].encode() not in left
        assert text.encode() not in left


def test_numbers_are_forgotten_and_null_is_no_thing(tmp_path):
    with MemoryBaseStore(tmp_path) as store:
        store.put(("u",), "code", {"code": 4711})
        store.put(("u",), "empty", {"code": None, "is": True})
        for name in ("4711", "none", "null", "true"):
            store.store.forget(object=name)
        assert [item.key for item in store.search(())] == ["empty"]


def deep(levels, kind):
    value = 1
    for level in range(levels):
        value = {"a": value} if kind == "objects" or (kind == "both" and level % 2) else [value]
    return {"v": value}


def from_depth(levels, call):
    return call() if not levels else from_depth(levels - 1, call)


@pytest.mark.parametrize("kind", ["objects", "lists", "both"])
def test_what_is_nested_too_deep_is_refused_and_what_is_not_stays_usable(tmp_path, kind):
    """What was acknowledged is read, forgotten and opened again by programs that are deep in calls themselves."""
    with MemoryBaseStore(tmp_path, fsync="never") as store:
        for levels in (1, 50, MAX_DEPTH - 5):
            store.put(("u",), str(levels), deep(levels, kind))
        for levels in (MAX_DEPTH, MAX_DEPTH + 1, 300, 900, 980, 990, 2000, 100_000):
            with pytest.raises(InvalidInputError, match="value: expected"):
                store.put(("u",), "too deep", deep(levels, kind))
        kept = store.search(("u",), limit=10)
        assert [item.key for item in kept] == ["1", "50", str(MAX_DEPTH - 5)]
        from_depth(500, lambda: store.store.forget(object="zzz"))
        from_depth(500, store.compact)
    store = from_depth(500, lambda: MemoryBaseStore(tmp_path, fsync="never"))
    assert [item.value for item in store.search(("u",), limit=10)] == [item.value for item in kept]
    store.close()


def test_bad_input_is_refused_and_changes_nothing(tmp_path):
    with MemoryBaseStore(tmp_path) as store:
        store.put(("n",), "a", {"x": 1})
        for value in ({"x": object()}, {"x": float("nan")}, {"x": [float("inf")]}, 3):
            with pytest.raises(InvalidInputError, match="value: expected what JSON holds"):
                store.put(("n",), "a", value)
        for index in ([3], [["x"]], [None]):
            with pytest.raises(InvalidInputError, match="index: expected paths"):
                store.put(("n",), "b", {"x": 1}, index=index)
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("a.b",), "k", {})])
        with pytest.raises(NotImplementedError, match="TTL"):
            store.put(("n",), "a", {"x": 2}, ttl=3)
        with pytest.raises(ValueError, match="Unsupported operator"):
            store.search(("n",), filter={"x": {"$like": 1}})
        got = store.get(("n",), "a")
        assert got.value == {"x": 1}
        got.value["x"] = 5
        assert store.get(("n",), "a").value == {"x": 1}
