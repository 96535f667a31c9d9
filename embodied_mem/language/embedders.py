"""Embeds texts by a server. The lexical embedder, which needs none, is `embodied_mem.memory.LexicalEmbedder`.

    embedder = ServerEmbedder("http://localhost:8000/v1", model="bge-small-en")
    bank = embodied_mem.memory.MemoryBank(embedder)

Every embedder has `name` and `embed(texts) -> float32[n, d]` with rows of length 1 (`embodied_mem.memory.Embedder`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from .chat import ChatError, Usage, UsageMeter
from .http_json import HttpJson


class ServerEmbedder:
    """A model behind `POST <base_url>/embeddings`, as OpenAI-compatible servers offer it.

    Args:
        base_url: with the version part, e.g. `http://localhost:8000/v1`.
        model: name that the server knows.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        batch_size: texts per request.
        **http: further arguments of `HttpJson`.
    """

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None, batch_size: int = 64, **http: Any):
        if batch_size < 1:
            raise InvalidInputError(f"batch_size: expected >= 1, got {batch_size}")
        self.name = model
        self.meter = UsageMeter()
        self._batch_size = batch_size
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, d], one row per text.

        Raises:
            ChatError: the server failed or answered something else.
        """
        if isinstance(texts, str):
            raise InvalidInputError("texts: expected a sequence of texts, got one text; pass [text]")
        rows = []
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            with self.meter.call(0):
                rows.append(self._embedded(batch))
        if not rows:
            return np.zeros((0, 0), np.float32)
        vectors = np.concatenate(rows)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def _embedded(self, batch: list[str]) -> np.ndarray:
        answer = self._http.post("embeddings", {"model": self.name, "input": batch}, self.meter)
        try:
            data = sorted(answer["data"], key=lambda entry: entry["index"])
            vectors = np.array([entry["embedding"] for entry in data], np.float64)
            usage = Usage.read(answer.get("usage") or {})
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ChatError(
                f"{self._http.base_url}: expected data[i].embedding, got {self._http.excerpt(answer)}"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(batch) or not np.isfinite(vectors).all():
            raise ChatError(f"{self._http.base_url}: expected {len(batch)} finite vectors, got {vectors.shape}")
        self.meter.count(Usage(usage.prompt_tokens, 0))
        return vectors
