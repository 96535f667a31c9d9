"""LangGraph's store on the project's own: documents that survive `kill -9`, found by word vectors without a model.

    with MemoryBaseStore("memory/graph") as store:
        graph = builder.compile(store=store)
        store.put(("users", "ann"), "diet", {"text": "Ann is vegetarian."})
        store.search(("users",), query="what may Ann eat?")

When `put` or `batch` returns, what it wrote is on the disk. Times to live are not supported, as the base class says.
A deleted value stays in the log until `compact`. Needs the extra `langgraph`.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..errors import InvalidInputError, MissingDependencyError
from ..memory import MemoryStore, StaticEmbedder
from ..memory.arguments import check_depth, shown
from .documents import Document, Documents, Namespace

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise MissingDependencyError(
        f'serve.langgraph needs the package langgraph-checkpoint ({error}): pip install "embodied_mem[langgraph]"'
    ) from error

_MODULE = "documents"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda have, want: bool(have == want),
    "$ne": lambda have, want: bool(have != want),
    "$gt": lambda have, want: float(have) > float(want),
    "$gte": lambda have, want: float(have) >= float(want),
    "$lt": lambda have, want: float(have) < float(want),
    "$lte": lambda have, want: float(have) <= float(want),
}


class MemoryBaseStore(BaseStore):
    """A `BaseStore` in one folder. Any thread may call it; one process writes it at a time.

    Args:
        directory: the folder, which is made if it does not exist.
        embedder: of texts, for `search(query=...)`: anything with `embed(texts) -> float32[n, D]`; None for the word
            vectors that come with the package.
        fields: paths of the texts to search by, "$" for the whole value.
        fsync: as `MemoryStore`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        embedder: Any = None,
        fields: Sequence[str] = ("$",),
        fsync: Literal["always", "interval", "never"] = "always",
    ):
        self._documents = Documents()
        self.store = MemoryStore(directory, {_MODULE: self._documents}, fsync=fsync)
        self._embedder, self._fields = StaticEmbedder() if embedder is None else embedder, list(fields)
        self._vectors: dict[tuple[Namespace, str], tuple[str, np.ndarray]] = {}  # of the version of that time
        self._lock = threading.RLock()

    def close(self) -> None:
        """Let go of the folder."""
        self.store.close()

    def __enter__(self) -> MemoryBaseStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def compact(self) -> None:
        """Write what there is and remove the log of the past.

        Deleted values go with it.
        """
        self.store.snapshot()

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Return the answers as of before the writes of this batch.

        The last write to a key counts.
        """
        ops = list(ops)
        with self._lock:
            puts: dict[tuple[Namespace, str], list[Any]] = {}
            for op in ops:
                validate_op_namespace(op)
                if isinstance(op, PutOp):
                    puts[op.namespace, op.key] = [list(op.namespace), op.key, _checked(op.value), op.index]
            results = [self._answer(op) for op in ops]
            if puts:
                time = datetime.datetime.now(datetime.UTC).isoformat()
                self.store.record(_MODULE, {"time": time, "puts": list(puts.values())})
                for changed in puts:
                    self._vectors.pop(changed, None)
            return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Do `batch` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Any) -> Any:
        if isinstance(op, PutOp):
            return None
        if isinstance(op, GetOp):
            found = self._documents.get(op.namespace, op.key)
            return None if found is None else Item(**_fields(op.namespace, op.key, found))
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        raise InvalidInputError(f"batch: expected an operation of langgraph.store.base, got {shown(op)}")

    def _namespaces(self, op: Any) -> list[Namespace]:
        found = [
            namespace
            for namespace in self._documents.namespaces()
            if all(_matches(condition, namespace) for condition in op.match_conditions or ())
        ]
        if op.max_depth is not None:
            found = sorted({namespace[: op.max_depth] for namespace in found})
        return found[op.offset : op.offset + op.limit]

    def _search(self, op: Any) -> list[Any]:
        found = [
            (namespace, key, document)
            for namespace, key, document in self._documents.below(op.namespace_prefix)
            if all(_fits(document.value.get(name), want) for name, want in (op.filter or {}).items())
        ]
        scores: list[float | None] = [None] * len(found)
        if op.query:
            scores = self._scores(op.query, found)
            order = sorted(range(len(found)), key=lambda i: (scores[i] is None, -(scores[i] or 0.0)))
            found, scores = [found[i] for i in order], [scores[i] for i in order]
        chosen = slice(op.offset, op.offset + op.limit)
        return [SearchItem(**_fields(*row), score=score) for row, score in zip(found[chosen], scores[chosen])]

    def _scores(self, query: str, rows: Sequence[tuple[Namespace, str, Document]]) -> list[float | None]:
        """Return the cosine of the query to each document's nearest text.

        It is None where a document has no text to search by.
        """
        new = [
            (space, key, doc) for space, key, doc in rows if self._vectors.get((space, key), ("",))[0] != doc.updated
        ]
        texts = [self._texts(document) for *_, document in new]
        flat = [text for some in texts for text in some]
        vectors = iter(self._embedder.embed(flat)) if flat else iter(())
        for (namespace, key, document), some in zip(new, texts):
            own = np.array([next(vectors) for _ in some], dtype=np.float32)
            self._vectors[namespace, key] = document.updated, own
        asked = np.asarray(self._embedder.embed([query])[0], dtype=np.float32)
        scores: list[float | None] = []
        for namespace, key, _ in rows:
            own = self._vectors[namespace, key][1]
            if not len(own):
                scores.append(None)
                continue
            sizes = np.linalg.norm(own, axis=1) * np.linalg.norm(asked)
            scores.append(float(np.max(np.divide(own @ asked, sizes, out=np.zeros(len(own)), where=sizes > 0))))
        return scores

    def _texts(self, document: Document) -> list[str]:
        if document.paths is False:
            return []
        paths = document.paths if isinstance(document.paths, list) else self._fields
        return [text for path in paths for text in get_text_at_path(document.value, path) if text]


def _checked(value: Any) -> dict[str, Any] | None:
    """Return a copy of a JSON object.

    Raises InvalidInputError for what JSON does not hold.
    """
    if value is None:
        return None
    try:
        text = json.dumps(dict(value), allow_nan=False)
        copied = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"value: expected what JSON holds, got {shown(value)}: {error}") from error
    check_depth("value", copied, text)
    return dict(copied)


def _fields(namespace: Namespace, key: str, document: Document) -> dict[str, Any]:
    value = json.loads(json.dumps(document.value))  # the caller's own
    times = {"created_at": document.created, "updated_at": document.updated}
    return {"namespace": namespace, "key": key, "value": value, **times}


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(want in ("*", have) for have, want in zip(part, path))


def _fits(have: Any, want: Any) -> bool:
    """Match a value against a filter.

    A filter is a value, or operators such as {"$gt": 3}; objects are matched by their fields.
    """
    if isinstance(want, Mapping):
        if any(name.startswith("$") for name in want):
            return all(_compared(name, have, one) for name, one in want.items())
        return isinstance(have, Mapping) and all(_fits(have.get(name), one) for name, one in want.items())
    if isinstance(want, (list, tuple)):
        return isinstance(have, list) and len(have) == len(want) and all(map(_fits, have, want))
    return bool(have == want)


def _compared(operator: str, have: Any, want: Any) -> bool:
    if operator not in _COMPARE:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return _COMPARE[operator](have, want)
    except (TypeError, ValueError):  # what is no number is neither more nor less
        return False
