"""all-mpnet-base-v2 in JAX: sentences to vectors of length 1, as `MiniLM` gives them.

    embedder = MPNet.load("all-mpnet-base-v2")                # a folder as sentence-transformers writes it
    embedder.embed(["put a clean apple in fridge."])          # float32[1, 768]

MPNet is BERT with other names of its arrays, no types of tokens, positions that count from the padding's number on, and
a bias of attention by relative position. So its checkpoint is given BERT's names, and the encoder is MiniLM's.

Source: Song et al., MPNet.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np

from embodied_mem.errors import DataNotFoundError

from .minilm import MiniLM

_NAMES = (
    (r"\.attention\.attn\.q\.", ".attention.self.query."),
    (r"\.attention\.attn\.k\.", ".attention.self.key."),
    (r"\.attention\.attn\.v\.", ".attention.self.value."),
    (r"\.attention\.attn\.o\.", ".attention.output.dense."),
    (r"\.attention\.LayerNorm\.", ".attention.output.LayerNorm."),
)
_POSITIONS, _TYPES = "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"


class MPNet(MiniLM):
    """The sentence encoder with its tokenizer."""

    _kind = "mpnet"

    @staticmethod
    def _as_bert(params: dict[str, np.ndarray], config: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        named = {}
        for name, value in params.items():
            for pattern, other in _NAMES:
                name = re.sub(pattern, other, name)
            named[name] = value
        if _POSITIONS in named:
            first = int(config.get("pad_token_id", 1)) + 1
            named[_POSITIONS] = named[_POSITIONS][first:]
            named[_TYPES] = np.zeros((1, named[_POSITIONS].shape[1]), np.float32)
            config = {**config, "max_position_embeddings": len(named[_POSITIONS])}
        return named, config

    @staticmethod
    def _package_folder() -> pathlib.Path:
        raise DataNotFoundError("the weights of all-mpnet-base-v2 come in no package; give the folder of the model")
