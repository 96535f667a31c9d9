"""An embedder that embeds each text once: for evaluations, which ask for the same texts again and again.

embedder = KeptVectors(MiniLM.load())
embedder.embed(all_texts)             # one call, in large batches
embedder.embed(all_texts[:1])         # from memory
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .lexical import Embedder, LexicalEmbedder

FEW = 32
"""New texts below this number are embedded one by one: a compiled model is compiled anew for each size of batch."""


class KeptVectors:
    """Keeps every vector for as long as it lives; not for texts of users who may want to be forgotten.

    Attributes:
        name: the embedder's.
        is_model: whether it is a trained model rather than the lexical embedder.
    """

    def __init__(self, embedder: Embedder):
        self.name = embedder.name
        self.is_model = not isinstance(embedder, LexicalEmbedder)
        self._embedder = embedder
        self._kept: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, d], one row per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new or not texts:
            groups = [[text] for text in new] if self.is_model and 1 < len(new) < FEW else [new]
            vectors = np.concatenate([self._embedder.embed(group) for group in groups])
            self._kept.update(zip(new, vectors))
        return np.stack([self._kept[text] for text in texts]) if texts else vectors
