"""An embedder that goes on without vectors where the caller's fails.

    embedder = SurvivingEmbedder(ServerEmbedder(...))
    embedder.embed(["a text"])                # zeros if the server is down: similar to nothing, found by its words
    embedder.failed, embedder.last_error

Memories make vectors anew when they are opened, so texts that have none get one then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import _native
from ...errors import InvalidInputError
from ...forks import forking_lock
from ..arguments import shown
from .lexical import Embedder


class SurvivingEmbedder:
    """As `Embedder`. Any thread may ask.

    Attributes:
        name: the embedder's.
        failed: calls that raised something, or whose answer was no matrix of finite numbers with one row per text and
            as many columns as before.
        last_error: the last reason; empty if there was none.
    """

    def __init__(self, embedder: Embedder):
        self.name = embedder.name
        self.failed, self.last_error = 0, ""
        self._embedder = embedder
        self._lock = forking_lock()
        self._dimension: int | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32[n, d]: unit vectors; zeros where the embedder failed, with d = 0 as long as it never answered."""
        try:
            vectors = np.asarray(self._embedder.embed(texts), np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts) or not _native.vectors.are_finite(vectors):
                expected = f"finite float32[{len(texts)}, d]"
                raise InvalidInputError(f"embedder: expected {expected}, got shape {vectors.shape}")
            if self._dimension != vectors.shape[1]:
                with self._lock:
                    if self._dimension not in (None, vectors.shape[1]):
                        raise InvalidInputError(f"embedder: expected {self._dimension} columns, got {vectors.shape[1]}")
                    self._dimension = vectors.shape[1]
        except Exception as error:  # of the caller's client: no list of types would have them all
            with self._lock:
                self.failed, self.last_error = self.failed + 1, shown(error)
            return np.zeros((len(texts), self._dimension or 0), np.float32)
        return vectors
