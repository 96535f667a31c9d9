"""Memories of other packages, as contenders: mem0 without a model's inference, langmem's tools over a store.

    contender = Mem0()                      # MissingDependencyError where the package is not installed
    contender.tell(turn); contender.ask("When did Ann move?", 10)

Both get the embedder that `embedder` has, so that the memories are compared, and keep all in this process: no server,
no network, no model. mem0's search by words needs a model that it would download; without it, it ranks by vectors.
LangGraph's store embeds what it keeps as JSON, which is its default.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import pickle
import tempfile
from collections.abc import Iterator
from typing import Any

from embodied_mem.errors import MissingDependencyError
from embodied_mem.memory.embedders import default_embedder

from .dialogues import Turn

_USER = "user"


class Mem0:
    """mem0's `add` with `infer=False`, and `search`, over Qdrant in this process."""

    def __init__(self) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        self._folder = tempfile.TemporaryDirectory(prefix="locomo-mem0-")
        os.environ["MEM0_DIR"] = self._folder.name  # its own settings; not in the user's home
        with _needed("mem0ai"):
            from mem0 import Memory
            from mem0.embeddings.base import EmbeddingBase
            from mem0.memory import notices
            from mem0.utils import spacy_models
            from qdrant_client import QdrantClient
        notices._fetch_remote_config = lambda: None
        spacy_models._ensure_model_available = _refuse
        logging.getLogger("mem0").setLevel(logging.ERROR)
        embedder = default_embedder()
        dimension = embedder.embed([""]).shape[1]

        class Ours(EmbeddingBase):  # type: ignore[misc]
            def embed(self, text: str, memory_action: str | None = None) -> list[float]:
                vector: list[float] = embedder.embed([text])[0].tolist()
                return vector

        store = {"client": QdrantClient(":memory:"), "embedding_model_dims": dimension, "collection_name": "locomo"}
        unused = {"provider": "openai", "config": {"api_key": "none"}}  # made and never called
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": unused,
                "llm": unused,
                "history_db_path": ":memory:",
            }
        )
        self._memory.embedding_model = Ours()
        self._dimension = int(dimension)
        self._turns: dict[str, Turn] = {}

    def tell(self, turn: Turn) -> None:
        """As `Contender.tell`."""
        (added,) = self._memory.add(turn.said, user_id=_USER, infer=False, metadata={"when": turn.when})["results"]
        self._turns[added["id"]] = turn

    def ask(self, question: str, k: int) -> list[str]:
        """As `Contender.ask`."""
        found = self._memory.search(question, filters={"user_id": _USER}, top_k=k, threshold=0.0)["results"]
        return [self._turns[item["id"]].id for item in found]

    def num_bytes(self) -> int:
        """As `Contender.num_bytes`: what it keeps of each text, and a vector of float32."""
        kept = self._memory.get_all(filters={"user_id": _USER}, top_k=len(self._turns))["results"]
        return len(pickle.dumps(kept)) + 4 * self._dimension * len(kept)


class LangMem:
    """The tools that langmem gives an agent, over LangGraph's store in this process."""

    def __init__(self) -> None:
        with _needed("langmem"):
            from langgraph.store.memory import InMemoryStore
            from langmem import create_manage_memory_tool, create_search_memory_tool
        embedder = default_embedder()
        self._dimension = int(embedder.embed([""]).shape[1])
        index = {"dims": self._dimension, "embed": lambda texts: embedder.embed(texts).tolist()}
        self._store = InMemoryStore(index=index)
        self._write: Any = create_manage_memory_tool((_USER,), store=self._store)
        self._search: Any = create_search_memory_tool((_USER,), store=self._store)
        self._turns: dict[str, Turn] = {}

    def tell(self, turn: Turn) -> None:
        """As `Contender.tell`."""
        said = self._write.invoke({"content": turn.said, "action": "create"})
        self._turns[said.rpartition(" ")[2]] = turn  # "created memory ID"

    def ask(self, question: str, k: int) -> list[str]:
        """As `Contender.ask`."""
        return [
            self._turns[item["key"]].id for item in json.loads(self._search.invoke({"query": question, "limit": k}))
        ]

    def num_bytes(self) -> int:
        """As `Contender.num_bytes`: what it keeps of each text, and a vector of float32."""
        kept = self._store.search((_USER,), limit=len(self._turns))
        return len(pickle.dumps([item.dict() for item in kept])) + 4 * self._dimension * len(kept)


def _refuse() -> None:
    """Stand in for a download; spaCy's model is used where it is installed."""
    if importlib.util.find_spec("en_core_web_sm") is None:
        raise RuntimeError("en_core_web_sm is not installed, and nothing is downloaded")


@contextlib.contextmanager
def _needed(package: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f'this needs the package {package}: pip install -e ".[baselines]" ({error})'
        ) from error
