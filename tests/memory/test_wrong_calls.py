"""Whatever a caller passes to a public name of `embodied_mem.memory`, nothing but an error of the library comes out."""

from __future__ import annotations

import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest

import embodied_mem.memory as memory
from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import (
    ChatWriter,
    Experiences,
    KnowledgeGraph,
    LexicalEmbedder,
    LifelongMemory,
    MemoryStore,
    Outcome,
    Scope,
    Selector,
    Triple,
)
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.notes import NoteMemory
from embodied_mem.memory.relations import HOUSEHOLD_RULES
from embodied_mem.types import Episode, Step


def deep(levels, is_list):
    made = "x"
    for _ in range(levels):
        made = [made] if is_list else {"a": made}
    return made


WRONG = (
    *(deep(levels, is_list) for levels in (500, 3000) for is_list in (True, False)),
    None,
    7,
    -1,
    2**63,
    2**70,
    -(2**70),
    10**5000,
    1.5,
    math.nan,
    True,
    "ann",
    "\ud800",
    "x" * 5000,
    b"x",
    (),
    [None],
    [(1,)],
    [[2**70, "in", 0]],
    {"a": None},
    object(),
    Path("/dev/null/x"),
    Scope(),
    Triple("a", None, 2**70),
    np.zeros(2),
)
EPISODE = Episode(
    "t", "put a mug in desk.", (Step("you see a desk 1, a mug 1.", "take mug 1 from desk 1"),), True, "You ..."
)


def lifelong(running=True) -> LifelongMemory:
    made = LifelongMemory()
    if running:
        made.begin_task("t", "put a mug in desk.", "you see a desk 1, a mug 1.")
    return made


def told() -> LifelongMemory:
    made = lifelong()
    made.tell("I like tea.")
    return made


def graph() -> KnowledgeGraph:
    made = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    made.update([Triple("mug", "in", "desk", 1, 1)])
    return made


def store() -> MemoryStore:
    return MemoryStore(tempfile.mkdtemp(dir=FOLDER), {"notes": NoteMemory()}, fsync="never")


def bank() -> Experiences:
    made = Experiences()
    made.add(EPISODE)
    return made


FOLDER = None
UPDATE = {"triples": [Triple("mug", "on", "desk", 2)], "hops": 1, "direction": "in", "max_nodes": 9}
UPDATE["extract"] = True
APPLY = {"nodes": [("cup", "", {}, None)], "invalidate": [], "add": [(0, "near", 1)]}
KHOP = {"sources": [0], "hops": 1, "direction": "in", "max_nodes": 9}

# (what is made anew for each call, its method or None for itself, arguments that are right)
CALLS = [
    (Scope, None, {"user": "ann", "robot": "", "environment": ""}),
    (Selector, None, {"object": "mug"}),
    (Selector, None, {"episode": 1}),
    (Selector, None, {"user": "ann"}),
    (LifelongMemory, None, {"scope": None, "modules": ("spatial",), "chat": None, "embedder": None, "capacity": 3}),
    (LifelongMemory, None, {"hops": 2, "counter": len, "parallel": False, "record": None}),
    (LifelongMemory.open, None, {"directory": None, "fsync": "never", "read_only": False, "repair": False}),
    (LifelongMemory.open, None, {"directory": "FOLDER", "scope": None, "fsync": "never", "modules": (), "hops": 2}),
    (LifelongMemory.open, None, {"directory": "FOLDER", "surprise": 1}),
    (lambda: lifelong(False), "begin_task", {"task_id": "t", "goal": "g", "observation": "o", "place": "home"}),
    (lifelong, "begin_task", {"task_id": "t", "goal": "g", "observation": "o"}),
    (lifelong, "observe", {"action": "look", "text": "o", "outcome": "failure"}),
    (lifelong, "observe", {"action": "look", "facts": [("mug", "on", "desk", 0.9)], "outcome": Outcome("failure")}),
    (lifelong, "observe", {"action": "look", "pose": (1.0, 2.0), "time": 3.0, "images": [b"png"]}),
    (lambda: lifelong(False), "observe", {"action": "look", "text": "o"}),
    (lifelong, "sightings", {"kind": "mug", "near": (1, 2), "within_m": 1.0, "after": 3.0, "place": "home", "k": 2}),
    (
        lifelong,
        "tell",
        {"text": "I like tea.", "speaker": "Ann", "when": "today", "labels": {"a": 1}, "trust": "agent"},
    ),
    (told, "get", {"id": "notes:0"}),
    (told, "get_all", {"module": "notes", "where": {"kind": "told"}}),
    (told, "history", {"id": "notes:0"}),
    (told, "update", {"id": "notes:0", "text": "I like milk.", "labels": {"a": 1}}),
    (told, "delete", {"id": "notes:0"}),
    (told, "import_", {"text": ""}),
    (told, "retrieve", {"query": "tea", "k": 2, "as_of": 1, "where": {"kind": "told"}}),
    (lifelong, "end_task", {"won": True}),
    (lambda **given: replay(lifelong(False), **given), None, {"episode": EPISODE, "place": None}),
    (lifelong, "retrieve", {"query": "mug", "budget_tokens": 20}),
    (lifelong, "forget", {"object": "mug"}),
    (lifelong, "forget", {"user": None, "object": None, "episode": 1, "everything": None}),
    (lambda: lifelong().module, "apply", {"event": {}}),
    (lambda: lifelong().module, "check", {"event": {}}),
    (lifelong, "restore", {"data": b""}),
    (KnowledgeGraph, None, {"scope": None, "rules": ()}),
    (KnowledgeGraph.from_bytes, None, {"data": b"", "scope": None}),
    (graph, "update", UPDATE),
    (graph, "apply", APPLY),
    (graph, "khop", KHOP),
    (graph, "forget", {"nodes": [0], "sources": [1]}),
    (lambda: graph().snapshot(), "khop", KHOP | {"relations": ["in"], "as_of": 1}),
    (lambda: graph().snapshot(), "find", {"name": "mug"}),
    (lambda: graph().snapshot(), "find_fact", {"subject": 0, "relation": "in", "object": 1}),
    (lambda: graph().snapshot(), "facts_of", {"node": 0, "direction": "in", "as_of": 1}),
    (lambda: graph().snapshot(), "facts", {"as_of": 1}),
    *(
        (lambda: graph().snapshot(), name, {name.removeprefix("has_"): 0})
        for name in ("node", "fact", "has_node", "has_fact")
    ),
    (lambda: graph().snapshot(), "name", {"node": 0}),
    (MemoryStore, None, {"directory": "FOLDER", "modules": {}, "scope": None, "fsync": "never"}),
    (MemoryStore, None, {"directory": "FOLDER", "modules": {}, "snapshot_bytes": 100}),
    (MemoryStore, None, {"directory": "FOLDER", "modules": {}, "read_only": False, "repair": False}),
    (store, "record", {"module": "notes", "event": {}}),
    (store, "forget", {"episode": 3}),
    (store, "forget", {"object": "mug"}),
    (Experiences, None, {"embedder": None, "context_weight": 1.0, "object_weight": 1.0, "task_key": str}),
    (Experiences, "add", {"episode": EPISODE, "rationale": "so"}),
    (Experiences, "add_many", {"episodes": [EPISODE], "rationales": ["so"]}),
    (bank, "retrieve", {"goal": "put a mug in desk.", "k": 1, "context": "", "exclude_task_ids": (), "distinct": True}),
    (bank, "save", {"path": "FOLDER/bank.gz"}),
    (Experiences.load, None, {"path": "FOLDER/bank.gz", "embedder": None}),
    (LexicalEmbedder, None, {"dimension": 8}),
    (LexicalEmbedder, "embed", {"texts": ["a"]}),
    (ChatWriter, None, {"chat": len}),
    (lambda: memory.Experience(EPISODE, "so"), "render", {"max_actions": 3}),
    (memory.bank.rationale_for, None, {"episode": EPISODE}),
    (memory.bank.key_actions, None, {"episode": EPISODE}),
]


@pytest.fixture(autouse=True)
def folder(memory_folders, monkeypatch):
    global FOLDER
    FOLDER = str(memory_folders())
    monkeypatch.chdir(FOLDER)  # some wrong values are names of files


def called(make, method, arguments):
    """What the call raised, if it was no error of the library."""
    given = {name: v.replace("FOLDER", FOLDER) if isinstance(v, str) else v for name, v in arguments.items()}
    try:
        (make if method is None else getattr(make(), method))(**given)
    except EmbodiedMemError:
        return None
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(("make", "method", "arguments"), CALLS, ids=itertools.count())
def test_a_wrong_argument_is_an_error_of_the_library(make, method, arguments):
    raw = []
    for name, wrong in itertools.product(arguments, WRONG):
        if (error := called(make, method, arguments | {name: wrong})) is not None:
            raw.append(f"{getattr(make, '__qualname__', make)}.{method}({name}={type(wrong).__name__}): {error!r:.150}")
    assert not raw, "\n".join(raw)
